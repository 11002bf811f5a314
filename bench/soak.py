"""Half an hour of a shop: ``python -m bench.soak``; ``--help`` lists the options.

Orders begin at a fixed rate, whether or not earlier ones are done (an open loop). Each order is a
verified buyer, a checkout session whose page is opened, an acknowledgment, a clearance, and a
shop's lookups afterwards; all events go to a receiver on this machine. The database is filled
first, so that its caches are full: any further growth is a leak. The whole server is measured,
including its background loops: memory that files do not back, open handles, p99.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import linear_regression, median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import httpx2

from bench.client import client
from bench.load import Load, ensure_wrk, measure
from bench.options import LASTING
from bench.plan import NOTICE_ID, OPERATIONS, USER_AGENT, Call, Endpoint, Operation
from bench.processes import Child, Holding, free_port
from bench.receiver import arrived, is_ready
from bench.rounds import say
from bench.servers import ZIP, install, prepare, serve

CALLS: Final = 11
"""Of one order."""
SAMPLE_SECONDS: Final = 10
SETTLING: Final = 1 / 6
"""The part of the run after which memory must not grow."""
_SEALED_ORDERS: Final = 8
"""An order is certainly sealed this many orders later."""
_READ: Final = 40_000
_READING_SECONDS: Final = 20
_SESSION_SECONDS: Final = 60
"""The least that a link can last: most of the run, sessions also end."""


class Sample(NamedTuple):
    """The server's resources over time."""

    seconds: float
    holding: Holding


@dataclass(slots=True)
class Soak:
    """The observations of a run so far."""

    endpoint: Endpoint
    url: str
    begun: float = field(default_factory=time.monotonic)
    took_ms: list[tuple[float, float]] = field(default_factory=list)
    """Of each call: when it was sent, in seconds from the beginning, and how long it took."""
    samples: list[Sample] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    acknowledged: deque[str] = field(default_factory=lambda: deque(maxlen=_SEALED_ORDERS))

    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.begun


