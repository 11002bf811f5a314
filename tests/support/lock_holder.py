"""Another program that holds the write lock of an embedded database, as a shell of sqlite3 can."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PROGRAM: Final = """
import sys
from countersign.base.db.engine import sqlite_module
held = sqlite_module().connect(sys.argv[1], isolation_level=None, timeout=30)
held.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def write_lock_held(database: Path) -> Iterator[None]:
    """A process holds it until the block ends."""
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            yield
        finally:
            holder.kill()
