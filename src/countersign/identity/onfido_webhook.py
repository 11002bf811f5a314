"""Authenticates Onfido's webhooks: `X-SHA2-Signature` is the body's HMAC-SHA256 in hexadecimal.

Onfido signs no time, so a message can be sent again by whoever has it: it is a hint only, and its
event key is the same each time. The older `X-Signature` (SHA-1) is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest, new
from typing import Final

from countersign.errors import WebhookRefused
from countersign.identity.model import WebhookHint
from countersign.identity.reading import Unreadable, mapping, read_object, text

HEADER: Final = "x-sha2-signature"
_SIGNATURE: Final = re.compile(r"[0-9a-f]{64}")


def read(
    headers: Mapping[str, str],
    body: bytes,
    *,
    secrets: Sequence[str],
    session_id: re.Pattern[str],
) -> WebhookHint | None:
    """What an authentic message hints at.

    Raises:
        WebhookRefused: it is not authentic, or unreadable.
    """
    signature = headers.get(HEADER, "")
    if _SIGNATURE.fullmatch(signature) is None:
        raise WebhookRefused("The message has no well-formed signature.")
    # Every secret is tried, so that the time does not tell which of them was right.
    right = [
        compare_digest(signature, new(secret.encode(), body, sha256).hexdigest())
        for secret in secrets
        if secret
    ]
    if not any(right):
        raise WebhookRefused("The message's signature is wrong.")
    try:
        about = _about(body)
    except Unreadable:
        raise WebhookRefused("The message is not readable.") from None
    if about is None:
        return None
    if session_id.fullmatch(about) is None:
        raise WebhookRefused("The message does not concern a workflow run.")
    return WebhookHint(session_id=about, event_key=sha256(body).hexdigest())


def _about(body: bytes) -> str | None:
    """The workflow run that the message is about; None if it is about something else."""
    payload = mapping(read_object(body).get("payload"), "payload")
    if text(payload.get("resource_type"), "resource_type") != "workflow_run":
        return None
    return text(mapping(payload.get("object"), "object").get("id"), "object.id") or ""
