"""A deployment to break: its server on one port, its callers, a monitor outside, and the oracle.

`Site.judge` has the final conditions of every drill: each 200 is there exactly once, replays agree,
the published checkpoints form one chain, no caller waited long, and readiness was true.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Final

import httpx2

from tests.cli.serving import wait_until
from tests.crash.wire import Connection
from tests.drills.load import CLIENTS, Load, Looked, Order, Tried
from tests.support import command, forked, privacy
from tests.support.service import Deployment, free_port

WAIT_SECONDS_MAX: Final = 15.0
"""No caller waits longer, whatever is broken."""
_TRUTH_SECONDS: Final = 3.0
"""For this long readiness may lag behind the truth."""


@dataclass(kw_only=True)
class Site:
    """A deployment that is broken on purpose."""

    learns_within: ClassVar = _TRUTH_SECONDS
    """For this many seconds readiness may still say *not ready* after recovery."""
    pause_seconds: ClassVar = 0.04
    """Between two calls of a client: all together make some 100 calls a second."""

    folder: Path
    data_dir: Path
    settings: Mapping[str, str]
    port: int = field(default_factory=free_port)
    process: forked.Forked | subprocess.Popen[bytes] | None = None
    monitor: forked.Forked | None = None
    api_key: str = ""
    log_name: str = "test/1"
    notice: Any = None
    loads: list[Load] = field(default_factory=list)
    environment: Mapping[str, str] = field(default_factory=dict)
    """More of it, for the server alone."""

    @property
    def deployment(self) -> Deployment:
        """As commands see it."""
        own = {"PORT": str(self.port), "RATE_LIMIT": "off"}
        return Deployment(data_dir=self.data_dir, settings=own | dict(self.settings))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """The logs of all servers."""
        return self.folder / "server.log"

    def begin(self) -> None:
        """Make it, start its server, and have a monitor watch its log."""
        self.deployment.run("init")
        if not self.api_key:
            self.api_key = self.deployment.key(self.deployment.account("vendor"))
        self.notice = self.deployment.read("notices", "list")[0]
        self.start()
        self.watch()

    def watch(self) -> None:
        """Have a monitor watch the log; after `judge`, which ends it, another goes on."""
        self._fetch_policy()
        with (self.folder / "monitor.log").open("ab") as sink:
            words = ["countersign", *self._looking(), "--every", "1s"]
            self.monitor = forked.start(words, {}, stdout=sink, stderr=sink, directory=self.folder)

    def _fetch_policy(self) -> None:
        with self.client() as anyone:
            policy = anyone.get("/v1/log/policy", params={"mode": "test"})
        (self.folder / "policy").write_bytes(policy.content)

    def _looking(self) -> list[str]:
        state = ("--policy", "policy", "--state", "state", "--json")
        return ["log", "monitor", f"{self.url}/v1/log/{self.log_name}", *state]

    def launch(self, *before: str) -> None:
        """Start the server, and wait for nothing; `before` are words before its own."""
        environment = self.deployment.environment | dict(self.environment)
        privacy.watch_log(self.log)
        with self.log.open("ab") as sink:
            words = ["countersign", "serve"]
            if before:
                self.process = subprocess.Popen(
                    [*before, sys.executable, "-m", *words],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=sink,
                )
            else:
                self.process = forked.start(words, environment, stdout=sink, stderr=sink)

    def start(self, *before: str) -> None:
        """Start the server, and wait until it is ready."""
        self.launch(*before)
        wait_until(self._is_ready, "ready")

    def _is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()[-4000:]
        return self.readiness()[0] == 200

    def readiness(self) -> tuple[int, Any]:
        """Status and body of `/readyz`; 0: no answer."""
        try:
            with self.client() as anyone:
                response = anyone.get("/readyz")
        except httpx2.TransportError:
            return 0, None
        return response.status_code, response.json()

    def kill(self) -> None:
        """End the server without warning."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> int:
        """Ask the server to end; its exit status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(20)

    def ended(self) -> int:
        """The exit status of a server that ends by itself."""
        assert self.process is not None
        return self.process.wait(30)

    def end(self) -> None:
        """Leave nothing running."""
        for process in (self.process, self.monitor):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait(10)

    def client(self) -> httpx2.Client:
        """A caller with the vendor's key."""
        headers = {"Authorization": f"Bearer {self.api_key}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=30.0, verify=False)

    def load(self) -> Load:
        """Callers, for a `with` block."""
        name = f"p{self.port}n{len(self.loads)}"
        self.loads.append(Load(self.port, self.api_key, self.notice, name, self.pause_seconds))
        return self.loads[-1]

    def doctor(self) -> dict[str, tuple[str, str]]:
        """By check: the worst finding of `countersign doctor`, with its words and remedy."""
        done = self.deployment.run("doctor", "--seconds=60", "--json", check=False)
        found: dict[str, tuple[str, str]] = {}
        for line in json.loads(done.stdout)["lines"]:
            words = f"{line['found']} -> {line['what_to_do']}"
            severity, before = found.get(line["check"], (line["severity"], ""))
            found[line["check"]] = (severity, before + words)
        return found

    def events(self, *names: str) -> list[Any]:
        """The lines of the server's log with these names."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            try:
                said = json.loads(line)
            except ValueError:
                continue
            if said.get("event") in names:
                found.append(said)
        return found

    def judge(self, *, more_is_there: bool = False) -> None:
        """The final conditions of every drill, once the service has recovered.

        `more_is_there`: the database also has others' acknowledged data.
        """
        orders = [order for load in self.loads for order in load.orders]
        assert sum(bool(order.answers) for order in orders) > 50, "there was no load"
        asyncio.run(self._settle(orders))
        for order in orders:
            assert len(set(order.answers)) == 1, f"the replays of {order.key} differ"
        there, answered = Counter(self._ack_ids()), Counter(order.ack_id for order in orders)
        if more_is_there:
            there &= answered
        assert there == answered, "each 200, exactly once"
        self.judge_waits()
        self.judge_chain()

    def judge_waits(self) -> None:
        """No caller waited for long, and readiness was true."""
        tried = [one for load in self.loads for one in load.tried]
        slowest = max(one.seconds for one in tried)
        assert slowest <= WAIT_SECONDS_MAX, slowest
        assert {one.code for one in tried} <= EXPECTED, Counter(one.code for one in tried)
        for load in self.loads:
            found = lies(load.looked, load.tried, self.learns_within)
            assert not found, found

    def judge_chain(self) -> None:
        """The monitor saw one log all the time, and today's head is its end."""
        assert self.monitor is not None
        said = (self.folder / "monitor.log").read_text()
        assert self.monitor.poll() is None, said
        assert '"consistent"' in said
        self.monitor.terminate()
        self.monitor.wait(10)
        self._fetch_policy()
        done = command.run([*self._looking(), "--once"], {"PATH": ""}, directory=self.folder)
        assert json.loads(done.stdout)["status"] == "consistent", done.stdout
        assert not list((self.folder / "state" / "alarms").glob("*"))

    async def _settle(self, orders: Sequence[Order]) -> None:
        """Send every request again: the first response is permanent."""

        async def caller(own: Sequence[Order]) -> None:
            with closing(await Connection.open(self.port, self.api_key)) as connection:
                for order in own:
                    answer = await connection.post(order.path, order.body, order.key)
                    assert answer.status == 200, answer.body
                    assert answer.replayed or not order.answers, (order, answer)
                    order.answers.append(answer.body)

        async with asyncio.TaskGroup() as callers:
            for n in range(CLIENTS):
                callers.create_task(caller(orders[n::CLIENTS]))

    def kept_ids(self) -> set[str]:
        """The acknowledgments in the database."""
        return set(self._ack_ids())

    def _ack_ids(self) -> Iterator[str]:
        with self.client() as client:
            path = "/v1/acknowledgments?limit=100"
            while path:
                page = client.get(path).raise_for_status().json()
                yield from (item["ack_id"] for item in page["data"])
                after = page.get("next_cursor")
                path = after and f"/v1/acknowledgments?limit=100&after={after}"


EXPECTED: Final = {
    "",
    "storage_unavailable",
    "outcome_unknown",
    "idempotency_in_progress",
    "overloaded",
    "blocked",
}
"""The codes that a caller may get during a fault; an internal error is none of them."""
_REFUSED: Final = {"storage_unavailable", "outcome_unknown", "blocked"}
"""The codes of a service that is not ready."""


def lies(
    looked: Sequence[Looked], tried: Sequence[Tried], learns_within: float = _TRUTH_SECONDS
) -> list[str]:
    """Times when `/readyz` said ready while every act was refused, or not ready while none was.

    `learns_within`: for this many seconds it may still say *not ready* after recovery.
    """
    found = []
    for look in looked:
        near = [t for t in tried if -_TRUTH_SECONDS <= t.at - look.at <= 1.0 and t.status]
        accepted = any(one.status == 200 for one in near)
        refused = sum(one.code in _REFUSED for one in near)
        if look.status == 200 and refused >= CLIENTS and not accepted:
            found.append(f"ready at {look.at}, and {refused} acts were refused")
        begun = look.at - learns_within
        said = [one for one in looked if begun <= one.at <= look.at]
        acts = [one for one in tried if begun <= one.at <= look.at + 1.0]
        if (
            looked[0].at <= begun
            and not {one.status for one in said} & {0, 200}
            and not {one.code for one in acts} & _REFUSED
            and _goes_on((one.at for one in said), begun, look.at)
            # Acts before that do not count: the next act may be one that waits.
            and _goes_on((one.at for one in acts if one.status == 200), begun, look.at + 1.0)
        ):
            found.append(f"not ready for {learns_within} s until {look.at}, and acts were done")
    return found


def _goes_on(times: Iterable[float], begun: float, ended: float) -> bool:
    """Whether something happens in each second of this time."""
    return all(after - before <= 1.0 for before, after in pairwise([begun, *sorted(times), ended]))


@contextmanager
def site(
    folder: Path,
    data_dir: Path | None = None,
    environment: Mapping[str, str] | None = None,
    **settings: str,
) -> Iterator[Site]:
    """A deployment with a running server and a monitor; `environment`: more for the server."""
    data_dir, more = data_dir or folder / "data", environment or {}
    with begun(Site(folder=folder, data_dir=data_dir, settings=settings, environment=more)) as made:
        yield made


@contextmanager
def begun(made: Site) -> Iterator[Site]:
    """Begin this one; nothing is left running at the end."""
    try:
        made.begin()
        yield made
    finally:
        made.end()
