"""Shops of accounts of their own on the shared server, on each engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.checkout.buyer import Shop
from tests.checkout.surfer import Surfer
from tests.clearances.conftest import desk
from tests.http.backstage import Operator, Vendor, another_deployment
from tests.http.conftest import configured, configured_vendor, here, other_vendor, vendor
from tests.support.engines import ENGINES, engine_server
from tests.support.service import Server, running_server

__all__ = ["configured", "configured_vendor", "desk", "here", "other_vendor", "vendor"]


@pytest.fixture
def shop(vendor: Vendor, server: Server) -> Iterator[Shop]:
    """Give the shop of an account of this test alone."""
    with ExitStack() as opened:
        yield Shop(vendor, server, opened)


@pytest.fixture
def other_shop(other_vendor: Vendor, server: Server) -> Iterator[Shop]:
    """Give the shop of a second account."""
    with ExitStack() as opened:
        yield Shop(other_vendor, server, opened)


@pytest.fixture(params=ENGINES)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Operator]:
    """Give the operator of a deployment of this test alone."""
    with Operator(another_deployment(tmp_path / "data", engine_server(request))) as operator:
        yield operator


@pytest.fixture
def own_shop(own: Operator) -> Iterator[Shop]:
    """Give a shop on that deployment."""
    with (
        running_server(own.deployment) as started,
        own.vendor(started) as vendor,
        ExitStack() as opened,
    ):
        yield Shop(vendor, started, opened)


@pytest.fixture
def surf(shop: Shop) -> Callable[..., Surfer]:
    """Fixture: makes a session and the browser that its link was sent to."""

    def make(**changes: object) -> Surfer:
        return shop.opened.enter_context(Surfer(shop.server, shop.buyer(**changes)))

    return make
