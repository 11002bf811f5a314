"""Data keys and their envelopes: known answers, and nothing that opens in another place."""

from __future__ import annotations

import hashlib
import hmac
from typing import TypedDict

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from countersign.base.errors import InvalidConfiguration, WrongKeyEncryptionKey
from countersign.base.files import key_text
from countersign.core.vault.key_encryption import KeyRing, key_id, parse_keys
from countersign.core.vault.vault import DataKey

ID, KEY = bytes(range(16)), bytes(range(32))
SHRED, NONCE = bytes(range(32, 64)), bytes(range(12))


class Place(TypedDict):
    table: str
    column: str
    account: str
    row_id: str


HERE: Place = {"table": "disclosures", "column": "payload", "account": "acct_1", "row_id": "ack_1"}


def sealed() -> bytes:
    return DataKey(ID, KEY).seal(shred_key=SHRED, nonce=NONCE, plaintext=b"initials", **HERE)


def test_an_envelope_matches_the_reference_to_the_byte() -> None:
    """0x01, id, nonce, AES-256-GCM under a key from data key and shred key, bound to its place."""
    row_key = hmac.digest(KEY, SHRED + b"\x01", hashlib.sha256)
    context = f"v1|disclosures|payload|acct_1|ack_1|{ID.hex()}".encode()
    expected = b"\x01" + ID + NONCE + AESGCM(row_key).encrypt(NONCE, b"initials", context)
    assert sealed() == expected
    assert DataKey(ID, KEY).open(sealed(), shred_key=SHRED, **HERE) == b"initials"


def test_any_flipped_bit_is_noticed() -> None:
    """After the id, which identifies the key."""
    whole = sealed()
    for at in range(17, len(whole)):
        broken = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        with pytest.raises(WrongKeyEncryptionKey):
            DataKey(ID, KEY).open(broken, shred_key=SHRED, **HERE)


@pytest.mark.parametrize("name", HERE)
def test_an_envelope_opens_in_its_own_place_only(name: str) -> None:
    """Moved to another row, account, column or table it is noise."""
    elsewhere: Place = {**HERE, name: "other"}  # type: ignore[misc]
    with pytest.raises(WrongKeyEncryptionKey):
        DataKey(ID, KEY).open(sealed(), shred_key=SHRED, **elsewhere)


def test_without_its_shred_key_a_row_is_noise_even_with_all_other_keys() -> None:
    with pytest.raises(WrongKeyEncryptionKey):
        DataKey(ID, KEY).open(sealed(), shred_key=bytes(32), **HERE)


def test_the_first_key_wraps_and_every_key_unwraps() -> None:
    """So a key is changed by putting the new one before it."""
    old, new = bytes([1]) * 32, bytes([2]) * 32
    wrapped = KeyRing(lambda: key_text(old), bytes).wrap(KEY, b"context")
    both = KeyRing(lambda: key_text(new) + key_text(old), bytes)
    assert both.unwrap(wrapped, b"context") == KEY
    assert both.wrap(KEY, b"context")[1:5] == both.ids[0] == key_id(new)


def test_a_missing_key_is_named_and_looked_up_again() -> None:
    """A server that runs reads the source again before it gives up."""
    old, new = bytes([1]) * 32, bytes([2]) * 32
    texts = [key_text(old)]
    ring = KeyRing(lambda: texts[-1], bytes)
    wrapped = KeyRing(lambda: key_text(new), bytes).wrap(KEY, b"context")
    with pytest.raises(WrongKeyEncryptionKey, match=key_id(new).hex()):
        ring.unwrap(wrapped, b"context")
    texts.append(key_text(new) + key_text(old))
    assert ring.unwrap(wrapped, b"context") == KEY


def test_a_wrapped_key_opens_in_its_own_context_only() -> None:
    ring = KeyRing(lambda: key_text(KEY), bytes)
    with pytest.raises(WrongKeyEncryptionKey):
        ring.unwrap(ring.wrap(KEY, b"one"), b"another")


@pytest.mark.parametrize("text", ["", "\n", "not base64!", "c2hvcnQ=", key_text(KEY) + "x"])
def test_an_invalid_list_of_keys_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        parse_keys(text)
    assert not text.strip() or text.strip() not in caught.value.message


def test_no_key_shows_in_a_repr() -> None:
    ring, data_key = KeyRing(lambda: key_text(KEY), bytes), DataKey(ID, KEY)
    for shown in (repr(ring), repr(data_key)):
        assert KEY.hex() not in shown
        assert key_text(KEY).strip() not in shown
