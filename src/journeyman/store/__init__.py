"""The store: sessions, messages and usage in SQLite or PostgreSQL, by the same code.

Nothing is imported here: `known_logs` answers without loading the rest of the room.
"""
