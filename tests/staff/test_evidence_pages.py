"""A dossier in the console: checked by its own verifier, and described on a page for counsel."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import sha256
from html import unescape
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import httpx2
import pytest

from countersign.core.access.role import Role
from countersign_console.view import WORDS
from countersign_evidence.dossier import VERIFY_HTML, verifier
from countersign_evidence.verification import verify_file
from tests.http.backstage import Vendor
from tests.http.calls import acknowledge, verify
from tests.staff.conftest import Desk, Person
from tests.staff.street import Street
from tests.staff.test_forms import Browser, browser
from tests.staff.test_orders import Bought, buy

pytestmark = pytest.mark.one_engine
WHY = "letter of counsel"
EN = WORDS["en"]


@pytest.fixture
def sealed(shop: Vendor) -> Bought:
    """Give an order whose records the log contains."""
    order = buy(shop, 1)
    path = f"/v1/acknowledgments/{order.ack_id}/proof"
    assert shop.test.get(path, headers={"Prefer": "wait=10"}).status_code == 200
    return order


@pytest.fixture
def compliance(desk: Desk, shop: Vendor) -> Iterator[tuple[Person, Browser]]:
    """Give a compliance officer, and the pages of the test's account."""
    with (
        desk.person(Role.COMPLIANCE, shop.account_id, "test") as person,
        browser(desk, person, shop.account_id) as pages,
    ):
        yield person, pages


def ask(pages: Browser, order: Bought, action: str, why: str = WHY) -> httpx2.Response:
    place = f"orders/{order.ack_id}"
    return pages.send(f"{place}/{action}", {"code": pages.codes(place)[-1], "reason": why})


def dossier_in(page: str) -> bytes:
    found = re.search(r'href="data:application/zip;base64,([^"]+)"', page)
    assert found is not None
    return b64decode(unescape(found[1]))


def test_the_covering_page_describes_the_dossier_in_it(
    compliance: tuple[Person, Browser], sealed: Bought
) -> None:
    """Its digest, the verdict in the verifier's words, and the digests of the verifiers."""
    person, pages = compliance
    shown = ask(pages, sealed, "cover")
    page, data = shown.text, dossier_in(shown.text)
    assert sha256(data).hexdigest() in page
    verdict = verify_file(data)
    assert verdict.dossier is not None
    said = unescape(page)
    assert all(f"<p>{line}</p>" in said for line in verdict.dossier.summary)
    for line in Path("spec/verifiers.sha256").read_text("utf-8").splitlines():
        digest, name = line.split()
        assert re.search(rf"{re.escape(name)}</code></dt><dd><code>{digest}<", page)
    for record in verdict.dossier.records:
        assert f"records/{record.id}<" in page
    assert f"<dd>{sealed.reference}<" in page
    noted = person.get("/v1/audit?action=personal_data_shown")["data"]
    assert [(one["subject"], one["details"]["reason"]) for one in noted] == [(sealed.ack_id, WHY)]


def test_the_page_that_checks_has_the_verifier_itself(
    compliance: tuple[Person, Browser], sealed: Bought
) -> None:
    """Byte for byte, and only the code that passes the file to it may run."""
    _, pages = compliance
    shown = ask(pages, sealed, "check")
    (code,) = re.findall(rb"<script>(.*?)</script>", verifier(VERIFY_HTML), re.DOTALL)
    scripts = re.findall(rb"<script>(.*?)</script>", shown.content, re.DOTALL)
    assert len(scripts) == 2
    assert scripts[1] == code
    digests = [f"'sha256-{b64encode(sha256(one).digest()).decode()}'" for one in scripts]
    policy = shown.headers["content-security-policy"]
    assert f"script-src {' '.join(digests)};" in policy
    assert "default-src 'none'" in policy
    assert verify_file(dossier_in(shown.text)).ok


