"""Redaction: removes secrets and personal data, and detects text that instructs its reader. To add
a family of secrets, add a row to `families.toml`.
"""

RULES_VERSION = 4
"""Raise this with every change to what is redacted or excluded. Anything learned under another
version is then learned again.
"""
