"""Consent is deliberate: a press that is too early, or on an unrequested page, does not count."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from countersign.hosted.toolkit.screens import WORDS
from tests.checkout.buyer import SHOP
from tests.remembered.conftest import READ, Person, Shop, form_of, link, verify_in

# The time of a press does not depend on the engine.
pytestmark = pytest.mark.one_engine

OURS, THEIRS = {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "cross-site"}
MINUTE = timedelta(minutes=1)


@pytest.fixture
def known(person: Person, shop: Shop) -> Person:
    """A person remembered by a cookie."""
    person.send(form_of(verify_in(person, shop.session()), "cookie"))
    return person


@pytest.mark.parametrize("locale", ["en", "es"])
def test_an_early_consent_is_shown_again_with_the_reason(
    known: Person, shop: Shop, locale: str
) -> None:
    """The vendor learns nothing of it, and the page shown again needs its own time."""
    session = shop.session(locale=locale)
    page = known.arrive(link(session), **OURS)
    for _ in range(2):
        page = known.pressed(form_of(page, "cookie"), **OURS)
        assert page.heading == WORDS[locale]["remembered_consent_title"]
        assert WORDS[locale]["remembered_too_soon"] in page.text
        assert shop.read(session)["status"] == "open"
    assert known.post(form_of(page, "cookie")).headers["location"].startswith(SHOP)
    assert shop.read(session)["status"] == "completed"


def test_a_press_counts_after_the_time_that_it_takes_to_read(known: Person, shop: Shop) -> None:
    """By the server's clock, not by the form."""
    session = shop.session()
    form = form_of(known.arrive(link(session), **OURS), "cookie")
    earlier = str(int(form.fields["asked"]) - 60_000)
    assert known.press(form, asked=earlier).status_code == 303
    assert shop.read(session)["status"] == "open"
    known.clock.ahead(READ)
    assert known.press(form).headers["location"].startswith(SHOP)


@pytest.mark.parametrize("headers", [THEIRS, {"sec-fetch-site": "none"}, {}], ids=str)
def test_a_visitor_from_another_site_is_asked_one_page_later(
    known: Person, shop: Shop, headers: dict[str, str]
) -> None:
    """That page contains nothing of the buyer, and accepts no early press either."""
    session = shop.session()
    page = known.arrive(link(session), **headers)
    assert page.heading == WORDS["en"]["remembered_first_title"]
    ours = OURS if headers else {}
    again = known.pressed(page.form, **ours)
    assert again.heading == page.heading
    assert WORDS["en"]["remembered_too_soon"] in again.text
    known.clock.ahead(READ)
    asked = known.pressed(page.form, **ours)
    assert asked.heading == WORDS["en"]["remembered_consent_title"]
    asked = known.pressed(form_of(asked, "cookie"), **ours)
    assert asked.heading == WORDS["en"]["remembered_consent_title"]
    assert WORDS["en"]["remembered_too_soon"] in asked.text
    assert shop.read(session)["status"] == "open"
    assert known.post(form_of(asked, "cookie")).headers["location"].startswith(SHOP)
    assert shop.read(session)["status"] == "completed"


def test_the_page_before_cannot_be_left_out(known: Person, shop: Shop) -> None:
    """Neither by the address of the consent page, nor by the form of the first page."""
    session = shop.session()
    page = known.arrive(link(session), **THEIRS)
    root = f"/c/{session['checkout_session_id']}"
    direct = known.arrive(f"{root}/remembered", **THEIRS)
    assert direct.heading == WORDS["en"]["remembered_first_title"]
    known.clock.ahead(MINUTE)
    form = replace(page.form, action=f"{root}/remembered")
    known.press(form, how="cookie")
    assert shop.read(session)["status"] == "open"


@pytest.mark.parametrize("site", ["same-origin", "same-site"])
def test_a_buyer_who_did_not_come_from_another_site_is_asked_at_once(
    known: Person, shop: Shop, site: str
) -> None:
    page = known.arrive(link(shop.session()), **{"sec-fetch-site": site})
    assert page.heading == WORDS["en"]["remembered_consent_title"]


def test_a_visitor_without_a_cookie_sees_no_page_before(another: Person, shop: Shop) -> None:
    page = another.arrive(link(shop.session()), **THEIRS)
    assert page.heading == WORDS["en"]["identity_title"]
