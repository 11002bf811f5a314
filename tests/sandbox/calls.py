"""Frequent calls of the sandbox tests."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import httpx2

from countersign.base.values import parse_rfc3339
from tests.http.calls import acknowledge, verify
from tests.support import postgres

DAY = 86400
ZIP = "94105"


def ok(answer: httpx2.Response) -> dict[str, Any]:
    """The body of an answer that must be good."""
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def time(text: str) -> datetime:
    return parse_rfc3339(text)


def clock(client: httpx2.Client) -> dict[str, Any]:
    return ok(client.get("/v1/test/clock"))


def advance(client: httpx2.Client, **body: object) -> dict[str, Any]:
    return ok(client.post("/v1/test/clock/advance", json=body))


def move(client: httpx2.Client, cbid: str, status: str, **more: object) -> httpx2.Response:
    return client.post("/v1/test/buyers", json={"cbid": cbid, "status": status} | more)


def buyer(client: httpx2.Client, session_id: str = "someone") -> str:
    """Verify somebody in the sandbox; gives the cbid."""
    answer = verify(client, provider_identity_session_id=session_id, shipping_zip=ZIP)
    cbid: str = ok(answer)["cbid"]
    return cbid


def status(client: httpx2.Client, cbid: str) -> dict[str, Any]:
    return ok(client.get(f"/v1/buyers/{cbid}/status"))


def order(client: httpx2.Client, cbid: str, session_id: str = "order-1") -> dict[str, str]:
    """Acknowledge for an order; returns the body of its clearance request."""
    ack_id = ok(acknowledge(client, session_id=session_id, cbid=cbid))["ack_id"]
    return {"ack_id": ack_id, "cbid": cbid, "session_id": session_id, "shipping_zip": ZIP}


def clear(client: httpx2.Client, asked: dict[str, str]) -> dict[str, Any]:
    return ok(client.post("/v1/clearances", json=asked))


def events(client: httpx2.Client, *types: str) -> list[dict[str, Any]]:
    """All events of these types, or all, oldest first."""
    postgres.settle()
    found: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    while True:
        page = ok(client.get("/v1/events", params={"limit": "100"} | after))["data"]
        if not page:
            return [event for event in found if not types or event["type"] in types]
        found += page
        after = {"after": page[-1]["id"]}
