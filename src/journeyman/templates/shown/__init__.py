"""Openings: patterns as the messages that a session starts with."""
