"""The buyer's pages of an account as files, to check its brand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from countersign.core.checkout.brand import ADOPTED_ALLOWED, Brand
from countersign.core.checkout.order import Order, OrderLine
from countersign.core.notices.notice_file import parse_notice_file, shipped_notice_files
from countersign.hosted.pages.visits import BuyerStep
from countersign.hosted.toolkit.screens import LOCALES, part, screen, words_of

LOGO: Final = "logo"
"""The file of the logo, next to the pages."""
_ORDER: Final = Order(
    lines=(OrderLine(text="Preview: one thing", amount="189.00"),), currency="USD"
)
_COMMON: Final[Mapping[str, Any]] = {
    "root": "#",
    "csrf": "",
    "lang": "",
    "test_mode": True,
    "errors": {},
}


def preview_pages(brand: Brand) -> Mapping[str, str]:
    """The pages by the names of their files, in each language."""
    pages = {}
    for locale in LOCALES:
        for number, (template, context) in enumerate(_contexts(brand, locale).items(), 1):
            shown = {"order": "", **_COMMON, **context}
            body = screen(template, locale, brand, languages=[], **shown).body.decode()
            name = f"{number}-{template.removesuffix('.html')}-{locale}.html"
            pages[name] = body.replace(f'"/logos/{brand.logo}"', f'"{LOGO}"')
    return pages


def _contexts(brand: Brand, locale: str) -> Mapping[str, Mapping[str, Any]]:
    """The values of each page."""
    notice = parse_notice_file(next(iter(shipped_notice_files().values())))
    order = part("order.html", locale, brand, order=_ORDER, destination="CA 94105")
    words, lines = words_of(locale, brand.name), len(notice.bullets)
    adopted = None
    if brand.initials == ADOPTED_ALLOWED:
        adopted = {"first": "AB", "lines": range(2, lines + 1), "code": ""}
    return {
        "notice.html": {
            "notice": notice,
            "digest": "",
            "typed": ("AB", *("",) * (lines - 1)) if adopted else ("",) * lines,
            "not_taken": False,
            "adopting": adopted,
            "changed": False,
            "length_max": 1,
            "order": order,
            "progress": BuyerStep(1, 2),
        },
        "review.html": {
            "notice": notice,
            "initials": ("AB",) * lines,
            "differing": (),
            "reviewed": "",
            "order": order,
            "progress": BuyerStep(2, 2),
        },
        "ended.html": {
            "title": words["done_title"],
            "intro": words["done_intro"],
            "return_url": "#",
            "next": True,
            "ack": None,
            "mail": None,
            "remembered": None,
            "remembered_yes": False,
        },
    }
