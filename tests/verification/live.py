"""A vendor that verifies real buyers: an account that asks a simulated provider."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from countersign.core.buyers import admin
from countersign.core.buyers import settings as verification_settings
from countersign.core.buyers.model import Buyer
from countersign.core.buyers.rules import VerificationRules
from countersign.operate import bootstrap
from countersign_simulators.base import Session
from tests.http.backstage import Operator
from tests.support.acts import done
from tests.support.providers import Playing
from tests.support.service import Server

VERIFY = "/v1/buyers/verify"


@dataclass(frozen=True, kw_only=True)
class LiveVendor:
    """An account with its provider, and clients for both modes."""

    operator: Operator
    server: Server
    account_id: str
    playing: Playing
    live: httpx2.Client
    test: httpx2.Client

    def part(self, plays: str, number: int = 0) -> Session:
        """The session of the provider that plays this."""
        return self.playing.part(plays, number)

    def verify(
        self,
        session: Session,
        shipping_zip: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        **fields: object,
    ) -> httpx2.Response:
        """Verify the buyer of a session."""
        body: dict[str, object] = {
            "provider_identity_session_id": session.session_id,
            "shipping_zip": shipping_zip or session.shipping_zip,
        }
        if session.subject_reference is not None:
            body["subject_reference"] = session.subject_reference
        body |= fields
        return self.live.post(VERIFY, json=body, headers=dict(headers or {}))

    def verified(self, session: Session, shipping_zip: str | None = None) -> str:
        """Verify the buyer of a session, who must be verified; gives the cbid."""
        answer = self.verify(session, shipping_zip)
        assert answer.status_code == 200, answer.text
        assert answer.json()["status"] == "verified", answer.text
        cbid: str = answer.json()["cbid"]
        return cbid

    def status(self, cbid: str) -> dict[str, Any]:
        """The account's view of a buyer."""
        answer = self.live.get(f"/v1/buyers/{cbid}/status")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def configure(self, **rules: Any) -> None:  # noqa: ANN401 - the fields of the rules
        """Set how the account verifies."""
        configure(self.operator, self.account_id, self.playing, **rules)

    def send_webhook(
        self, session: Session, message: tuple[Mapping[str, str], bytes] | None = None
    ) -> tuple[httpx2.Response, tuple[Mapping[str, str], bytes]]:
        """Send a message of the provider about a session, or this message; returns both."""
        if message is None:
            made = self.playing.simulator.webhook(session.session_id)
            message = dict(made.headers), made.body
        headers, body = message
        with httpx2.Client(base_url=self.server.url, timeout=30.0, verify=False) as stranger:
            answer = stranger.post(self.webhook_path, content=body, headers=dict(headers))
        return answer, message

    @property
    def webhook_path(self) -> str:
        """Where the provider's messages go."""
        return f"/v1/provider_webhooks/{self.playing.name}/{self.account_id}"

    def rows(self, table: str) -> Sequence[Mapping[Any, Any]]:
        """The rows of this account in a table."""
        query = f"SELECT * FROM {table} WHERE account_id = :account"  # noqa: S608 - our own names
        return self.operator.rows(query, account=self.account_id)


def configure(
    operator: Operator,
    account_id: str,
    played: Playing,
    *,
    credentials: Mapping[str, object] | None = None,
    base_url: str | None = None,
    **rules: Any,  # noqa: ANN401 - the fields of the rules
) -> None:
    """Set how an account verifies, as `accounts verification set` does."""
    held = json.dumps(credentials or played.simulator.credentials).encode()

    async def work(opened: bootstrap.Deployment) -> None:
        floor = opened.buyers.providers.floor
        plain = {"minimum_age": floor.minimum_age, "validity_days": floor.validity_days}
        await verification_settings.configure(
            opened.buyers,
            account_id,
            played.name,
            held,
            VerificationRules(**plain | rules),
            base_url=base_url or played.url,
        )

    operator.act(work)


def revoke(operator: Operator, cbid: str) -> Buyer:
    """Revoke a buyer, as `buyers revoke` does."""
    return operator.act(lambda opened: done(admin.revoke, opened.buyers, cbid, "a test"))


def reinstate(operator: Operator, cbid: str) -> Buyer:
    """Undo it, as `buyers reinstate` does."""
    return operator.act(lambda opened: done(admin.reinstate, opened.buyers, cbid, "a test"))


@contextmanager
def live_vendor(
    operator: Operator,
    server: Server,
    played: Playing,
    **rules: Any,  # noqa: ANN401 - the fields of the rules
) -> Iterator[LiveVendor]:
    """Make an account that asks this provider."""
    with operator.vendor(server) as vendor:
        configure(operator, vendor.account_id, played, **rules)
        yield LiveVendor(
            operator=operator,
            server=server,
            account_id=vendor.account_id,
            playing=played,
            live=vendor.live,
            test=vendor.test,
        )
