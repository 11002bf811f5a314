"""The schema as the database itself has it, compared with what this release's migrations make.

The name of a revision alone proves nothing. Tables, triggers and plain indexes that an operator has
added are not compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from sqlalchemy import Connection, text

SchemaParts: TypeAlias = Mapping[str, Mapping[str, str]]
"""Of each table its parts, such as `column id`, with their definitions."""

FOLDER: Final = Path(__file__).parent
"""It has one file for each engine, `schema.sqlite.json` and `schema.postgresql.json`."""

_VERSIONS: Final = "alembic_version"
_SQLITE: Final = """
    SELECT m.name, 'column ' || c.name, c.type || CASE c."notnull" WHEN 1 THEN ' NOT NULL' ELSE ''
        END || coalesce(' DEFAULT ' || c.dflt_value, '')
    FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'
    UNION ALL SELECT tbl_name, type || ' ' || name, sql FROM sqlite_master WHERE sql IS NOT NULL
    UNION ALL SELECT name, 'storage', iif(wr, 'WITHOUT ROWID', 'ROWID') FROM pragma_table_list
    WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite%'
"""
_POSTGRESQL: Final = """
    WITH ours AS (
        SELECT oid, relname, relpersistence, relacl FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
    ), parts (table_, part, definition) AS (
        SELECT relname, 'column ' || attname, concat(format_type(atttypid, atttypmod),
            CASE WHEN attnotnull THEN ' NOT NULL' END,
            ' DEFAULT ' || pg_get_expr(adbin, adrelid), attidentity)
        FROM ours JOIN pg_attribute ON attrelid = ours.oid AND attnum > 0 AND NOT attisdropped
            LEFT JOIN pg_attrdef ON adrelid = ours.oid AND adnum = attnum
        UNION ALL SELECT relname, 'constraint ' || conname, pg_get_constraintdef(c.oid)
        FROM ours JOIN pg_constraint AS c ON conrelid = ours.oid AND contype IN ('c', 'f', 'p', 'u')
        UNION ALL SELECT ours.relname, 'index ' || i.relname,
            concat(pg_get_indexdef(i.oid), CASE WHEN NOT indisvalid THEN ' INVALID' END)
        FROM ours JOIN pg_index ON indrelid = ours.oid JOIN pg_class AS i ON i.oid = indexrelid
        WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.oid)
        UNION ALL SELECT relname, 'trigger ' || tgname,
            concat_ws(' ', pg_get_triggerdef(t.oid), tgenabled, proconfig, prosrc)
        FROM ours JOIN pg_trigger AS t ON tgrelid = ours.oid AND NOT tgisinternal
            JOIN pg_proc AS p ON p.oid = tgfoid
        UNION ALL SELECT relname, 'storage', CASE relpersistence WHEN 'p' THEN 'LOGGED'
            ELSE 'UNLOGGED' END FROM ours
        UNION ALL SELECT ours.relname, 'sequence ' || s.relname,
            concat(format_type(seqtypid, NULL), ' INCREMENT BY ', seqincrement,
            CASE WHEN seqcycle THEN ' CYCLE' END)
        FROM ours JOIN pg_depend AS d ON refobjid = ours.oid AND deptype IN ('a', 'i')
            AND classid = 'pg_class'::regclass AND refclassid = classid
            JOIN pg_class AS s ON s.oid = objid JOIN pg_sequence ON seqrelid = s.oid
        UNION ALL SELECT relname, 'right of PUBLIC to ' || privilege_type, ''
        FROM ours, aclexplode(relacl)
        WHERE grantee = 0 AND privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE') AND EXISTS
            (SELECT FROM pg_trigger WHERE tgrelid = ours.oid AND tgname = relname || '_no_change')
    )
    SELECT table_, part, replace(definition, quote_ident(current_schema()) || '.', '') FROM parts
"""
_CONSTRAINT: Final = re.compile(
    r"CONSTRAINT (\w+) ((?:[^(),]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*)"
)
# PostgreSQL writes an expression with other casts and brackets once it was dumped and restored.
_CASTS: Final = re.compile(r"::(text|character varying)(\[\])?|[()]")
_EXPRESSIONS: Final = ("constraint ", "index ")
_IN_WORDS: Final = ("column ", "sequence ", "storage")
_NAMED_MAX: Final = 8


def parts_of(connection: Connection) -> SchemaParts:
    """What the database has: tables with columns, constraints, indexes, triggers, sequences.

    That covers what migrations make outside of tables: functions are compared with their triggers,
    and a right of PUBLIC to change or truncate an append-only table counts as a difference.
    """
    embedded = connection.dialect.name == "sqlite"
    found: dict[str, dict[str, str]] = {}
    for table, part, definition in connection.execute(text(_SQLITE if embedded else _POSTGRESQL)):
        parts = found.setdefault(table, {})
        if part.startswith("table "):
            for name, words in _CONSTRAINT.findall(definition):
                parts[f"constraint {name}"] = _tidy(words)
        else:
            restored = not embedded and part.startswith(_EXPRESSIONS)
            parts[part] = _tidy(_CASTS.sub("", definition) if restored else definition)
    found.pop(_VERSIONS, None)
    return found


def differences(connection: Connection) -> list[str]:
    """In what the database is not as this release's migrations make it, each in words."""
    found = parts_of(connection)
    named = [
        words
        for table, parts in expected(connection).items()
        for words in _compared(table, parts, found.get(table))
    ]
    more = len(named) - _NAMED_MAX
    return named if more <= 1 else [*named[:_NAMED_MAX], f"and {more} more"]


def expected(connection: Connection) -> SchemaParts:
    """What the migrations make on this engine."""
    kept: SchemaParts = json.loads(_file(connection.dialect.name).read_text(encoding="utf-8"))
    return kept


def write(connection: Connection) -> None:
    """Keep what this database has as what the migrations make; `make schema` does this."""
    kept = json.dumps(parts_of(connection), indent=1, sort_keys=True, ensure_ascii=False)
    _file(connection.dialect.name).write_text(f"{kept}\n", encoding="utf-8")


def _file(engine: str) -> Path:
    return FOLDER / f"schema.{engine}.json"


def _compared(
    table: str, parts: Mapping[str, str], found: Mapping[str, str] | None
) -> Iterator[str]:
    if found is None:
        yield f"the table {table} is missing"
        return
    for part, definition in parts.items():
        if part not in found:
            yield f"{table} lacks the {part}"
        elif found[part] != definition and part.startswith(_IN_WORDS):
            yield f"the {part} of {table} is {found[part]} in place of {definition}"
        elif found[part] != definition:
            yield f"the {part} of {table} has another definition"
    for part, definition in sorted(found.items()):
        if part not in parts and (
            part.startswith(("column", "constraint", "right")) or "UNIQUE" in definition
        ):
            yield f"{table} has an unknown {part}"


def _tidy(definition: str) -> str:
    return " ".join(definition.split())
