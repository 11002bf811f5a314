"""Webhook messages: verified before they are believed (Standard Webhooks 1.0.0)."""

from __future__ import annotations

import hashlib
import hmac
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final

import msgspec

from countersign_client.failure import InvalidSignature
from countersign_client.types import Event

AGE_SECONDS_MAX: Final = 300
"""How old a message may be, and how far ahead the server's clock."""
_SECRET_BYTES: Final = range(24, 65)
_PUBLIC_KEY_BYTES: Final = range(32, 33)


class Webhooks:
    """The messages that a server posts to your endpoint."""

    def unwrap(
        self, body: bytes, headers: Mapping[str, str], *, secret: str, now: float | None = None
    ) -> Event:
        """The event of a message, if it is authentic.

        `body` has to be the bytes as they came, before any framework parses them. `secret` is the
        `whsec_…` of the endpoint, or its public key `whpk_…` (extra `tokens`). `now` is in seconds
        since 1970; left out: the time of this machine. The same event can come more than once: keep
        the ids that you have processed.

        Raises InvalidSignature: return 400, and do not act on the message. Raises ValueError if
        `secret` is none: nothing that it signs can be believed.
        """
        given = {name.lower(): value for name, value in headers.items()}
        try:
            id_, stamp = given["webhook-id"], given["webhook-timestamp"]
            signatures = given["webhook-signature"].split(" ")
        except KeyError as error:
            raise InvalidSignature(f"The header {error} is missing.") from error
        if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
            raise InvalidSignature("The header 'webhook-timestamp' is no time.")
        if abs((time.time() if now is None else now) - int(stamp)) > AGE_SECONDS_MAX:
            raise InvalidSignature("The message is too old, or the clocks differ.")
        if not _signed(secret, f"{id_}.{stamp}.".encode(errors="replace") + body, signatures):
            raise InvalidSignature("No signature of the message fits the secret and the body.")
        try:
            return msgspec.json.decode(body, type=Event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidSignature(f"The message is no event: {error}") from error


def sign(secret: str, id_: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of a message that is signed with a `whsec_…`: to test a receiver."""
    message = f"{id_}.{timestamp}.".encode() + body
    return {
        "webhook-id": id_,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": "v1," + _v1(secret, message).decode(),
    }


def _signed(secret: str, message: bytes, signatures: list[str]) -> bool:
    """Whether one of the signatures fits; during a rotation there are several."""
    if not secret.startswith("whpk_"):
        expected = b"v1," + _v1(secret, message)
        return any(
            hmac.compare_digest(expected, one.encode(errors="replace")) for one in signatures
        )
    from countersign_client.ed25519 import verifies  # noqa: PLC0415 - an optional extra

    key = _decoded(secret, "whpk_", _PUBLIC_KEY_BYTES)
    return any(
        verifies(key, _bytes(one.removeprefix("v1a,")), message)
        for one in signatures
        if one.startswith("v1a,")
    )


def _v1(secret: str, message: bytes) -> bytes:
    key = _decoded(secret, "whsec_", _SECRET_BYTES)
    return b64encode(hmac.digest(key, message, hashlib.sha256))


def _decoded(secret: str, mark: str, sizes: range) -> bytes:
    """The bytes of a secret or a key. An empty one would let everyone sign."""
    key = _bytes(secret.removeprefix(mark))
    if not secret.startswith(mark) or len(key) not in sizes:
        raise ValueError(f"a webhook secret begins with {mark}, and base64 follows")
    return key


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return b""
