"""An API key may have a name."""

from alembic import op

revision = "0029_key_names"
down_revision = "0026_kept_slots"


def upgrade() -> None:
    """Add the column; earlier keys have no name."""
    op.execute("ALTER TABLE api_keys ADD COLUMN name VARCHAR(100)")
