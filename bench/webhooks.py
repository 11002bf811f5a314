"""Delivering webhooks: ``python -m bench.webhooks``; ``--help`` lists the options.

How fast what waits is delivered to a fast receiver on this machine, and what that does to the
slowest answers of acknowledging meanwhile. Receiver, server and load generator share the cores.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import Connection

from bench.client import client
from bench.load import Load, Measurement, ensure_wrk, measure, measure_warm
from bench.options import LASTING
from bench.plan import OPERATIONS
from bench.processes import Child, free_port
from bench.rounds import say
from bench.servers import Installation, install, prepare, serve
from countersign.access.account import all_accounts
from countersign.bootstrap import Deployment, open_deployment
from countersign.config import load_settings
from countersign.events.model import EventType, NewEvent
from countersign.events.sql import write_events
from countersign.mode import Mode

CONNECTIONS: Final = 32
PATIENCE_SECONDS: Final = 120


class Drain(NamedTuple):
    """How many messages arrived, in how many seconds."""

    messages: int
    seconds: float

    @property
    def per_second(self) -> float:
        """The rate."""
        return self.messages / self.seconds


class Round(NamedTuple):
    """What one round has measured."""

    alone: Drain
    loaded: Drain
    calm: Measurement
    busy: Measurement


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.webhooks", description=__doc__)
    parser.add_argument("--deliveries", type=int, default=10_000, help="how many wait")
    parser.add_argument("--seconds", type=int, default=6, help="length of one load")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found: list[Round] = []
    with TemporaryDirectory(
        prefix="countersign-bench-", dir=LASTING if LASTING.is_dir() else None
    ) as name:
        for number in range(options.rounds):
            folder = Path(name) / str(number)
            folder.mkdir()
            found.append(_round(folder, options.deliveries, options.seconds))
            say(f"round {number + 1}: {found[-1]}")
    calm, busy = median(r.calm.p99_ms for r in found), median(r.busy.p99_ms for r in found)
    rows = [
        ("drained, nothing else to do", f"{median(r.alone.per_second for r in found):,.0f}/s", ""),
        (
            "drained while acknowledging",
            f"{median(r.loaded.per_second for r in found):,.0f}/s",
            ">= 1,000/s",
        ),
        (
            "acknowledging meanwhile",
            (
                f"{median(r.busy.per_second for r in found):,.0f}/s"
                f" (before: {median(r.calm.per_second for r in found):,.0f}/s)"
            ),
            "",
        ),
        ("p99 of acknowledging", f"{calm:.1f} ms, then {busy:.1f} ms", ""),
        ("slower by", f"{busy / calm:.2f} x", "<= 2 x"),
    ]
    for what, value, target in rows:
        sys.stdout.write(f"{what:<30}  {value:<40}  {target}\n")


def _round(folder: Path, deliveries: int, seconds: int) -> Round:
    wrk = ensure_wrk()
    installed = install(folder, None, (str(Path(sys.executable).parent / "countersign"),))
    installed = replace(
        installed,
        environment={**installed.environment, "COUNTERSIGN_WEBHOOK_ALLOW_PRIVATE": "true"},
    )
    port = free_port()
    command = [sys.executable, "-m", "bench.receiver", str(port)]
    with (
        Child("The receiver", command, installed.environment, folder / "receiver.log") as receiver,
        serve(installed, folder / "server.log"),
        ThreadPoolExecutor(1) as apart,
    ):
        receiver.wait_until(lambda: is_ready(port))
        # Of another type than what acknowledging leads to, so that all of them are counted.
        wanted = {"url": f"http://127.0.0.1:{port}/", "event_types": ["notice.published"]}
        with client(installed.port, installed.key) as caller:
            caller.call("POST", "/v1/webhook_endpoints", msgspec.json.encode(wanted).decode())
        _happen(installed, deliveries)
        alone = _drained(port, deliveries)
        endpoint, load = prepare(installed), Load(CONNECTIONS, seconds)
        acknowledge = OPERATIONS["acknowledge"]
        calm = measure_warm(wrk, endpoint, acknowledge, load)
        _happen(installed, deliveries)
        drained = apart.submit(_drained, port, deliveries)
        busy = measure(wrk, endpoint, acknowledge, load)
        return Round(alone, drained.result(), calm, busy)


def _happen(installed: Installation, number: int) -> None:
    """Write events as an act does, all in one transaction."""

    async def write() -> None:
        async with open_deployment(load_settings(installed.environment)) as deployment:
            await deployment.database.write_batched(_write, await _events(deployment, number))

    asyncio.run(write())


async def _events(deployment: Deployment, number: int) -> Sequence[NewEvent]:
    (account,) = await deployment.database.scan(all_accounts)
    now, type_ = datetime.now(tz=UTC), EventType.NOTICE_PUBLISHED
    return [NewEvent(account.id, Mode.TEST, type_, "bench", now, str(n)) for n in range(number)]


def _write(connection: Connection, batch: Sequence[Sequence[NewEvent]]) -> list[None]:
    for new in batch:
        write_events(connection, new)
    return [None] * len(batch)


def _drained(port: int, deliveries: int) -> Drain:
    """Wait until all have arrived."""
    end = time.monotonic() + PATIENCE_SECONDS
    while (drain := arrived(port)).messages < deliveries:
        if time.monotonic() > end:
            raise SystemExit(f"only {drain.messages} of {deliveries} arrived")
        time.sleep(0.1)
    arrived(port, "/reset")
    return drain


def arrived(port: int, path: str = "/") -> Drain:
    """What has arrived at the receiver; with `/reset` it then begins again."""
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("GET", path)
    drain = Drain(**msgspec.json.decode(connection.getresponse().read()))
    connection.close()
    return drain


def is_ready(port: int) -> bool:
    """Whether the receiver is there."""
    try:
        arrived(port)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
