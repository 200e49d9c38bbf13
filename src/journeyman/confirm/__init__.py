"""Confirmations: risky actions are held until a person decides."""
