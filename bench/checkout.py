"""What a checkout session costs to create: ``python -m bench.checkout``; see ``--help``.

Creating sessions compared with acknowledging notices, at 32 connections on the embedded database,
by turns on one server; requests per second, and the processor time that the server takes for each.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from bench.load import Load, Measurement, ensure_wrk, measure, measure_warm
from bench.options import LASTING
from bench.plan import NOTICE_ID, OPERATIONS, Call, Endpoint, Operation
from bench.processes import Child
from bench.rounds import say
from bench.servers import install, prepare, serve

CONNECTIONS: Final = 32
TARGET: Final = 0.8


class Measured(NamedTuple):
    """One load, and the processor time of the server for each request, in microseconds."""

    load: Measurement
    processor_us: float


def _calls(endpoint: Endpoint) -> list[Call]:
    return [
        Call(
            "/v1/checkout_sessions",
            json.dumps(
                {
                    "return_url": f"https://shop.example/checkout/{number}",
                    "session_id": f"checkout_{number:06}",
                    "notice_id": NOTICE_ID,
                    "cbid": cbid,
                    "shipping_zip": "94111",
                },
                separators=(",", ":"),
            ),
        )
        for number, cbid in enumerate(endpoint.cbids)
    ]


CREATE: Final = Operation("checkout_session", "POST", _calls)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.checkout", description=__doc__)
    parser.add_argument("--seconds", type=int, default=4, help="length of one load")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found: list[tuple[Measured, Measured]] = []
    place = LASTING if LASTING.is_dir() else None
    with TemporaryDirectory(prefix="countersign-bench-", dir=place) as name:
        installed = install(Path(name), None, (str(Path(sys.executable).parent / "countersign"),))
        with serve(installed, Path(name) / "server.log") as server:
            endpoint = prepare(installed)
            for number in range(options.rounds):
                one, other = (
                    _measured(server, endpoint, operation, options.seconds)
                    for operation in (OPERATIONS["acknowledge"], CREATE)
                )
                found.append((one, other))
                say(f"round {number + 1}: {one} {other}")
    acknowledging, creating = ([pair[place] for pair in found] for place in (0, 1))
    share = median(new.load.per_second / old.load.per_second for old, new in found)
    rows = [("creating, of acknowledging", f"{share:.2f}", f">= {TARGET}")]
    for what, several in (("acknowledging", acknowledging), ("creating", creating)):
        rows += [
            (what, f"{median(m.load.per_second for m in several):,.0f}/s", ""),
            (f"p99 of {what}", f"{median(m.load.p99_ms for m in several):.1f} ms", ""),
            (f"processor time of {what}", f"{median(m.processor_us for m in several):.0f} us", ""),
        ]
    for what, value, target in rows:
        sys.stdout.write(f"{what:<30}  {value:<20}  {target}\n")


def _measured(server: Child, endpoint: Endpoint, operation: Operation, seconds: int) -> Measured:
    wrk = ensure_wrk()
    measure_warm(wrk, endpoint, operation, Load(CONNECTIONS, 1))
    before = _processor_seconds(server)
    load = measure(wrk, endpoint, operation, Load(CONNECTIONS, seconds))
    return Measured(load, 1e6 * (_processor_seconds(server) - before) / load.requests)


def _processor_seconds(server: Child) -> float:
    """Of all threads of the server, so far."""
    after_name = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
