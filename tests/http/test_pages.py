"""The pages about the service itself, and what operations need."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser

import httpx2
import pytest

from countersign.base.errors import REFUSALS
from countersign.server.app import route_table
from tests.http.backstage import make_client
from tests.http.calls import refusal
from tests.http.conftest import PUBLIC_URL, SECURITY_CONTACT, Configured
from tests.support.service import Server

pytestmark = pytest.mark.one_engine

PAGES = (
    *("/", "/docs/errors"),
    *("/docs/reference", "/docs/reference/types", "/docs/reference/acknowledgments"),
)
SECURITY_TXT = "/.well-known/security.txt"
LOADING = {"src", "srcset", "data", "poster", "background", "action", "formaction", "manifest"}
"""Attributes that make a browser ask for something, without a click."""


class Page(HTMLParser):
    """The elements of a page: ids, links, and loaded resources."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name == "href" and tag == "a":
                self.links.append(value or "")
            elif name in LOADING or name == "href":
                self.loads.append(f"{tag} {name}={value}")
            elif name.startswith("on") or name == "style":
                self.loads.append(f"{tag} {name}")


@pytest.fixture
def visitor(server: Server) -> Iterator[httpx2.Client]:
    """Give a client without a key."""
    with make_client(server) as client:
        yield client


@pytest.fixture
def configured_visitor(configured: Configured) -> Iterator[httpx2.Client]:
    """Give a client without a key of the server with everything configured."""
    with make_client(configured.server) as client:
        yield client


def metrics(configured: Configured) -> httpx2.Response:
    with make_client(configured.server) as client:
        return client.get(configured.metrics_url)


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_served_without_a_key(visitor: httpx2.Client, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.text.startswith("<!doctype html>")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_makes_no_request_of_its_own(visitor: httpx2.Client, path: str) -> None:
    """No script, style, picture or font from anywhere: a visitor is not tracked."""
    answer = visitor.get(path)
    page = Page(answer.text)
    assert page.loads == []
    assert not page.tags & {"script", "link", "iframe", "img", "object", "embed", "base", "form"}
    assert "http-equiv" not in answer.text
    assert not re.search(r"@import|url\(", answer.text)


@pytest.mark.parametrize("path", PAGES)
def test_the_browser_may_load_nothing(visitor: httpx2.Client, path: str) -> None:
    headers = visitor.get(path).headers
    policy = dict(
        part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == "'none'"
    assert policy["form-action"] == "'none'"
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/=]+'", policy["style-src"])
    assert headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("path", PAGES)
def test_every_link_on_a_page_leads_somewhere(visitor: httpx2.Client, path: str) -> None:
    pages: dict[str, Page] = {}
    for link in Page(visitor.get(path).text).links:
        target, _, anchor = link.partition("#")
        if anchor:
            place = target or path
            pages[place] = pages.get(place) or Page(visitor.get(place).text)
            assert anchor in pages[place].ids, link
        else:
            assert visitor.get(target).status_code == 200, link


@pytest.mark.parametrize("path", PAGES)
def test_no_anchor_is_there_twice(visitor: httpx2.Client, path: str) -> None:
    ids = Page(visitor.get(path).text).ids
    assert len(ids) == len(set(ids))


def test_every_error_code_has_an_anchor_with_what_it_means_and_what_to_do(
    visitor: httpx2.Client,
) -> None:
    text = visitor.get("/docs/errors").text
    sections = {Page(part).ids[0]: part for part in text.split("<section")[1:] if Page(part).ids}
    codes = {error.code: error.status for error in REFUSALS}
    assert set(sections) == set(codes)
    for code, status in codes.items():
        assert str(status) in sections[code]
        _, _, advice = sections[code].partition("What to do")
        assert len(re.sub(r"<[^>]+>", "", advice).strip()) > 20, code


def test_the_reference_describes_every_operation(visitor: httpx2.Client) -> None:
    """On the page of its group, linked from the first page."""
    links = [link.partition("#") for link in Page(visitor.get("/docs/reference").text).links]
    places = {anchor: path for path, _, anchor in links if anchor != "main"}
    pages = {path: visitor.get(path).text for path in {*places.values()}}
    operations = [route for route in route_table() if route.operation]
    assert {route.operation for route in operations} == {*places} - {""}
    for route in operations:
        assert route.operation is not None
        text = pages[places[route.operation]]
        assert route.operation in Page(text).ids
        assert f"{route.method} {route.path}" in text
    assert len(pages) > 5


def test_the_openapi_document_describes_every_operation(visitor: httpx2.Client) -> None:
    answer = visitor.get("/openapi.json")
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    document = answer.json()
    assert document["openapi"].startswith("3.1")
    described = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert described == {(r.method, r.path) for r in route_table() if r.operation}


def test_pages_about_the_service_may_be_kept_by_caches(visitor: httpx2.Client) -> None:
    for path in (*PAGES, "/openapi.json"):
        assert "max-age" in visitor.get(path).headers["Cache-Control"]


def test_the_process_says_that_it_answers(visitor: httpx2.Client) -> None:
    answer = visitor.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_the_process_says_that_it_can_do_its_work(visitor: httpx2.Client) -> None:
    answer = visitor.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "checks": {"database": "ok", "sealing": "ok"}}


