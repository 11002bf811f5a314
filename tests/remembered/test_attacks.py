"""Attacks on being remembered: each is refused, and the shop sees no difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from countersign.base.values import Mode
from countersign.hosted.remembered import remember_cookie
from countersign.hosted.toolkit.screens import WORDS
from tests.checkout.buyer import SHOP
from tests.checkout.surfer import Page
from tests.http.backstage import Operator
from tests.remembered.conftest import (
    Person,
    Shop,
    form_of,
    kept_by_passkey,
    link,
    options_of,
    remembered,
    verified_at,
    verify_in,
)
from tests.remembered.device import Passkey
from tests.support import postgres
from tests.support.every import every
from tests.support.service import Server
from tests.verification.live import revoke

# Trust of pages does not depend on the engine.
pytestmark = pytest.mark.one_engine

EN = WORDS["en"]
NOTHING_SAID: dict[str, object] = {"status": "open", "cbid": None, "reasons": []}


@pytest.fixture
def device(person: Person, shop: Shop) -> Passkey:
    """Give the device that keeps the passkey of this browser's buyer."""
    return kept_by_passkey(person, shop)


def _asked(person: Person, shop: Shop, **changes: object) -> tuple[dict[str, Any], Page]:
    session = shop.session(**changes)
    return session, person.open(link(session))


def _is_refused(person: Person, shop: Shop, session: dict[str, Any], page: Page) -> None:
    """The buyer is redirected to the check, and the shop learns nothing."""
    assert page.heading == EN["identity_title"]
    found = shop.read(session)
    assert {name: found[name] for name in NOTHING_SAID} == NOTHING_SAID
    postgres.settle()
    events = shop.client.get("/v1/events").json()["data"]
    assert not any(
        event["data"].get("checkout_session_id") == session["checkout_session_id"]
        for event in events
    )


def test_an_assertion_counts_once(person: Person, shop: Shop) -> None:
    """Not again in its own session, whatever the result, nor in another one."""
    device = kept_by_passkey(person, shop)
    refused, page = _asked(person, shop, shipping_zip="10001")
    signed = device.sign(options_of(page), step=0)
    form = form_of(page, "passkey")
    _is_refused(person, shop, refused, person.send(form, credential=signed))
    _is_refused(person, shop, refused, person.send(form, credential=signed))
    session, fresh = _asked(person, shop)
    page = person.send(form_of(fresh, "passkey"), credential=signed)
    _is_refused(person, shop, session, page)


@every(
    "changes",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://localhost:4712"},
        {"rp_id": "evil.example"},
        {"cross_origin": True},
        {"flags": 0x01},
        {"flags": 0x04},
        {"type": "webauthn.create"},
        {"challenge": "AAAA"},
        {"handle": b"somebody else"},
        {"handle": b""},
    ],
)
def test_an_assertion_for_another_page_is_refused(
    person: Person, shop: Shop, device: Passkey, changes: dict[str, Any]
) -> None:
    """Another origin or deployment, a frame, a device that verified no one, no one there."""
    session, page = _asked(person, shop)
    signed = device.sign(options_of(page), **changes)
    _is_refused(person, shop, session, person.send(form_of(page, "passkey"), credential=signed))


def test_an_assertion_of_another_session_is_refused(
    person: Person, another: Person, shop: Shop
) -> None:
    device = kept_by_passkey(person, shop)
    _, elsewhere = _asked(person, shop)
    session, page = _asked(person, shop)
    signed = device.sign(options_of(elsewhere))
    _is_refused(person, shop, session, person.send(form_of(page, "passkey"), credential=signed))


def test_a_copied_authenticator_is_refused_and_removed(
    person: Person, shop: Shop, operator: Operator
) -> None:
    """A counter that goes back shows two devices, and not which one is the buyer's."""
    device = kept_by_passkey(person, shop)
    device.count = 5
    _, page = _asked(person, shop)
    person.post(form_of(page, "passkey"), credential=device.sign(options_of(page)))
    for count in (5, 6, 9):
        device.count = count
        session, page = _asked(person, shop)
        signed = device.sign(options_of(page), step=0)
        _is_refused(person, shop, session, person.send(form_of(page, "passkey"), credential=signed))
    assert operator.rows("SELECT * FROM remembered") == []


