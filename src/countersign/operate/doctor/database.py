"""Checks of the database: reachable, whole, of the right schema, and set up as promised."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy import text

from countersign.base.db.engine import Purpose, quick_check, sqlite_module
from countersign.base.db.pooler import hands_sessions_around, is_through_pooler, of_driver
from countersign.base.db.schema import connected
from countersign.base.errors import CountersignError, DatabaseMoved, NotInitialised
from countersign.operate.doctor.finding import Diagnosis, UnseenError, queried, say
from countersign.operate.doctor.sight import Sight, together
from countersign.operate.serving_role import missing_rights

_VERSION_MIN: Final = 15
_CONNECT_SECONDS: Final = 3
_HOST: Final = (
    "SELECT pg_is_in_recovery(), current_setting('server_version'),"
    " current_setting('server_encoding')"
)


def database(look: Sight) -> Iterator[Diagnosis]:
    """The database responds: each host, the primary, version and encoding."""
    if look.embedded_url is not None:
        yield _file(look, Path(look.embedded_url.database or ""))
        return
    hosts = _hosts(look)
    answers = together([partial(_host, host) for host in hosts], look.seconds - 1)
    standbys, said = [], []
    for arguments, answer in zip(hosts, answers, strict=True):
        host = f"{arguments.get('host', 'localhost')} port {arguments.get('port', 5432)}"
        if answer is None or isinstance(answer, str):
            code = "database.unreachable" if len(hosts) == 1 else "database.host_away"
            yield say(code, host=host, why=answer or "no response")
            continue
        is_standby, version, encoding = answer
        standbys.append(is_standby)
        said.append(f"{host} is {'a standby' if is_standby else 'the primary'}, {version}")
        if int(version.split(".")[0]) < _VERSION_MIN:
            yield say("database.old", host=host, version=version)
        if encoding != "UTF8":
            yield say("database.encoding", host=host, encoding=encoding)
    if standbys.count(False) != 1 and (standbys or len(hosts) > 1):
        yield say("database.primaries", number=standbys.count(False))
    if standbys and isinstance(look.schema_refusal, DatabaseMoved):
        yield say("database.moved", why=look.schema_refusal.message)
    yield say("database.fine", hosts="; ".join(said))


def _file(look: Sight, file: Path) -> Diagnosis:
    if not file.exists():
        return say("database.absent", file=file)
    try:
        with connected(look.url, Purpose.LOOK) as connection:
            connection.execute(text("SELECT count(*) FROM sqlite_master")).scalar_one()
    except CountersignError as error:
        named = {"locked": "locked", "malformed": "damaged", "not a database": "damaged"}
        code = next((name for word, name in named.items() if word in error.message), "unusable")
        return say(f"database.{code}", why=error.message)
    if isinstance(look.schema_refusal, DatabaseMoved):
        return say("database.moved", why=look.schema_refusal.message)
    size = file.stat().st_size / 2**20
    return say("database.file", version=sqlite_module().sqlite_version, size=size)


def _hosts(look: Sight) -> list[dict[str, Any]]:
    """The arguments of a connection to each host."""
    _, arguments = look.url.get_dialect()().create_connect_args(of_driver(look.url))
    own = {"connect_timeout": _CONNECT_SECONDS, "target_session_attrs": "any"}
    hosts, ports = (str(arguments.get(name, "")).split(",") for name in ("host", "port"))
    ports *= len(hosts) // len(ports)
    return [
        {**arguments, **own} | {k: v for k, v in (("host", host), ("port", port)) if v}
        for host, port in zip(hosts, ports, strict=False)
    ]


def _host(arguments: dict[str, Any]) -> tuple[Any, ...] | str | None:
    import psycopg  # noqa: PLC0415 - not where the database is embedded

    try:
        with psycopg.connect(**arguments) as connection:
            return connection.execute(_HOST).fetchone()
    except psycopg.Error as error:
        return str(error)


def schema(look: Sight) -> Iterator[Diagnosis]:
    """The schema is the one that this release's migrations make."""
    refusal = look.schema_refusal
    if isinstance(refusal, DatabaseMoved):
        raise UnseenError("see `database`")
    if isinstance(refusal, NotInitialised) and look.is_new:
        yield say("schema.new")
        return
    if refusal is not None:
        yield say("schema.refused", why=refusal.message)
        return
    with look.reading() as connection:
        revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    yield say("schema.fine", revision=revision)


def of_tables(check: str, look: Sight) -> Iterator[Diagnosis]:
    """A check that is no more than its queries, of the tables of this release."""
    with look.reading() as connection:
        yield from queried(connection, check)


def of_postgresql(check: str, look: Sight) -> Iterator[Diagnosis]:
    """The same, for facts of PostgreSQL that nothing else checks."""
    if look.embedded_url is None:
        yield from of_tables(check, look)


def rights(look: Sight) -> Iterator[Diagnosis]:
    """The role may do what servers do."""
    if look.embedded_url is None:
        with look.reading() as connection:
            role, lacking = missing_rights(connection)
        if lacking:
            yield say("rights.lacking", role=role, rights=", ".join(lacking[:5]))
        yield say("rights.fine", role=role)


def sessions(look: Sight) -> Iterator[Diagnosis]:
    """No time limit ends a commit, and two statements are on one session."""
    if look.embedded_url is not None:
        return
    with look.session() as connection:
        yield from queried(connection, "sessions")
    first, *more = _hosts(look)
    if is_through_pooler(look.url):
        yield say("sessions.expected")
    elif not more and hands_sessions_around(first):
        yield say("sessions.pooled")
    yield say("sessions.fine")


def damage(look: Sight) -> Iterator[Diagnosis]:
    """Stored data is readable, as far as checked in this time."""
    with look.session() as connection:
        if look.embedded_url is None:
            yield from queried(connection, "damage")
        else:
            until = time.monotonic() + look.seconds / 2
            own: Any = connection.connection.driver_connection
            own.set_progress_handler(lambda: time.monotonic() > until, 100_000)
            verdict = quick_check(own)
            if verdict == "SQLITE_INTERRUPT":
                yield say("damage.unfinished", seconds=look.seconds / 2)
            elif verdict != "ok":
                yield say("damage.found", verdict=verdict)
    yield say("damage.fine")
