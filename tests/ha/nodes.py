"""Three nodes on this machine: etcd, PostgreSQL under Patroni, and HAProxy, each with an address.

The files are those that `deploy/ha/prepare.sh` makes for an operator. Only the paths differ, and
the ports on 127.0.0.1, which the nodes share here.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

import psycopg

from tests.ha.network import joined
from tests.support.service import free_port

PREPARE: Final = Path(__file__).parents[2] / "deploy" / "ha" / "prepare.sh"
PROGRAMS: Final = ("patroni", "patronictl", "etcd", "haproxy", "pgbackrest", "setpriv", "openssl")
_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_ACCOUNT: Final = "postgres"
_SECONDS: Final = 90.0
PARTS: Final = ("etcd", "patroni", "haproxy")


def missing() -> str | None:
    """The missing Debian packages; None: nothing."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]
    if absent:
        return f"no {', '.join(absent)}"
    if os.geteuid() != 0:
        return "no root, which starts PostgreSQL as another user"
    return None if _postgresql() else "no PostgreSQL in /usr/lib/postgresql"


def _postgresql() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_rewind"))
    return found[-1].parent if found else None


def wait(happened: Callable[[], bool], what: str, seconds: float = _SECONDS) -> None:
    """Wait until this is so, or fail by naming it. A failover takes longer than other waits."""
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, what
        time.sleep(0.05)


