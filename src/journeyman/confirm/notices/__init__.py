"""Telling people that something waits for them: the words, the ways, and what became of it.

Nothing is imported here: the words need no library, the ways need heavy ones.
"""
