"""A real Countersign: the command, a started server, and a client that talks to it over a socket.

It does not reach into the service; a test that uses it sees a vendor's view.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2

from countersign.core.access.key import PEOPLE_SCOPES, Scope
from tests.support import command, forked, privacy

PREFIX = "COUNTERSIGN_"
SERVES: Final = "the-user-of-servers"
"""The user who runs the servers: no act over HTTP is by it, so no audit entry may name it."""
START_SECONDS_MAX = 30.0
# Not the generator that Hypothesis seeds: every process would draw the same ports.
_PORTS: Final = random.SystemRandom()


def free_port() -> int:
    """Find a port that nothing listens on.

    It is below the ephemeral range of Linux and macOS: until it is bound, no connection and no
    other listener of a concurrent test gets it.
    """
    while True:
        port = _PORTS.randrange(10_100, 32_768)  # browsers connect to no port 10080
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """The settings of one deployment, and the command run with them."""

    data_dir: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """This process's environment with the deployment's settings and no others."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(PREFIX)}
        own = {"DATA_DIR": str(self.data_dir)} | dict(self.settings)
        return inherited | {PREFIX + name: value for name, value in own.items()}

    def run(
        self, *arguments: str, check: bool = True, typed: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run `countersign ARGUMENTS` to its end, with this typed in."""
        done = command.run(arguments, self.environment, typed=typed, directory=self.data_dir.parent)
        privacy.watch_command(arguments, done.stdout + done.stderr)
        if check and done.returncode != 0:
            raise AssertionError(f"countersign {' '.join(arguments)}: {done.stderr}{done.stdout}")
        return done

    def read(self, *arguments: str) -> Any:  # noqa: ANN401 - any JSON
        """Run a command with --json, and read its answer."""
        return json.loads(self.run(*arguments, "--json").stdout)

    def account(self, name: str) -> str:
        """Make an account; gives its id."""
        return self.run("accounts", "create", name).stdout.strip()

    def key(self, account: str, mode: str = "test", *options: str) -> str:
        """Make a key; gives the key itself."""
        made = self.run("keys", "create", "--account", account, "--mode", mode, *options)
        return made.stdout.strip()

    def widest_key(self, account: str, mode: str = "test") -> str:
        """Make a key with every scope that an operation needs and no person has to give."""
        of_keys = frozenset(Scope) - PEOPLE_SCOPES - {Scope.CLEARANCES_OVERRIDE}
        scopes = sorted(scope.value for scope in of_keys)
        return self.key(account, mode, *(word for one in scopes for word in ("--scope", one)))


@dataclass(kw_only=True)
class Server:
    """A started server."""

    deployment: Deployment
    url: str
    process: subprocess.Popen[bytes] | forked.Forked
    log: Path

    def client(self, key: str | None = None, **headers: str) -> httpx2.Client:
        """Make a client that sends this key."""
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        # Loopback is plain HTTP, and reading the certificates takes longer than most tests.
        return httpx2.Client(base_url=self.url, headers=headers, timeout=30.0, verify=False)

    def kill(self) -> None:
        """End the process without warning (SIGKILL)."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> int:
        """Ask the process to end (SIGTERM); gives its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


def start_server(deployment: Deployment, **settings: str) -> Server:
    """Start a server on a free port, and wait until it answers.

    The rate limit is off unless `RATE_LIMIT` is given.
    """
    port = free_port()
    own = {"RATE_LIMIT": "off"} | dict(deployment.settings) | settings
    own |= {"HOST": "127.0.0.1", "PORT": str(port)}
    configured = Deployment(data_dir=deployment.data_dir, settings=own)
    log = deployment.data_dir.parent / f"server-{port}.log"
    privacy.watch_log(log)
    with log.open("wb") as sink:
        process = forked.start(
            ["countersign", "serve"],
            configured.environment | {"LOGNAME": SERVES},
            stdout=sink,
            stderr=sink,
        )
    server = Server(deployment=configured, url=f"http://127.0.0.1:{port}", process=process, log=log)
    with server.client() as probe:
        _await_ready(server, probe)
    return server


def _await_ready(server: Server, probe: httpx2.Client) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            raise AssertionError(f"the server ended: {server.log.read_text()}")
        try:
            if probe.get("/readyz").status_code == httpx2.codes.OK:
                return
        except httpx2.TransportError:
            time.sleep(0.02)
    server.kill()
    raise AssertionError(f"the server did not answer in time: {server.log.read_text()}")


@contextmanager
def running_server(deployment: Deployment, **settings: str) -> Iterator[Server]:
    """Run a server; it is stopped at the end."""
    with running(start_server(deployment, **settings)) as server:
        yield server


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """Use a server that was started; it is stopped at the end."""
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()
