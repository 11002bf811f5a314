"""What a checkout session costs to create: ``python -m bench.checkout``; see ``--help``.

Creating sessions compared with acknowledging notices, at 32 connections on the embedded database,
by turns on one server; requests per second, and the processor time that the server takes for each.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from bench.load import Load, Measurement, ensure_wrk, measure_warm
from bench.options import LASTING
from bench.plan import NOTICE_ID, OPERATIONS, UNIQUE, Call, Endpoint, Operation
from bench.rounds import say
from bench.servers import install, prepare, serve

CONNECTIONS: Final = 32
TARGET: Final = 0.8


def _calls(endpoint: Endpoint) -> list[Call]:
    return [
        Call(
            "/v1/checkout_sessions",
            json.dumps(
                {
                    "return_url": f"https://shop.example/checkout/{number}",
                    "session_id": f"checkout_{UNIQUE}",
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
    wrk, load = ensure_wrk(), Load(CONNECTIONS, options.seconds)
    found: list[tuple[Measurement, Measurement]] = []
    place = LASTING if LASTING.is_dir() else None
    with TemporaryDirectory(prefix="countersign-bench-", dir=place) as name:
        installed = install(Path(name), None, (str(Path(sys.executable).parent / "countersign"),))
        with serve(installed, Path(name) / "server.log") as server:
            endpoint = prepare(installed)
            for number in range(options.rounds):
                one, other = (
                    measure_warm(wrk, endpoint, operation, load, [server])
                    for operation in (OPERATIONS["acknowledge"], CREATE)
                )
                found.append((one, other))
                say(f"round {number + 1}: {one} {other}")
    acknowledging, creating = ([pair[place] for pair in found] for place in (0, 1))
    share = median(new.per_second / old.per_second for old, new in found)
    cost = median(new.cpu_us / old.cpu_us for old, new in found)
    rows = [
        ("processor time, of acknowledging", f"{cost:.2f}", ""),
        ("rate, of acknowledging", f"{share:.2f}", f">= {TARGET}"),
    ]
    for what, several in (("acknowledging", acknowledging), ("creating", creating)):
        rows += [
            (f"processor time of {what}", f"{median(m.cpu_us for m in several):.0f} us", ""),
            (what, f"{median(m.per_second for m in several):,.0f}/s", ""),
            (f"p99 of {what}", f"{median(m.p99_ms for m in several):.1f} ms", ""),
        ]
    for what, value, target in rows:
        sys.stdout.write(f"{what:<32}  {value:<10}  {target}".rstrip() + "\n")


if __name__ == "__main__":
    main()
