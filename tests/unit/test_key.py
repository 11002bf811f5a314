"""API keys: their form, their checksum, their visible part, and their rights."""

from __future__ import annotations

import re
import string
from binascii import crc32
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.values import Mode
from countersign.core.access.key import (
    ENTROPY_BYTES,
    VENDOR_SCOPES,
    ApiKey,
    KeyKind,
    Scope,
    compose_key,
    key_hint,
    well_formed,
)
from countersign.server.routes import ROUTES

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
KEYS = st.builds(
    compose_key,
    st.sampled_from(KeyKind),
    st.sampled_from(Mode),
    st.binary(min_size=ENTROPY_BYTES, max_size=ENTROPY_BYTES),
)
NOW = datetime(2026, 11, 20, 21, 31, tzinfo=UTC)
TICK = timedelta(milliseconds=1)
KEY = compose_key(KeyKind.SECRET, Mode.TEST, bytes(range(24)))


def base62(value: int, width: int) -> str:
    """An integer in base 62, most significant digit first, with leading zeros."""
    return "".join(BASE62[value // 62**power % 62] for power in range(width - 1, -1, -1))


@given(st.sampled_from(KeyKind), st.sampled_from(Mode), st.binary(min_size=24, max_size=24))
def test_a_key_is_a_marked_prefix_random_characters_and_their_checksum(
    kind: KeyKind, mode: Mode, entropy: bytes
) -> None:
    """The form that secret scanners search for; the checksum is CRC-32 of all before it."""
    key = compose_key(kind, mode, entropy)
    assert re.fullmatch(r"csign_(sk|rk)_(test|live)_[0-9A-Za-z]{38}", key)
    stem, checksum = key[:-6], key[-6:]
    number = int.from_bytes(entropy, "big")
    assert stem == f"csign_{kind.value}_{mode.value}_{base62(number % 62**32, 32)}"
    assert checksum == base62(crc32(stem.encode()), 6)
    assert well_formed(key)


def test_a_key_is_a_known_answer() -> None:
    """Keys made by one release have to work with the next."""
    assert KEY == "csign_sk_test_00A7dl5PEW67zZCpFU9uKaHnGgOvQKAR4ZT56Q"


def test_every_single_changed_character_is_refused_without_a_lookup_in_the_database() -> None:
    """At every place, by every other printable character and some look-alikes."""
    others = string.printable + "\u0430\u0131\uff10"
    passed = [
        (place, other)
        for place, character in enumerate(KEY)
        for other in others
        if other != character and well_formed(KEY[:place] + other + KEY[place + 1 :])
    ]
    assert passed == []


@given(KEYS, st.integers(0, 51))
def test_a_lost_or_doubled_or_swapped_character_is_refused(key: str, place: int) -> None:
    """The usual accidents of copying."""
    place %= len(key) - 1
    swapped = key[:place] + key[place + 1] + key[place] + key[place + 2 :]
    assert not well_formed(key[:place] + key[place + 1 :])
    assert not well_formed(key[:place] + key[place] + key[place:])
    assert swapped == key or not well_formed(swapped)
    assert not well_formed(key + "\n")
    assert not well_formed(" " + key)


@given(st.text(max_size=60))
def test_any_other_text_is_no_key(text: str) -> None:
    """The check never fails, whatever is sent as a token."""
    assert not well_formed(text)


@given(KEYS)
def test_the_hint_names_the_key_and_reveals_no_randomness(key: str) -> None:
    """Lists and logs may show the prefix, and four characters of the checksum."""
    hint = key_hint(key)
    prefix = key[: key.index("_", len("csign_sk_")) + 1]
    assert hint == f"{prefix}…{key[-4:]}"
    assert key[len(prefix) : -6] not in hint


@pytest.mark.parametrize("size", [0, 23, 25])
def test_a_key_is_made_from_enough_randomness_or_not_at_all(size: int) -> None:
    """A short read of the random source must not pass unnoticed."""
    with pytest.raises(ValueError, match="24 random bytes"):
        compose_key(KeyKind.SECRET, Mode.LIVE, bytes(size))


def test_two_keys_share_no_visible_randomness() -> None:
    """Each of the 24 bytes has its influence on the key."""
    plain = bytes(24)
    changed = {
        compose_key(KeyKind.SECRET, Mode.TEST, plain[:n] + b"\x01" + plain[n + 1 :])
        for n in range(24)
    }
    assert len(changed) == 24


def key_with(*, expires_at: datetime | None, revoked_at: datetime | None) -> ApiKey:
    return ApiKey(
        id="key_1",
        account_id="acct_1",
        mode=Mode.TEST,
        kind=KeyKind.SECRET,
        scopes=VENDOR_SCOPES,
        hint="csign_sk_test_…abcd",
        created_at=NOW,
        lifetime=None,
        expires_at=expires_at,
        revoked_at=revoked_at,
        last_used_at=None,
        replaces=None,
    )


MOMENTS = st.one_of(st.none(), st.sampled_from([NOW - TICK, NOW, NOW + TICK]))


@given(MOMENTS, MOMENTS)
def test_a_key_works_until_it_expires_or_is_revoked(
    expires_at: datetime | None, revoked_at: datetime | None
) -> None:
    """Once it is revoked, no clock brings it back; in the moment it expires it no longer works."""
    works = key_with(expires_at=expires_at, revoked_at=revoked_at).works_at(NOW)
    assert works == (revoked_at is None and (expires_at is None or expires_at > NOW))


def test_a_vendors_key_has_no_rights_of_staff() -> None:
    """The default has nothing that a checkout never needs."""
    assert frozenset(Scope) - VENDOR_SCOPES == {
        Scope("buyers:review"), Scope("keys:manage"), Scope("erasure:write"), Scope("search:read"),
        Scope("holds:manage"), Scope("retention:read"), Scope("audit:read"),
        Scope("accounts:manage"), Scope("notices:manage"), Scope("people:manage"),
        Scope("deployment:read"), Scope("staff:manage"), Scope("sessions:manage"),
        Scope("clearances:override"),
    }  # fmt: skip


def test_every_scope_is_needed_by_an_operation() -> None:
    """So that no one makes a key with a useless scope."""
    assert frozenset(Scope) == {route.scope for route in ROUTES if route.scope is not None}


def test_the_scopes_match_the_design() -> None:
    """Names of scopes are an interface: they stand in configurations."""
    assert {scope.value for scope in Scope} >= {
        "notices:read",
        "acks:create",
        "acks:read",
        "evidence:read",
        "buyers:verify",
        "buyers:read",
        "clearances:create",
        "clearances:read",
        "checkout_sessions:create",
        "events:read",
        "webhooks:manage",
    }


def test_the_record_names_the_kind_of_key_by_a_word() -> None:
    """The word is part of the evidence, the key never is."""
    assert KeyKind.SECRET.credential == "secret_key"
    assert KeyKind.RESTRICTED.credential == "restricted_key"