class Order:
    """The calls of one order: a shop's over connections that it keeps, a buyer's over new ones."""

    def __init__(self, soak: Soak, shop: httpx2.AsyncClient) -> None:
        self._soak = soak
        self._shop = shop
        self._name = secrets.token_hex(10)

    async def run(self) -> None:
        """Send them, one after the other."""
        try:
            await self._all()
        except (httpx2.HTTPError, LookupError, ValueError) as error:
            self._soak.wrong.append(repr(error)[:300])

    async def _all(self) -> None:
        soak, name = self._soak, self._name
        await self._get(f"/v1/notices/{NOTICE_ID}")
        buyer = {"provider_identity_session_id": name, "shipping_zip": ZIP, "test_mode": True}
        cbid = (await self._post("/v1/buyers/verify", buyer))["cbid"]
        session = {
            "session_id": name,
            "notice_id": NOTICE_ID,
            "collect": ["acknowledgment"],
            "return_url": "https://shop.example/back",
            "expires_in_seconds": _SESSION_SECONDS,
        }
        made = await self._post("/v1/checkout_sessions", session)
        async with httpx2.AsyncClient(base_url=soak.url, verify=False) as browser:
            await self._call(browser, 200, "GET", f"/c/{made['client_token']}")
        initials = {
            "initials_per_line": ["JD"] * soak.endpoint.lines,
            "session_id": name,
            "cbid": cbid,
            "ip": "203.0.113.7",
            "user_agent": USER_AGENT,
        }
        ack_id = (await self._post(f"/v1/notices/{NOTICE_ID}/acknowledge", initials))["ack_id"]
        order = {
            "ack_id": ack_id,
            "cbid": cbid,
            "session_id": name,
            "shipping_zip": ZIP,
            "product_class": "accessory",
            "shipping_address": {
                "line1": "1 Main Street",
                "city": "San Francisco",
                "state": "CA",
                "postal_code": ZIP,
            },
        }
        if (await self._post("/v1/clearances", order))["cleared"] is not True:
            raise ValueError("an order is not cleared")
        await self._get(f"/v1/buyers/{cbid}/status")
        soak.acknowledged.append(ack_id)
        await self._get(f"/v1/acknowledgments/{soak.acknowledged[0]}/proof")
        await self._get("/v1/events?limit=20")
        stranger = {"Authorization": f"Bearer sk_test_{secrets.token_hex(20)}"}
        await self._call(self._shop, 401, "GET", f"/v1/buyers/{cbid}/status", headers=stranger)

    async def _get(self, path: str) -> None:
        await self._call(self._shop, 200, "GET", path)

    async def _post(self, path: str, body: dict[str, object]) -> dict[str, Any]:
        headers = {"Idempotency-Key": f"{self._name}{len(path)}"}
        answer = await self._call(self._shop, 200, "POST", path, json=body, headers=headers)
        parsed: dict[str, Any] = answer.json()
        return parsed

    async def _call(
        self,
        by: httpx2.AsyncClient,
        expected: int,
        method: str,
        path: str,
        **sent: Any,  # noqa: ANN401 - what httpx takes
    ) -> httpx2.Response:
        begun, seconds = time.perf_counter(), self._soak.elapsed()
        answer = await by.request(method, path, **sent)
        self._soak.took_ms.append((seconds, 1000 * (time.perf_counter() - begun)))
        if answer.status_code != expected:
            raise ValueError(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        return answer


def main() -> int:
    """Run, print a line a minute, and a verdict; 1 if an answer was wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=float, default=40, help="calls a second")
    parser.add_argument("--stored", type=int, default=150_000, help="acknowledgments beforehand")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    with TemporaryDirectory(
        prefix="countersign-soak-", dir=LASTING if LASTING.is_dir() else None
    ) as name:
        return _run(Path(name), options)


def _run(folder: Path, options: argparse.Namespace) -> int:
    wrk, port = ensure_wrk(), free_port()
    installed = install(folder, None, (str(Path(sys.executable).parent / "countersign"),))
    # With a rate limit that filling does not reach, because its memory counts too.
    own = {
        "COUNTERSIGN_WEBHOOK_ALLOW_PRIVATE": "true",
        "COUNTERSIGN_RATE_LIMIT": "1000000/60",
        "COUNTERSIGN_WORKERS": str(options.workers),
    }
    installed = replace(installed, environment={**installed.environment, **own})
    command = [sys.executable, "-m", "bench.receiver", str(port)]
    with (
        Child("The receiver", command, installed.environment, folder / "receiver.log") as receiver,
        serve(installed, folder / "server.log") as server,
    ):
        receiver.wait_until(lambda: is_ready(port))
        endpoint, stored = prepare(installed), 0
        while stored < options.stored:
            filling = measure(wrk, endpoint, OPERATIONS["acknowledge"], Load(64, 5))
            stored += filling.requests
        say(f"{stored:,} acknowledgments stored")
        _read(wrk, endpoint)
        with client(installed.port, installed.key) as caller:
            wanted = json.dumps({"url": f"http://127.0.0.1:{port}/"})
            caller.call("POST", "/v1/webhook_endpoints", wanted)
        soak = Soak(endpoint, f"http://127.0.0.1:{installed.port}")
        asyncio.run(_soaked(soak, server, 60 * options.minutes, options.rate / CALLS))
        return _verdict(soak, arrived(port))


def _read(wrk: Path, endpoint: Endpoint) -> None:
    """Fill the caches for reads with the newest records, which no mapping of the file has."""
    calls, after = list[Call](), ""
    with client(endpoint.port, endpoint.key) as caller:
        while len(calls) < _READ:
            page = caller.call("GET", f"/v1/acknowledgments?limit=100{after}")
            calls += [Call(f"/v1/acknowledgments/{one['ack_id']}") for one in page["data"]]
            after = f"&after={page['next_cursor']}"
    measure(wrk, endpoint, Operation("read", "GET", lambda _: calls), Load(32, _READING_SECONDS))
    say(f"{len(calls):,} of them read")


async def _soaked(soak: Soak, server: Child, seconds: float, orders_a_second: float) -> None:
    headers = {"Authorization": f"Bearer {soak.endpoint.key}"}
    async with (
        httpx2.AsyncClient(base_url=soak.url, verify=False, headers=headers, timeout=30) as shop,
        asyncio.TaskGroup() as tasks,
    ):
        watching = tasks.create_task(_watch(soak, server))
        number = 0
        while (due := number / orders_a_second) < seconds:
            await asyncio.sleep(due - soak.elapsed())
            tasks.create_task(Order(soak, shop).run())
            number += 1
        await asyncio.sleep(seconds - soak.elapsed() + 1)
        watching.cancel()


async def _watch(soak: Soak, server: Child) -> None:
    """Look every few seconds, and report every minute."""
    minute = 1
    _row("minute", "calls", "p50 ms", "p99 ms", "own MB", "PSS MB", "handles", "wrong")
    while True:
        soak.samples.append(Sample(soak.elapsed(), server.holding()))
        if soak.elapsed() >= 60 * minute:
            took = [ms for sent, ms in soak.took_ms if 60 * (minute - 1) <= sent < 60 * minute]
            last = soak.samples[-1].holding
            figures = (f"{median(took):.1f}", f"{_p99(took):.1f}", f"{last.own_mb:.1f}")
            _row(
                *(minute, len(took), *figures, f"{last.pss_mb:.1f}", last.handles, len(soak.wrong))
            )
            minute += 1
        await asyncio.sleep(SAMPLE_SECONDS - soak.elapsed() % SAMPLE_SECONDS)


def _row(*cells: object) -> None:
    sys.stdout.write("  ".join(f"{cell!s:>8}" for cell in cells) + "\n")
    sys.stdout.flush()


def _p99(took: Sequence[float]) -> float:
    return quantiles(took, n=100)[98]


def _verdict(soak: Soak, webhooks: int) -> int:
    whole = soak.samples[-1].seconds
    settled = [one for one in soak.samples if one.seconds >= whole * SETTLING]
    slope, _ = linear_regression(
        [one.seconds / 3600 for one in settled], [one.holding.own_mb for one in settled]
    )
    first, last = (
        [ms for sent, ms in soak.took_ms if begin <= sent / whole < begin + 1 / 3]
        for begin in (0, 2 / 3)
    )
    third = len(settled) // 3
    handles = [
        median(one.holding.handles for one in part) for part in (settled[:third], settled[-third:])
    ]
    slower = _p99(last) / _p99(first)
    rows = [
        ("memory, after a sixth of the time", f"{slope:+.1f} MB an hour", "<= 10", slope <= 10),
        (
            "open handles, first third to last",
            "{:.0f} to {:.0f}".format(*handles),
            "<= +4",
            handles[1] <= handles[0] + 4,
        ),
        (
            "p99, first third to last",
            f"{_p99(first):.1f} to {_p99(last):.1f} ms",
            "<= 1.5 x",
            slower <= 1.5,
        ),
        (
            "calls, and wrong answers",
            f"{len(soak.took_ms):,}, {len(soak.wrong)}",
            "none",
            not soak.wrong,
        ),
        ("webhooks that arrived", f"{webhooks:,}", "", True),
    ]
    for what, value, target, kept in rows:
        sys.stdout.write(f"{what:<36}{value:<24}{target:<10}{'ok' if kept else 'SHORT'}\n")
    for one in soak.wrong[:5]:
        sys.stdout.write(f"  {one}\n")
    return 1 if soak.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
