"""Signed tokens: JWS (RFC 7515) in compact form with Ed25519 (RFC 8037), and their public keys."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.evidence.canonical import Json, canonical_json
from countersign.evidence.disclosure import b64url

SEED_BYTES: Final = 32
_ALGORITHM: Final = "EdDSA"


class TokenSigner:
    """An Ed25519 key that signs tokens of one type, from its 32-byte seed (RFC 8032 §5.1.5)."""

    def __init__(self, kid: str, seed: bytes, type_: str) -> None:
        self.kid = kid
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        # Every token of a key has the same header.
        header: dict[str, Json] = {"alg": _ALGORITHM, "kid": kid, "typ": type_}
        self._header = b64url(canonical_json(header)).encode("ascii") + b"."

    def __repr__(self) -> str:
        return f"TokenSigner({self.kid})"

    def sign(self, claims: dict[str, Json]) -> str:
        """The token: header, claims and signature in base64url, with dots between them.

        The same claims give the same token: Ed25519 has no randomness.
        """
        signed = self._header + b64url(canonical_json(claims)).encode("ascii")
        return f"{signed.decode('ascii')}.{b64url(self._key.sign(signed))}"


def public_key(seed: bytes) -> bytes:
    """The 32 bytes of the public key that goes with a seed."""
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def jwk(kid: str, public: bytes) -> dict[str, Json]:
    """A public key as a JSON Web Key (RFC 7517, RFC 8037 §2)."""
    return {**_required(public), "alg": _ALGORITHM, "kid": kid, "use": "sig"}


def thumbprint(public: bytes) -> str:
    """The SHA-256 thumbprint of a public key (RFC 7638, RFC 8037 §2), in base64url."""
    return b64url(sha256(canonical_json(_required(public))).digest())


def _required(public: bytes) -> dict[str, Json]:
    return {"crv": "Ed25519", "kty": "OKP", "x": b64url(public)}
