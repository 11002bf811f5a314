"""Seeded faults: which of them the suite detects.

Each entry of `faults.toml` has a line of a room, and a plausible mistake in its place. Each is
made in a copy of the last commit, and the tests that should detect it run there.

    python -m tools.faults [--all] [WORD ...]

Tries the faults with one of these words in their file or kind, or all of them; with `--all` also
by tests outside of the first stage. The exit status is 1 if one was missed, and 2 if the line of
one is no longer in its file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from tests.support.stages import APART, LATER

ROOT: Final = Path(__file__).parents[1]
SOURCES: Final = ("src", *(f"packages/{one.name}/src" for one in (ROOT / "packages").iterdir()))
_NEXT_TIME: Final = iter(range(1_000_000_000, 2_000_000_000))
"""Modification times, each once: bytecode of one fault is never mistaken for that of another."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """`old`, which `file` has once, becomes `new`; `tests` are of its room."""

    kind: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file} ({self.kind}): {self.new.strip()}"


def faults() -> list[Fault]:
    """All of the table."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return msgspec.convert(table["fault"], list[Fault])


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of the last commit, until the end of the block."""
    with TemporaryDirectory(prefix="countersign-faults-") as name:
        clone = ["git", "clone", "--quiet", "--shared", str(ROOT), name]
        subprocess.run(clone, check=True)  # noqa: S603 - our own words
        yield Path(name)


def is_caught(fault: Fault, tree: Path, *, by_all: bool) -> bool:
    """Whether one of its tests fails.

    Raises:
        LookupError: its file does not have the line, or not once.
    """
    file = tree / fault.file
    text = file.read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        raise LookupError(f"{fault.file} has {text.count(fault.old)} times: {fault.old}")
    apart = [*LATER, *(marker for marker, _ in APART.values())]
    stage = [] if by_all else ["-m", " and ".join(f"not {marker}" for marker in apart)]
    try:
        _write(file, text.replace(fault.old, fault.new))
        done = subprocess.run(  # noqa: S603 - our own words
            [sys.executable, "-m", "pytest", "-x", "-q", *stage, *fault.tests],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(str(tree / one) for one in SOURCES)},
            capture_output=True,
            check=False,
        )
    finally:
        _write(file, text)
    if done.returncode not in {0, 1, 2}:
        raise LookupError(f"{fault}: pytest ended with {done.returncode}: {done.stdout.decode()}")
    return done.returncode != 0


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    os.utime(file, (time := next(_NEXT_TIME), time))


def main() -> int:
    """Try the selected ones."""
    words = [word for word in sys.argv[1:] if word != "--all"]
    wanted = [f for f in faults() if not words or any(w in f"{f.file} {f.kind}" for w in words)]
    ends: Counter[str] = Counter()
    with copied() as tree:
        for fault in wanted:
            try:
                end = "caught" if is_caught(fault, tree, by_all="--all" in sys.argv) else "MISSED"
            except LookupError as error:
                end = f"STALE, {error}"
            ends[end[:6]] += 1
            print(f"{end}: {fault}", flush=True)  # noqa: T201 - the report
    print(", ".join(f"{number} {end}" for end, number in ends.items()))  # noqa: T201
    return 2 if ends["STALE,"] else int(bool(ends["MISSED"]))


if __name__ == "__main__":
    sys.exit(main())
