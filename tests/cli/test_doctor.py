"""`countersign doctor` and `status`: problems and remedies, without changing anything."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from email.utils import formatdate
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest

from countersign.base.db.engine import sqlite_module
from countersign.operate.doctor.examine import CHECKS, examine, worst
from countersign.operate.doctor.service import public_address
from countersign.operate.doctor.sight import (
    Asked,
    Check,
    Diagnosis,
    Severity,
    Sight,
    UnseenError,
    say,
)
from tests.cli.conftest import Bench
from tests.cli.serving import wait_until
from tests.support import postgres
from tests.support.engines import POSTGRES
from tests.support.mail_server import mail_server
from tests.support.service import Server, free_port, running_server

pytestmark = pytest.mark.long

# Machines of tests are slow; what must not take long has a test of its own.
PATIENT = "--seconds=60"
CREDENTIALS = {"api_key": "k" * 36, "shared_secrets": ["s" * 36], "environment": "live"}
POSTGRESQL_ONLY = {"rights", "durability", "sessions", "transactions", "sequences"}


def looked(bench: Bench, *options: str) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """The exit status, and the lines by their checks."""
    done = bench.run("doctor", *(options or (PATIENT,)), "--json", check=False)
    assert "Traceback" not in done.stderr
    assert "internal_error" not in done.stdout + done.stderr
    assert "could not be looked at" not in done.stdout
    lines: dict[str, list[dict[str, Any]]] = {}
    for line in json.loads(done.stdout)["lines"]:
        assert line["what_to_do"] or line["severity"] in {"fine", "missing"}, line
        lines.setdefault(line["check"], []).append(line)
    return done.returncode, lines


def said(lines: dict[str, list[dict[str, Any]]], check: str) -> tuple[str, str]:
    """Severity, text and remedy of a check."""
    own = lines[check]
    assert len({line["severity"] for line in own}) == 1, own
    return own[0]["severity"], " ".join(f"{line['found']} {line['what_to_do']}" for line in own)


def files_of(bench: Bench) -> dict[str, str]:
    return {
        str(path): sha256(path.read_bytes()).hexdigest()
        for path in sorted(bench.data_dir.rglob("*"))
        if path.is_file() and path.suffix != ".db-shm"  # it is shared memory
    }


@pytest.mark.both_engines
def test_a_running_server_is_checked_line_by_line(served: tuple[Bench, Server]) -> None:
    """Nothing is broken except the disk safety, which the tests' PostgreSQL lacks on purpose."""
    _, server = served
    deployment = Bench(data_dir=server.deployment.data_dir, settings=server.deployment.settings)
    postgres = "DATABASE_URL" in deployment.settings
    status, lines = looked(deployment)
    assert [*lines] == [
        name
        for name in CHECKS
        if (postgres or name not in POSTGRESQL_ONLY) and name != "public_address"  # by HTTPS
    ]
    broken = {name for name in lines if said(lines, name)[0] == "broken"}
    assert broken == ({"durability"} if postgres else set())
    # How much disk and memory is free, is the machine's; other tests make live keys here.
    warned = {name for name in lines if said(lines, name)[0] == "warning"}
    assert warned <= {"disk", "limits", "notices"}
    assert status == (2 if postgres else bool(warned))
    assert "ready" in said(lines, "server")[1]
    assert said(lines, "log_keys") == ("fine", "2 sign ")
    done = deployment.run("status", PATIENT)
    assert 5 < len(done.stdout.splitlines()) <= 40
    assert ("durability" if postgres else "Nothing needs attention") in done.stdout or warned


@pytest.mark.one_engine
def test_everything_is_fine_in_a_healthy_deployment(initialised: Bench, tmp_path: Path) -> None:
    """Exit status 0: a timer stays quiet."""
    with running_server(initialised) as server:
        deployment = Bench(data_dir=initialised.data_dir, settings=server.deployment.settings)
        deployment.run("backup", str(tmp_path / "backup"))
        status, lines = looked(deployment)
    wrong = {name for name in lines if said(lines, name)[0] in {"warning", "broken"}}
    assert wrong <= {"disk", "limits"}
    assert status == bool(wrong)


@pytest.mark.one_engine
def test_nothing_is_written(initialised: Bench) -> None:
    """Also no file next to the database, which would belong to another user than the server's."""
    before = files_of(initialised)
    looked(initialised)
    initialised.run("status", PATIENT)
    assert files_of(initialised) == before


