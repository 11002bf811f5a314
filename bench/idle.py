"""A server that nobody asks: ``python -m bench.idle``.

CPU from the command until it answers, with bytecode; then CPU a second and memory while only
the background works.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from bench.options import LASTING
from bench.servers import install, serve

_CALM_SECONDS: Final = 3.0
"""For whatever a start leaves to do."""


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.idle", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="how long it is idle")
    parser.add_argument("--starts", type=int, default=5, help="of which the median is taken")
    parser.add_argument(
        "--countersign",
        default=str(Path(sys.executable).parent / "countersign"),
        metavar="PROGRAM",
        help="installed without what tests need, such as a library that others load if it is there",
    )
    options = parser.parse_args()
    place = LASTING if LASTING.is_dir() else None
    with TemporaryDirectory(prefix="countersign-idle-", dir=place) as name:
        folder, starts = Path(name), list[float]()
        installed = install(folder, None, (options.countersign,))
        for _ in range(options.starts):
            with serve(installed, folder / "server.log") as server:
                starts.append(server.cpu_seconds())
        with serve(installed, folder / "server.log") as server:
            time.sleep(_CALM_SECONDS)
            before = server.cpu_seconds()
            time.sleep(options.seconds)
            idle = (server.cpu_seconds() - before) * 1000 / options.seconds
            held = server.holding()
    sys.stdout.write(
        f"start {median(starts):.2f} s of CPU (least {min(starts):.2f}); idle {idle:.1f} ms of CPU "
        f"a second; memory {held.pss_mb:.0f} MB, of which {held.own_mb:.0f} not of files\n"
    )


if __name__ == "__main__":
    main()