@every(
    "sent", ["", "{}", "[]", "null", "\u00e9", "x" * 20_000, '{"id":"a","response":{}}', '{"id":1}']
)
@pytest.mark.usefixtures("device")
def test_an_invalid_assertion_is_refused(person: Person, shop: Shop, sent: str) -> None:
    session, page = _asked(person, shop)
    _is_refused(person, shop, session, person.send(form_of(page, "passkey"), credential=sent))


@every("part", ["clientDataJSON", "authenticatorData", "signature"])
@every("value", ["", "AAAA", "%%%", 7, None])
def test_a_damaged_assertion_is_refused(
    person: Person, shop: Shop, device: Passkey, part: str, value: object
) -> None:
    session, page = _asked(person, shop)
    sent = json.loads(device.sign(options_of(page)))
    sent["response"][part] = value
    page = person.send(form_of(page, "passkey"), credential=json.dumps(sent))
    _is_refused(person, shop, session, page)


@pytest.mark.parametrize(
    "changes",
    [
        {"origin": "https://evil.example"},
        {"rp_id": "evil.example"},
        {"flags": 0x01},
        {"challenge": "AAAA"},
        {"type": "webauthn.get"},
        {"cross_origin": True},
    ],
    ids=str,
)
def test_a_passkey_for_another_page_is_not_kept(
    person: Person, shop: Shop, operator: Operator, changes: dict[str, Any]
) -> None:
    done = verify_in(person, shop.session())
    made = Passkey().create(options_of(done), **changes)
    person.send(form_of(done, "passkey"), credential=made)
    assert operator.rows("SELECT * FROM remembered") == []


def test_only_the_verified_browser_is_remembered(
    person: Person, another: Person, shop: Shop, operator: Operator
) -> None:
    """A vendor has the link of the session, and could otherwise pass as the buyer elsewhere."""
    session = shop.session()
    done = verify_in(person, session)
    seen = another.open(link(session))
    assert seen.heading == EN["done_title"]
    assert EN["remembered_offer_title"] not in seen.text
    # Nor with the code in the buyer's own page, which the vendor may have seen.
    form = form_of(done, "cookie")
    another.post(form)
    another.post(form_of(done, "passkey"), credential=Passkey().create(options_of(done)))
    assert operator.rows("SELECT * FROM remembered") == []
    assert person.send(form).status == 200
    assert len(operator.rows("SELECT * FROM remembered")) == 1


def test_no_one_can_begin_a_finished_check(
    person: Person, another: Person, shop: Shop, operator: Operator
) -> None:
    session = shop.session(shipping_zip="94110")
    address, id_ = link(session), session["checkout_session_id"]
    page = person.open(address)
    form = next(f for f in page.forms if f.action.endswith("/identity"))
    another.open(address)
    done = person.send(form, outcome="verified")
    assert EN["remembered_offer_title"] in done.text
    for what in ("start", "identity"):
        fields = {"csrf": form.fields["csrf"], "outcome": "verified"}
        another.client.post(f"/c/{id_}/{what}", data=fields)
    assert EN["remembered_offer_title"] not in another.open(f"/c/{id_}").text
    person.send(form_of(done, "cookie"))
    assert len(operator.rows("SELECT * FROM remembered")) == 1


def test_an_offer_is_accepted_once(person: Person, shop: Shop, operator: Operator) -> None:
    done = verify_in(person, shop.session())
    made = Passkey().create(options_of(done))
    for _ in range(3):
        person.post(form_of(done, "cookie"))
        person.post(form_of(done, "passkey"), credential=made)
    assert len(operator.rows("SELECT * FROM remembered")) == 1


def test_an_unverified_buyer_gets_no_offer(person: Person, shop: Shop) -> None:
    page = person.open(link(shop.session()))
    form = next(f for f in page.forms if f.action.endswith("/identity"))
    failed = person.send(form, outcome="failed")
    declined = person.send(person.open(person_root(failed) + "/decline").form)
    assert EN["remembered_offer_title"] not in failed.text + declined.text


def person_root(page: Page) -> str:
    return str(page.response.url.path)