@pytest.mark.one_engine
def test_after_an_unclean_stop_nothing_is_written_either(initialised: Bench) -> None:
    """The write-ahead log stays as it is: an expert may need it."""
    database = initialised.data_dir / "countersign.db"
    with closing(sqlite_module().connect(str(database))) as other:
        other.execute("CREATE TABLE added (id INTEGER)")
        before = files_of(initialised)
        assert any(name.endswith("-wal") for name in before)
        _, lines = looked(initialised)
        assert said(lines, "damage")[0] == "fine"
        assert files_of(initialised) == before


@pytest.mark.one_engine
def test_a_stopped_server_is_reported(initialised: Bench) -> None:
    """Everything else is checked all the same."""
    status, lines = looked(initialised)
    assert status == 2
    severity, words = said(lines, "server")
    assert severity == "broken"
    assert "Start it" in words
    assert said(lines, "logs")[0] == "fine"


@pytest.mark.one_engine
def test_a_planned_stop_is_not_broken(initialised: Bench) -> None:
    """No one has to get up for it; it is shown, since another server has to follow."""
    with running_server(initialised, DRAIN_SECONDS="60") as server:
        server.process.terminate()
        with server.client() as client:
            wait_until(lambda: client.get("/readyz").status_code == 503, "draining")
        deployment = Bench(data_dir=initialised.data_dir, settings=server.deployment.settings)
        _, lines = looked(deployment)
    severity, words = said(lines, "server")
    assert severity == "warning"
    assert "about to stop" in words


def test_before_init_the_command_to_run_is_shown(either: Bench) -> None:
    """On an empty database, or without any: nothing else is reported."""
    either.data_dir.mkdir(mode=0o700)
    status, lines = looked(either.but(PORTT="1"))
    assert status == 2
    assert [*lines] == ["settings", "schema"]
    assert "PORTT" in said(lines, "settings")[1]
    assert said(lines, "schema")[1].startswith("not initialised If there was a deployment: mount")
    done = either.run("status", PATIENT)
    assert "1 need attention" in done.stdout


@pytest.mark.one_engine
def test_a_missing_database_is_not_mistaken_for_a_new_deployment(initialised: Bench) -> None:
    """Its published checkpoints still exist, so everything missing is reported."""
    (initialised.data_dir / "countersign.db").unlink()
    _, lines = looked(initialised)
    assert "Mount its disk, or restore a backup" in said(lines, "database")[1]
    assert said(lines, "server")[0] == "broken"


@pytest.mark.one_engine
def test_wrong_settings_are_named_all_at_once(initialised: Bench) -> None:
    """Unknown variables too; with wrong settings nothing else is checked."""
    status, lines = looked(initialised.but(PORT="none", WORKERS="0", WEBHOOK_TIMEOUT="3"))
    assert status == 2
    words = " ".join(line["found"] for line in lines["settings"])
    assert all(name in words for name in ("_PORT", "_WORKERS", "_WEBHOOK_TIMEOUT"))
    assert said(lines, "database") == ("missing", "not looked at: the settings are not valid ")


@pytest.mark.one_engine
@pytest.mark.parametrize("place", [0, 4096 * 20])
def test_a_damaged_database_is_reported_with_a_remedy(initialised: Bench, place: int) -> None:
    """Its first page, or some other."""
    database = initialised.data_dir / "countersign.db"
    with database.open("r+b") as file:
        file.seek(place)
        file.write(os.urandom(4096 * 4))
    status, lines = looked(initialised)
    assert status == 2
    words = " ".join(said(lines, name)[1] for name in ("database", "damage"))
    assert "restore a backup" in words


