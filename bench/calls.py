"""How far a request travels in Countersign's code: ``python -m bench.calls [--json]``.

A function call costs a reader a step and the interpreter about 50 ns. Each operation runs alone on
a warm server, in this process and on SQLite, while the interpreter reports every call of a function
of ours, on whichever thread. Comprehensions and resuming after an `await` do not count, so that
every version of Python counts the same. The least of several runs is reported, since a loop in the
background sometimes delays one.

A live verification needs the simulated providers, whose code is not counted.
"""

from __future__ import annotations

import asyncio
import dis
import json
import re
import sys
import threading
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from bench.plan import NOTICE_ID
from bench.processes import run
from bench.servers import ZIP, Installation, install
from countersign.base import snapshot
from countersign.base.config import load_settings
from countersign.base.snapshot import STALENESS_SECONDS
from countersign.operate.bootstrap import open_deployment
from countersign.server.app import App

Ask: TypeAlias = Callable[[int], Awaitable[object]]
"""Sends a request; the number makes it another one each time."""

_OURS: Final = tuple(
    f"{Path(spec.origin).parent}/"
    for name in ("countersign", "countersign_evidence")
    if (spec := find_spec(name)) is not None and spec.origin is not None
)
_COMPREHENSIONS: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_FIELD: Final = re.compile(r'<input[^>]* name="([^"]+)"(?:[^>]*? value="([^"]*)")?')
_WARM_UP: Final = 5
_MEASURED: Final = 8
_PAUSE_SECONDS: Final = 0.02
"""For whatever the request before left to do."""
_LASTING_SECONDS: Final = 3600.0
_VERIFY: Final = "/v1/buyers/verify"
_CHECKOUT: Final = {
    "return_url": "https://shop.example/back",
    "collect": ["identity", "acknowledgment"],
    "notice_id": NOTICE_ID,
    "shipping_zip": ZIP,
}


@dataclass(frozen=True, slots=True)
class Journey:
    """The calls of one request: their number, distinct functions, and files."""

    operation: str
    calls: int
    functions: int
    files: int
    most: dict[str, int]
    """How often each function was called, the busiest first."""


class Server:
    """The application without a socket: requests with one key."""

    def __init__(self, app: App, key: str) -> None:
        self.app = app
        self._key = key

    async def ask(self, method: str, path: str, body: object = None, once: str = "") -> Any:  # noqa: ANN401 - any JSON
        """Send a request, and give the JSON of the response, which must be a success."""
        sent = b"" if body is None else json.dumps(body).encode()
        headers = [(b"authorization", f"Bearer {self._key}".encode()), (b"user-agent", b"bench")]
        if sent:
            headers += [(b"content-type", b"application/json")]
        if once:
            headers += [(b"idempotency-key", once.encode())]
        start, reply = await answered(self.app, method, path, headers, sent)
        if start["status"] >= 300:
            message = f"{method} {path}: {start['status']} {reply['body']!r}"
            raise RuntimeError(message)
        return json.loads(reply["body"])


class Page:
    """The hosted page of one checkout session, in a browser that has its link."""

    def __init__(self, app: App, session: dict[str, Any]) -> None:
        self._app = app
        self._link = f"/c/{session['client_token']}"
        self._root = f"/c/{session['checkout_session_id']}"
        self._cookies: dict[str, str] = {}
        self._form = ""

    async def reviewed(self) -> None:
        """Go on until nothing is left but to accept: a verified buyer, initials, the review."""
        await self._ask("GET", self._link)
        await self.open()
        await self.send("identity", outcome="verified")
        await self.open()
        shown = dict(_FIELD.findall(self._form))
        await self.send("initials", **dict.fromkeys((n for n in shown if "initials_" in n), "JD"))
        await self.open()

    async def open(self) -> None:
        """Load the page of the state that the session is in."""
        self._form = await self._ask("GET", self._root)

    async def send(self, what: str, **changes: str) -> None:
        """Send a form of the page that was loaded last."""
        form = self._form.partition(f'action="{self._root}/{what}"')[2].partition("</form>")[0]
        fields = dict(_FIELD.findall(form)) | changes
        await self._ask("POST", f"{self._root}/{what}", urlencode(fields).encode())

    async def _ask(self, method: str, path: str, sent: bytes = b"") -> str:
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        kind = (b"content-type", b"application/x-www-form-urlencoded")
        headers = [(b"cookie", cookies.encode()), kind, (b"user-agent", b"bench")]
        start, reply = await answered(self._app, method, path, headers, sent)
        if start["status"] not in {200, 303}:
            message = f"{method} {path}: {start['status']} {reply['body']!r}"
            raise RuntimeError(message)
        for name, value in start["headers"]:
            if name == b"set-cookie":
                key, _, text = value.decode().partition(";")[0].partition("=")
                self._cookies[key] = text
        return str(reply["body"].decode())


async def answered(
    app: App, method: str, path: str, headers: list[tuple[bytes, bytes]], sent: bytes
) -> tuple[Any, Any]:
    """The application's messages: the start of the response, and its body."""
    got: list[Any] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": sent, "more_body": False}

    async def send(message: Any) -> None:  # noqa: ANN401 - as ASGI has it
        got.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), *headers],
        "client": ("127.0.0.1", 40000),
    }
    await app(scope, receive, send)
    start, reply = got
    return start, reply


class Trace:
    """Records every call reported by the interpreter, on threads that begin after `install`."""

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
        if calls is None or event != "call" or code.co_name in _COMPREHENSIONS:
            return
        source = next((one for one in _OURS if code.co_filename.startswith(one)), None)
        if source is not None and frame.f_lasti <= _begins(code):
            calls[code.co_filename[len(source) :], code.co_qualname] += 1


@cache
def _begins(code: CodeType) -> int:
    """The first line of a function's code; a resumed one continues at a later line."""
    return next(i.offset for i in dis.get_instructions(code) if i.opname == "RESUME")


async def follow(trace: Trace, operation: str, ask: Ask, before: Ask | None = None) -> Journey:
    """The calls of one request, the least of several; `before` it others may have to be sent."""
    found = []
    for number in range(_WARM_UP + _MEASURED):
        if before is not None:
            await before(number)
        if number >= _WARM_UP:
            # Extra work on a slow machine does not count: snapshots are read again.
            snapshot.STALENESS_SECONDS = _LASTING_SECONDS  # type: ignore[misc]
            await asyncio.sleep(_PAUSE_SECONDS)
        found.append(await trace.of(ask(number)))
    snapshot.STALENESS_SECONDS = STALENESS_SECONDS  # type: ignore[misc]
    least = min(found[_WARM_UP:], key=Counter.total)
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
    # With the limits on the rate of requests that a server has by default.
    limited = {"COUNTERSIGN_RATE_LIMIT"}
    environment = {k: v for k, v in installed.environment.items() if k not in limited}
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
        found = [await follow(trace, name, ask) for name, ask in asks.items()]
        pages: dict[int, Page] = {}

        async def reviewed(number: int) -> None:
            session = await vendor.ask(
                "POST", "/v1/checkout_sessions", {**_CHECKOUT, "session_id": f"cart_{number}"}
            )
            pages[number] = Page(app, session)
            await pages[number].reviewed()

        async def accept(number: int) -> None:
            await pages[number].send("accept", agreement="yes", consent="yes")

        return [*found, await follow(trace, "accept", accept, reviewed)]


@dataclass(frozen=True, slots=True)
class _Served:
    simulator: Any
    url: str


@asynccontextmanager
async def _stripe() -> AsyncIterator[_Served | None]:
    """Stripe Identity, simulated; None if the simulators are not installed."""
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
