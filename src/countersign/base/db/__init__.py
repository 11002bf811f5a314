"""The database: engines, batching, tables and migrations."""
