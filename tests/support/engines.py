"""The engines of a test.

A fixture with `ENGINES` gives its tests SQLite, and PostgreSQL as the second engine, which belongs
to the second stage (`tests/support/stages.py`). A test marked `both_engines` depends on the engine.
One marked `one_engine` runs on SQLite alone: the engine cannot change its outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final, TypeVar

import pytest

from tests.support import postgres

T = TypeVar("T")

POSTGRES: Final = pytest.param("postgres", marks=pytest.mark.postgres)
"""For behaviour of PostgreSQL alone, or for files whose every test is about the engine."""
ENGINES: Final = [
    "sqlite",
    pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.second_engine]),
]


def engine_server(request: pytest.FixtureRequest) -> postgres.PostgresServer | None:
    """The PostgreSQL of a fixture with engines as parameters; None for SQLite."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return None
    server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
    return server


def engine_settings(request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings of a deployment on the fixture's engine, with a new database."""
    server = engine_server(request)
    return {} if server is None else {"DATABASE_URL": postgres.fresh_database(server)}


class Once:
    """Objects made once for each engine, although the tests alternate between engines.

    pytest ends a fixture when its parameter changes, at the latest with the next file.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._made: dict[object, Any] = {}

    def __call__(self, name: object, make: Callable[[], AbstractContextManager[T]]) -> T:
        """The object of this name, made if needed; it is closed with the stack."""
        if name not in self._made:
            self._made[name] = self._stack.enter_context(make())
        made: T = self._made[name]
        return made


def kept() -> Iterator[Once]:
    """Give what keeps the servers of a folder until its tests end: idle servers take time too."""
    with ExitStack() as stack:
        yield Once(stack)
