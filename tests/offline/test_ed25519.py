"""The signature scheme that `verify.py` brings along: right on published answers, and strict."""

import json
import random
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from runpy import run_path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from countersign_evidence.note import ED25519, Verifier, ed25519_verify
from countersign_evidence.offline import verify
from tests.support.browsers import running_browser
from tests.support.every import every

ANSWERS = json.loads((Path(__file__).parent / "rfc8032.json").read_text())
VECTORS = Path(__file__).parents[2] / "spec" / "vectors" / "ed25519"
NEUTRAL = (1).to_bytes(32, "little")


def signed(seed: bytes = bytes(range(32)), message: bytes = b"a message") -> tuple[bytes, bytes]:
    """A public key, and its signature of a message, made by another implementation."""
    key = Ed25519PrivateKey.from_private_bytes(seed)
    return key.public_key().public_bytes_raw(), key.sign(message)


def by_a_key_of_the_service(key: bytes, message: bytes, signature: bytes) -> bool:
    return Verifier("log.example", ED25519, key).verifies(message, signature)


def by_openssl_alone(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


@every("name", ANSWERS)
def test_the_answers_of_rfc_8032_are_accepted_and_changed_ones_are_not(name: str) -> None:
    """RFC 8032, section 7.1; and the same with a bit changed in message, key or signature."""
    key, message, signature = (
        bytes.fromhex(ANSWERS[name][part]) for part in ("public_key", "message", "signature")
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


def test_signatures_of_another_implementation_verify() -> None:
    """Random keys and messages of many lengths, signed by `cryptography`."""
    source = random.Random(8032)
    for length in range(0, 200, 8):
        message = source.randbytes(length)
        key, signature = signed(source.randbytes(32), message)
        assert verify.ed25519_verify(key, message, signature)
        assert not verify.ed25519_verify(key, message + b".", signature)


def odd_signatures() -> dict[str, tuple[bool, tuple[bytes, ...]]]:
    """Of each vector whether it is good; key, message and signature."""
    read = json.loads((VECTORS / "signatures.json").read_bytes())
    parts = ("public_key", "message", "signature")
    found = {c["what"]: (c["good"], tuple(bytes.fromhex(c[p]) for p in parts)) for c in read}
    assert len(found) == len(read) > 40
    return found


def test_the_code_makes_the_odd_signatures_byte_for_byte() -> None:
    """They are arithmetic on small numbers, with no data from elsewhere."""
    made = run_path(str(VECTORS / "make_vectors.py"))["generated"]()
    assert made == (VECTORS / "signatures.json").read_bytes()


@every("reader", [verify.ed25519_verify, ed25519_verify, by_a_key_of_the_service])
def test_odd_signatures_are_judged_by_one_rule(
    reader: Callable[[bytes, bytes, bytes], bool],
) -> None:
    """In Python alone and by OpenSSL: S not reduced, points of small order, odd encodings."""
    odd = odd_signatures()
    judged = {what: reader(*parts) for what, (_, parts) in odd.items()}
    assert judged == {what: good for what, (good, _) in odd.items()}


@pytest.mark.browser
def test_the_page_judges_odd_signatures_by_the_same_rule(page_file: Path) -> None:
    """Browsers are not of one mind about them: the page asks its own rule first."""
    odd = odd_signatures()
    asked = [[b64encode(part).decode() for part in parts] for _, parts in odd.values()]
    with running_browser() as browser:
        page = browser.new_page()
        page.goto(page_file.as_uri())
        judged = page.evaluate(
            """cases => Promise.all(cases.map(
                c => ed25519Verify(...c.map(part => fromLatin1(atob(part))))))""",
            asked,
        )
    assert dict(zip(odd, judged, strict=True)) == {what: good for what, (good, _) in odd.items()}


def test_a_lenient_reader_would_take_the_odd_signatures() -> None:
    """So the vectors can fail: OpenSSL alone finds an equation good by a key of small order."""
    lax = [what for what, (_, parts) in odd_signatures().items() if by_openssl_alone(*parts)]
    assert len([what for what in lax if what.startswith("key: ")]) == 6
    assert len([what for what in lax if what.startswith("R is ")]) == 8


@every("number", [verify.P, verify.P + 1, 2**255 - 1, 1 | 1 << 255, verify.P - 1 | 1 << 255, 2])
def test_a_point_outside_its_canonical_encoding_is_refused(number: int) -> None:
    """RFC 8032, section 5.1.3; and 2, which no point of the curve has as y."""
    with pytest.raises(verify.Bad):
        verify.decode_point(number.to_bytes(32, "little"))


def test_points_survive_a_round_trip_to_bytes() -> None:
    """The base point, and multiples of it; L times it is the neutral point."""
    point = verify.NEUTRAL
    for _ in range(20):
        point = verify.add(point, verify.BASE)
        encoded = verify.encode_point(point)
        assert verify.encode_point(verify.decode_point(encoded)) == encoded
    assert verify.encode_point(verify.multiply(verify.L, verify.BASE)) == NEUTRAL
