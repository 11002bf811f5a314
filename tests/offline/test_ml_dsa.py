"""ML-DSA-44 in both readers of a dossier: right on known answers, and of one mind with a library.

`mldsa44.json` has the first four of the hundred known answers (deterministic, "pure") of the
project post-quantum-cryptography/KAT, which the tests of pyca/cryptography use.
"""

import json
import random
from base64 import b64encode
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey, MLDSA44PublicKey

from countersign_evidence.offline import verify
from tests.support.browsers import running_browser

_ANSWERS = json.loads((Path(__file__).parent / "mldsa44.json").read_text())
HINTS = 2336
"""Where the hints begin in a signature."""


def known(name: str) -> tuple[bytes, bytes, bytes]:
    """Public key, the message that algorithm 8 verifies, and the signature."""
    key, context, message, signature = (
        bytes.fromhex(_ANSWERS[name][part])
        for part in ("public_key", "context", "message", "signature")
    )
    return key, bytes([0, len(context)]) + context + message, signature


def changed(data: bytes, position: int, bit: int = 0) -> bytes:
    other = bytearray(data)
    other[position] ^= 1 << bit
    return bytes(other)


def drawn(count: int) -> list[tuple[bytes, bytes, bytes]]:
    """Keys, messages and signatures of another implementation; half of them with a bit changed."""
    source, made = random.Random(204), []
    for number in range(count):
        key = MLDSA44PrivateKey.from_seed_bytes(source.randbytes(32))
        message = source.randbytes(number)
        of = [key.public_key().public_bytes_raw(), message, key.sign(message)]
        if number % 2:
            part = source.choice((0, 1, 2, 2))
            # Most of the bits of a signature are in z; the hints have rules of their own.
            start = HINTS if part == 2 and number % 4 == 1 else 0
            of[part] = changed(of[part], source.randrange(start, len(of[part])), number % 8)
        made.append((of[0], of[1], of[2]))
    return made


def library(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        MLDSA44PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def rewritten(signature: bytes) -> list[bytes]:
    """The same hints, written in ways that FIPS 204 does not allow."""
    hints, ends = signature[HINTS:-4], signature[-4:]
    assert 1 < ends[0] < 80 > ends[3]
    start = signature[:HINTS]
    swapped = bytes([hints[1], hints[0]]) + hints[2:]
    repeated = hints[:1] + hints[:1] + hints[2:]
    padded = hints[:79] + b"\x01"
    return [
        start + swapped + ends,
        start + repeated + ends,
        start + padded + ends,
        start + hints + bytes([81]) + ends[1:],
        start + hints + ends[:3] + bytes([ends[2] - 1]),
        signature + b"\0",
        signature[:-1],
        b"",
    ]


@pytest.mark.parametrize("name", _ANSWERS)
def test_known_answers_are_accepted_and_changed_ones_are_not(name: str) -> None:
    """And not with a bit changed in message, key or signature."""
    key, message, signature = known(name)
    assert verify.ml_dsa_verify(key, message, signature)
    assert not verify.ml_dsa_verify(key, message + b"\0", signature)
    for position in (0, 31, 32, HINTS - 1, HINTS):
        assert not verify.ml_dsa_verify(key, message, changed(signature, position))
    for position in (0, 1311):
        assert not verify.ml_dsa_verify(changed(key, position), message, signature)


def test_a_signature_can_be_written_in_one_way_only() -> None:
    """Hints in another order, twice, behind the last, beyond the end; a byte more or less."""
    key, message, signature = known("count 0")
    for other in rewritten(signature):
        assert not verify.ml_dsa_verify(key, message, other)


def test_the_script_judges_as_a_library_does() -> None:
    """On valid signatures, and on ones with a bit changed."""
    cases = drawn(100)
    expected = [library(*case) for case in cases]
    assert expected.count(True) == 50
    assert [verify.ml_dsa_verify(k, verify.PURE + m, s) for k, m, s in cases] == expected


@pytest.mark.browser
def test_the_page_judges_as_script_and_library_do(page_file: Path) -> None:
    """The known answers, near misses, and a hundred others, in one page."""
    answers = [known(name) for name in _ANSWERS]
    key, message, signature = answers[0]
    odd = [(key, message, other) for other in rewritten(signature)]
    cases = drawn(100)
    of_library = [(k, verify.PURE + m, s) for k, m, s in cases]
    expected = [True] * len(answers) + [False] * len(odd) + [library(*case) for case in cases]
    asked = [[b64encode(part).decode() for part in c] for c in [*answers, *odd, *of_library]]
    with running_browser() as browser:
        page = browser.new_page()
        page.goto(page_file.as_uri())
        said = page.evaluate(
            "cases => cases.map(c => mlDsaVerify(...c.map(part => fromLatin1(atob(part)))))",
            asked,
        )
    assert said == expected
