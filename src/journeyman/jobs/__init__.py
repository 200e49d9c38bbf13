"""Agents on a schedule."""
