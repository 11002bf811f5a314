"""Stored responses are looked up by slot, and housekeeping deletes expired rows."""

from datetime import datetime

import pytest
from sqlalchemy import Connection, func, select

from countersign.base.db.database import Database
from countersign.base.db.schema import value_of
from countersign.base.db.tables import buyers, disclosures, records, verifications, zip_attempts
from countersign.base.values import Mode
from countersign.core.access.account import add_account
from countersign.core.access.idempotency import LIFETIME
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.buyers import sessions_sql
from countersign.core.buyers.model import MESSAGES_KEPT, ZIP_WINDOW
from countersign.core.privacy.erase import carry_out, destroy_copies
from countersign.core.privacy.model import RecordErasure
from countersign.core.vault.vault import COPIES_REMAIN
from countersign.operate import housekeeping
from tests.storage import items
from tests.support.databases import Run, on_sqlite


def counts(connection: Connection, _: None) -> dict[str, int]:
    tables = (records, disclosures, buyers, verifications, zip_attempts)
    return {
        table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in tables
    }


async def delete_expired(database: Database, now: datetime, limit: int = 100) -> int:
    return await database.write(housekeeping.delete_expired, now, limit)


def test_a_kept_answer_is_read_back_equal(database: Database, run: Run) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    entry = items.idempotency_entry(owner, Mode.LIVE)
    run(items.add(database, items.acknowledgment(owner, Mode.LIVE, keep=entry)))
    assert run(items.kept(database, entry.slot)) == entry
    assert run(items.kept(database, items.some_bytes())) is None


def test_only_expired_rows_are_deleted(database: Database, run: Run) -> None:
    owner, now = items.account(), items.NOON + 30 * ZIP_WINDOW
    run(database.write(add_account, owner))
    expired = items.idempotency_entry(owner, at=now - LIFETIME)
    fresh = items.idempotency_entry(owner, at=now - LIFETIME + items.SECOND)
    for entry in (expired, fresh):
        run(items.add(database, items.acknowledgment(owner, keep=entry)))
    for n, at in enumerate((now - ZIP_WINDOW, now - ZIP_WINDOW + items.SECOND)):
        new = items.verification(
            owner, f"cbid_test_{n}", at=at, subject_index=b"subject", zip_index=b"zip %d" % n
        )
        run(items.verify(database, new))

    assert run(delete_expired(database, now)) == 1
    assert run(items.kept(database, expired.slot)) is None
    assert run(items.kept(database, fresh.slot)) == fresh
    # Acts stay forever; only the count of ZIP codes goes.
    assert run(database.read(counts, None)) == {
        "records": 4,
        "disclosures": 2,
        "buyers": 2,
        "verifications": 2,
        "zip_attempts": 1,
    }
    assert run(delete_expired(database, now)) == 0


def test_housekeeping_deletes_a_little_at_a_time(database: Database, run: Run) -> None:
    owner = items.account()
    run(database.write(add_account, owner))
    for n in range(5):
        keep = items.idempotency_entry(owner)
        new = items.verification(
            owner, f"cbid_test_{n}", subject_index=b"subject", zip_index=b"zip %d" % n, keep=keep
        )
        run(items.verify(database, new))
    later = items.NOON + LIFETIME + ZIP_WINDOW
    deleted = [run(delete_expired(database, later, 2)) for _ in range(4)]
    assert deleted == [2, 2, 1, 0]
    assert run(database.read(counts, None))["zip_attempts"] == 0


def test_a_message_of_a_provider_is_remembered_for_its_time(database: Database, run: Run) -> None:
    """Acted on once as long as it is remembered; the table does not grow forever."""
    owner = items.account()
    run(database.write(add_account, owner))

    def hurry(message: bytes, at: datetime) -> bool:
        return run(
            database.write(sessions_sql.hurry, owner.id, Mode.LIVE, b"session", message, at, None)
        )

    now = items.NOON + 2 * MESSAGES_KEPT
    assert hurry(b"old", now - MESSAGES_KEPT)
    assert hurry(b"young", now - MESSAGES_KEPT + items.SECOND)
    assert run(delete_expired(database, now)) == 1
    assert hurry(b"old", now)
    assert not hurry(b"young", now)


@on_sqlite
def test_data_erased_while_the_log_is_emptied_may_still_be_in_it(
    database: Database, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another command erased after the log was empty: that its copies remain stays noted."""
    owner = items.account()
    run(database.write(add_account, owner))
    emptied = database.empty_log

    async def erase() -> None:
        part = RecordErasure([items.identifier("ack")], items.fact(owner))
        secret = DeploymentSecret(bytes(range(32)))
        await database.write(carry_out, secret, items.JOURNAL, [part], DEPLOYMENT)

    async def then_erased() -> bool:
        done = await emptied()
        await erase()
        return done

    run(erase())
    with monkeypatch.context() as patch:
        patch.setattr(database, "empty_log", then_erased)
        assert run(destroy_copies(database))
    assert run(database.read(value_of, COPIES_REMAIN)) is not None
    assert run(destroy_copies(database))
    assert run(database.read(value_of, COPIES_REMAIN)) is None
