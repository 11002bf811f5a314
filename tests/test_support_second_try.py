"""A second try for a failed test: which tests have one, and that it is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.second_try import ONCE_ONLY, ONCE_ONLY_FOLDERS

pytestmark = pytest.mark.later  # it tests the tools of the tests

IN_CI = ("CI", "COUNTERSIGN_TESTS_REQUIRE_ALL")
ROOT = Path(__file__).parents[1]
CONFTEST = """
    import pytest
    from pathlib import Path
    from tests.support.second_try import SecondTry

    def pytest_configure(config):
        config.pluginmanager.register(SecondTry())
        for name in ("crash", "both_engines", "first_try"):
            config.addinivalue_line("markers", name)

    def fails_first(name):
        count = Path(__file__).with_name(name)
        with count.open("a") as opened:
            opened.write("x")
        assert len(count.read_text()) > 1, "the first time"
"""


def _run(folder: Path, tests: str, *options: str, **environment: str) -> tuple[int, str]:
    """Run these tests in a separate process; returns its status and output."""
    (folder / "conftest.py").write_text(dedent(CONFTEST))
    (folder / "test_it.py").write_text(
        "import time, pytest\nfrom conftest import fails_first\n" + dedent(tests)
    )
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -ra\nfilterwarnings = error\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:schemathesis",
            *options,
            ".",
        ],
        env=dict(os.environ) | {"PYTHONPATH": str(ROOT)} | dict.fromkeys(IN_CI, "") | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_test_that_passes_the_second_time_is_named_at_the_end(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """The run is good, and its end shows that somebody has to look at this test."""
    status, said = _run(
        tmp_path,
        """
        def test_shaky():
            fails_first("shaky")

        def test_sound():
            pass
        """,
        *options,
    )
    assert status == 0, said
    assert "2 passed" in said
    assert "AssertionError: the first time" in said
    end = said.partition("failed the first time")[2]
    assert "PASSED THE SECOND TIME: test_it.py::test_shaky" in end
    assert "test_sound" not in end


def test_a_test_that_fails_twice_has_failed(tmp_path: Path) -> None:
    """A second try hides no fault that stays."""
    status, said = _run(tmp_path, 'def test_broken():\n    assert False, "always"\n')
    assert status == 1
    assert "1 failed" in said
    assert "PASSED THE SECOND TIME" not in said


def test_a_sporadic_failure_counts_in_tests_that_look_for_it(tmp_path: Path) -> None:
    """A kill that loses a record once in a hundred times loses records."""
    for folder in sorted(ONCE_ONLY_FOLDERS):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"test_{folder}.py").write_text(
            "from conftest import fails_first\n"
            f'def test_shaky():\n    fails_first("folder-{folder}")\n'
        )
    (tmp_path / "test_rounds.py").write_text(
        "from conftest import fails_first\n"
        'drawn = None\ndef test_shaky():\n    fails_first("drawn")\n'
    )
    marked = "".join(
        f'@pytest.mark.{marker}\ndef test_{marker}():\n    fails_first("{marker}")\n'
        for marker in sorted(ONCE_ONLY - {"hypothesis"})
    )
    status, said = _run(
        tmp_path,
        marked
        + """
from hypothesis import given, strategies

@given(strategies.none())
def test_hypothesis(value):
    fails_first("hypothesis")
