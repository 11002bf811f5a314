"""On which engines a test runs.

A fixture with `ENGINES` gives its tests SQLite, and PostgreSQL as the second engine. `make test`
leaves the second one out and says so; `make test-all` and CI run it. A test marked `both_engines`
runs on both everywhere: the engine can change its outcome. One marked `one_engine` runs on SQLite
alone: the engine cannot change its outcome, and the test takes long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final, TypeVar

import pytest

from tests.support import postgres

T = TypeVar("T")

POSTGRES: Final = pytest.param("postgres", marks=pytest.mark.postgres)
"""Never left out: for what PostgreSQL alone does, or where every test is about the engine."""
ENGINES: Final = [
    "sqlite",
    pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.second_engine]),
]

OPTION: Final = "--all-engines"
_LEFT_OUT: Final = "second_engine"


def engine_server(request: pytest.FixtureRequest) -> postgres.PostgresServer | None:
    """The PostgreSQL that a fixture with engines as parameters is asked for; None for SQLite."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return None
    server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
    return server


def engine_settings(request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings of a deployment on the engine that the fixture is asked for, with a new database."""
    server = engine_server(request)
    return {} if server is None else {"DATABASE_URL": postgres.fresh_database(server)}


class Once:
    """What is made once for each engine, although the tests alternate between engines.

    pytest ends a fixture when its parameter changes, at the latest with the next file.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._made: dict[object, Any] = {}

    def __call__(self, name: object, make: Callable[[], AbstractContextManager[T]]) -> T:
        """What was made under this name, or is now; it is closed with the stack."""
        if name not in self._made:
            self._made[name] = self._stack.enter_context(make())
        made: T = self._made[name]
        return made


def kept() -> Iterator[Once]:
    """Give what keeps the servers of a folder until its tests end: idle servers take time too."""
    with ExitStack() as stack:
        yield Once(stack)


class Engines:
    """The plugin: leaves out tests on their second engine, and names them at the end."""

    def __init__(self, *, run_all: bool) -> None:
        self._run_all = run_all
        self._left_out: Counter[str] = Counter()

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep the first engine, and the second where it is asked for or can matter."""
        unneeded = [item for item in items if _marked(item) >= {_LEFT_OUT, "one_engine"}]
        if unneeded:
            config.hook.pytest_deselected(items=unneeded)
            items[:] = [item for item in items if item not in set(unneeded)]
        if self._run_all:
            return
        left_out = [item for item in items if _is_left_out(item)]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if not _is_left_out(item)]
        self._left_out = Counter(map(_folder, left_out))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Report to the process that prints the summary, if this is not the one."""
        output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_LEFT_OUT] = dict(self._left_out)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Take what a worker has left out; every worker collects the same tests."""
        output: dict[str, dict[str, int]] = getattr(node, "workeroutput", {})
        self._left_out |= Counter(output.get(_LEFT_OUT, {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what was left out."""
        if self._left_out:
            folders = ", ".join(f"{name} {n}" for name, n in sorted(self._left_out.items()))
            terminalreporter.write_line(
                f"LEFT OUT: {self._left_out.total()} tests on their second engine, PostgreSQL"
                f" ({folders}), and two thirds of the random examples: make test-all runs them"
            )


def _is_left_out(item: pytest.Item) -> bool:
    marked = _marked(item)
    return _LEFT_OUT in marked and "both_engines" not in marked


def _marked(item: pytest.Item) -> set[str]:
    return {mark.name for mark in item.iter_markers()}


def _folder(item: pytest.Item) -> str:
    return item.nodeid.removeprefix("tests/").partition("/")[0]


def add_option(parser: pytest.Parser) -> None:
    """Declare the option that leaves nothing out."""
    parser.addoption(
        OPTION,
        action="store_true",
        help="run every test on both engines that it is written for, with all drawn examples",
    )
