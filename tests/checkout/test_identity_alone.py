"""Sessions that collect the identity alone, in a browser without JavaScript."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from countersign.hosted.toolkit.screens import WORDS
from countersign_simulators.base import Reply, Request
from tests.checkout.buyer import SHOP, Shop
from tests.checkout.provider import Counter, address, begin, check, counter, send
from tests.checkout.surfer import Page, Surfer
from tests.http.backstage import Operator
from tests.support.providers import playing

pytestmark = pytest.mark.one_engine

EN = WORDS["en"]
IDENTITY: dict[str, Any] = {"collect": ["identity"], "notice_id": None, "shipping_zip": "94110"}
Linked = Callable[[], Surfer]


@pytest.fixture
def desk(shop: Shop, operator: Operator) -> Iterator[Counter]:
    with counter(shop, operator) as made:
        yield made


@pytest.fixture
def linked(desk: Counter) -> Linked:
    """Fixture: makes such a session and a browser with its link."""
    return lambda: desk.buyer(**IDENTITY)


def is_first(page: Page) -> bool:
    """Whether the page shows the first step, without a begun check."""
    waits = EN["identity_waiting"].replace("{provider}", "Stripe")
    asks = EN["identity_intro"].rpartition("{vendor}")[2]
    return asks in page.text and waits not in page.text and EN["identity_done"] not in page.text


def test_a_buyer_is_verified_and_goes_back_with_the_id_of_the_session_alone(shop: Shop) -> None:
    """The vendor reads who it was, by a key."""
    buyer = shop.buyer(**IDENTITY)
    with Surfer(shop.server, buyer) as surfer:
        page = surfer.send(surfer.open().form, outcome="verified")
    found = shop.read(buyer)
    assert (found["status"], found["identity_status"]) == ("completed", "verified")
    assert found["provider_identity_session_id"] == f"hosted_{buyer.id}"
    assert found["cbid"].startswith("cbid_test_")
    assert f"{SHOP}/back?cart=7&checkout_session_id={buyer.id}" in page.links.values()


def test_a_session_shows_the_buyer_that_it_was_given(shop: Shop) -> None:
    """In the response that creates it and later, until the check finds a buyer."""
    cbid = "cbid_test_5d0kz9mq3v7w1xj2r8t4y6n0pa"
    buyer = shop.buyer(**IDENTITY, cbid=cbid)
    assert buyer.session["cbid"] == shop.read(buyer)["cbid"] == cbid


def test_the_first_page_names_the_vendor_and_only_its_browser_continues_a_check(
    desk: Counter, linked: Linked
) -> None:
    """Another one begins its own; the vendor reads which session of the provider is the newest."""
    surfer = linked()
    assert is_first(surfer.open())
    assert desk.shop.read(surfer.buyer)["provider_identity_session_id"] is None
    begin(surfer)
    before = desk.shop.read(surfer.buyer)["provider_identity_session_id"]
    waiting = surfer.open(surfer.root)
    assert not is_first(waiting)
    with Surfer(desk.shop.server, surfer.buyer) as other:
        assert is_first(other.open())
        begin(other)
    assert desk.shop.read(surfer.buyer)["provider_identity_session_id"] != before


def test_a_decision_that_takes_longer_than_the_link_is_not_promised(
    desk: Counter, linked: Linked
) -> None:
    surfer = linked()
    deciding = check(surfer, "later")
    until = desk.shop.read(surfer.buyer)["expires_at"]
    assert f"before {until[11:16]} UTC ({until[:10]})" in deciding.text
    assert "{" not in deciding.text
    assert send(surfer, deciding, "check").heading == EN["done_title"]


def test_a_buyer_continues_at_the_second_of_two_providers_while_the_first_is_down(
    desk: Counter, linked: Linked
) -> None:
    """If the buyer chooses the failing provider, the page names it."""

    def down(request: Request, reply: Reply) -> Reply:
        return Reply(status=500, headers=(), body=b"")

    with playing("persona") as first:
        desk.use(first)
        with first.mood(down):
            surfer = linked()
            page = surfer.open()
            assert [have["value"] for have in page.having(name="provider")] == ["persona", "stripe"]
            form = next(one for one in page.forms if one.action.endswith("/start"))
            failed = surfer.send(form, provider="persona")
            said = EN["provider_down_choose"].replace("{provider}", "Persona")
            assert (failed.status, said in failed.text) == (200, True)
            assert address(surfer.send(form, provider="stripe")).startswith(desk.provider.url)


def test_a_mistake_of_the_vendor_is_in_the_session_and_an_event(
    desk: Counter, linked: Linked
) -> None:
    """It has an event of its own."""

    def unknown(request: Request, reply: Reply) -> Reply:
        return Reply(status=404, headers=(), body=b'{"error": {"code": "resource_missing"}}')

    surfer = linked()
    begin(surfer)
    with desk.provider.mood(unknown):
        send(surfer, surfer.open(surfer.root), "check")
    found = desk.shop.read(surfer.buyer)
    assert (found["status"], found["reasons"]) == ("open", ["provider_session_not_found"])
    [event] = desk.shop.events_of(surfer.buyer)
    assert (event["type"], event["data"]["reasons"]) == (
        "checkout_session.blocked",
        ["provider_session_not_found"],
    )
