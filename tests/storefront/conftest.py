"""The shop of a deployment of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.backstage import Operator, another_deployment
from tests.storefront.shopper import Shopper, Storefront, running_shop
from tests.support.engines import ENGINES, engine_server
from tests.support.service import running_server


@pytest.fixture(scope="module", params=ENGINES)
def storefront(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Storefront]:
    """Run the shop while the tests of a file run.

    On a deployment of its own: what an order needs depends on every notice that there is.
    """
    place = tmp_path_factory.mktemp("storefront")
    made = another_deployment(place / "data", engine_server(request))
    with running_server(made) as server, Operator(made) as operator:
        key = operator.key(operator.account()).token
        with running_shop(server.url, key, place) as shop:
            yield shop


@pytest.fixture
def shopper(storefront: Storefront) -> Iterator[Shopper]:
    """Give a browser with no cookies; nothing that it saw of the shop had the key in it."""
    shopper = storefront.shopper()
    with shopper.client:
        yield shopper
    assert not [page for page in shopper.seen if storefront.key in page]
