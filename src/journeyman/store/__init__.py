"""The store: sessions, messages and usage in SQLite or PostgreSQL, by the same code."""