def test_health_is_never_answered_from_a_cache(visitor: httpx2.Client) -> None:
    for path in ("/healthz", "/readyz"):
        assert visitor.get(path).headers["Cache-Control"] == "no-store"


def test_without_a_contact_there_is_no_security_txt(visitor: httpx2.Client) -> None:
    assert refusal(visitor.get(SECURITY_TXT)) == (404, "not_found")


def test_security_txt_names_the_contact_until_a_date_to_come(
    configured_visitor: httpx2.Client,
) -> None:
    answer = configured_visitor.get(SECURITY_TXT)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    fields = dict(line.split(": ", 1) for line in answer.text.splitlines())
    assert fields["Contact"] == SECURITY_CONTACT
    assert fields["Canonical"] == PUBLIC_URL + SECURITY_TXT
    ahead = datetime.fromisoformat(fields["Expires"]) - datetime.now(UTC)
    assert 30 < ahead.days < 366


def test_metrics_are_on_a_port_of_their_own(
    configured: Configured, configured_visitor: httpx2.Client
) -> None:
    """How much business a vendor does is private."""
    configured_visitor.get("/healthz")
    assert refusal(configured_visitor.get("/metrics")) == (404, "not_found")
    answer = metrics(configured)
    assert answer.status_code == 200
    counted = re.search(
        r'^countersign_http_answers_total\{operation="getHealth",status="200"\} (\S+)$',
        answer.text,
        re.MULTILINE,
    )
    assert counted is not None
    assert float(counted[1]) >= 1


def test_metrics_name_no_account_and_no_buyer(configured: Configured) -> None:
    text = metrics(configured).text
    assert not re.search(r"acct_|key_|cbid_|ack_|csign_", text)


def test_without_a_port_for_them_there_are_no_metrics(visitor: httpx2.Client) -> None:
    assert refusal(visitor.get("/metrics")) == (404, "not_found")


def test_pages_do_not_depend_on_the_caller(visitor: httpx2.Client, client: httpx2.Client) -> None:
    for path in (*PAGES, "/openapi.json", "/healthz", "/readyz"):
        assert visitor.get(path).content == client.get(path).content


def test_the_examples_of_the_document_hold_no_real_key(visitor: httpx2.Client) -> None:
    text = json.dumps(visitor.get("/openapi.json").json())
    assert not re.search(r"csign_(sk|rk)_(test|live)_[0-9A-Za-z]{38}", text)


def test_browsers_and_crawlers_find_their_default_files(server: Server) -> None:
    """An icon, and robots.txt, which excludes search engines."""
    with server.client() as client:
        icon, robots = client.get("/favicon.ico"), client.get("/robots.txt")
    assert (icon.status_code, icon.headers["Content-Type"]) == (200, "image/svg+xml; charset=utf-8")
    assert "max-age" in icon.headers["Cache-Control"]
    assert "Disallow: /" in robots.text
