"""The store: sessions and everything learned from them, confirmations and jobs, in SQLite or
PostgreSQL with the same code.
"""
