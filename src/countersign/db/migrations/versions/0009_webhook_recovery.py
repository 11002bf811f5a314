"""When a webhook endpoint was recovered last, and events by their time."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the time of the last recovery, and the index by which `since` is found."""
    op.add_column("webhook_endpoints", sa.Column("recovered_at", sa.BigInteger(), nullable=True))
    op.create_index(
        "ix_events_account_id_mode_at", "events", ["account_id", "mode", "at"], unique=False
    )
