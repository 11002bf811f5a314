"""The four stages of the suite: left-out tests are named, and none is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.stages import APART

pytestmark = pytest.mark.later  # it tests the tools of the tests

ROOT = Path(__file__).parents[1]
SPY = """
def pytest_deselected(items):
    for item in items:
        marked = {mark.name for mark in item.iter_markers()}
        if not marked >= {"second_engine", "one_engine"}:
            print("LEFT", item.nodeid)
"""
SPY_ON_STAGES = """
from tests.support.stages import stages_with

def pytest_collection_finish(session):
    for item in session.items:
        print("STAGES", ",".join(stages_with(item)), item.nodeid)
"""
CONFTEST = """
from tests.support import stages

def pytest_addoption(parser):
    stages.add_options(parser)

def pytest_configure(config):
    config.pluginmanager.register(stages.Stages(stages.stage_of(config)))
"""
TESTS = """
import pytest

def test_first():
    pass

@pytest.mark.browser
def test_page():
    pass

@pytest.mark.crash
def test_kill():
    pass

@pytest.mark.drill
@pytest.mark.postgres
def test_gone():
    pass
"""
LATER_ALONE = "tests/crash/test_kill.py"
TWO_ENGINES = "tests/http/test_acknowledgments_list.py"
BOTH_ENGINES = "tests/test_smoke.py"


def _collected(folder: Path, *options: str) -> tuple[set[str], set[str], str]:
    """The tests of a run as in CI: included ones, left-out ones, and the summary."""
    (folder / "spy.py").write_text(SPY)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "spy", *options],
        env=dict(os.environ) | {"COUNTERSIGN_TESTS_REQUIRE_ALL": "1", "PYTHONPATH": str(folder)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    had = [line for line in lines if line.startswith("tests/")]
    assert len(had) == len(set(had))
    left = {line.removeprefix("LEFT ") for line in lines if line.startswith("LEFT tests/")}
    return set(had), left, next((line for line in lines if line.startswith("LEFT OUT:")), "")


@pytest.mark.long
@pytest.mark.later
@pytest.mark.timeout(600)
def test_the_four_stages_have_every_test_once(tmp_path: Path) -> None:
    """CI runs all of them: each test once."""
    (tmp_path / "spy.py").write_text(SPY_ON_STAGES)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "spy", "--all-engines"],
        env=dict(os.environ) | {"COUNTERSIGN_TESTS_REQUIRE_ALL": "1", "PYTHONPATH": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split(" ", 2) for line in done.stdout.splitlines() if line.startswith("STAGES ")]
    stages_of = {test: said.split(",") for _, said, test in lines}
    assert len(lines) == len(stages_of)
    assert [test for test, stages in stages_of.items() if len(stages) != 1] == []
    sizes = Counter(stages[0] for stages in stages_of.values())
    assert sizes["first"] > sizes["rest"] > 1000
    apart = {stage: [t for t, had in stages_of.items() if had == [stage]] for stage in APART}
    assert all(apart.values())
    for stage, tests in apart.items():
        assert all(test.startswith(f"tests/{stage}/") for test in tests), "as in the Makefile"


def test_a_run_that_names_a_file_has_all_its_tests(tmp_path: Path) -> None:
    """Its second engine is left out and named, except if the engine can change the outcome."""
    had, left, said = _collected(tmp_path, LATER_ALONE, TWO_ENGINES, BOTH_ENGINES)
    assert any(test.startswith(LATER_ALONE) for test in had)
    assert any(test.startswith(BOTH_ENGINES) and "[postgres]" in test for test in had)
    assert {test.partition("::")[0] for test in left} == {TWO_ENGINES}
    assert f"{len(left)} on their second engine" in said


def test_all_engines_of_a_named_file_run_on_request(tmp_path: Path) -> None:
    """`--all-engines` leaves nothing of it out, and names nothing."""
    had, left, said = _collected(tmp_path, "--all-engines", TWO_ENGINES)
    assert sum("[postgres" in test for test in had) == sum("[sqlite" in test for test in had) > 0
    assert (left, said) == (set(), "")


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
@pytest.mark.parametrize(
    ("options", "passed", "said"),
    [
        ((), 1, "LEFT OUT: 1 in a browser, 1 that kill processes, 1 that break a machine on"),
        (("--rest",), 2, "LEFT OUT: 1 of the first stage, 1 that break a machine on purpose"),
        (("--drills",), 1, "LEFT OUT: 1 of the first stage, 1 in a browser, 1 that kill proc"),
        (("--all-engines",), 4, ""),
        (("test_it.py",), 4, ""),
    ],
)
def test_tests_left_out_by_a_stage_are_named_at_its_end(
    tmp_path: Path, options: tuple[str, ...], passed: int, said: str, workers: tuple[str, ...]
) -> None:
    """By workers too, which get the files by name and whose parent collects nothing."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = .\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:schemathesis", *workers, *options],
        env=dict(os.environ) | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{passed} passed" in done.stdout
    assert said in done.stdout
    assert ("LEFT OUT" in done.stdout) is bool(said)
