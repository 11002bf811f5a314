"""Stripe Identity: asks for VerificationSessions, reads what its webhooks hint at.

Endpoint, keys and versions: Stripe's API reference, version 2026-10-28.endive.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from countersign.identity import stripe_webhook
from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import ProviderResult, WebhookHint
from countersign.identity.reading import evidence_of, unanswered
from countersign.identity.stripe_fields import FIELDS
from countersign.identity.stripe_translate import (
    NAME,
    Asked,
    translate,
    withholds_sensitive,
)
from countersign.identity.transport import (
    DIRECT,
    RETRIED,
    ProviderHttp,
    ProviderReply,
    ProviderRequest,
    Reach,
    TransportFailure,
)
from countersign.ports import Clock

__all__ = ["FIELDS", "HOST", "SESSION_ID", "Credentials", "Provider", "check"]

HOST: Final = "https://api.stripe.com"
API_VERSION: Final = "2026-10-28.endive"
SESSION_ID: Final = re.compile(r"vs_[A-Za-z0-9]{8,200}", re.ASCII)
_API_KEY: Final = re.compile(r"rk_(?:live|test)_[A-Za-z0-9_]{8,250}", re.ASCII)
_WEBHOOK_SECRET: Final = re.compile(r"whsec_[!-~]{8,250}", re.ASCII)

_EXPANDED: Final = ("verified_outputs", "last_verification_report")
_SENSITIVE: Final = (
    "verified_outputs.dob",
    "last_verification_report.document.expiration_date",
    # For the fingerprint only; it is dropped here.
    "last_verification_report.document.number",
)


class Credentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The credentials file of an account that uses Stripe Identity.

    Whether a session is live, Stripe says itself.
    """

    api_key: str
    """A restricted key, `rk_live_…` or `rk_test_…`."""
    webhook_secrets: tuple[str, ...] = ()
    """Each `whsec_…`; two while one is being replaced. Without any, webhooks are refused."""
    failing_errors: tuple[str, ...] = ("selfie_manipulated", "under_supported_age")
    """The codes of `last_error` after which the buyer is told no, rather than to try again."""
    subject_metadata_key: str | None = None
    """The metadata key with the reference to the buyer, if not `client_reference_id`."""

    def __repr__(self) -> str:
        return "<stripe credentials: hidden>"


def check(credentials: Credentials) -> None:
    """Refuse what can be told wrong without asking Stripe.

    Raises:
        ValueError: the text says what to do, and names no secret.
    """
    if credentials.api_key.startswith(("sk_", "pk_")):
        raise ValueError(
            "api_key: only a restricted key (rk_…) can read dates of birth. Create one at "
            "Stripe with the permissions 'Verification Sessions and Reports: Read' and 'Access "
            "recent sensitive verification results: Read', and nothing else."
        )
    if not _API_KEY.fullmatch(credentials.api_key):
        raise ValueError("api_key: give a restricted key, rk_live_… or rk_test_….")
    if not all(_WEBHOOK_SECRET.fullmatch(secret) for secret in credentials.webhook_secrets):
        raise ValueError("webhook_secrets: each must begin with whsec_, as Stripe shows it.")
    if credentials.subject_metadata_key == "":
        raise ValueError("subject_metadata_key: leave it out to use client_reference_id.")


class Provider:
    """Stripe Identity with the credentials of one account."""

    name: Final = NAME
    probe_session_id: Final = "vs_000000000000000000000000"

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
        """What Stripe says of a session now.

        A key that may not read sensitive results makes the whole call fail, so it is asked again
        without them: the outcome is worth having, and the decision sees what is missing.

        Raises:
            ValueError: this cannot be a VerificationSession's id; nothing was sent.
        """
        if not SESSION_ID.fullmatch(session_id):
            raise ValueError("not the id of a Stripe VerificationSession")
        sensitive, budget = True, self._http.budget()
        everything = self._request(session_id, (*_EXPANDED, *_SENSITIVE))
        try:
            reply = await self._http.send(everything, budget)
            if reply.status == 403:
                sensitive = False
                reply = await self._http.send(self._request(session_id, _EXPANDED), budget)
        except TransportFailure as failure:
            return unanswered(NAME, session_id, failure)
        return self._translated(session_id, reply, sensitive=sensitive)

    async def read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        """What an authentic event hints at; None if it is not about a VerificationSession.

        Raises:
            WebhookRefused: it is not authentic, too old, or unreadable.
        """
        return stripe_webhook.read(
            headers.get("stripe-signature", ""),
            body,
            secrets=self._credentials.webhook_secrets,
            now=self._clock.time_ns() // 1_000_000_000,
            session_id=SESSION_ID,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _request(self, session_id: str, expanded: tuple[str, ...]) -> ProviderRequest:
        return ProviderRequest(
            path=f"/v1/identity/verification_sessions/{quote(session_id, safe='')}",
            query=tuple(("expand[]", path) for path in expanded),
            headers={
                "Authorization": f"Bearer {self._credentials.api_key}",
                "Stripe-Version": API_VERSION,
            },
            # 409: somebody else has the object locked for a moment.
            retried=RETRIED | {409},
        )

    def _translated(
        self, session_id: str, reply: ProviderReply, *, sensitive: bool
    ) -> ProviderResult:
        asked = Asked(
            session_id=session_id,
            failing_errors=self._credentials.failing_errors,
            subject_metadata_key=self._credentials.subject_metadata_key,
        )
        evidence = evidence_of(
            reply,
            self._clock,
            request_id=reply.headers.get("request-id"),
            api_version=reply.headers.get("stripe-version"),
            sensitive_complete=sensitive and not withholds_sensitive(reply.body),
        )
        return translate(reply, asked, evidence, self._fingerprint)
