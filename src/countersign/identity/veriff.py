"""Veriff: the decision of a session, `GET /v1/sessions/{id}/decision`.

The one provider that signs what it answers. Its signature is an HMAC with a secret that we hold
too, so it protects us against a stranger, and proves nothing to one.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Literal

import msgspec

from countersign.errors import WebhookRefused
from countersign.identity import veriff_translate
from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import Outcome, ProviderResult, WebhookHint
from countersign.identity.reading import (
    Unreadable,
    evidence_of,
    mapping,
    read_object,
    refused,
    text,
    unanswered,
)
from countersign.identity.transport import (
    DIRECT,
    ProviderHttp,
    ProviderReply,
    ProviderRequest,
    Reach,
    TransportFailure,
)
from countersign.ports import Clock

NAME: Final = "veriff"
HOST: Final = "stationapi.veriff.com"
SESSION_ID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII)
"""A UUID of any version: Veriff's own examples are not all version 4. Small letters only, so that
one session has one spelling and can make one buyer."""
FIELDS: Final = veriff_translate.FIELDS

_SIGNATURE: Final = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_HOST: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,3}veriff\.com", re.ASCII)
_VISIBLE: Final = re.compile(r"[!-~]{8,200}", re.ASCII)
_WORD: Final = re.compile(r"[a-z_]{1,40}", re.ASCII)
_SECRETS_MAX: Final = 5


class Credentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of a credentials file for Veriff; all of it is on the integration's page."""

    api_key: str
    shared_secrets: tuple[str, ...]
    """The first signs our requests; any of them may have signed an answer or a webhook, so that
    the secret can be changed without a gap."""
    integration_id: str | None = None
    """The integration whose sessions count. An answer that names another one is not live; API key
    and secret belong to one integration, so an answer that names none is that one's."""
    environment: Literal["live", "sandbox"]
    """Whether that is a live or a test integration: Veriff's answer does not say."""
    host: str = HOST
    """The host of the base URL that the portal shows."""

    def __repr__(self) -> str:
        return "<Credentials: hidden>"


def check(credentials: Credentials) -> None:
    """See what is wrong with credentials without asking Veriff.

    Raises:
        ValueError: with a text for the operator, in which no secret occurs.
    """
    if not 1 <= len(credentials.shared_secrets) <= _SECRETS_MAX:
        raise ValueError(f"shared_secrets: give 1 to {_SECRETS_MAX} secrets, the current one first")
    named = [("api_key", credentials.api_key)]
    if credentials.integration_id is not None:
        named.append(("integration_id", credentials.integration_id))
    named += [(f"shared_secrets[{i}]", s) for i, s in enumerate(credentials.shared_secrets)]
    for name, value in named:
        if _VISIBLE.fullmatch(value) is None:
            raise ValueError(f"{name}: give 8 to 200 visible ASCII characters, without spaces")
    if credentials.api_key in credentials.shared_secrets:
        raise ValueError("shared_secrets: this value is the API key; give the shared secret key")
    if _HOST.fullmatch(credentials.host) is None:
        raise ValueError("host: give the host of the portal's base URL, such as " + HOST)


