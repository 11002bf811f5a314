"""The states of docs/on-call.md: how each is made, and what its cure is besides a command.

A state gives its deployment three times: well, broken, and well again. In place of a function a
name says where it is made already: a promise, or a test.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from ssl import SSLContext
from typing import Final
from unittest import mock

from sqlalchemy import make_url, update

from countersign.base.db import schema, tables
from countersign.base.db.engine import Purpose, database_url, sqlite_module
from countersign.operate.move import begun_move
from tests.cli.serving import wait_until
from tests.cli.tampering import tamper
from tests.drills.disks import Disk, disk
from tests.drills.on_call import READY, Broken, Ground, State
from tests.drills.test_clock import TWO_HOURS, authority
from tests.drills.test_damage import PAGE, overwrite
from tests.drills.test_dependencies import certificate
from tests.drills.test_limits import idle
from tests.storage.test_filled import FILLED, FIRST, fill
from tests.support import postgres
from tests.support.mail_server import mail_server
from tests.support.object_store import running_store
from tests.support.pgbouncer import running_pgbouncer
from tests.support.service import free_port

_FUNCTIONS: Final[dict[str, State]] = {}
NEEDS: Final[dict[str, tuple[str, ...]]] = {}
"""By state: the markers of what it needs."""


def state(name: str, *needs: str) -> Callable[[State], State]:
    """Register what makes the state of this row."""

    def register(made: State) -> State:
        _FUNCTIONS[name] = made
        NEEDS[name] = needs
        return made

    return register


# The server.


@state("no server runs")
def no_server(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    made.site.stop()
    yield made
    made.start()
    yield made


@state("the server hangs")
def server_hangs(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    assert made.site.process is not None
    made.site.process.send_signal(signal.SIGSTOP)
    yield made
    made.site.kill()
    made.start()
    yield made


class Nothing(BaseHTTPRequestHandler):
    """Another program: it knows no path."""

    status = 404

    def do_GET(self) -> None:
        self.send_error(self.status)

    do_POST = do_GET  # noqa: N815 - as above

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as above
        """Say nothing."""


class Gone(Nothing):
    """A receiver that is closed for good."""

    status = 410


@contextmanager
def program(
    port: int, handler: type[Nothing] = Nothing, tls: SSLContext | None = None
) -> Iterator[None]:
    """Another program on a port."""
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


@state("another program has the server's port")
def other_program(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    made.site.stop()
    with program(made.site.port):
        yield made
    made.start()
    yield made


@state("the server is about to stop")
def draining(ground: Ground) -> Iterator[Broken]:
    made = ground.started(DRAIN_SECONDS="60")
    yield made
    assert made.site.process is not None
    made.site.process.terminate()
    yield made
    made.site.kill()
    made.start()
    yield made


@state("a setting is misspelt")
def misspelt(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    right = made.site.settings
    yield made
    made.site.settings = {**right, "TIMESTAMP_URL": "http://127.0.0.1:1"}
    made.look_again()
    yield made
    made.site.settings = right
    made.look_again()
    yield made


@state("a setting is not valid")
def not_valid(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    right = made.site.settings
    yield made
    made.site.stop()
    made.site.settings = {**right, "WORKERS": "0"}
    yield made
    made.site.settings = right
    made.start()
    yield made


@state("connections or files are used up")
def used_up(ground: Ground) -> Iterator[Broken]:
    made = ground.made()
    made.site.start("prlimit", "--nofile=100:100")
    yield made
    idle(made.site.port, 55, ground.stack)
    yield made
    made.look_again()
    yield made


# Files and keys.


@state("the data directory is gone")
def directory_gone(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    made.site.stop()
    away = made.data.rename(made.folder / "away")
    yield made
    away.rename(made.data)
    made.start()
    yield made


@state("others can use the data directory")
def directory_open(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    made.data.chmod(0o755)
    yield made
    made.cure(DIRECTORY=made.data)
    yield made


@state("the secret key is gone while a server runs")
def key_gone(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    key = made.data / "secret.key"
    away = key.rename(made.folder / "copy")
    made.clock.ahead(timedelta(minutes=16))
    yield made
    away.rename(key)
    made.look_again()
    yield made


def _without(ground: Ground, name: str) -> Iterator[Broken]:
    made = ground.started()
    yield made
    made.site.stop()
    key = made.data / name
    away = key.rename(made.folder / "copy")
    yield made
    away.rename(key)
    made.start()
    yield made


def _other(ground: Ground, name: str) -> Iterator[Broken]:
    made = ground.started()
    yield made
    made.site.stop()
    key = made.data / name
    right = key.read_bytes()
    key.write_bytes(right[:4] + (b"A" if right[4:5] != b"A" else b"B") + right[5:])
    yield made
    key.write_bytes(right)
    made.start()
    yield made


@state("the secret key is missing")
def key_missing(ground: Ground) -> Iterator[Broken]:
    return _without(ground, "secret.key")


@state("the secret key is that of another deployment")
def key_other(ground: Ground) -> Iterator[Broken]:
    return _other(ground, "secret.key")


@state("the key-encryption key is missing")
def wrapping_missing(ground: Ground) -> Iterator[Broken]:
    return _without(ground, "key-encryption.key")


@state("the key-encryption key is another one")
def wrapping_other(ground: Ground) -> Iterator[Broken]:
    return _other(ground, "key-encryption.key")


@state("a key belongs to another user", "mounts")
def key_of_root(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    key = made.data / "secret.key"
    for place in (made.data, *made.data.rglob("*")):
        os.chown(place, 65534, 65534)
    os.chown(key, 0, 0)
    yield made
    made.cure(USER=65534, FILE=key)
    yield made


@state("others can read a key")
def key_open(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    key = made.data / "secret.key"
    key.chmod(0o644)
    yield made
    made.cure(FILE=key)
    yield made


@state("a signing key is damaged")
def signing_key(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    keys = tables.log_keys
    made.site.stop()
    made.change(update(keys).where(keys.c.vkey.contains("/live/")).values(seed=b"damaged"))
    made.start()
    yield made
    made.cure(MODE="live")
    made.look_again()
    yield made


# Disks.


@state("the disk of the data is full", "mounts")
def disk_full(ground: Ground) -> Iterator[Broken]:
    with _on_disk(ground, 160) as (made, own):
        yield made
        filler = own.fill()
        wait_until(made.is_refused, "refused")
        made.site.stop()
        made.site.launch()
        yield made
        filler.unlink()
        wait_until(lambda: made.ready() == READY, "it resumes by itself")
        made.look_again()
        yield made
        made.site.stop()


@state("the disk of the data is nearly full", "mounts")
def disk_low(ground: Ground) -> Iterator[Broken]:
    with _on_disk(ground, 1600) as (made, own):
        yield made
        filler = own.place / "of-another-program"
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, own.free - 110 * 2**20)
        made.look_again()
        yield made
        filler.unlink()
        made.look_again()
        yield made
        made.site.stop()


@state("the disk of the heads is full", "mounts")
def heads_full(ground: Ground) -> Iterator[Broken]:
    with disk(ground.folder, 160) as own:
        made = ground.started(LOG_HEAD_DIR=str(own.place / "heads"))
        # A checkpoint that is replaced later would leave a free block.
        wait_until(lambda: _is_published(made, own.place / "heads"), "published")
        yield made
        filler = own.fill()
        made.acknowledge()
        wait_until(lambda: made.ready() != READY, "noticed")
        made.look_again()
        yield made
        filler.unlink()
        made.look_again()
        yield made
        made.site.stop()


@contextmanager
def _on_disk(ground: Ground, megabytes: int) -> Iterator[tuple[Broken, Disk]]:
    with disk(ground.folder, megabytes) as own:
        (ground.folder / "data").symlink_to(own.place / "data")
        (own.place / "data").mkdir(mode=0o700)
        yield ground.started(), own


# The embedded database.


@state("the database file is gone")
def database_gone(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    made.site.stop()
    away = (made.data / "countersign.db").rename(made.folder / "away.db")
    yield made
    away.rename(made.data / "countersign.db")
    made.start()
    yield made


def _damaged(ground: Ground, *, runs: bool) -> Iterator[Broken]:
    made = ground.started()
    made.acknowledge()
    made.run("backup", str(made.folder / "backup"))
    yield made
    if not runs:
        made.site.kill()
    file = made.data / "countersign.db"
    with file.open("r+b") as pages:
        pages.seek(PAGE)
        pages.write(os.urandom(file.stat().st_size - PAGE))
    if runs:
        wait_until(made.is_refused, "refused")
    else:
        made.site.launch()
    yield made
    made.site.end()
    for file in made.data.glob("countersign.db*"):
        file.unlink()
    made.cure(0, DIRECTORY=made.folder / "backup")
    for mode in ("live", "test"):
        made.cure(1, MODE=mode)
    made.start()
    yield made


@state("the database is damaged")
def database_damaged(ground: Ground) -> Iterator[Broken]:
    return _damaged(ground, runs=False)


@state("the database is damaged while a server runs")
def database_damaged_meanwhile(ground: Ground) -> Iterator[Broken]:
    return _damaged(ground, runs=True)


@state("the database is of an older release")
def database_older(ground: Ground) -> Iterator[Broken]:
    made = ground.made()
    shutil.rmtree(made.data)
    shutil.copytree(FILLED, made.data)
    for place in (made.data, *made.data.rglob("*")):
        place.chmod(0o700 if place.is_dir() else 0o600)
    made.accepted = {"promises", "webhooks", "notices"}  # of buyers and vendors of long ago
    url = database_url(None, made.data)
    with schema.connected(url, Purpose.WRITE) as connection, connection.begin():
        schema.migrate(connection, FIRST)
        fill(connection)
    yield made
    yield made
    made.cure()
    for mode in ("live", "test"):
        head = str(made.data / "heads" / f"{mode}.checkpoint")
        made.run("log", "recover", "--mode", mode, "--published-head", head, "--yes")
    made.site.start()  # the sample has keys of its own
    yield made


@state("another program holds the write lock")
def write_lock(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    file = made.data / "countersign.db"
    with closing(sqlite_module().connect(str(file), isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        wait_until(made.is_refused, "refused")
        yield made
    yield made


@state("the database is of a newer release")
def database_newer(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    made.site.stop()
    version = "UPDATE alembic_version SET version_num = "
    file = made.data / "countersign.db"
    with closing(sqlite_module().connect(str(file), isolation_level=None)) as own:
        (right,) = own.execute("SELECT version_num FROM alembic_version").fetchone()
        own.execute(f"{version}'9999_later'")
        yield made
        own.execute(f"{version}'{right}'")
    made.start()
    yield made


@state("a move to PostgreSQL is half done", "postgres")
def half_moved(ground: Ground) -> Iterator[Broken]:
    server = ground.stack.enter_context(postgres.running_postgres())
    made = ground.started()
    yield made
    made.site.stop()
    target = make_url(postgres.fresh_database(server))
    with begun_move(database_url(None, made.data), target):
        pass  # killed
    yield made
    made.cure()
    made.start()
    yield made


@state("the old database after a move to PostgreSQL", "postgres")
def moved(ground: Ground) -> Iterator[Broken]:
    server = ground.stack.enter_context(postgres.running_postgres())
    made = ground.started()
    yield made
    made.site.stop()
    target = postgres.fresh_database(server)
    made.run("migrate-database", "--to", target)
    yield made
    made.site.settings = {**made.site.settings, "DATABASE_URL": target}
    made.start()
    yield made


# PostgreSQL.


@state("PostgreSQL does not respond", "postgres")
def postgres_gone(ground: Ground) -> Iterator[Broken]:
    server, made = ground.postgres()
    yield made
    server.stop()
    wait_until(made.is_refused, "refused")
    yield made
    server.start()
    yield made


@state("the role of the servers lacks a right", "postgres")
def right_revoked(ground: Ground) -> Iterator[Broken]:
    server, made = ground.postgres()
    made.site.stop()
    url = made.site.settings["DATABASE_URL"]
    name = make_url(url).database or ""
    with server.connect(name) as owner:
        owner.execute("CREATE ROLE app LOGIN")
        made.run("database", "grants", "--role", "app", "--apply")
        made.site.settings = {
            **made.site.settings, "DATABASE_URL": url.replace("postgres@", "app@")
        }  # fmt: skip
        made.start()
        yield made
        owner.execute("REVOKE INSERT ON records FROM app")
        assert made.is_refused()
        yield made
        served = made.site.settings
        made.site.settings = {**served, "DATABASE_URL": url}
        made.cure(ROLE="app")
        made.site.settings = served
        yield made


@state("the role has a statement_timeout", "postgres")
def statement_timeout(ground: Ground) -> Iterator[Broken]:
    server, made = ground.postgres()
    yield made
    with server.connect() as owner:
        owner.execute("ALTER ROLE postgres SET statement_timeout = 5000")
        yield made
        owner.execute(made.command(NAME="postgres"))
    yield made


@state("no standby confirms commits", "postgres")
def no_standby(ground: Ground) -> Iterator[Broken]:
    server, made = ground.postgres()
    yield made
    with server.connect() as owner:
        owner.execute("ALTER SYSTEM SET synchronous_standby_names = 'elsewhere'")
        owner.execute("SELECT pg_reload_conf()")
        threading.Thread(target=made.is_refused, daemon=True).start()
        yield made
        owner.execute(made.command(0))
        owner.execute(made.command(1))
        yield made


@state("a sequence is behind its table", "postgres")
def sequence_behind(ground: Ground) -> Iterator[Broken]:
    server, made = ground.postgres()
    yield made
    with server.connect(make_url(made.site.settings["DATABASE_URL"]).database or "") as owner:
        owner.execute(
            "INSERT INTO events (seq, tx, account_id, mode, type, object_id, at)"
            " VALUES (1000, 1, 'acct_1', 'test', 'notice.published', '', 1)"
        )
        yield made
        owner.execute(made.command(SEQUENCE="public.events_seq_seq", NUMBER=1000))
        yield made


@state("a transaction pooler stands between", "postgres", "pgbouncer")
def pooler(ground: Ground) -> Iterator[Broken]:
    server, made = ground.postgres()
    right = made.site.settings
    yield made
    with running_pgbouncer(server) as bouncer:
        url = bouncer.bare_url(right["DATABASE_URL"]).set(drivername="postgresql+psycopg")
        made.site.settings = {**right, "DATABASE_URL": url.render_as_string(hide_password=False)}
        made.site.stop()
        made.site.launch()
        yield made
        made.site.settings = {**made.site.settings, "DATABASE_POOLER": "transaction"}
        made.look_again()
        yield made
        made.site.stop()


# Logs, heads, clock.


@state("the heads are lost")
def heads_lost(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    made.acknowledge()
    yield made
    made.site.stop()
    shutil.rmtree(made.data / "heads")
    made.start()
    yield made
    for mode in ("live", "test"):
        made.cure(MODE=mode)
    made.look_again()
    yield made


@state("the heads are lost while a server runs")
def heads_lost_meanwhile(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    made.acknowledge()
    yield made
    (made.data / "heads").rename(made.folder / "lost")
    made.acknowledge()
    yield made
    for mode in ("live", "test"):
        made.cure(MODE=mode)
    made.look_again()
    yield made


@state("the heads cannot be written")
def heads_not_written(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    lock = made.data / "heads" / ".lock"
    lock.unlink()
    lock.mkdir()
    made.acknowledge()
    yield made
    lock.rmdir()
    yield made


@state("the database is older than the heads")
def database_behind(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    made.site.stop()
    database = made.data / "countersign.db"
    old = shutil.copy(database, made.folder / "old.db")
    made.start()
    head = made.data / "heads" / "test.checkpoint"
    before = head.read_bytes()
    made.acknowledge()
    wait_until(lambda: head.read_bytes() != before, "published")
    made.site.stop()
    shutil.copy(old, database)
    made.start()
    yield made
    for mode in ("live", "test"):
        made.cure(MODE=mode)
    made.look_again()
    yield made


@state("a server has heads of its own")
def heads_apart(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    right = made.site.settings
    yield made
    made.site.settings = {**right, "LOG_HEAD_DIR": str(made.folder / "other")}
    made.look_again()
    yield made
    made.site.settings = right
    made.look_again()
    yield made


def _store(ground: Ground, fault: str) -> Iterator[Broken]:
    with running_store() as store, mock.patch.dict(os.environ, store.environment):
        _, made = ground.postgres(LOG_HEAD_DIR=store.url("one"))
        yield made
        with getattr(store, fault)():
            made.acknowledge()
            yield made
        yield made
        made.site.stop()


@state("the object store of the heads hangs", "postgres")
def store_hangs(ground: Ground) -> Iterator[Broken]:
    return _store(ground, "frozen")


@state("the object store of the heads is gone", "postgres")
def store_gone(ground: Ground) -> Iterator[Broken]:
    return _store(ground, "down")


@state("the logs do not match the records")
def log_mismatch(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    made.acknowledge()
    wait_until(lambda: made.age("sealed") == 0, "sealed")
    made.run("log", "check")
    yield made
    made.site.stop()
    old = shutil.copy(made.data / "countersign.db", made.folder / "old.db")
    tamper(made.site.deployment, "UPDATE records SET at = at + 1 WHERE id = :ours")
    made.run("log", "check", check=False)
    made.start()
    yield made
    made.site.stop()
    shutil.copy(old, made.data / "countersign.db")
    made.cure()
    made.start()
    yield made


def _is_published(made: Broken, heads: Path) -> bool:
    """Whether the heads are as large as the logs, and nothing waits."""
    logs = json.loads(made.run("log", "status", "--json"))
    return not any(one["waiting"] for one in logs) and all(
        f"\n{one['size']}\n" in (heads / f"{one['mode']}.checkpoint").read_text() for one in logs
    )


def _clock(ground: Ground, by: timedelta) -> Iterator[Broken]:
    with authority() as url:
        made = ground.started(TIMESTAMP_URLS=url)
        wait_until(lambda: _is_published(made, made.data / "heads"), "published")
        yield made
        made.clock.jump(by)
        yield made
        made.clock.jump(-by)
        yield made


@state("the clock is fast")
def clock_fast(ground: Ground) -> Iterator[Broken]:
    return _clock(ground, TWO_HOURS)


@state("the clock is slow")
def clock_slow(ground: Ground) -> Iterator[Broken]:
    return _clock(ground, -TWO_HOURS)


@state("the clock jumps, and there is no other to compare with")
def clock_jumps(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    wait_until(lambda: _is_published(made, made.data / "heads"), "published")
    yield made
    made.clock.jump(TWO_HOURS)
    yield made
    made.clock.jump(-TWO_HOURS)
    yield made


@state("the clock is fast from the start, and there is no other")
def clock_alone(ground: Ground) -> Iterator[Broken]:
    made = ground.made()
    yield made
    made.clock.jump(TWO_HOURS)
    made.start()
    yield made
    yield made


@state("the clock was fast, and is right again")
def clock_right_again(ground: Ground) -> Iterator[Broken]:
    made = ground.made()
    made.clock.jump(TWO_HOURS)
    made.start()
    made.acknowledge()
    wait_until(lambda: made.age("sealed") == 0, "sealed")
    made.site.stop()
    yield made
    made.clock.jump(-TWO_HOURS)
    made.start()
    yield made
    made.clock.ahead(TWO_HOURS)
    made.look_again()
    yield made


# Others.


@state("a time-stamp authority does not respond")
def authority_gone(ground: Ground) -> Iterator[Broken]:
    port = free_port()
    with program(port):
        made = ground.started(TIMESTAMP_URLS=f"http://127.0.0.1:{port}/tsr")
        yield made
    yield made
    with program(port):
        yield made


def _public(ground: Ground, days: int | None) -> Iterator[Broken]:
    port = free_port()
    trusted = ground.folder / "trusted.pem"
    contexts = {n: certificate(ground.folder, n) for n in (60, 2, -1)}
    trusted.write_text("".join((ground.folder / f"{n}.pem").read_text() for n in contexts))
    made = ground.made(PUBLIC_URL=f"https://127.0.0.1:{port}", TRUSTED_PROXIES="127.0.0.1")
    made.site.environment = {**made.site.environment, "SSL_CERT_FILE": str(trusted)}
    made.start()
    with program(port, tls=contexts[60]):
        yield made
    if days is None:
        yield made
    else:
        with program(port, tls=contexts[days]):
            yield made
    with program(port, tls=contexts[60]):
        yield made


@state("the public address does not respond")
def public_down(ground: Ground) -> Iterator[Broken]:
    return _public(ground, None)


@state("the certificate of the public address ends soon")
def public_ends(ground: Ground) -> Iterator[Broken]:
    return _public(ground, 2)


@state("the certificate of the public address has expired")
def public_expired(ground: Ground) -> Iterator[Broken]:
    return _public(ground, -1)


@state("a receiver of webhooks is gone (410)")
def receiver_gone(ground: Ground) -> Iterator[Broken]:
    made = ground.started(WEBHOOK_ALLOW_PRIVATE="true")
    port = free_port()
    endpoint = _endpoint(made, f"http://127.0.0.1:{port}/hook")
    yield made
    with program(port, Gone):
        made.acknowledge()
        wait_until(lambda: made.codes() != set(), "given up")
        yield made
    made.cure(ENDPOINT=endpoint)
    yield made


@state("a receiver's name does not resolve")
def receiver_unknown(ground: Ground) -> Iterator[Broken]:
    made = ground.started()
    yield made
    endpoint = _endpoint(made, "https://hooks.invalid/hook")
    yield made
    made.cure(ENDPOINT=endpoint)
    yield made


def _endpoint(made: Broken, url: str) -> str:
    at = ("--account", made.account, "--mode", "test", "--url", url)
    found: str = json.loads(made.run("webhooks", "add", *at, "--json"))["endpoint_id"]
    return found


@state("the mail server does not respond")
def mail_gone(ground: Ground) -> Iterator[Broken]:
    port = free_port()
    with mail_server(port=port):
        made = ground.started(SMTP_URL=f"smtp://127.0.0.1:{port}")
        yield made
    yield made
    with mail_server(port=port):
        yield made


@state("the mail server says nothing")
def mail_silent(ground: Ground) -> Iterator[Broken]:
    port = free_port()
    with mail_server(port=port):
        made = ground.started(SMTP_URL=f"smtp://127.0.0.1:{port}")
        yield made
    with socket.create_server(("127.0.0.1", port)):
        yield made
    with mail_server(port=port):
        yield made


def _backup(ground: Ground, spoil: Callable[[Path], None]) -> Iterator[Broken]:
    made = ground.made()
    made.clock.ahead(timedelta(hours=37))
    backup = made.folder / "backup"
    made.run("backup", str(backup))
    made.start()
    yield made
    spoil(backup)
    made.look_again()
    yield made
    shutil.rmtree(backup, ignore_errors=True)
    made.cure(DIRECTORY=backup)
    made.look_again()
    yield made


@state("the backup is gone")
def backup_gone(ground: Ground) -> Iterator[Broken]:
    return _backup(ground, shutil.rmtree)


@state("the backup is damaged")
def backup_damaged(ground: Ground) -> Iterator[Broken]:
    return _backup(ground, lambda place: overwrite(place / "countersign.db"))


@state("the backup lacks its shred keys")
def backup_without_keys(ground: Ground) -> Iterator[Broken]:
    return _backup(ground, lambda place: (place / "shred-keys.db").unlink())


BY_PROMISE: Final = {
    "records are not sealed": "sealed",
    "checkpoints are not published": "published",
    "the log is not time-stamped": "time_stamped",
    "an event is held back": "event_visible",
    "a receiver does not accept": "delivered",
    "a receiver is gone": "enabled",
    "a mail is not sent": "mailed",
    "an identity check stays undecided": "decided",
    "nobody decides on a buyer": "reviewed",
    "a person waits for an answer": "answered",
    "personal data is kept too long": "retained",
    "no backup is made": "backed_up",
    "no backup is tried": "restored",
    "the audit is not sealed": "audited",
    "the logs are not checked": "checked",
    "a server cannot look at its promises": "watched",
}
"""The states that `test_promises` makes."""
BY_TEST: Final = {
    "the data directory can only be read": "test_a_disk_that_can_only_be_read",
    "the command of the key-encryption key fails": "test_the_key_command_fails",
    "the end of the write-ahead log is lost": "test_the_end_of_the_write_ahead_log_is_lost",
    "an identity provider does not respond": "test_a_provider_is_down_for_a_day",
    "the certificate of an identity provider has expired": "test_a_certificate_has_expired",
    "erased data is still in the write-ahead log": (
        "test_erasing_claims_no_more_than_has_left_the_write_ahead_log"
    ),
}
"""The states that another test makes: its name."""
STATES: Final[Mapping[str, State]] = _FUNCTIONS
