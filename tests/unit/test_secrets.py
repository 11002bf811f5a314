"""Values derived from the deployment's secret: known answers of the RFCs, and no sharing."""

from __future__ import annotations

import hmac
from base64 import b64encode
from hashlib import sha256
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.db.tables import Field
from countersign.base.errors import WrongSecretKey
from countersign.base.files import key_text
from countersign.core.access.secrets import SECRET_BYTES, DeploymentSecret

SECRET_OF_TESTS = bytes(range(32))
SECRET = DeploymentSecret(SECRET_OF_TESTS)
OTHER = DeploymentSecret(bytes(32))
NONCE = bytes(range(12))
TEXT = st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1), max_size=12)


def derived(purpose: str) -> bytes:
    """HKDF-SHA-256 by RFC 5869: one block of output, no salt."""
    pseudorandom = hmac.digest(bytes(32), SECRET_OF_TESTS, "sha256")
    return hmac.digest(pseudorandom, b"countersign/v1/" + purpose.encode() + b"\x01", "sha256")


def test_each_use_has_its_own_key_by_rfc_5869() -> None:
    """The next release has to find the hashes in today's databases."""
    assert SECRET.check_value() == derived("check value")
    assert SECRET.key_digest("token") == hmac.digest(derived("api key pepper"), b"token", "sha256")
    assert (
        SECRET.blind_index("acct", "cbid", "é")
        == (hmac.digest(derived("blind index"), "acct\0cbid\0é".encode(), "sha256")[:16])
    )
    slot = b"\0\0\0\4acct" + b"\0\0\0\4test"
    assert SECRET.idempotency_slot("acct", "test") == (
        hmac.digest(derived("idempotency slot"), slot, "sha256")
    )
    assert SECRET.fingerprint(b"body") == (
        hmac.digest(derived("idempotency slot"), sha256(b"body").digest(), "sha256")
    )


@given(st.binary(max_size=200))
def test_keyed_hashes_match_rfc_2104(message: bytes) -> None:
    """Whatever the length of the message."""
    text = message.hex()
    expected = hmac.digest(derived("api key pepper"), text.encode(), "sha256")
    assert SECRET.key_digest(text) == expected


_PARTS = st.tuples(TEXT, st.sampled_from(get_args(Field)), TEXT)


@given(_PARTS, _PARTS)
def test_blind_indexes_are_equal_only_for_the_same_account_field_and_value(
    first: tuple[str, Field, str], second: tuple[str, Field, str]
) -> None:
    """Neither another account nor another field finds a row."""
    assert (SECRET.blind_index(*first) == SECRET.blind_index(*second)) == (first == second)


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=4),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=4),
)
def test_idempotency_slots_are_equal_only_for_the_same_parts(
    first: list[str], second: list[str]
) -> None:
    """Moving a character from one part to the next is another slot."""
    same = SECRET.idempotency_slot(*first) == SECRET.idempotency_slot(*second)
    assert same == (first == second)


def test_another_secret_gives_entirely_different_values() -> None:
    """A stolen database says nothing without its secret."""
    assert SECRET.check_value() != OTHER.check_value()
    assert SECRET.key_digest("t") != OTHER.key_digest("t")
    assert SECRET.blind_index("a", "zip", "v") != OTHER.blind_index("a", "zip", "v")
    assert SECRET.idempotency_slot("a") != OTHER.idempotency_slot("a")
    assert SECRET.fingerprint(b"b") != OTHER.fingerprint(b"b")


@given(st.binary(max_size=100), st.binary(max_size=32), st.integers(0, 2**32 - 1))
def test_a_kept_answer_opens_to_the_same_bytes(answer: bytes, slot: bytes, day: int) -> None:
    """Byte for byte, on any day."""
    sealed = SECRET.seal_answer(answer, slot, day, NONCE)
    assert SECRET.open_answer(sealed, slot) == answer
    assert DeploymentSecret(SECRET_OF_TESTS).open_answer(sealed, slot) == answer


def test_a_kept_answer_with_any_changed_bit_is_refused() -> None:
    """Format, day, nonce, text and tag."""
    sealed = SECRET.seal_answer(b"answer", b"slot", 20_777, NONCE)
    for place in range(len(sealed)):
        for bit in (1, 128):
            broken = sealed[:place] + bytes([sealed[place] ^ bit]) + sealed[place + 1 :]
            with pytest.raises(WrongSecretKey):
                SECRET.open_answer(broken, b"slot")


def test_a_kept_answer_cut_anywhere_is_refused() -> None:
    """Down to nothing at all."""
    sealed = SECRET.seal_answer(b"answer", b"slot", 20_777, NONCE)
    for length in range(len(sealed)):
        with pytest.raises(WrongSecretKey):
            SECRET.open_answer(sealed[:length], b"slot")


def test_a_kept_answer_opens_for_its_own_slot_and_secret_only() -> None:
    """A row moved to another key's slot reveals no answer of another caller."""
    sealed = SECRET.seal_answer(b"answer", b"slot", 20_777, NONCE)
    for secret, slot in ((SECRET, b"slos"), (OTHER, b"slot")):
        with pytest.raises(WrongSecretKey):
            secret.open_answer(sealed, slot)


def test_each_day_has_its_own_key() -> None:
    """Random nonces stay far below the limit of GCM; days may come in any order."""
    sealed = {day: SECRET.seal_answer(b"answer", b"slot", day, NONCE) for day in (9, 2, 5, 3)}
    assert len({text[17:] for text in sealed.values()}) == len(sealed)
    for text in sealed.values():
        assert SECRET.open_answer(text, b"slot") == b"answer"


def test_the_secret_file_is_read_back_unchanged() -> None:
    """One line of base64."""
    text = key_text(SECRET_OF_TESTS)
    assert text == b64encode(SECRET_OF_TESTS).decode() + "\n"
    for variant in (text, text.strip(), "  " + text + "\r\n"):
        assert DeploymentSecret.from_text(variant).check_value() == SECRET.check_value()


@pytest.mark.parametrize(
    "text",
    ["", "\n", "secret", b64encode(bytes(31)).decode(), b64encode(bytes(33)).decode(), "é" * 44,
     b64encode(bytes(32)).decode()[:-1], "*" + b64encode(bytes(32)).decode()],
)  # fmt: skip
def test_an_invalid_secret_file_is_refused(text: str) -> None:
    """A truncated file must not become a weaker key."""
    with pytest.raises(WrongSecretKey):
        DeploymentSecret.from_text(text)


def test_a_secret_is_never_printed() -> None:
    """Not in a traceback, and not in a log."""
    assert "DeploymentSecret(…)" == repr(SECRET) == f"{SECRET}"
    assert SECRET_BYTES == 32
