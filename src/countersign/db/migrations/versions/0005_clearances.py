"""Clearances: decisions, what acknowledgments were used for, fulfilments, keys and settings."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables of clearances."""
    op.create_table(
        "clearances",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("ack_id", sa.String(length=40), nullable=True),
        sa.Column("kid", sa.String(length=60), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_clearances_mode")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_clearances")),
    )
    op.create_index(op.f("ix_clearances_ack_id"), "clearances", ["ack_id"], unique=False)
    op.create_table(
        "acknowledgment_uses",
        sa.Column("ack_id", sa.String(length=40), nullable=False),
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("cbid", sa.String(length=40), nullable=True),
        sa.Column("cbid_index", sa.LargeBinary(), nullable=False),
        sa.Column("order_index", sa.LargeBinary(), nullable=True),
        sa.Column("clearance_id", sa.String(length=40), nullable=True),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_acknowledgment_uses_mode")),
        sa.PrimaryKeyConstraint("ack_id", name=op.f("pk_acknowledgment_uses")),
    )
    op.create_index(
        op.f("ix_acknowledgment_uses_cbid"), "acknowledgment_uses", ["cbid"], unique=False
    )
    op.create_table(
        "fulfilments",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("clearance_id", sa.String(length=40), nullable=False),
        sa.Column("ack_id", sa.String(length=40), nullable=False),
        sa.Column("adult_signature", sa.Boolean(), nullable=False),
        sa.Column("closes", sa.Boolean(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_fulfilments_mode")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fulfilments")),
    )
    op.create_index(op.f("ix_fulfilments_ack_id"), "fulfilments", ["ack_id"], unique=False)
    op.create_table(
        "clearance_keys",
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("kid", sa.String(length=60), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("seed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("signs_from", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_clearance_keys_mode")),
        sa.PrimaryKeyConstraint("mode", "number", name=op.f("pk_clearance_keys")),
        sa.UniqueConstraint("kid", name=op.f("uq_clearance_keys_kid")),
    )
    op.create_table(
        "clearance_settings",
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("acknowledgment_max_age", sa.Integer(), nullable=False),
        sa.Column("lifetime", sa.Integer(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_clearance_settings_account_id")
        ),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_clearance_settings")),
    )
