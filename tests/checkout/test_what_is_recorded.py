"""Sessions and records contain observations and acts, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from countersign.core.checkout import expiry, store
from countersign.hosted.toolkit.screens import WORDS
from countersign.operate.bootstrap import Deployment
from tests.checkout.buyer import SHOP, Buyer, Shop
from tests.checkout.surfer import Page, Surfer, check_headers
from tests.http.backstage import Operator, make_client

pytestmark = pytest.mark.both_engines

Surf = Callable[..., Surfer]
EN = WORDS["en"]
CURRENT = "/v1/checkout_sessions/current"


def process_of(shop: Shop, buyer: Buyer) -> dict[str, Any]:
    """How the record of a session says that its initials came about."""
    ack_id = shop.read(buyer)["ack_id"]
    found: dict[str, Any] = shop.client.get(f"/v1/acknowledgments/{ack_id}").json()["process"]
    return found


def test_a_review_requested_without_being_shown_is_not_accepted(surf: Surf, shop: Shop) -> None:
    """For example by a mail scanner: a HEAD shows no one the sentences of the agreement."""
    surfer = surf()
    form = surfer.open().form
    data = form.fields | dict.fromkeys(form.texts, "AB")
    taken = surfer.client.post(form.action, data=data, follow_redirects=False)
    assert taken.status_code == 303
    assert surfer.client.head(surfer.root).status_code == 200
    accept = replace(form, action=f"{surfer.root}/accept", fields={"csrf": form.fields["csrf"]})
    sent = surfer.send(accept, agreement="yes", consent="yes", reviewed="0" * 64)
    assert sent.heading == EN["review_title"]
    assert shop.read(surfer.buyer)["status"] == "open"


def test_a_review_that_is_forged_is_not_accepted(surf: Surf, shop: Shop) -> None:
    """The review is identified by a digest that only the served review has."""
    surfer = surf()
    review = surfer.initial(surfer.open())
    with_review = surfer.buyer
    other = surf()
    foreign = other.initial(other.open()).form.fields["reviewed"]
    for forged in (foreign, "", "0" * 64, review.form.fields["reviewed"][:-1]):
        again = surfer.send(review.form, reviewed=forged, agreement="yes", consent="yes")
        assert again.heading == EN["review_title"]
    assert shop.read(with_review)["status"] == "open"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_looking_at_the_component_loses_no_typed_text(surf: Surf, shop: Shop, method: str) -> None:
    """The page continues, and the record names the page as the surface."""
    surfer = surf()
    review = surfer.initial(surfer.open(), "XY")
    assert surfer.buyer.client.request(method, CURRENT).status_code == 200
    again = surfer.open(surfer.root)
    assert (again.heading, again.text.count("XY")) == (review.heading, review.text.count("XY"))
    assert surfer.agree(review).heading == EN["done_title"]
    assert process_of(shop, surfer.buyer)["surface"] == "page"


@pytest.mark.parametrize("named", [SHOP, None])
def test_the_record_has_the_origin_that_the_request_named(shop: Shop, named: str | None) -> None:
    """Nothing, if a program that is no browser sent it: even with a session for that origin."""
    buyer = shop.buyer(origin=SHOP)
    buyer.current()
    with make_client(shop.server, buyer.session["client_token"]) as client:
        if named is not None:
            client.headers["Origin"] = named
        assert Buyer(buyer.session, client).acknowledge().status_code == 200
    assert process_of(shop, buyer)["origin"] == named


def test_nothing_binds_the_component_also_after_an_identity_check(surf: Surf, shop: Shop) -> None:
    """The holder of the token may be another program than the browser of the check."""
    surfer = surf(collect=["identity", "acknowledgment"], shipping_zip="94111")
    checked = surfer.send(surfer.open().form, outcome="verified")
    assert checked.heading == EN["title"]
    assert surfer.buyer.acknowledge().status_code == 200
    process = process_of(shop, surfer.buyer)
    assert (process["surface"], process["binding"]) == ("component", "none")
    assert process["verification"] is not None


def test_claims_about_lines_that_do_not_exist_are_dropped(shop: Shop) -> None:
    """The others of the same message are kept."""
    buyer = shop.buyer()
    lines = len(buyer.current()["notice"]["bullets"])
    claims = [{"line": line, "event": "shown"} for line in (1, lines, lines + 1, 1000)]
    assert buyer.send("events", {"events": claims}).status_code == 200
    assert buyer.acknowledge().status_code == 200
    assert [one["line"] for one in process_of(shop, buyer)["claimed"]] == [1, lines]


def test_an_ended_link_shows_no_copy_and_gives_no_cookie(surf: Surf, shop: Shop) -> None:
    """It says how the session ended; the copy has a link of its own."""
    surfer = surf()
    done = surfer.complete()
    over = shop.read(surfer.buyer)["expires_at"]
    assert shop.client.post("/v1/test/clock/advance", json={"to": over}).status_code == 200
    with make_client(shop.server) as elsewhere:
        response = elsewhere.get(surfer.path)
        check_headers(response)
        assert response.status_code == 200
        assert "set-cookie" not in response.headers
        page = Page(response)
        assert page.heading == EN["done_title"]
        assert not {EN["copy_link"], EN["certificate"]} & {*page.links}
        assert "AB" not in page.text.split()
        assert elsewhere.get(f"/c/{surfer.buyer.id}").status_code == 404
        assert elsewhere.get(done.links[EN["copy_link"]]).status_code == 200


def test_the_copy_is_for_the_sender_of_the_initials_and_not_for_every_token(shop: Shop) -> None:
    """Its address comes once, in the response to the initials; it needs no cookie."""
    buyer = shop.buyer()
    done = buyer.acknowledge().json()
    assert buyer.current()["copy_url"] is None
    with make_client(shop.server) as elsewhere:
        page = Page(elsewhere.get(urlsplit(done["copy_url"]).path))
    assert done["ack_id"] in page.text
    assert "AB" in page.text.split()


@pytest.mark.parametrize("query", ["&".join(["a=1"] * 2001)])
def test_a_malformed_query_under_the_page_is_refused(surf: Surf, query: str) -> None:
    """With a page, and without a change."""
    surfer = surf()
    surfer.open()
    refused = surfer.client.get(f"{surfer.root}?{query}")
    check_headers(refused)
    assert (refused.status_code, Page(refused).heading) == (400, EN["failed_title"])


def test_looking_at_the_certificate_makes_none(surf: Surf) -> None:
    """A HEAD has the headers of the file, and no length of a file that was not made."""
    surfer = surf()
    link = surfer.complete().links[EN["certificate"]]
    looked, made = surfer.client.head(link), surfer.client.get(link)
    check_headers(looked)
    assert (looked.status_code, looked.content) == (200, b"")
    assert looked.headers["content-type"] == made.headers["content-type"] == "application/pdf"
    assert looked.headers["content-disposition"] == made.headers["content-disposition"]
    assert "content-length" not in looked.headers
    assert made.content.startswith(b"%PDF-")


@pytest.mark.parametrize("digest", ["0" * 64, "", None])
def test_an_unchanged_text_is_not_reported_as_changed(surf: Surf, digest: str | None) -> None:
    """If initials came for a text that never existed, the notice is shown again."""
    surfer = surf()
    page = surfer.open()
    again = surfer.send(page.form, notice_digest=digest, **dict.fromkeys(page.form.texts, "AB"))
    assert (again.status, again.heading) == (200, EN["title"])
    assert EN["changed_notice"] not in again.text
    assert {again.form.fields[name] for name in again.form.texts} == {""}


def test_initials_for_an_unserved_text_are_refused(surf: Surf, shop: Shop) -> None:
    """Although it is the text in force: it is served then, and is no new one."""
    reader, surfer = surf(), surf()
    read = reader.open().form
    surfer.client.head(surfer.path)
    declining = surfer.open(f"{surfer.root}/decline").form
    form = replace(read, action=f"{surfer.root}/initials")
    code, typed = declining.fields["csrf"], dict.fromkeys(read.texts, "AB")
    answered = surfer.send(form, csrf=code, **typed)
    assert (answered.status, answered.heading) == (200, EN["title"])
    assert EN["changed_notice"] not in answered.text
    assert shop.read(surfer.buyer)["status"] == "open"
    assert surfer.complete().heading == EN["done_title"]


@pytest.fixture
def swept(surf: Surf, shop: Shop, operator: Operator) -> Callable[..., list[Any]]:
    """Fixture: ends the sessions of this shop by its clock, and reads the named ones."""

    def sweep(*session_ids: str) -> list[Any]:
        ahead = {"seconds": 2 * 86400}
        assert shop.client.post("/v1/test/clock/advance", json=ahead).status_code == 200

        async def work(opened: Deployment) -> list[Any]:
            await expiry.sweep(opened.checkout)
            return [await store.find_by_id(opened.checkout, id_) for id_ in session_ids]

        found: list[Any] = operator.act(work)
        return found

    return sweep


def test_an_expired_session_keeps_no_initials(surf: Surf, swept: Callable[..., list[Any]]) -> None:
    """Typed but unsent text is deleted by the sweep; the request stays."""
    surfer = surf()
    surfer.initial(surfer.open())
    [session] = swept(surfer.buyer.id)
    assert (session.status, session.content.reading) == ("expired", None)
    assert session.content.session_id == "cart-7"


def test_a_damaged_session_does_not_keep_others_open(
    surf: Surf, shop: Shop, operator: Operator, swept: Callable[..., list[Any]]
) -> None:
    """The sweep goes on with the next one, and ends."""
    damaged, other = surf(), surf()
    damage = "UPDATE checkout_sessions SET content = :content WHERE id = :id"
    operator.execute(damage, content=b"?", id=damaged.buyer.id)
    assert [one.status for one in swept(other.buyer.id)] == ["expired"]
    assert shop.events(other.buyer) == ["checkout_session.expired"]
    query = "SELECT status FROM checkout_sessions WHERE id = :id"
    assert [row["status"] for row in operator.rows(query, id=damaged.buyer.id)] == ["open"]
    operator.execute("DELETE FROM checkout_sessions WHERE id = :id", id=damaged.buyer.id)
