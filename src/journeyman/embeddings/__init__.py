"""Texts as vectors, so that likeness can be counted, and as tokens, to count their cost."""

VECTORS_VERSION = 1
"""Raise it with every change after which a text may have another vector."""
