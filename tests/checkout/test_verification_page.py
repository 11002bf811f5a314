"""The pages of a verification session at a provider, in a browser without JavaScript."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from countersign.checkout.words import WORDS
from countersign_simulators.base import Reply, Request
from tests.checkout.buyer import SHOP, Buyer, Shop
from tests.checkout.provider import Counter, address, begin, check, counter, send
from tests.checkout.surfer import Page, Surfer
from tests.http.backstage import Operator, make_client
from tests.http.calls import refusal
from tests.support.providers import playing

pytestmark = pytest.mark.one_engine

EN = WORDS["en"]
PATH = "/v1/buyers/verification_sessions"
BODY = {"return_url": f"{SHOP}/back", "session_id": "cart-7", "shipping_zip": "94110"}
Linked = Callable[[], Surfer]


@pytest.fixture
def desk(shop: Shop, operator: Operator) -> Iterator[Counter]:
    with counter(shop, operator) as made:
        yield made


@pytest.fixture
def linked(desk: Counter) -> Linked:
    """Give what makes a verification session and a browser with its link."""

    def make() -> Surfer:
        response = desk.shop.client.post(PATH, json=BODY)
        assert response.status_code == 200, response.text
        made = response.json()
        link = {
            "checkout_session_id": made["verification_session_id"],
            "client_token": made["url"].rpartition("/")[2],
        }
        opened = desk.shop.opened
        buyer = Buyer(link, opened.enter_context(make_client(desk.shop.server)))
        return opened.enter_context(Surfer(desk.shop.server, buyer))

    return make


def provider_of(desk: Counter, surfer: Surfer) -> str:
    found = desk.shop.client.get(f"{PATH}/{surfer.buyer.id}").json()
    return str(found["provider_identity_session_id"])


def is_first(page: Page) -> bool:
    """Whether it says what is asked for, and nothing of a check that was begun."""
    waits = EN["identity_waiting"].replace("{provider}", "Stripe")
    asks = EN["identity_intro"].rpartition("{vendor}")[2]
    return asks in page.text and waits not in page.text and EN["identity_done"] not in page.text


def test_the_first_page_says_who_asks_and_begins_the_check_that_waits(
    desk: Counter, linked: Linked
) -> None:
    """And only the browser that has begun it goes on with it: another one begins its own."""
    surfer = linked()
    before = provider_of(desk, surfer)
    assert is_first(surfer.open())
    begin(surfer)
    assert provider_of(desk, surfer) == before
    waiting = surfer.open(surfer.root)
    assert not is_first(waiting)
    with Surfer(desk.shop.server, surfer.buyer) as other:
        assert is_first(other.open())
        begin(other)
    assert provider_of(desk, surfer) != before


def test_a_decision_that_takes_longer_than_the_link_is_not_promised(
    desk: Counter, linked: Linked
) -> None:
    surfer = linked()
    deciding = check(surfer, "later")
    until = desk.shop.client.get(f"{PATH}/{surfer.buyer.id}").json()["expires_at"]
    assert f"before {until[11:16]} UTC ({until[:10]})" in deciding.text
    assert "{" not in deciding.text
    assert send(surfer, deciding, "check").heading == EN["done_title"]


def test_a_session_is_made_while_one_of_two_providers_is_down(
    desk: Counter, linked: Linked
) -> None:
    """The next one has its check, and the page names the one that is down if it is chosen."""

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
            assert (failed.status, said in failed.text) == (503, True)
            with desk.provider.mood(down):
                refused = desk.shop.client.post(PATH, json=BODY)
                assert refusal(refused) == (503, "provider_unavailable")
        other = linked()
        page = other.open()
        form = next(one for one in page.forms if one.action.endswith("/start"))
        assert address(other.send(form, provider="stripe")).startswith(desk.provider.url)


def test_what_the_vendor_has_to_put_right_is_in_the_session_and_an_event(
    desk: Counter, linked: Linked
) -> None:
    """It has an event of its own."""

    def unknown(request: Request, reply: Reply) -> Reply:
        return Reply(status=404, headers=(), body=b'{"error": {"code": "resource_missing"}}')

    surfer = linked()
    begin(surfer)
    with desk.provider.mood(unknown):
        send(surfer, surfer.open(surfer.root), "check")
    found = desk.shop.client.get(f"{PATH}/{surfer.buyer.id}").json()
    assert (found["status"], found["reasons"]) == ("open", ["provider_session_not_found"])
    [event] = desk.shop.events_of(surfer.buyer)
    assert (event["type"], event["data"]["reasons"]) == (
        "verification_session.blocked",
        ["provider_session_not_found"],
    )