@pytest.mark.one_engine
def test_a_database_locked_by_another_program_is_reported(initialised: Bench) -> None:
    """A shell that was left open, for example."""
    database = initialised.data_dir / "countersign.db"
    with closing(sqlite_module().connect(str(database), isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("CREATE TABLE added (id INTEGER)")
        status, lines = looked(initialised)
    assert status == 2
    assert "locked" in said(lines, "database")[1]


def test_a_schema_of_another_release_is_reported(either: Bench) -> None:
    """By its revision, or by missing objects."""
    either.run("init")
    for statement, words in (
        ("DROP TABLE test_faults", "the table test_faults is missing"),
        ("UPDATE alembic_version SET version_num = '9999_later'", "newer release"),
    ):
        change(either, statement)
        status, lines = looked(either)
        assert status == 2
        assert words in said(lines, "schema")[1]
        assert said(lines, "logs")[0] == "missing"


def change(bench: Bench, statement: str) -> None:
    url = bench.settings.get("DATABASE_URL")
    if url is None:
        with closing(sqlite3.connect(bench.data_dir / "countersign.db")) as connection:
            connection.execute(statement)
            connection.commit()
    else:
        with psycopg.connect(url.replace("+psycopg", "")) as connection:
            connection.execute(statement)


@pytest.mark.one_engine
def test_an_unresponsive_database_server_is_reported_in_time(bench: Bench) -> None:
    """It takes the connection and says nothing, as a stopped machine does; another is not there."""
    bench.data_dir.mkdir(mode=0o700)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        hosts = f"127.0.0.1:{port},127.0.0.1:1"
        url = f"postgresql://app:geheim@{hosts}/x?target_session_attrs=read-write"
        status, lines = looked(bench.but(DATABASE_URL=url), "--seconds=9")
    assert status == 2
    assert f"port {port} does not respond" in " ".join(x["found"] for x in lines["database"])
    assert "geheim" not in json.dumps(lines)


@pytest.mark.one_engine
def test_unprotected_missing_or_wrong_keys_are_reported(initialised: Bench) -> None:
    """Before a server that lacks them stops."""
    (initialised.data_dir / "secret.key").chmod(0o644)
    key = initialised.data_dir / "key-encryption.key"
    kept = key.read_bytes()
    key.unlink()
    _, lines = looked(initialised)
    assert {line["severity"] for line in lines["key_files"]} == {"warning", "broken"}
    assert said(lines, "keys")[0] == "broken"
    key.write_bytes(kept[:4] + (b"A" if kept[4:5] != b"A" else b"B") + kept[5:])
    _, lines = looked(initialised)
    assert "are missing" in said(lines, "keys")[1]
    assert said(lines, "log_keys")[0] == "broken"


@pytest.mark.one_engine
def test_a_database_behind_the_published_head_is_reported(
    initialised: Bench, tmp_path: Path
) -> None:
    """An older copy of it, next to the last published checkpoints; or these cannot be read."""
    database, old = initialised.data_dir / "countersign.db", tmp_path / "old.db"
    shutil.copy(database, old)
    initialised.run("operator", "describe", "--legal-name", "Someone LLC")
    head = initialised.data_dir / "heads" / "live.checkpoint"
    kept = head.read_bytes()
    with running_server(initialised):
        wait_until(lambda: head.read_bytes() != kept, "a checkpoint that was published")
    shutil.copy(old, database)
    status, lines = looked(initialised)
    assert status == 2
    severity, words = said(lines, "logs")
    assert severity == "broken"
    assert "is suspended" in words
    assert "log recover" in words
    head.write_bytes(b"changed")
    assert "cannot be read" in said(looked(initialised)[1], "logs")[1]


@contextmanager
def elsewhere(ahead: float) -> Iterator[str]:
    """A server on the network whose clock is this many seconds ahead."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def date_time_string(self, timestamp: float | None = None) -> str:
            import time  # noqa: PLC0415

            return formatdate((timestamp or time.time()) + ahead, usegmt=True)

        def log_message(self, *_: Any) -> None:  # noqa: ANN401
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as there:
        threading.Thread(target=there.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{there.server_port}"
        there.shutdown()


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("ahead", "severity"), [(-120.0, "broken"), (-15.0, "warning"), (0.0, "fine"), (120, "broken")]
)
def test_a_wrong_clock_is_reported(initialised: Bench, ahead: float, severity: str) -> None:
    """Before anything is signed with a time of the future."""
    with elsewhere(ahead) as url:
        _, lines = looked(initialised.but(TIMESTAMP_URLS=url))
    found, words = said(lines, "clock")
    assert found == severity
    if ahead:
        assert ("ahead of" if ahead < 0 else "behind") in words


@pytest.mark.one_engine
def test_an_unreachable_third_party_is_reported(initialised: Bench) -> None:
    """Whether it has seen the log is a promise."""
    _, lines = looked(initialised.but(TIMESTAMP_URLS="http://127.0.0.1:1/stamp"))
    severity, words = said(lines, "witnesses")
    assert severity == "warning"
    assert "cannot be reached" in words


@pytest.mark.one_engine
def test_an_unreachable_identity_provider_is_reported(initialised: Bench, tmp_path: Path) -> None:
    """If an account uses it."""
    account = initialised.account("vendor")
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps(CREDENTIALS))
    initialised.run(
        *("accounts", "verification", "set", account, "--provider", "veriff"),
        *("--credentials-file", str(file), "--dangerous-base-url", "http://127.0.0.1:1", "--yes"),
    )
    _, lines = looked(initialised)
    severity, words = said(lines, "providers")
    assert severity == "warning"
    assert "http://127.0.0.1:1 cannot be reached" in words


@pytest.mark.one_engine
def test_a_mail_server_that_does_not_greet_is_reported(initialised: Bench) -> None:
    """Its port is dead, it says nothing, or its name does not resolve."""
    with mail_server() as greeting, socket.create_server(("127.0.0.1", 0)) as silent:
        for url, severity, why in (
            ("smtp://127.0.0.1:1", "warning", "127.0.0.1 port 1 cannot be used: Connection"),
            (f"smtp://127.0.0.1:{silent.getsockname()[1]}", "warning", "timed out"),
            ("smtps://mail.invalid", "warning", "mail.invalid port 465 cannot be used"),
            (f"smtp://127.0.0.1:{greeting.port}", "fine", "0 mails wait"),
        ):
            found, words = said(looked(initialised.but(SMTP_URL=url))[1], "mails")
            assert found == severity, words
            assert why in words


@pytest.mark.one_engine
def test_a_receiver_whose_name_does_not_resolve_is_reported(initialised: Bench) -> None:
    """By endpoint and name, before its first delivery is late; what to do ends it."""
    account = initialised.account("vendor")
    for host in ("hooks.invalid", "127.0.0.1"):
        options = ("--account", account, "--mode", "test", "--url", f"https://{host}/hook")
        initialised.but(WEBHOOK_ALLOW_PRIVATE="true").run("webhooks", "add", *options)
    _, lines = looked(initialised)
    severity, words = said(lines, "webhooks")
    assert severity == "warning"
    assert "name hooks.invalid does not resolve" in words
    assert "127.0.0.1" not in words
    initialised.run(*words.partition("`countersign ")[2].partition("`")[0].split(), "--yes")
    assert said(looked(initialised)[1], "webhooks")[0] == "fine"


@pytest.mark.postgres
@pytest.mark.parametrize("either", [POSTGRES], indirect=True)
def test_a_sequence_behind_its_table_is_reported(either: Bench) -> None:
    """After a restore by hand, for example: the next row would have a number that is taken."""
    either.run("init")
    assert said(looked(either)[1], "sequences")[0] == "fine"
    change(
        either,
        "INSERT INTO events (seq, tx, account_id, mode, type, object_id, at)"
        " VALUES (1000, 1, 'acct_1', 'test', 'notice.published', '', 1)",
    )
    severity, words = said(looked(either)[1], "sequences")
    assert severity == "broken"
    assert "setval" in words
    url = either.settings["DATABASE_URL"].replace("+psycopg", "")
    with psycopg.connect(url) as connection:
        connection.execute(words.rpartition("As the owner: ")[2])  # what to do helps
    assert said(looked(either)[1], "sequences")[0] == "fine"


@pytest.mark.postgres
@pytest.mark.parametrize("either", [POSTGRES], indirect=True)
def test_missing_privileges_and_an_old_transaction_are_reported(either: Bench) -> None:
    """The role of servers has only the rights that it needs, and the doctor needs no other."""
    either.run("init")
    url = either.settings["DATABASE_URL"].replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as owner:
        role = f"app_{owner.info.dbname}"
        owner.execute(f"CREATE ROLE {role} LOGIN")
        either.run("database", "grants", "--role", role, "--apply")
        served = either.but(
            DATABASE_URL=either.settings["DATABASE_URL"].replace("postgres@", f"{role}@"),
            PORT=str(free_port()),
        )
        _, lines = looked(served)
        assert {name for name in lines if said(lines, name)[0] == "broken"} == {
            "server",
            "durability",
        }
        owner.execute(f"REVOKE INSERT ON records FROM {role}")
        owner.execute(f"ALTER ROLE {role} SET statement_timeout = 500")
        _, lines = looked(served)
        assert f"--role {role} --apply" in said(lines, "rights")[1]
        assert said(lines, "sessions")[0] == "warning"


@pytest.mark.postgres
def test_waiting_commits_and_a_frozen_or_missing_database_are_reported(bench: Bench) -> None:
    """Each with its remedy; if nothing can be checked, nothing is reported as fine."""
    with postgres.running_postgres({}) as primary:
        url = postgres.fresh_database(primary)
        deployment = bench.but(DATABASE_URL=url)
        deployment.run("init")
        assert said(looked(deployment)[1], "durability")[0] == "fine"
        with primary.connect() as operator:
            operator.execute("ALTER SYSTEM SET synchronous_standby_names = 'elsewhere'")
            operator.execute("SELECT pg_reload_conf()")
        severity, words = said(looked(deployment)[1], "durability")
        assert severity == "broken"
        assert "Bring a standby back" in words
        primary.send(signal.SIGSTOP)
        try:
            status, lines = looked(deployment, "--seconds=8")
        finally:
            primary.send(signal.SIGCONT)
        assert status == 2
        assert said(lines, "database")[0] == "broken"
    status, lines = looked(deployment)
    assert status == 2
    assert "does not respond" in said(lines, "database")[1]
    of_data = {"logs", "log_keys", "keys", "webhooks", "mails", "notices", "rights", "sequences"}
    assert {said(lines, name)[0] for name in of_data} == {"missing"}


def test_a_hanging_or_failed_check_hides_no_other() -> None:
    """Each has its line, in the order of the table, and the process ends all the same."""

    def hangs(_: Sight) -> Iterator[Any]:
        threading.Event().wait()
        yield say("notices.none")

    def fails(_: Sight) -> Iterator[Any]:
        yield say("providers.none")
        raise LookupError("of\nall things")

    def cannot(_: Sight) -> Iterator[Any]:
        raise UnseenError("of another")
        yield

    def finds(_: Sight) -> Iterator[Any]:
        yield say("providers.none")
        yield say("public_address.proxies")

    checks: dict[str, Check[Sight]] = {"a": hangs, "b": fails, "c": cannot, "d": finds}
    lines = examine(Sight({}, seconds=0.5), checks)
    assert [(line.check, line.severity.value) for line in lines] == [
        ("a", "broken"),
        ("b", "broken"),
        ("c", "missing"),
        ("d", "warning"),
    ]
    assert "of all things" in lines[1].found
    assert worst(lines) is Severity.BROKEN


def test_the_process_ends_although_a_check_hangs(bench: Bench) -> None:
    """A key command that never ends, in a process of its own."""
    bench.data_dir.mkdir(mode=0o700)
    program = "import threading; threading.Event().wait()"
    command = f"command:{shutil.which('python3') or 'python3'} -c '{program}'"
    environment = bench.but(KEY_ENCRYPTION_KEY=command).environment
    done = subprocess.run(
        [str(Path(sys.executable).with_name("countersign")), "doctor", "--seconds", "2"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done
    assert "Traceback" not in done.stderr


def test_an_unknown_proxy_is_reported() -> None:
    """Behind it all browsers have one address; without TLS there is no proxy."""
    found = {}
    for name, proxies in (("unknown", ""), ("known", "127.0.0.1")):
        environment = {"COUNTERSIGN_PUBLIC_URL": "https://127.0.0.1:1"}
        environment |= {"COUNTERSIGN_TRUSTED_PROXIES": proxies} if proxies else {}
        look = Sight(environment, seconds=5)
        found[name] = {one.code for one in public_address(look)}
    assert found["unknown"] - found["known"] == {"public_address.proxies"}


@pytest.mark.one_engine
def test_one_cause_is_one_line() -> None:
    """Such as an object store that fails at the heads of both logs."""

    def failing(_: Sight) -> Iterator[Diagnosis]:
        yield from [say("logs.head_file", why="it does not respond")] * 3

    assert len(examine(Sight({}), {"logs": failing})) == 1


@pytest.mark.openssl
@pytest.mark.one_engine
def test_a_certificate_that_ends_soon_is_reported_of_a_server_that_hangs_up(tmp_path: Path) -> None:
    """Plain HTTP/1.0: the end of the connection is the end of the response."""
    file = tmp_path / "own.pem"
    subprocess.run(
        (
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext"),
            *("subjectAltName=IP:127.0.0.1", "-keyout", str(file.with_suffix(".key"))),
            *("-out", str(file)),
        ),
        check=True,
        capture_output=True,
    )

    class Plain(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Plain) as server:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(file, file.with_suffix(".key"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        look = Sight({"COUNTERSIGN_PUBLIC_URL": f"https://127.0.0.1:{server.server_port}"})
        asked = look.ask(look.settings.public_url, verify=ssl.create_default_context(cafile=file))
        server.shutdown()
        serving.join()
    assert isinstance(asked, Asked), asked
    assert (asked.status, asked.body) == (200, "ok")
    assert asked.ends_at is not None
    assert timedelta(days=1) < asked.ends_at - look.now < timedelta(days=2)