def test_consent_cannot_be_clicked_in_a_frame(
    person: Person, shop: Shop, operator: Operator
) -> None:
    """Not even in a page of the shop that may embed the session otherwise."""
    operator_origin = {"origin": "https://shop.example"}
    first = shop.session(**operator_origin)
    done = verify_in(person, first)
    assert done.policy["frame-ancestors"] == "'none'"
    framed = person.open(f"/c/{first['checkout_session_id']}", **{"Sec-Fetch-Dest": "iframe"})
    assert framed.policy["frame-ancestors"] == "https://shop.example"
    assert EN["remembered_offer_title"] not in framed.text
    person.send(form_of(done, "cookie"))
    session, page = _asked(person, shop, **operator_origin)
    assert page.heading == EN["remembered_consent_title"]
    assert page.policy["frame-ancestors"] == "'none'"
    for path in ("", "/remembered"):
        inside = person.open(
            f"/c/{session['checkout_session_id']}{path}", **{"Sec-Fetch-Dest": "iframe"}
        )
        assert inside.heading == EN["identity_title"]
    assert person.open("/buyer").policy["frame-ancestors"] == "'none'"


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://shop.example"}, {"Origin": "null", "Sec-Fetch-Site": "cross-site"}],
    ids=str,
)
def test_another_site_cannot_consent(
    person: Person, shop: Shop, headers: dict[str, str], operator: Operator
) -> None:
    person.send(form_of(verify_in(person, shop.session()), "cookie"))
    session, page = _asked(person, shop)
    assert person.post(form_of(page, "cookie"), headers).status_code == 403
    form = replace(form_of(page, "cookie"), action="/buyer")
    assert person.post(form, headers, act="erase", sure="yes").status_code == 403
    assert shop.read(session)["status"] == "open"


def test_the_codes_of_another_browser_with_the_link_are_useless(
    person: Person, another: Person, shop: Shop
) -> None:
    """A browser that does not name the site of a form also sends `Origin: null` for a shop."""
    person.send(form_of(verify_in(person, shop.session()), "cookie"))
    session, page = _asked(person, shop)
    own = form_of(page, "cookie")
    another.open(link(session))
    asked = another.open(f"/c/{session['checkout_session_id']}/remembered")
    theirs = form_of(asked, "passkey").fields | {"how": "cookie"}
    null = {"Origin": "null"}
    assert person.post(replace(own, fields=theirs), null).status_code == 403
    for name in ("csrf", "served", "asked"):
        person.post(own, null, **{name: theirs[name]})
        assert shop.read(session)["status"] == "open"
    person.post(own, null)
    assert shop.read(session)["status"] == "completed"


def test_consent_without_the_pages_code_is_refused(person: Person, shop: Shop) -> None:
    """A form that was not served for this state of this session does nothing."""
    person.send(form_of(verify_in(person, shop.session()), "cookie"))
    _, other = _asked(person, shop)
    session, page = _asked(person, shop)
    form = form_of(page, "cookie")
    for served in ("", "x", form_of(other, "cookie").fields["served"]):
        assert person.send(form, served=served).heading == EN["remembered_consent_title"]
    assert person.post(form, csrf="x").status_code == 403
    assert shop.read(session)["status"] == "open"


def test_the_cookie_is_out_of_reach_of_pages_and_other_sites(person: Person, shop: Shop) -> None:
    done = verify_in(person, shop.session())
    kept = person.post(form_of(done, "cookie"))
    [cookie] = [c for c in kept.headers.get_list("set-cookie") if "remembered" in c]
    assert "; HttpOnly; SameSite=Lax" in cookie
    assert "; Path=/" in cookie
    assert "domain" not in cookie.lower()
    value = cookie.partition("=")[2].partition(";")[0]
    # Neither a page nor the API of the component ever reveals it.
    session = shop.session()
    for path in (link(session), "/buyer"):
        assert value not in person.open(path).response.text
    current = person.client.get(
        "/v1/checkout_sessions/current",
        headers={"Authorization": f"Bearer {session['client_token']}"},
    )
    assert (value not in current.text, "set-cookie" in current.headers) == (True, False)


def test_a_cookie_of_test_mode_is_useless_with_a_live_session(
    person: Person, live_shop: Callable[..., Shop], operator: Operator
) -> None:
    shop = live_shop()
    cbid, zip_ = verified_at(shop.vendor)
    value = operator.act(
        lambda opened: remember_cookie(opened.checkout.remembered, Mode.TEST, cbid)
    )
    for name in ("cs-remembered", "cs-remembered-test"):
        person.client.cookies.set(name, value)
    _, page = _asked(person, shop, shipping_zip=zip_)
    assert page.heading == EN["identity_title"]


@every("value", ["", "x", "x" * 43, "x" * 5000, "é"])
def test_a_cookie_that_is_not_known_leads_to_the_check(
    person: Person, shop: Shop, value: str
) -> None:
    header = {"Cookie": f"cs-remembered-test={value}".encode().decode("latin-1")}
    session = shop.session()
    person.client.get(link(session))
    own = person.client.cookies[f"cs-{session['checkout_session_id']}"]
    header["Cookie"] += f"; cs-{session['checkout_session_id']}={own}"
    found = person.client.get(
        f"/c/{session['checkout_session_id']}",
        headers={k.encode(): v.encode("latin-1") for k, v in header.items()},
    )
    assert EN["identity_title"] in found.text


