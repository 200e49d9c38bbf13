"""Verdicts on tool calls: the judge and its rules."""

RULES_VERSION = 6
"""Raise this with every change that may alter a verdict. Calls judged under another version are
judged again.
"""
