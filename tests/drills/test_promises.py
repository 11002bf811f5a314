"""Drills: each promise is broken on a real server, is noticed everywhere, and is kept again."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx2
import psycopg
import pytest
from sqlalchemy import (
    Connection,
    LargeBinary,
    String,
    Table,
    create_engine,
    delete,
    func,
    make_url,
    select,
    update,
)
from sqlalchemy.types import Boolean, TypeEngine

from countersign.base.config import load_settings
from countersign.base.db import tables
from countersign.base.db.engine import url_of
from countersign.base.values import from_ns
from countersign.core.log.fork_guard import SUSPENDED
from countersign.operate.doctor.promises import PROMISES
from tests.cli.serving import wait_until
from tests.drills.site import Site
from tests.http.calls import acknowledge, verify
from tests.support import forked, postgres
from tests.support.moved_clock import VARIABLE, MovedClock
from tests.support.service import Deployment, free_port

ALERTS: Final = Path(__file__).parents[2] / "deploy" / "alerts.yaml"
_SERIES: Final = re.compile(r"^(countersign_promise_\w+)\{(.*)\} (\S+)$", re.MULTILINE)
_LATE, _BROKEN = "CountersignPromiseLate", "CountersignPromiseBroken"
_ON_POSTGRESQL = {"event_visible", "answered"}
DAY = timedelta(days=1)


class Owing:
    """A deployment whose clock the test moves, and everything that watches it."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.clock = MovedClock(folder / "clock")
        self.site = Site(
            folder=folder,
            data_dir=folder / "data",
            settings={"METRICS_PORT": str(free_port())} | settings,
            environment={VARIABLE: str(self.clock.file)},
        )
        self.run("init")
        self.account = self.site.deployment.account("vendor")
        self.site.api_key = self.key = self.site.deployment.key(self.account)

    def run(self, *words: str, check: bool = True) -> str:
        """A command on the same machine, by the same clock."""
        environment = self.site.deployment.environment | dict(self.site.environment)
        done = forked.run("countersign", *words, environment=environment)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        engine = create_engine(url_of(load_settings(self.site.deployment.environment)))
        with engine.begin() as connection:
            yield connection
        engine.dispose()

    def change(self, statement: Any, **values: object) -> None:  # noqa: ANN401 - SQL
        """Change a row as a process that was killed leaves it."""
        with self.connected() as connection:
            connection.execute(statement, values)

    def number_of(self, table: Table) -> int:
        """How many rows a table has."""
        with self.connected() as connection:
            return connection.execute(select(func.count()).select_from(table)).scalar_one()

    @property
    def now(self) -> datetime:
        return from_ns(self.clock.time_ns())

    def vendor(self, key: str = "") -> httpx2.Client:
        headers = {"Authorization": f"Bearer {key or self.key}"}
        return httpx2.Client(base_url=self.site.url, headers=headers, verify=False)

    def acknowledge(self) -> None:
        with self.vendor() as vendor:
            assert acknowledge(vendor, session_id="cart-1").status_code == 200

    def look_again(self) -> None:
        """A server looks at everything when it starts."""
        self.site.stop()
        self.site.start()

    def scraped(self) -> list[tuple[str, str, str]]:
        port = self.site.settings["METRICS_PORT"]
        text = httpx2.get(f"http://127.0.0.1:{port}/metrics", verify=False).text
        return _SERIES.findall(text)

    def age(self, name: str) -> float:
        """The greatest age of this promise, as the server shows it."""
        found = [
            float(value)
            for metric, labels, value in self.scraped()
            if metric == "countersign_promise_age_seconds" and f'promise="{name}"' in labels
        ]
        return max(found, default=-1)

    def is_young(self, name: str) -> bool:
        """Whether a server that starts now finds nothing old; then it sets to work."""
        self.look_again()
        return 0 <= self.age(name) < PROMISES[name].ticket

    def alerts(self, name: str) -> set[str]:
        """The rules that Prometheus fires on what was scraped."""
        own = 'instance="a:9", job="countersign"'
        series = [
            {"series": f"{metric}{{{labels}, {own}}}", "values": f"{value} {value} {value}"}
            for metric, labels, value in self.scraped()
        ]
        return {rule for rule in (_LATE, _BROKEN) if self._fires(rule, name, series)}

    def _fires(self, rule: str, name: str, series: list[dict[str, str]]) -> bool:
        fires = f'count(ALERTS{{alertstate="firing", alertname="{rule}", promise="{name}"}}) > 0'
        test = {"expr": fires, "eval_time": "1m", "exp_samples": []}
        asked = {"interval": "1m", "input_series": series, "promql_expr_test": [test]}
        file = self.folder / "rules.yaml"
        file.write_text(json.dumps({"rule_files": [str(ALERTS)], "tests": [asked]}))
        words = ["promtool", "test", "rules", str(file)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode in {0, 1}, done.stderr
        assert done.returncode == 0 or "expr" in done.stdout + done.stderr
        return done.returncode != 0

    def severity(self, name: str) -> str:
        """What the doctor says, and `status` with it."""
        said = json.loads(self.run("doctor", "--seconds=60", "--json", check=False))
        own = [x["severity"] for x in said["lines"] if x["code"] == f"promises.{name}"]
        shown = json.loads(self.run("status", "--seconds=60", "--json", check=False))
        assert (f"promises.{name}" in {one["code"] for one in shown["problems"]}) == bool(own)
        return own[0] if own else "fine"


def row(table: Any, **values: object) -> Any:  # noqa: ANN401 - a table, a statement
    """An insert with something in each column that has to have a value."""

    def some(type_: TypeEngine[Any]) -> object:
        if isinstance(type_, tables.Instant):
            return datetime(2030, 1, 1, tzinfo=UTC)
        if isinstance(type_, LargeBinary):
            return b"x"
        return False if isinstance(type_, Boolean) else "x" if isinstance(type_, String) else 1

    needed = {
        c.name: some(c.type) for c in table.columns if not c.nullable and not c.server_default
    }
    if "mode" in needed:
        needed["mode"] = "test"
    return table.insert().values(needed | values)


Break = Callable[[Owing], Iterator[None]]


def sealed(owing: Owing) -> Iterator[None]:
    """Sealing is suspended, as after a restore."""
    suspended = row(tables.deployment, name=f"{SUSPENDED}:test", value=b"a drill")
    owing.change(suspended)
    owing.site.start()
    owing.acknowledge()
    yield
    owing.change(delete(tables.deployment).where(tables.deployment.c.value == b"a drill"))


def published(owing: Owing) -> Iterator[None]:
    """The directory of heads can be read, and not be written."""
    lock = owing.site.data_dir / "heads" / ".lock"
    owing.site.start()
    owing.acknowledge()
    head = owing.site.data_dir / "heads" / "test.checkpoint"
    before = head.read_bytes()
    lock.unlink()
    lock.mkdir()
    owing.acknowledge()
    assert head.read_bytes() == before
    yield
    lock.rmdir()


def time_stamped(owing: Owing) -> Iterator[None]:
    """The only authority is gone."""
    settings = dict(owing.site.settings)
    owing.site.settings = settings | {"TIMESTAMP_URLS": "http://127.0.0.1:1/tsr"}
    owing.site.start()
    yield
    owing.site.settings = settings


def event_visible(owing: Owing) -> Iterator[None]:
    """A transaction of another database of the cluster has written, and stays open."""
    url = make_url(owing.site.settings["DATABASE_URL"]).set(drivername="postgresql")
    other_url = url.set(database="postgres").render_as_string(hide_password=False)
    owing.site.start()
    with psycopg.connect(other_url) as other:
        other.execute("SELECT pg_current_xact_id()")
        owing.acknowledge()
        yield


def delivered(owing: Owing) -> Iterator[None]:
    """A receiver does not answer."""
    at = ("--account", owing.account, "--mode", "test", "--url", "http://127.0.0.1:1/hook")
    made = json.loads(owing.run("webhooks", "add", *at, "--json"))
    owing.site.start()
    owing.acknowledge()
    yield
    owing.run("webhooks", "delete", made["endpoint_id"], "--yes")


def enabled(owing: Owing) -> Iterator[None]:
    """A receiver has said that it is gone."""
    owner = {"account_id": owing.account, "disabled_at": owing.now, "disabled_reason": "gone"}
    yield from left(owing, tables.webhook_endpoints, **owner)


def mailed(owing: Owing) -> Iterator[None]:
    """A mail waits, and nobody sends any."""
    yield from left(owing, tables.copy_mails, created_at=owing.now, due_at=owing.now)


def decided(owing: Owing) -> Iterator[None]:
    """A provider has not decided."""
    yield from left(owing, tables.pending_sessions, created_at=owing.now)


def reviewed(owing: Owing) -> Iterator[None]:
    """An account decided on a buyer, and not on the next one."""
    of_account = {"account_id": owing.account, "mode": "live"}
    buyer = {"cbid": "cbid_x", "status": "failed", "attempted_by": owing.account}
    decided_on = {"id": "aud_x", "action": "buyer_review_dismissed"}
    for waiting in (
        row(tables.audit_log, **decided_on),
        row(tables.audit_owners, entry_id="aud_x", **of_account),
        row(tables.buyers, **buyer, **of_account),
        row(tables.verifications, id="ver_x", cbid="cbid_x", at=owing.now, **of_account),
    ):
        owing.change(waiting)
    owing.site.start()
    yield
    owing.change(update(tables.buyers).values(dismissed="ver_x"))


def answered(owing: Owing) -> Iterator[None]:
    """A buyer asks for erasure, and `retention keep` does not run; nobody waits for one on hold."""
    owing.site.start()
    with owing.vendor() as vendor:
        asked, held = (
            verify(vendor, provider_identity_session_id=f"vs_{number}").json()["cbid"]
            for number in (1, 2)
        )
    owing.run("holds", "place", held, "--reason", "case 7")
    owing.change(row(tables.erasure_requests, cbid=held, requested_at=owing.now - 100 * DAY))
    owing.change(row(tables.erasure_requests, cbid=asked, requested_at=owing.now))
    yield
    owing.run("retention", "run", "--yes")


def retained(owing: Owing) -> Iterator[None]:
    """Retention fails each time, at a damaged row."""
    owing.site.start()
    with owing.vendor() as vendor:
        ack_id = acknowledge(vendor, session_id="cart-1").json()["ack_id"]
    owing.change(row(tables.waiting_erasures, record_id=ack_id, reason="none", at=owing.now))
    yield
    owing.change(delete(tables.waiting_erasures))
    owing.run("retention", "run", "--yes")


def backed_up(owing: Owing) -> Iterator[None]:
    """Nobody makes a backup."""
    owing.site.start()
    yield
    owing.run("backup", str(owing.folder / "backup"))


def restored(owing: Owing) -> Iterator[None]:
    """Nobody tries to restore one."""
    owing.run("backup", str(owing.folder / "backup"))
    owing.site.start()
    yield
    trial = Deployment(data_dir=owing.folder / "trial").environment | dict(owing.site.environment)
    words = ("countersign", "restore", str(owing.folder / "backup"), "--yes")
    assert forked.run(*words, environment=trial).returncode == 0


def audited(owing: Owing) -> Iterator[None]:
    """An act after the last turn of housekeeping."""
    owing.site.start()
    # A server looks before its first turn of housekeeping, and not again for a while.
    wait_until(lambda: owing.number_of(tables.audit_chain) > 0, "sealed")
    owing.look_again()
    owing.run("accounts", "create", "another")
    owing.look_again()
    yield


def checked(owing: Owing) -> Iterator[None]:
    """Nobody checks the logs."""
    owing.site.start()
    yield
    owing.run("log", "check")


def watched(owing: Owing) -> Iterator[None]:
    """The server cannot look."""
    key = owing.site.data_dir / "secret.key"
    owing.site.start()
    key.rename(key.with_suffix(".away"))
    yield
    key.with_suffix(".away").rename(key)


def left(owing: Owing, table: Any, **values: object) -> Iterator[None]:  # noqa: ANN401 - a table
    """A row that is left by loops that do not run."""
    owing.change(row(table, **values))
    owing.site.start()
    yield
    owing.change(delete(table))


BREAKS: Final[Mapping[str, Break]] = {
    one.__name__: one
    for one in (
        *(sealed, published, time_stamped, event_visible, delivered, enabled, mailed, decided),
        *(reviewed, answered, retained, backed_up, restored, audited, checked, watched),
    )
}


def test_each_promise_is_broken_by_a_drill() -> None:
    """A promise without one may never be noticed."""
    assert [*BREAKS] == [*PROMISES]


@pytest.mark.promtool
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.postgres] if name in _ON_POSTGRESQL else [])
        for name in BREAKS
    ],
)
def test_a_broken_promise_is_noticed_everywhere(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    """Its age grows; metric, rule, doctor and status tell it, and its end."""
    settings = {"WEBHOOK_ALLOW_PRIVATE": "true"}
    if name in _ON_POSTGRESQL:
        server = request.getfixturevalue("postgres_server")
        settings["DATABASE_URL"] = postgres.fresh_database(server)
    owing, promise = Owing(tmp_path, **settings), PROMISES[name]
    is_seen_outside = name != "watched"
    try:
        breaking = BREAKS[name](owing)
        next(breaking)
        if name != "watched":  # what keeps it from looking keeps it from starting
            owing.look_again()
        young = owing.age(name)
        assert 0 <= young < promise.ticket
        assert owing.alerts(name) == set()
        assert owing.severity(name) == "fine"
        owing.clock.ahead(timedelta(seconds=promise.ticket))
        assert owing.age(name) > promise.ticket
        assert owing.alerts(name) == {_LATE}
        assert not is_seen_outside or owing.severity(name) == "warning"
        if promise.page is not None:
            owing.clock.ahead(timedelta(seconds=promise.page - promise.ticket))
            assert owing.alerts(name) == {_LATE, _BROKEN}
            assert not is_seen_outside or owing.severity(name) == "broken"
        with pytest.raises(StopIteration):
            next(breaking)
        wait_until(lambda: owing.is_young(name), "kept again")
        # On a busy machine its first look can come before its first work.
        wait_until(lambda: not owing.alerts(name), "no alert")
        assert owing.severity(name) == "fine"
    finally:
        owing.site.end()
