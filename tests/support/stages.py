"""The tests of a run: the first stage, the rest, or all of them.

`make test` is the first stage: every promise once, on SQLite, with Python alone. `make test-rest`
has the others: PostgreSQL, browsers, Node.js, PHP, programs of the system, kills, and slow tests
(`later`). `make drills` has tests that break a machine on purpose, and `make test-ha` those that
break three. `make test-all` has all of it. Each test is in one of the four stages, so a run of all
of them, as in CI, has every test once.

A run that names files or folders has all of their tests, whatever they need, on SQLite; on
PostgreSQL too for tests marked `both_engines`, or with `--all-engines`.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

LATER: Final = {
    "second_engine": "on their second engine, PostgreSQL",
    "postgres": "on PostgreSQL",
    "shops": "in real shops",
    "browser": "in a browser",
    "nginx": "behind nginx",
    "pgbouncer": "behind PgBouncer",
    "npm": "with Node.js",
    "node": "with Node.js",
    "php": "with PHP",
    "openssl": "with openssl",
    "promtool": "with promtool",
    "softhsm": "with SoftHSM",
    "systemd": "with systemd-analyze",
    "crash": "that kill processes",
    "later": "that take long",
}
"""The markers of tests outside of the first stage, and their name in the summary."""

APART: Final = {
    "drills": ("drill", "that break a machine on purpose"),
    "ha": ("ha", "that break one of three nodes"),
}
"""Stages that are a marker, whatever other markers a test has: the marker, and the name in the
summary."""

ALL: Final = "--all-engines"
REST: Final = "--rest"
DRILLS: Final = "--drills"
HA: Final = "--ha"
_STAGE: Final = "stage"
_LEFT_OUT: Final = "left_out"


def add_options(parser: pytest.Parser) -> None:
    """Declare the options for the stages after the first, and for all of them."""
    group = parser.getgroup("stages", "which tests a run has")
    group.addoption(ALL, dest=_STAGE, action="store_const", const="all", help="every test")
    group.addoption(
        REST, dest=_STAGE, action="store_const", const="rest", help="what `pytest` has not"
    )
    group.addoption(
        DRILLS, dest=_STAGE, action="store_const", const="drills", help="the drills alone"
    )
    group.addoption(
        HA, dest=_STAGE, action="store_const", const="ha", help="high availability alone"
    )


def stage_of(config: pytest.Config) -> str:
    """`first`, `rest`, `drills`, `ha`, `all`, or `named` for a run that names files.

    Workers are given the files by name in any case; they have the option from their parent.
    """
    if config.option.stage is None:
        whole = config.args_source == pytest.Config.ArgsSource.TESTPATHS
        config.option.stage = "first" if whole else "named"
    stage: str = config.option.stage
    return stage


class Stages:
    """The plugin: leaves out the tests of the other stage, and says so at the end."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._left_out: Counter[str] = Counter()

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep only the tests of this stage."""
        unneeded = [item for item in items if _marked(item) >= {"second_engine", "one_engine"}]
        items[:] = [item for item in items if item not in set(unneeded)]
        others = [item for item in items if not _has(self._stage, _marked(item))]
        if unneeded or others:
            config.hook.pytest_deselected(items=unneeded + others)
            items[:] = [item for item in items if item not in set(others)]
        self._left_out = Counter(_reason(_marked(item)) for item in others)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Report to the process that prints the summary, if this is not the one."""
        output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_LEFT_OUT] = dict(self._left_out)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Store a worker's list of left-out tests; every worker collects the same tests."""
        output: dict[str, dict[str, int]] = getattr(node, "workeroutput", {})
        self._left_out |= Counter(output.get(_LEFT_OUT, {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the left-out tests."""
        if not self._left_out:
            return
        kinds = ", ".join(f"{n} {reason}" for reason, n in self._left_out.most_common())
        if self._stage in {"rest", *APART}:
            terminalreporter.write_line(f"LEFT OUT: {kinds}: other stages run them")
        else:
            terminalreporter.write_line(
                f"LEFT OUT: {kinds}; and two thirds of the random examples:"
                " make test-rest, make drills and make test-ha run these tests, make test-all"
                " everything"
            )


def stages_with(item: pytest.Item) -> list[str]:
    """The stages of CI that have a test: there should be one."""
    return [stage for stage in ("first", "rest", *APART) if _has(stage, _marked(item))]


def _has(stage: str, marked: set[str]) -> bool:
    if stage == "named":
        return "second_engine" not in marked or "both_engines" in marked
    if stage == "all":
        return True
    apart = next((name for name, (marker, _) in APART.items() if marker in marked), None)
    if apart is not None or stage in APART:
        return apart == stage
    return bool(marked & LATER.keys()) is (stage == "rest")


def _reason(marked: set[str]) -> str:
    named = [*APART.values(), *LATER.items()]
    return next((said for marker, said in named if marker in marked), "of the first stage")


def _marked(item: pytest.Item) -> set[str]:
    return {mark.name for mark in item.iter_markers()}
