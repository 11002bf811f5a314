"""From a token to a principal: cached keys, their lifetime, and data that is never stored."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from countersign.base.errors import InvalidApiKey
from countersign.base.values import Mode, from_ns
from countersign.core.access import authenticate
from countersign.core.access.authenticate import KEY_CACHE_SECONDS, Authenticate
from countersign.core.access.key import VENDOR_SCOPES, ApiKey, KeyKind, Principal, compose_key
from countersign.core.access.secrets import DeploymentSecret
from tests.unit.support import HandClock, run

SECRET = DeploymentSecret(bytes(32))


class Keys:
    """Keys in memory, and the requests for them."""

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.facts: dict[bytes, dict[str, datetime | None]] = {}
        self.kinds: dict[bytes, tuple[KeyKind, Mode]] = {}
        self.reads = 0
        self.read_seconds = 0.0
        self.touched: list[datetime] = []

    def make(
        self, number: int = 0, kind: KeyKind = KeyKind.SECRET, mode: Mode = Mode.TEST
    ) -> bytes:
        """A working key; gives the token."""
        token = compose_key(kind, mode, number.to_bytes(24, "big"))
        digest = SECRET.key_digest(token)
        self.facts[digest] = {"expires_at": None, "revoked_at": None, "last_used_at": None}
        self.kinds[digest] = (kind, mode)
        return token.encode()

    def set(self, token: bytes, name: str, at: datetime) -> None:
        self.facts[SECRET.key_digest(token.decode())][name] = at

    async def by_digest(self, digest: bytes) -> ApiKey | None:
        self.reads += 1
        facts = self.facts.get(digest)
        found = None
        if facts is not None:
            kind, mode = self.kinds[digest]
            found = ApiKey(
                id="key_1",
                account_id="acct_1",
                mode=mode,
                kind=kind,
                scopes=VENDOR_SCOPES,
                hint="…",
                created_at=from_ns(0),
                lifetime=None,
                replaces=None,
                made_by=None,
                name=None,
                **facts,
            )
        self.clock.advance(self.read_seconds)
        return found

    async def touch(self, key_id: str, at: datetime) -> None:
        self.touched.append(at)
        for facts in self.facts.values():
            facts["last_used_at"] = at


class World:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.keys = Keys(self.clock)
        self.service = Authenticate(
            self.keys.by_digest, self.keys.touch, SECRET, self.clock, blake2b
        )

    def ask(self, token: bytes) -> Principal:
        return run(self.service(token))

    def works(self, token: bytes) -> bool:
        try:
            self.ask(token)
        except InvalidApiKey:
            return False
        return True

    @property
    def now(self) -> datetime:
        return from_ns(self.clock.ns)


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("kind", KeyKind)
def test_a_working_key_identifies_the_caller(world: World, kind: KeyKind, mode: Mode) -> None:
    """Account, mode, scopes, and the kind of credential for the record."""
    assert world.ask(world.keys.make(kind=kind, mode=mode)) == Principal(
        key_id="key_1",
        account_id="acct_1",
        mode=mode,
        scopes=VENDOR_SCOPES,
        credential=kind.credential,
    )


def test_a_key_is_read_once_while_it_is_remembered(world: World) -> None:
    """The hot path asks the database for nothing."""
    token = world.keys.make()
    for _ in range(5):
        world.ask(token)
    assert world.keys.reads == 1


def test_a_revoked_key_works_for_no_more_than_three_seconds(world: World) -> None:
    """Revoked right after it was read; refused from KEY_CACHE_SECONDS on."""
    token = world.keys.make()
    world.ask(token)
    world.keys.set(token, "revoked_at", world.now)
    world.clock.advance(KEY_CACHE_SECONDS - 0.001)
    assert world.works(token)
    world.clock.advance(0.001)
    assert not world.works(token)
    assert KEY_CACHE_SECONDS <= 3


def test_use_does_not_extend_the_life_of_a_cached_key(world: World) -> None:
    """A busy key is looked up as often as an idle one."""
    token = world.keys.make()
    world.ask(token)
    world.keys.set(token, "revoked_at", world.now)
    for _ in range(29):
        world.clock.advance(0.1)
        world.works(token)
    world.clock.advance(0.1)
    assert not world.works(token)


def test_a_slow_read_counts_from_its_beginning(world: World) -> None:
    """Its result may have been true only at the beginning."""
    token = world.keys.make()
    world.keys.read_seconds = 2.0
    world.ask(token)
    world.keys.set(token, "revoked_at", world.now)
    world.clock.advance(KEY_CACHE_SECONDS - 2.0)
    assert not world.works(token)


def test_a_new_key_works_at_once_also_after_it_was_refused(world: World) -> None:
    """A refusal is not remembered."""
    token = world.keys.make()
    facts = world.keys.facts.copy()
    world.keys.facts.clear()
    assert not world.works(token)
    world.keys.facts.update(facts)
    assert world.works(token)


def test_a_key_stops_working_when_it_expires_even_while_remembered(world: World) -> None:
    """Expiry is known beforehand, so it does not lag."""
    token = world.keys.make()
    world.keys.set(token, "expires_at", world.now + timedelta(seconds=1))
    assert world.works(token)
    world.clock.advance(0.998)
    assert world.works(token)
    world.clock.advance(0.003)
    assert not world.works(token)


def test_a_revoked_key_is_forgotten_at_the_next_lookup(world: World) -> None:
    """And it stays refused when the clock of the process does not move."""
    token = world.keys.make()
    world.ask(token)
    world.keys.set(token, "revoked_at", world.now)
    world.clock.advance(KEY_CACHE_SECONDS)
    assert [world.works(token) for _ in range(3)] == [False] * 3


def test_use_is_noted_once_an_hour(world: World) -> None:
    """An operator sees which keys are in use, at the price of one write an hour."""
    token = world.keys.make()
    for _ in range(4 * 60):
        world.ask(token)
        world.clock.advance(60)
    assert len(world.keys.touched) == 4


def test_a_mistyped_token_costs_no_lookup_in_the_database(world: World) -> None:
    """Guessing is not paid for by the database."""
    token = world.keys.make()
    for wrong in (token[:-1] + b"!", token[:-1], token + b"0", b"x", b"x" * 5000, b"\xff\x00"):
        assert not world.works(wrong)
    assert world.keys.reads == 0


@given(st.binary(max_size=300))
def test_any_bytes_are_a_working_key_or_refused(token: bytes) -> None:
    """There is no third outcome."""
    assert not World().works(token)


def test_tokens_are_not_kept_in_memory(world: World) -> None:
    """A dump of the process gives no keys away."""
    token = world.keys.make()
    world.ask(token)
    assert len(world.service._known) == 1
    assert token not in repr(asdict(world.service)).encode()
    assert token[-38:] not in repr(asdict(world.service)).encode()
    world.service.place = partial(blake2b, key=b"of this process")
    assert "of this process" not in repr(world.service)


def test_the_cache_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many keys make it read more, never grow without end."""
    monkeypatch.setattr(authenticate, "_CACHE_MAX", 3)
    for number in range(10):
        world.ask(world.keys.make(number))
        assert len(world.service._known) <= 3
