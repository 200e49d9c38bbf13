"""What must not be learned: secrets and people's details, and text that instructs its reader."""

RULES_VERSION = 2
"""Raise it with every change after which other text is taken out or kept out. What was
learned under another version is learned again.
"""