class Veriff:
    """Asks Veriff, with the credentials of one integration."""

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
        self._http = ProviderHttp(base_url or f"https://{credentials.host}", clock, reach=reach)

    async def retrieve(self, session_id: str) -> ProviderResult:
        """What Veriff says of a session now; see `ports.IdentityProvider`.

        Raises:
            ValueError: this cannot be a session id of Veriff; nothing was sent.
        """
        if SESSION_ID.fullmatch(session_id) is None:
            raise ValueError("not a session id of Veriff")
        try:
            reply = await self._http.send(self._request(session_id))
        except TransportFailure as failure:
            return unanswered(NAME, session_id, failure)
        signature = _named(reply, "hmac-signature") or ""
        evidence = evidence_of(
            reply,
            self._clock,
            api_version="v1",
            response_signature=signature if _SIGNATURE.fullmatch(signature) else None,
        )
        if reply.status != 200:
            outcome, reason = veriff_translate.refusal(reply.status, reply.body)
            return refused(NAME, session_id, outcome, reply, evidence=evidence, reason_code=reason)
        if not self._is_authentic(reply, signature):
            return refused(
                NAME,
                session_id,
                Outcome.INVALID_RESPONSE,
                reply,
                evidence=evidence,
                reason_code="bad_signature",
            )
        return veriff_translate.translate(
            reply.body,
            session_id=session_id,
            live=self._is_live(reply),
            fingerprint=self._fingerprint,
            evidence=evidence,
        )

    async def read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        """What a decision or event webhook hints at; see `ports.IdentityProvider`.

        Veriff's messages carry no time, so they can be replayed: the hint's `event_key` is made of
        session, attempt and status.

        Raises:
            WebhookRefused: it is not authentic or unreadable.
        """
        signature = headers.get("x-hmac-signature", "")
        if not self._is_signed(body, signature):
            raise WebhookRefused
        if not _same(headers.get("x-auth-client", ""), self._credentials.api_key):
            raise WebhookRefused
        try:
            return _hint(body)
        except Unreadable:
            raise WebhookRefused("The message of the identity provider is unreadable.") from None

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _request(self, session_id: str) -> ProviderRequest:
        # For a GET, it is the session id that is signed.
        secret = self._credentials.shared_secrets[0]
        return ProviderRequest(
            path=f"/v1/sessions/{session_id}/decision",
            headers={
                "X-AUTH-CLIENT": self._credentials.api_key,
                "X-HMAC-SIGNATURE": _sign(secret, session_id.encode("ascii")),
                "Accept": "application/json",
            },
        )

    def _is_authentic(self, reply: ProviderReply, signature: str) -> bool:
        client = _named(reply, "auth-client")
        if client is not None and not _same(client, self._credentials.api_key):
            return False
        return self._is_signed(reply.body, signature)

    def _is_signed(self, body: bytes, signature: str) -> bool:
        if _SIGNATURE.fullmatch(signature) is None:
            return False
        given = signature.lower()
        secrets = self._credentials.shared_secrets
        return any(hmac.compare_digest(_sign(secret, body), given) for secret in secrets)

    def _is_live(self, reply: ProviderReply) -> bool:
        # Veriff's reference lists no such header; the signature proves whose answer it is.
        named, ours = reply.headers.get("vrf-integration-id"), self._credentials.integration_id
        if named and ours is not None and not _same(named, ours):
            return False
        return self._credentials.environment == "live"


def _named(reply: ProviderReply, header: str) -> str | None:
    """A header under either of its names; empty, which is valid for none, if the two differ.

    Veriff's reference of this call says `x-`, its older pages and the Feedback API say `vrf-`.
    """
    names = (f"x-{header}", f"vrf-{header}")
    values = {reply.headers[name] for name in names if name in reply.headers}
    return "" if len(values) > 1 else next(iter(values), None)


def _hint(body: bytes) -> WebhookHint | None:
    message = read_object(body)
    if "verification" in message:
        about = mapping(message["verification"], "verification")
        status = text(about.get("status"), "verification.status")
    else:
        about = message
        status = text(about.get("action"), "action")
    session_id = text(about.get("id"), "id")
    if session_id is None or status is None:
        # Veriff sends other messages from other products; none of them is about a decision.
        return None
    attempt_id = text(about.get("attemptId"), "attemptId") or ""
    if SESSION_ID.fullmatch(session_id) is None or _WORD.fullmatch(status) is None:
        raise Unreadable("id or status")
    if attempt_id and SESSION_ID.fullmatch(attempt_id) is None:
        raise Unreadable("attemptId")
    return WebhookHint(session_id=session_id, event_key=f"{session_id}:{attempt_id}:{status}")


def _sign(secret: str, message: bytes) -> str:
    return hmac.new(secret.encode("utf-8"), message, sha256).hexdigest()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))
