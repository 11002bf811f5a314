"""Drills: the same for states that need a database server, an object store, root or a pooler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.drills.on_call import judged, rows
from tests.drills.states import NEEDS, STATES

pytestmark = [pytest.mark.drill, pytest.mark.promtool, pytest.mark.timeout(120)]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[getattr(pytest.mark, one) for one in needs])
        for name, needs in NEEDS.items()
        if needs
    ],
)
def test_a_state_of_other_programs_is_seen_and_cured(tmp_path: Path, name: str) -> None:
    """Each as its row says."""
    found = judged(STATES[name], rows()[name], tmp_path)
    assert not found.is_wrong, found
