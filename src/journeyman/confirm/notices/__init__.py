"""Telling people that something waits for them: the words, the ways, and what became of it."""
