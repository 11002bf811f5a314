"""The store of buyers: verifications, their effect on a buyer, and the count of ZIP codes."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import URL, Connection, func, select

from countersign.base.db.database import Database
from countersign.base.db.tables import verifications
from countersign.base.errors import IdempotencyInProgress, RateLimited
from countersign.base.values import Mode, Reason
from countersign.core.access.account import Account, add_account
from countersign.core.buyers.model import (
    ZIP_WINDOW,
    ZIPS_PER_DAY,
    Buyer,
    BuyerStatus,
)
from tests.storage import items
from tests.support.databases import Run

CBID = "cbid_test_1"


def verifications_of(connection: Connection, cbid: str) -> int:
    rows = select(func.count()).select_from(verifications).where(verifications.c.cbid == cbid)
    return connection.execute(rows).scalar_one()


def buyer(owner: Account, status: BuyerStatus, *reasons: Reason, mode: Mode = Mode.TEST) -> Buyer:
    known = status is not BuyerStatus.PENDING
    return Buyer(
        cbid=CBID,
        account_id=owner.id,
        mode=mode,
        status=status,
        reasons=reasons,
        verified_at=items.NOON if known else None,
        expires_at=items.NOON + items.SECOND if known else None,
        simulated=status is not BuyerStatus.VERIFIED,
    )


@pytest.mark.parametrize("status", list(BuyerStatus))
def test_a_buyer_is_read_back_as_decided(database: Database, run: Run, status: BuyerStatus) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    reasons = tuple(Reason) if status is BuyerStatus.FAILED else ()
    decided = buyer(owner, status, *reasons, mode=Mode.LIVE)
    entry = items.idempotency_entry(owner, Mode.LIVE)
    new = items.verification(owner, CBID, Mode.LIVE, decide=lambda _: decided, keep=entry)
    assert run(items.verify(database, new)) == decided
    assert run(items.buyer_of(database, owner.id, Mode.LIVE, CBID)) == (decided, None)
    assert run(items.kept(database, entry.slot)) == entry
    assert run(database.read(verifications_of, CBID)) == 1


def test_a_buyer_is_found_in_its_own_mode_only(database: Database, run: Run) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    run(items.verify(database, items.verification(owner, CBID, Mode.TEST)))
    assert run(items.buyer_of(database, owner.id, Mode.TEST, CBID)) is not None
    assert run(items.buyer_of(database, owner.id, Mode.LIVE, CBID)) is None
    assert run(items.buyer_of(database, owner.id, Mode.TEST, "cbid_test_unknown")) is None


def test_a_later_verification_is_decided_from_the_stored_buyer(
    database: Database, run: Run
) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    first = run(items.verify(database, items.verification(owner, CBID, status=BuyerStatus.PENDING)))
    seen: list[Buyer | None] = []

    def decide(known: Buyer | None) -> Buyer:
        seen.append(known)
        return buyer(owner, BuyerStatus.FAILED, Reason.ZIP_MISMATCH)

    second = run(items.verify(database, items.verification(owner, CBID, decide=decide)))
    assert seen == [first]
    assert run(items.buyer_of(database, owner.id, Mode.TEST, CBID)) == (second, None)
    assert second.reasons == (Reason.ZIP_MISMATCH,)
    assert run(database.read(verifications_of, CBID)) == 2


def test_a_verification_that_changes_nothing_writes_nothing(database: Database, run: Run) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    first = run(items.verify(database, items.verification(owner, CBID)))
    again = items.verification(owner, CBID, at=items.NOON + items.SECOND)
    assert run(items.verify(database, again)) == first
    assert run(database.read(verifications_of, CBID)) == 1


def test_a_verification_whose_answer_cannot_be_stored_is_not_stored(
    database: Database, run: Run
) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    entry = items.idempotency_entry(owner)
    run(items.verify(database, items.verification(owner, CBID, keep=entry)))
    with pytest.raises(IdempotencyInProgress):
        run(items.verify(database, items.verification(owner, "cbid_test_2", keep=entry)))
    assert run(items.buyer_of(database, owner.id, Mode.TEST, "cbid_test_2")) is None
    assert run(database.read(verifications_of, "cbid_test_2")) == 0


class Guesser:
    """Tries ZIP codes for buyers, one verification each."""

    def __init__(self, run: Run, database: Database) -> None:
        self._run = run
        self._database = database
        self.accounts = [items.account(), items.account()]
        for account in self.accounts:
            run(database.write(add_account, account))

    def tries(
        self,
        zip_index: bytes,
        *,
        subject: bytes | None = b"subject",
        account: int = 0,
        mode: Mode = Mode.TEST,
        after: timedelta = timedelta(),
    ) -> bool:
        """Whether this ZIP code was let through."""
        new = items.verification(
            self.accounts[account],
            items.identifier("cbid_test"),
            mode,
            subject_index=subject,
            zip_index=zip_index,
            at=items.NOON + after,
        )
        try:
            self._run(items.verify(self._database, new))
        except RateLimited:
            return False
        return True


@pytest.fixture
def guesser(run: Run, database: Database) -> Guesser:
    return Guesser(run, database)


def test_a_sixth_zip_code_for_one_buyer_is_refused(guesser: Guesser) -> None:
    zips = [b"zip %d" % n for n in range(ZIPS_PER_DAY + 1)]
    assert [guesser.tries(z) for z in zips] == [True] * ZIPS_PER_DAY + [False]
    # Tried ones may be tried again; no others may.
    assert [guesser.tries(z) for z in zips] == [True] * ZIPS_PER_DAY + [False]


def test_zip_codes_are_counted_per_account_mode_and_buyer(guesser: Guesser) -> None:
    for n in range(ZIPS_PER_DAY):
        assert guesser.tries(b"zip %d" % n)
    assert not guesser.tries(b"one more")
    assert guesser.tries(b"one more", subject=b"another buyer")
    assert guesser.tries(b"one more", account=1)
    assert guesser.tries(b"one more", mode=Mode.LIVE)
    assert guesser.tries(b"one more", subject=None)


def test_a_zip_code_stops_counting_after_a_day(guesser: Guesser) -> None:
    for n in range(ZIPS_PER_DAY):
        assert guesser.tries(b"zip %d" % n, after=n * items.SECOND)
    assert not guesser.tries(b"one more", after=ZIP_WINDOW - items.SECOND)
    assert guesser.tries(b"one more", after=ZIP_WINDOW)
    assert not guesser.tries(b"and another", after=ZIP_WINDOW)


def test_a_refused_zip_code_writes_nothing(guesser: Guesser, run: Run, database: Database) -> None:
    for n in range(ZIPS_PER_DAY):
        assert guesser.tries(b"zip %d" % n)
    entry = items.idempotency_entry(guesser.accounts[0])
    new = items.verification(
        guesser.accounts[0], CBID, subject_index=b"subject", zip_index=b"one more", keep=entry
    )
    with pytest.raises(RateLimited) as refusal:
        run(items.verify(database, new))
    # The first ZIP code was tried at the same moment: it stops counting a day later.
    assert 0 <= refusal.value.retry_after - ZIP_WINDOW.total_seconds() <= 1
    assert run(items.buyer_of(database, entry.account_id, Mode.TEST, CBID)) is None
    found = run(items.kept(database, entry.slot))
    assert found is None


def test_zip_codes_are_counted_once_over_several_servers(
    url: URL, run: Run, guesser: Guesser
) -> None:
    """No one gets five guesses at each of them by concurrent requests."""

    async def guess(subject: bytes) -> int:
        async with Database(url) as one, Database(url) as two, Database(url) as three:
            servers = [one, two, three]
            tried = [
                items.verify(
                    servers[number % len(servers)],
                    items.verification(
                        guesser.accounts[0],
                        items.identifier("cbid_test"),
                        subject_index=subject,
                        zip_index=b"zip %d" % number,
                    ),
                )
                for number in range(4 * ZIPS_PER_DAY)
            ]
            answers = await asyncio.gather(*tried, return_exceptions=True)
        assert {type(answer) for answer in answers} == {Buyer, RateLimited}
        return sum(isinstance(answer, Buyer) for answer in answers)

    assert [run(guess(items.some_bytes())) for _ in range(4)] == [ZIPS_PER_DAY] * 4
