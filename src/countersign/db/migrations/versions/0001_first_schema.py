"""The first schema."""

import sqlalchemy as sa
from alembic import op

from countersign.db.append_only import append_only_ddl

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make every table, and protect the append-only ones."""
    op.create_table(
        "accounts",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
        sa.UniqueConstraint("name", name=op.f("uq_accounts_name")),
    )
    op.create_table(
        "deployment",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_deployment")),
    )
    op.create_table(
        "notice_versions",
        sa.Column("notice_id", sa.String(length=64), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("notice_id", "version", name=op.f("pk_notice_versions")),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("kind", sa.String(length=2), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("hint", sa.String(length=40), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("replaces", sa.String(length=40), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_api_keys_account_id")
        ),
        sa.ForeignKeyConstraint(["replaces"], ["api_keys.id"], name=op.f("fk_api_keys_replaces")),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_api_keys_mode")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("digest", name=op.f("uq_api_keys_digest")),
    )
    op.create_index(op.f("ix_api_keys_account_id"), "api_keys", ["account_id"], unique=False)
    op.create_table(
        "buyers",
        sa.Column("cbid", sa.String(length=40), nullable=False),
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("reasons", sa.Text(), nullable=False),
        sa.Column("verified_at", sa.BigInteger(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_buyers_account_id")),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_buyers_mode")),
        sa.PrimaryKeyConstraint("cbid", name=op.f("pk_buyers")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("slot", sa.LargeBinary(), nullable=False),
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("response", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_idempotency_keys_account_id")
        ),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_idempotency_keys_mode")),
        sa.PrimaryKeyConstraint("slot", name=op.f("pk_idempotency_keys")),
    )
    op.create_index(
        op.f("ix_idempotency_keys_expires_at"), "idempotency_keys", ["expires_at"], unique=False
    )
    op.create_table(
        "notice_events",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("notice_id", sa.String(length=64), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("type", sa.String(length=20), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["notice_id", "version"],
            ["notice_versions.notice_id", "notice_versions.version"],
            name=op.f("fk_notice_events_notice_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notice_events")),
    )
    op.create_table(
        "records",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("type", sa.String(length=20), nullable=False),
        sa.Column("notice_id", sa.String(length=64), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_records_account_id")
        ),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_records_mode")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_records")),
    )
    op.create_index(
        op.f("ix_records_account_id_mode_type_id"),
        "records",
        ["account_id", "mode", "type", "id"],
        unique=False,
    )
    op.create_table(
        "zip_attempts",
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("subject_index", sa.LargeBinary(), nullable=False),
        sa.Column("zip_index", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_zip_attempts_account_id")
        ),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_zip_attempts_mode")),
        sa.UniqueConstraint(
            "account_id",
            "mode",
            "subject_index",
            "zip_index",
            name=op.f("uq_zip_attempts_account_id"),
        ),
    )
    op.create_index(op.f("ix_zip_attempts_at"), "zip_attempts", ["at"], unique=False)
    op.create_table(
        "disclosures",
        sa.Column("record_id", sa.String(length=40), nullable=False),
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("session_index", sa.LargeBinary(), nullable=True),
        sa.Column("cbid_index", sa.LargeBinary(), nullable=True),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["record_id"], ["records.id"], name=op.f("fk_disclosures_record_id")
        ),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_disclosures_mode")),
        sa.PrimaryKeyConstraint("record_id", name=op.f("pk_disclosures")),
    )
    op.create_index(op.f("ix_disclosures_cbid_index"), "disclosures", ["cbid_index"], unique=False)
    op.create_index(
        op.f("ix_disclosures_session_index"), "disclosures", ["session_index"], unique=False
    )
    op.create_table(
        "verifications",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("account_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("cbid", sa.String(length=40), nullable=False),
        sa.Column("provider", sa.String(length=20), nullable=False),
        sa.Column("subject_index", sa.LargeBinary(), nullable=True),
        sa.Column("zip_index", sa.LargeBinary(), nullable=True),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("reasons", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_verifications_account_id")
        ),
        sa.ForeignKeyConstraint(["cbid"], ["buyers.cbid"], name=op.f("fk_verifications_cbid")),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_verifications_mode")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verifications")),
    )
    op.create_index(op.f("ix_verifications_cbid"), "verifications", ["cbid"], unique=False)
    for table, key in (
        ("records", ("id",)),
        ("notice_versions", ("notice_id", "version")),
        ("notice_events", ("id",)),
    ):
        for statement in append_only_ddl(op.get_bind().dialect.name, table, key):
            op.execute(statement)
