"""The stores of accounts and keys."""

import pytest

from countersign.access.accounts_sql import Accounts, Keys
from countersign.access.key import KeyKind, Scope
from countersign.db.database import Database
from countersign.errors import AccountExists, InternalError
from countersign.mode import Mode
from tests.storage import items
from tests.storage.conftest import Run


def test_an_account_is_found_by_its_id_and_by_its_name(database: Database, run: Run) -> None:
    store, account, other = Accounts(database), items.account("Ärger & Söhne"), items.account()
    run(store.add(account))
    run(store.add(other))
    assert run(store.get(account.id)) == account
    assert run(store.get("Ärger & Söhne")) == account
    assert run(store.get("ärger & söhne")) is None
    assert run(store.get("nobody")) is None
    assert run(store.list()) == [account, other]


def test_a_name_belongs_to_one_account(database: Database, run: Run) -> None:
    store, account = Accounts(database), items.account()
    run(store.add(account))
    with pytest.raises(AccountExists, match="exists already"):
        run(store.add(items.account(account.name)))
    assert run(store.list()) == [account]


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
    owner, store, digest = items.account(), Keys(database), items.some_bytes()
    key = items.api_key(owner, **different)  # type: ignore[arg-type]
    run(Accounts(database).add(owner))
    run(store.add(key, digest))
    assert run(store.get(key.id)) == key
    assert run(store.by_digest(digest)) == key
    assert run(store.list(owner.id)) == [key]


def test_an_unknown_key_is_nothing(database: Database, run: Run) -> None:
    store = Keys(database)
    assert run(store.get("key_1")) is None
    assert run(store.by_digest(items.some_bytes())) is None
    assert run(store.list(None)) == []


def test_keys_are_listed_for_one_account_or_all_of_them(database: Database, run: Run) -> None:
    owner, stranger, store = items.account(), items.account(), Keys(database)
    keys = [items.api_key(account) for account in (owner, stranger, owner)]
    for account in (owner, stranger):
        run(Accounts(database).add(account))
    for key in keys:
        run(store.add(key, items.some_bytes()))
    assert run(store.list(None)) == keys
    assert run(store.list(owner.id)) == [keys[0], keys[2]]
    assert run(store.list(stranger.id)) == [keys[1]]


def test_a_key_needs_an_account_and_a_digest_of_its_own(database: Database, run: Run) -> None:
    owner, store, digest = items.account(), Keys(database), items.some_bytes()
    run(Accounts(database).add(owner))
    run(store.add(items.api_key(owner), digest))
    with pytest.raises(InternalError):
        run(store.add(items.api_key(owner), digest))
    with pytest.raises(InternalError):
        run(store.add(items.api_key(items.account()), items.some_bytes()))


@pytest.mark.parametrize("expires_in", [None, 1, 100])
def test_rotation_writes_the_successor_and_lets_the_old_key_expire(
    database: Database, run: Run, expires_in: int | None
) -> None:
    owner, store = items.account(), Keys(database)
    run(Accounts(database).add(owner))
    own_end = None if expires_in is None else items.NOON + expires_in * items.SECOND
    old = items.api_key(owner, expires_at=own_end)
    successor, digest = items.api_key(owner, replaces=old.id), items.some_bytes()
    run(store.add(old, items.some_bytes()))
    end = items.NOON + 10 * items.SECOND
    run(store.rotate(successor, digest, end))
    assert run(store.by_digest(digest)) == successor
    replaced = run(store.get(old.id))
    assert replaced is not None
    # An expiry that comes earlier anyway is kept.
    assert replaced.expires_at == (own_end if expires_in == 1 else end)


def test_rotation_happens_whole_or_not_at_all(database: Database, run: Run) -> None:
    owner, store, digest = items.account(), Keys(database), items.some_bytes()
    run(Accounts(database).add(owner))
    old = items.api_key(owner)
    run(store.add(old, digest))
    with pytest.raises(InternalError):
        run(store.rotate(items.api_key(owner, replaces=old.id), digest, items.NOON))
    assert run(store.list(None)) == [old]


def test_an_earlier_revocation_is_kept(database: Database, run: Run) -> None:
    owner, store = items.account(), Keys(database)
    key, untouched = items.api_key(owner), items.api_key(owner)
    run(Accounts(database).add(owner))
    for made in (key, untouched):
        run(store.add(made, items.some_bytes()))
    run(store.revoke(key.id, items.NOON))
    run(store.revoke(key.id, items.NOON + items.SECOND))
    revoked = run(store.get(key.id))
    assert revoked is not None
    assert revoked.revoked_at == items.NOON
    assert run(store.get(untouched.id)) == untouched


def test_the_last_use_of_a_key_is_noted(database: Database, run: Run) -> None:
    owner, store = items.account(), Keys(database)
    key, untouched = items.api_key(owner), items.api_key(owner)
    run(Accounts(database).add(owner))
    for made in (key, untouched):
        run(store.add(made, items.some_bytes()))
    run(store.touch(key.id, items.NOON + items.SECOND))
    used = run(store.get(key.id))
    assert used is not None
    assert used.last_used_at == items.NOON + items.SECOND
    assert run(store.get(untouched.id)) == untouched
