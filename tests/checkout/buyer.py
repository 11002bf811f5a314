"""A vendor who makes checkout sessions, and a buyer's browser that has their token."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx2

from countersign.core.checkout.brand import picture_in, put_brand
from tests.http.backstage import Operator, Vendor, make_client
from tests.support import postgres
from tests.support.acts import done
from tests.support.service import Server

NOTICE = "ab1263"
SHOP = "https://shop.example"


def wanted(**changes: object) -> dict[str, Any]:
    """The body that asks for a session; None leaves a field out."""
    body = {"return_url": f"{SHOP}/back?cart=7", "session_id": "cart-7", "notice_id": NOTICE}
    return {name: value for name, value in (body | changes).items() if value is not None}


@dataclass(frozen=True)
class Buyer:
    """A browser with the token of a session."""

    session: dict[str, Any]
    client: httpx2.Client

    @property
    def id(self) -> str:
        return str(self.session["checkout_session_id"])

    def current(self) -> dict[str, Any]:
        """The session as the component gets it."""
        response = self.client.get("/v1/checkout_sessions/current")
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    def acknowledge(self, initials: list[str] | None = None, **changes: object) -> httpx2.Response:
        """Send initials for the notice that is shown now."""
        notice = self.client.get("/v1/checkout_sessions/current").json()["notice"]
        body = {
            "initials_per_line": initials or ["AB"] * len(notice["bullets"]),
            "notice_version": notice["version"],
            "notice_digest": notice["digest"],
            "agreement": True,
            "consent": True,
        }
        return self.send("acknowledge", body | changes)

    def decline(self) -> httpx2.Response:
        return self.send("decline", {})

    def send(self, what: str, body: dict[str, Any]) -> httpx2.Response:
        return self.client.post(f"/v1/checkout_sessions/current/{what}", json=body)


@dataclass(frozen=True)
class Shop:
    """An account that makes sessions with a key."""

    vendor: Vendor
    server: Server
    opened: ExitStack
    """Closes the browsers."""
    mode: str = "test"

    @property
    def client(self) -> httpx2.Client:
        return self.vendor.client(self.mode)

    def create(self, **changes: object) -> httpx2.Response:
        return self.client.post("/v1/checkout_sessions", json=wanted(**changes))

    def buyer(self, **changes: object) -> Buyer:
        """A new session, and the browser that it was given to."""
        response = self.create(**changes)
        assert response.status_code == 200, response.text
        session = response.json()
        headers = {} if session["origin"] is None else {"Origin": session["origin"]}
        client = make_client(self.server, session["client_token"], **headers)
        return Buyer(session, self.opened.enter_context(client))

    def read(self, buyer: Buyer) -> dict[str, Any]:
        """The session as the vendor reads it back."""
        response = self.client.get(f"/v1/checkout_sessions/{buyer.id}")
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    def acknowledgment(self, buyer: Buyer) -> dict[str, Any]:
        """The acknowledgment of the session, as the vendor reads it back."""
        path = f"/v1/acknowledgments/{self.read(buyer)['ack_id']}"
        found: dict[str, Any] = self.client.get(path).raise_for_status().json()
        return found

    def events(self, buyer: Buyer) -> list[str]:
        """The types of the events about a session."""
        return [event["type"] for event in self.events_of(buyer)]

    def events_of(self, buyer: Buyer) -> list[dict[str, Any]]:
        """The events about a session."""
        postgres.settle()
        found: list[dict[str, Any]] = []
        query = {"limit": "100"}
        while True:
            page = self.client.get("/v1/events", params=query).json()
            found += page["data"]
            if page["next_cursor"] is None or not page["data"]:
                break
            query["after"] = page["next_cursor"]
        return [e for e in found if e["data"].get("checkout_session_id") == buyer.id]

    def brand(self, operator: Operator, **parts: str) -> None:
        """Change how buyers see the account, as the command does."""
        changes: dict[str, Any] = {"name": None, "color": None, "logo": None}
        changes |= parts
        if "logo" in parts:
            changes["logo"] = picture_in(parts["logo"]) if parts["logo"] else b""
        operator.act(
            lambda opened: done(put_brand, opened.access, self.vendor.account_id, **changes)
        )
