"""The schema as SQL statements, from the tables and what protects their rows.

Servers never run this. The first migration was made of it, a test compares what the migrations
make with it, and `python -m tools.schema sqlite` prints it, to take a new table's statements from.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final

from sqlalchemy import Dialect, Table, UniqueConstraint, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from countersign.db.tables import NUMBERS, ONLY_ON, PROTECTED, WHERE, metadata

_DIALECTS: Final[dict[str, type[Dialect]]] = {
    "sqlite": sqlite.dialect,
    "postgresql": postgresql.dialect,
}

_SQLITE: Final = (
    "CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} BEGIN {refuse}; END",
    "CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} BEGIN {refuse}; END",
    # For connections that did not set recursive_triggers: REPLACE is refused before it acts,
    # whether it would hit a row by one of its keys or by its hidden rowid (-1 if none is given).
    "CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {taken} BEGIN {refuse}; END",
)

_POSTGRESQL: Final = (
    (
        "CREATE FUNCTION {table}_append_only() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION '{table} is append-only'; END $$"
    ),
    (
        "CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table}"
        " FOR EACH ROW EXECUTE FUNCTION {table}_append_only()"
    ),
    (
        "CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}"
        " FOR EACH STATEMENT EXECUTE FUNCTION {table}_append_only()"
    ),
    # Also for sessions that set session_replication_role, where triggers are silent otherwise.
    "ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_change",
    "ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_truncate",
    "REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM PUBLIC",
)

# The shred key of a record goes only with its erasure, whichever role asks for it. The schema is
# named, and nothing is looked up elsewhere: a role that sets its search_path, or makes a temporary
# table called `erasures`, changes nothing. The embedded database has no roles to keep apart.
_SHRED_KEYS: Final = (
    """\
CREATE FUNCTION shred_keys_of_records() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
DECLARE kept boolean;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT FROM %1$I.records WHERE id = $1)'
    ' AND NOT EXISTS (SELECT FROM %1$I.erasures WHERE record_id = $1)', TG_TABLE_SCHEMA)
    INTO kept USING OLD.record_id;
  IF kept THEN RAISE EXCEPTION 'the shred key of a record goes only with its erasure'; END IF;
  RETURN OLD;
END $$""",
    (
        "CREATE TRIGGER shred_keys_of_records BEFORE DELETE ON shred_keys"
        " FOR EACH ROW EXECUTE FUNCTION shred_keys_of_records()"
    ),
    "ALTER TABLE shred_keys ENABLE ALWAYS TRIGGER shred_keys_of_records",
)

# A row of events takes the numbers up to its own, also the first one.
_EVENTS: Final = (
    f"ALTER SEQUENCE events_seq_seq INCREMENT BY {NUMBERS}",
    f"SELECT setval('events_seq_seq', {NUMBERS + 1})",
)


def schema_statements(dialect_name: str) -> list[str]:
    """All that makes the schema in an empty database: tables, indexes, then triggers.

    Args:
        dialect_name: `sqlite` or `postgresql`.
    """
    dialect = _DIALECTS[dialect_name]()
    made: list[str] = []
    for table in metadata.sorted_tables:
        made.append(_tidy(CreateTable(table).compile(dialect=dialect)))
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        for index in indexes:
            if index.info.get(ONLY_ON, dialect_name) != dialect_name:
                continue
            if WHERE in index.info:
                index.dialect_options[dialect_name]["where"] = text(index.info[WHERE])
            made.append(_tidy(CreateIndex(index).compile(dialect=dialect)))
    for name in PROTECTED:
        if name != "audit_owners":
            made += _append_only(dialect_name, metadata.tables[name])
    # The exceptions, and what keeps blind indexes: written once, where they were made.
    owners = import_module("countersign.db.migrations.versions.0021_audit_owners")
    checkpoints = import_module("countersign.db.migrations.versions.0006_checkpoints_go")
    ends = import_module("countersign.db.migrations.versions.0010_evidence_ends")
    if dialect_name == "sqlite":
        runs = import_module("countersign.db.migrations.versions.0011_order_references")
        return [*made, *owners.SQLITE, *checkpoints.SQLITE, *runs.TRIGGERS, *ends.SQLITE]
    kept = *_SHRED_KEYS, *checkpoints.POSTGRESQL, *ends.POSTGRESQL
    return [*made, *owners.POSTGRESQL, *kept, *_EVENTS]


def _append_only(dialect_name: str, table: Table) -> Iterable[str]:
    """What makes the database itself refuse to change or delete the rows of a table."""
    if dialect_name != "sqlite":
        return [statement.format(table=table.name) for statement in _POSTGRESQL]
    keys = [[*table.primary_key.columns.keys()]]
    keys += sorted(
        [*c.columns.keys()] for c in table.constraints if isinstance(c, UniqueConstraint)
    )
    taken = [" AND ".join(f"{column} = NEW.{column}" for column in key) for key in keys]
    if table.dialect_options["sqlite"]["with_rowid"]:
        taken.append("rowid = NEW.rowid")
    return [
        statement.format(
            table=table.name,
            refuse=f"SELECT RAISE(ABORT, '{table.name} is append-only')",
            taken=" OR ".join(f"EXISTS (SELECT 1 FROM {table.name} WHERE {row})" for row in taken),  # noqa: S608 - our own names
        )
        for statement in _SQLITE
    ]


def _tidy(compiled: Any) -> str:  # noqa: ANN401 - SQLAlchemy's Compiled
    lines = str(compiled).strip().splitlines()
    return "\n".join(line.rstrip().replace("\t", "  ") for line in lines if line.strip())


if __name__ == "__main__":
    sys.stdout.write("\n\n".join(f"{made};" for made in schema_statements(sys.argv[1])) + "\n")
