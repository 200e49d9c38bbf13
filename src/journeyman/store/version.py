"""The version of the tables."""

SCHEMA_VERSION = "0009"
"""The migration this code needs. Opening a store compares one row with it, so that Alembic is
loaded only when there is something to migrate."""
