"""Many calls share a transaction, and each gets its own outcome."""

import asyncio
from collections.abc import Sequence

import pytest
from sqlalchemy import Connection, text

from countersign.base.db.database import Database
from countersign.base.errors import (
    AccountExists,
    CountersignError,
    IdempotencyInProgress,
    InternalError,
    NoticeNotFound,
    Overloaded,
    RateLimited,
)
from countersign.base.values import Mode
from countersign.core.access.account import Account, add_account, all_accounts, read_account
from countersign.core.access.authenticate import keys_by_digest
from countersign.core.access.keys import add_key, lock_key
from countersign.core.buyers.model import ZIPS_PER_DAY
from tests.storage import items
from tests.storage.busy import in_one_batch
from tests.support.databases import Run


def test_calls_that_arrive_while_the_writer_is_busy_share_one_transaction(
    database: Database, run: Run
) -> None:
    accounts = [items.account() for _ in range(20)]
    # `in_one_batch` checks that there was one batch.
    outcomes = run(in_one_batch(database, [database.write(add_account, a) for a in accounts]))
    assert outcomes == [None] * 20
    assert set(accounts) <= set(run(database.scan(all_accounts)))


def test_an_act_that_raises_is_undone_alone(database: Database, run: Run) -> None:
    """Its writes are undone; those of others in the same transaction stay."""

    def refuse(connection: Connection, account: Account, refusal: CountersignError) -> None:
        add_account(connection, account)
        raise refusal

    before, missing, busy, after = (items.account() for _ in range(4))
    outcomes = run(
        in_one_batch(
            database,
            [
                database.write(add_account, before),
                # Raised by an act, it does not mean that another process writes.
                database.write(refuse, busy, Overloaded()),
                database.write(refuse, missing, NoticeNotFound()),
                database.write(add_account, after),
            ],
        )
    )
    assert [type(outcome) for outcome in outcomes] == [
        type(None), Overloaded, NoticeNotFound, type(None)
    ]  # fmt: skip
    stored = run(database.scan(all_accounts))
    assert {before, after} <= set(stored)
    assert not {missing, busy} & set(stored)


def test_a_bad_call_never_fails_its_neighbours(database: Database, run: Run) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    twice = items.acknowledgment(owner)
    slot = items.idempotency_entry(owner)
    run(items.add(database, twice))
    run(items.add(database, items.acknowledgment(owner, keep=slot)))

    good = [items.acknowledgment(owner) for _ in range(3)]
    good_account, good_key = items.account(), items.api_key(owner)
    outcomes = run(
        in_one_batch(
            database,
            [
                items.add(database, good[0]),
                items.add(database, twice),  # its id is there already
                database.write(add_account, good_account),
                database.write(add_account, items.account(owner.name)),  # its name is taken
                items.add(database, good[1]),
                items.add(database, items.acknowledgment(items.account())),  # no such account
                items.add(database, items.acknowledgment(owner, keep=slot)),  # its slot is taken
                database.write(add_key, good_key, b"digest"),
                items.verify(database, items.verification(owner, "cbid_test_1")),
                items.add(database, good[2]),
            ],
        )
    )
    assert [type(outcome).__name__ for outcome in outcomes] == [
        "NoneType",
        InternalError.__name__,
        "NoneType",
        AccountExists.__name__,
        "NoneType",
        InternalError.__name__,
        IdempotencyInProgress.__name__,
        "NoneType",
        "Buyer",
        "NoneType",
    ]
    stored = {found.ack_id for found in run(items.found(database, owner))}
    assert stored >= {new.id for new in good}
    assert len(stored) == 5
    assert run(database.read(read_account, good_account.id)) == good_account
    assert run(database.write(lock_key, good_key.id)) == good_key
    assert run(items.buyer_of(database, owner.id, Mode.TEST, "cbid_test_1")) == (outcomes[8], None)


def test_if_two_in_a_batch_have_one_id_one_is_stored_and_its_neighbours_are(
    database: Database, run: Run
) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    ack_id = items.identifier("ack")
    outcomes = run(
        in_one_batch(
            database,
            [
                items.add(database, items.acknowledgment(owner)),
                items.add(database, items.acknowledgment(owner, ack_id=ack_id)),
                items.add(database, items.acknowledgment(owner, ack_id=ack_id)),
                items.add(database, items.acknowledgment(owner)),
            ],
        )
    )
    assert [type(outcome) for outcome in outcomes] == [type(None)] * 2 + [
        InternalError,
        type(None),
    ]
    assert len(run(items.found(database, owner))) == 3


