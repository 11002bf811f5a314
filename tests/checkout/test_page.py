"""The way through the hosted page in a browser without JavaScript: every state, and its record."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from countersign.hosted.toolkit.screens import WORDS
from tests.checkout.buyer import SHOP, Shop
from tests.checkout.surfer import Page, Surfer, check_headers
from tests.http.backstage import Operator, make_client, notice_file
from tests.http.calls import verify

pytestmark = pytest.mark.one_engine

Surf = Callable[..., Surfer]
EN, ES = WORDS["en"], WORDS["es"]
LINES = 4
FULL = 60 * 1024
"""Bytes that a page may have."""


def test_a_link_is_answered_with_the_page_and_a_cookie(surf: Surf) -> None:
    """A slow phone waits for no redirect; the page has its address for the script, and no token."""
    surfer = surf()
    surfer.client.follow_redirects = False
    response = surfer.client.get(surfer.path)
    check_headers(response)
    page = Page(response)
    assert (page.status, page.heading) == (200, EN["title"])
    assert f'data-address="{surfer.root}"' in response.text
    assert str(surfer.buyer.session["client_token"]) not in response.text
    name, _, rest = response.headers["set-cookie"].partition("=")
    assert name == f"cs-{surfer.buyer.id}"
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= {part.strip() for part in rest.split(";")}


def test_a_link_opened_again_is_the_same_browsers(surf: Surf) -> None:
    """Initials typed without a script survive a reload of the address with the token."""
    surfer = surf()
    review = surfer.initial(surfer.open())
    again = surfer.open()
    assert review.heading == again.heading == EN["review_title"]
    assert again.form.fields == review.form.fields


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
    back = f"{SHOP}/back?cart=7&checkout_session_id={surfer.buyer.id}"
    name = shop.client.get("/v1/checkout_sessions").json()["data"][0]["checkout_session_id"]
    assert name == surfer.buyer.id
    assert back in done.links.values()
    assert shop.events(surfer.buyer) == ["checkout_session.completed"]


@pytest.mark.parametrize("days", [0, 29])
def test_an_ended_link_shows_nothing_of_the_buyer_without_the_cookie(
    operator: Operator, shop: Shop, days: int
) -> None:
    """Links lie in mails and chats: who finds one learns how the session ended, and no more."""
    cbid = str(verify(shop.client, shipping_zip="94111").json()["cbid"])
    buyer = shop.buyer(cbid=cbid, shipping_zip="94111")
    with Surfer(shop.server, buyer) as surfer, Surfer(shop.server, buyer) as finder:
        surfer.complete()
        ack_id = str(shop.read(buyer)["ack_id"])
        operator.execute(
            "UPDATE checkout_sessions SET expires_at = expires_at - :ms WHERE id = :id",
            ms=days * 86_400_000,
            id=buyer.id,
        )
        assert (ack_id in surfer.open().text) == (days == 0)
        found = finder.open()
        assert (found.status, found.heading) == (200, EN["done_title"])
        assert f"{SHOP}/back?cart=7&checkout_session_id={buyer.id}" in found.links.values()
        assert not finder.client.cookies
        current = buyer.current()
    for secret in (ack_id, cbid, "AB</"):
        assert secret not in found.response.text
    assert cbid not in str(current)
    assert (ack_id in str(current)) == (days == 0)


def test_the_record_says_how_the_initials_were_made(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    served = surfer.open()
    review = surfer.initial(served)
    surfer.agree(review)
    acknowledgment = shop.acknowledgment(surfer.buyer)
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
    acknowledgment = shop.acknowledgment(surfer.buyer)
    assert acknowledgment["initials_per_line"] == ["AB", "XY", "AB", "AB"]
    assert [line["changes"] for line in acknowledgment["process"]["lines"]] == [0, 1, 0, 0]


def test_blank_lines_are_named_and_typed_text_is_kept(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    page = surfer.open()
    wrong = surfer.send(page.form, initials_1="AB", initials_3="\u200b", initials_4="A" * 33)
    assert wrong.heading == EN["title"]
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
    process = shop.acknowledgment(surfer.buyer)["process"]
    assert process["rendered_digest"] == hashlib.sha256(wrong.response.content).hexdigest()


def test_both_boxes_have_to_be_ticked(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    review = surfer.initial(surfer.open())
    wrong = surfer.send(review.form, agreement="yes")
    assert wrong.heading == EN["review_title"]
    assert wrong.links[EN["consent_missing"]] == "#consent"
    assert wrong.form.boxes == ["agreement", "consent"]
    assert shop.read(surfer.buyer)["status"] == "open"
    assert surfer.agree(wrong).heading == EN["done_title"]


def test_a_buyer_may_decline_after_a_confirmation(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    asked = surfer.follow(surfer.open(), EN["decline"])
    assert asked.heading == EN["decline_title"]
    assert shop.read(surfer.buyer)["status"] == "open"
    assert surfer.follow(asked, EN["decline_back"]).heading == EN["title"]
    declined = surfer.send(asked.form)
    assert declined.heading == EN["declined_title"]
    assert shop.events(surfer.buyer) == ["checkout_session.declined"]
    assert f"{SHOP}/back?cart=7&checkout_session_id={surfer.buyer.id}" in declined.links.values()


def test_an_ended_session_tells_how_it_ended_to_people_with_its_link(
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
    unknown = [
        f"{surfer.buyer.id}/copy/{'A' * 43}",
        "nothing",
        token[:-1] + ("a" if token[-1] != "a" else "b"),
        f"{token}/copy",
        "",
    ]
    ids = [surfer.buyer.id, "chk_01km9x4v8gen3rr1p6q1s2t3v6"]
    without = [f"{id_}{rest}" for id_ in ids for rest in ("", "/copy", "/certificate.pdf")]
    for paths, heading in ((unknown, EN["unknown_title"]), (without, EN["no_cookie_title"])):
        pages = set()
        with make_client(shop.server) as stranger:
            for path in paths:
                response = stranger.get(f"/c/{path}")
                check_headers(response)
                assert response.status_code == 404, path
                pages.add(response.text)
                if "/copy/" not in path:
                    posted = stranger.post(f"/c/{path}", data={"csrf": "x"})
                    assert posted.status_code == 404, path
                    pages.add(posted.text)
        assert len(pages) == 1
        assert heading in pages.pop()


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
    assert ES["legal_in"].replace("{language}", ES["language_en"]) in page.text
    assert surfer.agree(surfer.initial(page)).heading == ES["done_title"]
    process = shop.acknowledgment(surfer.buyer)["process"]
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
    # The Spanish review is still open in another tab, and is the one sent.
    assert surfer.agree(review).heading == ES["done_title"]
    process = shop.acknowledgment(surfer.buyer)["process"]
    assert (process["locale"], process["consent"]) == ("es", ES["consent"])


def test_a_new_text_is_shown_and_the_old_texts_initials_are_dropped(
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
        assert (page.status, page.heading) == (200, EN["title"])
        assert f"Line 2 of {name} 2." in page.text
        assert EN["changed_notice"] in page.text
        assert {page.form.fields[field] for field in page.form.texts} == {""}
    surfer.agree(surfer.initial(surfer.open()))
    acknowledgment = shop.acknowledgment(surfer.buyer)
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


def test_one_tabs_review_does_not_submit_another_tabs_initials(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    form = surfer.open()
    review = surfer.initial(form)
    other = surfer.initial(form, "XY")
    again = surfer.agree(review)
    assert again.heading == EN["review_title"]
    assert "XY" in again.text
    assert shop.read(surfer.buyer)["status"] == "open"
    surfer.agree(other)
    assert shop.acknowledgment(surfer.buyer)["initials_per_line"] == ["XY"] * LINES
