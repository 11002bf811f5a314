"""Events, and webhooks that tell of them."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables of events, webhook endpoints and deliveries."""
    op.create_table(
        "events",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("tx", sa.BigInteger(), nullable=False),
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("type", sa.String(length=30), nullable=False),
        sa.Column("object_id", sa.String(length=64), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_events_mode")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_events")),
    )
    op.create_index(
        op.f("ix_events_account_id_mode_tx_seq"),
        "events",
        ["account_id", "mode", "tx", "seq"],
        unique=False,
    )
    op.create_table(
        "webhook_endpoints",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("event_types", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("disabled_at", sa.BigInteger(), nullable=True),
        sa.Column("disabled_reason", sa.String(length=20), nullable=True),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.Column("cursor_tx", sa.BigInteger(), nullable=False),
        sa.Column("cursor_seq", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_webhook_endpoints_mode")),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_webhook_endpoints_account_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_endpoints")),
    )
    op.create_index(
        op.f("ix_webhook_endpoints_account_id_mode"),
        "webhook_endpoints",
        ["account_id", "mode"],
        unique=False,
    )
    op.create_table(
        "webhook_secrets",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("endpoint_id", sa.String(length=40), nullable=False),
        sa.Column("public_key", sa.String(length=60), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["endpoint_id"],
            ["webhook_endpoints.id"],
            name=op.f("fk_webhook_secrets_endpoint_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_secrets")),
    )
    op.create_index(
        op.f("ix_webhook_secrets_endpoint_id"), "webhook_secrets", ["endpoint_id"], unique=False
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("endpoint_id", sa.String(length=40), nullable=False),
        sa.Column("event_seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("endpoint_id", "event_seq", name=op.f("pk_webhook_deliveries")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_webhook_deliveries_endpoint_id_due_at"),
        "webhook_deliveries",
        ["endpoint_id", "due_at"],
        unique=False,
    )
    op.create_table(
        "webhook_attempts",
        sa.Column("endpoint_id", sa.String(length=40), nullable=False),
        sa.Column("event_seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint(
            "endpoint_id", "event_seq", "number", name=op.f("pk_webhook_attempts")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_buyers_expires_at"), "buyers", ["expires_at"], unique=False)
