"""Obstacles to clearing are shown before the initials, to the known buyer alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

from countersign.base.values import Mode
from countersign.hosted.toolkit.screens import WORDS
from tests.http.backstage import Operator
from tests.remembered.conftest import Person, Shop, form_of, link, remembered, verify_in
from tests.verification.live import revoke

# Page texts do not depend on the engine.
pytestmark = pytest.mark.one_engine

EN, ES = WORDS["en"], WORDS["es"]
PROVED, OTHER = "94110", "10001"
_OWN = re.compile(r"chk_\w+|value=\"[\w-]{20,}\"|revision=\d+")


def order(shop: Shop, cbid: str, zip_: str = OTHER, **changes: object) -> dict[str, Any]:
    """A session of a buyer known to the shop: initials for an order to this ZIP code."""
    asked = {"collect": ["acknowledgment"], "notice_id": "ab1263"}
    return shop.session(**asked, cbid=cbid, shipping_zip=zip_, **changes)


def known(person: Person, shop: Shop) -> str:
    """Have a buyer verified in this browser and remembered by a cookie."""
    session = shop.session()
    person.send(form_of(verify_in(person, session), "cookie"))
    return str(shop.read(session)["cbid"])


def at_shop(shop: Shop, session: dict[str, Any]) -> tuple[object, ...]:
    """All that the shop can read: the session, and the events."""
    events = shop.client.get("/v1/events", params={"limit": "100"}).json()["data"]
    return shop.read(session), [event["type"] for event in events]


def test_an_order_to_another_zip_code_is_reported_before_the_initials(
    person: Person, shop: Shop
) -> None:
    """In words that name no ZIP code, in each language, with the way back and the way on."""
    cbid = known(person, shop)
    session = order(shop, cbid)
    before = at_shop(shop, session)
    page = person.open(link(session))
    assert page.heading == EN["foreseen_title"]
    said = page.text.replace(OTHER, "", 1)  # the order's own destination
    assert not re.search(r"\b\d{5}\b", said)
    assert at_shop(shop, session) == before
    path = f"/c/{session['checkout_session_id']}"
    spanish = person.open(f"{path}?lang=es")
    assert spanish.heading == ES["foreseen_title"]
    assert spanish.links[ES["foreseen_go_on"]] == f"{path}?step=form&lang=es"
    notice = person.open(page.links[EN["foreseen_go_on"]])
    assert notice.heading == EN["title"]
    done = person.send(notice.form, None, **dict.fromkeys(notice.form.texts, "AB"))
    done = person.send(done.form, agreement="yes", consent="yes")
    assert shop.read(session)["reasons"] == ["zip_mismatch"]


def test_an_order_without_obstacles_begins_with_the_notice(person: Person, shop: Shop) -> None:
    page = person.open(link(order(shop, known(person, shop), PROVED)))
    assert page.heading == EN["title"]


def test_each_reason_has_its_own_words(person: Person, shop: Shop, operator: Operator) -> None:
    cbid = known(person, shop)
    shop.client.post("/v1/test/buyers", json={"cbid": cbid, "status": "expired"})
    page = person.open(link(order(shop, cbid, PROVED)))
    assert "Your identity check has expired." in page.text
    revoke(operator, cbid)
    page = person.open(link(order(shop, cbid, PROVED, product_class="barrel")))
    assert "Your verification was withdrawn." in page.text
    assert "needs another notice" in page.text


def test_the_same_link_in_another_browser_shows_the_notice_alone(
    person: Person, another: Person, shop: Shop
) -> None:
    """The vendor has the link, too, and sees the same page for each ZIP code."""
    cbid = known(person, shop)
    seen = []
    for zip_ in (PROVED, OTHER):
        session = order(shop, cbid, zip_)
        person.open(link(session))
        page = another.open(link(session))
        seen.append(_OWN.sub("", page.response.text).replace(zip_, ""))
    assert seen[0] == seen[1]


def test_the_browser_of_another_buyer_shows_the_notice_alone(
    person: Person, another: Person, shop: Shop
) -> None:
    cbid, other = known(person, shop), known(another, shop)
    assert cbid != other
    assert another.open(link(order(shop, cbid))).heading == EN["title"]


def test_a_page_that_frames_or_fetches_it_gets_the_notice(person: Person, shop: Shop) -> None:
    """A shop of the same site could measure the browser's response to its cookies."""
    session = order(shop, known(person, shop))
    for dest in ("iframe", "empty", "image", "script"):
        near = {"Sec-Fetch-Dest": dest, "Sec-Fetch-Site": "same-site"}
        assert person.open(link(session), **near).heading == EN["title"], dest


def test_five_zip_codes_a_day_are_compared_and_none_counts_at_the_shop(
    person: Person, shop: Shop
) -> None:
    """A sixth shows the notice, as in a browser that is not known; the shop has its own."""
    cbid = known(person, shop)
    zips = [f"1000{number}" for number in range(6)]
    pages = [person.open(link(order(shop, cbid, zip_))) for zip_ in zips]
    headings = [page.heading for page in pages]
    assert headings == [EN["foreseen_title"]] * 5 + [EN["title"]]
    assert person.open(link(order(shop, cbid, zips[0]))).heading == EN["foreseen_title"]
    others = [f"2000{number}" for number in range(5)]
    tries = [shop.client.post("/v1/clearances", json=_asked(cbid, zip_)) for zip_ in others]
    # The shop has tried one with the check.
    assert [one.status_code for one in tries] == [200] * 4 + [429]


def _asked(cbid: str, zip_: str) -> dict[str, str]:
    return {"ack_id": "ack_none", "cbid": cbid, "shipping_zip": zip_, "session_id": "cart-7"}


def test_a_buyer_whose_check_in_this_session_ended_can_do_another(
    person: Person, shop: Shop, another: Person
) -> None:
    """Only a press opens the step again: until then the session does not reveal it."""
    both = {"collect": ["identity", "acknowledgment"], "notice_id": "ab1263"}
    session = shop.session(**both)
    assert verify_in(person, session).heading == EN["title"]
    found = shop.read(session)
    shop.client.post("/v1/test/buyers", json={"cbid": found["cbid"], "status": "expired"})
    path = f"/c/{session['checkout_session_id']}"
    assert another.open(link(session)).heading == EN["title"]
    page = person.open(path)
    assert page.heading == EN["foreseen_title"]
    assert shop.read(session) == found
    again = person.send(page.form)
    assert again.heading == EN["identity_title"]


def test_a_cookie_of_the_other_mode_recognises_no_one(
    person: Person, shop: Shop, operator: Operator
) -> None:
    session = shop.session()
    verify_in(person, session)
    cbid = str(shop.read(session)["cbid"])
    remembered(operator, person, cbid, Mode.LIVE)
    assert person.open(link(order(shop, cbid))).heading == EN["title"]
