"""Desks, one for all tests on each engine; and checkouts that ask over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clearances.checkout import Checkout
from tests.clearances.desk import Desk, MovingClock, open_desk
from tests.http.backstage import Operator
from tests.support import postgres
from tests.support.service import Server


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


@pytest.fixture
def checkout(operator: Operator, server: Server) -> Iterator[Checkout]:
    """Give the checkout of an account of this test alone."""
    with operator.vendor(server) as vendor:
        yield Checkout(vendor=vendor, operator=operator, server=server)


@pytest.fixture
def other(operator: Operator, server: Server) -> Iterator[Checkout]:
    """Give the checkout of a second account."""
    with operator.vendor(server) as vendor:
        yield Checkout(vendor=vendor, operator=operator, server=server)
