"""Measures what Journeyman is worth on the sessions that a person has."""
