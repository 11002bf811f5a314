"""The schema's version: upgrading it, and refusing a database that does not fit this release."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from sqlalchemy import (
    URL,
    Column,
    Connection,
    MetaData,
    String,
    Table,
    delete,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import DatabaseError, OperationalError, ProgrammingError

from countersign.base.db.engine import Purpose, is_embedded, open_engine, translate
from countersign.base.db.statements import lock_on_server
from countersign.base.db.tables import deployment
from countersign.base.errors import (
    DatabaseMoved,
    DatabasePermissionDenied,
    InternalError,
    NotInitialised,
    SchemaMismatch,
    StorageUnavailable,
)

# The schema as the database itself has it, compared with what this release's migrations make.
#
# The name of a revision alone proves nothing. Tables, triggers and plain indexes that an operator
# has added are not compared.

SchemaParts: TypeAlias = Mapping[str, Mapping[str, str]]
"""Table → part, such as `column id` → definition."""

FOLDER: Final = Path(__file__).parent
"""For each engine it has `schema.ENGINE.sql`, which reads the parts, and `schema.ENGINE.json`."""

_CONSTRAINT: Final = re.compile(
    r"CONSTRAINT (\w+) ((?:[^(),]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*)"
)
# PostgreSQL writes an expression with other casts and brackets once it was dumped and restored.
_CASTS: Final = re.compile(r"::(text|character varying)(\[\])?|[()]")
_EXPRESSIONS: Final = ("constraint ", "index ")
_IN_WORDS: Final = ("column ", "sequence ", "storage")
_NAMED_MAX: Final = 8


def parts_of(connection: Connection) -> SchemaParts:
    """The parts in the database: tables with columns, constraints, indexes, triggers, sequences.

    They cover what migrations make outside of tables: functions are compared with their triggers,
    and a right of PUBLIC to change or truncate an append-only table counts as a difference.
    """
    engine = connection.dialect.name
    query = (FOLDER / f"schema.{engine}.sql").read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = {}
    for table, part, definition in connection.execute(text(query)):
        parts = found.setdefault(table, {})
        if part.startswith("table "):
            for name, words in _CONSTRAINT.findall(definition):
                parts[f"constraint {name}"] = _tidy(words)
        else:
            restored = engine == "postgresql" and part.startswith(_EXPRESSIONS)
            parts[part] = _tidy(_CASTS.sub("", definition) if restored else definition)
    found.pop(_VERSIONS.name, None)
    return found


def differences(connection: Connection) -> list[str]:
    """How the database differs from the schema of this release, one sentence per difference."""
    found = parts_of(connection)
    named = [
        words
        for table, parts in expected(connection).items()
        for words in _compared(table, parts, found.get(table))
    ]
    more = len(named) - _NAMED_MAX
    return named if more <= 1 else [*named[:_NAMED_MAX], f"and {more} more"]


def expected(connection: Connection) -> SchemaParts:
    """The parts that this release's migrations create on this engine."""
    kept: SchemaParts = json.loads(_file(connection.dialect.name).read_text(encoding="utf-8"))
    return kept


def write(connection: Connection) -> None:
    """Store this database's parts as the expected ones; `make schema` does this."""
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
        matters = part.startswith(("column", "constraint", "right")) or "UNIQUE" in definition
        if matters and part not in parts:
            yield f"{table} has an unknown {part}"


def _tidy(definition: str) -> str:
    return " ".join(definition.split())


_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_VERSIONS: Final = Table("alembic_version", MetaData(), Column("version_num", String(32)))
MOVED: Final = "moved_to"
"""A value of the deployment: the database is being moved, or was. See `operate/move.py`."""
FILLING: Final = "moving_in"
"""Likewise: the database is the one being filled."""
_ADVISORY_LOCK: Final = 0x636F756E746572
_NEWER: Final = "This database belongs to a newer release of Countersign: install that release."
_START_EMPTY: Final = (
    "Export what you need with that version. Then start with an empty data directory (on "
    "PostgreSQL: an empty database) and run `countersign init`."
)
_DEVELOPMENT: Final = (
    "This database was created by a development version of Countersign, from before the first "
    f"release, and cannot be upgraded. {_START_EMPTY}"
)
_EARLIER: Final = (
    "This database is of an earlier build of Countersign (its revision is {revision}), and this "
    "one upgrades from {first} on. Run `countersign init --upgrade` of the last build before that "
    "revision became the first one, then this one's: see docs/upgrade.md."
)
_DIFFERENT: Final = (
    "The schema of this database is not the one that its revision {revision} has: {what}. If the "
    "schema was changed by hand, undo that change. Otherwise a development version of Countersign "
    f"made this database, and it cannot be upgraded. {_START_EMPTY}"
)


def upgrade(url: URL) -> bool:
    """Bring the database to this release's schema; False if it is there already."""
    with connected(url, Purpose.READ) as connection:
        if _refuse_unknown(connection) == _revisions()[-1]:
            _refuse_different(connection)
            refuse_moved(connection)
            return False
    with connected(url, Purpose.WRITE) as connection, connection.begin():
        _wait_for_turn(connection)
        revision = _refuse_unknown(connection)
        try:
            migrate(connection)
        except (OperationalError, ProgrammingError) as error:
            # A statement that does not fit: the database's words name the table or the column.
            if not isinstance(translate(error), InternalError):
                raise
            what, *_ = str(error.orig).splitlines()
            raise SchemaMismatch(_DIFFERENT.format(revision=revision, what=what)) from error
        _refuse_different(connection)
    return True


def is_older(url: URL) -> bool:
    """Whether an upgrade would change a database that is there."""
    return _revision(url) not in {None, _revisions()[-1]}


