"""Live verification: settings, sessions, documents, evidence, and what operators did."""

import sqlalchemy as sa
from alembic import op

from countersign.db.append_only import append_only_by_keys_ddl

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables, and protect the record of what operators did."""
    op.add_column("buyers", sa.Column("proofs", sa.Text(), server_default="[]", nullable=False))
    op.add_column("buyers", sa.Column("same_as", sa.String(length=40), nullable=True))
    op.add_column("verifications", sa.Column("session_index", sa.LargeBinary(), nullable=True))
    op.create_table(
        "audit_log",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(length=100), nullable=False),
        sa.Column("action", sa.String(length=40), nullable=False),
        sa.Column("subject", sa.String(length=80), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
    )
    op.create_index(op.f("ix_audit_log_subject"), "audit_log", ["subject"], unique=False)
    op.create_table(
        "buyer_documents",
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("cbid", sa.String(length=40), nullable=False),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_buyer_documents_mode")),
        sa.PrimaryKeyConstraint("mode", "fingerprint", name=op.f("pk_buyer_documents")),
    )
    op.create_index(op.f("ix_buyer_documents_cbid"), "buyer_documents", ["cbid"], unique=False)
    op.create_table(
        "provider_sessions",
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("session_index", sa.LargeBinary(), nullable=False),
        sa.Column("cbid", sa.String(length=40), nullable=False),
        sa.Column("reference_index", sa.LargeBinary(), nullable=True),
        sa.Column("verified_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_provider_sessions_mode")),
        sa.PrimaryKeyConstraint("mode", "session_index", name=op.f("pk_provider_sessions")),
    )
    op.create_index(op.f("ix_provider_sessions_cbid"), "provider_sessions", ["cbid"], unique=False)
    op.create_table(
        "pending_sessions",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("session_index", sa.LargeBinary(), nullable=False),
        sa.Column("asked_index", sa.LargeBinary(), nullable=False),
        sa.Column("cbid", sa.String(length=40), nullable=False),
        sa.Column("request", sa.LargeBinary(), nullable=False),
        sa.Column("polls", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("next_poll_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_pending_sessions_mode")),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_pending_sessions_account_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pending_sessions")),
        sa.UniqueConstraint(
            "account_id", "mode", "asked_index", name=op.f("uq_pending_sessions_account_id")
        ),
    )
    op.create_index(op.f("ix_pending_sessions_cbid"), "pending_sessions", ["cbid"], unique=False)
    op.create_index(
        op.f("ix_pending_sessions_session_index"),
        "pending_sessions",
        ["session_index"],
        unique=False,
    )
    op.create_index(
        op.f("ix_pending_sessions_next_poll_at"), "pending_sessions", ["next_poll_at"], unique=False
    )
    op.create_table(
        "provider_messages",
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("message_index", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_provider_messages_account_id")
        ),
        sa.PrimaryKeyConstraint("account_id", "message_index", name=op.f("pk_provider_messages")),
    )
    op.create_index(op.f("ix_provider_messages_at"), "provider_messages", ["at"], unique=False)
    op.create_table(
        "verification_evidence",
        sa.Column("record_id", sa.String(length=40), nullable=False),
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_verification_evidence_mode")),
        sa.ForeignKeyConstraint(
            ["record_id"], ["records.id"], name=op.f("fk_verification_evidence_record_id")
        ),
        sa.PrimaryKeyConstraint("record_id", name=op.f("pk_verification_evidence")),
    )
    op.create_table(
        "verification_settings",
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("provider", sa.String(length=20), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=True),
        sa.Column("rules", sa.Text(), nullable=False),
        sa.Column("credentials", sa.LargeBinary(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_verification_settings_account_id")
        ),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_verification_settings")),
    )
    for statement in append_only_by_keys_ddl(
        op.get_bind().dialect.name, "audit_log", (("id",),), rowid=True
    ):
        op.execute(statement)
