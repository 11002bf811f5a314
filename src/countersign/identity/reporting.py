"""The lines of the log about a provider's responses: fixed words only, nothing about a person."""

from __future__ import annotations

import logging
import re
from collections.abc import Container
from typing import Final

import structlog

from countersign.identity.json_reader import listed
from countersign.identity.model import Finding, ProviderResult

_log: Final = structlog.get_logger("countersign.identity")

_LEVELS: Final = {
    Finding.PROVIDER_REJECTED: logging.ERROR,
    Finding.INVALID_RESPONSE: logging.ERROR,
    Finding.PROVIDER_UNAVAILABLE: logging.WARNING,
}
"""Levels of undecided results: an unavailable provider needs no action by a person."""
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)
_KIND: Final = re.compile(r"[A-Za-z][A-Za-z_' -]{0,39}", re.ASCII)
_HTTP: Final = re.compile(r"(?:report_)?http_[1-5][0-9]{2}", re.ASCII)
_REASONS: Final = frozenset(
    listed(
        # Of the transport.
        "breaker_open no_place timeout body_too_large encoded_body certificate_refused",
        "connection_refused name_not_resolved network_unreachable tls_failure",
        # httpx2's names for connection failures.
        "CloseError ConnectError ConnectTimeout DecodingError LocalProtocolError PoolTimeout",
        "ProtocolError ProxyError ReadError ReadTimeout RemoteProtocolError TooManyRedirects",
        "UnsupportedProtocol WriteError WriteTimeout",
        # Of the adapters.
        "bad_signature environment_mismatch other_session unknown_kind unknown_status unreadable",
        "unreadable_report verifications_withheld page_elsewhere not_open",
    )
)


def reason_word(
    reason: str | None, status: int | None = None, published: Container[str] = ()
) -> str:
    """A reason that is safe to log; the HTTP status in place of an unknown word.

    `published` are the error codes that the provider documents.
    """
    if reason is not None and (
        reason in _REASONS or reason in published or _HTTP.fullmatch(reason)
    ):
        return reason
    return "other" if status is None else f"http_{status}"


def report_kind(provider: str, kind: str) -> None:
    """Log a kind of document that `documents.json` does not have.

    At another provider, or by another word, the same document would be of another buyer.
    """
    word = kind if _KIND.fullmatch(kind) else "other"
    _log.warning("document_kind_unknown", provider=provider, kind=word)


def report(
    result: ProviderResult, published: Container[str], event: str = "provider_no_result"
) -> None:
    """Log an undecided result, or one that could not be read completely."""
    unread = {"members": list(result.unread)} if result.unread else {}
    if result.outcome not in _LEVELS:
        if unread:
            # A missing fact may refuse a buyer; the response is stored as evidence.
            _log.warning("provider_facts_unreadable", provider=result.provider, **unread)
        return
    evidence = result.evidence
    status = evidence.http_status if evidence else None
    request_id = evidence.request_id if evidence else None
    _log.log(
        _LEVELS[result.outcome],
        event,
        provider=result.provider,
        outcome=result.outcome.value,
        reason_code=reason_word(result.reason_code, status, published),
        **unread,
        **({} if status is None else {"http_status": status}),
        **({"request_id": request_id} if _REQUEST_ID.fullmatch(request_id or "") else {}),
    )
