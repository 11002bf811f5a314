"""Verifying webhooks by Standard Webhooks 1.0.0, with little more than the standard library."""

from __future__ import annotations

import hmac
from base64 import b64decode
from collections.abc import Mapping, Sequence
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

TOLERANCE_SECONDS = 300


class WebhookVerificationFailed(Exception):
    """No key has signed the message, or its time is not now."""


def verify(keys: Sequence[str], headers: Mapping[str, str], body: bytes, now: float) -> str:
    """The id of a message that one of these `whsec_…` and `whpk_…` keys has signed."""
    id_, time, signatures = (headers[f"webhook-{n}"] for n in ("id", "timestamp", "signature"))
    message = b".".join((id_.encode(), time.encode(), body))
    if abs(now - int(time)) <= TOLERANCE_SECONDS:
        for signature in signatures.split(" "):
            version, _, text = signature.partition(",")
            if any(_verifies(key, version, message, b64decode(text)) for key in keys):
                return id_
    raise WebhookVerificationFailed


def _verifies(key: str, version: str, message: bytes, signature: bytes) -> bool:
    kind, _, text = key.partition("_")
    if (kind, version) == ("whsec", "v1"):
        return hmac.digest(b64decode(text), message, sha256) == signature
    if (kind, version) != ("whpk", "v1a"):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(b64decode(text)).verify(signature, message)
    except InvalidSignature:
        return False
    return True
