"""Language models and embeddings behind small protocols."""

VECTORS_VERSION = 2
"""Raise this whenever a change may give a text a different vector."""