def test_if_two_in_a_batch_have_one_idempotency_slot_one_has_an_effect(
    database: Database, run: Run
) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    entry = items.idempotency_entry(owner)
    outcomes = run(
        in_one_batch(
            database,
            [
                items.add(database, items.acknowledgment(owner, keep=entry)),
                items.add(database, items.acknowledgment(owner, keep=entry)),
                items.verify(database, items.verification(owner, "cbid_test_1", keep=entry)),
            ],
        )
    )
    # Which one is the first is not promised: acknowledgments are prepared before.
    assert [type(outcome) for outcome in outcomes].count(IdempotencyInProgress) == 2
    found = run(items.found(database, owner))
    buyer = run(items.buyer_of(database, owner.id, Mode.TEST, "cbid_test_1"))
    assert len(found) + (buyer is not None) == 1
    assert run(items.kept(database, entry.slot)) == entry


def test_the_driver_logs_nothing_of_a_conflict(
    database: Database, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """Two with one key at the same moment are normal, and the driver's lines are not JSON."""
    owner = items.account()
    run(database.write(add_account, owner))
    entry = items.idempotency_entry(owner)
    both = [items.add(database, items.acknowledgment(owner, keep=entry)) for _ in range(2)]
    outcomes = run(in_one_batch(database, both))
    assert [type(outcome) for outcome in outcomes].count(IdempotencyInProgress) == 1
    assert not caplog.records


@pytest.mark.parametrize("same_body", [True, False], ids=["the same body", "another body"])
def test_if_two_acknowledgments_in_a_batch_have_one_key_one_is_stored(
    database: Database, run: Run, *, same_body: bool
) -> None:
    """The other is refused as in progress, and delays none of its neighbours."""
    owner = items.account()
    run(database.write(add_account, owner))
    first = items.idempotency_entry(owner)
    second = first if same_body else first._replace(fingerprint=items.some_bytes())
    both = [items.acknowledgment(owner, keep=keep) for keep in (first, second)]
    neighbours = [items.acknowledgment(owner) for _ in range(2)]
    batch = [neighbours[0], *both, neighbours[1]]
    outcomes = run(in_one_batch(database, [items.add(database, one) for one in batch]))
    assert outcomes[0] is outcomes[1] is outcomes[3] is None
    assert isinstance(outcomes[2], IdempotencyInProgress)
    assert outcomes[2].kept is None
    stored = {one.ack_id for one in run(items.found(database, owner))}
    assert stored == {one.id for one in (*neighbours, both[0])}
    assert run(items.kept(database, first.slot)) == first


def test_an_acknowledgment_finds_in_its_batch_the_stored_answer_of_its_key(
    database: Database, run: Run
) -> None:
    """It is not stored again; its neighbours are, in the same transaction."""
    owner = items.account()
    run(database.write(add_account, owner))
    used, unused = (items.idempotency_entry(owner) for _ in range(2))
    before = items.acknowledgment(owner, keep=used)
    run(items.add(database, before))
    other_body = used._replace(fingerprint=items.some_bytes())
    new = [items.acknowledgment(owner), items.acknowledgment(owner, keep=unused)]
    batch = [
        new[0],
        items.acknowledgment(owner, keep=used),
        items.acknowledgment(owner, keep=other_body),
        new[1],
    ]
    outcomes = run(in_one_batch(database, [items.add(database, one) for one in batch]))
    assert outcomes[0] is outcomes[3] is None
    assert [type(outcome) for outcome in outcomes[1:3]] == [IdempotencyInProgress] * 2
    assert [outcome.kept for outcome in outcomes[1:3]] == [used] * 2
    # Alone in a batch, too, where nothing is written.
    with pytest.raises(IdempotencyInProgress):
        run(items.add(database, items.acknowledgment(owner, keep=used)))
    stored = {one.ack_id for one in run(items.found(database, owner))}
    assert stored == {one.id for one in (before, *new)}
    assert [run(items.kept(database, one.slot)) for one in (used, unused)] == [used, unused]


def test_zip_codes_are_counted_across_one_batch(database: Database, run: Run) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    outcomes = run(
        in_one_batch(
            database,
            [
                items.verify(
                    database,
                    items.verification(
                        owner, f"cbid_test_{n}", subject_index=b"subject", zip_index=b"zip %d" % n
                    ),
                )
                for n in range(ZIPS_PER_DAY + 2)
            ],
        )
    )
    refused = [isinstance(outcome, RateLimited) for outcome in outcomes]
    assert refused == [False] * ZIPS_PER_DAY + [True] * 2
    assert run(items.buyer_of(database, owner.id, Mode.TEST, f"cbid_test_{ZIPS_PER_DAY}")) is None


def test_an_act_that_fails_for_a_reason_of_its_own_fails_alone(
    database: Database, run: Run
) -> None:
    def broken(connection: Connection, numbers: Sequence[int]) -> Sequence[int]:
        return [1 // number for number in numbers]

    def misspelt(connection: Connection, numbers: Sequence[int]) -> Sequence[int]:
        connection.execute(text("SELEKT 1"))
        return numbers

    account = items.account()
    outcomes = run(
        in_one_batch(
            database,
            [
                database.write_batched(broken, 1),
                database.write_batched(broken, 0),
                database.write_batched(misspelt, 1),
                database.write(add_account, account),
            ],
        )
    )
    assert outcomes[0] == 1
    assert [type(outcome) for outcome in outcomes[1:3]] == [InternalError, InternalError]
    assert outcomes[3] is None
    assert run(database.read(read_account, account.id)) == account


def test_reads_that_share_a_query_get_their_own_answers(database: Database, run: Run) -> None:
    owner, ask_for = items.account(), database.read_batched
    entry = items.idempotency_entry(owner)
    made = [(items.api_key(owner), items.some_bytes()) for _ in range(10)]

    async def ask() -> None:
        await database.write(add_account, owner)
        await asyncio.gather(*(database.write(add_key, key, digest) for key, digest in made))
        one = await items.verify(database, items.verification(owner, "cbid_test_1"))
        two = await items.verify(database, items.verification(owner, "cbid_test_2", keep=entry))
        answers = await asyncio.gather(
            *(ask_for(keys_by_digest, digest) for _, digest in made),
            *(ask_for(keys_by_digest, digest) for _, digest in made),
            ask_for(keys_by_digest, b"unknown"),
            items.buyer_of(database, owner.id, Mode.TEST, "cbid_test_2"),
            items.buyer_of(database, owner.id, Mode.TEST, "cbid_test_1"),
            items.buyer_of(database, owner.id, Mode.TEST, "cbid_test_3"),
            items.kept(database, entry.slot),
            items.kept(database, items.some_bytes()),
        )
        expected = [*(key for key, _ in made), *(key for key, _ in made), None]
        assert answers == [
            *expected,
            (two, None),
            (one, None),
            None,
            entry,
            None,
        ]

    run(ask())


def test_a_batch_waits_for_the_callers_of_the_last_one(database: Database, run: Run) -> None:
    """Otherwise half of the callers wait for a commit while the other half is collected.

    On a busy machine some callers are too late: one quiet round of five is enough.
    """

    async def caller(turns_before: int) -> None:
        for turns in [turns_before] + [5] * 40:
            # A response and the next request take some turns of the loop.
            for _ in range(turns):
                await asyncio.sleep(0)
            await database.write(_nothing)

    async def ask() -> float:
        batches_before, calls_before, _ = database.batches().get("write", (0, 0, 0))
        # The second half comes while the first one waits for its commit.
        await asyncio.gather(*(caller(6 * (number % 2)) for number in range(16)))
        batches, calls, _ = database.batches()["write"]
        return (calls - calls_before) / (batches - batches_before)

    assert any(run(ask()) > 10 for _ in range(5))


def test_no_call_waits_long_for_callers_that_do_not_return(database: Database, run: Run) -> None:
    async def ask() -> None:
        await asyncio.gather(*(database.write(_nothing) for _ in range(16)))
        await database.write(_nothing)

    run(ask())


def _nothing(connection: Connection) -> None:
    """Only its transaction counts."""
