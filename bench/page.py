"""Run again what docs/performance.md shows: ``python -m bench.page [WORD]``; see ``--help``.

Each block of the page with a command in it is replaced by the command's present output, under the
date, the commit and the load of the machine. One run is more than two hours of a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.rounds import say

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "performance.md"
_BLOCK: Final = re.compile(r"(```console\n\$ python (-m bench[^\n]*)\n)(.*?)(```)", re.DOTALL)


def main() -> None:
    """Run the commands one after the other; the page is written after each."""
    parser = argparse.ArgumentParser(prog="python -m bench.page", description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only commands that contain this")
    word = parser.parse_args().word
    page = PAGE.read_text("utf-8")
    for block in _BLOCK.finditer(page):
        if word in block[2]:
            say(f"$ python {block[2]}")
            before, printed = _facts(), _printed(shlex.split(block[2]))
            page = page.replace(block[0], f"{block[1]}{before}{printed}{block[4]}")
            PAGE.write_text(page, "utf-8")


def _printed(arguments: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.strip().splitlines())


def _facts() -> str:
    git = ["git", "-C", str(ROOT), "rev-parse", "--short=10", "HEAD"]
    commit = subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()
    busy = os.getloadavg()[1]
    return f"# {datetime.now(UTC):%d %B %Y}, commit {commit}, load average before it {busy:.1f}\n"


if __name__ == "__main__":
    main()
