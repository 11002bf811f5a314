"""The language of a page: the vendor's, else the browser's; the notice's own is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from countersign.hosted.toolkit.screens import WORDS, preferred
from tests.checkout.buyer import Shop
from tests.checkout.surfer import Surfer

Surf = Callable[..., Surfer]
EN, ES = WORDS["en"], WORDS["es"]


@pytest.mark.parametrize(
    ("accepted", "locale"),
    [
        ("", "en"),
        ("es-MX", "es"),
        ("es-MX,es;q=0.9,en;q=0.8", "es"),
        ("fr-FR, es;q=0.7, en;q=0.3", "es"),
        ("en;q=0.4, ES;q=0.5", "es"),
        ("est", "en"),
        ("de", "en"),
        ("es;q=0, de", "en"),
        ("*", "en"),
        ("es;q=nan, en;q=inf", "es"),
        (", ,;q=1," * 1000, "en"),
    ],
)
def test_a_browser_gets_the_language_that_it_likes_best(accepted: str, locale: str) -> None:
    assert preferred(accepted.encode()) == locale


def test_a_page_is_in_the_language_of_its_browser(surf: Surf, shop: Shop) -> None:
    """The record has the language of its sentences; the vendor sees that it gave none."""
    surfer = surf()
    surfer.client.headers["accept-language"] = "es-MX,es;q=0.9"
    assert surfer.complete().heading == ES["done_title"]
    process = shop.acknowledgment(surfer.buyer)["process"]
    assert (process["locale"], process["consent"]) == ("es", ES["consent"])
    assert shop.read(surfer.buyer)["locale"] is None


def test_choices_of_the_vendor_or_the_buyer_come_first(surf: Surf, shop: Shop) -> None:
    chosen = surf(locale="en")
    chosen.client.headers["accept-language"] = "es"
    assert chosen.open().heading == EN["title"]
    assert shop.read(chosen.buyer)["locale"] == "en"
    surfer = surf()
    surfer.client.headers["accept-language"] = "es"
    english = surfer.follow(surfer.open(), EN["language_name"])
    assert english.heading == EN["title"]
    assert surfer.agree(surfer.initial(english)).heading == EN["done_title"]


def test_the_language_of_the_notice_is_named_where_it_is_another_one(surf: Surf) -> None:
    said = ES["legal_in"].replace("{language}", ES["language_en"])
    spanish = surf(locale="es")
    form = spanish.open()
    for page in (form, spanish.initial(form)):
        assert (said in page.text, ES["legal_help"] in page.text) == (True, True)
    assert EN["legal_help"] not in surf(locale="en").open().text


def test_the_component_is_in_the_language_of_its_browser(shop: Shop) -> None:
    buyer = shop.buyer(origin="https://shop.example")
    buyer.client.headers["accept-language"] = "es"
    current = buyer.current()
    assert (current["locale"], current["words"]["title"]) == ("es", ES["title"])
