"""Others with the link of a session, and others at the device of a buyer, gain nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from countersign.hosted.toolkit.screens import WORDS
from countersign.operate import bootstrap
from tests.checkout.surfer import held_back
from tests.http.backstage import Operator
from tests.remembered.conftest import (
    READ,
    Person,
    Shop,
    form_of,
    kept_by_passkey,
    link,
    remembered,
    sign_in,
    verified_at,
    verify_in,
)
from tests.remembered.device import Passkey, text

EN, ES = WORDS["en"], WORDS["es"]
OPENER = "cross-origin-opener-policy"


# Trust of pages does not depend on the engine.
pytestmark = pytest.mark.one_engine


def _identity_session(shop: Shop, **changes: object) -> tuple[str, str]:
    """The path of the link and the id of a session that collects the identity alone."""
    session = shop.session(**changes)
    return link(session), session["checkout_session_id"]


@pytest.mark.parametrize("path", ["start", "identity"])
def test_a_form_completed_after_the_check_makes_no_one_the_buyer(
    person: Person, another: Person, shop: Shop, path: str
) -> None:
    """The session is read before the body of a form, which may be slow."""
    address, id_ = _identity_session(shop)
    form = next(f for f in another.open(address).forms if f.action.endswith("/identity"))
    fields = form.fields | {"outcome": "verified"}
    with held_back(another.client, f"/c/{id_}/{path}", fields) as finish:
        page = person.open(address)
        buyer = next(f for f in page.forms if f.action.endswith("/identity"))
        assert EN["remembered_offer_title"] in person.send(buyer, outcome="verified").text
        received = finish()
    assert " 303 " in received.splitlines()[0]
    for line in received.splitlines():
        name, _, value = line.partition(": ")
        if name.lower() == "set-cookie":
            another.client.cookies.set(*value.partition(";")[0].split("=", 1))
    another.post(replace(form, action=f"/c/{id_}/{path}"), outcome="verified")
    assert EN["remembered_offer_title"] not in another.open(f"/c/{id_}").text


@pytest.mark.parametrize("ended", ["cancelled", "completed"])
def test_an_answer_completed_after_the_session_informs_no_one(
    person: Person, shop: Shop, operator: Operator, ended: str
) -> None:
    """It was read while the session waited for it; the buyer's other tab counts, once."""
    person.send(form_of(verify_in(person, shop.session()), "cookie"))
    session = shop.session()
    form = form_of(person.open(link(session)), "cookie")
    person.clock.ahead(READ)
    with held_back(person.client, form.action, form.fields) as finish:
        if ended == "cancelled":
            path = f"/v1/checkout_sessions/{session['checkout_session_id']}/cancel"
            shop.client.post(path, json={}).raise_for_status()
        else:
            person.post(form)
        before, uses = shop.read(session), operator.rows("SELECT * FROM remembered_uses")
        assert (before["status"], len(uses)) == (ended, int(ended == "completed"))
        assert " 303 " in finish().splitlines()[0]
    assert shop.read(session) == before
    assert operator.rows("SELECT * FROM remembered_uses") == uses


def test_a_buyer_who_must_be_checked_again_has_no_other_way(
    person: Person, live_shop: Callable[..., Shop], operator: Operator
) -> None:
    shop = live_shop()
    cbid, zip_ = verified_at(shop.vendor)
    remembered(operator, person, cbid)
    session = shop.session(shipping_zip=zip_)
    consent = form_of(person.open(link(session)), "cookie")
    address, id_ = _identity_session(shop, cbid=cbid, shipping_zip=zip_)
    page = person.open(address)
    assert page.heading == EN["identity_title"]
    assert EN["remembered_link"] not in page.links
    assert person.open(f"/c/{id_}/remembered").heading == EN["identity_title"]
    csrf = page.forms[0].fields["csrf"]
    form = replace(consent, action=f"/c/{id_}/remembered")
    assert person.send(form, csrf=csrf).heading == EN["identity_title"]
    found = shop.client.get(f"/v1/checkout_sessions/{id_}").json()
    assert found["status"] == "open"
    assert operator.rows("SELECT * FROM remembered_uses") == []