@dataclass(kw_only=True)
class Node:
    """One of the three machines."""

    name: str
    address: str
    root: Path
    database_port: int = field(default_factory=free_port)
    """Of HAProxy, for the database; 5000 at an operator's."""
    front_port: int = field(default_factory=free_port)
    """Of HAProxy, for callers; 8000."""
    service_port: int = field(default_factory=free_port)
    """Of the service; 8080."""
    space: str | None = None
    """Its network namespace, if it has one of its own."""
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def inside(self) -> list[str]:
        """Words before a command that is to run in this node's network."""
        return [] if self.space is None else ["nsenter", f"--net=/run/netns/{self.space}"]

    @property
    def front(self) -> Path:
        """The address for callers of a node with its own network."""
        return self.root / "run/front"

    def move_in(self) -> None:
        """Have the files of this node name its paths and ports."""
        said = {
            "/var/lib/pgbackrest": f"{self.root.parent}/backups",
            "/etc/": f"{self.root}/etc/",
            "/var/lib/": f"{self.root}/var/lib/",
            "/run/postgresql": f"{self.root}/run",
            "127.0.0.1:5000": f"127.0.0.1:{self.database_port}",
            "127.0.0.1:8000": f"127.0.0.1:{self.front_port}",
            "127.0.0.1:8080": f"127.0.0.1:{self.service_port}",
        }
        if self.space is not None:
            said["127.0.0.1:8000"] = f"unix@{self.front}"
        for file in (self.root / "etc").rglob("*"):
            if file.is_file():
                text = file.read_text()
                for theirs, ours in said.items():
                    text = text.replace(theirs, ours)
                file.write_text(text)
        for folder in ("run", "var/lib/etcd", "var/lib/postgresql"):
            (self.root / folder).mkdir(parents=True)

    def start(self, *parts: str) -> None:
        """Start these parts, or all; they are ended with the block."""
        etcd = dict(
            line.split("=", 1)
            for line in (self.root / "etc/default/etcd").read_text().splitlines()
            if line and not line.startswith("#")
        )
        configured = self.root / "etc"
        if "etcd" in (parts or PARTS):
            self._start("etcd", "KILL", "etcd", environment=etcd)
        if "patroni" in (parts or PARTS):
            # By SIGTERM it stops PostgreSQL, too.
            self._start("patroni", "TERM", "patroni", configured / "patroni/config.yml")
        if "haproxy" in (parts or PARTS):
            words = ("haproxy", "-db", "-f", configured / "haproxy/haproxy.cfg")
            self._start("haproxy", "KILL", *words, as_root=True)

    def _start(
        self,
        part: str,
        last: str,
        *words: str | Path,
        environment: dict[str, str] | None = None,
        as_root: bool = False,
    ) -> None:
        account = [] if as_root else ["--reuid", _ACCOUNT, "--regid", _ACCOUNT, "--clear-groups"]
        with (self.root / f"{part}.log").open("ab") as sink:
            self.running[part] = subprocess.Popen(
                [*self.inside, "setpriv", *account, "--pdeathsig", last, *map(str, words)],
                env={"PATH": _PATH, "LC_ALL": "C.UTF-8", "HOME": str(self.root)}
                | (environment or {}),
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )

    def asked(self, path: str) -> int:
        """The status of Patroni's interface, as HAProxy asks it; 0: no response."""
        trusted = ssl.create_default_context(cafile=str(self.root / "etc/patroni/ca.pem"))
        with suppress(URLError, OSError):
            answer = urlopen(f"https://{self.address}:8008{path}", timeout=2, context=trusted)
            with answer:
                return int(answer.status)
        return 0

    def asked_inside(self, path: str) -> int:
        """The same, as this node itself hears it; 0: nothing."""
        trusted = ("--cacert", self.root / "etc/patroni/ca.pem")
        shown = ("--output", "/dev/null", "--write-out", "%{http_code}", "--max-time", "2")
        words = ("curl", "--silent", *trusted, *shown, f"https://{self.address}:8008{path}")
        done = subprocess.run(
            [*self.inside, *map(str, words)], capture_output=True, text=True, check=False
        )
        return int(done.stdout)

    def run(self, *words: str | Path, typed: str = "") -> str:
        """Run this as the database's account, as an operator types it there; gives its words."""
        done = subprocess.run(
            [
                "setpriv",
                "--reuid",
                _ACCOUNT,
                "--regid",
                _ACCOUNT,
                "--clear-groups",
                *map(str, words),
            ],
            env={
                "PATH": f"{_PATH}:{_postgresql()}",
                "LC_ALL": "C.UTF-8",
                "PGBACKREST_CONFIG": str(self.root / "etc/pgbackrest/pgbackrest.conf"),
            },
            cwd=self.root,
            input=typed,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    @property
    def data(self) -> Path:
        """Of PostgreSQL."""
        return self.root / "var/lib/postgresql/countersign"

    def stop(self) -> None:
        """End Patroni as `systemctl stop` does, which stops PostgreSQL first."""
        self.running["patroni"].terminate()
        self.running["patroni"].wait(_SECONDS)
        assert not self._database()

    @contextmanager
    def administrator(self) -> Iterator[psycopg.Connection]:
        """A session of the administrator in the service's database."""
        said = (self.root / "etc/patroni/config.yml").read_text()
        password = said.split("username: postgres", 1)[1].split("password: ", 1)[1].split()[0]
        with psycopg.connect(
            host=self.address,
            user="postgres",
            password=password,
            dbname="countersign",
            sslmode="require",
            autocommit=True,
        ) as connection:
            yield connection

    def _database(self) -> list[int]:
        """The processes of PostgreSQL."""
        file = self.data / "postmaster.pid"
        with suppress(OSError, IndexError):
            main = int(file.read_text().splitlines()[0])
            if str(self.root).encode() in Path(f"/proc/{main}/cmdline").read_bytes():
                children = Path(f"/proc/{main}/task/{main}/children").read_text()
                return [main, *map(int, children.split())]
        return []

    def send(self, number: int) -> None:
        """Send PostgreSQL and its Patroni a signal, such as SIGKILL."""
        # Patroni first: else it would see PostgreSQL end.
        for process in (self.running["patroni"].pid, *self._database()):
            with suppress(ProcessLookupError):
                os.kill(process, number)
        if number == signal.SIGKILL:
            self.running["patroni"].wait(10)
            wait(lambda: not self._database(), f"the end of PostgreSQL on {self.name}")

    def kill(self, part: str) -> None:
        """End one part, which is not Patroni, without warning."""
        self.running[part].kill()
        self.running[part].wait(10)

    def end(self) -> None:
        """Leave nothing running."""
        for process in self.running.values():
            process.kill()
            process.wait(10)
        for process_id in self._database():
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        wait(lambda: not self._database(), f"the end of {self.name}")

    def said(self) -> str:
        """The last words of each part, for who reads a failure."""
        logs = sorted(self.root.glob("*.log"))
        return "\n".join(f"{log}\n{log.read_text(errors='replace')[-2500:]}" for log in logs)


@dataclass(kw_only=True)
class Nodes:
    """All three."""

    each: list[Node]

    @property
    def primary(self) -> Node | None:
        """The node that Patroni says leads."""
        return next((node for node in self.each if node.asked("/primary") == 200), None)

    @property
    def standby(self) -> Node | None:
        """The synchronous standby."""
        return next((node for node in self.each if node.asked("/sync") == 200), None)

    def is_whole(self) -> bool:
        """Whether one leads, one follows as synchronous standby, and the third follows, too."""
        paths = ("/primary", "/sync", "/async")
        return all(any(node.asked(path) == 200 for node in self.each) for path in paths)

    def until_whole(self) -> None:
        """Wait for that."""
        try:
            wait(self.is_whole, "a leader, a synchronous standby and another one")
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), *(n.said() for n in self.each)])) from None

    def etcd_leader(self) -> Node | None:
        """The node whose etcd says that it leads."""
        for node in self.each:
            tls = node.root / "etc/etcd"
            words = [
                "--cert",
                tls / "node.pem",
                "--key",
                tls / "node.key",
                "--cacert",
                tls / "ca.pem",
            ]
            done = subprocess.run(
                ["curl", "--silent", *map(str, words), f"https://{node.address}:2379/metrics"],
                capture_output=True,
                text=True,
                check=False,
            )
            if "\netcd_server_is_leader 1\n" in done.stdout:
                return node
        return None


