"""The gate decides on each tool call before it runs: allow, ask or refuse."""

RULES_VERSION = 5
"""Raise this with every change that can alter a decision. What was learned under another version is
learned again, because a call that needs confirmation never teaches.
"""