def test_a_shop_never_learns_whether_somebody_is_known(
    person: Person, another: Person, shop: Shop
) -> None:
    """A known buyer who refuses, and an unknown one, look the same to the shop, and at the API."""
    person.send(form_of(verify_in(person, shop.session()), "cookie"))
    refused, page = _asked(person, shop)
    check = person.open(page.links[EN["remembered_check_instead"]])
    assert check.heading == EN["identity_title"]
    unknown, _ = _asked(another, shop)
    parts = ("checkout_session_id", "created_at", "expires_at", "url", "client_token")
    one, other = (
        {name: value for name, value in shop.read(s).items() if name not in parts}
        for s in (refused, unknown)
    )
    assert one == other


def test_an_erased_buyer_is_not_remembered(operator: Operator) -> None:
    """An erasure can come between the offer and its acceptance."""
    gone = "cb_test_00000000000000000000000000"
    value = operator.act(
        lambda opened: remember_cookie(opened.checkout.remembered, Mode.TEST, gone)
    )
    assert (value, operator.rows("SELECT * FROM remembered")) == ("", [])


def test_a_revoked_buyer_does_not_pass(
    person: Person, live_shop: Callable[..., Shop], operator: Operator
) -> None:
    shop = live_shop()
    cbid, zip_ = verified_at(shop.vendor)
    remembered(operator, person, cbid)
    revoke(operator, cbid)
    session, page = _asked(person, shop, shipping_zip=zip_)
    _is_refused(person, shop, session, person.send(form_of(page, "cookie")))


def test_a_buyer_with_an_expired_verification_does_not_pass(person: Person, shop: Shop) -> None:
    first = shop.session()
    person.send(form_of(verify_in(person, first), "cookie"))
    cbid = shop.read(first)["cbid"]
    expired = shop.client.post("/v1/test/buyers", json={"cbid": cbid, "status": "expired"})
    assert expired.status_code == 200, expired.text
    session, page = _asked(person, shop)
    _is_refused(person, shop, session, person.send(form_of(page, "cookie")))


def test_an_unproved_zip_code_is_refused_and_counted(
    person: Person, live_shop: Callable[..., Shop], operator: Operator
) -> None:
    """A shop cannot find out where a remembered buyer lives by trying."""
    first, shop = live_shop(), live_shop()
    cbid, zip_ = verified_at(first.vendor)
    remembered(operator, person, cbid)
    for number in range(5):
        session, page = _asked(person, shop, shipping_zip=f"1000{number}")
        _is_refused(person, shop, session, person.send(form_of(page, "cookie")))
    # The sixth is the right one, and it is too late for today.
    session, page = _asked(person, shop, shipping_zip=zip_)
    _is_refused(person, shop, session, person.send(form_of(page, "cookie")))


def test_a_shop_with_stricter_rules_than_the_proof_is_not_informed(
    person: Person, live_shop: Callable[..., Shop], operator: Operator
) -> None:
    first, strict = live_shop(), live_shop(minimum_age=99)
    cbid, zip_ = verified_at(first.vendor)
    remembered(operator, person, cbid)
    session, page = _asked(person, strict, shipping_zip=zip_)
    _is_refused(person, strict, session, person.send(form_of(page, "cookie")))
    assert EN["remembered_use_nothing"] in person.open("/buyer").text


def test_one_sandbox_never_meets_another(
    person: Person, shop: Shop, operator: Operator, server: Server
) -> None:
    person.send(form_of(verify_in(person, shop.session()), "cookie"))
    with operator.vendor(server) as vendor:
        other = Shop(vendor)
        session, page = _asked(person, other)
        _is_refused(person, other, session, person.send(form_of(page, "cookie")))


def test_two_tabs_with_one_assertion_pass_once(person: Person, shop: Shop) -> None:
    device = kept_by_passkey(person, shop)
    session, page = _asked(person, shop)
    form, signed = form_of(page, "passkey"), device.sign(options_of(page))
    left = [person.post(form, credential=signed).headers["location"] for _ in range(2)]
    assert [target.startswith(SHOP) for target in left] == [True, False]
    assert shop.read(session)["status"] == "completed"
