"""Alembic migrations: the history of the schema."""
