"""Notices about waiting confirmations: their text, the channels, and how they are sent."""
