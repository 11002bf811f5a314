"""Making and rotating keys: the rights of a new key, and secrets that are shown once."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import URL, Connection, delete, insert, update

from countersign.base.db.database import Database
from countersign.base.db.engine import Purpose, open_engine
from countersign.base.db.tables import api_keys, people, person_grants
from countersign.base.errors import Forbidden, InvalidApiKey, KeyNotUsable, UnknownKey
from countersign.base.values import Mode, from_ns
from countersign.core.access.account import add_account
from countersign.core.access.audit import find_audit
from countersign.core.access.authenticate import keys_by_digest
from countersign.core.access.key import (
    PEOPLE_SCOPES,
    VENDOR_SCOPES,
    ApiKey,
    KeyKind,
    Scope,
    key_hint,
    well_formed,
)
from countersign.core.access.keys import (
    NewKey,
    create_key,
    keys_of,
    lock_key,
    revoke_key,
    rotate_key,
)
from tests.storage import items
from tests.support.acts import done
from tests.support.databases import Run, on_sqlite
from tests.support.depth import drawn
from tests.unit.support import HandClock

HOUR = timedelta(hours=1)


class World:
    """Keys of one account, and a clock that the test moves."""

    def __init__(self, database: Database, run: Run) -> None:
        self.run = run
        self.clock = HandClock()
        self.account = items.account()
        self.database = database
        self.access = items.access(database, self.clock)
        run(database.write(add_account, self.account))

    @property
    def now(self) -> datetime:
        return from_ns(self.clock.ns)

    def create(
        self, scopes: frozenset[Scope] | None = None, lifetime: timedelta | None = None
    ) -> NewKey:
        return self.run(
            done(create_key, self.access, self.account.id, Mode.TEST, scopes, lifetime=lifetime)
        )

    def rotate(self, key_id: str, overlap: timedelta = HOUR) -> NewKey:
        return self.run(done(rotate_key, self.access, key_id, overlap))

    def appoint(self, *person_ids: str) -> None:
        """Give these people a role in the account."""

        def act(connection: Connection) -> None:
            for id_ in person_ids:
                person = {"id": id_, "name": id_, "created_at": self.now}
                connection.execute(insert(people), person)
                place = {"account_id": self.account.id, "role": "owner", "granted_by": "a test"}
                grant = {"id": f"grt_{id_}", "person_id": id_, "granted_at": self.now}
                connection.execute(insert(person_grants), grant | place)

        self.run(self.database.write(act))

    def revoke(self, key_id: str) -> ApiKey:
        return self.run(done(revoke_key, self.access, key_id))

    def get(self, key_id: str) -> ApiKey:
        return self.run(self.database.write(lock_key, key_id))

    def acts(self) -> list[tuple[str, str, object]]:
        """The audit entries of this account: actor, act, and the key."""
        found = self.run(self.database.scan(find_audit, self.account.id))
        return [(entry.actor, entry.action.value, entry.details["key_id"]) for entry in found]


@pytest.fixture
def world(database: Database, run: Run) -> World:
    return World(database, run)


def test_a_key_made_without_scopes_has_all_that_a_vendor_needs(world: World) -> None:
    """And is marked as a secret key."""
    new = world.create()
    assert (new.key.kind, new.key.scopes) == (KeyKind.SECRET, VENDOR_SCOPES)
    assert well_formed(new.token)


ALL = set(Scope) - PEOPLE_SCOPES
"""The scopes of keys: the others are for people alone."""


@pytest.mark.parametrize("scopes", [{Scope.ACKS_READ}, {Scope.KEYS_MANAGE}, ALL, set()])
def test_a_restricted_key_has_exactly_the_scopes_it_was_made_with(
    world: World, scopes: set[Scope]
) -> None:
    """Even if these are none: an empty list must not turn into all."""
    new = world.create(frozenset(scopes))
    assert (new.key.kind, new.key.scopes) == (KeyKind.RESTRICTED, frozenset(scopes))


def test_only_a_keyed_hash_of_a_key_is_kept(world: World) -> None:
    """The key itself is in the answer to making it, and nowhere else."""
    new = world.create()
    digest = world.access.secret.key_digest(new.token)
    assert world.run(world.database.read_batched(keys_by_digest, digest)) == new.key
    assert new.key.hint == key_hint(new.token)
    assert new.token not in repr(new)


def test_a_successor_has_the_same_powers_and_lifetime(world: World) -> None:
    """Counted from when it was made; the old key works on until the overlap is over."""
    old = world.create(frozenset({Scope.ACKS_READ}), timedelta(days=9))
    world.clock.advance(86_400)
    new = world.rotate(old.key.id, timedelta(hours=24))
    assert (new.key.scopes, new.key.kind, new.key.mode) == (old.key.scopes, old.key.kind, Mode.TEST)
    assert new.key.expires_at == world.now + timedelta(days=9)
    assert new.key.replaces == old.key.id
    assert new.token != old.token
    assert world.get(old.key.id).expires_at == world.now + timedelta(hours=24)


def test_an_invalid_key_has_no_successor(world: World) -> None:
    """A revoked key must not be the way to a new one."""
    old = world.create()
    world.revoke(old.key.id)
    with pytest.raises(KeyNotUsable):
        world.rotate(old.key.id)


def test_revoking_twice_keeps_the_first_time(world: World) -> None:
    """When a key stopped working is a fact."""
    old = world.create()
    first = world.revoke(old.key.id)
    world.clock.advance(10)
    assert world.revoke(old.key.id).revoked_at == first.revoked_at


def test_an_unknown_key_is_reported_as_such(world: World) -> None:
    """With the command that lists the existing ones."""
    with pytest.raises(UnknownKey, match="list of keys"):
        world.revoke("key_none")


@pytest.mark.parametrize("lifetime", [None, timedelta(days=9)])
def test_a_key_rotated_twice_keeps_its_original_lifetime(
    world: World, lifetime: timedelta | None
) -> None:
    """A retry after a lost response: the first call's overlap is not a lifetime."""
    old = world.create(lifetime=lifetime)
    world.rotate(old.key.id)
    second = world.rotate(old.key.id)
    third = world.rotate(second.key.id)
    for key in (second.key, third.key):
        assert key.expires_at == (None if lifetime is None else world.now + lifetime)


