"""A failed test runs once more, and the end of the run names it if it then passes.

A browser or a loaded machine fails a test now and then, and a run of thousands must not be lost by
that. The hidden failure is shown: the trace of the first try, and the name in the last lines. Tests
that look for sporadic failures have no second try: tests of kills, isolation, concurrency and
storage, and random ones.

The second try makes the fixtures of its class and module again, so that it begins with nothing of
the first one; only session fixtures stay. Sporadic failures must be rare: in CI, a run fails if
more than a few tests needed their second try.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from functools import partial
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

ONCE_ONLY: Final = frozenset({"both_engines", "crash", "first_try", "hypothesis"})
"""The markers of tests that have to pass at the first try; Hypothesis marks its tests itself."""
ONCE_ONLY_FOLDERS: Final = frozenset({"crash", "property", "storage"})
_DRAWING: Final = frozenset({"drawn", "run_state_machine_as_test"})
_AGAIN: Final = "tried again"
MOST_SAVED: Final = 3
"""So many tests of one run may pass only the second time, where the run decides."""
_DECIDING: Final = ("CI", "COUNTERSIGN_TESTS_REQUIRE_ALL")


class SecondTry:
    """The plugin: tries again where the tests run, and reports in the process that sums up."""

    def __init__(self) -> None:
        self._second: str | None = None
        self._unmade: list[tuple[pytest.FixtureDef[Any], Any]] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> object:
        """Run a test, and after a failure run it again as if for the first time."""
        if self._second == item.nodeid or not may_be_tried_again(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = [report for report in reports if report.failed]
        if failed and (left := _finish_module(item)).failed:
            failed.append(left)
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

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that needed too many second tries; workers leave it to their parent."""
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter and session.exitstatus == pytest.ExitCode.OK and _too_many(_saved(reporter)):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show why the first tries failed, and name the tests that passed the second time."""
        saved = _saved(terminalreporter)
        if not saved:
            return
        terminalreporter.section("failed the first time")
        for reports in saved.values():
            for report in reports:
                terminalreporter.write_sep("_", f"{report.nodeid} ({report.when})")
                terminalreporter.write_line(report.longreprtext)
        for nodeid in saved:
            terminalreporter.write_line(f"PASSED THE SECOND TIME: {nodeid}")
        if _too_many(saved):
            terminalreporter.write_line(
                f"THE RUN HAS FAILED: {len(saved)} tests passed only the second time, and in CI"
                f" {MOST_SAVED} may: so many are not chance."
            )


def _finish_module(item: pytest.Item) -> pytest.TestReport:
    """Finish the fixtures of this test's class and module; gives how that ended.

    Otherwise a fault in one of them would exist in one try and not in the other: with new ones, the
    second try is as if the test ran alone.
    """
    module = item.getparent(pytest.Module)
    above = module.parent if module else item.session
    # Only the chain of parents of the "next item" is read, so that it may be a folder.
    finish = partial(item.session._setupstate.teardown_exact, above)  # type: ignore[arg-type]
    call = pytest.CallInfo.from_call(finish, when="teardown", reraise=(KeyboardInterrupt,))
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
    return report


def _saved(reporter: pytest.TerminalReporter) -> dict[str, list[pytest.TestReport]]:
    """The failures of the first try of each test that then passed, by its name."""
    stats = reporter.stats
    lost = {report.nodeid for kind in ("failed", "error") for report in stats.get(kind, ())}
    saved: dict[str, list[pytest.TestReport]] = {}
    for report in stats.get(_AGAIN, ()):
        if report.nodeid not in lost:
            saved.setdefault(report.nodeid, []).append(report)
    return saved


def _too_many(saved: dict[str, list[pytest.TestReport]]) -> bool:
    deciding = any(os.environ.get(name, "") not in {"", "0", "false"} for name in _DECIDING)
    return deciding and len(saved) > MOST_SAVED


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
