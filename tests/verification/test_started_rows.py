"""Stored started checks are erased with the buyer, follow a join, and end with their session."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from countersign.base.errors import ProviderSessionNotFound
from countersign.base.values import from_ns
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.buyers.model import CHECKS_KEPT, BuyerStatus
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.operate.housekeeping import delete_outdated
from tests.http.backstage import another_deployment
from tests.support import postgres
from tests.verification.conftest import each_engine
from tests.verification.inside import Stage, staged
from tests.verification.starting import (
    Starter,
    a_reference,
    counted,
    live_starter,
    one_document,
    starter_of,
    walk,
)

pytestmark = pytest.mark.long

AT_ONCE = 8


def erase(stage: Stage, cbid: str) -> None:
    """Erase a buyer, as `countersign erase` does."""

    async def work() -> None:
        privacy = stage.opened.privacy
        await erase_planned(
            privacy, await plan_erasure(privacy, cbid, DEPLOYMENT), ErasureReason.REQUEST
        )

    stage.do(work())


@each_engine
def test_an_erased_buyer_leaves_no_started_check(stage: Stage) -> None:
    """Nor one that is still polled; the session is unknown then."""
    vendor = live_starter(stage)
    made, check = vendor.verified()
    waiting = vendor.start()
    walk(waiting, "later")
    pending = vendor.ask(waiting)
    assert pending.status is BuyerStatus.PENDING
    for cbid in (check.cbid, pending.cbid):
        erase(stage, cbid or "")
    assert counted(stage, "started_checks", "pending_sessions", "buyers") == [0, 0, 0]
    assert vendor.found(made) == (None, 0)
    with pytest.raises(ProviderSessionNotFound):
        vendor.ask(made)


@each_engine
def test_a_started_check_follows_its_buyer_into_another(stage: Stage) -> None:
    """The document shows, once the session is decided, that the person was known already."""
    insider = stage.insider()
    vendor = starter_of(insider)
    with insider.playing.mood(one_document):
        _, known = vendor.verified()
        made = vendor.start()
        walk(made, "later")
        before = vendor.ask(made)
        assert before.status is BuyerStatus.PENDING
        assert before.cbid != known.cbid
        after = vendor.ask(made)
    assert (after.status, after.cbid) == (BuyerStatus.VERIFIED, known.cbid)
    assert vendor.found(made) == (after, 2)
    assert {row["cbid"] for row in stage.rows("SELECT cbid FROM started_checks")} == {known.cbid}


def test_checks_are_kept_while_something_refers_to_them(stage: Stage) -> None:
    """Then they are deleted in time; followed ones and those with a session stay."""
    vendor = live_starter(stage)
    vendor.verified()
    followed = vendor.start()
    database = stage.opened.access.database

    def tidy() -> int:
        now = from_ns(stage.clock.time_ns())
        stage.do(delete_outdated(database, now))
        return counted(stage, "started_checks")[0]

    stage.clock.now += CHECKS_KEPT
    assert tidy() == 2
    stage.clock.now += timedelta(seconds=1)
    assert tidy() == 1
    stage.wait(timedelta(0))  # it is given up now
    assert vendor.found(followed)[1] == 1
    assert tidy() == 0


@each_engine
def test_starts_and_questions_at_once_agree(stage: Stage) -> None:
    """One check, one buyer, one decision; no one gets an error."""
    vendor = live_starter(stage)
    first = vendor.start()
    reference = vendor.references[first.provider_session]

    async def starts() -> set[str]:
        made = await asyncio.gather(*(vendor.starting(reference) for _ in range(AT_ONCE)))
        return {one.provider_session for one in made}

    async def asks() -> set[str | None]:
        found = await asyncio.gather(*(vendor.asking(first, reference) for _ in range(AT_ONCE)))
        return {check.cbid for check in found}

    assert stage.do(starts()) == {first.provider_session}
    walk(first, "verified")
    assert len(stage.do(asks())) == 1
    assert vendor.found(first)[1] == 1
    assert counted(stage, "started_checks", "buyers", "pending_sessions") == [1, 1, 0]


@pytest.mark.postgres
@pytest.mark.both_engines
def test_two_servers_at_once_agree(
    postgres_server: postgres.PostgresServer, tmp_path: Path
) -> None:
    """On one database, in starting, asking and polling."""
    own = another_deployment(tmp_path / "data", postgres_server)
    with staged(own) as one, staged(own) as two, ThreadPoolExecutor(2) as threads:
        vendor = live_starter(one)
        both = [vendor, Starter(two, vendor.who, vendor.references)]
        for _ in range(5):
            reference = a_reference()
            made = list(threads.map(lambda v: v.start(reference), both))  # noqa: B023 - at once
            assert made[0].provider_session == made[1].provider_session
            walk(made[0], "verified")
            checks = list(threads.map(lambda v: v.ask(made[0]), both))  # noqa: B023 - at once
            assert {check.status for check in checks} == {BuyerStatus.VERIFIED}
            assert len({check.cbid for check in checks}) == 1
            assert vendor.found(made[0])[1] == 1
        assert counted(one, "started_checks", "buyers", "pending_sessions") == [5, 5, 0]
