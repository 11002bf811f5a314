"""Desks: one for all tests on each engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clearances.desk import Desk, MovingClock, open_desk
from tests.support import postgres


@pytest.fixture(
    scope="session", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
)
def desk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    """Give a deployment in this process whose clock the tests move forward, on each engine."""
    settings = {}
    if request.param == "postgres":
        server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
        settings["DATABASE_URL"] = postgres.fresh_database(server)
    data_dir = tmp_path_factory.mktemp(f"desk-{request.param}") / "data"
    with open_desk(data_dir, MovingClock(), settings) as made:
        yield made
