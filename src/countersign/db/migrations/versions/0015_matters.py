"""A legal matter can hold several orders."""

import sqlalchemy as sa
from alembic import op

revision = "0015_matters"
down_revision = "0014_adopted_initials"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add matters; no hold of before belongs to one."""
    op.add_column("legal_holds", sa.Column("matter_id", sa.String(40)))
    op.create_table(
        "matters",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("account_id", sa.String(40), nullable=False),
        sa.Column("mode", sa.String(4), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("opened_at", sa.BigInteger, nullable=False),
        sa.Column("closed_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_matters"),
        sa.CheckConstraint("mode IN ('test', 'live')", name="ck_matters_mode"),
    )
