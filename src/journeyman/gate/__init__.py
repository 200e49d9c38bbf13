"""What stands in front of each call: allow, ask or refuse."""

RULES_VERSION = 2
"""Raise it with every change after which the gate may answer otherwise. What was learned under
another version is learned again: what a person would have to confirm never teaches.
"""
