"""The token of a clearance: JWS (RFC 7515) in compact form with Ed25519 (RFC 8037).

Nothing in it is personal, because many hands pass it on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.base.values import Mode, to_ms
from countersign.core.buyers.rules import zip5
from countersign.core.clearances.model import GrantedClearance
from countersign_evidence.canonical import Json, canonical_json
from countersign_evidence.disclosure import b64url

SEED_BYTES: Final = 32
_ALGORITHM: Final = "EdDSA"


def token_claims(
    public_url: str,
    mode: Mode,
    account_id: str,
    granted: GrantedClearance,
    *,
    ack_id: str,
    order_sha256: str,
    obligations: Sequence[Mapping[str, Any]],
) -> dict[str, Json]:
    """The claims (RFC 7519 §4) of a clearance; the same clearance always has the same claims.

    They bind the token to its order and contain what a warehouse has to do, without the buyer or
    the destination: those who know the order check `order_sha256`. The deployment at `public_url`
    is the issuer; its sandbox is an issuer apart. The time of a test clock is a claim only where it
    was ahead.
    """
    at, clock_at = to_ms(granted.at) // 1000, to_ms(granted.clock_at) // 1000
    test_clock = {} if granted.clock_at == granted.at else {"test_clock": clock_at}
    return {
        **test_clock,
        "iss": public_url if mode is Mode.LIVE else f"{public_url}/test",
        "sub": granted.clearance_id,
        "iat": at,
        "exp": to_ms(granted.expires_at) // 1000,
        "livemode": mode is Mode.LIVE,
        "account": account_id,
        "ack_id": ack_id,
        "order_sha256": order_sha256,
        "obligations": [*map(dict, obligations)],
    }


def order_digest(shipping_zip: str, product_class: str | None, session_id: str) -> str:
    """Hex SHA-256 of five-digit ZIP code, product class and session, with line feeds between.

    Only the last of them can contain a line feed, so no two orders have the same text. With
    sessions that cannot be guessed it reveals nothing to those who do not know the order.
    """
    text = f"{zip5(shipping_zip)}\n{product_class or ''}\n{session_id}"
    return sha256(text.encode()).hexdigest()


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
