"""Logs every response without a decision, so that an operator can see why no buyer is verified.

One line each, of words that are ours or published by the provider; nothing of the session or of a
person.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

import structlog

from countersign.identity.fields import listed
from countersign.identity.model import Finding, ProviderResult

_log: Final = structlog.get_logger("countersign.identity")

_ERRORS: Final = frozenset({Finding.PROVIDER_REJECTED, Finding.INVALID_RESPONSE})
"""These need a person to look at them; an unavailable provider does not."""
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)
_HTTP: Final = re.compile(r"(?:report_)?http_[1-5][0-9]{2}", re.ASCII)
_TRANSPORT: Final = frozenset(
    listed("""
    breaker_open no_place timeout body_too_large encoded_body certificate_refused
    connection_refused name_not_resolved network_unreachable tls_failure
    """)
)
_HTTPX: Final = frozenset(
    listed("""
    CloseError ConnectError ConnectTimeout DecodingError LocalProtocolError PoolTimeout
    ProtocolError ProxyError ReadError ReadTimeout RemoteProtocolError TooManyRedirects
    UnsupportedProtocol WriteError WriteTimeout
    """)
)
"""httpx2's names for what can go wrong with a connection."""
_TRANSLATORS: Final = frozenset(
    listed("""
    bad_signature environment_mismatch other_session unknown_kind unknown_status unreadable
    unreadable_report verifications_withheld
    """)
)
_REASONS: Final = _TRANSPORT | _HTTPX | _TRANSLATORS


def reason_word(
    reason: str | None, status: int | None = None, published: Container[str] = ()
) -> str:
    """A reason as it can be logged; the HTTP status in place of an unknown word.

    `published` are the error codes that the provider documents.
    """
    if reason is not None and (
        reason in _REASONS or reason in published or _HTTP.fullmatch(reason)
    ):
        return reason
    return "other" if status is None else f"http_{status}"


def report(result: ProviderResult, published: Container[str]) -> None:
    """Log a result that decides nothing, or that could not be read completely."""
    if result.outcome in _ERRORS:
        _log.error("provider_no_result", **_described(result, published))
    elif result.outcome is Finding.PROVIDER_UNAVAILABLE:
        _log.warning("provider_no_result", **_described(result, published))
    elif result.unread:
        # What is unknown may refuse a buyer; the response is kept as evidence.
        _log.warning(
            "provider_facts_unreadable", provider=result.provider, members=list(result.unread)
        )


def _described(
    result: ProviderResult, published: Container[str]
) -> dict[str, str | int | list[str]]:
    evidence = result.evidence
    status = evidence.http_status if evidence else None
    described: dict[str, str | int | list[str]] = {
        "provider": result.provider,
        "outcome": result.outcome.value,
        "reason_code": reason_word(result.reason_code, status, published),
    }
    if result.unread:
        described["members"] = list(result.unread)
    if status is not None:
        described["http_status"] = status
    request_id = evidence.request_id if evidence else None
    if request_id and _REQUEST_ID.fullmatch(request_id):
        described["request_id"] = request_id
    return described
