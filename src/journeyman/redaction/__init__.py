"""What must not be learned: secrets and people's details, and text that instructs its reader."""

RULES_VERSION = 1
"""Raise it with every change after which other text is taken out or put into quarantine. What was
learned under another version is learned again.
"""
