"""A browser for each worker, and windows for each test."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.order import Order
from tests.browser.shop import Shop, running_shop
from tests.browser.windows import Windows
from tests.support.browsers import running_browser
from tests.support.service import Server


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Run one Chromium while the tests of this folder run."""
    with running_browser() as browser:
        yield browser


@pytest.fixture
def windows(chromium: Browser) -> Iterator[Windows]:
    """Give windows that end with the test."""
    opened = Windows(chromium)
    yield opened
    opened.close()


@pytest.fixture
def patient() -> Iterator[None]:
    """Wait longer than usual for the content of a page: machines can be slow."""
    expect.set_options(timeout=30_000)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture
def shop(server: Server) -> Iterator[Shop]:
    with running_shop() as made:
        made.service = server.url
        yield made


@pytest.fixture
def order(client: httpx2.Client, shop: Shop) -> Order:
    return Order(client, shop)
