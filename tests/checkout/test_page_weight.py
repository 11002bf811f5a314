"""No page is heavier than 20 KB with the shipped notice, also with the longest order."""

from __future__ import annotations

from typing import Any, Final

import pytest

from countersign.core.checkout.order import LINES_MAX, TEXT_LENGTH_MAX
from tests.checkout.buyer import Shop
from tests.checkout.surfer import Page, Surfer
from tests.support.service import Server

# Page weights do not depend on the engine.
pytestmark = pytest.mark.one_engine

PAGE_BYTES_MAX: Final = 20 * 1024
WIRE_BYTES_MAX: Final = 10 * 1024
ODD_BYTES_MAX: Final = 30 * 1024
"""Where each character of the order takes several bytes, written as the page must write it."""


def order(character: str) -> dict[str, Any]:
    """The longest order that a vendor can show."""
    line = {"text": character * TEXT_LENGTH_MAX, "amount": "123456789.00"}
    return {"lines": [line] * LINES_MAX, "currency": "USD"}


def weights(server: Server, shop: Shop, character: str, locale: str) -> dict[str, int]:
    """The weight of each page of a purchase."""
    both = {"collect": ["identity", "acknowledgment"], "shipping_zip": "94110", "locale": locale}
    found: dict[str, int] = {}

    def weigh(state: str, page: Page) -> Page:
        found[state] = len(page.response.content)
        return page

    with Surfer(server, shop.buyer(order=order(character), **both)) as surfer:
        page = weigh("identity", surfer.open())
        page = weigh("refused", surfer.send(page.form, outcome="underage"))
        page = weigh("notice", surfer.send(page.form, outcome="verified"))
        page = weigh("notice with errors", surfer.send(page.form))
        page = weigh("review", surfer.initial(page))
        weigh("review with errors", surfer.send(page.form))
        weigh("done", surfer.agree(page))
    return found


@pytest.mark.parametrize("locale", ["en", "es"])
def test_no_page_is_above_20_kb_also_with_the_longest_order(
    server: Server, shop: Shop, locale: str
) -> None:
    found = weights(server, shop, "m", locale)
    assert {state: size for state, size in found.items() if size > PAGE_BYTES_MAX} == {}


@pytest.mark.parametrize("locale", ["en", "es"])
def test_every_page_up_to_the_last_travels_in_10_kb(
    server: Server, shop: Shop, locale: str
) -> None:
    """So it fits into the first window of a connection, with its headers and certificates."""
    both = {"collect": ["identity", "acknowledgment"], "shipping_zip": "94110", "locale": locale}
    with Surfer(server, shop.buyer(**both)) as surfer:
        pages = [surfer.open()]
        pages.append(surfer.send(pages[-1].form, outcome="verified"))
        pages += surfer.send(pages[-1].form), surfer.initial(pages[-1])
    sizes = [page.response.num_bytes_downloaded for page in pages]
    assert all(size <= WIRE_BYTES_MAX for size in sizes), sizes


def test_an_order_in_letters_of_many_bytes_is_all_that_makes_a_page_heavier(
    server: Server, shop: Shop
) -> None:
    """The text is the vendor's: it is complete, and other text is not compressed with it."""
    for character in ('"', "\U0001f4e6"):
        found = weights(server, shop, character, "es")
        assert max(found.values()) <= ODD_BYTES_MAX, (character, found)
