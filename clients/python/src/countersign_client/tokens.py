"""Clearance tokens: a warehouse checks offline that a parcel is of a cleared order."""

from __future__ import annotations

import hashlib
import time
from base64 import urlsafe_b64decode
from collections.abc import Collection
from typing import Any, TypeVar

import msgspec

from countersign_client.call import Call, Result
from countersign_client.declaring import Resource, operation
from countersign_client.failure import InvalidClearanceToken
from countersign_client.sending import AsyncSender, Sender

S = TypeVar("S", bound=Sender | AsyncSender)


class SigningKey(Result, frozen=True, kw_only=True):
    """A key that signs clearance tokens (RFC 8037)."""

    kid: str
    x: str
    livemode: bool
    crv: str = "Ed25519"


class SigningKeys(Result, frozen=True, kw_only=True):
    """The keys of the service. Fetch them at least every half hour, and keep a copy."""

    keys: tuple[SigningKey, ...]


class ClearanceClaims(Result, frozen=True, kw_only=True):
    """The claims of a token."""

    iss: str
    sub: str
    """The `clearance_id`."""
    iat: int
    exp: int
    livemode: bool
    account: str
    ack_id: str
    order_sha256: str
    obligations: tuple[dict[str, Any], ...]
    """The obligations of the order."""


class _Header(msgspec.Struct):
    alg: str
    typ: str
    kid: str


def verify_clearance_token(
    token: str | None,
    *,
    keys: SigningKeys,
    issuer: str,
    account: str,
    shipping_zip: str,
    session_id: str,
    product_class: str | Collection[str] | None = None,
    livemode: bool = True,
    now: float | None = None,
) -> ClearanceClaims:
    """The claims of a token, if it allows this order to ship. Needs no network, and no key.

    `issuer` is the public URL of the service, `account` the id of the vendor whose parcel it is.
    `product_class` is one class, or all of the order. `livemode` False is for tests: a token of the
    sandbox, which must not ship. `now` is in seconds since 1970; left out: the time of this
    machine.

    Raises InvalidClearanceToken: do not ship. Raises ImportError without the extra `tokens`.
    """
    if token is None:
        raise InvalidClearanceToken("There is no token: the order was not cleared.")
    claims = _authentic(token, keys, livemode=livemode)
    classes = {product_class} if isinstance(product_class, str) else {*(product_class or ())}
    order = f"{shipping_zip[:5]}\n{','.join(sorted(classes))}\n{session_id}"
    mistakes = {
        "of another service": claims.iss != (issuer if livemode else f"{issuer}/test"),
        "of another mode": claims.livemode is not livemode,
        "expired": (time.time() if now is None else now) >= claims.exp,
        "of another vendor": claims.account != account,
        "of another order": claims.order_sha256 != hashlib.sha256(order.encode()).hexdigest(),
    }
    if found := [what for what, is_so in mistakes.items() if is_so]:
        raise InvalidClearanceToken(f"The token is {', '.join(found)}.")
    return claims


class ClearanceTokens(Resource[S]):
    """Clearance tokens and the keys that sign them."""

    @operation
    def keys(self, *, livemode: bool = True) -> Call[SigningKeys]:
        """Get the keys that sign tokens."""
        mode = "live" if livemode else "test"
        return Call(
            method="GET",
            path="/.well-known/jwks.json",
            returns=SigningKeys,
            query={"mode": mode},
        )

    verify = staticmethod(verify_clearance_token)


def _authentic(token: str, keys: SigningKeys, *, livemode: bool) -> ClearanceClaims:
    from countersign_client.ed25519 import verifies  # noqa: PLC0415 - an optional extra

    try:
        header, claims, signature = token.split(".")
        named = msgspec.json.decode(_unpack(header), type=_Header)
        typ = "clearance+jwt" if livemode else "test-clearance+jwt"
        if (named.alg, named.typ) != ("EdDSA", typ):
            raise InvalidClearanceToken("This is not a clearance token of this mode.")
        found = [k for k in keys.keys if k.kid == named.kid and k.livemode is livemode]
        if len(found) != 1:
            raise InvalidClearanceToken("The key of the token is not known: fetch the keys again.")
        if not verifies(_unpack(found[0].x), _unpack(signature), f"{header}.{claims}".encode()):
            raise InvalidClearanceToken("The signature of the token is wrong.")
        return msgspec.json.decode(_unpack(claims), type=ClearanceClaims)
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise InvalidClearanceToken("This is not a clearance token.") from error


def _unpack(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
