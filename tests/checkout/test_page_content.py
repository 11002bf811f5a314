"""Content of a session's pages, and their remains: a copy, claims, and no trace."""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
from collections.abc import Callable

import pytest

from countersign.core.access.account import register
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.hosted.toolkit.screens import WORDS
from countersign.operate.bootstrap import Deployment as Opened
from countersign_evidence.policy import parse_policy
from countersign_evidence.proof import parse_proof
from countersign_evidence.receipt import check_receipt
from tests.checkout.buyer import SHOP, Shop
from tests.checkout.surfer import Page, Surfer, check_headers
from tests.http.backstage import Operator, make_client, notice_file
from tests.http.calls import verify
from tests.support.acts import done

pytestmark = pytest.mark.one_engine

Surf = Callable[..., Surfer]
EN, ES = WORDS["en"], WORDS["es"]
LINES = 4
FULL = 60 * 1024
"""Bytes that a page may have."""


def test_every_address_of_a_form_can_be_loaded_again(surf: Surf) -> None:
    surfer = surf()
    surfer.open()
    for what in ("initials", "accept", "identity", "events"):
        assert surfer.open(f"{surfer.root}/{what}").heading == EN["title"]
    surfer.complete()
    for what in ("", "/initials", "/accept", "/decline"):
        assert surfer.open(surfer.root + what).heading == EN["done_title"]


def test_mail_scanners_use_up_and_record_nothing(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    for _ in range(2):
        assert surfer.client.head(surfer.path).status_code == 200
        assert surfer.client.head(f"{surfer.root}/decline").status_code == 200
    assert shop.read(surfer.buyer)["status"] == "open"
    served = surfer.open()
    surfer.client.head(surfer.root)
    surfer.agree(surfer.initial(served))
    process = shop.acknowledgment(surfer.buyer)["process"]
    assert process["rendered_digest"] == hashlib.sha256(served.response.content).hexdigest()


@pytest.mark.parametrize("query", ["", "?lang=es", "?step=form&lang=en", "?remembered=unknown"])
def test_the_notice_differs_between_buyers_in_their_addresses_and_codes_alone(
    surf: Surf, query: str
) -> None:
    texts = []
    for _ in range(2):
        surfer = surf()
        surfer.open()
        page = surfer.open(surfer.root + query)
        own = {surfer.root: "ROOT", page.forms[0].fields["csrf"]: "CODE"}
        assert all(page.response.text.count(text) for text in own)
        texts.append(page.response.text)
        for text, name in own.items():
            texts[-1] = texts[-1].replace(text, name)
    assert texts[0] == texts[1]


def test_the_buyer_keeps_a_copy_that_needs_no_cookie_for_thirty_days(
    surf: Surf, shop: Shop
) -> None:
    surfer = surf()
    done = surfer.complete()
    ack_id = shop.read(surfer.buyer)["ack_id"]
    link = done.links[EN["copy_link"]]
    with make_client(shop.server) as elsewhere:
        response = elsewhere.get(link)
        check_headers(response)
        copy = Page(response)
        assert copy.text.count("AB") >= LINES
        assert ack_id in copy.text.split()
        pdf = elsewhere.get(copy.links[EN["certificate"]])
        check_headers(pdf)
        assert pdf.content.startswith(b"%PDF-")
        assert elsewhere.get(f"{surfer.root}/certificate.pdf").status_code == 404
        shop.client.post("/v1/test/clock/advance", json={"seconds": 30 * 86400})
        assert elsewhere.get(link).status_code == 404
    own = surfer.client.get(done.links[EN["certificate"]])
    assert own.status_code == 404


def test_buyer_and_vendor_hold_the_same_promise_of_the_log(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    done = surfer.complete()
    session = shop.read(surfer.buyer)
    receipt = surfer.client.get(done.links[EN["receipt"]])
    check_headers(receipt)
    assert receipt.text == session["receipt"]
    policy = parse_policy(shop.client.get("/v1/log/policy?mode=test").content)
    record = parse_proof(
        shop.client.get(
            f"/v1/acknowledgments/{session['ack_id']}/proof", headers={"Prefer": "wait=10"}
        ).content
    ).extra
    assert record is not None
    assert check_receipt(receipt.content, policy).digest == hashlib.sha256(record).digest()
    copied = surfer.follow(done, EN["copy_link"])
    assert surfer.client.get(copied.links[EN["receipt"]]).text == session["receipt"]


def test_the_certificate_of_the_buyer_leaves_the_buyer_identifier_out(
    surf: Surf, shop: Shop
) -> None:
    cbid = verify(shop.client, shipping_zip="94111").json()["cbid"]
    surfer = surf(cbid=cbid)
    done = surfer.complete()
    pdf = surfer.client.get(done.links[EN["certificate"]])
    assert pdf.status_code == 200
    assert cbid.encode() not in pdf.content
    assert cbid not in surfer.follow(done, EN["copy_link"]).text


def test_there_is_no_copy_before_the_end_or_without_an_acknowledgment(surf: Surf) -> None:
    surfer = surf()
    surfer.open()
    for what in ("copy", "certificate.pdf", "receipt.txt"):
        assert surfer.open(f"{surfer.root}/{what}").status == 404
    surfer.send(surfer.open(f"{surfer.root}/decline").form)
    assert surfer.open(f"{surfer.root}/copy").status == 404


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("failed", "reason_identity_failed"),
        ("underage", "reason_age_below_minimum"),
        ("zip_mismatch", "reason_zip_mismatch"),
        ("requires_input", "reason_identity_requires_input"),
    ],
)
def test_an_identity_check_that_fails_says_why_and_can_be_repeated(
    surf: Surf, shop: Shop, outcome: str, said: str
) -> None:
    surfer = surf(collect=["identity", "acknowledgment"])
    page = surfer.open()
    assert page.heading == EN["identity_title"]
    failed = surfer.send(page.form, outcome=outcome)
    assert failed.heading == EN["identity_title"]
    assert EN[said].rpartition("{vendor}")[2] in failed.text
    assert shop.read(surfer.buyer)["status"] == "open"
    surfer.agree(surfer.initial(surfer.send(failed.form)))
    process = shop.acknowledgment(surfer.buyer)["process"]
    assert process["binding"] == "identity_session"
    assert process["verification"].startswith("ver_")


