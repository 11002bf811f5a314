"""The hosted page in a browser without JavaScript: every state, and what is recorded of the way."""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from countersign.access.origins import add_origin
from countersign.bootstrap import Deployment as Opened
from countersign.checkout.words import WORDS
from countersign.privacy.erase import erase_planned, plan_erasure
from countersign.privacy.model import ErasureReason
from tests.checkout.buyer import SHOP, Shop
from tests.checkout.surfer import Page, Surfer, check_headers
from tests.http.backstage import Operator, make_client, notice_file
from tests.http.calls import verify

Surf = Callable[..., Surfer]
EN, ES = WORDS["en"], WORDS["es"]
LINES = 4
FULL = 60 * 1024
"""Bytes that a page may have."""


def test_a_link_leads_to_an_address_without_the_token_and_gives_a_cookie(surf: Surf) -> None:
    surfer = surf()
    surfer.client.follow_redirects = False
    response = surfer.client.get(surfer.path)
    check_headers(response)
    assert (response.status_code, response.content) == (303, b"")
    assert response.headers["location"] == surfer.root
    name, _, rest = response.headers["set-cookie"].partition("=")
    assert name == f"cs-{surfer.buyer.id}"
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= {part.strip() for part in rest.split(";")}


def test_the_notice_is_shown_in_full_with_an_empty_field_for_each_line(
    surf: Surf, shop: Shop
) -> None:
    page = surf().open()
    notice = shop.client.get("/v1/notices/ab1263").json()
    assert page.status == 200
    assert page.heading == EN["title"]
    for text in (notice["title"], notice["heading"], *notice["bullets"]):
        assert text in page.text
    assert page.form.texts == [f"initials_{number}" for number in range(1, LINES + 1)]
    assert {page.form.fields[name] for name in page.form.texts} == {""}
    assert not {tag for tag, _ in page.elements} & {"details", "iframe", "dialog"}
    assert EN["test_mode"] in page.text


