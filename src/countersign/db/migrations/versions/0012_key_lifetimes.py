"""How long a key was made to work, apart from when it expires, which rotation changes."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make a column for it; a rotated key has the lifetime that its first successor got."""
    op.add_column("api_keys", sa.Column("lifetime_seconds", sa.BigInteger(), nullable=True))
    op.execute(
        "UPDATE api_keys SET lifetime_seconds = (expires_at - created_at) / 1000"
        " WHERE id NOT IN (SELECT replaces FROM api_keys WHERE replaces IS NOT NULL)"
    )
    op.execute(
        "UPDATE api_keys SET lifetime_seconds = (SELECT (s.expires_at - s.created_at) / 1000"
        " FROM api_keys s WHERE s.replaces = api_keys.id ORDER BY s.id LIMIT 1)"
        " WHERE id IN (SELECT replaces FROM api_keys WHERE replaces IS NOT NULL)"
    )
