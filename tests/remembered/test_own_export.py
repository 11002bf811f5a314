"""`/buyer`: a buyer saves everything about them, by a fresh passkey or a new identity check."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from countersign.hosted.self_service import FRESH
from countersign.hosted.toolkit.screens import WORDS
from countersign_evidence.offline.verify import read_zip
from tests.checkout.surfer import Form, Page
from tests.http.backstage import Operator
from tests.remembered.conftest import (
    Person,
    Shop,
    clock_of,
    form_of,
    kept_by_passkey,
    link,
    remembered,
    sign_in,
    verified_at,
    verify_in,
)
from tests.support.service import Server

EN = WORDS["en"]
pytestmark = [pytest.mark.one_engine, pytest.mark.shows_personal_data]


def _offered(page: Page) -> list[Form]:
    return [form for form in page.forms if form.fields.get("act") == "export"]


def _data(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["cache-control"] == "no-store"
    found: dict[str, Any] = json.loads(read_zip(answer.content)["data.json"])
    return found


def test_a_passkey_used_just_now_saves_everything(
    person: Person, another: Person, shop: Shop, server: Server
) -> None:
    """In the page's language; later it is asked for again."""
    device = kept_by_passkey(person, shop)
    page = sign_in(another, device)
    [form] = _offered(page)
    found = _data(another.post(form))
    assert found["checks"] or found["orders"]
    assert [one["kind"] for one in found["remembered"]] == ["passkey"]
    [spanish] = _offered(another.open("/buyer?lang=es"))
    assert b'<html lang="es">' in read_zip(another.post(spanish).content)["index.html"]
    clock_of(server).ahead(FRESH)
    later = another.open("/buyer")
    assert not _offered(later)
    assert EN["remembered_export_again"] in later.text
    assert another.post(form).status_code == 303
    assert _offered(sign_in(another, device))


def test_a_new_identity_check_saves_everything(person: Person, shop: Shop, server: Server) -> None:
    """The browser that was remembered after a check just now; an older cookie does not."""
    done = verify_in(person, shop.session())
    person.send(form_of(done, "cookie"))
    [form] = _offered(person.open("/buyer"))
    assert _data(person.post(form))["remembered"][0]["kind"] == "cookie"
    clock_of(server).ahead(FRESH)
    person.post(form_of(person.open(link(shop.session())), "cookie"))  # a use is no new check
    assert not _offered(person.open("/buyer"))
    assert person.post(form).status_code == 303


def test_a_stranger_saves_nothing(person: Person, another: Person, shop: Shop) -> None:
    """Without a sign-in there is no form, and the form of another browser is refused."""
    done = verify_in(person, shop.session())
    person.send(form_of(done, "cookie"))
    [form] = _offered(person.open("/buyer"))
    assert not _offered(another.open("/buyer"))
    assert another.post(form).headers.get("content-type") != "application/zip"


def test_three_a_day_are_noted_and_shown(
    person: Person, shop: Shop, server: Server, operator: Operator
) -> None:
    """The audit has each by the passkey, and the buyer sees when."""
    device = kept_by_passkey(person, shop)
    page = sign_in(person, device)
    for _ in range(3):
        [form] = _offered(page)
        _data(person.post(form))
        page = person.open("/buyer")
    assert page.text.count(" UTC") == 3
    assert EN["remembered_exports_title"] in page.text
    refused = person.send(_offered(page)[0])
    assert EN["remembered_says_enough"] in refused.text
    noted = operator.rows(
        "SELECT subject, details FROM audit_log WHERE action = :a", a="subject_exported"
    )
    assert [json.loads(row["details"]) for row in noted] == [{"by": "buyer"}] * 3
    assert {row["subject"].partition("_")[0] for row in noted} == {"rem"}
    clock_of(server).ahead(timedelta(days=1))
    _data(person.post(_offered(sign_in(person, device))[0]))


def test_a_live_buyer_saves_what_all_shops_have(
    operator: Operator, live_shop: Callable[..., Shop], person: Person
) -> None:
    """Nothing of another buyer of the same shops."""
    shops = live_shop(), live_shop()
    cbid, zip_ = verified_at(shops[0].vendor)
    other, _ = verified_at(shops[0].vendor, 2)
    assert cbid != other
    assert shops[1].vendor.verified(shops[1].vendor.part("verified")) == cbid
    remembered(operator, person, cbid)
    [form] = _offered(person.open("/buyer"))
    answer = person.post(form)
    found, text = _data(answer), answer.text
    assert {*found["vendors"]} == {shop.vendor.account_id for shop in shops}
    assert other not in text
    assert zip_ in text


def test_an_export_is_listed_and_counted_after_its_cookie_is_removed(
    operator: Operator, live_shop: Callable[..., Shop], person: Person, another: Person
) -> None:
    """Whoever has a buyer's cookie cannot hide an export, nor begin to count again."""
    cbid, _ = verified_at(live_shop().vendor)
    for who in (person, another):
        remembered(operator, who, cbid)
    found: dict[str, Any] = {}
    for _ in range(3):
        [form] = _offered(another.open("/buyer"))
        found = _data(another.post(form))
    # Listed as what it is, and not as a vendor that learned something.
    exports = {(one["kind"], one["verified"]) for one in found["remembered_uses"]}
    assert exports == {("export", False)}
    own = [form for form in another.open("/buyer").forms if form.fields.get("act") == "remove"]
    another.send(own[0])
    page = person.open("/buyer")
    assert EN["remembered_exports_title"] in page.text
    assert EN["remembered_says_enough"] in person.send(_offered(page)[0]).text
