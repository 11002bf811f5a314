"""Make the vectors of odd Ed25519 signatures: `python spec/vectors/ed25519/make_vectors.py`.

Each differs from a plain signature in one point where implementations are known to differ; wherever
that is possible the equation S*B = R + k*A holds nevertheless, so that only the rule refuses it.
"""

# ruff: noqa: INP001, T201 - a script beside the file that it makes

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha512
from pathlib import Path

from countersign_evidence.offline.verify import (
    BASE,
    NEUTRAL,
    ORDER_8,
    L,
    P,
    Point,
    add,
    decode_point,
    encode_point,
    multiply,
)

SIGN = 1 << 255
A, R = 20261124, 8032
"""The secret numbers behind key and nonce: small and public, never to be used for anything."""
TORSION = decode_point(ORDER_8.to_bytes(32, "little"))
"""A point of order 8: its multiples are the eight points of small order."""
NOT_CANONICAL = {
    "y is p": P,
    "y is p, with the sign": P | SIGN,
    "y is p + 1": P + 1,
    "y is p + 1, with the sign": P + 1 | SIGN,
    "x is 0, y is 1, with the sign": 1 | SIGN,
    "x is 0, y is -1, with the sign": P - 1 | SIGN,
}
"""Other ways to write points of small order; the other points have no known secret number."""


def number(value: int) -> bytes:
    return value.to_bytes(32, "little")


def moved(secret: int, times: int) -> bytes:
    """The point of a secret number, with so many times the point of order 8 added to it."""
    return encode_point(add(multiply(secret, BASE), multiply(times, TORSION)))


def hashed(r: bytes, key: bytes, message: bytes) -> int:
    """The k of RFC 8032, section 5.1.7."""
    return int.from_bytes(sha512(r + key + message).digest(), "little") % L


def message_for(r: bytes, key: bytes, rest: int) -> bytes:
    """A message with which k leaves this rest by 8, so that k times a point of order 8 is known."""
    tries = (b"message %d" % n for n in range(10_000))
    return next(one for one in tries if hashed(r, key, one) % 8 == rest)


def signed(r: bytes, key: bytes, message: bytes, secret: int = A, nonce: int = R) -> bytes:
    return r + number((nonce + hashed(r, key, message) * secret) % L)


def cases() -> Iterator[tuple[str, bool, bytes, bytes, bytes]]:
    """Of each: what it is, whether it is good, key, message and signature."""
    key, r, message = moved(A, 0), moved(R, 0), b"a message"
    plain = signed(r, key, message)
    s = int.from_bytes(plain[32:], "little")
    yield "plain", True, key, message, plain
    yield "plain, of no bytes", True, key, b"", signed(r, key, b"")
    yield "of another message", False, key, b"another message", plain
    for what, odd in {"S + L": s + L, "S is L": L, "S is 2^256 - 1": 2**256 - 1}.items():
        yield what, False, key, message, r + number(odd)
    for what, odd in {"a byte less": plain[:-1], "a byte more": plain + b"\0"}.items():
        yield f"signature with {what}", False, key, message, odd
    yield "key with a byte less", False, key[:-1], message, plain
    yield "key with a byte more", False, key + b"\0", message, plain
    yield "key that is no point", False, number(2), message, plain
    yield "R that is no point", False, key, message, signed(number(2), key, message)

    # R of small order: the equation holds with nonce 0 and a key that takes the rest away.
    yield "R is the neutral point", False, key, message, signed(moved(0, 0), key, message, nonce=0)
    for times in range(1, 8):
        mixed, small = moved(A, 1), moved(0, times)
        of = message_for(small, mixed, -times % 8)
        name = f"R is {times} times a point of order 8"
        yield name, False, mixed, of, signed(small, mixed, of, nonce=0)
    for what, odd in NOT_CANONICAL.items():
        mixed = moved(A, 1)
        times = next(n for n in range(8) if moved(0, n) == encode_point(loosely(odd)))
        of = message_for(number(odd), mixed, -times % 8)
        yield f"R: {what}", False, mixed, of, signed(number(odd), mixed, of, nonce=0)

    # A key of small order: with k a multiple of 8 the equation holds for any nonce.
    for times in range(8):
        of = message_for(r, moved(0, times), 0)
        name = f"key is {times} times a point of order 8"
        yield name, False, moved(0, times), of, signed(r, moved(0, times), of, secret=0)
    for what, odd in NOT_CANONICAL.items():
        of = message_for(r, number(odd), 0)
        yield f"key: {what}", False, number(odd), of, signed(r, number(odd), of, secret=0)

    # Components of small order: good where they cancel out without the cofactor 8.
    mixed = moved(A, 1)
    of = message_for(r, mixed, 0)
    yield "mixed key, k takes its rest away", True, mixed, of, signed(r, mixed, of)
    of = message_for(moved(R, 3), mixed, 5)
    yield "mixed key and R, they cancel out", True, mixed, of, signed(moved(R, 3), mixed, of)
    of = message_for(r, mixed, 1)
    yield "mixed key, good with the cofactor only", False, mixed, of, signed(r, mixed, of)
    of = message_for(moved(R, 3), mixed, 4)
    name = "mixed key and R, good with the cofactor only"
    yield name, False, mixed, of, signed(moved(R, 3), mixed, of)
    name = "mixed R, good with the cofactor only"
    yield name, False, key, message, signed(moved(R, 1), key, message)


def loosely(odd: int) -> Point:
    """The point that a lenient reader finds in these numbers."""
    y = (odd & SIGN - 1) % P
    if y in {1, P - 1}:
        return NEUTRAL if y == 1 else (0, P - 1, 1, 0)
    return decode_point(number(y | odd & SIGN))


def generated() -> bytes:
    """The file `signatures.json`."""
    found = [
        {
            "what": what,
            "good": good,
            "public_key": key.hex(),
            "message": message.hex(),
            "signature": signature.hex(),
        }
        for what, good, key, message, signature in cases()
    ]
    return (json.dumps(found, indent=1) + "\n").encode()


if __name__ == "__main__":
    Path(__file__).with_name("signatures.json").write_bytes(generated())
    print("made")
