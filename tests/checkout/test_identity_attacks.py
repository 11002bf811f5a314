"""Attacks on the identity step of the hosted page: each is refused, and none changes a session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from countersign.core.checkout.room import ASKED_MAX
from countersign.hosted.toolkit.screens import WORDS
from tests.checkout.buyer import SHOP, Shop
from tests.checkout.provider import (
    Counter,
    address,
    begin,
    check,
    come_back,
    counter,
    finish,
    go_on,
    send,
)
from tests.checkout.surfer import Page, Surfer, check_headers
from tests.http.backstage import Operator, make_client

pytestmark = pytest.mark.one_engine

EN = WORDS["en"]


@pytest.fixture
def desk(shop: Shop, operator: Operator) -> Iterator[Counter]:
    with counter(shop, operator) as made:
        yield made


def requests(desk: Counter) -> int:
    """How many the provider had, of this service and of buyers."""
    return len(desk.provider.served.requests)


@pytest.mark.parametrize(
    "query",
    [
        "status=verified",
        "verification_session=vs_other&status=verified&cbid=cb_other",
        "session=verified&next=//evil.example&url=https://evil.example&lang=es",
        "inquiry-id=inq_other&reference-id={own}&status=completed",
        "&".join(f"a{number}=b" for number in range(900)),
        "%00%ff=%",
    ],
)
def test_parameters_of_a_return_are_ignored(desk: Counter, query: str) -> None:
    surfer = desk.buyer()
    url = begin(surfer)
    surfer.client.follow_redirects = False
    back = surfer.client.get(f"{surfer.root}/return?{query}")
    check_headers(back)
    assert (back.status_code, back.headers["location"]) == (303, surfer.root)
    surfer.client.follow_redirects = True
    waiting = surfer.open(surfer.root)
    assert go_on(surfer, waiting) == url
    assert "evil" not in waiting.response.text
    assert desk.status(surfer) == "open"


def test_only_a_browser_redirected_by_the_provider_may_be_remembered(desk: Counter) -> None:
    """A vendor can begin the check itself, and hand the provider's address to the buyer."""
    vendor = desk.buyer(collect=["identity"])
    location = finish(begin(vendor), "verified")
    assert location is not None
    with desk.shop.server.client() as buyer:
        assert EN["elsewhere_title"] in buyer.get(urlsplit(location).path).text
    send(vendor, vendor.open(vendor.root), "check")
    for path in ("", "/return", "/return/", f"/return/{'A' * 43}"):
        done = vendor.open(vendor.root + path)
        assert done.heading == EN["done_title"]
        assert EN["remembered_offer_title"] not in done.text
    assert EN["remembered_offer_title"] not in come_back(vendor, location).text


def test_only_the_browser_that_began_a_check_may_be_remembered(desk: Counter) -> None:
    """A vendor has the link, too, and may come to know where the provider leads back to."""
    buyer = desk.buyer(collect=["identity"])
    url = begin(buyer)
    vendor = desk.shop.opened.enter_context(Surfer(desk.shop.server, buyer.buyer))
    begin(vendor)
    location = finish(url, "verified")
    assert EN["remembered_offer_title"] in come_back(buyer, location).text
    assert EN["remembered_offer_title"] in come_back(buyer, location).text
    assert EN["remembered_offer_title"] not in vendor.open(vendor.root).text
    # If two browsers return from one check, neither is known to be the buyer's.
    for browser in (vendor, buyer):
        assert EN["remembered_offer_title"] not in come_back(browser, location).text


def test_no_browser_gets_the_address_of_another_browsers_check(desk: Counter) -> None:
    buyer = desk.buyer()
    begin(buyer)
    numbers = "SELECT attempt FROM started_checks WHERE reference = :id ORDER BY attempt"
    go_on(buyer, buyer.open(buyer.root))
    assert len(desk.operator.rows(numbers, id=buyer.buyer.id)) == 1
    vendor = desk.shop.opened.enter_context(Surfer(desk.shop.server, buyer.buyer))
    for path in (None, vendor.root, f"{vendor.root}/continue"):
        page = vendor.open(path)
        assert page.heading == EN["identity_title"]
        assert not any(link.startswith(desk.provider.url) for link in page.links.values())
    begin(vendor)
    assert len(desk.operator.rows(numbers, id=buyer.buyer.id)) == 2


def test_a_return_into_another_session_has_no_effect(desk: Counter) -> None:
    victim, thief = desk.buyer(), desk.buyer()
    begin(victim)
    location = finish(begin(thief), "verified")
    before = requests(desk)
    assert location is not None
    with make_client(desk.shop.server) as stranger:
        pages = {
            client.get(f"/c/{name}/return?{query}").text
            for client in (stranger, thief.client)
            for name in (victim.buyer.id, "chk_01km9x4v8gen3rr1p6q1s2t3v6", "nothing", "é")
            for query in ("", location.partition("?")[2])
        }
        head = stranger.head(f"{victim.root}/return")
        check_headers(head)
    assert len(pages) == 1
    assert EN["elsewhere_title"] in pages.pop()
    assert requests(desk) == before
    assert EN["identity_title"] == victim.open(victim.root).heading
    # A verification of the thief is no check of the victim, either.
    assert come_back(thief, location).heading == EN["title"]
    assert desk.shop.read(victim.buyer)["cbid"] is None


