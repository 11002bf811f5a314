"""The signature scheme that `verify.py` brings along: right on published answers, and strict."""

import json
import random
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countersign_evidence.offline import verify

VECTORS = json.loads((Path(__file__).parent / "rfc8032.json").read_text())
MESSAGE = b"a message"
NEUTRAL = (1).to_bytes(32, "little")


def signed(seed: bytes = bytes(range(32)), message: bytes = MESSAGE) -> tuple[bytes, bytes]:
    """A public key, and its signature of a message, made by another implementation."""
    key = Ed25519PrivateKey.from_private_bytes(seed)
    return key.public_key().public_bytes_raw(), key.sign(message)


@pytest.mark.parametrize("name", VECTORS)
def test_the_answers_of_rfc_8032_are_found_good_and_nothing_near_them(name: str) -> None:
    """RFC 8032, section 7.1; and the same with a bit changed in message, key or signature."""
    key, message, signature = (
        bytes.fromhex(VECTORS[name][part]) for part in ("public_key", "message", "signature")
    )
    assert verify.ed25519_verify(key, message, signature)
    assert not verify.ed25519_verify(key, message + b"\x00", signature)
    for position in (0, 31, 32, 63):
        changed = bytearray(signature)
        changed[position] ^= 1
        assert not verify.ed25519_verify(key, message, bytes(changed))
    changed = bytearray(key)
    changed[0] ^= 1
    assert not verify.ed25519_verify(bytes(changed), message, signature)


def test_what_another_implementation_signs_is_found_good() -> None:
    """Random keys and messages of many lengths, signed by `cryptography`."""
    source = random.Random(8032)
    for length in range(0, 200, 8):
        message = source.randbytes(length)
        key, signature = signed(source.randbytes(32), message)
        assert verify.ed25519_verify(key, message, signature)
        assert not verify.ed25519_verify(key, message + b".", signature)


def test_a_signature_can_be_written_in_one_way_only() -> None:
    """S + L satisfies the same equation; taken, it would be a second signature (malleability)."""
    key, signature = signed()
    s = int.from_bytes(signature[32:], "little")
    assert verify.ed25519_verify(key, MESSAGE, signature)
    for other in (s + verify.L, verify.L, 2**256 - 1):
        written = signature[:32] + other.to_bytes(32, "little")
        assert not verify.ed25519_verify(key, MESSAGE, written)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(verify.P, id="y is p"),
        pytest.param(verify.P + 1, id="y is p + 1, which is the neutral point once more"),
        pytest.param(2**255 - 1, id="the largest y"),
        pytest.param(1 | 1 << 255, id="x is 0 with the sign of an odd x"),
        pytest.param(verify.P - 1 | 1 << 255, id="the same for the point of order 2"),
        pytest.param(2, id="no point of the curve has this y"),
    ],
)
def test_a_point_that_is_not_encoded_in_its_one_way_is_refused(number: int) -> None:
    """As a key and as the first half of a signature (RFC 8032, section 5.1.3)."""
    encoded = number.to_bytes(32, "little")
    key, signature = signed()
    with pytest.raises(verify.Bad):
        verify.decode_point(encoded)
    assert not verify.ed25519_verify(encoded, MESSAGE, NEUTRAL + bytes(32))
    assert not verify.ed25519_verify(key, MESSAGE, encoded + signature[32:])


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_keys_and_signatures_of_another_length_are_refused(length: int) -> None:
    """Never a crash, never a pass."""
    key, signature = signed()
    assert not verify.ed25519_verify(bytes(length), MESSAGE, signature)
    assert not verify.ed25519_verify(key, MESSAGE, signature[: length - 1] if length else b"")
    assert not verify.ed25519_verify(key, MESSAGE, signature + bytes(length + 1))


def test_points_go_to_bytes_and_back() -> None:
    """The base point, and multiples of it; L times it is the neutral point."""
    point = verify.NEUTRAL
    for _ in range(20):
        point = verify.add(point, verify.BASE)
        encoded = verify.encode_point(point)
        assert verify.encode_point(verify.decode_point(encoded)) == encoded
    assert verify.encode_point(verify.multiply(verify.L, verify.BASE)) == NEUTRAL
