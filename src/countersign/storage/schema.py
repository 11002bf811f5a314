"""The schema's version: upgrading it, and refusing a database that does not fit this release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Select, insert, select, text
from sqlalchemy.exc import OperationalError

from countersign.errors import NotInitialised, SchemaMismatch, StorageUnavailable
from countersign.storage.engine import Purpose, open_engine
from countersign.storage.tables import deployment

_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_ADVISORY_LOCK: Final = 0x636F756E746572


def upgrade(url: URL) -> None:
    """Bring the database to this release's schema; harmless when it is there already.

    Raises:
        SchemaMismatch: the database belongs to a newer release.
        StorageUnavailable: the database cannot be reached.
    """
    with _connection(url) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            # Two `init` at once: the second waits, then finds nothing to do.
            connection.execute(text("SELECT pg_advisory_xact_lock(:k)"), {"k": _ADVISORY_LOCK})
        _refuse_unknown(connection)
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def check(url: URL) -> None:
    """Refuse a database that this release cannot serve.

    Raises:
        NotInitialised: it has no schema.
        SchemaMismatch: it is older or newer than this release.
        StorageUnavailable: it cannot be reached.
    """
    with _connection(url) as connection:
        current = _refuse_unknown(connection)
        if current is None:
            raise NotInitialised
        if current != ScriptDirectory.from_config(_config()).get_current_head():
            raise SchemaMismatch


def has_value(url: URL, name: str) -> bool:
    """Whether the deployment has a value under this name."""
    with _connection(url) as connection:
        return connection.execute(_value(name)).scalar_one_or_none() is not None


def stored_value(url: URL, name: str, value: bytes) -> bytes:
    """The deployment's value under this name; it becomes `value` if there is none yet."""
    with _connection(url) as connection, connection.begin():
        found = connection.execute(_value(name)).scalar_one_or_none()
        if found is None:
            connection.execute(insert(deployment), {"name": name, "value": value})
            return value
        return found


def _value(name: str) -> Select[bytes]:
    return select(deployment.c.value).where(deployment.c.name == name)


def _refuse_unknown(connection: Connection) -> str | None:
    current = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if current is not None and current not in known:
        msg = "This database was written by a newer release of Countersign: install that release."
        raise SchemaMismatch(msg)
    return current


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return config


@contextmanager
def _connection(url: URL) -> Iterator[Connection]:
    """A writing connection of its own, closed at the end."""
    engine = open_engine(url, Purpose.WRITE)
    try:
        with engine.connect() as connection:
            yield connection
    except OperationalError as error:
        place = url.render_as_string(hide_password=True)
        msg = f"The database {place} cannot be used: {error.orig}"
        raise StorageUnavailable(msg) from error
    finally:
        engine.dispose()
