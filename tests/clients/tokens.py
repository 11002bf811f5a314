"""Valid and invalid clearance tokens: both clients judge them."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from typing import Any, Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

NOW: Final = 1_800_000_000
ORDER: Final[dict[str, Any]] = {
    "issuer": "https://countersign.example.com",
    "account": "acct_1",
    "shipping_zip": "94105",
    "session_id": "cs_1",
    "product_class": "accessory",
    "now": NOW,
}
_KEY, _OTHER, _TEST = (
    Ed25519PrivateKey.from_private_bytes(letter * 32) for letter in (b"k", b"o", b"t")
)
_HEADER: Final = {"alg": "EdDSA", "typ": "clearance+jwt", "kid": "1"}
_CLAIMS: Final[dict[str, Any]] = {
    "iss": ORDER["issuer"],
    "sub": "clr_1",
    "iat": NOW - 60,
    "exp": NOW + 60,
    "livemode": True,
    "account": "acct_1",
    "ack_id": "ack_1",
    "order_sha256": hashlib.sha256(b"94105\naccessory\ncs_1").hexdigest(),
    "obligations": [],
}


class Token(NamedTuple):
    """A token with the keys that the warehouse has, and whether it allows the order to ship."""

    why: str
    token: str
    keys: list[dict[str, object]]
    allows: bool


def tokens() -> list[Token]:
    """A valid one, and an attacker's variants of it."""
    keys = [_public(_KEY, "1", livemode=True), _public(_TEST, "2", livemode=False)]
    good = _signed(_HEADER, _CLAIMS)
    header, claims, signature = good.split(".")
    raw = _KEY.public_key().public_bytes_raw()
    confused = f"{_packed(_HEADER | {'alg': 'HS256'})}.{claims}"
    mac = hmac.digest(raw, confused.encode(), "sha256")
    forged = {
        "without a signature": f"{header}.{claims}.",
        "with the signature of another token": ".".join(
            [header, claims, _signed(_HEADER, _CLAIMS | {"exp": NOW + 61}).split(".")[2]]
        ),
        "with other claims": f"{header}.{_packed(_CLAIMS | {'exp': NOW + 600})}.{signature}",
        "of no algorithm": f"{_packed(_HEADER | {'alg': 'none'})}.{claims}.",
        "of the algorithm none, signed": _signed(_HEADER | {"alg": "none"}, _CLAIMS),
        "signed with the public key": f"{confused}.{_text(mac)}",
        "of another kind": _signed(_HEADER | {"typ": "JWT"}, _CLAIMS),
        "of an attacker's key": _signed(_HEADER, _CLAIMS, _OTHER),
        "of an unknown key": _signed(_HEADER | {"kid": "3"}, _CLAIMS, _OTHER),
        "of the sandbox's key": _signed(_HEADER | {"kid": "2"}, _CLAIMS, _TEST),
        "of the sandbox": _signed(
            _HEADER | {"kid": "2", "typ": "test-clearance+jwt"},
            _CLAIMS | {"livemode": False, "iss": f"{ORDER['issuer']}/test"},
            _TEST,
        ),
        "that says it is of the sandbox": _signed(_HEADER, _CLAIMS | {"livemode": False}),
        "that has just expired": _signed(_HEADER, _CLAIMS | {"exp": NOW}),
        "of another vendor": _signed(_HEADER, _CLAIMS | {"account": "acct_2"}),
        "of another order": _signed(_HEADER, _CLAIMS | {"order_sha256": "0" * 64}),
        "of another service": _signed(_HEADER, _CLAIMS | {"iss": "https://other.example"}),
        "in pieces": header,
        "that is empty": "",
        "that is no base64": "é.é.é",
        "that is deep": f"{_text(b'[' * 5_000)}.{claims}.{signature}",
    }
    found = [Token("good", good, keys, allows=True)]
    found += [Token(why, token, keys, allows=False) for why, token in forged.items()]
    twice = [*keys, _public(_OTHER, "1", livemode=True)]
    broken = [{"kid": "1", "x": "é", "livemode": True}]
    found += [
        Token("two keys", good, twice, allows=False),
        Token("no key", good, broken, allows=False),
    ]
    return found


def _public(key: Ed25519PrivateKey, kid: str, *, livemode: bool) -> dict[str, object]:
    return {"kid": kid, "x": _text(key.public_key().public_bytes_raw()), "livemode": livemode}


def _signed(header: dict[str, str], claims: dict[str, Any], key: Ed25519PrivateKey = _KEY) -> str:
    content = f"{_packed(header)}.{_packed(claims)}"
    return f"{content}.{_text(key.sign(content.encode()))}"


def _packed(value: object) -> str:
    return _text(json.dumps(value).encode())


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")