def test_an_unreachable_provider_changes_nothing(surf: Surf, shop: Shop) -> None:
    surfer = surf(collect=["identity"])
    down = surfer.send(surfer.open().form, outcome="provider_down")
    assert (down.status, EN["provider_unavailable"] in down.text) == (200, True)
    assert shop.read(surfer.buyer)["status"] == "open"
    done = surfer.send(down.form)
    assert (done.heading, EN["done_identity"] in done.text) == (EN["done_title"], True)
    found = shop.read(surfer.buyer)
    assert (found["status"], found["ack_id"]) == ("completed", None)
    assert found["cbid"] is not None


def test_with_all_that_is_known_the_order_is_cleared(surf: Surf, shop: Shop) -> None:
    surfer = surf(collect=["identity", "acknowledgment"], shipping_zip="94111")
    surfer.agree(surfer.initial(surfer.send(surfer.open().form)))
    found = shop.read(surfer.buyer)
    assert (found["cleared"], found["reasons"]) == (True, [])


def test_claims_of_the_script_are_kept_as_claims(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    page = surfer.open()
    claims = {
        "csrf": page.form.fields["csrf"],
        "events": "1:shown 1:initialed 0:reviewed",
        "width": "360",
        "height": "640",
    }
    response = surfer.client.post(f"{surfer.root}/events", data=claims)
    check_headers(response)
    assert response.status_code == 204
    for bad in ({"events": "1:hacked"}, {"events": "x"}, {"width": "-1"}, {"height": "1e3"}):
        assert surfer.client.post(f"{surfer.root}/events", data=claims | bad).status_code == 400
    surfer.agree(surfer.initial(page))
    process = shop.acknowledgment(surfer.buyer)["process"]
    assert (process["script"], process["viewport"]) == (True, {"width": 360, "height": 640})
    claimed = [(one["line"], one["event"]) for one in process["claimed"]]
    assert claimed == [(1, "shown"), (1, "initialed"), (None, "reviewed")]


def test_no_page_is_heavier_than_sixty_kilobytes(surf: Surf) -> None:
    surfer = surf()
    form = surfer.open()
    review = surfer.initial(form)
    for page in (form, review, surfer.agree(review)):
        assert len(page.response.content) < FULL
        assert page.response.headers["content-type"] == "text/html; charset=utf-8"


def test_pages_have_landmarks_names_and_one_heading(surf: Surf) -> None:
    surfer = surf(collect=["identity", "acknowledgment"])
    identity = surfer.open()
    form = surfer.send(identity.form)
    decline = surfer.follow(form, EN["decline"])
    wrong = surfer.send(form.form)
    review = surfer.initial(form)
    done = surfer.agree(review)
    for page in (identity, form, decline, wrong, review, done):
        tags = [tag for tag, _ in page.elements]
        assert [tags.count(tag) for tag in ("h1", "main", "header", "title")] == [1] * 4
        ids = [have["id"] for _, have in page.elements if "id" in have]
        assert len(ids) == len(set(ids))
        labelled = {have["for"] for tag, have in page.elements if tag == "label"}
        fields = {
            have["id"]
            for tag, have in page.elements
            if tag == "input" and have.get("type") != "hidden"
        }
        assert labelled == fields
        for _, have in page.elements:
            for name in ("aria-describedby", "aria-labelledby"):
                assert set(have.get(name, "").split()) <= set(ids)
        assert page.having(**{"class": "skip", "href": "#main"})
        first = tags.index("form") if "form" in tags else len(tags)
        assert page.forms == [] or page.forms[0] == page.form, first


def test_style_and_script_of_a_page_are_named_by_their_digests(surf: Surf) -> None:
    page = surf().open()
    for tag in ("style", "script"):
        found = re.findall(rf"<{tag}>(.*?)</{tag}>", page.response.text, re.DOTALL)
        assert len(found) == 1
        digest = base64.b64encode(hashlib.sha256(found[0].encode()).digest()).decode()
        assert page.policy[f"{tag}-src"] == f"'sha256-{digest}'"
    assert not [have for _, have in page.elements if "style" in have]
    assert not [name for _, have in page.elements for name in have if name.startswith("on")]


def test_a_live_session_mentions_no_rehearsal(shop: Shop, operator: Operator) -> None:
    name = f"live-{uuid.uuid4().hex[:8]}"
    operator.publish(notice_file(name, "1"))
    operator.act(lambda opened: done(register, opened.access, shop.vendor.account_id, SHOP))
    live = Shop(shop.vendor, shop.server, shop.opened, "live")
    with Surfer(shop.server, live.buyer(notice_id=name, order_reference="1001")) as surfer:
        page = surfer.open()
        assert EN["test_mode"] not in page.text
        assert surfer.agree(surfer.initial(page)).heading == EN["done_title"]
    assert live.acknowledgment(surfer.buyer)["livemode"] is True


def test_a_notice_that_is_stopped_meanwhile_is_not_acknowledged(
    surf: Surf, shop: Shop, operator: Operator
) -> None:
    name = f"stopped-{uuid.uuid4().hex[:8]}"
    operator.publish(notice_file(name, "1"))
    surfer = surf(notice_id=name)
    form = surfer.open()
    review = surfer.initial(form)
    operator.withdraw(name, "1")
    for page in (surfer.agree(review), surfer.initial(form), surfer.open(surfer.root)):
        assert (page.status, page.heading) == (409, EN["stopped_title"])
        assert f"{SHOP}/back?cart=7&checkout_session_id={surfer.buyer.id}" in page.links.values()
    assert shop.read(surfer.buyer)["status"] == "open"


def test_a_rejected_form_redirects_to_the_buyers_page(surf: Surf) -> None:
    """The status stays; a session that the browser may not see is not revealed."""
    surfer, stranger = surf(), surf()
    form = surfer.open().form
    refused = surfer.send(form, csrf="0")
    assert (refused.status, refused.heading) == (403, EN["another_browser_title"])
    assert surfer.follow(refused, EN["retry"]).heading == EN["title"]
    unknown = stranger.send(form)
    assert (unknown.status, EN["retry"] in unknown.links) == (404, False)


def test_erased_data_is_on_no_page(surf: Surf, shop: Shop, operator: Operator) -> None:
    surfer = surf()
    link = surfer.complete().links[EN["copy_link"]]
    ack_id = shop.read(surfer.buyer)["ack_id"]

    async def erase(opened: Opened) -> None:
        plan = await plan_erasure(opened.privacy, ack_id, DEPLOYMENT)
        await erase_planned(opened.privacy, plan, ErasureReason.REQUEST)

    operator.act(erase)
    for path in (surfer.path, surfer.root, link, f"{surfer.root}/certificate.pdf"):
        page = surfer.open(path)
        assert (page.status, page.heading) == (404, EN["unknown_title"])
