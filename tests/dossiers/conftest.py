"""A desk for all tests on each engine, and orders made at it."""

from __future__ import annotations

import pytest

from tests.clearances.desk import MovingClock, open_desk
from tests.dossiers.orders import Orders
from tests.support.engines import ENGINES, Once, engine_server


@pytest.fixture(scope="session", params=ENGINES)
def orders(
    request: pytest.FixtureRequest, once: Once, tmp_path_factory: pytest.TempPathFactory
) -> Orders:
    """A deployment in this process where orders are made, on each engine."""
    place = tmp_path_factory.getbasetemp() / f"orders-{request.param}" / "data"
    desk = once(place, lambda: open_desk(place, MovingClock(), engine_server(request)))
    return Orders(desk)
