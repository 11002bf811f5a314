"""Didit's webhooks: which are authentic, and what they hint at.

Source: Didit's page "Webhooks". Of its three signatures, X-Signature covers the bytes as they were
sent, and X-Signature-V2 what they say, so that it survives whatever re-encodes JSON on the way.
X-Signature-Simple covers only a few members and is not accepted.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from countersign.errors import WebhookRefused
from countersign.identity.model import WebhookHint
from countersign.identity.reading import Unreadable, read_object, text

SESSION_ID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII)
"""A UUID in small letters, so that one session has one spelling and can make one buyer."""
TOLERANCE_SECONDS: Final = 300
CANONICAL_BYTES_MAX: Final = 64 * 1024
CANONICAL_MEMBERS_MAX: Final = 2048
"""Above these, only the signature of the bytes counts: what a stranger sends has to be parsed
before X-Signature-V2 can be checked. Didit's messages have some hundred members."""

_SIGNATURE: Final = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_SECONDS: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_EVENT_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_WHOLE_MAX: Final = 2.0**53
"""Above it a number with a fraction or an exponent is no exact integer: `1e300` would become 301
digits."""
_HANDLED: Final = frozenset({"status.updated", "data.updated"})


def read(
    headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: int
) -> WebhookHint | None:
    """What a message hints at; None if it is about nothing that concerns us.

    Args:
        headers: names in small letters.
        body: as received.
        secrets: the secrets of the destinations, any of which may have signed.
        now: Unix time in seconds.

    Raises:
        WebhookRefused: it is not authentic, too old, or unreadable.
    """
    sent = headers.get("x-timestamp", "")
    if _SECONDS.fullmatch(sent) is None or not _is_fresh(int(sent), now):
        raise WebhookRefused
    try:
        if _is_signed(headers.get("x-signature", ""), body, secrets):
            return _hint(read_object(body), now)
        return _hint(_signed_content(headers.get("x-signature-v2", ""), body, secrets), now)
    except (Unreadable, ValueError):
        raise WebhookRefused("The message of the identity provider is unreadable.") from None


def _signed_content(signature: str, body: bytes, secrets: Sequence[str]) -> Mapping[str, Any]:
    """What a message says that X-Signature-V2 signs.

    That signs what the bytes say, so anybody's bytes are parsed to be judged: few, and for nothing
    else.

    Raises:
        WebhookRefused: it is not authentic.
        Unreadable: it is not JSON within bounds.
        ValueError: it holds a number or a text that has no canonical form.
    """
    if _SIGNATURE.fullmatch(signature) is None or len(body) > CANONICAL_BYTES_MAX:
        raise WebhookRefused
    # Signs inside of texts count too: too many of them only cost this way to sign.
    if sum(body.count(sign) for sign in (b",", b"[", b"{")) > CANONICAL_MEMBERS_MAX:
        raise WebhookRefused
    message = read_object(body)
    if not _is_signed(signature, canonical_json(message), secrets):
        raise WebhookRefused
    return message


def canonical_json(message: Mapping[str, Any]) -> bytes:
    """What X-Signature-V2 signs.

    Members sorted by name, no spaces, Unicode as it is, and numbers without a fraction written as
    integers.

    Raises:
        ValueError: it holds text that has no encoding, or a number that is not exact.
    """
    return json.dumps(
        _whole(message), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode("utf-8")


def _whole(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {name: _whole(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_whole(member) for member in value]
    if not isinstance(value, float):
        return value
    if abs(value) > _WHOLE_MAX:
        raise ValueError
    return int(value) if value.is_integer() else value


def _hint(message: Mapping[str, Any], now: int) -> WebhookHint | None:
    written = message.get("timestamp")
    # X-Timestamp is not signed. Where the signed message has a time of its own, that counts too:
    # else an old message could be sent again under a new header.
    if isinstance(written, int | float) and not _is_fresh(written, now):
        raise WebhookRefused
    kind = text(message.get("webhook_type"), "webhook_type")
    if kind not in _HANDLED or message.get("session_kind") == "business":
        return None
    session_id = text(message.get("session_id"), "session_id") or ""
    if SESSION_ID.fullmatch(session_id) is None:
        raise Unreadable("session_id")
    event_id = text(message.get("event_id"), "event_id") or ""
    if _EVENT_ID.fullmatch(event_id) is None:
        event_id = sha256(canonical_json(message)).hexdigest()
    return WebhookHint(session_id=session_id, event_key=event_id)


def _is_fresh(seconds: float, now: int) -> bool:
    return abs(now - seconds) <= TOLERANCE_SECONDS


def _is_signed(signature: str, message: bytes, secrets: Sequence[str]) -> bool:
    if _SIGNATURE.fullmatch(signature) is None:
        return False
    given = signature.lower()
    return any(
        hmac.compare_digest(hmac.new(secret.encode(), message, sha256).hexdigest(), given)
        for secret in secrets
    )
