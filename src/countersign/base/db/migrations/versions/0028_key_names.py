"""An API key may have a name."""

from alembic import op

revision = "0028_key_names"
down_revision = "0027_narrow_records"


def upgrade() -> None:
    """Add the column; earlier keys have no name."""
    op.execute("ALTER TABLE api_keys ADD COLUMN name VARCHAR(100)")
