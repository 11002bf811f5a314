"""What the role of servers may do on PostgreSQL: declared here, granted and checked from here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy import URL, text

from countersign.db.engine import Purpose
from countersign.db.schema import connected
from countersign.errors import DatabasePermissionDenied

_READ: Final = "SELECT"
_ADD: Final = "SELECT, INSERT"
_QUEUE: Final = "SELECT, INSERT, DELETE"
_CHANGE: Final = "SELECT, INSERT, UPDATE"
_ALL: Final = "SELECT, INSERT, UPDATE, DELETE"

RIGHTS: Final[Mapping[str, str]] = {
    "alembic_version": _READ,
    "deployment": _READ,
    # Of a column that it never changes: that is what locking a row takes.
    "accounts": "SELECT, UPDATE (name)",
    "api_keys": "SELECT, UPDATE (last_used_at)",
    "notice_versions": _READ,
    "notice_events": _READ,
    "records": _ADD,
    "disclosures": _ADD,
    "buyers": _CHANGE,
    "verifications": _CHANGE,
    "zip_attempts": _QUEUE,
    "idempotency_keys": _QUEUE,
    "deployment_records": _ADD,
    "data_keys": _ADD,
    # Deletes those of pending sessions; a trigger keeps those of records.
    "shred_keys": _QUEUE,
    "erasures": _READ,
    "legal_holds": _READ,
    "logs": _READ,
    "log_keys": _READ,
    "log_heads": "SELECT, UPDATE",
    "log_entries": _ADD,
    "log_tiles": _ADD,
    "checkpoints": _ADD,
    "anchors": _ADD,
    "log_pending": _QUEUE,
    "buyer_documents": _CHANGE,
    "provider_sessions": _CHANGE,
    "pending_sessions": _ALL,
    "provider_messages": _QUEUE,
    "verification_evidence": "INSERT",
    "verification_settings": _READ,
    "audit_log": "",
    "events": _QUEUE,
    "webhook_endpoints": _ALL,
    "webhook_secrets": _ALL,
    "webhook_deliveries": _ALL,
    "webhook_attempts": _ALL,
    "clearances": _ADD,
    "acknowledgment_uses": _CHANGE,
    "fulfilments": _ADD,
    "clearance_keys": _READ,
    "clearance_settings": _READ,
    "test_clocks": _ALL,
    "test_faults": _ALL,
}
"""Of every table; a column in brackets narrows the right before it."""

_MISSING: Final = text(
    """
    SELECT wanted.right_ || ' on ' || wanted.table_
    FROM unnest(CAST(:tables AS text[]), CAST(:rights AS text[]), CAST(:columns AS text[]))
        AS wanted (table_, right_, column_)
    WHERE to_regclass(wanted.table_) IS NOT NULL AND NOT CASE wanted.column_
        WHEN '' THEN has_table_privilege(to_regclass(wanted.table_), wanted.right_)
        ELSE has_column_privilege(to_regclass(wanted.table_), wanted.column_, wanted.right_) END
    UNION ALL
    SELECT 'USAGE on ' || sequencename FROM pg_sequences
    WHERE schemaname = current_schema()
        AND NOT has_sequence_privilege(quote_ident(sequencename), 'USAGE')
    UNION ALL
    SELECT 'USAGE on SCHEMA public' WHERE NOT has_schema_privilege('public', 'USAGE')
    """
)


def grants(role: str) -> list[str]:
    """The statements that give a role what servers need, and take from it all else."""
    name = '"' + role.replace('"', '""') + '"'
    return [
        "BEGIN",
        f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {name}",
        f"GRANT USAGE ON SCHEMA public TO {name}",
        *(f"GRANT {rights} ON {table} TO {name}" for table, rights in RIGHTS.items() if rights),
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {name}",
        "COMMIT",
    ]


def check_rights(url: URL) -> None:
    """Find out whether the role that this URL names may do all that a server does.

    Raises:
        DatabasePermissionDenied: with every right that is missing; missing tables are reported
            by `schema.check`.
        StorageUnavailable: the database cannot be reached.
    """
    wanted = [
        (table, right, column.rstrip(")"))
        for table, rights in RIGHTS.items()
        for right, _, column in (part.partition(" (") for part in rights.split(", ") if part)
    ]
    tables, rights, columns = (list(part) for part in zip(*wanted, strict=True))
    with connected(url, Purpose.READ) as connection:
        role = connection.execute(text("SELECT current_user")).scalar_one()
        values = {"tables": tables, "rights": rights, "columns": columns}
        missing = list(connection.execute(_MISSING, values).scalars())
    if missing:
        msg = (
            f"The database role {role} lacks these rights: {', '.join(missing)}. As the owner "
            "of the tables, run the statements that `countersign database grants --role "
            f"{role}` prints."
        )
        raise DatabasePermissionDenied(msg)
