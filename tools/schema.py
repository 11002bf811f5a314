"""The schema as SQL statements, from the tables and what protects their rows.

Servers never run this. A test compares the result of the migrations with it, and `python -m
tools.schema sqlite` prints it, to copy a new table's statements from.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final

from sqlalchemy import Dialect, Table, UniqueConstraint, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from countersign.base.db.tables import NUMBERS, ONLY_ON, PROTECTED, WHERE, metadata

_DIALECTS: Final[dict[str, type[Dialect]]] = {
    "sqlite": sqlite.dialect,
    "postgresql": postgresql.dialect,
}

_SQLITE: Final = (
    "CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} BEGIN {refuse}; END",
    "CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table}{stays}BEGIN {refuse}; END",
    # For connections that did not set recursive_triggers: REPLACE is refused before it acts,
    # whether it would replace a row by one of its keys or by its hidden rowid (-1 if none is
    # given).
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
# named, so that no search path matters: a role that sets its search_path, or makes a temporary
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

# Two exceptions from append-only. Of the checkpoints, those that prove nothing that a later one
# does not prove may go after a day: not the last of a log, none that a witness or a time-stamp
# authority has confirmed, and none around the times when a key began to sign or retired, which say
# for which sizes a key counts. A record may go once it is noted as ended and has no disclosures.
_CHECKPOINT_STAYS: Final = """
{at} > -86400000
  + (SELECT at FROM {in_}checkpoints WHERE log_id = {log_id} ORDER BY size DESC LIMIT 1)
OR EXISTS (SELECT 1 FROM {in_}anchors WHERE log_id = {log_id} AND size = {size})
OR EXISTS (SELECT 1 FROM {in_}log_keys AS k, {in_}checkpoints AS n
  WHERE k.log_id = {log_id} AND n.log_id = {log_id}
  AND n.size = (SELECT min(size) FROM {in_}checkpoints WHERE log_id = {log_id} AND size > {size})
  AND (k.created_at BETWEEN {at} - 120000 AND n.at + 120000
  OR k.retires_at BETWEEN {at} - 120000 AND n.at + 120000))
"""
_RECORD_STAYS: Final = """
NOT EXISTS (SELECT 1 FROM {in_}ended_records WHERE record_id = {id})
OR EXISTS (SELECT 1 FROM {in_}disclosures WHERE record_id = {id})
"""
_STAYS: Final = {
    "checkpoints": (_CHECKPOINT_STAYS, ("log_id", "size", "at")),
    "records": (_RECORD_STAYS, ("id",)),
}
# As above, the schema is named.
_POSTGRESQL_STAYS: Final = """\
CREATE OR REPLACE FUNCTION {table}_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
DECLARE stays boolean;
BEGIN
  IF TG_OP = 'DELETE' THEN
    EXECUTE format('SELECT{stays}', TG_TABLE_SCHEMA)
      INTO stays USING {columns};
    IF NOT stays THEN RETURN OLD; END IF;
  END IF;
  RAISE EXCEPTION '{table} is append-only';
END $$"""

# The first row of each run of blind indexes, found by one lookup in the primary key: there are few
# runs.
_RUNS: Final = """
WITH RECURSIVE runs (run) AS (
  SELECT min(run) FROM blind_runs UNION ALL
  SELECT (SELECT min(b.run) FROM blind_runs AS b WHERE b.run > runs.run)
  FROM runs WHERE runs.run IS NOT NULL)
SELECT run FROM runs WHERE run IS NOT NULL
"""
# The embedded database keeps blind indexes as it keeps `disclosures`: a row that is deleted takes
# its keys along, wherever they are. PostgreSQL has indexes instead.
_BLIND_RUNS: Final = (
    """\
CREATE TRIGGER disclosures_are_found AFTER INSERT ON disclosures
WHEN coalesce(NEW.session_index, NEW.cbid_index, NEW.reference_index) IS NOT NULL BEGIN
  INSERT INTO blind_recent VALUES
    (NEW.record_id, NEW.session_index, NEW.cbid_index, NEW.reference_index);
END""",
    f"""\
CREATE TRIGGER disclosures_are_forgotten AFTER DELETE ON disclosures BEGIN
  DELETE FROM blind_recent WHERE record_id = OLD.record_id;
  DELETE FROM blind_runs WHERE run IN ({_RUNS})
    AND key IN (OLD.session_index, OLD.cbid_index, OLD.reference_index)
    AND record_id = OLD.record_id;
END""",  # noqa: S608 - our own names
)
# The embedded database finds kept responses by the start of their slots, in sorted levels. They are
# random: one insert of 256 moves level 0 to level 1, a 16th of that, which has the same first half
# of a byte, to level 2, and a 256th of that, which has the same first byte, to level 3. What has
# the same slot below has no response any more, and is replaced.
_MOVED: Final = (
    "level = 0",
    *(
        f"level = {level} AND slot\n    BETWEEN unhex(substr(hex(NEW.slot), 1, {level}) || '{low}')"
        f"\n    AND unhex(substr(hex(NEW.slot), 1, {level}) || '{'F' * (18 - level)}')"
        for level, low in ((1, "0"), (2, ""))
    ),
)
_MOVES: Final = "".join(
    f"  INSERT OR REPLACE INTO kept_slots SELECT {level}, slot, expires_at FROM kept_slots\n"  # noqa: S608 - our own names
    f"    WHERE {moved}\n    ORDER BY slot;\n"
    f"  DELETE FROM kept_slots WHERE {moved};\n"
    for level, moved in enumerate(_MOVED, 1)
)
_KEPT_SLOTS: Final = (
    """\
CREATE TRIGGER idempotency_keys_are_found AFTER INSERT ON idempotency_keys BEGIN
  INSERT INTO kept_slots VALUES (0, substr(NEW.slot, 1, 8), NEW.expires_at);
END""",
    """\
CREATE TRIGGER idempotency_keys_are_forgotten AFTER DELETE ON idempotency_keys BEGIN
  DELETE FROM kept_slots
    WHERE level = 0 AND slot = substr(OLD.slot, 1, 8) AND expires_at = OLD.expires_at;
END""",
    f"""\
CREATE TRIGGER kept_slots_move AFTER INSERT ON idempotency_keys
WHEN substr(NEW.slot, 8, 1) = x'00' BEGIN
{_MOVES}END""",
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
    owners = import_module("countersign.base.db.migrations.versions.0021_audit_owners")
    if dialect_name == "sqlite":
        return [*made, *owners.SQLITE, *_BLIND_RUNS, *_KEPT_SLOTS]
    return [*made, *owners.POSTGRESQL, *_SHRED_KEYS, *_EVENTS]


def _append_only(dialect_name: str, table: Table) -> Iterable[str]:
    """Triggers that refuse changes and deletions of a table's rows."""
    condition, columns = _STAYS.get(table.name, ("", ()))
    if dialect_name != "sqlite":
        named = {column: f"${number}" for number, column in enumerate(columns, 1)}
        values = {
            "table": table.name,
            "stays": condition.format(in_="%1$I.", **named),
            "columns": ", ".join(f"OLD.{column}" for column in columns),
        }
        return [
            statement.format(**values)
            for statement in (*_POSTGRESQL, *([_POSTGRESQL_STAYS] if condition else []))
        ]
    stays = condition.format(in_="", **{column: f"OLD.{column}" for column in columns})
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
            stays=f" WHEN{stays}" if stays else " ",
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
