"""Language models and embeddings behind small protocols."""

VECTORS_VERSION = 1
"""Raise this whenever a change may give a text a different vector."""
