"""The entry point of Alembic; the connection comes from the store that is being opened."""

from alembic import context

from journeyman.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
context.run_migrations()