@contextmanager
def three_nodes(*, apart: bool = False) -> Iterator[Nodes]:
    """Three nodes that run; `apart`: each has its own network, which can be cut off."""
    # Not in the folder of a test: the path of a Unix socket has room for about 100 characters.
    home = Path(tempfile.mkdtemp(prefix="countersign-ha-", dir="/tmp"))
    home.chmod(0o755)
    # Other runs on this machine have other addresses. The ports are an operator's.
    system = random.SystemRandom()
    net = f"{10 if apart else 127}.{system.randrange(2, 250)}.{system.randrange(250)}"
    each = [
        Node(name=f"db{n}", address=f"{net}.{n}", root=home / "nodes" / f"db{n}") for n in (1, 2, 3)
    ]
    with joined(each, f"{net}.254") if apart else nullcontext():
        try:
            _prepare(home, each)
            for node in each:
                node.start()
            made = Nodes(each=each)
            made.until_whole()
            yield made
        finally:
            _end(each)
            shutil.rmtree(home, ignore_errors=True)


@contextmanager
def ways_in(nodes: Nodes) -> Iterator[None]:
    """For callers of nodes that are apart: each front has its port on this machine."""
    home = nodes.each[0].root.parent
    listens = "".join(
        f"listen {node.name}\n  bind 127.0.0.1:{node.front_port}\n  server here unix@{node.front}\n"
        for node in nodes.each
    )
    defaults = "defaults\n  mode tcp\n" + "".join(
        f"  timeout {which} 1h\n" for which in ("connect", "client", "server")
    )
    (home / "ways-in.cfg").write_text(defaults + listens)
    words = ["setpriv", "--pdeathsig", "KILL", "haproxy", "-db", "-f", str(home / "ways-in.cfg")]
    with (home / "ways-in.log").open("ab") as sink:
        running = subprocess.Popen(words, env={"PATH": _PATH}, stdout=sink, stderr=sink)
    try:
        yield
    finally:
        running.kill()
        running.wait(10)


def _prepare(home: Path, each: Iterable[Node]) -> None:
    words = [f"{node.name}={node.address}" for node in each]
    environment = {"PATH": _PATH, "POSTGRESQL": str(_postgresql())}
    environment["PUBLIC_URL"] = "https://countersign.example.com"
    done = subprocess.run(
        [PREPARE, home / "nodes", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    for node in each:
        node.move_in()
    subprocess.run(["chown", "-R", f"{_ACCOUNT}:", home / "nodes"], check=True)


def _end(each: Iterable[Node]) -> None:
    for node in each:
        if node.running:
            node.end()
