"""The contenders as running servers: floor, ceiling, the usual pick, and Countersign."""

import asyncio
import json
import os
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from signal import Signals
from typing import Final

from bench import usual_pick as application
from bench.client import answers, client
from bench.plan import BUYERS, NOTICE_ID, Endpoint
from bench.processes import Child, free_port, run

FLOOR: Final = "floor"
CEILING: Final = "ceiling"
USUAL: Final = "usual"
COUNTERSIGN: Final = "countersign"
WORKERS: Final = "workers"
PREFIX: Final = "COUNTERSIGN_"
ZIP: Final = "94111"
STAND_IN_LINES: Final = 4


@dataclass(slots=True)
class Contender:
    """A started server with the data needed to load it."""

    name: str
    endpoint: Endpoint
    child: Child
    processes: Sequence[Child] = ()
    """The processes that serve its requests: the server, and that of the database if there is
    one."""
    stored: int = 0
    """How many acknowledgments it was filled with."""


@contextmanager
def constant(name: str, folder: Path) -> Iterator[Contender]:
    """Run the floor or the ceiling; it gets requests of the same shape and size as the others."""
    port = free_port()
    endpoint = Endpoint(port, _stand_in_key(), _stand_in_cbids(), STAND_IN_LINES)
    command = [sys.executable, "-m", "bench.floor", str(port)]
    if name == CEILING:
        command = _granian("bench.ceiling:app", "rsgi", port)
    with Child(f"The {name}", command, _environment(), folder / f"{name}.log") as child:
        child.wait_until(lambda: answers(port, endpoint.key))
        yield Contender(name, endpoint, child)


@contextmanager
def usual_pick(folder: Path, database_url: str | None, server: str) -> Iterator[Contender]:
    """Run the usual pick; without a URL on SQLite."""
    url = database_url or f"sqlite+aiosqlite:///{folder / 'usual.db'}"
    port, key, cbids = free_port(), _stand_in_key(), _stand_in_cbids()
    asyncio.run(application.seed(url, key, cbids))
    target = "bench.usual_pick:app"
    command = _uvicorn(target, port) if server == "uvicorn" else _granian(target, "asgi", port)
    environment = {**_environment(), application.URL_VARIABLE: url}
    with Child("The usual pick", command, environment, folder / "usual.log") as child:
        child.wait_until(lambda: answers(port, key))
        yield Contender(USUAL, Endpoint(port, key, cbids, _lines(port, key)), child)


@dataclass(frozen=True, slots=True)
class Installation:
    """A Countersign that was set up: how to run its commands, and a key that works."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    port: int
    key: str


def install(folder: Path, database_url: str | None, command: tuple[str, ...]) -> Installation:
    """Set up Countersign with one account and one test key, as its documentation says."""
    data = folder / "countersign"
    data.mkdir(mode=0o700)
    port = free_port()
    # Without bytecode every start would compile the source again.
    left_out = (PREFIX, "PYTHONDONTWRITEBYTECODE")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(left_out)},
        "COUNTERSIGN_DATA_DIR": str(data),
        "COUNTERSIGN_HOST": "127.0.0.1",
        "COUNTERSIGN_PORT": str(port),
        "COUNTERSIGN_RATE_LIMIT": "off",
    }
    if database_url:
        environment["COUNTERSIGN_DATABASE_URL"] = database_url
    run([*command, "init"], environment)
    account = run([*command, "accounts", "create", "bench"], environment).strip()
    make_key = [*command, "keys", "create", "--account", account, "--mode", "test"]
    return Installation(command, environment, port, run(make_key, environment).strip())


@contextmanager
def serve(
    installed: Installation,
    log: Path,
    wrapper: Sequence[str] = (),
    stop_signal: Signals = Signals.SIGTERM,
) -> Iterator[Child]:
    """Run ``countersign serve``, if wanted under another program, until the context is left."""
    command = [*wrapper, *installed.command, "serve"]
    environment = installed.environment
    with Child("Countersign", command, environment, log, stop_signal=stop_signal) as child:
        child.wait_until(lambda: answers(installed.port, installed.key))
        yield child


def prepare(installed: Installation) -> Endpoint:
    """Prepare a running Countersign for the load: verified buyers."""
    port, key = installed.port, installed.key
    return Endpoint(port, key, _verify_buyers(port, key), _lines(port, key))


@contextmanager
def countersign(
    folder: Path, database_url: str | None, command: tuple[str, ...], workers: int = 1
) -> Iterator[Contender]:
    """Set Countersign up and run it; without a URL on its embedded SQLite."""
    name = COUNTERSIGN if workers == 1 else WORKERS
    own = folder / name
    own.mkdir(mode=0o711)
    installed = install(own, database_url, command)
    installed = replace(
        installed, environment={**installed.environment, "COUNTERSIGN_WORKERS": str(workers)}
    )
    with serve(installed, own / "countersign.log") as child:
        yield Contender(name, prepare(installed), child)


def _verify_buyers(port: int, key: str) -> tuple[str, ...]:
    """Have the buyers verified by the sandbox."""
    bodies = (
        json.dumps(
            {
                "provider_identity_session_id": f"bench_{number:06}",
                "shipping_zip": ZIP,
                "test_mode": True,
            }
        )
        for number in range(BUYERS)
    )
    with client(port, key) as caller:
        return tuple(caller.call("POST", "/v1/buyers/verify", body)["cbid"] for body in bodies)


def _lines(port: int, key: str) -> int:
    with client(port, key) as caller:
        return len(caller.call("GET", f"/v1/notices/{NOTICE_ID}")["bullets"])


def _granian(target: str, interface: str, port: int) -> list[str]:
    return [
        *(sys.executable, "-m", "granian", "--interface", interface, "--loop", "uvloop"),
        *("--workers", "1", "--no-log", "--host", "127.0.0.1", "--port", str(port), target),
    ]


def _uvicorn(target: str, port: int) -> list[str]:
    return [
        *(sys.executable, "-m", "uvicorn", "--loop", "uvloop", "--http", "httptools"),
        *("--no-access-log", "--log-level", "warning"),
        *("--host", "127.0.0.1", "--port", str(port), target),
    ]


def _environment() -> dict[str, str]:
    # The servers must find this package however the run was started.
    root = str(Path(__file__).resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _stand_in_key() -> str:
    return "sk_test_" + secrets.token_hex(20)


def _stand_in_cbids() -> tuple[str, ...]:
    return tuple("cbid_test_" + secrets.token_hex(13) for _ in range(BUYERS))