def test_a_revoked_key_does_not_come_back_with_the_clock(world: World) -> None:
    """Of several servers one may be behind, and a clock can be set back."""
    old = world.create()
    world.revoke(old.key.id)
    world.clock.advance(-3600)
    assert not world.get(old.key.id).works_at(world.now)


def test_a_key_that_another_server_is_revoking_gets_no_successor(url: URL, world: World) -> None:
    """Both have read the key while it still worked: the revocation that came first counts."""
    old = world.create()
    engine = open_engine(url, Purpose.WRITE)

    async def both() -> None:
        with engine.begin() as other:
            change = update(api_keys).where(api_keys.c.id == old.key.id)
            other.execute(change.values(revoked_at=world.now))
            rotating = asyncio.create_task(done(rotate_key, world.access, old.key.id, HOUR))
            await asyncio.sleep(0.1)  # by now it waits for the other transaction
        with pytest.raises(KeyNotUsable):
            await rotating

    world.run(both())
    engine.dispose()
    assert world.run(world.database.scan(keys_of, *items.both_modes(world.account.id))) == [
        world.get(old.key.id)
    ]


def test_every_act_on_a_key_is_written_down_once(world: World) -> None:
    """Actor, act and time, in the transaction of the act; a no-op is no act."""
    old = world.create()
    new = world.rotate(old.key.id)
    for _ in range(2):
        world.revoke(new.key.id)
    with pytest.raises(KeyNotUsable):
        world.rotate(new.key.id)
    assert sorted(world.acts()) == sorted(
        [
            ("someone", "key_created", old.key.id),
            ("someone", "key_rotated", old.key.id),
            ("someone", "key_revoked", new.key.id),
        ]
    )


LIFETIMES = st.none() | st.integers(1, 5).map(lambda hours: hours * HOUR)


