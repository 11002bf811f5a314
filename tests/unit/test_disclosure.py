"""Salted disclosures: the known answers of RFC 9901, and any value there and back."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from hashlib import sha256
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign_evidence.disclosure import (
    SALT_BYTES,
    b64url,
    b64url_each,
    disclose,
)
from tests.unit.record_reader import digest_of, disclosed, unpadded

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.one_of(
    st.none(),
    TEXT,
    st.lists(TEXT, max_size=8),
    st.dictionaries(TEXT, st.one_of(st.none(), st.booleans(), TEXT), max_size=4),
)
SALTS = st.binary(min_size=SALT_BYTES, max_size=SALT_BYTES)


class Disclosed(NamedTuple):
    """One disclosure, and its digest."""

    encoded: str
    digest: str


def one(salt: bytes, name: str, value: object) -> Disclosed:
    [line], [digest] = disclose([(b64url(salt), name, value)])
    encoded = b64url(line)
    return Disclosed(encoded, digest)


def test_a_disclosure_is_the_known_answer_of_rfc_9901() -> None:
    """§4.2.1, the variant without white space, as implemented here.

    The salt of that example has 23 characters, which is base64url of 17 bytes.
    """
    salt = urlsafe_b64decode("_26bc4LT-ac6q2KI6cBW5es=")
    made = one(salt, "family_name", "Möbius")
    assert made.encoded == ("WyJfMjZiYzRMVC1hYzZxMktJNmNCVzVlcyIsImZhbWlseV9uYW1lIiwiTcO2Yml1cyJd")


# §4.2.3, and the first disclosure of the example in §5.1.
@pytest.mark.parametrize(
    ("encoded", "content", "digest"),
    [
        (
            "WyJfMjZiYzRMVC1hYzZxMktJNmNCVzVlcyIsICJmYW1pbHlfbmFtZSIsICJNw7ZiaXVzIl0",
            ["_26bc4LT-ac6q2KI6cBW5es", "family_name", "Möbius"],
            "X9yH0Ajrdm1Oij4tWso9UzzKJvPoDxwmuEcO3XAdRC0",
        ),
        (
            "WyIyR0xDNDJzS1F2ZUNmR2ZyeU5STjl3IiwgImdpdmVuX25hbWUiLCAiSm9obiJd",
            ["2GLC42sKQveCfGfryNRN9w", "given_name", "John"],
            "jsu9yVulwQQlhFlM_3JlzMaSFzglhQG0DpfayQwLUK4",
        ),
    ],
)
def test_the_reader_of_these_tests_gives_the_known_answers_of_rfc_9901(
    encoded: str, content: list[str], digest: str
) -> None:
    """The service's output is compared with this reader below, so it must be right."""
    assert disclosed(encoded) == content
    assert digest_of(encoded) == digest


def test_the_example_of_rfc_9901_discloses_the_same_salt_name_and_value() -> None:
    """§5.1 writes it with white space, so only the content is the same, not the digest."""
    made = one(urlsafe_b64decode("2GLC42sKQveCfGfryNRN9w=="), "given_name", "John")
    assert disclosed(made.encoded) == ["2GLC42sKQveCfGfryNRN9w", "given_name", "John"]


@given(SALTS, TEXT, VALUES)
def test_any_value_is_disclosed_unchanged(salt: bytes, name: str, value: object) -> None:
    """The second reader gets back salt, name and value, and the digest that binds them."""
    made = one(salt, name, value)
    assert disclosed(made.encoded) == [unpadded(salt), name, value]
    assert made.digest == digest_of(made.encoded)


@given(SALTS, SALTS, VALUES)
def test_the_digest_depends_on_the_salt(first: bytes, second: bytes, value: object) -> None:
    """Guessing the value alone finds nothing."""
    same = one(first, "ip", value).digest == one(second, "ip", value).digest
    assert same == (first == second)


def test_the_digest_is_over_the_encoded_string_and_not_over_the_json() -> None:
    """The usual mistake in implementations of SD-JWT."""
    made = one(bytes(16), "cbid", None)
    inside = json.dumps([unpadded(bytes(16)), "cbid", None], separators=(",", ":")).encode()
    assert urlsafe_b64decode(made.encoded + "=" * (-len(made.encoded) % 4)) == inside
    assert made.digest != unpadded(sha256(inside).digest())
    assert made.digest == unpadded(sha256(made.encoded.encode()).digest())


@given(st.binary(max_size=40))
def test_base64url_matches_rfc_4648_without_padding(data: bytes) -> None:
    """Section 5, whatever the length."""
    assert b64url(data) == unpadded(data)


@given(st.lists(st.binary(max_size=40)))
def test_base64url_of_many_equals_that_of_each(parts: list[bytes]) -> None:
    """They are made in one go, whatever their lengths."""
    assert b64url_each(parts) == [unpadded(part) for part in parts]
