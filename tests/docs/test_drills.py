"""docs/drills.md names every drill, and no other."""

from __future__ import annotations

import re

from tests.docs.markdown import ROOT

_DRILL = re.compile(r"^def (test_\w+)", re.MULTILINE)
_ROW = re.compile(r"^\| `(test_\w+)` \| .+ \| .+ \| .+ \|$", re.MULTILINE)


def test_every_drill_has_its_row() -> None:
    """The fault, its effect, and the operator's action."""
    files = sorted((ROOT / "tests" / "drills").glob("test_*.py"))
    there = [name for file in files for name in _DRILL.findall(file.read_text())]
    rows = _ROW.findall((ROOT / "docs" / "drills.md").read_text())
    assert sorted(rows) == sorted(there)
    assert len(rows) > 10
