"""The store of acknowledgments keeps what it was given, for one account and one mode."""

from datetime import timedelta

import pytest

from countersign.access.account import add_account
from countersign.access.idempotency import kept_entries
from countersign.acknowledgments.model import NewAcknowledgment, StoredAcknowledgment
from countersign.acknowledgments.sql import Acknowledgments
from countersign.db.database import Database
from countersign.errors import IdempotencyInProgress
from countersign.mode import Mode
from tests.storage import items
from tests.storage.conftest import Run


def stored(new: NewAcknowledgment) -> StoredAcknowledgment:
    record = new.record
    assert record.account_id is not None
    assert record.disclosures is not None
    return StoredAcknowledgment(
        ack_id=record.id,
        account_id=record.account_id,
        mode=record.mode,
        accepted_at=record.at,
        record=record.body,
        payload=record.disclosures.payload,
        shred_key=record.disclosures.shred_key,
        sealed=None,
        erased_at=None,
    )


def test_what_is_written_is_read_back_equal(database: Database, run: Run) -> None:
    owner, store = items.account(), Acknowledgments(database, items.JOURNAL)
    run(database.write(add_account, owner))
    keep = items.idempotency_entry(owner, Mode.LIVE)
    new = items.acknowledgment(
        owner,
        Mode.LIVE,
        at=items.NOON + timedelta(milliseconds=789),
        session_index=items.some_bytes(16),
        cbid_index=items.some_bytes(16),
        keep=keep,
    )
    run(store.add(new, list))
    assert run(store.get(owner.id, Mode.LIVE, new.receipt.ack_id)) == stored(new)
    assert run(store.find(items.everything(owner, Mode.LIVE))) == [stored(new)]
    assert run(database.read_batched(kept_entries, keep.slot)) == keep


def test_accounts_and_modes_are_kept_apart(database: Database, run: Run) -> None:
    owner, stranger, store = (
        items.account(),
        items.account(),
        Acknowledgments(database, items.JOURNAL),
    )
    for account in (owner, stranger):
        run(database.write(add_account, account))
    index = items.some_bytes(16)
    own = {
        (account.id, mode): items.acknowledgment(account, mode, session_index=index)
        for account in (owner, stranger)
        for mode in Mode
    }
    for new in own.values():
        run(store.add(new, list))
    for (account_id, mode), new in own.items():
        for other in own:
            found = run(store.get(*other, new.receipt.ack_id))
            assert (found is not None) == (other == (account_id, mode))
    for account in (owner, stranger):
        for mode in Mode:
            expected = [stored(own[account.id, mode])]
            assert run(store.find(items.everything(account, mode))) == expected
            narrowed = items.everything(account, mode, session_index=index)
            assert run(store.find(narrowed)) == expected


def test_an_unknown_acknowledgment_is_nothing(database: Database, run: Run) -> None:
    store = Acknowledgments(database, items.JOURNAL)
    assert run(store.get("acct_1", Mode.TEST, items.identifier("ack"))) is None
    assert run(store.find(items.everything(items.account()))) == []


def test_a_list_is_newest_first_and_goes_on_where_it_stopped(database: Database, run: Run) -> None:
    owner, store = items.account(), Acknowledgments(database, items.JOURNAL)
    run(database.write(add_account, owner))
    made = [items.acknowledgment(owner, at=items.NOON + n * items.SECOND) for n in range(5)]
    for new in made:
        run(store.add(new, list))
    newest_first = [stored(new) for new in reversed(made)]
    assert run(store.find(items.everything(owner))) == newest_first
    page = run(store.find(items.everything(owner, limit=2)))
    assert page == newest_first[:2]
    rest = run(store.find(items.everything(owner, older_than=page[-1].ack_id)))
    assert rest == newest_first[2:]


def test_a_list_is_narrowed_by_session_buyer_notice_and_time(database: Database, run: Run) -> None:
    owner, store = items.account(), Acknowledgments(database, items.JOURNAL)
    run(database.write(add_account, owner))
    session, cbid = items.some_bytes(16), items.some_bytes(16)
    made = [
        items.acknowledgment(owner, at=items.NOON),
        items.acknowledgment(owner, at=items.NOON + items.SECOND, session_index=session),
        items.acknowledgment(owner, at=items.NOON + 2 * items.SECOND, cbid_index=cbid),
        items.acknowledgment(owner, at=items.NOON + 3 * items.SECOND, notice_id="another"),
        items.acknowledgment(
            owner, at=items.NOON + 4 * items.SECOND, session_index=session, cbid_index=cbid
        ),
    ]
    for new in made:
        run(store.add(new, list))

    def found(**narrowed: object) -> list[int]:
        ids = [new.receipt.ack_id for new in made]
        return [
            ids.index(a.ack_id)
            for a in run(store.find(items.everything(owner, Mode.TEST, **narrowed)))
        ]

    assert found(session_index=session) == [4, 1]
    assert found(cbid_index=cbid) == [4, 2]
    assert found(session_index=session, cbid_index=cbid) == [4]
    assert found(session_index=items.some_bytes(16)) == []
    assert found(notice_id="another") == [3]
    # From is inclusive, until is exclusive: neighbouring ranges neither overlap nor leave a gap.
    assert found(accepted_after=items.NOON + 2 * items.SECOND) == [4, 3, 2]
    assert found(accepted_before=items.NOON + 2 * items.SECOND) == [1, 0]
    assert found(session_index=session, accepted_before=items.NOON + 2 * items.SECOND) == [1]


def test_an_acknowledgment_whose_answer_cannot_be_kept_is_not_stored(
    database: Database, run: Run
) -> None:
    owner, store = items.account(), Acknowledgments(database, items.JOURNAL)
    run(database.write(add_account, owner))
    entry = items.idempotency_entry(owner)
    run(store.add(items.acknowledgment(owner, keep=entry), list))
    late = items.acknowledgment(owner, keep=entry)
    with pytest.raises(IdempotencyInProgress):
        run(store.add(late, list))
    assert run(store.get(owner.id, Mode.TEST, late.receipt.ack_id)) is None


def test_an_expired_answer_makes_place_for_a_new_one(database: Database, run: Run) -> None:
    owner, store = items.account(), Acknowledgments(database, items.JOURNAL)
    run(database.write(add_account, owner))
    old = items.idempotency_entry(owner)
    run(store.add(items.acknowledgment(owner, keep=old), list))
    new = items.idempotency_entry(owner, slot=old.slot, at=old.expires_at)
    run(store.add(items.acknowledgment(owner, keep=new), list))
    assert run(database.read_batched(kept_entries, old.slot)) == new
