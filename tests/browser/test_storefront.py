"""Buying in the example shop, in a real browser."""

from __future__ import annotations

import re
from typing import Final, Literal

import pytest
from playwright.sync_api import expect

from tests.browser.walk import Walk
from tests.browser.windows import Windows, assert_accessible
from tests.storefront.conftest import deployment, operator, server, storefront
from tests.storefront.shopper import Storefront

__all__ = ["deployment", "operator", "server", "storefront"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.npm,
    pytest.mark.long,
    pytest.mark.parametrize("deployment", ["sqlite"], indirect=True),
]

_ACK: Final = re.compile("ack_[0-9a-z]{26}")


@pytest.fixture
def walk(request: pytest.FixtureRequest, windows: Windows, storefront: Storefront) -> Walk:
    """Give a buyer at a desk, with a small phone on a slow network, or with dark colours."""
    if request.param == "phone":
        return Walk(windows.phone(), storefront.url)
    scheme: Literal["dark", "light"] = "dark" if request.param == "dark" else "light"
    return Walk(windows.open(color_scheme=scheme), storefront.url)


def by(*devices: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("walk", devices, indirect=True)


def arrive(walk: Walk, title: str) -> None:
    """This page is shown; it is accessible and not wider than the window."""
    expect(walk.page.get_by_role("heading", level=1)).to_have_text(title)
    assert_accessible(walk.page)
    assert walk.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@by("desktop", "phone", "dark")
def test_buying_by_the_link(walk: Walk, windows: Windows) -> None:
    page = walk.page
    # The empty address is refused.
    windows.expect_trouble("422")
    page.goto(walk.shop)
    arrive(walk, "For your workshop")
    walk.follow("Free-float handguard")
    arrive(walk, "Free-float handguard, 15 inch")
    walk.press("Add to cart")
    arrive(walk, "Your cart")
    walk.follow("Check out")
    walk.press("Order")
    arrive(walk, "Check out")
    expect(page.get_by_role("alert").get_by_role("link")).to_have_count(5)
    walk.order()
    arrive(walk, "Identity check")
    walk.identify()
    arrive(walk, "Notice and initials")
    walk.initial()
    arrive(walk, "Review your initials")
    walk.agree()
    arrive(walk, "Almost done")
    page.get_by_role("link", name="Return to").click()
    arrive(walk, "Paid and released")
    expect(page.locator("code")).to_have_text(_ACK)


@by("phone", "dark")
def test_buying_with_the_component(walk: Walk) -> None:
    """A verified buyer only types the initials, in the shop's own page."""
    page = walk.page
    walk.add("handguard")
    walk.order_here()
    arrive(walk, "One more step")
    walk.identify_apart()
    arrive(walk, "One more step")
    walk.press("Finish my order")
    # The form is not complete without an acknowledgment.
    expect(page.get_by_role("heading", level=1)).to_have_text("One more step")
    walk.initial()
    walk.agree()
    expect(page.locator("countersign-notice").get_by_text(_ACK)).to_be_visible()
    walk.press("Finish my order")
    arrive(walk, "Paid and released")
    walk.add("mill")
    walk.order_here()
    expect(page.get_by_label("Your initials for line 1")).to_be_visible()


@by("desktop")
def test_declining_by_the_link(walk: Walk) -> None:
    walk.add("handguard")
    walk.order()
    walk.follow("Decline")
    walk.press("Yes, decline")
    walk.page.get_by_role("link", name="Return to").click()
    arrive(walk, "You declined")


@by("phone")
def test_declining_in_the_component(walk: Walk) -> None:
    walk.add("handguard")
    walk.order_here()
    walk.press("Decline")
    walk.press("Yes, decline")
    expect(walk.page.get_by_text("Nothing was acknowledged")).to_be_visible()
    walk.follow("My order")
    arrive(walk, "You declined")
