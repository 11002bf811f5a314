"""Two servers with two workers each on three nodes: a `Site` whose port is HAProxy's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Final
from uuid import uuid4

from tests.cli.serving import wait_until
from tests.drills.load import Load, of_status
from tests.drills.site import WAIT_SECONDS_MAX, Site
from tests.ha.nodes import Node, Nodes, three_nodes, wait, ways_in
from tests.support import forked, privacy
from tests.support.service import Deployment

DRAIN_SECONDS: Final = 2
SERVERS: Final = 2


@dataclass(kw_only=True)
class Service(Site):
    """What is judged; `hosts`: the servers are given all three databases, and no HAProxy."""

    # Readiness is that of one of four processes. A process without callers finds out by its own
    # try, and the try before may wait for as long as a caller's act.
    learns_within: ClassVar = WAIT_SECONDS_MAX
    # Some 60 calls a second: two times three nodes share two cores.
    pause_seconds: ClassVar = 0.12

    nodes: Nodes
    hosts: bool
    given: dict[str, dict[str, str]] = field(default_factory=dict)
    """By the name of a node: more settings of its server."""
    release: Path | None = None
    """The folder with the release to start, if it is not this one."""

    def __post_init__(self) -> None:
        """Nothing runs yet."""
        self.servers: list[Any] = []

    def prepare(self) -> None:
        """Make the tables as their owner, and grant the servers' role its rights."""
        self.deployment.run("init")
        self.deployment.run("database", "grants", "--role", "countersign_app", "--apply")

    def url_of(self, node: Node, role: str, *, hosts: bool) -> str:
        """The URL that is in the file of this role; `hosts`: with all of them, not HAProxy."""
        file = node.root / f"etc/countersign/{role}.toml"
        url: str = tomllib.loads(file.read_text())["database_url"]
        if not hosts:
            return url
        # As docs/high-availability.md has it.
        every = ",".join(node.address for node in self.nodes.each)
        url = url.replace(f"127.0.0.1:{node.database_port}", every)
        return f"{url}&target_session_attrs=read-write"

    def launch(self, *_: str) -> None:
        """Start the servers on the first two nodes."""
        self.servers = [self.serve(node) for node in self.nodes.each[:SERVERS]]
        self.process = self.servers[0]

    def serve(self, node: Node) -> forked.Forked | subprocess.Popen[bytes]:
        """Start the server of this node."""
        data_dir = self.folder / f"data-{node.name}"
        if not data_dir.exists():
            # A machine of its own has keys of its own; the place for heads is shared.
            shutil.copytree(self.data_dir, data_dir, ignore=shutil.ignore_patterns("heads"))
        own = (
            dict(self.settings)
            | {
                "DATABASE_URL": self.url_of(node, "app", hosts=self.hosts),
                "DRAIN_SECONDS": str(DRAIN_SECONDS),
                "PORT": str(node.service_port),
                "RATE_LIMIT": "off",
                "WORKERS": "2",
            }
            | self.given.get(node.name, {})
        )
        environment = Deployment(data_dir=data_dir, settings=own).environment
        privacy.watch_log(self.log)
        with self.log.open("ab") as sink:
            words = ["countersign", "serve"]
            if self.release is not None:
                environment["PYTHONPATH"] = str(self.release)
            elif not node.inside:
                return forked.start(words, environment, stdout=sink, stderr=sink)
            return subprocess.Popen(
                [*node.inside, "setpriv", "--pdeathsig", "KILL", sys.executable, "-m", *words],
                env=environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )

    def restart(self, number: int) -> None:
        """Restart a server as an operator does, and wait until HAProxy uses it."""
        self.stop_server(number)
        self.servers[number] = self.serve(self.nodes.each[number])
        wait_until(lambda: self.readiness_of(number)[0] == 200, f"server {number}")

    def stop_server(self, number: int) -> None:
        """Stop a server as an operator does."""
        self.servers[number].terminate()
        assert self.servers[number].wait(30) == 0

    def readiness_of(self, number: int) -> tuple[int, Any]:
        """The readiness of this server."""
        port = self.nodes.each[number].service_port
        own = Site(folder=self.folder, data_dir=self.data_dir, settings={}, port=port)
        own.api_key = self.api_key
        return own.readiness()

    def workers_of(self, number: int) -> list[int]:
        """The processes that answer for a server."""
        main = self.servers[number].pid
        return [*map(int, Path(f"/proc/{main}/task/{main}/children").read_text().split())]

    def begin_anew(self) -> None:
        """For another test: callers of a new account, and a monitor, which `judge` has ended.

        What earlier tests were answered is not asked for again each time.
        """
        self.loads.clear()
        self.api_key = self.deployment.key(self.deployment.account(uuid4().hex))
        assert self.monitor is not None
        if self.monitor.poll() is not None:
            self.watch()

    def watch_again(self) -> None:
        """End the monitor, and have one watch that knows nothing of before."""
        assert self.monitor is not None
        self.monitor.kill()
        self.monitor.wait(10)
        shutil.rmtree(self.folder / "state")
        (self.folder / "monitor.log").unlink()
        self.watch()

    def end(self) -> None:
        """Leave nothing running."""
        for server in self.servers:
            if server.poll() is None:
                workers = self.workers_of(self.servers.index(server))
                server.kill()
                server.wait(10)
                for worker in workers:
                    _kill(worker)
        super().end()


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def until(load: Load, number: int = 100) -> None:
    """Wait for this many more successful acts: the service has recovered."""
    begun = len(load.tried)
    wait(lambda: len(of_status(load.tried[begun:], 200)) >= number, f"{number} acts")
    load.until_ready(200, "ok")


def calls_at(broken: Service, node: Node) -> Load:
    """More callers, for a `with` block, who come in by this node."""
    name = f"{node.name}n{len(broken.loads)}"
    made = Load(node.front_port, broken.api_key, broken.notice, name, broken.pause_seconds)
    broken.loads.append(made)
    return made


def longest_gap(load: Load) -> float:
    """The longest time in seconds without a successful act."""
    done = sorted(tried.at for tried in of_status(load.tried, 200))
    return max(after - before for before, after in pairwise(done))


@contextmanager
def service(folder: Path, *, hosts: bool, apart: bool = False) -> Iterator[Service]:
    """Three nodes, two servers and a monitor that watches their log through HAProxy.

    `apart`: each node is a network of its own. The first leads then, and has a server, and callers
    come in by the second.
    """
    with three_nodes(apart=apart) as nodes, ExitStack() as more:
        if apart:
            primary = nodes.primary
            nodes.each.sort(key=lambda node: node is not primary)
            more.enter_context(ways_in(nodes))
        made = Service(
            folder=folder,
            data_dir=folder / "data",
            settings={},
            port=nodes.each[int(apart)].front_port,
            nodes=nodes,
            hosts=hosts,
        )
        made.settings = {
            # From outside of the nodes no HAProxy of theirs is in reach.
            "DATABASE_URL": made.url_of(nodes.each[0], "owner", hosts=hosts or apart),
            "LOG_HEAD_DIR": str(folder / "heads"),
            "WEBHOOK_ALLOW_PRIVATE": "true",
        }
        try:
            made.prepare()
            made.begin()
            yield made
        finally:
            made.end()