def is_there(url: URL, *, founded: bool) -> bool:
    """Whether there is a database of a deployment; `founded`: not just its tables."""
    if _revision(url) is None:
        return False
    if not founded:
        return True
    with connected(url, Purpose.READ) as connection:
        return connection.execute(select(deployment.c.name)).first() is not None


def _revision(url: URL) -> str | None:
    if is_embedded(url) and not Path(url.database or "").exists():
        return None
    with connected(url, Purpose.READ) as connection:
        return _refuse_unknown(connection)


def migrate(connection: Connection, to: str = "head") -> None:
    """Run the migrations that this database lacks up to one, in this connection's transaction."""
    # Alembic takes as long to import as everything else together; only this needs it.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def check(url: URL, purpose: Purpose = Purpose.READ, *, while_moving: bool = False) -> None:
    """Refuse a database that this release cannot serve; with `while_moving`, also serve a move."""
    if is_embedded(url) and not Path(url.database or "").exists():
        raise NotInitialised
    with connected(url, purpose) as connection:
        current = _refuse_unknown(connection)
        if current is None:
            raise NotInitialised
        if current != _revisions()[-1]:
            raise SchemaMismatch
        _refuse_different(connection)
        if not while_moving:
            refuse_moved(connection)


def refuse_moved(connection: Connection) -> None:
    """Refuse a database whose data is moving to another one, or has moved.

    Raises:
        DatabaseMoved: with what to do.
    """
    again = "run `countersign migrate-database --to URL` again"
    if value_of(connection, FILLING) is not None:
        raise DatabaseMoved(f"The data of another database is not completely here yet: {again}.")
    found = value_of(connection, MOVED)
    if found is not None:
        note = json.loads(found)
        raise DatabaseMoved(
            f"The data of this database was moved to {note['to']}: set COUNTERSIGN_DATABASE_URL "
            "to that database."
            if note.get("done")
            else f"This database is being moved to {note['to']}: {again}, or give it up with "
            "`countersign migrate-database --cancel`."
        )


def has_value(url: URL, name: str) -> bool:
    """Whether the deployment has a value under this name."""
    with connected(url, Purpose.READ) as connection:
        return value_of(connection, name) is not None


def stored_value(url: URL, name: str, value: bytes) -> bytes:
    """The deployment's value under this name; `value` is stored if there is none yet."""
    with connected(url, Purpose.READ) as connection:
        found = value_of(connection, name)
    if found is not None:
        return found
    with connected(url, Purpose.WRITE) as connection, connection.begin():
        _wait_for_turn(connection)
        found = value_of(connection, name)
        if found is None:
            connection.execute(insert(deployment), {"name": name, "value": value})
            return value
        return found


WATCHED_SINCE: Final = "watched_since"
"""Of the deployment's values: since when its promises have an age, in Unix milliseconds."""


def value_of(connection: Connection, name: str) -> bytes | None:
    """The deployment's value under this name; None: there is none."""
    found = select(deployment.c.value).where(deployment.c.name == name)
    return connection.execute(found).scalar_one_or_none()


def put_value(connection: Connection, name: str, value: bytes) -> None:
    """Set the deployment's value under this name."""
    connection.execute(delete(deployment).where(deployment.c.name == name))
    connection.execute(insert(deployment), {"name": name, "value": value})


def _wait_for_turn(connection: Connection) -> None:
    """Two `init` at once: the second waits, then finds nothing to do.

    On SQLite it waits already when its transaction begins.
    """
    lock_on_server(connection, "SELECT pg_advisory_xact_lock(:key)", key=_ADVISORY_LOCK)


def _refuse_unknown(connection: Connection) -> str | None:
    """The database's revision, or None if it has none, unless this release does not know it."""
    if not inspect(connection).has_table(_VERSIONS.name):
        return None
    current = connection.execute(select(_VERSIONS.c.version_num)).scalar_one_or_none()
    if current is not None and current not in _revisions():
        if current.isdecimal():  # `0001` to `0013`, of development versions
            raise SchemaMismatch(_DEVELOPMENT)
        if current < (first := _revisions()[0]):
            raise SchemaMismatch(_EARLIER.format(revision=current, first=first))
        raise SchemaMismatch(_NEWER)
    return current


def _refuse_different(connection: Connection) -> None:
    """Not by the revision's name alone, which a development version's database may have too."""
    if found := differences(connection):
        what = ", ".join(found)
        raise SchemaMismatch(_DIFFERENT.format(revision=_revisions()[-1], what=what))


def _revisions() -> list[str]:
    """This release's revisions, oldest first: each file is named after its own."""
    return sorted(file.stem for file in (_MIGRATIONS / "versions").glob("[0-9]*_*.py"))


def place(url: URL) -> str:
    """The name of a database; not the whole URL: a password may stand in its query as well."""
    return (url.database or "") if is_embedded(url) else f"{url.host or ''}/{url.database}"


@contextmanager
def connected(url: URL, purpose: Purpose) -> Iterator[Connection]:
    """A connection of its own, closed at the end."""
    engine = open_engine(url, purpose)
    try:
        with engine.connect() as connection:
            yield connection
    except DatabaseError as error:
        refusal = translate(error)
        if isinstance(refusal, DatabasePermissionDenied):
            raise refusal from error
        # DatabaseError itself: a file that is no database.
        if type(error) is not DatabaseError and not isinstance(error, OperationalError):
            raise
        why = f"The database {place(url)} cannot be used: {error.orig}"
        raise StorageUnavailable(why) from error
    finally:
        engine.dispose()
