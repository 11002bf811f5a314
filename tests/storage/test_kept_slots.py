"""Kept responses are found on the embedded database, whatever level their slots have moved to."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from sqlalchemy import Connection, select, text

from countersign.base.db.database import Database
from countersign.base.db.tables import idempotency_keys, kept_slots
from countersign.base.errors import IdempotencyInProgress
from countersign.core.access.account import add_account
from countersign.core.access.idempotency import (
    _SQL,
    LIFETIME,
    IdempotencyEntry,
    keep_answers,
    kept_entries,
    replace_answer,
)
from countersign.operate import housekeeping
from tests.storage import items
from tests.support.databases import Run, on_sqlite

pytestmark = on_sqlite
TOGETHER = 32


def levels(connection: Connection) -> Counter[int]:
    return Counter(connection.execute(select(kept_slots.c.level)).scalars())


def forget(connection: Connection, slot: bytes) -> None:
    """As an erasure does it, which knows what the response is about."""
    connection.execute(idempotency_keys.delete().where(idempotency_keys.c.slot == slot))


def test_what_is_kept_is_found_and_nothing_else(database: Database, run: Run) -> None:
    """Among thousands, while some are erased, kept again, or replaced."""
    owner, drawn = items.account(), Random(1)
    run(database.write(add_account, owner))
    kept: dict[bytes, IdempotencyEntry] = {}
    gone: set[bytes] = set()
    highest = Counter[int]()
    for _ in range(120):
        new = [
            items.idempotency_entry(owner, slot=drawn.randbytes(32), at=items.NOON + items.SECOND)
            for _ in range(TOGETHER)
        ]
        run(database.write(keep_answers, new))
        kept |= {entry.slot: entry for entry in new}
        for slot in drawn.sample(sorted(kept), 2):
            run(database.write(forget, slot))
            del kept[slot]
            gone.add(slot)
        again = items.idempotency_entry(owner, slot=gone.pop())
        run(database.write(keep_answers, [again]))
        changed = items.idempotency_entry(owner, slot=drawn.choice(sorted(kept)))
        run(database.write(replace_answer, changed))
        kept |= {entry.slot: entry for entry in (again, changed)}
        highest |= run(database.read(levels))
    assert {*highest} == {0, 1, 2, 3}
    assert highest[0] < 2048, "level 0 is emptied after 256 on average"
    assert run(database.read(kept_entries, [*kept])) == [*kept.values()]
    assert run(database.read(kept_entries, [*gone])) == [None] * len(gone)


def test_a_slot_is_taken_at_every_level(database: Database, run: Run) -> None:
    """The second act on one key is undone, however long ago the first was."""
    owner = items.account()
    run(database.write(add_account, owner))
    first, *others = (items.idempotency_entry(owner) for _ in range(2))
    run(database.write(keep_answers, [first]))
    for level in range(4):

        def to_level(connection: Connection, level: int = level) -> None:
            connection.execute(text("UPDATE kept_slots SET level = :level"), {"level": level})

        run(database.write(to_level))
        with pytest.raises(IdempotencyInProgress):
            run(database.write(keep_answers, [*others, first]))
        assert run(database.read(kept_entries, [first.slot, others[0].slot])) == [first, None]


def test_two_kept_at_once_under_one_slot_are_a_conflict(database: Database, run: Run) -> None:
    """Whoever writes them, and even if nobody has looked first."""
    owner = items.account()
    run(database.write(add_account, owner))
    entry = items.idempotency_entry(owner)
    with pytest.raises(IdempotencyInProgress):
        run(database.write(keep_answers, [entry, entry]))
    assert run(database.read(kept_entries, [entry.slot])) == [None]


def test_expired_slots_go_with_their_responses(database: Database, run: Run) -> None:
    owner, drawn = items.account(), Random(2)
    run(database.write(add_account, owner))
    old, new = (
        [items.idempotency_entry(owner, slot=drawn.randbytes(32), at=at) for _ in range(1024)]
        for at in (items.NOON, items.NOON + items.SECOND)
    )
    run(database.write(keep_answers, old))
    run(database.write(keep_answers, new))
    while run(database.write(housekeeping.delete_expired, items.NOON + LIFETIME, 100)):
        pass
    assert run(database.read(levels)).total() == len(new)
    assert run(database.read(kept_entries, [entry.slot for entry in new])) == new


def test_a_look_up_reads_no_more_than_its_slots(database: Database, run: Run) -> None:
    """Also where all that is kept expires at the same time."""
    asked = _SQL["kept_responses_on_sqlite"].format("IN (x'00')")
    plan = text(f"EXPLAIN QUERY PLAN {asked}")
    steps = run(database.read(lambda connection: [row[3] for row in connection.execute(plan)]))
    index = "ix_idempotency_keys_expires_at_slot (expires_at=? AND slot>? AND slot<?)"
    assert steps == [
        "SEARCH k USING PRIMARY KEY (level=? AND slot=?)",
        f"SEARCH i USING INDEX {index}",
    ]


def test_a_slot_used_again_amid_housekeeping_is_found(database: Database, run: Run) -> None:
    """A chunk may end between the expired response and its place in the levels."""
    owner, drawn = items.account(), Random(1)
    run(database.write(add_account, owner))
    older = [
        items.idempotency_entry(owner, slot=b"\x80" + drawn.randbytes(31)) for _ in range(TOGETHER)
    ]
    lowest = bytes(7) + b"\x01" + drawn.randbytes(24)
    latest = items.idempotency_entry(owner, slot=lowest, at=items.NOON + items.SECOND)
    for entry in (*older, latest):
        run(database.write(keep_answers, [entry]))
    later = items.NOON + LIFETIME + 2 * items.SECOND
    run(database.write(housekeeping.delete_expired, later, TOGETHER))
    again = items.idempotency_entry(owner, slot=lowest, at=later)
    run(database.write(keep_answers, [again]))
    run(database.write(housekeeping.delete_expired, later, TOGETHER))
    assert run(database.read(kept_entries, [lowest])) == [again]