class KeyLives(RuleBasedStateMachine):
    """Keys, with what must be true of each, in a plain dictionary."""

    made: Bundle[str] = Bundle("made")

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.oracle: dict[str, dict[str, Any]] = {}

    def works(self, key_id: str) -> bool:
        known = self.oracle[key_id]
        return not known["revoked"] and (known["end"] is None or self.world.now < known["end"])

    def note(self, new: NewKey, lifetime: timedelta | None) -> str:
        end = None if lifetime is None else self.world.now + lifetime
        self.oracle[new.key.id] = {"lifetime": lifetime, "end": end, "revoked": False}
        return new.key.id

    @rule(target=made, lifetime=LIFETIMES)
    def create(self, lifetime: timedelta | None) -> str:
        return self.note(self.world.create(lifetime=lifetime), lifetime)

    @rule(target=made, key_id=made, overlap=st.integers(0, 3))
    def rotate(self, key_id: str, overlap: int) -> str:
        known, end = self.oracle[key_id], self.world.now + overlap * HOUR
        if not self.works(key_id):
            with pytest.raises(KeyNotUsable):
                self.world.rotate(key_id, overlap * HOUR)
            return key_id
        new = self.note(self.world.rotate(key_id, overlap * HOUR), known["lifetime"])
        known["end"] = end if known["end"] is None else min(known["end"], end)
        return new

    @rule(key_id=made)
    def revoke(self, key_id: str) -> None:
        self.world.revoke(key_id)
        self.oracle[key_id]["revoked"] = True

    @rule(hours=st.integers(-4, 6))
    def set_the_clock(self, hours: int) -> None:
        self.world.clock.advance(hours * 3600)

    @invariant()
    def each_key_works_just_as_long_as_it_should(self) -> None:
        for key_id, known in self.oracle.items():
            key = self.world.get(key_id)
            assert (key.works_at(self.world.now), key.expires_at) == (
                self.works(key_id),
                known["end"],
            )


@on_sqlite
def test_keys_have_the_lifetime_they_were_made_with(database: Database, run: Run) -> None:
    """In whatever order they are made, rotated and revoked, and however the clock moves."""
    run_state_machine_as_test(
        lambda: KeyLives(World(database, run)),  # type: ignore[arg-type]  # a factory will do
        settings=settings(max_examples=drawn(30), stateful_step_count=20),
    )


def test_a_key_keeps_its_maker_through_rotation(world: World) -> None:
    """By another person too; a machine's key becomes that of the person who sees the next one."""
    world.appoint("per_ada", "per_bob")

    def rotated(key_id: str, by: str | None) -> str | None:
        return world.run(done(rotate_key, world.access, key_id, HOUR, by=by)).key.made_by

    def made(by: str | None) -> str:
        key = world.run(done(create_key, world.access, world.account.id, Mode.TEST, made_by=by)).key
        assert world.get(key.id).made_by == by
        return key.id

    assert [rotated(made("per_ada"), by) for by in ("per_bob", None)] == ["per_ada", "per_ada"]
    assert [rotated(made(None), by) for by in ("per_bob", None)] == ["per_bob", None]


def test_a_removed_person_makes_no_key(world: World) -> None:
    """A server knows a key or a role for some seconds; a new key would outlast that."""
    world.appoint("per_ada")
    maker = world.run(
        done(create_key, world.access, world.account.id, Mode.TEST, made_by="per_ada")
    ).key
    other = world.create().key
    asked = {"made_by": "per_ada", "by_key": maker.id}
    world.run(done(create_key, world.access, world.account.id, Mode.TEST, **asked))  # type: ignore[arg-type] # texts
    world.revoke(maker.id)
    with pytest.raises(InvalidApiKey):
        world.run(done(create_key, world.access, world.account.id, Mode.TEST, **asked))  # type: ignore[arg-type] # texts
    with pytest.raises(InvalidApiKey):
        world.run(done(rotate_key, world.access, other.id, HOUR, by_key=maker.id))
    world.run(world.database.write(lambda connection: connection.execute(delete(person_grants))))
    with pytest.raises(Forbidden):
        world.run(done(create_key, world.access, world.account.id, Mode.TEST, made_by="per_ada"))
    with pytest.raises(Forbidden):
        world.run(done(rotate_key, world.access, other.id, HOUR, by="per_ada"))
