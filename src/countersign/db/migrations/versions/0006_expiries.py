"""When to tell that a buyer has expired."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make a column for it; of what has expired long ago is told once, too."""
    op.add_column("buyers", sa.Column("expiry_due_at", sa.BigInteger(), nullable=True))
    op.execute("UPDATE buyers SET expiry_due_at = expires_at WHERE status = 'verified'")
    op.drop_index("ix_buyers_expires_at", table_name="buyers")
    op.create_index("ix_buyers_expiry_due_at", "buyers", ["expiry_due_at"], unique=False)
    op.create_index("ix_buyers_same_as", "buyers", ["same_as"], unique=False)
