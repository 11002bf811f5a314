"""Didit: the decision of a session, `GET /v3/session/{id}/decision/`.

Plain HTTP: the package of that name in Python's index has nothing to do with Didit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from countersign.identity import didit_translate, didit_webhook
from countersign.identity.didit_fields import FIELDS
from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import ProviderResult, WebhookHint
from countersign.identity.reading import evidence_of, refused, unanswered
from countersign.identity.transport import (
    DIRECT,
    ProviderHttp,
    ProviderRequest,
    Reach,
    TransportFailure,
)
from countersign.ports import Clock

__all__ = ["FIELDS", "HOST", "NAME", "SESSION_ID", "Credentials", "Didit", "check"]

NAME: Final = "didit"
HOST: Final = "https://verification.didit.me"
SESSION_ID: Final = didit_webhook.SESSION_ID

_VISIBLE: Final = re.compile(r"[!-~]{8,300}", re.ASCII)
_SECRETS_MAX: Final = 5


class Credentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of a credentials file for Didit.

    Whether a session is live or one of the sandbox, Didit's answer says itself.
    """

    api_key: str
    """Of the application whose sessions count."""
    webhook_secrets: tuple[str, ...] = ()
    """Of each webhook destination, old and new while one is changed. Without any, webhooks are
    refused, and undecided sessions are settled by asking again."""

    def __repr__(self) -> str:
        return "<Credentials: hidden>"


def check(credentials: Credentials) -> None:
    """See what is wrong with credentials without asking Didit.

    Raises:
        ValueError: with a text for the operator, in which no secret occurs.
    """
    if len(credentials.webhook_secrets) > _SECRETS_MAX:
        raise ValueError(f"webhook_secrets: give at most {_SECRETS_MAX}")
    named = [("api_key", credentials.api_key)]
    named += [(f"webhook_secrets[{i}]", s) for i, s in enumerate(credentials.webhook_secrets)]
    for name, value in named:
        if _VISIBLE.fullmatch(value) is None:
            raise ValueError(f"{name}: give 8 to 300 visible ASCII characters, without spaces")
    if credentials.api_key in credentials.webhook_secrets:
        raise ValueError(
            "webhook_secrets: this value is the API key; give the destination's secret"
        )


class Didit:
    """Asks Didit, with the credentials of one application."""

    name: Final = NAME
    probe_session_id: Final = "00000000-0000-4000-8000-000000000000"

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
        """What Didit says of a session now; see `ports.IdentityProvider`.

        Raises:
            ValueError: this cannot be a session id of Didit; nothing was sent.
        """
        if SESSION_ID.fullmatch(session_id) is None:
            raise ValueError("not a session id of Didit")
        try:
            reply = await self._http.send(
                ProviderRequest(
                    # Without the slash at the end Didit redirects, and the key is lost on the way.
                    path=f"/v3/session/{session_id}/decision/",
                    headers={
                        "x-api-key": self._credentials.api_key,
                        "Accept": "application/json",
                    },
                )
            )
        except TransportFailure as failure:
            return unanswered(NAME, session_id, failure)
        evidence = evidence_of(reply, self._clock, api_version="v3")
        if reply.status != 200:
            outcome = didit_translate.refusal(reply.status, reply.body)
            return refused(NAME, session_id, outcome, reply, evidence=evidence)
        return didit_translate.translate(
            reply.body, session_id=session_id, fingerprint=self._fingerprint, evidence=evidence
        )

    async def read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        """What a webhook hints at; see `ports.IdentityProvider`.

        Raises:
            WebhookRefused: it is not authentic, too old, or unreadable.
        """
        now = self._clock.time_ns() // 1_000_000_000
        return didit_webhook.read(headers, body, self._credentials.webhook_secrets, now)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()
