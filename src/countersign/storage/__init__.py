"""Storage: SQLAlchemy Core behind batchers, one schema and one set of statements on two engines."""
