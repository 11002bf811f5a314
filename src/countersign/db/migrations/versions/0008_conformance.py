"""Conformance runs, and what was seen in them."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the two tables of conformance runs."""
    op.create_table(
        "conformance_runs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ends_at", sa.BigInteger(), nullable=False),
        sa.Column("active_until", sa.BigInteger(), nullable=False),
        sa.Column("hold_ms", sa.Integer(), nullable=False),
        sa.Column("armed", sa.String(length=30), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_conformance_runs_account_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conformance_runs")),
    )
    op.create_index(
        "ix_conformance_runs_active_until", "conformance_runs", ["active_until"], unique=False
    )
    op.create_index(
        "ix_conformance_runs_account_id_active_until",
        "conformance_runs",
        ["account_id", "active_until"],
        unique=False,
    )
    op.create_table(
        "conformance_observations",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("seen", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["conformance_runs.id"],
            name=op.f("fk_conformance_observations_run_id"),
        ),
        sa.PrimaryKeyConstraint("run_id", "id", name=op.f("pk_conformance_observations")),
    )