def test_three_requests_lead_from_the_link_to_the_acknowledgment(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    review = surfer.initial(surfer.open())
    assert review.heading == EN["review_title"]
    assert shop.read(surfer.buyer)["status"] == "open"
    assert review.form.boxes == ["agreement", "consent"]
    done = surfer.agree(review)
    assert done.heading == EN["done_title"]
    found = shop.read(surfer.buyer)
    assert found["status"] == "completed"
    assert found["ack_id"] in done.text.split()
    back = f"{SHOP}/back?cart=7&checkout_session_id={surfer.buyer.id}&ack_id={found['ack_id']}"
    name = shop.client.get("/v1/checkout_sessions").json()["data"][0]["checkout_session_id"]
    assert name == surfer.buyer.id
    assert back in done.links.values()
    assert shop.events(surfer.buyer) == ["checkout_session.completed"]


def test_the_record_says_how_the_initials_were_made(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    served = surfer.open()
    review = surfer.initial(served)
    surfer.agree(review)
    acknowledgment = _acknowledgment(shop, surfer)
    process = acknowledgment["process"]
    assert acknowledgment["initials_per_line"] == ["AB"] * LINES
    assert acknowledgment["user_agent"] == surfer.client.headers["user-agent"]
    assert (acknowledgment["ip"], acknowledgment["ip_source"]) == ("127.0.0.1", "connection")
    assert (process["surface"], process["binding"]) == ("page", "link")
    assert (process["script"], process["viewport"], process["claimed"]) == (None, None, [])
    assert process["rendered_digest"] == hashlib.sha256(served.response.content).hexdigest()
    assert process["agreement"] in review.text
    assert process["consent"] == EN["consent"]
    assert process["consent"] in review.text
    assert process["opened_at"] <= process["lines"][0]["initialed_at"] <= process["reviewed_at"]


def test_initials_can_be_corrected_before_they_are_sent(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    review = surfer.initial(surfer.open())
    form = surfer.follow(review, EN["change"])
    assert {form.form.fields[name] for name in form.form.texts} == {"AB"}
    surfer.agree(surfer.send(form.form, initials_2="XY"))
    acknowledgment = _acknowledgment(shop, surfer)
    assert acknowledgment["initials_per_line"] == ["AB", "XY", "AB", "AB"]
    assert [line["changes"] for line in acknowledgment["process"]["lines"]] == [0, 1, 0, 0]


def test_blank_lines_are_named_and_what_was_typed_is_kept(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    page = surfer.open()
    wrong = surfer.send(page.form, initials_1="AB", initials_3="\u200b", initials_4="A" * 33)
    assert wrong.status == 422
    assert wrong.form.fields["initials_1"] == "AB"
    expected = {
        EN["empty_initials"].replace("{number}", "2"): "#initials-2",
        EN["empty_initials"].replace("{number}", "3"): "#initials-3",
        EN["too_long"].replace("{number}", "4"): "#initials-4",
    }
    assert expected.items() <= wrong.links.items()
    assert len(wrong.having(role="alert", id="errors")) == 1
    invalid = wrong.having(**{"aria-invalid": "true"})
    assert [one["id"] for one in invalid] == ["initials-2", "initials-3", "initials-4"]
    assert ["autofocus" in one for one in invalid] == [True, False, False]
    assert "initials-2-error" in invalid[0]["aria-describedby"].split()
    assert wrong.having(id="initials-2-error")
    surfer.agree(surfer.initial(wrong))
    process = _acknowledgment(shop, surfer)["process"]
    assert process["rendered_digest"] == hashlib.sha256(wrong.response.content).hexdigest()


def test_both_boxes_have_to_be_ticked(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    review = surfer.initial(surfer.open())
    wrong = surfer.send(review.form, agreement="yes")
    assert wrong.status == 422
    assert wrong.links[EN["consent_missing"]] == "#consent"
    assert wrong.form.boxes == ["agreement", "consent"]
    assert shop.read(surfer.buyer)["status"] == "open"
    assert surfer.agree(wrong).heading == EN["done_title"]


def test_a_buyer_may_decline_after_being_asked(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    asked = surfer.follow(surfer.open(), EN["decline"])
    assert asked.heading == EN["decline_title"]
    assert shop.read(surfer.buyer)["status"] == "open"
    assert surfer.follow(asked, EN["decline_back"]).heading == EN["title"]
    declined = surfer.send(asked.form)
    assert declined.heading == EN["declined_title"]
    assert shop.events(surfer.buyer) == ["checkout_session.declined"]
    assert f"{SHOP}/back?cart=7&checkout_session_id={surfer.buyer.id}" in declined.links.values()


def test_an_ended_session_says_how_it_ended_to_those_who_have_its_link(
    surf: Surf, shop: Shop
) -> None:
    cancelled, expired = surf(), surf(expires_in_seconds=60)
    page = expired.open()
    shop.client.post(f"/v1/checkout_sessions/{cancelled.buyer.id}/cancel", json={})
    assert cancelled.open().heading == EN["cancelled_title"]
    shop.client.post("/v1/test/clock/advance", json={"seconds": 61})
    assert expired.initial(page).heading == EN["expired_title"]
    assert expired.open().heading == EN["expired_title"]
    assert expired.open(expired.root).heading == EN["expired_title"]
    assert shop.read(expired.buyer)["status"] == "expired"


def test_without_link_and_cookie_every_id_looks_the_same(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    surfer.open()
    token = surfer.buyer.session["client_token"]
    pages = set()
    with make_client(shop.server) as stranger:
        for path in (
            surfer.buyer.id,
            f"{surfer.buyer.id}/copy",
            f"{surfer.buyer.id}/copy/{'A' * 43}",
            f"{surfer.buyer.id}/certificate.pdf",
            "chk_01km9x4v8gen3rr1p6q1s2t3v6",
            "nothing",
            token[:-1] + ("a" if token[-1] != "a" else "b"),
            f"{token}/copy",
            "",
        ):
            response = stranger.get(f"/c/{path}")
            check_headers(response)
            assert response.status_code == 404, path
            pages.add(response.text)
            posted = stranger.post(f"/c/{path}", data={"csrf": "x"})
            assert posted.status_code == 404, path
            pages.add(posted.text)
    assert len(pages) == 1
    assert EN["unknown_title"] in pages.pop()


def test_an_error_page_speaks_the_language_of_the_browser(shop: Shop) -> None:
    with make_client(shop.server) as stranger:
        response = stranger.get("/c/nothing", headers={"Accept-Language": "es-MX,es;q=0.9"})
    assert ES["unknown_title"] in response.text
    assert '<html lang="es">' in response.text


def test_the_interface_is_in_the_language_of_the_session_and_the_notice_as_published(
    surf: Surf, shop: Shop
) -> None:
    surfer = surf(locale="es")
    page = surfer.open()
    notice = shop.client.get("/v1/notices/ab1263").json()
    assert '<html lang="es">' in page.response.text
    assert page.heading == ES["title"]
    assert f'<p class="lead" lang="en">{notice["heading"]}</p>' in page.response.text
    assert ES["legal_language"] in page.text
    assert surfer.agree(surfer.initial(page)).heading == ES["done_title"]
    process = _acknowledgment(shop, surfer)["process"]
    assert (process["locale"], process["consent"]) == ("es", ES["consent"])
    assert process["agreement"] == notice["attestation_text"]


def test_the_language_can_be_changed_at_every_step_and_the_record_has_the_sentence_agreed_to(
    surf: Surf, shop: Shop
) -> None:
    surfer = surf()
    spanish = surfer.follow(surfer.open(), "Español")
    assert spanish.heading == ES["title"]
    review = surfer.initial(spanish)
    assert review.heading == ES["review_title"]
    english = surfer.follow(review, "English")
    assert english.heading == EN["review_title"]
    assert surfer.follow(english, EN["change"]).heading == EN["title"]
    # The Spanish review is still open in another tab, and it is the one that is sent.
    assert surfer.agree(review).heading == ES["done_title"]
    process = _acknowledgment(shop, surfer)["process"]
    assert (process["locale"], process["consent"]) == ("es", ES["consent"])


def test_a_new_text_is_shown_and_what_was_initialed_of_the_old_one_is_dropped(
    surf: Surf, shop: Shop, operator: Operator
) -> None:
    name = f"page-{uuid.uuid4().hex[:8]}"
    operator.publish(notice_file(name, "1"))
    surfer = surf(notice_id=name)
    first = surfer.open()
    review = surfer.initial(first)
    operator.publish(notice_file(name, "2", lines=2, effective_from="2021-01-01"))
    stale = surfer.agree(review)
    for page in (stale, surfer.initial(first)):
        assert (page.status, page.heading) == (409, EN["title"])
        assert f"Line 2 of {name} 2." in page.text
        assert EN["changed_notice"] in page.text
        assert {page.form.fields[field] for field in page.form.texts} == {""}
    surfer.agree(surfer.initial(surfer.open()))
    acknowledgment = _acknowledgment(shop, surfer)
    assert acknowledgment["notice_version"] == "2"
    assert len(acknowledgment["process"]["lines"]) == 2


def test_two_tabs_and_a_repeated_click_give_one_acknowledgment(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    review = surfer.initial(surfer.open())
    with ThreadPoolExecutor(4) as pool:
        pages = [*pool.map(lambda _: surfer.agree(review), range(4))]
    assert {page.heading for page in pages} == {EN["done_title"]}
    assert surfer.open(f"{surfer.root}?step=form").heading == EN["done_title"]
    assert surfer.open(f"{surfer.root}/decline").heading == EN["done_title"]
    assert surfer.initial(review, "XY").heading == EN["done_title"]
    assert len(shop.client.get("/v1/acknowledgments").json()["data"]) == 1
    assert shop.events(surfer.buyer) == ["checkout_session.completed"]


def test_what_one_tab_reviewed_is_not_sent_with_the_initials_of_another(
    surf: Surf, shop: Shop
) -> None:
    surfer = surf()
    form = surfer.open()
    review = surfer.initial(form)
    other = surfer.initial(form, "XY")
    again = surfer.agree(review)
    assert again.heading == EN["review_title"]
    assert "XY" in again.text
    assert shop.read(surfer.buyer)["status"] == "open"
    surfer.agree(other)
    assert _acknowledgment(shop, surfer)["initials_per_line"] == ["XY"] * LINES


def test_every_address_of_a_form_can_be_loaded_again(surf: Surf) -> None:
    surfer = surf()
    surfer.open()
    for what in ("initials", "accept", "identity", "events"):
        assert surfer.open(f"{surfer.root}/{what}").heading == EN["title"]
    surfer.complete()
    for what in ("", "/initials", "/accept", "/decline"):
        assert surfer.open(surfer.root + what).heading == EN["done_title"]


def test_scanners_of_mail_use_nothing_up_and_record_nothing(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    for _ in range(2):
        assert surfer.client.head(surfer.path).status_code == 200
        assert surfer.client.head(f"{surfer.root}/decline").status_code == 200
    assert shop.read(surfer.buyer)["status"] == "open"
    served = surfer.open()
    surfer.client.head(surfer.root)
    surfer.agree(surfer.initial(served))
    process = _acknowledgment(shop, surfer)["process"]
    assert process["rendered_digest"] == hashlib.sha256(served.response.content).hexdigest()


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
    for what in ("copy", "certificate.pdf"):
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
    process = _acknowledgment(shop, surfer)["process"]
    assert process["binding"] == "identity_session"
    assert process["verification"].startswith("ver_")


def test_a_provider_that_is_down_changes_nothing(surf: Surf, shop: Shop) -> None:
    surfer = surf(collect=["identity"])
    down = surfer.send(surfer.open().form, outcome="provider_down")
    assert (down.status, EN["provider_unavailable"] in down.text) == (503, True)
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
    process = _acknowledgment(shop, surfer)["process"]
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


def test_a_live_session_says_nothing_of_a_rehearsal(shop: Shop, operator: Operator) -> None:
    name = f"live-{uuid.uuid4().hex[:8]}"
    operator.publish(notice_file(name, "1"))
    operator.act(lambda opened: add_origin(opened.access, shop.vendor.account_id, SHOP))
    live = Shop(shop.vendor, shop.server, shop.opened, "live")
    with Surfer(shop.server, live.buyer(notice_id=name)) as surfer:
        page = surfer.open()
        assert EN["test_mode"] not in page.text
        assert surfer.agree(surfer.initial(page)).heading == EN["done_title"]
    assert _acknowledgment(live, surfer)["livemode"] is True


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


def test_what_is_erased_is_on_no_page_any_more(surf: Surf, shop: Shop, operator: Operator) -> None:
    surfer = surf()
    link = surfer.complete().links[EN["copy_link"]]
    ack_id = shop.read(surfer.buyer)["ack_id"]

    async def erase(opened: Opened) -> None:
        plan = await plan_erasure(opened.privacy, ack_id)
        await erase_planned(opened.privacy, plan, ErasureReason.REQUEST)

    operator.act(erase)
    for path in (surfer.path, surfer.root, link, f"{surfer.root}/certificate.pdf"):
        page = surfer.open(path)
        assert (page.status, page.heading) == (404, EN["unknown_title"])


def _acknowledgment(shop: Shop, surfer: Surfer) -> dict[str, Any]:
    ack_id = shop.read(surfer.buyer)["ack_id"]
    found: dict[str, Any] = shop.client.get(f"/v1/acknowledgments/{ack_id}").json()
    return found
