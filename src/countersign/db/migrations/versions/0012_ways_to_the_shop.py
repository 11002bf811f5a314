"""Buyers are shown how to reach the shop, and its pages may have another of three fonts."""

import sqlalchemy as sa
from alembic import op

revision = "0012_ways_to_the_shop"
down_revision = "0011_order_references"
branch_labels = None
depends_on = None

_COLUMNS = {"contact_url": 2048, "privacy_url": 2048, "support_email": 254, "font": 8}


def upgrade() -> None:
    """Add what was never stated before."""
    for name, length in _COLUMNS.items():
        op.add_column("account_brands", sa.Column(name, sa.String(length)))
