"""Signatures of webhooks: HMAC-SHA256 in hexadecimal, alone or over a time and the body.

`t=1794949200,v1=5257a8…` is Stripe's scheme, which Persona has adopted.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from countersign.base.errors import WebhookRefused

TOLERANCE_SECONDS: Final = 300
TIME: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
"""Unix seconds."""
_SIGNATURE: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


def hmac_sha256(secret: str, message: bytes) -> str:
    """The HMAC of a message in hexadecimal."""
    return hmac.new(secret.encode("utf-8"), message, sha256).hexdigest()


def is_signed(message: bytes, secrets: Sequence[str], *signatures: str) -> bool:
    """Whether any secret made any of the signatures; every pair is compared."""
    found = False
    for secret in filter(None, secrets):
        expected = hmac_sha256(secret, message)
        for signature in filter(_SIGNATURE.fullmatch, signatures):
            found |= hmac.compare_digest(expected, signature)
    return found


def is_fresh(seconds: float, now: int) -> bool:
    """Whether a time is at most five minutes away."""
    return abs(now - seconds) <= TOLERANCE_SECONDS


def check_timestamped(
    header: str, body: bytes, secrets: Sequence[str], now: int, *, sets_max: int = 1
) -> None:
    """Check a header `t=…,v1=…`, or several of them separated by spaces.

    Args:
        header: as received.
        body: as received.
        secrets: the possible signing secrets.
        now: Unix time in seconds.
        sets_max: 1 for a single time with any number of signatures and other schemes (Stripe);
            more for that many sets of one time and one `v1` (Persona, one for each secret).

    Raises:
        WebhookRefused: it is malformed, not authentic, or too old.
    """
    sets = header.split(" ") if sets_max > 1 else [header]
    if len(header) > 4096 or len(sets) > sets_max:
        raise WebhookRefused
    authentic = [
        is_signed(f"{time}.".encode("ascii") + body, secrets, *signatures)
        and is_fresh(int(time), now)
        for time, signatures in [_time_and_signatures(one, alone=sets_max > 1) for one in sets]
    ]
    if not any(authentic):
        raise WebhookRefused


def _time_and_signatures(written: str, *, alone: bool) -> tuple[str, list[str]]:
    pairs = [tuple(item.partition("=")[::2]) for item in written.split(",")]
    times = [value for key, value in pairs if key == "t"]
    signatures = [value for key, value in pairs if key == "v1"]
    if len(times) != 1 or not TIME.fullmatch(times[0]) or not signatures:
        raise WebhookRefused
    if not all(map(_SIGNATURE.fullmatch, signatures)) or (alone and len(pairs) != 2):
        raise WebhookRefused
    return times[0], signatures