""",
    )
    assert status == 1
    assert f"{len(ONCE_ONLY) + len(ONCE_ONLY_FOLDERS) + 1} failed" in said
    assert "again" not in said


def test_a_fixture_that_could_not_be_made_is_made_again(tmp_path: Path) -> None:
    """A server that did not start fails no other test of its module or session."""
    status, said = _run(
        tmp_path,
        """
        @pytest.fixture(scope="session")
        def below():
            yield "below"

        @pytest.fixture(scope="session")
        def session(below):
            fails_first("session")
            yield "made"

        @pytest.fixture(scope="module")
        def module(session):
            fails_first("module")
            yield session

        def test_first(session):
            assert session == "made"

        def test_second(module):
            assert module == "made"

        def test_third(module):
            assert module == "made"
        """,
    )
    assert status == 0, said
    assert "3 passed" in said
    assert "PASSED THE SECOND TIME: test_it.py::test_first" in said
    assert "PASSED THE SECOND TIME: test_it.py::test_second" in said


FRESH = """
    made = []

    @pytest.fixture(scope="session")
    def session():
        made.append("session")
        yield

    @pytest.fixture(scope="module")
    def module(session):
        made.append("module")
        yield set()

    @pytest.fixture(scope="class")
    def own(module):
        made.append("class")
        yield

    class TestKept:
        def test_adds(self, module, own):
            assert "kept" not in module
            module.add("kept")
            fails_first("adds")

        def test_is_still_the_same(self, module, own):
            assert "kept" in module
            assert made == ["session", *["module", "class"] * 2]
"""


def test_a_second_try_begins_with_fixtures_that_no_try_has_used(tmp_path: Path) -> None:
    """Remains of a first try in its module can neither save nor fail the second one."""
    status, said = _run(tmp_path, FRESH)
    assert status == 0, said
    assert "2 passed" in said
    assert "PASSED THE SECOND TIME: test_it.py::TestKept::test_adds" in said


def test_a_fault_that_a_module_makes_each_time_fails_both_tries(tmp_path: Path) -> None:
    """Answers that are kept in the wrong order are in the wrong order again."""
    status, said = _run(
        tmp_path,
        """
        @pytest.fixture(scope="module")
        def answers():
            return iter(["wrong", "right"])

        def test_asks(answers):
            assert next(answers) == "right"
        """,
    )
    assert status == 1, said
    assert "1 failed" in said
    assert "PASSED THE SECOND TIME" not in said


def test_a_module_that_cannot_be_finished_is_shown_with_the_first_try(tmp_path: Path) -> None:
    """Its failure ends no run, and is not lost."""
    status, said = _run(
        tmp_path,
        """
        @pytest.fixture(scope="module")
        def stubborn():
            yield
            fails_first("finish")

        def test_first(stubborn):
            fails_first("first")

        def test_last(stubborn):
            pass
        """,
    )
    assert status == 0, said
    assert "test_first (call)" in said
    assert "test_first (teardown)" in said


@pytest.mark.parametrize(
    ("number", "options", "environment", "failed"),
    [
        (3, (), {"CI": "true"}, False),
        (4, (), {"CI": "true"}, True),
        (4, ("-n", "2"), {"COUNTERSIGN_TESTS_REQUIRE_ALL": "1"}, True),
        (4, ("-n", "2"), {"CI": "false", "COUNTERSIGN_TESTS_REQUIRE_ALL": "0"}, False),
    ],
)
def test_a_run_in_ci_that_second_tries_saved_too_often_has_failed(
    tmp_path: Path,
    number: int,
    options: tuple[str, ...],
    environment: dict[str, str],
    failed: bool,
) -> None:
    """The whole run counts, whichever process a test was in."""
    status, said = _run(
        tmp_path,
        f"""
        @pytest.mark.parametrize("number", range({number}))
        def test_shaky(number):
            fails_first(f"shaky-{{number}}")
        """,
        *options,
        **environment,
    )
    assert status == failed, said
    assert said.count("PASSED THE SECOND TIME") == number
    assert (f"THE RUN HAS FAILED: {number} tests passed only" in said) == failed


def test_the_second_try_has_a_time_limit_of_its_own(tmp_path: Path) -> None:
    """A test that hangs twice ends twice."""
    status, said = _run(
        tmp_path,
        "def test_hangs():\n    time.sleep(60)\n",
        "--timeout",
        "0.5",
        "--timeout-method",
        "signal",
    )
    assert status == 1
    assert said.count("Failed: Timeout") >= 2
