"""Attacks on the hosted page: each is refused, and none changes a session."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from countersign.core.checkout.model import ELSEWHERE_MAX
from countersign.hosted.toolkit.screens import WORDS
from tests.checkout.buyer import SHOP, Shop
from tests.checkout.surfer import Page, Surfer, check_headers
from tests.http.backstage import Operator, make_client, notice_file
from tests.http.conftest import PUBLIC_URL, Configured
from tests.support.service import Server

pytestmark = pytest.mark.one_engine

Surf = Callable[..., Surfer]
EN = WORDS["en"]
MARKUP = '"><script>alert(1)</script>'


def _post(surfer: Surfer, page: Page, **headers: str) -> httpx2.Response:
    """Send initials with these headers."""
    form = page.form
    data = form.fields | dict.fromkeys(form.texts, "AB")
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    response = surfer.client.post(form.action, data=data, headers=names, follow_redirects=False)
    check_headers(response)
    return response


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null", "Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_a_form_that_another_site_sends_is_refused(
    surf: Surf, shop: Shop, headers: dict[str, str]
) -> None:
    surfer = surf()
    refused = _post(surfer, surfer.open(), **headers)
    assert refused.status_code == 403
    assert EN["failed_title"] in refused.text
    assert surfer.open(surfer.root).heading == EN["title"]
    assert shop.read(surfer.buyer)["status"] == "open"


def test_a_form_of_the_page_is_taken_as_browsers_send_it(surf: Surf, server: Server) -> None:
    """With no referrer to be sent, they send `Origin: null`."""
    for origin in ("null", server.url, None):
        surfer = surf()
        headers = {"Sec_Fetch_Site": "same-origin"} | ({"Origin": origin} if origin else {})
        assert _post(surfer, surfer.open(), **headers).status_code == 303


@pytest.mark.parametrize("code", [None, "", "x", "A" * 43, "é"])
def test_a_form_without_its_code_is_refused(surf: Surf, shop: Shop, code: str | None) -> None:
    surfer = surf()
    page = surfer.open()
    for action in ("initials", "accept", "decline", "identity", "events"):
        form = replace(page.form, action=f"{surfer.root}/{action}")
        assert surfer.send(form, csrf=code).status == 403
    assert shop.read(surfer.buyer)["status"] == "open"


def test_cookie_and_code_of_a_session_are_of_no_use_for_another(surf: Surf, shop: Shop) -> None:
    own, other = surf(), surf()
    page = own.open()
    value = own.client.cookies[f"cs-{own.buyer.id}"]
    code = page.form.fields["csrf"]
    # The cookie's code is not valid for a form, and vice versa.
    for planted in (value, code, "", "x" * 43, f"{value}x"):
        cookie = f"cs-{other.buyer.id}={planted}; cs-{own.buyer.id}={value}"
        with make_client(shop.server, Cookie=cookie) as stranger:
            assert stranger.get(other.root).status_code == 404
            posted = stranger.post(f"{other.root}/decline", data={"csrf": code})
            assert posted.status_code == 404
    other.open()
    decline = replace(page.form, action=f"{other.root}/decline")
    assert other.send(decline).status == 403
    assert other.send(replace(decline, fields={"csrf": value})).status == 403
    assert {shop.read(one.buyer)["status"] for one in (own, other)} == {"open"}


def test_the_code_of_a_copy_opens_nothing_else(surf: Surf) -> None:
    surfer, other = surf(), surf()
    key = surfer.complete().links[EN["copy_link"]].rpartition("/")[2]
    other.complete()
    assert surfer.open(f"{other.root}/copy/{key}").status == 404
    assert surfer.open(f"{surfer.root}/copy/{key}/decline").status == 404
    assert surfer.open(f"{surfer.root}/decline/{key}").status == 404


def test_initials_for_another_text_are_refused(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    page = surfer.open()
    for digest in ("0" * 64, "", None):
        swapped = surfer.send(
            page.form, notice_digest=digest, **dict.fromkeys(page.form.texts, "AB")
        )
        assert swapped.heading == EN["title"]
        assert {swapped.form.fields[name] for name in swapped.form.texts} == {""}
    review = surfer.initial(page)
    for reviewed in ("0" * 64, "", None):
        again = surfer.send(review.form, reviewed=reviewed, agreement="yes", consent="yes")
        assert again.heading == EN["review_title"]
    assert shop.read(surfer.buyer)["status"] == "open"


def test_scans_of_a_link_do_not_displace_the_page_of_its_buyer(surf: Surf, shop: Shop) -> None:
    """Mail scanners and previews open a link without cookies, and each is a browser of its own."""
    surfer = surf()
    page = surfer.open()
    for _ in range(ELSEWHERE_MAX):
        with make_client(shop.server) as scanner:
            assert scanner.get(surfer.path).status_code == 200
    assert surfer.initial(page).heading == EN["review_title"]


def test_a_review_cannot_be_skipped_or_sent_to_another_session(surf: Surf, shop: Shop) -> None:
    surfer, other = surf(), surf()
    page = surfer.open()
    forged = replace(page.form, action=f"{surfer.root}/accept")
    assert surfer.send(forged, agreement="yes", consent="yes").heading == EN["title"]
    form = other.open()
    review = surfer.initial(page)
    moved = replace(review.form, action=f"{other.root}/accept")
    code = form.form.fields["csrf"]
    landed = other.send(moved, csrf=code, agreement="yes", consent="yes")
    assert landed.heading == EN["title"]
    assert shop.read(other.buyer)["status"] == "open"


def test_a_used_link_collects_no_more_initials(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    form = surfer.open()
    review = surfer.initial(form)
    surfer.agree(review)
    with Surfer(shop.server, surfer.buyer) as thief:
        assert thief.open().heading == EN["done_title"]
        # The link of an ended session sets no cookie, and without one there is no form.
        assert thief.initial(form, "XY").status == 404
        assert thief.agree(review).status == 404
    assert surfer.initial(form, "XY").heading == EN["done_title"]
    assert surfer.agree(review).heading == EN["done_title"]
    declined = replace(form.form, action=f"{surfer.root}/decline")
    assert surfer.send(declined).heading == EN["done_title"]
    assert shop.read(surfer.buyer)["status"] == "completed"
    assert len(shop.client.get("/v1/acknowledgments").json()["data"]) == 1


def test_the_page_may_be_framed_by_the_origin_of_the_session_alone(surf: Surf) -> None:
    assert surf().open().policy["frame-ancestors"] == "'none'"
    framed = surf(origin=SHOP)
    page = framed.open()
    assert page.policy["frame-ancestors"] == SHOP
    assert framed.send(page.form).policy["frame-ancestors"] == SHOP
    assert framed.send(page.form, csrf="x").policy["frame-ancestors"] == "'none'"


def test_every_refusal_under_the_page_is_a_page_that_may_do_nothing(surf: Surf, shop: Shop) -> None:
    surfer = surf()
    page = surfer.open()
    client, form = surfer.client, f"{surfer.root}/initials"
    fields = f"csrf={page.form.fields['csrf']}"
    urlencoded = {"Content-Type": "application/x-www-form-urlencoded"}
    refused = {
        404: [client.get("/c/"), client.post(f"{surfer.root}/nothing", data={"csrf": "x"})],
        405: [client.put(surfer.root), client.delete(surfer.path), client.options(surfer.root)],
        415: [
            client.post(form, json={}),
            client.post(form, content=fields, headers={"Content-Type": "text/plain"}),
            client.post(form, files={"csrf": b"x"}),
            client.post(form),
        ],
        413: [client.post(form, content="a" * 65537, headers=urlencoded)],
        400: [
            client.post(form, content=body, headers=urlencoded)
            for body in (f"{fields}&{fields}", f"{fields}&a=%00", f"{fields}&a=%ff", "é", "a&b")
        ],
    }
    for status, responses in refused.items():
        for response in responses:
            if status == 404 and response.status_code == 403:
                continue
            assert response.status_code == status, response.request.url
            check_headers(response)
            assert "script-src 'sha256-" in response.headers["content-security-policy"]
            assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert shop.read(surfer.buyer)["status"] == "open"


def test_a_failure_inside_is_a_page_too(surf: Surf, operator: Operator) -> None:
    surfer = surf()
    surfer.open()
    damage = "UPDATE checkout_sessions SET content = :content WHERE id = :id"
    operator.execute(damage, content=b"?", id=surfer.buyer.id)
    broken = surfer.open(surfer.root)
    assert (broken.status, broken.heading) == (500, EN["failed_title"])


def test_markup_in_a_notice_is_shown_as_text(surf: Surf, operator: Operator) -> None:
    file = notice_file("markup", "1").replace("Line 1 of", "<script>alert(1)</script><b>")
    operator.publish(file)
    surfer = surf(notice_id="markup")
    page = surfer.open()
    assert "<script>alert(1)</script><b> markup 1." in page.text
    review = surfer.initial(page, MARKUP)
    assert MARKUP in review.text
    assert surfer.follow(review, EN["change"]).form.fields["initials_1"] == MARKUP
    for one in (page, review, surfer.agree(review)):
        assert len(re.findall("<script", one.response.text)) == 1


def test_markup_in_the_name_of_a_vendor_is_shown_as_text(
    surf: Surf, shop: Shop, operator: Operator
) -> None:
    name = f"{MARKUP} & {{{{ vendor }}}}"
    shop.brand(operator, name=name)
    page = surf().open()
    assert name in page.text
    assert len(re.findall("<script", page.response.text)) == 1


@pytest.mark.parametrize(
    "query", ["?return_url=https://evil.example", "?next=//evil.example", "?lang=//evil.example"]
)
def test_the_only_link_to_another_site_is_the_vendors(surf: Surf, query: str) -> None:
    surfer = surf()
    by_link = surfer.open(surfer.path + query).response.text
    assert f'data-address="{surfer.root}"' in by_link
    assert "evil.example" not in by_link
    page = surfer.open(surfer.root + query)
    assert "evil.example" not in page.response.text
    assert "evil.example" not in surfer.agree(surfer.initial(page)).response.text


def test_the_token_is_in_no_log_and_in_no_page(surf: Surf, server: Server) -> None:
    surfer = surf()
    token = surfer.buyer.session["client_token"]
    surfer.complete()
    surfer.client.put(surfer.path)
    surfer.client.post(surfer.path, data={"csrf": "x"}, headers={"Origin": "https://evil.example"})
    surfer.open(f"/c/{token}/initials")
    assert token not in Path(server.log).read_text(encoding="utf-8")


def test_over_https_the_cookie_is_bound_to_the_host(configured: Configured) -> None:
    with configured.operator.vendor(configured.server) as vendor:
        client = vendor.test
        body = {"return_url": f"{SHOP}/", "session_id": "cart-7", "notice_id": "ab1263"}
        session = client.post("/v1/checkout_sessions", json=body).json()
    assert session["url"].startswith(f"{PUBLIC_URL}/c/")
    with make_client(configured.server) as browser:
        response = browser.get(f"/c/{session['client_token']}")
        name, _, rest = response.headers["set-cookie"].partition("=")
        assert name == f"__Host-cs-{session['checkout_session_id']}"
        assert {"Secure", "Path=/", "HttpOnly", "SameSite=Lax"} <= {
            part.strip() for part in rest.split(";")
        }
        assert "Domain" not in rest
        cookie = {"Cookie": response.headers["set-cookie"].partition(";")[0]}
        page = Page(response)
        data = page.form.fields | dict.fromkeys(page.form.texts, "AB")
        for origin, status in ((PUBLIC_URL, 303), (PUBLIC_URL.replace("https", "http"), 403)):
            sent = browser.post(page.form.action, data=data, headers=cookie | {"Origin": origin})
            assert sent.status_code == status