def test_a_check_of_one_session_says_nothing_in_another(desk: Counter) -> None:
    first, second = desk.buyer(), desk.buyer()
    verified = check(first, "verified")
    assert verified.heading == EN["title"]
    begin(second)
    assert second.open(f"{second.root}/return").heading == EN["identity_title"]
    for session in (first, second):
        moved = replace(verified.form, action=f"{second.root}/accept")
        assert session.send(moved).status in {403, 404}
    assert desk.shop.read(second.buyer)["cbid"] is None


def test_viewing_the_page_starts_and_requests_nothing(desk: Counter) -> None:
    surfer = desk.buyer()
    surfer.open()
    before = requests(desk)
    for path in ("", "/start", "/check", "/return", "/continue", "/identity", "/decline"):
        surfer.client.head(surfer.root + path)
        surfer.open(surfer.root + path)
    assert requests(desk) == before
    begin(surfer)
    before = requests(desk)
    surfer.client.head(f"{surfer.root}/return")
    for header in ("Sec-Purpose", "Purpose", "X-Moz"):
        surfer.client.get(f"{surfer.root}/return", headers={header: "prefetch;prerender"})
    for path in ("", "/start", "/check", "/continue", "/decline"):
        surfer.open(surfer.root + path)
    assert requests(desk) == before
    surfer.open(f"{surfer.root}/return")
    assert requests(desk) == before + 1


def test_a_return_asks_only_while_news_is_possible(desk: Counter) -> None:
    surfer = desk.buyer()
    check(surfer, "underage")
    before = requests(desk)
    for _ in range(3):
        surfer.open(f"{surfer.root}/return")
    assert requests(desk) == before


def test_a_browser_cannot_cause_endless_requests_to_the_provider(desk: Counter) -> None:
    surfer = desk.buyer()
    begin(surfer)
    before = requests(desk)
    for _ in range(ASKED_MAX + 5):
        surfer.open(f"{surfer.root}/return")
    assert send(surfer, surfer.open(surfer.root), "check").having(role="alert")
    assert requests(desk) - before == ASKED_MAX


@pytest.mark.parametrize("what", ["start", "check", "identity"])
@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_a_form_of_another_site_starts_nothing(
    desk: Counter, what: str, headers: dict[str, str]
) -> None:
    surfer = desk.buyer()
    fields = surfer.open().form.fields
    before = requests(desk)
    refused = surfer.client.post(f"{surfer.root}/{what}", data=fields, headers=headers)
    check_headers(refused)
    assert refused.status_code == 403
    for code in ("", "x", "A" * 43):
        data = fields | {"csrf": code}
        assert surfer.client.post(f"{surfer.root}/{what}", data=data).status_code == 403
    with make_client(desk.shop.server) as stranger:
        assert stranger.post(f"{surfer.root}/{what}", data=fields).status_code == 404
    assert requests(desk) == before


def test_no_page_leads_anywhere_but_to_the_provider_of_the_check(desk: Counter) -> None:
    surfer = desk.buyer()
    surfer.open()
    page = surfer.open(f"{surfer.root}?url=https://evil.example&provider=//evil.example")
    started = surfer.send(page.form, url="https://evil.example", return_url="//evil.example")
    url = address(started)
    assert url.startswith(f"{desk.provider.url}/")
    assert f'content="0;url={url}"' in started.response.text
    waiting = surfer.open(surfer.root)
    for one in (page, started, waiting):
        assert "evil" not in one.response.text
        assert one.policy["form-action"] == "'self'"
        own = (surfer.root, f"{desk.provider.url}/", f"{SHOP}/", "/c/", "#")
        assert all(link.startswith(own) for link in one.links.values())


def test_the_simulated_provider_decides_nothing_if_there_is_a_real_one(desk: Counter) -> None:
    surfer = desk.buyer()
    page = surfer.open()
    forged = replace(page.form, action=f"{surfer.root}/identity")
    assert surfer.send(forged, outcome="verified").status == 400
    begin(surfer)
    assert surfer.send(forged, outcome="verified").status == 400
    assert desk.shop.read(surfer.buyer)["cbid"] is None


def test_no_stage_may_be_framed(desk: Counter) -> None:
    surfer = desk.buyer()
    stages: list[Page] = [surfer.open()]
    stages.append(surfer.send(stages[0].form))
    stages.append(surfer.open(surfer.root))
    stages.append(come_back(surfer, finish(address(stages[1]), "underage")))
    with make_client(desk.shop.server) as stranger:
        stages.append(Page(stranger.get(f"{surfer.root}/return")))
    for page in stages:
        assert page.policy["frame-ancestors"] == "'none'"


def test_the_addresses_of_checks_are_for_the_buyer_alone(desk: Counter) -> None:
    surfer = desk.buyer()
    url = begin(surfer)
    assert url not in desk.shop.client.get(f"/v1/checkout_sessions/{surfer.buyer.id}").text
    with Surfer(desk.shop.server, surfer.buyer) as stranger:
        for path in ("", "/continue", "/updates?revision=0"):
            response = stranger.client.get(surfer.root + path)
            assert response.status_code == 404
            assert url not in response.text


def test_after_the_end_nothing_is_started(desk: Counter) -> None:
    surfer = desk.buyer()
    page = surfer.open()
    desk.shop.client.post(f"/v1/checkout_sessions/{surfer.buyer.id}/cancel", json={})
    before = requests(desk)
    for what in ("start", "check"):
        form = replace(page.form, action=f"{surfer.root}/{what}")
        assert surfer.send(form).heading == EN["cancelled_title"]
    for path in ("/return", "/continue", "/start"):
        assert surfer.open(surfer.root + path).heading == EN["cancelled_title"]
    assert requests(desk) == before
