"""The events of acknowledgments that are written together share a row.

Rows of before stay as they are: one event each.
"""

from alembic import op

revision = "0005_events_together"
down_revision = "0004_identity_alone"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; on PostgreSQL, leave numbers free between those of rows."""
    op.execute("ALTER TABLE events ADD COLUMN first_seq BIGINT")
    op.execute("ALTER TABLE events ADD COLUMN objects TEXT")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER SEQUENCE events_seq_seq INCREMENT BY 64")
        # A row takes the numbers up to its own: none of them was given before.
        op.execute("SELECT setval('events_seq_seq', nextval('events_seq_seq') + 64)")
