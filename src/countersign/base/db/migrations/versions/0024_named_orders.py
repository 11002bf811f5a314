"""Accounts may demand that live orders are named; a payment and a shipment stay with the order."""

import sqlalchemy as sa
from alembic import op

revision = "0024_named_orders"
down_revision = "0023_buyer_blocks"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; an account that is there demands nothing that it did not demand before."""
    for column in (
        sa.Column(
            "order_reference_required", sa.Boolean, nullable=False, server_default=sa.false()
        ),
        sa.Column("paid_max_age", sa.Integer, nullable=False, server_default="15552000"),
    ):
        op.add_column("clearance_settings", column)
    op.execute(
        "INSERT INTO clearance_settings (account_id, acknowledgment_max_age, lifetime,"
        " product_class_required, changed_at)"
        " SELECT id, 604800, 86400, true, created_at FROM accounts"
        " WHERE id NOT IN (SELECT account_id FROM clearance_settings)"
    )
    op.add_column("acknowledgment_uses", sa.Column("shipped_under", sa.String(40)))
    op.add_column("acknowledgment_uses", sa.Column("paid_at", sa.BigInteger))
    op.execute(
        "UPDATE acknowledgment_uses SET shipped_under = (SELECT f.clearance_id FROM fulfilments f"
        " WHERE f.ack_id = acknowledgment_uses.ack_id ORDER BY f.id LIMIT 1)"
    )