def test_the_revision_does_not_reveal_consent_or_remembering(
    person: Person, shop: Shop, operator: Operator
) -> None:
    """Anyone with the link can watch the revision: /updates compares with it."""
    revision = "SELECT revision, consents FROM checkout_sessions WHERE id = :id"
    first = shop.session()
    done = verify_in(person, first)
    [before] = operator.rows(revision, id=first["checkout_session_id"])
    person.send(form_of(done, "cookie"))
    [kept] = operator.rows(revision, id=first["checkout_session_id"])
    assert kept["revision"] == before["revision"]
    second = shop.session(shipping_zip="10001")
    page = person.open(link(second))
    assert person.send(form_of(page, "cookie")).heading == EN["identity_title"]
    [after] = operator.rows(revision, id=second["checkout_session_id"])
    # No page that another browser is shown depends on how many have consented.
    assert (after["revision"], after["consents"]) == (0, 0)


def test_the_offer_is_made_only_for_a_while(person: Person, shop: Shop) -> None:
    session = shop.session()
    form = form_of(verify_in(person, session), "cookie")
    shop.client.post("/v1/test/clock/advance", json={"seconds": 901}).raise_for_status()
    page = person.open(f"/c/{session['checkout_session_id']}")
    assert EN["remembered_offer_title"] not in page.text
    assert EN["remembered_kept"] not in person.send(form).text


def test_the_offer_is_not_made_long_after_the_redirect_back(person: Person, shop: Shop) -> None:
    """The provider decided for a while, and somebody else may have the device."""
    session = shop.session()
    page = person.open(link(session))
    form = next(f for f in page.forms if f.action.endswith("/identity"))
    waiting = person.send(form, outcome="later")
    shop.client.post("/v1/test/clock/advance", json={"seconds": 901}).raise_for_status()
    check = next(f for f in waiting.forms if f.action.endswith("/check"))
    done = person.send(check)
    assert shop.read(session)["status"] == "completed"
    assert EN["remembered_offer_title"] not in done.text


def test_while_a_provider_decides_the_cookie_of_a_session_lasts_a_day(
    person: Person, another: Person, shop: Shop
) -> None:
    session = shop.session()
    form = next(f for f in person.open(link(session)).forms if f.action.endswith("/identity"))
    person.send(form, outcome="later")
    response = another.client.get(link(session))
    [age] = re.findall(r"Max-Age=([0-9]+)", response.headers["set-cookie"])
    assert int(age) == 25 * 60 * 60


def test_another_person_of_the_device_can_be_remembered(person: Person, shop: Shop) -> None:
    """A browser that only knows about a passkey forgets it, too."""
    kept_by_passkey(person, shop)
    session = shop.session()
    check = person.send(form_of(person.open(link(session)), "forget"))
    assert check.heading == EN["identity_title"]
    form = next(f for f in check.forms if f.action.endswith("/identity"))
    assert EN["remembered_offer_title"] in person.send(form, outcome="verified").text


def test_an_outdated_cookie_hides_no_offer(person: Person, shop: Shop) -> None:
    person.client.cookies.set("cs-remembered-test", "x" * 43)
    assert EN["remembered_offer_title"] in verify_in(person, shop.session()).text


def test_only_a_signed_in_buyer_can_sign_out(person: Person, shop: Shop) -> None:
    person.send(form_of(verify_in(person, shop.session()), "cookie"))
    acts = [form.fields["act"] for form in person.open("/buyer").forms]
    assert acts == ["remove", "erase", "export"]


def test_signing_out_ends_it_on_the_server(person: Person, another: Person, shop: Shop) -> None:
    """A copy of the cookie is useless then; the next sign-in has a new one."""
    device = kept_by_passkey(person, shop)
    person.client.cookies.delete("cs-passkey-test")
    page = sign_in(person, device)
    copied = person.client.cookies["cs-buyer"]
    another.client.cookies.set("cs-buyer", copied)
    assert EN["remembered_kind_passkey"] in another.open("/buyer").text
    person.send(form_of(page, "sign_out", "act"))
    another.client.cookies.clear()
    another.client.cookies.set("cs-buyer", copied)
    assert EN["remembered_no_cookie"] in another.open("/buyer").text
    assert EN["remembered_kind_passkey"] in sign_in(person, device).text
    assert EN["remembered_kind_passkey"] in person.open("/buyer").text
    another.client.cookies.clear()
    another.client.cookies.set("cs-buyer", copied)
    assert EN["remembered_no_cookie"] in another.open("/buyer").text


