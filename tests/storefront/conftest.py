"""The shop of a deployment of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.backstage import Operator, another_deployment
from tests.storefront.shopper import Shopper, Storefront, running_shop
from tests.support.engines import ENGINES, engine_server
from tests.support.service import Deployment, Server, running_server


@pytest.fixture(scope="module", params=ENGINES)
def deployment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Deployment:
    """A deployment of this file: an order's needs depend on every existing notice."""
    place = tmp_path_factory.mktemp("storefront") / "data"
    return another_deployment(place, engine_server(request))


@pytest.fixture(scope="module")
def server(deployment: Deployment) -> Iterator[Server]:
    with running_server(deployment) as started:
        yield started


@pytest.fixture(scope="module")
def operator(deployment: Deployment) -> Iterator[Operator]:
    with Operator(deployment) as made:
        yield made


@pytest.fixture(scope="module")
def storefront(
    server: Server, operator: Operator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Storefront]:
    """Run the shop while the tests of a file run."""
    key = operator.key(operator.account()).token
    with running_shop(server.url, key, tmp_path_factory.mktemp("shop")) as shop:
        yield shop


@pytest.fixture
def shopper(storefront: Storefront) -> Iterator[Shopper]:
    """A browser with no cookies; nothing that the shop showed it contained the key."""
    shopper = storefront.shopper()
    with shopper.client:
        yield shopper
    assert not [page for page in shopper.seen if storefront.key in page]
