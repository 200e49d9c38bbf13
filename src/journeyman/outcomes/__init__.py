"""What became of a call: the judge and its rules."""

RULES_VERSION = 2
"""Raise it with every change after which the judge may say something else of a call. Verdicts that
were made under another version are made again.
"""
