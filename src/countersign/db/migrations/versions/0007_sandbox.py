"""Test clocks, planned faults, and events that were only triggered."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables of the test helpers, and the mark on events."""
    op.create_table(
        "test_clocks",
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("ahead_ms", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_test_clocks_account_id")
        ),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_test_clocks")),
    )
    op.create_table(
        "test_faults",
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("fault", sa.String(length=30), nullable=False),
        sa.Column("calls_left", sa.Integer(), nullable=True),
        sa.Column("delay_ms", sa.Integer(), nullable=False),
        sa.Column("planned_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_test_faults_account_id")
        ),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_test_faults")),
    )
    op.add_column(
        "events", sa.Column("triggered", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.create_index(
        "ix_buyers_account_id_mode_expiry_due_at",
        "buyers",
        ["account_id", "mode", "expiry_due_at"],
        unique=False,
    )
