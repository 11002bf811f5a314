"""Drills: the clock of the machine is set wrong, forward and back."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from countersign.base.db.engine import sqlite_module
from tests.drills.site import Site, site
from tests.support import forked
from tests.support.moved_clock import VARIABLE, MovedClock

pytestmark = [pytest.mark.drill, pytest.mark.timeout(300)]

TWO_HOURS = timedelta(hours=2)


class Authority(BaseHTTPRequestHandler):
    """Knows the time, as every web server does, and stamps nothing."""

    def do_GET(self) -> None:
        self.send_error(405)

    do_POST = do_GET  # noqa: N815 - as above

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as above
        """Say nothing."""


@contextmanager
def authority() -> Iterator[str]:
    """The URL of one."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Authority) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/tsr"
        server.shutdown()


def doctor(broken: Site) -> tuple[str, str]:
    """The finding of `countersign doctor` about the clock, on the server's machine."""
    environment = broken.deployment.environment | dict(broken.environment)
    done = forked.run("countersign", "doctor", "--seconds=60", "--json", environment=environment)
    lines = [line for line in json.loads(done.stdout)["lines"] if line["check"] == "clock"]
    return lines[0]["severity"], f"{lines[0]['found']} {lines[0]['what_to_do']}"


@pytest.mark.parametrize("by", [TWO_HOURS, -TWO_HOURS], ids=["forward", "back"])
def test_the_clock_jumps(tmp_path: Path, by: timedelta) -> None:
    """Nothing is signed with a wrong time; when it is right again, sealing continues by itself."""
    clock = MovedClock(tmp_path / "clock")
    environment = {VARIABLE: str(clock.file)}
    with (
        authority() as url,
        site(tmp_path, environment=environment, TIMESTAMP_URLS=url) as broken,
    ):
        with broken.load() as load:
            load.until(200, 200)
            clock.jump(by)
            load.until_ready(200, "suspended")
            load.until(50, 200)
            (said,) = {one["reason"] for one in broken.events("sealing_suspended")}
            assert "ahead of" in said if by > timedelta() else "behind" in said
            assert url in said
            severity, words = doctor(broken)
            assert severity == "broken"
            assert "Set the clock right" in words
            clock.jump(-by)
            load.until_ready(200, "ok")
            load.until(100, 200)
        broken.judge()
        status = broken.deployment.read("log", "status")
        assert {one["waiting"] for one in status} == {0}


def test_the_clock_is_wrong_at_the_start(tmp_path: Path) -> None:
    """It is compared before anything is accepted."""
    clock = MovedClock(tmp_path / "clock")
    environment = {VARIABLE: str(clock.file)}
    with (
        authority() as url,
        site(tmp_path, environment=environment, TIMESTAMP_URLS=url) as broken,
    ):
        with broken.load() as load:
            load.until(100, 200)
            broken.stop()
            clock.jump(TWO_HOURS)
            broken.start()
            load.until(50, 200)
            load.until_ready(200, "suspended")
            assert head_at(broken) < datetime.now(UTC) + timedelta(minutes=1)
            clock.jump(-TWO_HOURS)
            load.until_ready(200, "ok")
        broken.judge()


def head_at(broken: Site) -> datetime:
    """When a log was changed last."""
    with closing(sqlite_module().connect(broken.data_dir / "countersign.db")) as connection:
        (at,) = connection.execute("SELECT max(at) FROM log_heads").fetchone()
    return datetime.fromtimestamp(at / 1000, UTC)
