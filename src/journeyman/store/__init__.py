"""The store: sessions, messages and usage in SQLite or PostgreSQL, by the same code."""

from journeyman.store.store import Store

__all__ = ["Store"]
