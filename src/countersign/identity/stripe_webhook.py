"""Stripe's webhooks: `Stripe-Signature`, and which session an event is about.

The recipe: "Verify webhook signatures manually" in Stripe's documentation.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from countersign.errors import WebhookRefused
from countersign.identity.model import WebhookHint
from countersign.identity.reading import Unreadable, mapping, read_object

TOLERANCE_SECONDS: Final = 300
_HEADER_MAX: Final = 4096
_TIME: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_SIGNATURE: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_EVENT_ID: Final = re.compile(r"evt_[A-Za-z0-9_]{1,200}", re.ASCII)

_EVENTS: Final = frozenset(
    f"identity.verification_session.{change}"
    for change in (
        "created",
        "processing",
        "verified",
        "requires_input",
        "canceled",
        "redacted",
    )
)


def read(
    header: str,
    body: bytes,
    *,
    secrets: Sequence[str],
    now: int,
    session_id: re.Pattern[str],
) -> WebhookHint | None:
    """The session that an authentic event is about; None if it is about something else.

    `now` is in Unix seconds.

    Raises:
        WebhookRefused: it is not authentic, too old, or unreadable.
    """
    time, signatures = _parts(header)
    signed = time.encode("ascii") + b"." + body
    if not _authentic(signed, signatures, secrets):
        raise WebhookRefused
    if abs(now - int(time)) > TOLERANCE_SECONDS:
        raise WebhookRefused
    try:
        return _hint(body, session_id)
    except Unreadable:
        raise WebhookRefused from None


def _parts(header: str) -> tuple[str, list[str]]:
    """The one time and every `v1` signature; other schemes (`v0`) are Stripe's own business."""
    if len(header) > _HEADER_MAX:
        raise WebhookRefused
    pairs = [tuple(item.partition("=")[::2]) for item in header.split(",")]
    times = [value for key, value in pairs if key == "t"]
    signatures = [value for key, value in pairs if key == "v1"]
    if len(times) != 1 or not _TIME.fullmatch(times[0]) or not signatures:
        raise WebhookRefused
    if not all(_SIGNATURE.fullmatch(signature) for signature in signatures):
        raise WebhookRefused
    return times[0], signatures


def _authentic(signed: bytes, signatures: Sequence[str], secrets: Sequence[str]) -> bool:
    """Whether any secret made any of the signatures; every pair is compared."""
    found = False
    for secret in secrets:
        expected = hmac.new(secret.encode("utf-8"), signed, sha256).hexdigest()
        for signature in signatures:
            found |= hmac.compare_digest(expected, signature)
    return found


def _hint(body: bytes, session_id: re.Pattern[str]) -> WebhookHint | None:
    event = read_object(body)
    kind = event.get("type")
    if event.get("object") != "event" or not isinstance(kind, str):
        raise Unreadable("event")
    if kind not in _EVENTS:
        return None
    event_id = event.get("id")
    about = mapping(mapping(event.get("data"), "data").get("object"), "data.object").get("id")
    if not isinstance(event_id, str) or not _EVENT_ID.fullmatch(event_id):
        raise Unreadable("id")
    if not isinstance(about, str) or not session_id.fullmatch(about):
        raise Unreadable("data.object.id")
    return WebhookHint(session_id=about, event_key=event_id)
