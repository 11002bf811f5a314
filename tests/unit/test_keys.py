"""Making and rotating keys: what a new key may do, and what is never shown again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from inspect import signature

import pytest

from countersign.domain.account import Account
from countersign.domain.instant import from_ns
from countersign.domain.key import VENDOR_SCOPES, ApiKey, KeyKind, Scope, key_hint, well_formed
from countersign.domain.mode import Mode
from countersign.errors import KeyNotUsable, UnknownKey
from countersign.services.accounts import Keys
from countersign.services.secrets import DeploymentSecret
from tests.unit.support import CountedEntropy, HandClock, run

SECRET = DeploymentSecret(bytes(32))
ACCOUNT = Account(id="acct_1", name="Vendor", created_at=from_ns(0))


def changed(key: ApiKey, **changes: datetime) -> ApiKey:
    """The same key with other values in some fields."""
    fields = {name: getattr(key, name) for name in signature(ApiKey).parameters}
    return ApiKey(**fields | changes)


class Kept:
    """Keys in memory. See `ports.KeyStore`."""

    def __init__(self) -> None:
        self.by_id: dict[str, ApiKey] = {}
        self.digests: dict[bytes, str] = {}

    async def add(self, key: ApiKey, digest: bytes) -> None:
        self.by_id[key.id] = key
        self.digests[digest] = key.id

    async def by_digest(self, digest: bytes) -> ApiKey | None:
        return self.by_id.get(self.digests.get(digest, ""))

    async def get(self, key_id: str) -> ApiKey | None:
        return self.by_id.get(key_id)

    async def list(self, account_id: str | None) -> Sequence[ApiKey]:
        return [k for k in self.by_id.values() if account_id in {None, k.account_id}]

    async def rotate(self, successor: ApiKey, digest: bytes, old_expires_at: datetime) -> None:
        assert successor.replaces
        old = self.by_id[successor.replaces]
        self.by_id[old.id] = changed(old, expires_at=old_expires_at)
        await self.add(successor, digest)

    async def revoke(self, key_id: str, at: datetime) -> None:
        self.by_id[key_id] = changed(self.by_id[key_id], revoked_at=at)

    async def touch(self, key_id: str, at: datetime) -> None:
        self.by_id[key_id] = changed(self.by_id[key_id], last_used_at=at)


class World:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.kept = Kept()
        self.keys = Keys(self.kept, SECRET, self.clock, CountedEntropy())


@pytest.fixture
def world() -> World:
    return World()


def test_a_key_made_without_scopes_has_all_that_a_vendor_needs(world: World) -> None:
    """And is marked as a secret key."""
    new = run(world.keys.create(ACCOUNT, Mode.TEST))
    assert (new.key.kind, new.key.scopes) == (KeyKind.SECRET, VENDOR_SCOPES)
    assert well_formed(new.token)


@pytest.mark.parametrize("scopes", [{Scope.ACKS_READ}, {Scope.KEYS_MANAGE}, set(Scope), set()])
def test_a_restricted_key_has_exactly_the_scopes_it_was_made_with(
    world: World, scopes: set[Scope]
) -> None:
    """Also when these are none: a list that came out empty must not turn into all."""
    new = run(world.keys.create(ACCOUNT, Mode.LIVE, frozenset(scopes)))
    assert (new.key.kind, new.key.scopes) == (KeyKind.RESTRICTED, frozenset(scopes))


def test_only_a_keyed_hash_of_a_key_is_kept(world: World) -> None:
    """The key itself is in the answer to making it, and nowhere else."""
    new = run(world.keys.create(ACCOUNT, Mode.TEST))
    assert list(world.kept.digests) == [SECRET.key_digest(new.token)]
    assert new.key.hint == key_hint(new.token)
    assert new.token not in repr(new)
    assert new.token[-38:-6] not in repr(vars(world.kept))


def test_a_successor_has_the_same_powers_and_lifetime(world: World) -> None:
    """Counted from when it was made; the old key works on until the overlap is over."""
    old = run(
        world.keys.create(ACCOUNT, Mode.LIVE, frozenset({Scope.ACKS_READ}), timedelta(days=9))
    )
    world.clock.advance(86_400)
    new = run(world.keys.rotate(old.key.id, timedelta(hours=24)))
    now = from_ns(world.clock.ns)
    assert (new.key.scopes, new.key.kind, new.key.mode) == (old.key.scopes, old.key.kind, Mode.LIVE)
    assert new.key.expires_at == now + timedelta(days=9)
    assert new.key.replaces == old.key.id
    assert new.token != old.token
    assert world.kept.by_id[old.key.id].expires_at == now + timedelta(hours=24)


def test_a_key_that_no_longer_works_has_no_successor(world: World) -> None:
    """A revoked key must not be the way to a new one."""
    old = run(world.keys.create(ACCOUNT, Mode.TEST))
    run(world.keys.revoke(old.key.id))
    with pytest.raises(KeyNotUsable):
        run(world.keys.rotate(old.key.id, timedelta(0)))


def test_revoking_twice_keeps_the_first_time(world: World) -> None:
    """When a key stopped working is a fact."""
    old = run(world.keys.create(ACCOUNT, Mode.TEST))
    first = run(world.keys.revoke(old.key.id))
    world.clock.advance(10)
    assert run(world.keys.revoke(old.key.id)).revoked_at == first.revoked_at


def test_an_unknown_key_is_told_as_such(world: World) -> None:
    """With the command that lists those that there are."""
    with pytest.raises(UnknownKey, match="keys list"):
        run(world.keys.revoke("key_none"))
