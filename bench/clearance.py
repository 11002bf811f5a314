"""The cost of a clearance: ``python -m bench.clearance``; ``--help`` lists the options.

Clearing orders compared with acknowledging notices, at 32 connections on the embedded
database, by turns on one server. Every order is a new one that is cleared: its own acknowledgment,
its own session.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from msgspec.structs import replace

from bench.client import try_once
from bench.errors import BenchError
from bench.load import WARM_UP_SECONDS, Load, Measurement, ensure_wrk, measure, measure_warm
from bench.options import LASTING
from bench.plan import NOTICE_ID, OPERATIONS, Call, Endpoint, Operation
from bench.processes import Child
from bench.rounds import say
from bench.servers import ZIP, Installation, install, prepare, serve
from bench.vendor import initials, vendor
from countersign.base.config import load_settings
from countersign.base.values import Mode
from countersign.core.access.account import all_accounts
from countersign.core.acknowledgments.acknowledge import acknowledge
from countersign.operate.bootstrap import Deployment, open_deployment

CONNECTIONS: Final = 32
TARGET: Final = 0.8
PER_SECOND_MAX: Final = 9_000
"""More orders than this are not cleared in a second; a run that needs more of them fails."""
TOGETHER: Final = 500


class Round(NamedTuple):
    """The measurements of one round."""

    acknowledging: Measurement
    clearing: Measurement


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.clearance", description=__doc__)
    parser.add_argument("--seconds", type=int, default=4, help="length of one load")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found: list[Round] = []
    with TemporaryDirectory(
        prefix="countersign-bench-", dir=LASTING if LASTING.is_dir() else None
    ) as name:
        for number in range(options.rounds):
            folder = Path(name) / str(number)
            folder.mkdir()
            found.append(_round(folder, options.seconds))
            say(f"round {number + 1}: {found[-1]}")
    share = median(r.clearing.per_second / r.acknowledging.per_second for r in found)
    cost = median(r.clearing.cpu_us / r.acknowledging.cpu_us for r in found)
    rows = [
        ("processor time, of acknowledging", f"{cost:.2f}", ""),
        ("rate, of acknowledging", f"{share:.2f}", f">= {TARGET}"),
    ]
    for name in Round._fields:
        several = [getattr(one, name) for one in found]
        rows += [
            (f"processor time of {name}", f"{median(m.cpu_us for m in several):.0f} us", ""),
            (name, f"{median(m.per_second for m in several):,.0f}/s", ""),
            (f"p99 of {name}", f"{median(m.p99_ms for m in several):.1f} ms", ""),
        ]
    for what, value, target in rows:
        sys.stdout.write(f"{what:<32}  {value:<10}  {target}".rstrip() + "\n")


def _round(folder: Path, seconds: int) -> Round:
    wrk = ensure_wrk()
    installed = install(folder, None, (str(Path(sys.executable).parent / "countersign"),))
    with serve(installed, folder / "server.log"):
        endpoint = prepare(installed)
    # Without a server, so that acknowledging for the orders is as fast as possible.
    bodies = _orders(installed, endpoint, (seconds + WARM_UP_SECONDS) * PER_SECOND_MAX)
    with serve(installed, folder / "server.log") as server:
        load = Load(CONNECTIONS, seconds)
        acknowledging = measure_warm(wrk, endpoint, OPERATIONS["acknowledge"], load, [server])
        _check(endpoint, _clearing(bodies[:1]))
        warm = WARM_UP_SECONDS * PER_SECOND_MAX
        few = Load(CONNECTIONS, WARM_UP_SECONDS)
        _measured(wrk, endpoint, bodies[1:warm], few, server)
        return Round(acknowledging, _measured(wrk, endpoint, bodies[warm:], load, server))


def _measured(
    wrk: Path, endpoint: Endpoint, bodies: Sequence[str], load: Load, server: Child
) -> Measurement:
    clearing = measure(wrk, endpoint, _clearing(bodies), load, [server])
    if clearing.requests > len(bodies):
        message = f"only {len(bodies)} orders: some were asked for twice, which is cheaper"
        raise BenchError(message)
    return clearing


def _clearing(bodies: Sequence[str]) -> Operation:
    return Operation("clearance", "POST", lambda _: [Call("/v1/clearances", b) for b in bodies])


def _check(endpoint: Endpoint, operation: Operation) -> None:
    """A rate of refusals would be worthless, and they are 200 too."""
    answer = try_once(endpoint, operation)
    if answer["cleared"] is not True:
        message = f"an order is not cleared: {answer['reasons']}"
        raise BenchError(message)


def _orders(installed: Installation, endpoint: Endpoint, number: int) -> list[str]:
    """Acknowledge this many orders; returns the bodies of their clearance requests."""

    async def write() -> list[str]:
        async with open_deployment(load_settings(installed.environment)) as deployment:
            return await _acknowledged(deployment, endpoint, number)

    return asyncio.run(write())


async def _acknowledged(deployment: Deployment, endpoint: Endpoint, number: int) -> list[str]:
    (account,) = await deployment.database.scan(all_accounts)
    principal = vendor(account.id)
    notice = await deployment.notices.registry.in_force(NOTICE_ID, Mode.TEST)
    submission = initials(len(notice.content.bullets))
    bodies: list[str] = []
    while len(bodies) < number:
        places = range(len(bodies), len(bodies) + TOGETHER)
        sessions = [f"order_{place:08}" for place in places]
        cbids = [endpoint.cbids[place % len(endpoint.cbids)] for place in places]
        receipts = await asyncio.gather(
            *(
                acknowledge(
                    deployment.acknowledgments,
                    principal,
                    notice,
                    replace(submission, session_id=session, cbid=cbid),
                )
                for session, cbid in zip(sessions, cbids, strict=True)
            )
        )
        bodies += [
            json.dumps(
                {
                    "ack_id": receipt.id,
                    "cbid": cbid,
                    "session_id": session,
                    "shipping_zip": ZIP,
                    "product_class": "accessory",
                    "shipping_address": {
                        "line1": "1 Main Street",
                        "city": "San Francisco",
                        "state": "CA",
                        "postal_code": ZIP,
                    },
                },
                separators=(",", ":"),
            )
            for receipt, session, cbid in zip(receipts, sessions, cbids, strict=True)
        ]
    return bodies


if __name__ == "__main__":
    main()
