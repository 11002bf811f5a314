"""Gatekeeper, an invented provider: `GET /sessions/{id}`, and webhooks that name a session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from countersign.base.errors import WebhookRefused
from countersign.identity import json_reader as read
from countersign.identity.base import Credentials, IdentityProvider, Response, address
from countersign.identity.model import (
    Document,
    FactSource,
    ProviderResult,
    StartedSession,
    StartRequest,
    WebhookHint,
)
from countersign.identity.starting import ADDRESS, post
from countersign.identity.transport import Budget, ProviderRequest
from countersign.identity.webhook_signature import is_signed

_SESSION: Final = re.compile(r"gate_[0-9a-f]{16}", re.ASCII)


class GatekeeperCredentials(Credentials, frozen=True, kw_only=True):
    """The credentials file for Gatekeeper."""

    api_key: str
    webhook_secrets: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        return "https://gatekeeper.example"

    def check(self) -> None:
        self.check_visible(api_key=self.api_key, webhook_secrets=self.webhook_secrets)


class Gatekeeper(IdentityProvider[GatekeeperCredentials]):
    """Gatekeeper with the credentials of one account."""

    name = "gatekeeper"
    credentials_type = GatekeeperCredentials
    session_id = _SESSION
    probe_session_id = "gate_0000000000000000"
    api_version = "1"
    words = read.words_of(__file__)
    pages = ("gatekeeper.example",)

    def _request(self, session_id: str) -> ProviderRequest:
        return ProviderRequest(path=f"/sessions/{session_id}", headers=self._headers)

    @property
    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._credentials.api_key}"}

    def _session(self, response: Response, session: read.Object) -> ProviderResult:
        if session.get("id") != response.session_id:
            raise read.Unreadable("id")
        result = self._decided(
            response,
            read.text(session, "status"),
            live=session.get("live") is True,
            subject=read.text(session, "reference"),
        )
        with read.facts_unknown() as unread:
            result = self._with_person(result, read.mapping(session, "document"))
            result = replace(result, decided_at=read.instant(session, "decided_at"))
        return replace(result, unread=tuple(unread))

    def _with_person(self, result: ProviderResult, document: read.Object) -> ProviderResult:
        expiry = read.expiry(document, "expires_on")
        names = {"region": "state", "postal_code": "zip"}
        return self._of_person(
            result,
            read.iso_date(document, "born"),
            [address(document, FactSource.DOCUMENT, "country", **names)],
            born_by=FactSource.DOCUMENT,
            document=Document(
                type=read.text(document, "kind"),
                issuing_country=read.text(document, "country"),
                issuing_region=read.text(document, "region"),
                expires_on=expiry.on,
                expiry_unread=expiry.unread,
            ),
            number=read.text(document, "number"),
        )

    def _error(self, response: Response, body: read.Object | None) -> ProviderResult:
        return response.error(genuine=(body or {}).get("error") == "no such session")

    async def _start(self, wanted: StartRequest, budget: Budget) -> StartedSession:
        body = {"reference": wanted.reference, "return_url": wanted.return_url}
        making = post("/sessions", body, self._headers, repeatable=False)
        _, made = await self._make(making, budget)
        session_id = read.matching(made, "id", _SESSION)
        return StartedSession(session_id=session_id, url=read.matching(made, "url", ADDRESS))

    async def _read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        secrets = self._credentials.webhook_secrets
        if not is_signed(body, secrets, headers.get("gatekeeper-signature", "")):
            raise WebhookRefused
        session_id = read.matching(message := read.parse(body), "session", _SESSION)
        return WebhookHint(session_id=session_id, event_key=str(message.get("event")))
