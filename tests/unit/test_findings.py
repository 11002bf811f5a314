"""The words of `countersign doctor`: each finding has them, and none is unused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from countersign.operate.doctor import sight
from countersign.operate.doctor.examine import CHECKS
from countersign.operate.doctor.sight import FINDINGS, Severity, say

SOURCE = "\n".join(
    path.read_text(encoding="utf-8") for path in Path(sight.__file__).parent.glob("*.py")
)
ALL = [(check, name) for check, names in FINDINGS.items() for name in names]
# Named by a part of the code: `f"disk.{code}"`.
IN_PARTS = {"data_directory", "disk", "disk_of_heads", "limits", "database", "server"}


@pytest.mark.parametrize(("check", "name"), ALL)
def test_each_finding_is_used_and_has_a_remedy(check: str, name: str) -> None:
    """A person who is called at night needs the second half of the line."""
    words = FINDINGS[check][name]
    assert set(words) <= {"severity", "found", "what_to_do", "query"}
    severity = Severity(words.get("severity", "fine"))
    assert ("what_to_do" in words) or severity in {Severity.FINE, Severity.MISSING}
    part = check in IN_PARTS and f'"{name}"' in SOURCE
    assert "query" in words or part or f'"{check}.{name}"' in SOURCE


def test_each_name_in_the_code_has_its_words() -> None:
    """A missing one would be found only on the night it is needed."""
    said = re.findall(r'say\(\s*"([a-z_]+)\.([a-z_]+)"', SOURCE)
    assert len(said) > 30
    assert [one for one in said if one not in ALL] == []
    assert set(FINDINGS) - {"disk_of_heads", "reached", "check"} == set(CHECKS)


def test_an_error_of_several_lines_becomes_one() -> None:
    """One line each, for people and grep."""
    assert say("check.failed", why="one\n  two").found.endswith("one two")
