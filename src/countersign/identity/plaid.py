"""Plaid Identity Verification: credentials, the request, and what of the answer is used how."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from countersign.identity import plaid_webhook
from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import ProviderResult, WebhookHint
from countersign.identity.plaid_fields import FIELDS
from countersign.identity.plaid_translate import NAME, Asked, translate
from countersign.identity.reading import evidence_of, unanswered
from countersign.identity.transport import (
    DIRECT,
    ProviderHttp,
    ProviderReply,
    ProviderRequest,
    Reach,
    TransportFailure,
)
from countersign.ports import Clock

__all__ = ["FIELDS", "HOSTS", "NAME", "SESSION_ID", "Credentials", "Provider", "check", "host"]

API_VERSION: Final = "2020-09-14"
HOSTS: Final[Mapping[str, str]] = {
    "live": "https://production.plaid.com",
    "sandbox": "https://sandbox.plaid.com",
}
SESSION_ID: Final = re.compile(r"idv_[A-Za-z0-9]{8,64}", re.ASCII)
ASKED_ABOUT_MAX: Final = 4096
"""Sessions that are remembered, so that messages about them are not held up by strangers'."""
PROBE_SESSION_ID: Final = "idv_CountersignAsksWhetherItMay"
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]{8,200}")


class Credentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the credentials file for Plaid holds. Webhooks need no secret: Plaid signs them."""

    client_id: str
    secret: str
    """The secret of the environment."""
    environment: Literal["live", "sandbox"]
    """Selects the host; Plaid's answers do not say it."""
    accept_kyc: bool = False
    """Whether a template without a document proves a person by what data sources confirm."""

    def __repr__(self) -> str:
        return "<Credentials for plaid: hidden>"


def check(credentials: Credentials) -> None:
    """Tell what can be told wrong without asking Plaid.

    Raises:
        ValueError: with a text that names no secret.
    """
    for name, value in (("client_id", credentials.client_id), ("secret", credentials.secret)):
        if _PRINTABLE.fullmatch(value) is None:
            raise ValueError(f"`{name}` must be 8 to 200 printable characters without spaces")
    if credentials.client_id == credentials.secret:
        raise ValueError("`secret` is the client identifier; Plaid shows the secret next to it")


def host(credentials: Credentials) -> str:
    """Where these credentials are valid."""
    return HOSTS[credentials.environment]


class Provider:
    """Asks Plaid with the credentials of one account; a `ports.IdentityProvider`."""

    name: Final = NAME
    probe_session_id: Final = PROBE_SESSION_ID

    def __init__(
        self,
        credentials: Credentials,
        *,
        base_url: str | None,
        fingerprint: Fingerprint,
        clock: Clock,
        reach: Reach = DIRECT,
    ) -> None:
        self._credentials = credentials
        self._fingerprint = fingerprint
        self._clock = clock
        self._http = ProviderHttp(base_url or host(credentials), clock, reach=reach)
        self._asked_about: OrderedDict[str, None] = OrderedDict()
        self._keys = plaid_webhook.WebhookKeys(self._ask_for_key, clock)

    async def retrieve(self, session_id: str) -> ProviderResult:
        if SESSION_ID.fullmatch(session_id) is None:
            raise ValueError("not the identifier of an identity verification of Plaid")
        self._asked_about[session_id] = None
        if len(self._asked_about) > ASKED_ABOUT_MAX:
            self._asked_about.popitem(last=False)
        asked = Asked(
            session_id=session_id,
            live=self._credentials.environment == "live",
            accept_kyc=self._credentials.accept_kyc,
        )
        try:
            reply = await self._post(
                "/identity_verification/get", {"identity_verification_id": session_id}
            )
        except TransportFailure as failure:
            return unanswered(NAME, session_id, failure)
        evidence = evidence_of(reply, self._clock, api_version=API_VERSION)
        return translate(reply, asked, evidence, self._fingerprint)

    async def read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        return await plaid_webhook.read(
            headers,
            body,
            keys=self._keys,
            now=self._clock.time_ns() // 10**9,
            session_id=SESSION_ID,
            asked_about=self._asked_about,
        )

    async def close(self) -> None:
        await self._http.close()

    async def _ask_for_key(self, kid: str) -> ProviderReply:
        return await self._post("/webhook_verification_key/get", {"key_id": kid})

    async def _post(self, path: str, body: Mapping[str, str]) -> ProviderReply:
        # A POST that only reads: safe to repeat.
        return await self._http.send(
            ProviderRequest(
                method="POST",
                path=path,
                headers={
                    "Content-Type": "application/json",
                    "Accept": "application/json",
                    "PLAID-CLIENT-ID": self._credentials.client_id,
                    "PLAID-SECRET": self._credentials.secret,
                    "Plaid-Version": API_VERSION,
                },
                body=json.dumps(body).encode("ascii"),
            )
        )
