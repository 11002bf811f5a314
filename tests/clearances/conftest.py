"""Desks, one for all tests on each engine; and checkouts that ask over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clearances.checkout import Checkout
from tests.clearances.desk import Desk, MovingClock, open_desk
from tests.clearances.overriding import Shop, shop_of
from tests.http.backstage import Operator
from tests.support.engines import ENGINES, Once, engine_server
from tests.support.service import Server


@pytest.fixture(scope="session", params=ENGINES)
def desk(
    request: pytest.FixtureRequest, once: Once, tmp_path_factory: pytest.TempPathFactory
) -> Desk:
    """Give a deployment in this process whose clock the tests move forward, on each engine."""
    place = tmp_path_factory.getbasetemp() / f"desk-{request.param}" / "data"
    return once(place, lambda: open_desk(place, MovingClock(), engine_server(request)))


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


@pytest.fixture
def shop(desk: Desk) -> Shop:
    """Give an account whose order was refused."""
    return shop_of(desk)
