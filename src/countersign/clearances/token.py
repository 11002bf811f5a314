"""The token of a clearance: JWS (RFC 7515) in compact form with Ed25519 (RFC 8037).

Nothing in it is personal, because many hands pass it on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign.clearances.model import Order
from countersign.evidence.canonical import Json, canonical_json
from countersign.evidence.disclosure import b64url
from countersign.identity.postal_code import zip5
from countersign.instant import to_ms
from countersign.mode import Mode

SEED_BYTES: Final = 32
_ALGORITHM: Final = "EdDSA"


def token_claims(
    public_url: str,
    mode: Mode,
    account_id: str,
    clearance_id: str,
    *,
    order: Order,
    obligations: Sequence[Mapping[str, Any]],
    at: datetime,
    clock_at: datetime,
    expires_at: datetime,
) -> dict[str, Json]:
    """The claims (RFC 7519 §4) of a clearance; the same clearance always has the same claims.

    They bind the token to its order and contain what a warehouse has to do, without the buyer or
    the destination: those who know the order check `order_sha256`.

    Args:
        public_url: of the deployment, which is the issuer; the sandbox is an issuer apart.
        mode: of the clearance.
        account_id: whose clearance it is.
        clearance_id: the subject of the token.
        order: the order that was cleared.
        obligations: the duties for the order.
        at: when it was granted.
        clock_at: the time of the test clock then; a claim only where it was ahead.
        expires_at: by that clock.
    """
    test_clock = {} if clock_at == at else {"test_clock": to_ms(clock_at) // 1000}
    return {
        **test_clock,
        "iss": public_url if mode is Mode.LIVE else f"{public_url}/test",
        "sub": clearance_id,
        "iat": to_ms(at) // 1000,
        "exp": to_ms(expires_at) // 1000,
        "livemode": mode is Mode.LIVE,
        "account": account_id,
        "ack_id": order.ack_id,
        "order_sha256": order_digest(order),
        "obligations": [dict(obligation) for obligation in obligations],
    }


def order_digest(order: Order) -> str:
    """Hex SHA-256 of five-digit ZIP code, product class and session, with line feeds between.

    Only the last of them can contain a line feed, so no two orders have the same text. With
    sessions that cannot be guessed it reveals nothing to those who do not know the order.
    """
    text = f"{zip5(order.shipping_zip)}\n{order.product_class or ''}\n{order.session_id}"
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
