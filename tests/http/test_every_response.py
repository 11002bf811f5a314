"""Every response states its type, and allows a browser that shows it as a page nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import httpx2
import pytest

from countersign.server.app import route_table

pytestmark = pytest.mark.one_engine

PAGES: Final = (
    *("/docs", "/docs/security", "/docs/reference", "/docs/errors", "/verify", "/openapi.json"),
    *("/docs/search.js", "/docs/search.json", "/docs/images/copy-desktop.png", "/favicon.ico"),
    *("/component/v1/countersign-notice.js", "/buyer", "/c/nothing", "/nowhere", "/healthz"),
    *("/v1/log/test/1/checkpoint", "/v1/log/policy?mode=test", "/.well-known/jwks.json"),
)
SESSION: Final = {
    "collect": ["acknowledgment"],
    "notice_id": "ab1263",
    "session_id": "order-1",
    "return_url": "https://shop.example.com/done",
}
TEXT: Final = re.compile(r"text/|\S+[+/]xml")
"""Types with a charset; JSON has none of its own (RFC 8259 §11)."""


def answers(client: httpx2.Client) -> Iterator[tuple[str, httpx2.Response]]:
    """Responses of every route, to valid and invalid requests."""
    for route in (one for one in route_table() if not one.console):
        path = re.sub(r"\{\w+\*?\}", "ab1263", route.path)
        for headers in ({}, {"Authorization": ""}):
            sent = client.request(route.method, path, headers=headers, content=b"")
            yield f"{route.method} {path} {headers}", sent
    for path in PAGES:
        yield path, client.get(path)
    made = client.post("/v1/checkout_sessions", json=SESSION)
    assert made.status_code == 200, made.text
    entered = client.get(made.json()["url"])
    own = f"/c/{made.json()['checkout_session_id']}"
    notice = client.get(own)
    assert (entered.status_code, notice.status_code) == (200, 200)
    yield from (("a link", entered), ("a notice", notice))
    for what in ("decline", "updates", "certificate.pdf", "copy", "nothing"):
        yield what, client.get(f"{own}/{what}")


def faults(answer: httpx2.Response) -> Iterator[str]:
    """Required statements that a response lacks."""
    headers = answer.headers
    parts = headers.get("content-security-policy", "").split(";")
    policy = dict(part.strip().partition(" ")[::2] for part in parts)
    if headers.get("x-content-type-options") != "nosniff":
        yield "may be sniffed"
    # Without object-src the first one applies to it (CSP Level 3, 6.1.1).
    for directive in ("default-src", "base-uri", "frame-ancestors"):
        if policy.get(directive) != "'none'":
            yield f"{directive}: {policy.get(directive)}"
    if "unsafe" in headers.get("content-security-policy", ""):
        yield "allows what is not named by its digest"
    kind = headers.get("content-type", "")
    if answer.content and not kind:
        yield "no type"
    if TEXT.match(kind) and "charset=utf-8" not in kind:
        yield f"no charset: {kind}"
    if kind.startswith("text/html") and headers.get("referrer-policy") != "no-referrer":
        yield "sends a referrer"


def test_every_response_states_its_type_and_its_policy(client: httpx2.Client) -> None:
    """Whatever route it is of, and whether or not it is refused."""
    seen = list(answers(client))
    assert {answer.status_code for _, answer in seen} >= {200, 303, 400, 401, 404, 415}
    assert [f"{what}: {fault}" for what, answer in seen for fault in faults(answer)] == []
