"""Checks of this machine: settings, files, disk, limits, the server's process."""

from __future__ import annotations

import json
import os
import resource
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from stat import S_IMODE
from typing import Any, Final

from sqlalchemy import text

from countersign.base.config import PREFIX, unknown_variables
from countersign.base.db.engine import SQLITE_FILE, Purpose, quick_check, sqlite_module
from countersign.base.db.pooler import hands_sessions_around, is_through_pooler, of_driver
from countersign.base.db.schema import connected
from countersign.base.errors import (
    Blocked,
    CountersignError,
    DatabaseMoved,
    Draining,
    NotInitialised,
    StorageUnavailable,
)
from countersign.base.files import holder_of, loose_mode
from countersign.base.host import is_wildcard
from countersign.core.vault.key_file import key_file
from countersign.operate.doctor.sight import Diagnosis, Sight, UnseenError, queried, say, together
from countersign.operate.serving_role import missing_rights

DISK_LOW: Final = 0.1
"""Free share of the disk."""
DISK_FULL_MB: Final = 64
_FILES_MIN: Final = 10_000
"""As many as a server's connections need."""
_MEMORY_MIN_MB: Final = 128
_NETWORK: Final = ("9p", "afs", "ceph", "cifs", "fuse.", "gluster", "lustre", "nfs", "smb")


def settings(look: Sight) -> Iterator[Diagnosis]:
    """They are valid, and no variable is unknown."""
    if look.mistakes:
        yield say("settings.wrong", mistakes="; ".join(look.mistakes.splitlines()))
    for name in unknown_variables(look.environment):
        yield say("settings.unknown", name=name)
    yield say("settings.fine", number=sum(name.startswith(PREFIX) for name in look.environment))


def data_directory(look: Sight) -> Iterator[Diagnosis]:
    """It is there, belongs to this user, and is on a disk of this machine."""
    directory = look.settings.data_dir.resolve()
    try:
        about, owner = directory.stat(), _user(directory)
    except OSError as error:
        yield say("data_directory.unusable", directory=directory, why=error.strerror)
        return
    named = {"directory": directory, "mode": S_IMODE(about.st_mode), "owner": owner}
    kind, options = file_system(directory)
    named["kind"] = kind
    for code, is_so in (
        ("shared", about.st_mode & 0o077),
        ("owners", about.st_uid != owner),
        ("not_ours", os.geteuid() not in {0, about.st_uid}),
        # After an error the kernel lets ext4 be read only, which access(2) does not know.
        ("read_only", "emergency_ro" in options or not os.access(directory, os.W_OK)),
        ("network", look.embedded_url is not None and kind.startswith(_NETWORK)),
        ("volatile", kind in {"tmpfs", "ramfs"}),
        ("fine", True),
    ):
        if is_so:
            yield say(f"data_directory.{code}", **named)


def _user(directory: Path) -> int:
    """The number of the server's user: who owns the database, or else the directory."""
    places = (directory / SQLITE_FILE, directory, *directory.parents)
    return next(place for place in places if place.exists()).stat().st_uid


def file_system(directory: Path) -> tuple[str, str]:
    """The kind of the file system that a directory is on, such as `ext4`, and its options."""
    found = {Path("/"): ("unknown", "")}
    with suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
            before, _, after = line.partition(" - ")
            point = before.split()[4].encode().decode("unicode_escape")
            found[Path(point)] = after.split()[0], after.split()[-1]
    return next(found[place] for place in (directory, *directory.parents) if place in found)


def disk(look: Sight) -> Iterator[Diagnosis]:
    """There is space for data and for the last published checkpoints."""
    found = {}
    heads, data = look.settings.log_head_dir, look.settings.data_dir
    for name, directory in (("disk_of_heads", heads), ("disk", data)):
        if isinstance(directory, Path):  # an object store has no end
            place = directory.resolve()
            there = next(p for p in (place, *place.parents) if p.exists())
            # One disk for both is the data's.
            found[there.stat().st_dev] = name, place, shutil.disk_usage(there)
    for name, place, usage in found.values():
        share, free = usage.free / max(usage.total, 1), usage.free / 2**20
        code = "full" if free < DISK_FULL_MB else "low" if share < DISK_LOW else "fine"
        yield say(f"{name}.{code}", place=place, free=free, share=share)


