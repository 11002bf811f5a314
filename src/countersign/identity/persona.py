"""Persona: asks for inquiries with their verifications, reads what its webhooks hint at.

Endpoint, versions and sparse fields: Persona's API reference, version 2025-12-08.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import quote

import msgspec

from countersign.identity import persona_webhook
from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import ProviderResult, WebhookHint
from countersign.identity.persona_fields import FIELDS, QUERY
from countersign.identity.persona_translate import NAME, Asked, translate
from countersign.identity.reading import evidence_of, unanswered
from countersign.identity.transport import (
    DIRECT,
    ProviderHttp,
    ProviderRequest,
    Reach,
    TransportFailure,
)
from countersign.ports import Clock

__all__ = ["FIELDS", "HOST", "SESSION_ID", "Credentials", "Provider", "check"]

HOST: Final = "https://api.withpersona.com"
API_VERSION: Final = "2025-12-08"
SESSION_ID: Final = re.compile(r"inq_[A-Za-z0-9]{16,64}", re.ASCII)
_ENVIRONMENT_ID: Final = re.compile(r"env_[A-Za-z0-9]{8,64}", re.ASCII)
_SECRET: Final = re.compile(r"[!-~]{16,250}", re.ASCII)


class Credentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The credentials file of an account that uses Persona."""

    api_key: str
    """A key with the permissions `inquiry.read` and `verification.read`."""
    environment: Literal["live", "sandbox"]
    """What the key's environment is for: Persona calls the live one Production."""
    environment_id: str
    """`env_…`; Persona names it in every answer, and only answers from it are live."""
    webhook_secrets: tuple[str, ...] = ()
    """Each as Persona shows it; two while one is being replaced. Without any, webhooks are
    refused."""
    accept_completed: bool = False
    """Whether `completed` counts as decided once a verification passed: only for templates on
    which nobody, and no workflow, approves or declines."""

    def __repr__(self) -> str:
        return "<persona credentials: hidden>"


def check(credentials: Credentials) -> None:
    """Refuse what can be told wrong without asking Persona.

    Raises:
        ValueError: the text says what to do, and names no secret.
    """
    if not _SECRET.fullmatch(credentials.api_key):
        raise ValueError("api_key: give the key exactly as Persona shows it.")
    other = "sandbox" if credentials.environment == "live" else "production"
    if credentials.api_key.startswith(f"persona_{other}_"):
        raise ValueError(
            f"api_key: this is a {other} key, but environment says {credentials.environment}."
        )
    if not _ENVIRONMENT_ID.fullmatch(credentials.environment_id):
        raise ValueError("environment_id: give the environment's id, env_….")
    if not all(_SECRET.fullmatch(secret) for secret in credentials.webhook_secrets):
        raise ValueError("webhook_secrets: give each secret exactly as Persona shows it.")


class Provider:
    """Persona with the credentials of one account."""

    name: Final = NAME
    probe_session_id: Final = "inq_0000000000000000000000000000"

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
        self._http = ProviderHttp(base_url or HOST, clock, reach=reach)

    async def retrieve(self, session_id: str) -> ProviderResult:
        """What Persona says of an inquiry now.

        Raises:
            ValueError: this cannot be an inquiry's id; nothing was sent.
        """
        if not SESSION_ID.fullmatch(session_id):
            raise ValueError("not the id of a Persona inquiry")
        request = ProviderRequest(
            path=f"/api/v1/inquiries/{quote(session_id, safe='')}",
            query=QUERY,
            headers={
                "Authorization": f"Bearer {self._credentials.api_key}",
                "Accept": "application/json",
                "Key-Inflection": "kebab",
                "Persona-Version": API_VERSION,
            },
        )
        try:
            reply = await self._http.send(request)
        except TransportFailure as failure:
            return unanswered(NAME, session_id, failure)
        asked = Asked(
            session_id=session_id,
            environment_id=self._credentials.environment_id,
            production=self._credentials.environment == "live",
            accept_completed=self._credentials.accept_completed,
        )
        evidence = evidence_of(
            reply,
            self._clock,
            request_id=reply.headers.get("request-id"),
            api_version=API_VERSION,
        )
        return translate(reply, asked, evidence, self._fingerprint)

    async def read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        """What an authentic event hints at; None if it is not about an inquiry's progress.

        Raises:
            WebhookRefused: it is not authentic, too old, or unreadable.
        """
        return persona_webhook.read(
            headers.get("persona-signature", ""),
            body,
            secrets=self._credentials.webhook_secrets,
            now=self._clock.time_ns() // 1_000_000_000,
            session_id=SESSION_ID,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()
