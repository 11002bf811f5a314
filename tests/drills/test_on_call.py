"""Drills: docs/on-call.md is walked. Each state is made, and cured as its row says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.drills.on_call import judged, rows
from tests.drills.states import NEEDS, STATES

pytestmark = [pytest.mark.drill, pytest.mark.promtool, pytest.mark.timeout(120)]


@pytest.mark.parametrize("name", [name for name, needs in NEEDS.items() if not needs])
def test_a_state_is_seen_and_cured_as_its_row_says(tmp_path: Path, name: str) -> None:
    """By the doctor, by `/readyz` and by the rules; then all is well again."""
    found = judged(STATES[name], rows()[name], tmp_path)
    assert not found.is_wrong, found
