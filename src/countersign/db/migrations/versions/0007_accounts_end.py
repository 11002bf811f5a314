"""Accounts can be disabled, and closed."""

import sqlalchemy as sa
from alembic import op

revision = "0007_accounts_end"
down_revision = "0006_checkpoints_go"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add when an account was disabled or closed; none of before was."""
    for name in ("disabled_at", "closed_at"):
        op.add_column("accounts", sa.Column(name, sa.BigInteger()))
