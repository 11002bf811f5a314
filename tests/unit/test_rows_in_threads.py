"""Rows become objects in several threads at once: msgspec describes a type at its first use."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import sys
from dataclasses import make_dataclass
from enum import Enum
from threading import Barrier, Thread
from countersign.base.db.statements import of_row

class Row:
    def __getattr__(self, name):
        return 1

sys.setswitchinterval(1e-6)
for n in range(60):
    kinds = [Enum(f"E{i}_{n}", {"one": 1}) for i in range(20)]
    fields = [(f"a{i}", kind) for i, kind in enumerate(kinds)]
    kind, ready = make_dataclass(f"K{n}", fields, namespace={"__module__": __name__}), Barrier(8)
    def convert():
        ready.wait()
        of_row(Row(), kind)
    threads = [Thread(target=convert) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_a_type_is_described_once_before_threads_share_it() -> None:
    """Without the lock of `of_row` the process ends by SIGSEGV: fields are read half made."""
    words = [sys.executable, "-X", "faulthandler", "-c", _PROGRAM]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
