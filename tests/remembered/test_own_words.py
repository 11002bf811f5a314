"""Why a remembered buyer does not pass: this browser reads it, and the shop sees no difference."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from countersign.hosted.toolkit.screens import WORDS
from tests.checkout.surfer import Page
from tests.http.backstage import Operator
from tests.remembered.conftest import Person, Shop, form_of, link, options_of, verify_in
from tests.remembered.device import Passkey
from tests.verification.live import revoke

# Page texts do not depend on the engine.
pytestmark = pytest.mark.one_engine

EN = WORDS["en"]
OTHER_ZIP = "10001"
_PERSONAL = ("checkout_session_id", "created_at", "expires_at", "url", "client_token")


def kept(person: Person, shop: Shop) -> tuple[Passkey, str]:
    """A passkey of a buyer who was verified at this shop, and the buyer."""
    device, session = Passkey(), shop.session()
    done = verify_in(person, session)
    person.send(form_of(done, "passkey"), credential=device.create(options_of(done)))
    device.count = 5
    return device, str(shop.read(session)["cbid"])


def passed(person: Person, shop: Shop, device: Passkey, **changes: object) -> tuple[Page, object]:
    """The page after an attempt to pass with the passkey, and the shop's view of it."""
    asked = {"step": changes.pop("step", 1), **changes}
    session = shop.session(shipping_zip=asked.pop("zip", "94110"))
    page = person.open(link(session))
    signed = device.sign(options_of(page), **asked)
    page = person.send(form_of(page, "passkey"), credential=signed)
    found = {name: value for name, value in shop.read(session).items() if name not in _PERSONAL}
    return page, found


def test_each_reason_has_its_own_words_hidden_from_the_shop(
    person: Person, shop: Shop, operator: Operator
) -> None:
    """Another ZIP code, expired, revoked, erased, copied, and signed for another page."""
    device, cbid = kept(person, shop)
    shown, seen = [], []

    def attempt(**changes: object) -> None:
        page, found = passed(person, shop, device, **changes)
        assert page.heading == EN["identity_title"]
        [alert] = [text for text in _TEXTS if _says(page, text)]
        shown.append(alert)
        seen.append(found)

    attempt(zip=OTHER_ZIP)
    attempt(challenge="AAAA")
    made = shop.client.post("/v1/test/buyers", json={"cbid": cbid, "status": "expired"})
    assert made.status_code == 200
    attempt()
    revoke(operator, cbid)
    attempt()
    attempt(step=-1)
    attempt()
    assert shown == [
        "remembered_not_enough",
        "remembered_passkey_failed",
        "remembered_expired",
        "remembered_revoked",
        "remembered_copied",
        "remembered_unknown",
    ]
    assert all(found == seen[0] for found in seen)


def test_after_erasing_nothing_is_shown_as_remembered(person: Person, shop: Shop) -> None:
    """The passkey that is left on the device is not known here any more."""
    device, _ = kept(person, shop)
    page = person.open("/buyer")
    signed = device.sign(options_of(page))
    page = person.send(form_of(page, "sign_in", "act"), credential=signed)
    page = person.send(form_of(page, "erase", "act"), sure="yes")
    assert EN["remembered_says_erased"] in page.text
    session = shop.session()
    person.open(link(session))
    page = person.open(f"/c/{session['checkout_session_id']}/remembered")
    signed = device.sign(options_of(page))
    page = person.send(form_of(page, "passkey"), credential=signed)
    assert _says(page, "remembered_unknown")
    assert not _says(page, "remembered_not_enough")
    page = person.open("/buyer")
    signed = device.sign(options_of(page))
    page = person.send(form_of(page, "sign_in", "act"), credential=signed)
    assert EN["remembered_says_unknown"] in page.text


def test_the_owner_of_a_copied_passkey_reads_that_it_was_removed(
    person: Person, shop: Shop, operator: Operator
) -> None:
    """At `/buyer`, in the browser that shows it."""
    device, _ = kept(person, shop)
    signs: list[Callable[[Page], str]] = [
        lambda page: device.sign(options_of(page)),
        lambda page: device.sign(options_of(page), step=0),
    ]
    page = person.open("/buyer")
    for sign in signs:
        page = person.open("/buyer")
        if any(form.fields.get("act") == "sign_out" for form in page.forms):
            page = person.send(form_of(page, "sign_out", "act"))
        page = person.send(form_of(page, "sign_in", "act"), credential=sign(page))
    assert EN["remembered_says_copied"] in page.text
    assert operator.rows("SELECT * FROM remembered") == []


_TEXTS = (
    "remembered_not_enough",
    "remembered_passkey_failed",
    "remembered_unknown",
    "remembered_copied",
    "remembered_expired",
    "remembered_revoked",
)


def _says(page: Page, text: str) -> bool:
    """Whether the page says this, with the name of whatever shop."""
    before, _, after = EN[text].partition("{vendor}")
    return before in page.text and after in page.text
