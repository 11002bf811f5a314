"""The shop of an account of this folder alone, on the shared server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.backstage import Operator
from tests.storefront.shopper import Shopper, Storefront, running_shop
from tests.support.service import Server


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
    """Give a browser with no cookies; nothing that it saw of the shop had the key in it."""
    shopper = storefront.shopper()
    with shopper.client:
        yield shopper
    assert not [page for page in shopper.seen if storefront.key in page]
