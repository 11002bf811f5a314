"""An authenticator in software: it makes passkeys and signs challenges, honestly or not."""

from __future__ import annotations

import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

ORIGIN: Final = "http://localhost:4711"
RP_ID: Final = "localhost"
_PRESENT: Final = 0x01
_VERIFIED: Final = 0x04
_ATTESTED: Final = 0x40


def text(data: bytes) -> str:
    """As base64url without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class Passkey:
    """A passkey with its counter."""

    credential_id: bytes = field(default_factory=lambda: os.urandom(16))
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    count: int = 0
    handle: bytes = b""

    def create(self, options: dict[str, Any], **changes: Any) -> str:  # noqa: ANN401
        """The browser's request after `navigator.credentials.create`."""
        self.handle = _bytes(options["user"]["id"])
        point = self.key.public_key().public_numbers()
        cose = cbor2.dumps(
            {1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32, "big"), -3: point.y.to_bytes(32, "big")}
        )
        answer = _data(changes, _ATTESTED, self.count)
        answer += bytes(16) + len(self.credential_id).to_bytes(2, "big") + self.credential_id + cose
        made = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": answer})
        client = _client("webauthn.create", options, changes)
        return self._sent(clientDataJSON=client, attestationObject=made)

    def sign(self, options: dict[str, Any], **changes: Any) -> str:  # noqa: ANN401
        """The browser's request after `navigator.credentials.get`."""
        self.count += changes.get("step", 1)
        answer = _data(changes, 0, self.count)
        client = _client("webauthn.get", options, changes)
        signature = self.key.sign(answer + sha256(client).digest(), ec.ECDSA(SHA256()))
        handle = changes.get("handle", self.handle)
        return self._sent(
            clientDataJSON=client, authenticatorData=answer, signature=signature, userHandle=handle
        )

    def _sent(self, **response: bytes) -> str:
        id_ = text(self.credential_id)
        parts = {name: text(data) for name, data in response.items()}
        return json.dumps({"id": id_, "rawId": id_, "type": "public-key", "response": parts})


def _client(type_: str, options: dict[str, Any], changes: dict[str, Any]) -> bytes:
    said = {
        "type": changes.get("type", type_),
        "challenge": changes.get("challenge", options["challenge"]),
        "origin": changes.get("origin", ORIGIN),
        "crossOrigin": changes.get("cross_origin", False),
    }
    return json.dumps(said).encode()


def _data(changes: dict[str, Any], flags: int, count: int) -> bytes:
    flags |= changes.get("flags", _PRESENT | _VERIFIED)
    host = changes.get("rp_id", RP_ID)
    return sha256(host.encode()).digest() + bytes([flags]) + count.to_bytes(4, "big")


def _bytes(data: str) -> bytes:
    return urlsafe_b64decode(data + "=" * (-len(data) % 4))
