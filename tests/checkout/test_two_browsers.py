"""One link in two browsers: initials belong to the browser where they were typed."""

from __future__ import annotations

from collections.abc import Callable

from countersign.hosted.toolkit.screens import WORDS
from countersign_evidence.dossier import Dossier
from countersign_evidence.process import Surface
from countersign_evidence.record import ACKNOWLEDGMENT
from tests.checkout.buyer import Buyer, Shop
from tests.checkout.surfer import Surfer
from tests.checkout.test_what_is_recorded import process_of
from tests.dossiers.orders import said

Surf = Callable[..., Surfer]
EN = WORDS["en"]


def second(shop: Shop, buyer: Buyer) -> Surfer:
    """Another browser with the same link."""
    return shop.opened.enter_context(Surfer(shop.server, buyer))


def dossier_of(shop: Shop, buyer: Buyer) -> Dossier:
    """The evidence of a completed session, as a reader sees it."""
    path = f"/v1/acknowledgments/{shop.read(buyer)['ack_id']}/dossier"
    found = shop.client.get(path, headers={"Prefer": "wait=10"}).raise_for_status()
    return said(found.content)


def test_a_second_browser_finds_no_initials_of_the_first(surf: Surf, shop: Shop) -> None:
    """Neither a review of them, nor fields with them: whoever agrees has typed them there."""
    first = surf()
    review = first.initial(first.open(), "XX")
    assert review.heading == EN["review_title"]
    other = second(shop, first.buyer)
    page = other.open()
    assert page.heading == first.open(f"{first.root}?step=form").heading
    assert "XX" not in page.text
    # A look takes nothing from the first.
    assert first.open(first.root).text.count("XX") == review.text.count("XX")
    review = other.initial(page, "YZ")
    assert "XX" not in review.text
    assert other.agree(review).heading == EN["done_title"]
    assert set(shop.acknowledgment(first.buyer)["initials_per_line"]) == {"YZ"}
    assert {line["changes"] for line in process_of(shop, first.buyer)["lines"]} == {0}


def test_the_first_browser_keeps_its_own(surf: Surf, shop: Shop) -> None:
    """Even if another one has typed others meanwhile, some of which need corrections."""
    first = surf()
    review = first.initial(first.open(), "XX")
    other = second(shop, first.buyer)
    other.initial(other.open(), "YZ")
    third = second(shop, first.buyer)
    third.initial(third.open(), " ")
    assert "XX" not in third.open(third.root).text
    assert first.agree(review).heading == EN["done_title"]
    assert set(shop.acknowledgment(first.buyer)["initials_per_line"]) == {"XX"}


def test_the_record_names_both_clients_if_two_share_a_cookie(surf: Surf, shop: Shop) -> None:
    """One with a copied cookie agrees to what another has typed: readers say that it was two."""
    first = surf()
    review = first.initial(first.open(), "XX")
    typed_by, agent = first.client.headers["user-agent"], "Mozilla/5.0 (another)"
    first.client.headers["user-agent"] = agent
    assert first.agree(review).heading == EN["done_title"]
    assert shop.acknowledgment(first.buyer)["user_agent"] == agent
    dossier = dossier_of(shop, first.buyer)
    [made] = dossier.of(ACKNOWLEDGMENT)
    assert {*made.shown["user_agent"]["initials_from"]} == {typed_by}
    assert "initials_from" not in made.shown["ip"]
    assert dossier.remarks == (f"{made.id}: initials and agreement came from two clients",)


def test_a_line_is_of_the_client_that_typed_it_last(surf: Surf, shop: Shop) -> None:
    """Whoever sends a line again unchanged has not typed it."""
    first = surf()
    review = first.initial(first.open(), "XX")
    typed_by, agent = first.client.headers["user-agent"], "Mozilla/5.0 (another)"
    first.client.headers["user-agent"] = agent
    form = first.follow(review, EN["change"]).form
    review = first.send(form, initials_2="YY")
    assert first.agree(review).heading == EN["done_title"]
    [made] = dossier_of(shop, first.buyer).of(ACKNOWLEDGMENT)
    of_lines = made.shown["user_agent"]["initials_from"]
    assert of_lines == [typed_by, agent, *[typed_by] * (len(of_lines) - 2)]


def test_one_client_is_not_named_twice(surf: Surf, shop: Shop) -> None:
    """The record of an ordinary buyer is as before."""
    buyer = surf()
    buyer.complete()
    dossier = dossier_of(shop, buyer.buyer)
    [made] = dossier.of(ACKNOWLEDGMENT)
    assert not any("initials_from" in made.shown[name] for name in ("ip", "user_agent"))
    assert dossier.remarks == ()


def test_each_cause_that_a_visitor_can_remove_has_its_own_page(surf: Surf, shop: Shop) -> None:
    """No cookie, a page of another browser, and a link that does not work."""
    first = surf()
    form = first.open().form
    other = second(shop, first.buyer)
    assert other.open(first.root).heading == EN["no_cookie_title"]
    other.open()
    refused = other.send(form)
    assert (refused.status, refused.heading) == (403, EN["another_browser_title"])
    assert other.open(f"{first.root}/nothing").heading == EN["unknown_title"]


def test_a_client_with_only_the_token_shares_nothing_with_a_browser(surf: Surf, shop: Shop) -> None:
    """The component and a program have no cookie: no browser shows their input."""
    surfer = surf()
    surfer.initial(surfer.open(), "XX")
    assert surfer.buyer.acknowledge().json()["status"] == "completed"
    process = process_of(shop, surfer.buyer)
    assert process["surface"] == Surface.COMPONENT
    assert {line["changes"] for line in process["lines"]} == {0}


def test_a_mere_viewer_displaces_no_initials(surf: Surf, shop: Shop) -> None:
    """However many mail scanners open the link, the typed text stays for its browser."""
    first = surf()
    review = first.initial(first.open(), "XX")
    for _ in range(6):
        second(shop, first.buyer).open()
    assert first.open(first.root).text.count("XX") == review.text.count("XX")
