"""Mining: which calls of a session are worth repeating, and what they were for."""

RULES_VERSION = 3
"""Raise it with every change after which other patterns may be found in a session, or the same ones
with other content. What was learned under another version is learned again.
"""
