"""The rule over the whole suite can fail: a test that emits something personal does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import privacy

pytest_plugins = ["pytester"]

WORD = "Zenobelle Quillmarchant"
TESTS = f"""
import logging, sys
import pytest

@pytest.fixture
def loud():
    yield
    print("{WORD}")

def test_quiet():
    print("a buyer was verified")

def test_that_prints():
    print("a buyer, {WORD.upper()}, was verified")

def test_on_standard_error():
    print("{WORD}", file=sys.stderr)

def test_that_logs():
    logging.getLogger("x").warning("%s", "{WORD}")

def test_in_teardown(loud):
    pass

@pytest.mark.shows_personal_data
def test_on_purpose():
    print("{WORD}")
"""


@pytest.mark.shows_personal_data
def test_a_test_that_emits_something_personal_fails(pytester: pytest.Pytester) -> None:
    """Wherever it does; except in tests with the marker."""
    pytester.makeini("[pytest]\nmarkers = shows_personal_data")
    pytester.makepyfile(TESTS)
    ran = pytester.inline_run("-p", "no:cacheprovider", plugins=[privacy.Privacy()])
    failed = [report.nodeid.partition("::")[2] for report in ran.getreports() if report.failed]
    assert sorted(failed) == [
        "test_in_teardown",
        "test_on_standard_error",
        "test_that_logs",
        "test_that_prints",
    ]


@pytest.mark.shows_personal_data
def test_server_logs_and_command_output_are_searched_at_once(tmp_path: Path) -> None:
    """A leak is reported for the test in which it happened, and for no other."""
    log = tmp_path / "server-1.log"
    log.write_text("started\n")
    privacy.watch_log(log)
    privacy._unseen()
    with log.open("a") as sink:
        sink.write(f"refused {WORD}\n")
    privacy.watch_command(["log", "check"], f"fine, {WORD}")
    privacy.watch_command(["buyers", "evidence", "cbid_1"], WORD)
    unseen = privacy._unseen()
    assert [len(privacy.personal(said)) for said in unseen.values()] == [2, 2]
    assert not any(privacy._unseen().values())
    log.unlink()
    assert not any(privacy._unseen().values())
