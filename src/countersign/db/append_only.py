"""Append-only tables: the database itself refuses to change or delete their rows.

Migrations call this, so what it gives never changes once released: what is to be different gets a
function of its own.
"""

from collections.abc import Sequence
from typing import Final

_SQLITE: Final = (
    "CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} BEGIN {refuse}; END",
    "CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} BEGIN {refuse}; END",
    # For connections that did not set recursive_triggers: REPLACE is refused before it acts,
    # whether it would hit a row by its key or by its hidden rowid (-1 where none is given).
    (
        "CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table}"
        " WHEN EXISTS (SELECT 1 FROM {table} WHERE {same})"
        " OR EXISTS (SELECT 1 FROM {table} WHERE rowid = NEW.rowid) BEGIN {refuse}; END"
    ),
)

_NO_REPLACE: Final = (
    "CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {same} BEGIN {refuse}; END"
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


def append_only_ddl(dialect: str, table: str, key: Sequence[str]) -> list[str]:
    """Statements that make this table append-only; `key` names the columns of its primary key."""
    refuse = f"SELECT RAISE(ABORT, '{table} is append-only')"
    same = " AND ".join(f"{column} = NEW.{column}" for column in key)
    templates = _SQLITE if dialect == "sqlite" else _POSTGRESQL
    return [template.format(table=table, refuse=refuse, same=same) for template in templates]


def append_only_by_keys_ddl(
    dialect: str, table: str, keys: Sequence[Sequence[str]], *, rowid: bool
) -> list[str]:
    """The same for a table with several unique keys, or without hidden rowids.

    `keys` names the columns of each unique key, the primary key among them.
    """
    if dialect != "sqlite":
        return append_only_ddl(dialect, table, keys[0])
    refuse = f"SELECT RAISE(ABORT, '{table} is append-only')"
    taken = [" AND ".join(f"{column} = NEW.{column}" for column in key) for key in keys]
    if rowid:
        taken.append("rowid = NEW.rowid")
    same = " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE {row})" for row in taken)  # noqa: S608 - our own names
    return [
        *(template.format(table=table, refuse=refuse) for template in _SQLITE[:2]),
        _NO_REPLACE.format(table=table, same=same, refuse=refuse),
    ]
