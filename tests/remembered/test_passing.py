"""A buyer who was verified once passes by passkey or cookie, and says so each time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from countersign.hosted.toolkit.screens import WORDS
from tests.checkout.buyer import SHOP
from tests.http.backstage import Operator
from tests.remembered.conftest import (
    Person,
    Shop,
    form_of,
    link,
    options_of,
    remembered,
    verified_at,
    verify_in,
)
from tests.remembered.device import Passkey

EN = WORDS["en"]


def test_a_verified_buyer_keeps_a_cookie_and_passes_with_three_requests(
    person: Person, shop: Shop, operator: Operator
) -> None:
    """The link, the consent page, and the consent, which redirects straight back to the shop."""
    first = shop.session()
    done = verify_in(person, first)
    assert EN["remembered_offer_title"] in done.text
    kept = person.send(form_of(done, "cookie"))
    assert EN["remembered_kept"] in kept.text
    second = shop.session()
    page = person.open(link(second))
    assert page.heading == EN["remembered_consent_title"]
    left = person.post(form_of(page, "cookie"))
    assert left.status_code == 303
    assert left.headers["location"].startswith(f"{SHOP}/back?cart=7")
    found = shop.read(second)
    assert (found["status"], found["cbid"]) == ("completed", shop.read(first)["cbid"])
    _check_record(operator, "cookie")


def test_a_verified_buyer_keeps_a_passkey_and_passes_with_it(
    person: Person, shop: Shop, operator: Operator
) -> None:
    """A counter that stays at 0, as for a passkey in a cloud, is no reason to refuse."""
    device = Passkey()
    done = verify_in(person, shop.session())
    person.send(form_of(done, "passkey"), credential=device.create(options_of(done)))
    for step in (0, 0, 1, 5):
        session = shop.session()
        page = person.open(link(session))
        signed = device.sign(options_of(page), step=step)
        left = person.post(form_of(page, "passkey"), credential=signed)
        assert left.headers["location"].startswith(SHOP)
        assert shop.read(session)["status"] == "completed"
    _check_record(operator, "passkey")


def test_the_cookie_comes_first_if_no_passkey_was_kept(person: Person, shop: Shop) -> None:
    first, second = shop.session(), shop.session()
    person.send(form_of(verify_in(person, first), "cookie"))
    text = person.open(link(second)).response.text
    by_cookie, by_passkey = EN["remembered_use_cookie"], EN["remembered_use_passkey"]
    assert text.index(by_cookie) < text.index(by_passkey)
    assert EN["remembered_learns_when"] in text


def test_a_passkey_is_found_in_a_browser_that_has_no_cookie(
    person: Person, another: Person, shop: Shop
) -> None:
    device = Passkey()
    done = verify_in(person, shop.session())
    person.send(form_of(done, "passkey"), credential=device.create(options_of(done)))
    session = shop.session()
    page = another.open(link(session))
    assert EN["remembered_link"] in page.links
    asked = another.open(page.links[EN["remembered_link"]])
    left = another.post(form_of(asked, "passkey"), credential=device.sign(options_of(asked)))
    assert left.headers["location"].startswith(SHOP)


def test_the_initials_record_how_the_buyer_was_recognised(person: Person, shop: Shop) -> None:
    both = {"collect": ["identity", "acknowledgment"], "notice_id": "ab1263"}
    done = verify_in(person, shop.session())
    person.send(form_of(done, "cookie"))
    session = shop.session(**both)
    page = person.send(form_of(person.open(link(session)), "cookie"))
    assert page.heading == EN["title"]
    review = person.send(page.form, None, **dict.fromkeys(page.form.texts, "AB"))
    person.send(review.form, None, **dict.fromkeys(review.form.boxes, "yes"))
    ack_id = shop.read(session)["ack_id"]
    process = shop.vendor.test.get(f"/v1/acknowledgments/{ack_id}").json()["process"]
    assert process["binding"] == "cookie"
    assert process["verification"].startswith("ver_")


def test_a_second_shop_of_the_deployment_is_informed_by_its_own_rules(
    person: Person, live_shop: Callable[..., Shop], operator: Operator
) -> None:
    first, second = live_shop(), live_shop()
    cbid, zip_ = verified_at(first.vendor)
    remembered(operator, person, cbid)
    session = second.session(shipping_zip=zip_)
    page = person.open(link(session))
    left = person.post(form_of(page, "cookie"))
    assert left.headers["location"].startswith(SHOP)
    found = second.read(session)
    assert (found["status"], found["cbid"], found["reasons"]) == ("completed", cbid, [])
    [row] = operator.rows("SELECT * FROM verifications WHERE provider = 'remembered'")
    assert row["account_id"] == second.vendor.account_id
    # No provider was asked: it has no session for this.
    answer = person.open("/buyer").text
    assert EN["remembered_use_verified"] in answer


def test_the_consent_page_shows_no_stored_data(person: Person, shop: Shop) -> None:
    """On a device of two people the next one sees no name, and can refuse."""
    first = shop.session()
    person.send(form_of(verify_in(person, first), "cookie"))
    cbid = shop.read(first)["cbid"]
    page = person.open(link(shop.session()))
    assert cbid not in page.response.text
    assert EN["remembered_cookie_warning"] in page.text
    check = person.send(form_of(page, "forget"))
    assert check.heading == EN["identity_title"]
    assert person.open(link(shop.session())).heading == EN["identity_title"]


def _check_record(operator: Operator, binding: str) -> None:
    """The newest verification has a record that names the binding."""
    [row, *_] = operator.rows("SELECT id FROM verifications ORDER BY id DESC")
    [record] = operator.rows("SELECT body FROM records WHERE id = :id", id=row["id"])
    body: Any = record["body"]
    said = body if isinstance(body, bytes) else bytes(body)
    assert f'"binding":"{binding}"'.encode() in said
    assert b'"provider":"remembered"' in said
