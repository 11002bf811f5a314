"""The rule for engines: what a run leaves out, and that it says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ONCE = "tests/http/test_pages.py"
ON_BOTH = "tests/test_smoke.py"


def _collected(*options: str, require_all: str = "") -> str:
    """What pytest would run of these two modules, and what it says at the end."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *options, ONCE, ON_BOTH],
        env=dict(os.environ) | {"COUNTERSIGN_TESTS_REQUIRE_ALL": require_all},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_second_engine_runs_where_it_can_matter_and_what_is_left_out_is_named() -> None:
    """A developer who reads the end of a run knows what has not been tested."""
    said = _collected()
    assert f"{ON_BOTH}::test_a_notice_can_be_fetched_and_acknowledged[postgres]" in said
    tests = [line for line in said.splitlines() if line.startswith(ONCE)]
    assert any("sqlite" in test for test in tests)
    assert not any("postgres" in test for test in tests)
    assert "LEFT OUT:" in said
    assert "(http " in said


def test_on_request_nothing_is_left_out() -> None:
    """`make test-all` asks for it by the option, and CI by requiring every test."""
    for said in (_collected("--all-engines"), _collected(require_all="1")):
        tests = [line for line in said.splitlines() if line.startswith(ONCE)]
        assert sum("[postgres" in test for test in tests) == sum(
            "[sqlite" in test for test in tests
        )
        assert "LEFT OUT" not in said
