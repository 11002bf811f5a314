"""`/buyer`: remembered data, its uses, removing it, and erasing everything."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Callable
from datetime import timedelta

import pytest

from countersign.base.values import Mode
from countersign.hosted.remembered import COOKIE_KEPT, PASSKEY_KEPT, USES_KEPT
from countersign.hosted.toolkit.screens import WORDS
from countersign.operate.housekeeping import delete_outdated
from tests.checkout.surfer import Form, Page
from tests.http.backstage import Operator
from tests.http.calls import verify
from tests.remembered.conftest import (
    Person,
    Shop,
    form_of,
    kept_by_passkey,
    link,
    options_of,
    remembered,
    sign_in,
    verified_at,
    verify_in,
)
from tests.remembered.device import Passkey
from tests.support.every import every

EN, ES = WORDS["en"], WORDS["es"]
TABLES = ("remembered", "remembered_uses", "buyers", "verifications", "erasure_requests")


# Trust of pages does not depend on the engine.
pytestmark = pytest.mark.one_engine


def _act(page: Page, what: str) -> Form:
    return form_of(page, what, "act")


def _cookie(person: Person, shop: Shop) -> None:
    person.send(form_of(verify_in(person, shop.session()), "cookie"))


def _use(person: Person, shop: Shop) -> None:
    person.post(form_of(person.open(link(shop.session())), "cookie"))


def test_a_stranger_sees_nothing(person: Person) -> None:
    page = person.open("/buyer")
    assert page.heading == EN["remembered_buyer_title"]
    assert EN["remembered_no_cookie"] in page.text
    assert [form.fields["act"] for form in page.forms] == ["sign_in"]
    assert person.open("/buyer?lang=es").heading == ES["remembered_buyer_title"]
    assert person.open("/buyer", **{"Accept-Language": "es-MX"}).heading in ES.values()


def test_the_cookie_shows_the_accounts_that_asked(person: Person, shop: Shop) -> None:
    _cookie(person, shop)
    assert EN["remembered_uses_none"] in person.open("/buyer").text
    _use(person, shop)
    page = person.open("/buyer")
    assert EN["remembered_use_verified"] in page.text
    assert EN["test_mode"] in page.text


def test_cookies_have_128_random_bits(person: Person, another: Person, shop: Shop) -> None:
    """Cookies of a session, a visit of `/buyer`, a remembered buyer: one per browser."""
    found = list[str]()
    for one in (person, another):
        _cookie(one, shop)
        one.open("/buyer")
        found += [value.partition(".")[0] for value in one.client.cookies.values()]
    assert len(set(found)) == len(found) == 6
    assert all(len(urlsafe_b64decode(value + "==")) >= 16 for value in found)


def test_a_passkey_signs_in_for_a_while(person: Person, another: Person, shop: Shop) -> None:
    device = kept_by_passkey(person, shop)
    page = sign_in(another, device)
    assert EN["remembered_kind_passkey"] in page.text
    assert EN["remembered_kind_passkey"] in another.open("/buyer").text
    out = another.send(_act(page, "sign_out"))
    assert EN["remembered_says_signed_out"] in out.text
    assert EN["remembered_no_cookie"] in another.open("/buyer").text


def test_an_assertion_signs_in_once_and_in_one_browser(
    person: Person, another: Person, shop: Shop
) -> None:
    device = kept_by_passkey(person, shop)
    page, other = another.open("/buyer"), person.open("/buyer")
    signed = device.sign(options_of(page), step=0)
    stolen = person.send(_act(other, "sign_in"), credential=signed)
    assert EN["remembered_says_refused"] in stolen.text
    form = _act(page, "sign_in")
    assert EN["remembered_kind_passkey"] in another.send(form, credential=signed).text
    another.send(_act(another.open("/buyer"), "sign_out"))
    # The form is of a token that the browser has no more, and a fresh one is of another challenge.
    assert another.post(form, credential=signed).status_code == 403
    fresh = another.open("/buyer")
    again = another.send(_act(fresh, "sign_in"), credential=signed)
    assert EN["remembered_says_refused"] in again.text


@pytest.fixture
def device(person: Person, shop: Shop) -> Passkey:
    """Give the device that keeps the passkey of this browser's buyer."""
    return kept_by_passkey(person, shop)


