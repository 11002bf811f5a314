"""One link in two browsers: initials belong to the browser where they were typed."""

from __future__ import annotations

from collections.abc import Callable

from countersign.hosted.toolkit.screens import WORDS
from countersign_evidence.process import Surface
from tests.checkout.buyer import Buyer, Shop
from tests.checkout.surfer import Surfer
from tests.checkout.test_what_is_recorded import process_of

Surf = Callable[..., Surfer]
EN = WORDS["en"]


def second(shop: Shop, buyer: Buyer) -> Surfer:
    """Another browser with the same link."""
    return shop.opened.enter_context(Surfer(shop.server, buyer))


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