def key_files(look: Sight) -> Iterator[Diagnosis]:
    """They are there, and the server's user alone can read them."""
    user = _user(look.settings.data_dir.resolve())
    for file in (look.settings.secret_key_file, key_file(look.settings.key_encryption_key)):
        if file is None:
            continue
        if not file.is_file():
            yield say("key_files.missing", file=file)
        elif user not in {0, (about := file.stat()).st_uid} and not about.st_mode & 0o044:
            yield say("key_files.owner", file=file, owner=about.st_uid, user=user)
        elif not os.access(file, os.R_OK):
            yield say("key_files.unreadable", file=file)
        elif mode := loose_mode(file):
            yield say("key_files.loose", file=file, mode=mode)
    yield say("key_files.fine")


def server(look: Sight) -> Iterator[Diagnosis]:
    """A server responds, and can do its work."""
    host, port = look.settings.host, look.settings.port
    host = "127.0.0.1" if is_wildcard(host) else f"[{host}]" if ":" in host else host
    process, place = holder_of(look.settings.data_dir), f"{host} port {port}"
    place += f" (process {process})" if process else ""
    asked = look.ask(f"http://{host}:{port}/readyz")
    if isinstance(asked, str):
        yield say("server.down", place=place, why=asked)
        return
    try:
        said = json.loads(asked.body)
        if asked.status == 200:
            checks = ", ".join(f"{name} {state}" for name, state in said["checks"].items())
            code = next((c for c in ("suspended", "head_unavailable") if c in checks), "fine")
            yield say(f"server.{code}", place=place, checks=checks)
        else:
            named = {Draining.code: "server.draining", Blocked.code: "database.locked"}
            code = named.get(said["error"]["code"], "server.not_ready")
            yield say(code, place=place, why=said["error"]["message"])
    except (ValueError, KeyError, TypeError):
        yield say("server.another", place=place, status=asked.status)


def limits(look: Sight) -> Iterator[Diagnosis]:
    """Open files, memory, and workers for the cores."""
    named = {"workers": look.settings.workers, "cores": len(os.sched_getaffinity(0))}
    process, free = int(holder_of(look.settings.data_dir) or 0), available_memory() / 2**20
    try:
        files = resource.prlimit(process, resource.RLIMIT_NOFILE)[1]
    except OSError:  # another user's process
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    named["files"] = files = 2**31 if files == resource.RLIM_INFINITY else files
    for code, is_so in (
        ("workers", named["workers"] > named["cores"]),
        ("files", files < _FILES_MIN),
        ("memory", free < _MEMORY_MIN_MB),
        ("fine", True),
    ):
        if is_so:
            yield say(f"limits.{code}", free=free, **named)


def available_memory() -> int:
    """The bytes that programs can still have, in this container too."""
    words = Path("/proc/meminfo").read_text(encoding="ascii").split()
    free, group = int(words[words.index("MemAvailable:") + 1]) * 1024, Path("/sys/fs/cgroup")
    try:
        most, used = ((group / f"memory.{n}").read_text("ascii") for n in ("max", "current"))
        return min(free, int(most) - int(used))
    except (OSError, ValueError):  # no container, or no limit
        return free


_HOST: Final = (
    "SELECT pg_is_in_recovery(), current_setting('server_version'),"
    " current_setting('server_encoding')"
)


def database(look: Sight) -> Iterator[Diagnosis]:
    """The database responds: each host, the primary, version and encoding."""
    if look.embedded_url is not None:
        yield _moved(look) or _file(look, Path(look.embedded_url.database or ""))
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
        if int(version.split(".")[0]) < 15:
            yield say("database.old", host=host, version=version)
        if encoding != "UTF8":
            yield say("database.encoding", host=host, encoding=encoding)
    if standbys.count(False) != 1 and (standbys or len(hosts) > 1):
        yield say("database.primaries", number=standbys.count(False))
    if standbys and (moved := _moved(look)):
        yield moved
    elif standbys and isinstance(look.schema_refusal, StorageUnavailable):
        yield say("database.failing", why=look.schema_refusal.message)
    yield say("database.fine", hosts="; ".join(said))


def _moved(look: Sight) -> Diagnosis | None:
    if not isinstance(look.schema_refusal, DatabaseMoved):
        return None
    why = look.schema_refusal.message
    return say("database.moved" if "was moved" in why else "database.moving", why=why)


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
    size = file.stat().st_size / 2**20
    return say("database.file", version=sqlite_module().sqlite_version, size=size)


def _hosts(look: Sight) -> list[dict[str, Any]]:
    """The arguments of a connection to each host."""
    _, arguments = look.url.get_dialect()().create_connect_args(of_driver(look.url))
    own = {"connect_timeout": 3, "target_session_attrs": "any"}
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
    if isinstance(refusal, (DatabaseMoved, StorageUnavailable)):
        raise UnseenError("see `database` and `damage`")
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
    # Another check may take the session in between.
    elif not more and any(hands_sessions_around(first) for _ in range(3)):
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