@every("asked", ["", "x", "-1", "0", "9" * 14, "9" * 30, "²"])
def test_a_time_that_is_not_of_the_page_is_refused(
    person: Person, device: Passkey, asked: str
) -> None:
    page = person.open("/buyer")
    signed = device.sign(options_of(page))
    refused = person.send(_act(page, "sign_in"), credential=signed, asked=asked)
    assert EN["remembered_says_refused"] in refused.text


def test_a_passkey_hides_the_list_from_other_users_of_the_browser(
    person: Person, shop: Shop, operator: Operator
) -> None:
    """On a device of two people, the cookie does not reveal the shops of the buyer."""
    _cookie(person, shop)
    _use(person, shop)
    cookie = person.client.cookies["cs-remembered-test"]
    person.client.cookies.delete("cs-remembered-test")
    device = kept_by_passkey(person, shop)
    person.client.cookies.set("cs-remembered-test", cookie)
    # In the sandbox, each session simulates a separate person.
    operator.execute("UPDATE remembered SET cbid = (SELECT cbid FROM remembered_uses)")
    page = person.open("/buyer")
    assert EN["remembered_partial"] in page.text
    assert EN["remembered_uses_title"] not in page.text
    signed = device.sign(options_of(page))
    full = person.send(_act(page, "sign_in"), credential=signed)
    assert EN["remembered_use_verified"] in full.text


def test_one_can_be_removed(person: Person, shop: Shop, operator: Operator) -> None:
    _cookie(person, shop)
    page = person.send(_act(person.open("/buyer"), "remove"))
    assert EN["remembered_says_removed"] in page.text
    assert operator.rows("SELECT * FROM remembered") == []
    assert person.open(link(shop.session())).heading == EN["identity_title"]


def test_no_one_removes_data_of_another_buyer(
    person: Person, another: Person, shop: Shop, operator: Operator
) -> None:
    _cookie(person, shop)
    [row] = operator.rows("SELECT id FROM remembered")
    _cookie(another, shop)
    form = _act(another.open("/buyer"), "remove")
    another.send(form, id=row["id"])
    person.post(form, id=row["id"])
    stranger = person.open("/buyer")
    assert len(operator.rows("SELECT * FROM remembered")) == 2
    assert EN["remembered_kind_cookie"] in stranger.text


def test_erasing_is_asked_twice_and_then_real(
    person: Person, live_shop: Callable[..., Shop], operator: Operator
) -> None:
    shop = live_shop()
    cbid, zip_ = verified_at(shop.vendor)
    remembered(operator, person, cbid)
    person.post(form_of(person.open(link(shop.session(shipping_zip=zip_))), "cookie"))
    unsure = person.send(_act(person.open("/buyer"), "erase"))
    assert (unsure.status, EN["remembered_erase_missing"] in unsure.text) == (200, True)
    page = person.send(_act(unsure, "erase"), sure="yes")
    assert EN["remembered_says_erased"] in page.text
    assert EN["remembered_no_cookie"] in page.text
    for table in TABLES:
        assert operator.rows(f"SELECT * FROM {table}") == []  # noqa: S608 - our own names
    erased = operator.rows("SELECT * FROM erasures")
    written = operator.rows("SELECT id FROM records WHERE type = 'verification'")
    assert {row["record_id"] for row in erased} == {row["id"] for row in written}
    assert shop.vendor.live.get(f"/v1/buyers/{cbid}/status").status_code == 404


def test_a_hold_is_respected_and_shown(
    person: Person, live_shop: Callable[..., Shop], operator: Operator
) -> None:
    """The buyer is not remembered any more; the rest goes when the hold has ended."""
    shop = live_shop()
    cbid, _ = verified_at(shop.vendor)
    remembered(operator, person, cbid)
    run = operator.deployment.run
    hold = run("holds", "place", cbid, "--reason", "a case").stdout.strip()
    page = person.send(_act(person.open("/buyer"), "erase"), sure="yes")
    assert EN["remembered_says_on_hold"] in page.text
    assert operator.rows("SELECT * FROM remembered") == []
    assert len(operator.rows("SELECT * FROM verifications")) == 1
    assert run("retention", "run", "--yes").returncode == 0
    assert len(operator.rows("SELECT * FROM erasure_requests")) == 1
    done = operator.deployment.read("holds", "release", hold)
    assert done["requested"] == [{"cbid": cbid, "outcome": "erased"}]
    assert operator.rows("SELECT * FROM verifications") == []
    assert operator.rows("SELECT * FROM erasure_requests") == []


