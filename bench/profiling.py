"""Profile Countersign under load: py-spy samples it, the report lists its functions."""

import shutil
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from signal import SIGINT
from typing import Final

from bench import servers
from bench.errors import BenchError
from bench.load import Load, measure_warm
from bench.options import POSTGRES, Options
from bench.plan import OPERATIONS
from bench.postgres import postgres
from bench.rounds import say

RATE: Final = 200
TOP: Final = 25
# Stacks of the start, which is not measured.
STARTING: Final = ("importlib", "_bootstrap")
# With --subprocesses, the outermost frame names the process.
PROCESS: Final = "process "


def profile(options: Options, operation: str, wrk: Path, folder: Path) -> str:
    """Load Countersign with one operation under py-spy and return the report.

    Countersign is started *by* py-spy, because a process may look into its own children without
    special rights. Its buyers are made in a first, unobserved start.
    """
    spy = _find()
    output = folder / "profile.txt"
    with ExitStack() as stack:
        url = None
        if options.engines == (POSTGRES,):
            server = stack.enter_context(postgres(folder))
            server.create("countersign")
            url = server.url("countersign")
        installed = servers.install(folder, url, options.command)
        with servers.serve(installed, folder / "countersign.log"):
            endpoint = servers.prepare(installed)
        record = [str(spy), "record", "--subprocesses", "--format", "raw", "--rate", str(RATE)]
        wrapper = [*record, "--function", "--output", str(output), "--"]
        say(f"profiling {operation}: {options.seconds} s, {options.connections[0]} connections")
        with servers.serve(installed, folder / "spy.log", wrapper, SIGINT) as child:
            load = Load(options.connections[0], options.seconds)
            found = measure_warm(wrk, endpoint, OPERATIONS[operation], load)
        if not output.is_file():
            message = f"py-spy wrote no profile:\n{child.last_words()}"
            raise BenchError(message)
    text = output.read_text(errors="replace")
    head = f"{operation}: {found.per_second:,.0f}/s while observed (slower than unobserved)\n"
    return head + render(text)


def render(folded: str) -> str:
    """List the functions of folded stacks: by own time, and by total time."""
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    total = 0
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        if not count.isdigit() or any(word in stack for word in STARTING):
            continue
        frames = [frame for frame in stack.split(";") if not frame.startswith(PROCESS)]
        if not frames:
            continue
        total += int(count)
        own[frames[-1]] += int(count)
        for frame in set(frames):
            whole[frame] += int(count)
    if not total:
        return "no samples\n"
    parts = []
    for title, counts in (("own time", own), ("with what it calls", whole)):
        parts.append(f"\n{title}, share of {total} samples")
        parts += [f"{count / total:7.1%}  {name}" for name, count in counts.most_common(TOP)]
    return "\n".join(parts) + "\n"


def _find() -> Path:
    installed = Path(sys.executable).parent / "py-spy"
    found = str(installed) if installed.is_file() else shutil.which("py-spy")
    if found is None:
        message = "--profile needs py-spy: install the package `py-spy` beside Countersign."
        raise BenchError(message)
    return Path(found)
