"""Texts as vectors, so that likeness can be counted, and as tokens, to count their cost."""
