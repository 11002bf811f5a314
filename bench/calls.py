"""How far a request travels in Countersign's code: ``python -m bench.calls [--json]``.

A function call costs a reader a step and the interpreter about 50 ns. Each operation runs once on a
warm server, in this process and on SQLite, while the interpreter reports every call of a function
in `src/countersign`, on whichever thread. Resuming a coroutine counts as a call.

A live verification needs the simulated providers, whose code is not counted.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Final, TypeAlias

import countersign
from bench.plan import NOTICE_ID
from bench.processes import run
from bench.servers import ZIP, Installation, install
from countersign.bootstrap import open_deployment
from countersign.config import load_settings
from countersign.server.app import App

Ask: TypeAlias = Callable[[int], Awaitable[object]]
"""Sends a request; the number makes it another one each time."""

_SOURCE: Final = f"{Path(countersign.__file__).parent}/"
_WARM_UP: Final = 20
_MEASURED: Final = 20
_PAUSE_SECONDS: Final = 0.02
"""For whatever the request before left to do."""
_VERIFY: Final = "/v1/buyers/verify"


@dataclass(frozen=True, slots=True)
class Journey:
    """What one request called: calls, distinct functions, and the files that they are in."""

    operation: str
    calls: int
    functions: int
    files: int
    most: dict[str, int]
    """How often each function was called, the busiest first."""


class Server:
    """The application without a socket: requests with one key."""

    def __init__(self, app: App, key: str) -> None:
        self._app = app
        self._key = key

    async def ask(self, method: str, path: str, body: object = None, once: str = "") -> Any:  # noqa: ANN401 - any JSON
        """Send a request, and give the JSON of the response, which must be a success."""
        sent = b"" if body is None else json.dumps(body).encode()
        headers = [(b"authorization", f"Bearer {self._key}".encode()), (b"user-agent", b"bench")]
        if sent:
            headers += [(b"content-type", b"application/json")]
        if once:
            headers += [(b"idempotency-key", once.encode())]
        got: list[Any] = []

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": sent, "more_body": False}

        async def send(message: Any) -> None:  # noqa: ANN401 - as ASGI has it
            got.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": b"",
            "headers": headers,
            "client": ("127.0.0.1", 40000),
        }
        await self._app(scope, receive, send)
        start, reply = got
        if start["status"] >= 300:
            message = f"{method} {path}: {start['status']} {reply['body']!r}"
            raise RuntimeError(message)
        return json.loads(reply["body"])


class Trace:
    """What the interpreter reports of every call, on all threads that begin after `install`."""

    def __init__(self) -> None:
        self._calls: Counter[tuple[str, str]] | None = None

    def install(self) -> None:
        """Have it called from now on; it counts only within `of`."""
        threading.setprofile(self._count)
        sys.setprofile(self._count)

    async def of(self, work: Awaitable[object]) -> Counter[tuple[str, str]]:
        """The calls that this leads to, by file and function."""
        calls: Counter[tuple[str, str]] = Counter()
        self._calls = calls
        await work
        self._calls = None
        return calls

    def _count(self, frame: FrameType, event: str, _: object) -> None:
        code, calls = frame.f_code, self._calls
        if calls is not None and event == "call" and code.co_filename.startswith(_SOURCE):
            calls[code.co_filename[len(_SOURCE) :], code.co_qualname] += 1


async def follow(trace: Trace, operation: str, ask: Ask) -> Journey:
    """The calls of one request, the least of several: now and then one also reads a snapshot."""
    for number in range(_WARM_UP):
        await ask(number)
    found = []
    for number in range(_WARM_UP, _WARM_UP + _MEASURED):
        await asyncio.sleep(_PAUSE_SECONDS)
        found.append(await trace.of(ask(number)))
    least = min(found, key=Counter.total)
    return Journey(
        operation=operation,
        calls=least.total(),
        functions=len(least),
        files=len({file for file, _ in least}),
        most={f"{file}:{name}": count for (file, name), count in least.most_common()},
    )


async def measure(installed: Installation) -> list[Journey]:
    """All operations, one after the other."""
    trace = Trace()
    trace.install()
    environment = installed.environment
    async with open_deployment(load_settings(environment)) as deployment, _stripe() as stripe:
        app = App(deployment)
        vendor = Server(app, installed.key)
        buyer = {"provider_identity_session_id": "bench", "shipping_zip": ZIP, "test_mode": True}
        cbid = (await vendor.ask("POST", _VERIFY, buyer))["cbid"]
        lines = len((await vendor.ask("GET", f"/v1/notices/{NOTICE_ID}"))["bullets"])
        initials = {"initials_per_line": ["JD"] * lines, "session_id": "order_1", "cbid": cbid}
        acknowledge = f"/v1/notices/{NOTICE_ID}/acknowledge"
        asks: dict[str, Ask] = {
            "notice": lambda _: vendor.ask("GET", f"/v1/notices/{NOTICE_ID}"),
            "status": lambda _: vendor.ask("GET", f"/v1/buyers/{cbid}/status"),
            "acknowledge": lambda n: vendor.ask("POST", acknowledge, initials, f"key_{n}"),
        }
        if stripe is not None:
            live = Server(app, await asyncio.to_thread(_live_key, installed, stripe))
            session = next(s for s in stripe.simulator.sessions if s.scenario == "verified")
            body = {
                "provider_identity_session_id": session.session_id,
                "shipping_zip": session.shipping_zip,
            }
            if session.subject_reference is not None:
                body["subject_reference"] = session.subject_reference
            asks["live verification"] = lambda n: live.ask("POST", _VERIFY, body, f"key_{n}")
        return [await follow(trace, name, ask) for name, ask in asks.items()]


@dataclass(frozen=True, slots=True)
class _Served:
    simulator: Any
    url: str


@asynccontextmanager
async def _stripe() -> AsyncIterator[_Served | None]:
    """Stripe Identity, simulated; None where the simulators are not installed."""
    try:
        registry = import_module("countersign_simulators.registry")
        server = import_module("countersign_simulators.server")
    except ImportError:
        yield None
        return
    simulator = registry.SIMULATORS["stripe"](time.time)
    async with server.serve(simulator) as served:
        yield _Served(simulator, served.url)


def _live_key(installed: Installation, stripe: _Served) -> str:
    """A live key of the account, whose buyers this provider verifies from now on."""
    command, environment = installed.command, dict(installed.environment)
    environment["COUNTERSIGN_PROVIDER_CREDENTIALS"] = json.dumps(stripe.simulator.credentials)
    configure = ["accounts", "verification", "set", "bench", "--provider", "stripe"]
    run([*command, *configure, "--dangerous-base-url", stripe.url, "--yes"], environment)
    make_key = [*command, "keys", "create", "--account", "bench", "--mode", "live"]
    return run(make_key, environment).strip()


def main() -> None:
    """Measure, and print a table, or JSON with the calls of each function."""
    parser = ArgumentParser(prog="python -m bench.calls", description=__doc__)
    parser.add_argument("--json", action="store_true", help="all that was counted, as JSON")
    options = parser.parse_args()
    command = (str(Path(sys.executable).parent / "countersign"),)
    with TemporaryDirectory(prefix="countersign-calls-") as folder:
        found = asyncio.run(measure(install(Path(folder), None, command)))
    if options.json:
        sys.stdout.write(json.dumps([asdict(journey) for journey in found], indent=2) + "\n")
        return
    for journey in found:
        sys.stdout.write(
            f"{journey.operation:<18}{journey.calls:>6} calls of {journey.functions:>4} functions "
            f"in {journey.files:>3} files\n"
        )


if __name__ == "__main__":
    main()
