"""An acknowledgment as more is stored: ``python -m bench.growth``; ``--help`` lists the options.

Two servers on the embedded database, the first with few acknowledgments stored and the other with
many (see `bench.fill`): ten million take 37 GB, and an hour at most. They are measured in turn,
round after round, while the other is paused.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.fill import fill
from bench.load import Load, Measurement, ensure_wrk, measure_warm
from bench.options import LASTING
from bench.plan import OPERATIONS
from bench.rounds import say
from bench.servers import Contender, install, prepare, serve


def main() -> None:
    """Fill, measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--stored", type=int, default=10_000_000, help="by the second server")
    parser.add_argument("--few", type=int, default=10_000, help="by the first server")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=int, default=4, help="length of one measurement")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--work-dir", type=Path, default=LASTING if LASTING.is_dir() else None)
    options = parser.parse_args()
    wrk, load = ensure_wrk(), Load(options.connections, options.seconds)
    found: dict[int, list[Measurement]] = {options.few: [], options.stored: []}
    with (
        TemporaryDirectory(prefix="countersign-growth-", dir=options.work_dir) as name,
        ExitStack() as stack,
    ):
        servers = [_filled(stack, Path(name) / str(number), number) for number in found]
        for number in range(options.rounds):
            for server in servers:
                server.child.resume()
                one = measure_warm(
                    wrk, server.endpoint, OPERATIONS["acknowledge"], load, [server.child]
                )
                server.child.pause()
                found[server.stored].append(one)
                say(f"round {number + 1}: {server.stored:>10,} stored: {_figures([one])}")
    for stored, several in found.items():
        sys.stdout.write(f"{stored:>10,} stored  {_figures(several)}\n")
    pairs = zip(*found.values(), strict=True)
    ratio = median(many.cpu_us / few.cpu_us for few, many in pairs)
    sys.stdout.write(f"processor time, many against few: {ratio:.2f}  <= 1.3\n")


def _filled(stack: ExitStack, folder: Path, number: int) -> Contender:
    """A server that stores so many, held still."""
    folder.mkdir()
    installed = install(folder, None, (str(Path(sys.executable).parent / "countersign"),))
    asyncio.run(fill(installed, number))
    child = stack.enter_context(serve(installed, folder / "server.log"))
    server = Contender(f"{number} stored", prepare(installed), child, stored=number)
    child.pause()
    return server


def _figures(several: list[Measurement]) -> str:
    cpu, rate, p99 = (
        median(getattr(one, name) for one in several) for name in ("cpu_us", "per_second", "p99_ms")
    )
    return f"{cpu:>6,.0f} us  {rate:>6,.0f}/s  p99 {p99:>7.1f} ms"


if __name__ == "__main__":
    main()
