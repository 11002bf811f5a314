"""The differences between the two engines: how to open them, and how to read their errors."""

from __future__ import annotations

import importlib
import logging
import os
import re
import socket
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from countersign.base.config import Settings
from countersign.base.db.pooler import is_through_pooler, of_driver, through_pooler
from countersign.base.errors import (
    CountersignError,
    DatabasePermissionDenied,
    EvidenceDamaged,
    IdempotencyInProgress,
    InternalError,
    InvalidConfiguration,
    Overloaded,
    StorageUnavailable,
    UnsupportedSqlite,
)
from countersign.base.values import Mode
from countersign_evidence.errors import EvidenceError

_SetUp: TypeAlias = Callable[[Any, ConnectionPoolEntry], None]
"""Is given a new connection of the driver, and its place in the pool."""

SQLITE_VERSION_MIN: Final = (3, 51, 3)
"""Older ones have the WAL-reset bug, which can corrupt a database (sqlite.org/wal.html)."""

_SEVERAL_HOSTS: Final = re.compile(
    r"([a-z+]+://(?:[^@/?]*@)?)([^/?,]+(?:,[^/?,]+)+)(/[^?]*)?(\?.*)?\Z", re.DOTALL
)
SQLITE_FILE: Final = "countersign.db"
BUSY_TIMEOUT_SECONDS: Final = 5.0
"""How long to wait for a lock that another process holds."""
_RETRY_AFTER_SECONDS: Final = 2
_BUSY_STATES: Final = frozenset({"55P03", "57014", "40001", "40P01"})
"""PostgreSQL: lock not available, query cancelled (timed out), serialisation failure, deadlock."""
_IN_RECOVERY: Final = "cannot assign TransactionIds during recovery"
"""PostgreSQL has no state of its own for this, and never translates it."""
_DENIED_STATE: Final = "42501"
_DAMAGED: Final = "The database of the service is damaged: its operator has to restore it."
_DAMAGED_RETRY_SECONDS: Final = 60
_DISK_FULL: Final = "The disk of the service is full."
READ_ONLY: Final = "The database can only be read."
_POSTGRESQL_ARGUMENTS: Final = {
    "connect_timeout": 5,
    # A server that vanished without a word is noticed within half a minute.
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_ISOLATION: Final = "transaction_isolation = 'read committed'"
"""A transaction that waited for a lock sees what the lock's holder wrote, whatever default the
operator has set."""
_WARNINGS: Final = "countersign_warnings"
_ADAPTERS: Final = {bytes: bytes, memoryview: bytes, Mode: str, type(None): {None: None}.get}
"""Functions in C. Without an adapter the driver raises and drops two exceptions for each value of
such a type: a microsecond."""
WHERE: Final = threading.local()
"""For log lines of a batcher's thread: its `lane`, and the `host` of its newest connection."""
CHECKPOINT_PAGES: Final = 8000
"""32 MB of write-ahead log: a page changed by many commits is copied into the database once."""


class Purpose(Enum):
    """The use of a connection."""

    WRITE = "write"
    READ = "read"
    LOOK = "look"
    """Works on damaged or busy databases too: no write, no set-up, only short waits."""


def url_of(settings: Settings) -> URL:
    """The SQLAlchemy URL of the database that the settings name."""
    return database_url(settings.database_url, settings.data_dir, settings.database_pooler)


def database_url(configured: str | None, data_dir: Path, pooler: str = "none") -> URL:
    """The SQLAlchemy URL: the embedded default, or PostgreSQL through psycopg 3."""
    if configured is None:
        return URL.create("sqlite", database=str(data_dir / SQLITE_FILE))
    try:
        url = make_url(_one_host_form(configured))
    except (ArgumentError, ValueError) as error:
        raise InvalidConfiguration(
            "COUNTERSIGN_DATABASE_URL is not a URL such as postgresql://user@host/name."
        ) from error
    if "@" in (url.host or ""):
        # Otherwise the rest of the password would be read, and shown, as a host.
        raise InvalidConfiguration(
            "COUNTERSIGN_DATABASE_URL has an @ in its user or password: write it as %40."
        )
    if url.drivername in {"postgresql", "postgres", "postgresql+psycopg"}:
        url = url.set(drivername="postgresql+psycopg")
        return through_pooler(url) if pooler == "transaction" else url
    raise InvalidConfiguration(
        "COUNTERSIGN_DATABASE_URL must begin with postgresql://; leave it out for the embedded "
        "SQLite database in COUNTERSIGN_DATA_DIR."
    )


def _one_host_form(configured: str) -> str:
    """The same URL with several hosts as parameters, which is how SQLAlchemy takes their ports."""
    match = _SEVERAL_HOSTS.match(configured)
    if match is None:
        return configured
    before, hosts, after, query = match.groups()
    parameters = "&".join(f"host={host}" for host in hosts.split(","))
    return f"{before}{after or '/'}?{parameters}{'&' + query[1:] if query else ''}"


def is_embedded(url: URL) -> bool:
    """Whether the database is the embedded one."""
    return url.get_backend_name() == "sqlite"


def without_busy_timeout(connection: Connection) -> Connection:
    """The same connection of the embedded database, which now never waits for a lock."""
    # Past SQLAlchemy, which would begin a transaction first, and wait for the lock while doing so.
    cursor = connection.connection.cursor()
    cursor.execute("PRAGMA busy_timeout=0")
    cursor.close()
    return connection


def open_engine(url: URL, purpose: Purpose) -> Engine:
    """An engine for one purpose; nothing is connected yet."""
    if purpose is Purpose.LOOK:
        return _open_to_look(url)
    if is_embedded(url):
        return _open_sqlite(url, purpose)
    options: dict[str, Any] = {"pool_size": 2, "max_overflow": 2, "pool_pre_ping": True}
    arguments: dict[str, Any] = dict(_POSTGRESQL_ARGUMENTS)
    pooled = is_through_pooler(url)
    if pooled:
        arguments["prepare_threshold"] = None
    elif purpose is Purpose.READ:
        options["isolation_level"] = "AUTOCOMMIT"
    # psycopg also raises what it logs; its messages can contain row values and are not JSON.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
    engine = create_engine(of_driver(url), connect_args=arguments, **options)
    seconds = int(BUSY_TIMEOUT_SECONDS)
    limits = [f"lock_timeout = '{seconds}s'"]
    # Not for writes: a commit that is cut off has an unknown outcome.
    if purpose is Purpose.READ:
        limits.append(f"statement_timeout = '{seconds}s'")

    @_of_each_new(engine)
    def limit_waiting(connection: Any, record: Any) -> None:  # noqa: ANN401 - a DBAPI connection
        WHERE.host = f"{connection.info.host}:{connection.info.port}"
        if purpose is Purpose.WRITE:
            warnings: list[str] = []
            record.info[_WARNINGS] = warnings
            connection.add_notice_handler(lambda said: _note_warning(said, warnings))
        if not pooled:
            own = [*limits, f"default_{_ISOLATION}"]
            with connection.cursor() as cursor:
                cursor.execute("; ".join(f"SET {setting}" for setting in own))
            connection.commit()

    if pooled:
        _begin_with(engine, "; ".join(f"SET LOCAL {setting}" for setting in [_ISOLATION, *limits]))
    return engine


def _connect_to_look(database: str) -> Any:  # noqa: ANN401 - a DBAPI connection
    file = Path(database).absolute()
    # Without a write-ahead log the database is not in use: then do not create files next to it.
    is_used = file.with_name(f"{file.name}-wal").exists()
    place = f"file:{quote(str(file))}?mode=ro{'' if is_used else '&immutable=1'}"
    own: Any = {"uri": True, "timeout": 1.0, "check_same_thread": False, "isolation_level": None}
    return sqlite_module().connect(place, **own)


@lru_cache(maxsize=2)
def _open_to_look(url: URL) -> Engine:
    """Kept, for the statements that it has compiled; it keeps no connection."""
    if is_embedded(url):
        made = partial(_connect_to_look, url.database or "")
        return create_engine("sqlite://", module=sqlite_module(), creator=made, poolclass=NullPool)
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
    arguments = _POSTGRESQL_ARGUMENTS | {"connect_timeout": 3, "prepare_threshold": None}
    engine = create_engine(of_driver(url), connect_args=arguments, poolclass=NullPool)
    _begin_with(
        engine,
        "SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = 3000;"
        " SET LOCAL lock_timeout = 1000",
    )
    return engine


def _begin_with(engine: Engine, statements: str) -> None:
    """Begin each transaction with these statements, which apply to it alone.

    A pooler may give the session to another server next.
    """

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:  # noqa: ANN401 - SQLAlchemy's signature
        connection.exec_driver_sql(statements)


def _of_each_new(engine: Engine) -> Callable[[_SetUp], None]:
    """Has each new connection set up like this."""

    def listen(set_up: _SetUp) -> None:
        @event.listens_for(engine, "connect")
        def connected(connection: Any, record: ConnectionPoolEntry) -> None:  # noqa: ANN401 - a DBAPI connection
            try:
                set_up(connection, record)
            except BaseException:
                # The pool closes it without calling close listeners.
                engine.pool.dispatch.close(connection, record)
                raise

    return listen


def _note_warning(said: Any, warnings: list[str]) -> None:  # noqa: ANN401 - psycopg's Diagnostic
    if said.severity_nonlocalized == "WARNING" or (said.sqlstate or "").startswith("01"):
        warnings.append(said.sqlstate or "")


def warnings_of(connection: Connection) -> list[str]:
    """The states of what PostgreSQL has warned of on a connection; the caller empties the list.

    A commit that its standby did not confirm succeeds, with no more than a warning.
    """
    warnings: list[str] = connection.info.setdefault(_WARNINGS, [])
    return warnings


class ConnectionBreaker:
    """Interrupts waiting connections of an engine, from another thread."""

    def __init__(self, engine: Engine) -> None:
        self._embedded = is_embedded(engine.url)
        self._open: dict[int, tuple[Callable[[], object], Callable[[], object]]] = {}
        self._gate = threading.Lock()
        # Before anything else that is done on a new connection.
        event.listen(engine, "connect", self._opened, insert=True)
        event.listen(engine, "close", self._closed)
        event.listen(engine, "close_detached", self._closed)

    def _opened(self, connection: Any, _record: object) -> None:  # noqa: ANN401 - a DBAPI connection
        ways: tuple[Callable[[], object], Callable[[], object]]
        if self._embedded:
            ways = connection.interrupt, bool
        else:
            # A descriptor of our own: the driver may close its own at any moment.
            held = socket.socket(fileno=os.dup(connection.fileno()))
            ways = partial(held.shutdown, socket.SHUT_RDWR), held.close
        with self._gate:
            self._open[id(connection)] = ways

    def _closed(self, connection: object, _record: object = None) -> None:
        with self._gate:
            _, close = self._open.pop(id(connection), (bool, bool))
            close()

    def close(self) -> None:
        """Release all connections, also those that an abandoned thread never closed."""
        with self._gate:
            for _, close in self._open.values():
                close()
            self._open.clear()

    def __call__(self) -> None:
        """Interrupt them: a waiting thread gets an error of the driver."""
        with self._gate:
            for break_off, _ in self._open.values():
                with suppress(OSError, sqlite3.Error):
                    break_off()


def sqlite_module() -> ModuleType:
    """A DBAPI module over a SQLite that is new enough.

    Raises:
        UnsupportedSqlite: with what to install.
    """
    for name in ("sqlite3", "pysqlite3", "sqlcipher3"):
        try:
            found = importlib.import_module(name)
        except ImportError:
            continue
        if found.sqlite_version_info >= SQLITE_VERSION_MIN:
            for kind, adapt in _ADAPTERS.items():
                found.register_adapter(kind, adapt)
            return found
    wanted = ".".join(map(str, SQLITE_VERSION_MIN))
    raise UnsupportedSqlite(
        f"SQLite {wanted} or newer is needed: version {sqlite3.sqlite_version} of this Python "
        "can corrupt a database in WAL mode. Install the package `pysqlite3` (0.6 or newer) or "
        "`sqlcipher3` (0.6.4 or newer), use a Python with a newer SQLite, or set "
        "COUNTERSIGN_DATABASE_URL to a PostgreSQL database."
    )


def _open_sqlite(url: URL, purpose: Purpose) -> Engine:
    engine = create_engine(
        url,
        module=sqlite_module(),
        isolation_level="AUTOCOMMIT" if purpose is Purpose.READ else None,
        # The driver must not open transactions by itself: writes begin IMMEDIATE below.
        connect_args={"isolation_level": None, "check_same_thread": False},
    )

    @_of_each_new(engine)
    def configure(connection: Any, _record: object) -> None:  # noqa: ANN401 - a DBAPI connection
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={int(BUSY_TIMEOUT_SECONDS * 1000)}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        # Without it, INSERT OR REPLACE deletes rows behind the back of the delete triggers.
        cursor.execute("PRAGMA recursive_triggers=ON")
        cursor.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
        # Each of three connections keeps a third of 64 MB (a copy reads no pages). Not mapped: its
        # pages would count as resident for each of them, and the system caches them once.
        cursor.execute("PRAGMA cache_size=-21845")
        cursor.execute("PRAGMA mmap_size=0")
        # Overwrite erased data instead of only unlinking it.
        cursor.execute("PRAGMA secure_delete=ON")
        if purpose is Purpose.READ:
            cursor.execute("PRAGMA query_only=ON")
        cursor.close()

    if purpose is Purpose.WRITE:

        @event.listens_for(engine, "begin")
        def begin(connection: Any) -> None:  # noqa: ANN401 - SQLAlchemy's signature
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def is_violation(error: BaseException, constraint: str) -> bool:
    """Whether the error is the violation of this constraint.

    PostgreSQL gives the constraint's name, SQLite `table.column` of a unique one.
    """
    return isinstance(error, IntegrityError) and constraint in str(error.orig)


def is_deadlock(error: BaseException) -> bool:
    """Whether PostgreSQL ended the transaction to resolve a deadlock."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) == "40P01"


def translate(error: BaseException) -> CountersignError:
    """The refusal that a caller sees for an error of the driver."""
    if isinstance(error, CountersignError):
        return error
    if isinstance(error, EvidenceError):
        # The stored log is inconsistent.
        return EvidenceDamaged()
    if is_violation(error, "pk_idempotency_keys") or is_violation(error, "kept_slots.slot"):
        return IdempotencyInProgress()
    return _of_driver(error) if isinstance(error, DBAPIError) else InternalError()


def _of_driver(error: DBAPIError) -> CountersignError:
    name, state = _names(error)
    is_busy = name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or state in _BUSY_STATES
    if is_busy and isinstance(error, OperationalError):
        return Overloaded(retry_after=_RETRY_AFTER_SECONDS)
    denied = denial(error)
    if denied is not None:
        return DatabasePermissionDenied(
            f"The database refuses: {denied}. Use the role that owns the tables for `init` and "
            "for commands that change or erase something. The role of a server needs the rights "
            "that `countersign database grants` prints; the owner grants them after each "
            "upgrade."
        )
    # XX001: data corrupted, XX002: index corrupted.
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or state in {"XX001", "XX002"}:
        return damaged()
    if name.startswith("SQLITE_FULL") or state == "53100":
        return disk_full()
    if error.connection_invalidated or _is_away(error):
        is_read_only = name.startswith("SQLITE_READONLY") or state in {"25006", "XX000"}
        words = READ_ONLY if is_read_only else None
        return StorageUnavailable(words, retry_after=_RETRY_AFTER_SECONDS)
    return InternalError()


def _names(error: BaseException) -> tuple[str, str]:
    """The name of SQLite and the state of PostgreSQL for an error, as far as there is one."""
    origin = getattr(error, "orig", None)
    return getattr(origin, "sqlite_errorname", None) or "", getattr(origin, "sqlstate", None) or ""


def damaged() -> StorageUnavailable:
    """The refusal when stored data is damaged."""
    return StorageUnavailable(_DAMAGED, retry_after=_DAMAGED_RETRY_SECONDS)


def disk_full() -> StorageUnavailable:
    """The refusal when the disk is full."""
    return StorageUnavailable(_DISK_FULL, retry_after=_RETRY_AFTER_SECONDS)


def quick_check(connection: Any) -> str:  # noqa: ANN401 - a DBAPI connection
    """`ok`, or what SQLite finds first in the pages of a database: its words, or an error's name.

    Index and table are not compared with each other.
    """
    try:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite_module().Error as error:
        verdict = getattr(error, "sqlite_errorname", str(error))
    return str(verdict)[:200]


def is_damage(refusal: CountersignError) -> bool:
    """Whether a refusal reports damaged data."""
    return refusal.message == _DAMAGED


def is_unknown_end(error: BaseException) -> bool:
    """Whether a commit that failed with this error may nevertheless be durable.

    Either PostgreSQL did not report the outcome, or SQLite wrote the whole commit and the disk did
    not confirm it.
    """
    if not isinstance(error, DBAPIError):
        return False
    name, state = _names(error)
    if name:
        return name.startswith("SQLITE_IOERR") and name != "SQLITE_IOERR_WRITE"
    is_lost = not state and isinstance(error, OperationalError)
    return error.connection_invalidated or is_lost or state[:2] in {"08", "57"}


def denial(error: DBAPIError) -> str | None:
    """PostgreSQL's words where a right is missing: they name the table, and no value of a row."""
    if getattr(error.orig, "sqlstate", None) != _DENIED_STATE:
        return None
    return str(getattr(getattr(error.orig, "diag", None), "message_primary", None) or error.orig)


def _is_away(error: DBAPIError) -> bool:
    """The disk or the server is out of reach; the statement itself was not at fault."""
    name, state = _names(error)
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_INTERRUPT")):
        return True
    if state == "25006" or (state == "XX000" and _IN_RECOVERY in str(error.orig)):
        return True  # a standby, or a primary that has become one
    # Without a state the server was not reached; classes 08 connection, 53 resources, 57 shutdown.
    is_server = not state or state[:2] in {"08", "53", "57"}
    return is_server and not name and isinstance(error, OperationalError)