def test_signing_out_works_although_the_clock_is_behind_that_of_the_sign_in(
    person: Person, another: Person, shop: Shop, operator: Operator
) -> None:
    """Servers have clocks of their own; here the sign-in was by one that is a minute ahead."""
    page = sign_in(person, kept_by_passkey(person, shop))
    token, id_, ms, _ = person.client.cookies["cs-buyer"].split(".")
    then = str(int(ms) + 60_000)

    async def code(opened: bootstrap.Deployment) -> bytes:
        return opened.access.secret.page_code(f"buyer who {id_} {then}", token, b"")

    value = f"{token}.{id_}.{then}.{text(operator.act(code))}"
    for one in (person, another):
        one.client.cookies.clear()
        one.client.cookies.set("cs-buyer", value)
    assert EN["remembered_kind_passkey"] in another.open("/buyer").text
    person.send(form_of(page, "sign_out", "act"))
    another.client.cookies.clear()
    another.client.cookies.set("cs-buyer", value)
    assert EN["remembered_no_cookie"] in another.open("/buyer").text


def test_erasing_needs_a_freshly_used_passkey(
    person: Person, shop: Shop, operator: Operator
) -> None:
    page = sign_in(person, kept_by_passkey(person, shop))
    form = form_of(page, "erase", "act")
    token, id_, ms, _ = person.client.cookies["cs-buyer"].split(".")
    then = str(int(ms) - 301_000)

    async def code(opened: bootstrap.Deployment) -> bytes:
        return opened.access.secret.page_code(f"buyer who {id_} {then}", token, b"")

    person.client.cookies.delete("cs-buyer")
    value = f"{token}.{id_}.{then}.{text(operator.act(code))}"
    person.client.cookies.set("cs-buyer", value)
    again = person.send(form, sure="yes")
    assert EN["remembered_erase_again"] in again.text
    assert [f.fields["act"] for f in again.forms] == ["sign_in", "remove", "sign_out"]
    assert len(operator.rows("SELECT * FROM remembered")) == 1


def test_signing_in_gives_the_browser_another_token(person: Person, shop: Shop) -> None:
    device = kept_by_passkey(person, shop)
    person.open("/buyer")
    before = person.client.cookies["cs-buyer"]
    sign_in(person, device)
    assert person.client.cookies["cs-buyer"].partition(".")[0] != before


def test_a_use_of_a_cookie_is_noted(person: Person, shop: Shop, operator: Operator) -> None:
    person.send(form_of(verify_in(person, shop.session()), "cookie"))
    [before] = operator.rows("SELECT last_used_at, expires_at FROM remembered")
    person.post(form_of(person.open(link(shop.session())), "cookie"))
    [after] = operator.rows("SELECT last_used_at, expires_at FROM remembered")
    assert after["last_used_at"] > before["last_used_at"]
    assert after["expires_at"] == before["expires_at"]


@pytest.mark.parametrize("says", ["erased", "erased.x", "erased.é", ".", ""])
def test_another_persons_link_claims_nothing(person: Person, says: str) -> None:
    person.open("/buyer")
    page = person.client.get("/buyer", params={"says": says})
    assert EN["remembered_says_erased"] not in page.text


def test_links_to_the_list_keep_the_language(person: Person, shop: Shop) -> None:
    session = shop.session(locale="es")
    kept = person.send(form_of(verify_in(person, session), "cookie"))
    assert kept.links[ES["remembered_manage"]] == "/buyer?lang=es"
    asked = person.open(link(shop.session(locale="es")))
    assert asked.links[ES["remembered_manage"]] == "/buyer?lang=es"


@pytest.mark.parametrize(("length", "kept"), [(1023, 1), (1024, 0)])
def test_the_id_of_a_passkey_has_a_greatest_length(
    person: Person, shop: Shop, operator: Operator, length: int, kept: int
) -> None:
    kept_by_passkey(person, shop, Passkey(credential_id=bytes(length)))
    assert len(operator.rows("SELECT * FROM remembered")) == kept


def test_the_pages_keep_no_hold_of_a_window(person: Person, another: Person, shop: Shop) -> None:
    done = verify_in(person, shop.session())
    person.send(form_of(done, "cookie"))
    """Headers for known and unknown buyers: otherwise a shop could see who its visitor is."""
    session = shop.session()
    pages: list[Any] = [done, person.open("/buyer"), person.open(link(session))]
    pages += [another.open(path) for path in (link(session), "/c/nothing", "/buyer")]
    responses: list[httpx2.Response] = [page.response for page in pages]
    responses += [one.client.get(link(session)) for one in (person, another)]
    assert [one.headers.get(OPENER) for one in responses] == ["same-origin"] * 8
