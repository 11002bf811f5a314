"""What a start costs, and doing nothing: ``python -m bench.start [--seconds N] [--rounds N]``.

Processor time of `countersign --help`, of `countersign serve` until it is ready, and of each second
in which that server then has nothing to do. On SQLite, with nothing stored.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.processes import run
from bench.servers import install, serve


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.start", description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="how long the server is idle")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    helped, ready, idle = [], [], []
    with TemporaryDirectory(prefix="countersign-start-") as name:
        folder = Path(name)
        installed = install(folder, None, (str(Path(sys.executable).parent / "countersign"),))
        for _ in range(options.rounds):
            before = _of_children()
            run([*installed.command, "--help"], installed.environment)
            helped.append(_of_children() - before)
            with serve(installed, folder / "server.log") as server:
                ready.append(server.cpu_seconds())
                time.sleep(1)
                begun = server.cpu_seconds()
                time.sleep(options.seconds)
                idle.append((server.cpu_seconds() - begun) / options.seconds)
    rows = [
        ("countersign --help", f"{median(helped):.2f} s", "<= 0.25 s"),
        ("countersign serve, until it is ready", f"{median(ready):.2f} s", "<= 0.6 s"),
        ("a second of an idle server", f"{1000 * median(idle):.1f} ms", "<= 5 ms"),
    ]
    for what, value, target in rows:
        sys.stdout.write(f"{what:<38}  {value:<8}  {target}\n")


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
