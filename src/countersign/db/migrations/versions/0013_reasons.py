"""The reasons of a verdict stay with the buyer and its events, for the account that asked."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add whose attempt a buyer's reasons are from, and the reasons that an event tells."""
    op.add_column("buyers", sa.Column("attempted_by", sa.String(length=40), nullable=True))
    op.add_column("events", sa.Column("reasons", sa.Text(), nullable=True))
    op.execute(
        "UPDATE buyers SET attempted_by = (SELECT v.account_id FROM verifications v"
        " WHERE v.cbid = buyers.cbid ORDER BY v.id DESC LIMIT 1)"
        " WHERE NOT simulated AND reasons <> '[]'"
    )