def test_the_dossiers_of_selected_orders_are_one_file(
    compliance: tuple[Person, Browser], sealed: Bought, shop: Vendor
) -> None:
    """Each as it would be alone; without a reason, or a selection, the list says so."""
    _, pages = compliance
    other = buy(shop, 2)
    wait = {"Prefer": "wait=10"}
    shop.test.get(f"/v1/acknowledgments/{other.ack_id}/proof", headers=wait).raise_for_status()
    ids = [sealed.ack_id, other.ack_id]
    asked = {"code": pages.codes("orders")[-1], "reason": WHY}
    ticked = asked | {f"order.{one}": "1" for one in ids}
    with ZipFile(BytesIO(pages.send("orders/-/dossiers", ticked).content)) as packed:
        assert packed.namelist() == [f"{one}-dossier.zip" for one in ids]
        assert all(verify_file(packed.read(name)).ok for name in packed.namelist())
    unsaid = pages.send("orders/-/dossiers", ticked | {"reason": ""})
    none = pages.send("orders/-/dossiers", asked)
    assert (unsaid.status_code, none.status_code) == (400, 422)
    assert EN["none_ticked"] in none.text


def test_no_dossier_is_shown_without_a_reason_or_to_a_role_that_sees_none(
    desk: Desk, shop: Vendor, compliance: tuple[Person, Browser], sealed: Bought
) -> None:
    """A refusal contains no dossier."""
    _, pages = compliance
    with (
        desk.person(Role.OWNER, shop.account_id, "test") as owner,
        browser(desk, owner, shop.account_id) as others,
    ):
        for shown, status in (
            *((ask(pages, sealed, action, ""), 400) for action in ("check", "cover")),
            *((ask(others, sealed, action), 403) for action in ("check", "cover")),
        ):
            assert shown.status_code == status
            assert "base64" not in shown.text


def test_a_refused_order_gives_the_reasons_in_words(
    compliance: tuple[Person, Browser], shop: Vendor
) -> None:
    """At the top, with the missing parts and whether a hold keeps it."""
    _, pages = compliance
    named = {
        "session_id": "refused",
        "cbid": verify(shop.test, shipping_zip="94110").json()["cbid"],
    }
    ack_id = acknowledge(shop.test, **named).json()["ack_id"]
    asked = {"ack_id": ack_id, "shipping_zip": "10001", "order_reference": "r", **named}
    assert not shop.test.post("/v1/clearances", json=asked).json()["cleared"]
    page = pages.page(f"orders/{ack_id}")
    top = page.partition('class="verdict is-bad"')[2].partition("</div>")[0]
    for said in ("verdict_refused", "refused_zip_mismatch", "missing_granted_clearance"):
        assert WORDS["en"][said] in top
    assert WORDS["en"]["verdict_free"] in top


def test_another_zip_code_than_that_of_the_order_is_accepted_for_a_reason_alone(
    desk: Desk, street: Street
) -> None:
    """Whoever may see the evidence is asked; the ZIP code of the order needs no other reason."""
    session = street.played.part("verified").session_id
    asked = {"provider_identity_session_id": session, "shipping_zip": "10001"}
    made = street.first.ask("/v1/buyers/verify", asked)
    assert made["reasons"] == ["zip_mismatch"]
    here = street.first.id
    with (
        desk.person(Role.COMPLIANCE, here, "live") as person,
        browser(desk, person, here, "live") as pages,
    ):
        (one,) = person.get("/v1/buyers/reviews")["data"]
        place = f"reviews/{one['verification_id']}"
        assert WORDS["en"]["attempts"] in pages.page(place)
        form = {"document": "a bill", "code": pages.codes(place)[-1]}
        other, said = WORDS["en"]["zip_other"], "/accept_zip"
        assert other in pages.send(place + said, form | {"zip": "94110"}).text
        why = {"zip": "94110", "why_other": "moved last week"}
        for known in (why, {"zip": "10001-1234"}):
            again = {"code": pages.codes(place)[-1]}
            assert other not in pages.send(place + said, form | again | known).text
        shown = pages.send(
            f"{place}/evidence", {"code": pages.codes(place)[-1], "reason": "case 7"}
        )
        assert "<strong>10001</strong>" in shown.text or shown.status_code == 404
