"""Alembic's environment: it migrates the connection that `schema.upgrade` hands over."""

from alembic import context

from countersign.db.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
context.run_migrations()
