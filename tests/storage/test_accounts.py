"""Accounts and keys in the database."""

import asyncio

import pytest
from sqlalchemy import URL

from countersign.base.db.database import Database
from countersign.base.errors import AccountExists, InternalError, UnknownKey
from countersign.base.values import Mode, from_ns
from countersign.core.access.account import (
    add_account,
    all_accounts,
    create_account,
    read_account,
    rename,
)
from countersign.core.access.authenticate import keys_by_digest, touch_key
from countersign.core.access.key import KeyKind, Scope
from countersign.core.access.keys import (
    add_key,
    create_key,
    keys_of,
    lock_key,
    revoke_key,
    rotate_key,
)
from countersign.core.access.reach import DEPLOYMENT
from tests.storage import items
from tests.support.acts import done
from tests.support.databases import Run
from tests.unit.support import HandClock


def test_an_account_is_found_by_its_id_and_by_its_name(database: Database, run: Run) -> None:
    account, other = items.account("Ärger & Söhne"), items.account()
    run(database.write(add_account, account))
    run(database.write(add_account, other))
    assert run(database.read(read_account, account.id)) == account
    assert run(database.read(read_account, "Ärger & Söhne")) == account
    assert run(database.read(read_account, "ärger & söhne")) is None
    assert run(database.read(read_account, "nobody")) is None
    assert run(database.scan(all_accounts)) == [account, other]


def test_a_name_belongs_to_one_account(database: Database, run: Run) -> None:
    account = items.account()
    run(database.write(add_account, account))
    with pytest.raises(AccountExists, match="exists already"):
        run(database.write(add_account, items.account(account.name)))
    assert run(database.scan(all_accounts)) == [account]


def test_if_two_take_a_name_at_the_same_moment_one_is_refused(
    database: Database, url: URL, run: Run
) -> None:
    """As one after the other, even if the names differ only in case."""

    async def scenario() -> None:
        async with Database(url) as other:
            both = [items.access(each, HandClock()) for each in (database, other)]
            for number in range(20):
                names = f"Shop {number}", f"shop {number}"
                if number % 2:
                    acts = [create_account(*each) for each in zip(both, names, strict=True)]
                else:
                    made = [items.account() for _ in both]
                    for account in made:
                        await database.write(add_account, account)
                    ids = [account.id for account in made]
                    acts = [done(rename, *each) for each in zip(both, ids, names, strict=True)]
                ended = await asyncio.gather(*acts, return_exceptions=True)
                assert sorted(type(one).__name__ for one in ended) == ["Account", "AccountExists"]

    run(scenario())


@pytest.mark.parametrize(
    "different",
    [
        {},
        {"mode": Mode.LIVE, "expires_at": items.NOON, "last_used_at": items.NOON},
        {"kind": KeyKind.RESTRICTED, "scopes": frozenset({Scope.ACKS_READ, Scope.KEYS_MANAGE})},
        {"kind": KeyKind.RESTRICTED, "scopes": frozenset()},
    ],
)
def test_a_key_is_read_back_equal(
    database: Database, run: Run, different: dict[str, object]
) -> None:
    owner, digest = items.account(), items.some_bytes()
    key = items.api_key(owner, **different)  # type: ignore[arg-type]
    run(database.write(add_account, owner))
    run(database.write(add_key, key, digest))
    assert run(database.write(lock_key, key.id)) == key
    assert run(database.read_batched(keys_by_digest, digest)) == key
    assert run(database.scan(keys_of, *items.both_modes(owner.id))) == [key]


def test_an_unknown_key_is_none(database: Database, run: Run) -> None:
    with pytest.raises(UnknownKey):
        run(database.write(lock_key, "key_1"))
    assert run(database.read_batched(keys_by_digest, items.some_bytes())) is None
    assert run(database.scan(keys_of, DEPLOYMENT)) == []


def test_keys_are_listed_for_one_account_or_all_of_them(database: Database, run: Run) -> None:
    owner, stranger = items.account(), items.account()
    keys = [items.api_key(account) for account in (owner, stranger, owner)]
    for account in (owner, stranger):
        run(database.write(add_account, account))
    for key in keys:
        run(database.write(add_key, key, items.some_bytes()))
    assert run(database.scan(keys_of, DEPLOYMENT)) == keys
    assert run(database.scan(keys_of, *items.both_modes(owner.id))) == [keys[0], keys[2]]
    assert run(database.scan(keys_of, *items.both_modes(stranger.id))) == [keys[1]]


def test_a_key_needs_an_account_and_a_digest_of_its_own(database: Database, run: Run) -> None:
    owner, digest = items.account(), items.some_bytes()
    run(database.write(add_account, owner))
    run(database.write(add_key, items.api_key(owner), digest))
    with pytest.raises(InternalError):
        run(database.write(add_key, items.api_key(owner), digest))
    with pytest.raises(InternalError):
        run(database.write(add_key, items.api_key(items.account()), items.some_bytes()))


@pytest.mark.parametrize("expires_in", [None, 1, 100])
def test_rotation_writes_the_successor_and_lets_the_old_key_expire(
    database: Database, run: Run, expires_in: int | None
) -> None:
    owner, access = items.account(), items.access(database, HandClock())
    now = from_ns(access.clock.time_ns())
    run(database.write(add_account, owner))
    own_end = None if expires_in is None else now + expires_in * items.SECOND
    old = items.api_key(owner, expires_at=own_end)
    run(database.write(add_key, old, items.some_bytes()))
    new = run(done(rotate_key, access, old.id, 10 * items.SECOND))
    digest = access.secret.key_digest(new.token)
    assert run(database.read_batched(keys_by_digest, digest)) == new.key
    replaced = run(database.write(lock_key, old.id))
    # An expiry that comes earlier anyway is kept.
    assert replaced.expires_at == (own_end if expires_in == 1 else now + 10 * items.SECOND)


def test_rotation_happens_whole_or_not_at_all(database: Database, run: Run) -> None:
    owner, access = items.account(), items.access(database, HandClock(), bytes)
    run(database.write(add_account, owner))
    old = run(done(create_key, access, owner.id, Mode.TEST)).key
    with pytest.raises(InternalError):  # without random bytes the successor is the same key
        run(done(rotate_key, access, old.id, 10 * items.SECOND))
    assert run(database.scan(keys_of, DEPLOYMENT)) == [old]


def test_an_earlier_revocation_is_kept(database: Database, run: Run) -> None:
    owner, clock = items.account(), HandClock()
    access, now = items.access(database, clock), from_ns(clock.ns)
    key, untouched = items.api_key(owner), items.api_key(owner)
    run(database.write(add_account, owner))
    for made in (key, untouched):
        run(database.write(add_key, made, items.some_bytes()))
    run(done(revoke_key, access, key.id))
    clock.advance(1)
    run(done(revoke_key, access, key.id))
    revoked = run(database.write(lock_key, key.id))
    assert revoked.revoked_at == now
    assert run(database.write(lock_key, untouched.id)) == untouched


def test_the_last_use_of_a_key_is_noted(database: Database, run: Run) -> None:
    owner = items.account()
    key, untouched = items.api_key(owner), items.api_key(owner)
    run(database.write(add_account, owner))
    for made in (key, untouched):
        run(database.write(add_key, made, items.some_bytes()))
    run(database.write(touch_key, key.id, items.NOON + items.SECOND))
    used = run(database.write(lock_key, key.id))
    assert used.last_used_at == items.NOON + items.SECOND
    assert run(database.write(lock_key, untouched.id)) == untouched