def test_a_hold_on_an_order_is_named_and_the_rest_is_erased(
    person: Person, shop: Shop, operator: Operator
) -> None:
    """The check that the order rests on stays until the hold has ended, as the page says."""
    vendor = shop.vendor
    cbid = str(verify(vendor.test, shipping_zip="94110").json()["cbid"])
    body = {"initials_per_line": ["AB"] * 4, "session_id": "cart-9", "cbid": cbid}
    ack_id = vendor.test.post("/v1/notices/ab1263/acknowledge", json=body).json()["ack_id"]
    remembered(operator, person, cbid, Mode.TEST)
    run = operator.deployment.run
    hold = run("holds", "place", ack_id, "--reason", "a case").stdout.strip()
    page = person.send(_act(person.open("/buyer"), "erase"), sure="yes")
    assert EN["remembered_says_kept"] in page.text
    assert vendor.test.get(f"/v1/buyers/{cbid}/status").status_code == 404
    shown = "SELECT d.record_id FROM disclosures d JOIN records r ON r.id = d.record_id"
    [check] = operator.rows(f"{shown} WHERE r.type = 'verification'")
    done = operator.deployment.read("holds", "release", hold)
    assert done["erased"] == [check["record_id"]]
    assert operator.rows(f"{shown} WHERE r.type = 'verification'") == []
    assert vendor.test.get(f"/v1/acknowledgments/{ack_id}").json()["cbid"] == cbid


def test_an_operator_who_erases_a_buyer_erases_the_remembered_data(
    person: Person, live_shop: Callable[..., Shop], operator: Operator
) -> None:
    shop = live_shop()
    cbid, zip_ = verified_at(shop.vendor)
    remembered(operator, person, cbid)
    person.post(form_of(person.open(link(shop.session(shipping_zip=zip_))), "cookie"))
    operator.deployment.run("erase", cbid, "--yes")
    for table in TABLES:
        assert operator.rows(f"SELECT * FROM {table}") == []  # noqa: S608 - our own names


def test_two_merged_buyers_are_remembered_and_erased_as_one(
    person: Person, live_shop: Callable[..., Shop], operator: Operator
) -> None:
    """Joined after a cookie was kept under each identifier."""
    shop = live_shop()
    one, zip_ = verified_at(shop.vendor)
    other, _ = verified_at(shop.vendor, 1)
    remembered(operator, person, other)
    operator.execute("UPDATE buyers SET same_as = :one WHERE cbid = :other", one=one, other=other)
    session = shop.session(shipping_zip=zip_)
    person.post(form_of(person.open(link(session)), "cookie"))
    assert shop.read(session)["cbid"] == one
    page = person.open("/buyer")
    assert EN["remembered_use_verified"] in page.text
    person.send(_act(page, "erase"), sure="yes")
    assert operator.rows("SELECT * FROM remembered") == []
    assert operator.rows("SELECT * FROM remembered_uses") == []


def test_expired_rows_are_deleted(person: Person, shop: Shop, operator: Operator) -> None:
    _cookie(person, shop)
    _use(person, shop)
    person.client.cookies.clear()
    kept_by_passkey(person, shop)
    for after, left in (
        (COOKIE_KEPT - timedelta(hours=1), (2, 1)),
        (COOKIE_KEPT + timedelta(hours=1), (1, 1)),
        (USES_KEPT + timedelta(hours=1), (1, 0)),
        (PASSKEY_KEPT + timedelta(hours=1), (0, 0)),
    ):
        _keep_house(operator, after)
        tables = ("remembered", "remembered_uses")
        counts = [len(operator.rows(f"SELECT * FROM {t}")) for t in tables]  # noqa: S608
        assert tuple(counts) == left


def _keep_house(operator: Operator, after: timedelta) -> None:
    from countersign.base.values import from_ns  # noqa: PLC0415

    operator.act(
        lambda opened: delete_outdated(opened.database, from_ns(opened.clock.time_ns()) + after)
    )


@pytest.mark.parametrize("mode", list(Mode))
def test_at_most_ten_passkeys_are_kept(
    person: Person, shop: Shop, operator: Operator, mode: Mode
) -> None:
    """The least recently used one makes room."""
    session = shop.session()
    verify_in(person, session)
    cbid = shop.read(session)["cbid"]
    values = [remembered(operator, person, cbid, mode) for _ in range(12)]
    assert len(operator.rows("SELECT * FROM remembered")) == 10
    assert len(set(values)) == 12
