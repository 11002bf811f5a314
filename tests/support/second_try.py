"""A failed test runs once more, and the end of the run names it if it then passes.

A browser or a loaded machine fails a test now and then, and a run of thousands must not be lost by
that. What the second try hides is shown: the failure of the first one with its trace, and the name
in the last lines. Where a failure that comes and goes is what a test looks for, there is no second
try: tests of kills, isolation, concurrency and storage, and those that draw at random.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

ONCE_ONLY: Final = frozenset({"both_engines", "crash", "first_try", "hypothesis"})
"""The markers of tests that have to pass at the first try; Hypothesis marks its tests itself."""
ONCE_ONLY_FOLDERS: Final = frozenset({"crash", "property", "storage"})
_DRAWING: Final = frozenset({"drawn", "run_state_machine_as_test"})
_AGAIN: Final = "tried again"


class SecondTry:
    """The plugin: tries again where the tests run, and reports in the process that sums up."""

    def __init__(self) -> None:
        self._second: str | None = None
        self._unmade: list[tuple[pytest.FixtureDef[Any], Any]] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> object:
        """Run a test, and after a failure let all plugins begin with it as if it were the first."""
        if self._second == item.nodeid or not may_be_tried_again(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = [report for report in reports if report.failed]
        for report in failed:
            report.outcome = _AGAIN  # type: ignore[assignment]
        for report in failed or reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if failed:
            # pytest keeps the exception of a fixture for all of its scope.
            for fixture, request in self._unmade:
                fixture.finish(request)
            self._second = item.nodeid
            # By the hook: so the second try has a time limit of its own.
            item.ihook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        self._unmade.clear()
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Remember the fixtures that could not be made."""
        try:
            return (yield)
        except BaseException:
            self._unmade.append((fixturedef, request))
            raise

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Count a failed first try apart from failures."""
        outcome: str = report.outcome
        return (_AGAIN, "A", "AGAIN") if outcome == _AGAIN else None

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show why the first tries failed, and name the tests that passed the second time."""
        stats = terminalreporter.stats
        lost = {report.nodeid for kind in ("failed", "error") for report in stats.get(kind, ())}
        saved = [report for report in stats.get(_AGAIN, ()) if report.nodeid not in lost]
        if not saved:
            return
        terminalreporter.section("failed the first time")
        for report in saved:
            terminalreporter.write_sep("_", f"{report.nodeid} ({report.when})")
            terminalreporter.write_line(report.longreprtext)
        for nodeid in dict.fromkeys(report.nodeid for report in saved):
            terminalreporter.write_line(f"PASSED THE SECOND TIME: {nodeid}")


def may_be_tried_again(item: pytest.Item) -> bool:
    """Whether a failure of this test may be chance."""
    marked = {mark.name for mark in item.iter_markers()}
    return not (
        marked & ONCE_ONLY or item.path.parent.name in ONCE_ONLY_FOLDERS or draws_at_random(item)
    )


def draws_at_random(item: pytest.Item) -> bool:
    """Whether Hypothesis makes the examples of this test, or the test draws rounds of its own."""
    module = item.getparent(pytest.Module)
    names: frozenset[str] = frozenset(vars(module.obj)) if module else frozenset()
    return item.get_closest_marker("hypothesis") is not None or bool(_DRAWING & names)
