"""Privileges of the servers' role on PostgreSQL: declared here, granted and checked from here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy import URL, Connection, text
from sqlalchemy.exc import ProgrammingError

from countersign.base.db.engine import Purpose, is_embedded
from countersign.base.db.schema import connected
from countersign.base.errors import DatabasePermissionDenied, InvalidConfiguration

_GRANTED: Final = {
    # It stores why sealing must stop, and the directory of heads; it deletes nothing.
    "SELECT, INSERT": "deployment",
    "SELECT": "alembic_version notice_versions notice_events erasures legal_holds logs "
    "log_keys verification_settings further_providers clearance_keys clearance_settings "
    "account_origins account_brands matters parties buyer_references ended_records buyer_blocks",
    # On a column that it never changes: locking a row requires it.
    "SELECT, UPDATE (name)": "accounts",
    "SELECT, UPDATE (last_used_at), UPDATE (read_on), UPDATE (reads)": "api_keys",
    "SELECT, UPDATE": "log_heads",
    "INSERT, SELECT": "records disclosures deployment_records data_keys log_entries log_tiles "
    "anchors clearances fulfilments audit_log audit_chain audit_owners",
    # Shred keys: it deletes those of pending sessions; a trigger keeps those of records.
    # Checkpoints: it deletes those whose deletion the trigger allows.
    "SELECT, INSERT, DELETE": "checkpoints zip_attempts idempotency_keys shred_keys log_pending "
    "provider_messages events",
    "SELECT, INSERT, UPDATE": "buyers verifications buyer_documents provider_sessions "
    "acknowledgment_uses",
    "SELECT, INSERT, UPDATE, DELETE": "pending_sessions webhook_endpoints webhook_secrets "
    "webhook_deliveries webhook_attempts checkout_sessions started_checks remembered "
    "remembered_uses erasure_requests test_clocks test_faults rate_shares people person_grants "
    "person_passkeys person_subjects person_links person_sessions copy_mails order_acts",
    # Which evidence there is, to see whether its end is overdue; it reads none.
    "INSERT, SELECT (record_id)": "verification_evidence",
    "": "log_rosters log_proposals log_approvals waiting_erasures blind_recent blind_runs",
}
_FOR_CONSOLE: Final = (
    ("INSERT, UPDATE", "accounts, api_keys, account_brands, legal_holds, matters"),
    ("INSERT, DELETE", "account_origins, buyer_blocks"),
    ("INSERT", "notice_versions, notice_events, buyer_references"),
)
"""Further rights for acts of staff through a server; none destroys evidence or personal data."""
RIGHTS: Final[Mapping[str, str]] = {
    table: rights for rights, tables in _GRANTED.items() for table in tables.split()
}
"""Rights by table; a column in brackets narrows the right before it."""

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


def grants(role: str, *, console: bool = False) -> list[str]:
    """The statements that grant a role exactly the rights of a server.

    `console`: also what staff do with accounts, keys, notices and holds.
    """
    name = '"' + role.replace('"', '""') + '"'
    return [
        "BEGIN",
        f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {name}",
        f"GRANT USAGE ON SCHEMA public TO {name}",
        *(f"GRANT {rights} ON {table} TO {name}" for table, rights in RIGHTS.items() if rights),
        *(f"GRANT {more} ON {of} TO {name}" for more, of in (_FOR_CONSOLE if console else ())),
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {name}",
        "COMMIT",
    ]


def grant(url: URL, role: str, *, console: bool = False) -> None:
    """Run the statements of `grants` as the role that this URL names."""
    if is_embedded(url):
        raise InvalidConfiguration("The embedded database has no roles.")
    try:
        with connected(url, Purpose.WRITE) as connection:
            for statement in grants(role, console=console):
                connection.exec_driver_sql(statement)
    except ProgrammingError as error:
        raise InvalidConfiguration(f"Nothing was granted: {error.orig}".rstrip()) from error


def check_rights(url: URL) -> None:
    """Find out whether the role that this URL names may do all that a server does."""
    with connected(url, Purpose.READ) as connection:
        role, missing = missing_rights(connection)
    if missing:
        raise DatabasePermissionDenied(
            f"The database role {role} lacks these rights: {', '.join(missing)}. As the owner "
            "of the tables, run the statements that `countersign database grants --role "
            f"{role}` prints."
        )


def missing_rights(connection: Connection) -> tuple[str, list[str]]:
    """The role of a connection, and the rights of a server that it lacks."""
    wanted = [
        (table, right, column.rstrip(")"))
        for table, rights in RIGHTS.items()
        for right, _, column in (part.partition(" (") for part in rights.split(", ") if part)
    ]
    tables, rights, columns = (list(part) for part in zip(*wanted, strict=True))
    role = connection.execute(text("SELECT current_user")).scalar_one()
    values = {"tables": tables, "rights": rights, "columns": columns}
    return role, list(connection.execute(_MISSING, values).scalars())
