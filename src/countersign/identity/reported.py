"""Tells the operator of every answer of a provider that decides nothing: why nobody is verified.

One line each, of words that are ours or that a provider has published; nothing of the session or
of a person is among them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import structlog

from countersign.identity.model import Outcome, ProviderResult, WebhookHint
from countersign.ports import IdentityProvider

_log: Final = structlog.get_logger("countersign.identity")

_ERRORS: Final = frozenset({Outcome.PROVIDER_REJECTED, Outcome.INVALID_RESPONSE})
"""Somebody has to look at these; that a provider is away for a moment, nobody can mend."""
_TOLD: Final = frozenset({*_ERRORS, Outcome.PROVIDER_UNAVAILABLE})
_HTTP: Final = re.compile(r"(?:report_)?http_[1-5][0-9]{2}", re.ASCII)
_REASONS: Final = frozenset(
    {
        # Of the transport; the last ones are httpx2's names for what went wrong.
        "breaker_open",
        "no_place",
        "no_attempt",
        "timeout",
        "body_too_large",
        "encoded_body",
        "certificate_refused",
        "connection_refused",
        "name_not_resolved",
        "network_unreachable",
        "tls_failure",
        "CloseError",
        "ConnectError",
        "ConnectTimeout",
        "DecodingError",
        "LocalProtocolError",
        "PoolTimeout",
        "ProtocolError",
        "ProxyError",
        "ReadError",
        "ReadTimeout",
        "RemoteProtocolError",
        "TooManyRedirects",
        "UnsupportedProtocol",
        "WriteError",
        "WriteTimeout",
        # Of the translators.
        "bad_signature",
        "environment_mismatch",
        "other_session",
        "unknown_kind",
        "unknown_status",
        "unreadable",
        "unreadable_report",
        "verifications_withheld",
        # Published by Plaid,
        "API_ERROR",
        "INTERNAL_SERVER_ERROR",
        "INVALID_API_KEYS",
        "INVALID_PRODUCT",
        "PRODUCTS_NOT_ENABLED",
        "PRODUCT_NOT_ENABLED",
        "RATE_LIMIT_EXCEEDED",
        "UNAUTHORIZED_ENVIRONMENT",
        "UNAUTHORIZED_ROUTE_ACCESS",
        # by Stripe,
        "api_key_expired",
        "lock_timeout",
        "rate_limit",
        # and by Onfido (`rate_limit` too).
        "authorization_error",
        "internal_server_error",
        "workflow_error",
    }
)
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)


class Reported:
    """An `IdentityProvider` whose useless answers are logged; see there."""

    def __init__(self, provider: IdentityProvider) -> None:
        self._provider = provider

    @property
    def name(self) -> str:
        return self._provider.name

    @property
    def probe_session_id(self) -> str:
        return self._provider.probe_session_id

    async def retrieve(self, session_id: str) -> ProviderResult:
        result = await self._provider.retrieve(session_id)
        if result.outcome in _TOLD:
            _report(result)
        elif result.unread:
            # What is unknown may refuse a buyer; the answer is kept as evidence.
            _log.warning(
                "provider_facts_unreadable", provider=result.provider, members=list(result.unread)
            )
        return result

    async def read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        return await self._provider.read_webhook(headers, body)

    async def close(self) -> None:
        await self._provider.close()


def reason_word(reason: str | None, status: int | None = None) -> str:
    """A reason as it can be logged; for a word that nobody has looked at, the HTTP status."""
    if reason is not None and (reason in _REASONS or _HTTP.fullmatch(reason) is not None):
        return reason
    return "other" if status is None else f"http_{status}"


def _report(result: ProviderResult) -> None:
    evidence = result.evidence
    request_id = (evidence and evidence.request_id) or ""
    told: dict[str, str | int | list[str]] = {
        "provider": result.provider,
        "outcome": result.outcome.value,
        "reason_code": reason_word(result.reason_code, evidence.http_status if evidence else None),
    }
    if result.unread:
        told["members"] = list(result.unread)
    if evidence is not None:
        told["http_status"] = evidence.http_status
    if _REQUEST_ID.fullmatch(request_id):
        told["request_id"] = request_id
    # The account is bound around the call by who asks.
    log = _log.error if result.outcome in _ERRORS else _log.warning
    log("provider_gave_no_verdict", **told)
