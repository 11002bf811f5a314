"""The database of acknowledgments stores them unchanged, for one account and one mode."""

from datetime import timedelta
from typing import Any

import pytest

from countersign.base.db.database import Database
from countersign.base.errors import IdempotencyInProgress
from countersign.base.values import Mode, from_ms
from countersign.core.access.account import add_account
from countersign.core.acknowledgments import find
from countersign.core.acknowledgments.make import NewAcknowledgment
from countersign.core.acknowledgments.model import StoredAcknowledgment
from tests.storage import items
from tests.support.databases import Run


def stored(record: NewAcknowledgment) -> StoredAcknowledgment:
    return StoredAcknowledgment(
        ack_id=record.id,
        account_id=record.account_id,
        mode=record.mode,
        accepted_at=record.at,
        record=record.body,
        payload=record.payload,
        shred_key=record.shred_key,
        origin=None,
        leaf_index=None,
        erased_at=None,
        clearance_id=None,
    )


def test_written_rows_read_back_equal(database: Database, run: Run) -> None:
    owner = items.account()
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
    run(items.add(database, new))
    assert run(database.read(find.get, items.principal(owner, Mode.LIVE), new.id)) == stored(new)
    assert run(items.found(database, owner, Mode.LIVE)) == [stored(new)]
    assert run(items.kept(database, keep.slot)) == keep


def test_accounts_and_modes_are_kept_apart(database: Database, run: Run) -> None:
    owner, stranger = items.account(), items.account()
    for account in (owner, stranger):
        run(database.write(add_account, account))
    index = items.some_bytes(16)
    own = {
        (account.id, mode): items.acknowledgment(account, mode, session_index=index)
        for account in (owner, stranger)
        for mode in Mode
    }
    for new in own.values():
        run(items.add(database, new))
    for (account_id, mode), new in own.items():
        for other in own:
            who = items.principal(owner if other[0] == owner.id else stranger, other[1])
            found = run(database.read(find.get, who, new.id))
            assert (found is not None) == (other == (account_id, mode))
    for account in (owner, stranger):
        for mode in Mode:
            expected = [stored(own[account.id, mode])]
            assert run(items.found(database, account, mode)) == expected
            assert run(items.found(database, account, mode, session_index=index)) == expected


def test_an_unknown_acknowledgment_is_none(database: Database, run: Run) -> None:
    owner = items.account()
    assert run(database.read(find.get, items.principal(owner), items.identifier("ack"))) is None
    assert run(items.found(database, owner)) == []


def test_a_list_is_newest_first_and_continues_where_it_stopped(
    database: Database, run: Run
) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    made = [items.acknowledgment(owner, at=items.NOON + n * items.SECOND) for n in range(5)]
    for new in made:
        run(items.add(database, new))
    newest_first = [stored(new) for new in reversed(made)]
    assert run(items.found(database, owner)) == newest_first
    page = run(items.found(database, owner, limit=2))
    assert page == newest_first[:2]
    rest = run(items.found(database, owner, after=page[-1].ack_id))
    assert rest == newest_first[2:]


def test_a_list_is_narrowed_by_session_buyer_order_notice_and_time(
    database: Database, run: Run
) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    session, cbid, order = (items.some_bytes(16) for _ in range(3))
    made = [
        items.acknowledgment(owner, at=items.NOON, reference_index=order),
        items.acknowledgment(owner, at=items.NOON + items.SECOND, session_index=session),
        items.acknowledgment(owner, at=items.NOON + 2 * items.SECOND, cbid_index=cbid),
        items.acknowledgment(owner, at=items.NOON + 3 * items.SECOND, notice_id="another"),
        items.acknowledgment(
            owner,
            at=items.NOON + 4 * items.SECOND,
            session_index=session,
            cbid_index=cbid,
            reference_index=order,
        ),
    ]
    for new in made:
        run(items.add(database, new))

    def found(**narrowed: Any) -> list[int]:  # noqa: ANN401 - the fields of a search
        ids = [new.id for new in made]
        return [
            ids.index(a.ack_id) for a in run(items.found(database, owner, Mode.TEST, **narrowed))
        ]

    assert found(session_index=session) == [4, 1]
    assert found(cbid_index=cbid) == [4, 2]
    assert found(session_index=session, cbid_index=cbid) == [4]
    assert found(reference_index=order) == [4, 0]
    assert found(reference_index=order, cbid_index=cbid) == [4]
    assert found(session_index=items.some_bytes(16)) == []
    assert found(notice_id="another") == [3]
    # From is inclusive, until is exclusive: neighbouring ranges neither overlap nor leave a gap.
    assert found(accepted_after=items.NOON + 2 * items.SECOND) == [4, 3, 2]
    assert found(accepted_before=items.NOON + 2 * items.SECOND) == [1, 0]
    assert found(session_index=session, accepted_before=items.NOON + 2 * items.SECOND) == [1]


def test_an_acknowledgment_whose_answer_cannot_be_stored_is_not_stored(
    database: Database, run: Run
) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    entry = items.idempotency_entry(owner)
    run(items.add(database, items.acknowledgment(owner, keep=entry)))
    late = items.acknowledgment(owner, keep=entry)
    with pytest.raises(IdempotencyInProgress):
        run(items.add(database, late))
    assert run(database.read(find.get, items.principal(owner, Mode.TEST), late.id)) is None


def test_an_expired_answer_makes_place_for_a_new_one(database: Database, run: Run) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    old = items.idempotency_entry(owner)
    run(items.add(database, items.acknowledgment(owner, keep=old)))
    new = items.idempotency_entry(owner, slot=old.slot, at=from_ms(old.expires_at))
    run(items.add(database, items.acknowledgment(owner, keep=new)))
    assert run(items.kept(database, old.slot)) == new
