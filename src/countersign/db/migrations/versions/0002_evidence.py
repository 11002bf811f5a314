"""Evidence: the logs, the vault's keys, erasures and holds."""

import sqlalchemy as sa
from alembic import op

from countersign.db.append_only import append_only_by_keys_ddl

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables, protect the append-only ones, and queue what is there for sealing."""
    op.create_table(
        "anchors",
        sa.Column("log_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("size", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("name", sa.String(length=300), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("log_id", "size", "kind", "name", name=op.f("pk_anchors")),
    )
    op.create_table(
        "checkpoints",
        sa.Column("log_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("size", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.Column("note", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("log_id", "size", name=op.f("pk_checkpoints")),
    )
    op.create_table(
        "data_keys",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("scope", sa.String(length=40), nullable=False),
        sa.Column("month", sa.Integer(), nullable=False),
        sa.Column("wrapped", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_data_keys")),
        sa.UniqueConstraint("scope", "month", name=op.f("uq_data_keys_scope")),
    )
    op.create_table(
        "deployment_records",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("type", sa.String(length=20), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_deployment_records_mode")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deployment_records")),
    )
    op.create_table(
        "erasures",
        sa.Column("record_id", sa.String(length=40), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("erasure_id", sa.String(length=40), nullable=False),
        sa.PrimaryKeyConstraint("record_id", name=op.f("pk_erasures")),
    )
    op.create_table(
        "legal_holds",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("subject", sa.String(length=80), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("placed_at", sa.BigInteger(), nullable=False),
        sa.Column("released_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_legal_holds")),
    )
    op.create_index(op.f("ix_legal_holds_subject"), "legal_holds", ["subject"], unique=False)
    op.create_table(
        "log_entries",
        sa.Column("log_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("leaf_index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("record_id", sa.String(length=40), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("log_id", "leaf_index", name=op.f("pk_log_entries")),
        sa.UniqueConstraint("record_id", name=op.f("uq_log_entries_record_id")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "log_pending",
        sa.Column("record_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_log_pending_mode")),
        sa.PrimaryKeyConstraint("record_id", name=op.f("pk_log_pending")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "log_tiles",
        sa.Column("log_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("level", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("tile_index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hashes", sa.LargeBinary(), nullable=False),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("log_id", "level", "tile_index", name=op.f("pk_log_tiles")),
    )
    op.create_table(
        "logs",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("mode", sa.String(length=4), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("origin", sa.String(length=300), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("mode IN ('test', 'live')", name=op.f("ck_logs_mode")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_logs")),
        sa.UniqueConstraint("mode", "epoch", name=op.f("uq_logs_mode")),
        sa.UniqueConstraint("origin", name=op.f("uq_logs_origin")),
    )
    op.create_table(
        "shred_keys",
        sa.Column("record_id", sa.String(length=40), nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("record_id", name=op.f("pk_shred_keys")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "log_heads",
        sa.Column("log_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("keys_revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["log_id"], ["logs.id"], name=op.f("fk_log_heads_log_id")),
        sa.PrimaryKeyConstraint("log_id", name=op.f("pk_log_heads")),
    )
    op.create_table(
        "log_keys",
        sa.Column("vkey", sa.String(length=400), nullable=False),
        sa.Column("log_id", sa.Integer(), nullable=False),
        sa.Column("seed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("retires_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["log_id"], ["logs.id"], name=op.f("fk_log_keys_log_id")),
        sa.PrimaryKeyConstraint("vkey", name=op.f("pk_log_keys")),
    )
    op.create_index(op.f("ix_log_keys_log_id"), "log_keys", ["log_id"], unique=False)
    dialect = op.get_bind().dialect.name
    for table, keys, rowid in (
        ("deployment_records", (("id",),), True),
        ("erasures", (("record_id",),), True),
        ("logs", (("id",), ("origin",), ("mode", "epoch")), True),
        ("log_entries", (("log_id", "leaf_index"), ("record_id",)), False),
        ("log_tiles", (("log_id", "level", "tile_index"),), True),
        ("checkpoints", (("log_id", "size"),), True),
        ("anchors", (("log_id", "size", "kind", "name"),), True),
    ):
        for statement in append_only_by_keys_ddl(dialect, table, keys, rowid=rowid):
            op.execute(statement)
    op.execute(
        "INSERT INTO log_pending (record_id, mode, digest) SELECT id, mode, digest FROM records"
    )
