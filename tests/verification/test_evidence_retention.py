"""`retention run`: evidence of verifications goes in its time, and buyers stay verified."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Engine, event

from countersign.base.errors import OnHold
from countersign.base.values import Mode, rfc3339
from countersign.core.access.reach import DEPLOYMENT, AccountReach
from countersign.core.buyers import admin
from countersign.core.buyers.model import BuyerStatus
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import Due, ErasureReason
from countersign.core.privacy.retention import list_due
from countersign.operate import bootstrap
from tests.support.engines import ENGINES, engine_server
from tests.support.holding import place_hold, release_hold
from tests.verification.conftest import each_engine
from tests.verification.desk import Desk, desk_at
from tests.verification.inside import Insider, Stage

DAY: Final = timedelta(days=1)
MS: Final = timedelta(milliseconds=1)
FAILED: Final = 7 * DAY
VERIFIED: Final = (100 + 20) * DAY
SETTINGS: Final = {
    "VERIFICATION_DAYS": "100",
    "EVIDENCE_DAYS": "20",
    "FAILED_EVIDENCE_DAYS": "7",
}
"""The same, as settings."""


@pytest.fixture
def tidy(stage: Stage) -> Stage:
    """Give a deployment that keeps evidence for as long as `FAILED` and `VERIFIED` say."""
    stage.clock.now = stage.clock.now.replace(microsecond=0)  # times are kept in milliseconds
    stage.restart(**SETTINGS)
    return stage


def insider(stage: Stage) -> Insider:
    """Make an account with rules that the deployment allows; its provider decides once."""
    decided_at = stage.clock.monotonic()
    stage.provider_seconds = lambda: decided_at
    return stage.insider(validity_days=100)


def due(stage: Stage) -> list[Due]:
    """The data that retention has made due."""

    async def listed(opened: bootstrap.Deployment) -> list[Due]:
        return [one async for one in list_due(opened.privacy, DEPLOYMENT)]

    return stage.do(listed(stage.opened))


def erase(stage: Stage, found: list[Due]) -> None:
    """Erase it, as `retention run` does."""

    async def work(opened: bootstrap.Deployment) -> None:
        for one in found:
            plan = await plan_erasure(opened.privacy, one.record_id, DEPLOYMENT)
            await erase_planned(opened.privacy, plan, ErasureReason.RETENTION)

    stage.do(work(stage.opened))


def verification_of(stage: Stage, cbid: str) -> str:
    """The one verification of a buyer."""
    [row] = stage.rows("SELECT id FROM verifications WHERE cbid = :cbid", cbid=cbid)
    found: str = row["id"]
    return found


def evidence_left(stage: Stage) -> set[str]:
    """The verifications that still have evidence, and the key to it."""
    query = (
        "SELECT e.record_id FROM verification_evidence e "
        "JOIN shred_keys k ON k.record_id = e.record_id"
    )
    return {row["record_id"] for row in stage.rows(query)}


@each_engine
def test_evidence_is_due_in_its_time_and_not_a_moment_before(tidy: Stage) -> None:
    """Evidence of failures is due early; that of successes, long after they stopped counting."""
    vendor, began = insider(tidy), tidy.clock.now
    verified = vendor.verify(vendor.part("verified")).cbid
    failed = vendor.verify(vendor.part("underage")).cbid
    undecided = vendor.verify(vendor.part("requires_input")).cbid
    early = {verification_of(tidy, cbid) for cbid in (failed, undecided)}
    late = verification_of(tidy, verified)
    ends = dict.fromkeys(early, began + FAILED)
    for moment, more in ((began + FAILED, {}), (began + VERIFIED, {late: began + VERIFIED})):
        tidy.clock.now = moment
        assert {one.record_id for one in due(tidy)} == (early if more else set())
        tidy.clock.now = moment + MS
        ends |= more
        assert {one.record_id: one.retention_ended_at for one in due(tidy)} == ends
    assert evidence_left(tidy) == early | {late}


@each_engine
def test_due_evidence_is_erased_and_the_buyers_stay_unchanged(tidy: Stage) -> None:
    """The evidence and the key to every copy of it; and it is due no more."""
    vendor, began = insider(tidy), tidy.clock.now
    session = vendor.part("verified")
    cbid = vendor.verify(session, "10001").cbid
    tidy.clock.now += DAY
    assert vendor.verify(session).view.status is BuyerStatus.VERIFIED
    answer = vendor.standing(cbid)
    tidy.clock.now = began + FAILED + DAY
    found = due(tidy)
    assert len(found) == 1
    erase(tidy, found)
    [left] = evidence_left(tidy)
    assert left != found[0].record_id
    assert due(tidy) == []
    assert vendor.standing(cbid) == answer
    assert answer.status is BuyerStatus.VERIFIED
    tidy.clock.now = began + VERIFIED + 2 * DAY
    assert vendor.standing(cbid).status is BuyerStatus.EXPIRED
    erase(tidy, due(tidy))
    assert evidence_left(tidy) == set()
    assert vendor.standing(cbid).status is BuyerStatus.EXPIRED
    shown = tidy.do(admin.show(tidy.opened.buyers, cbid))[0]
    assert shown.verified_at is not None
    # The session is still known as this buyer's.
    again = vendor.verify(session)
    assert (again.cbid, again.view.status) == (cbid, BuyerStatus.EXPIRED)


@each_engine
@pytest.mark.parametrize("on", ["account", "buyer", "verification"])
def test_a_hold_keeps_evidence_until_it_is_released(tidy: Stage, on: str) -> None:
    """It is listed with its hold; the hold keeps nothing else."""
    vendor, other = insider(tidy), insider(tidy)
    cbid = vendor.verify(vendor.part("verified")).cbid
    free = other.verify(other.part("verified", 1)).cbid
    own, others = verification_of(tidy, cbid), verification_of(tidy, free)
    subject = {"account": vendor.account_id, "buyer": cbid, "verification": own}[on]
    hold = tidy.do(place_hold(tidy.opened.privacy, subject, "case 7"))
    tidy.clock.now += VERIFIED + DAY
    found = {one.record_id: one for one in due(tidy)}
    assert {id_: one.hold for id_, one in found.items()} == {own: hold.id, others: None}
    with pytest.raises(OnHold):
        erase(tidy, [found[own]])
    erase(tidy, [found[others]])
    assert evidence_left(tidy) == {own}
    tidy.do(release_hold(tidy.opened.privacy, hold.id))
    [released] = due(tidy)
    assert (released.record_id, released.hold) == (own, None)
    erase(tidy, [released])
    assert evidence_left(tidy) == set()


def test_simulated_verifications_are_never_due(tidy: Stage) -> None:
    """They have no personal evidence."""
    vendor = insider(tidy)
    vendor.verify(vendor.part("verified"))
    records = len(tidy.rows("SELECT 1 FROM verifications"))
    tidy.execute("DELETE FROM verification_evidence")
    tidy.clock.now += VERIFIED + DAY
    assert due(tidy) == []
    assert len(tidy.rows("SELECT 1 FROM verifications")) == records


@pytest.mark.one_engine
def test_a_list_of_what_is_due_reads_records_of_its_kind_alone(tidy: Stage) -> None:
    """Of an account and of the deployment: not the history of all orders."""
    account, asked = insider(tidy).account_id, list[tuple[str, Any]]()

    def note(*given: Any) -> None:  # noqa: ANN401 - SQLAlchemy's
        asked.append((given[2], given[3]))

    async def listed(opened: bootstrap.Deployment) -> None:
        for reach in (DEPLOYMENT, AccountReach(account, Mode.LIVE)):
            assert [one async for one in list_due(opened.privacy, reach)] == []

    event.listen(Engine, "before_cursor_execute", note)
    tidy.do(listed(tidy.opened))
    event.remove(Engine, "before_cursor_execute", note)
    asked = [one for one in asked if "LEFT OUTER JOIN erasures" in one[0]]
    with tidy.engine.connect() as connection:
        plans = [connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {s}", v).all() for s, v in asked]
    steps = [next(step for *_, step in plan if " records USING" in step) for plan in plans]
    assert [step.partition(" (")[2] for step in steps] == [
        *("id>? AND id<?)", "id>? AND id<?)", "id>?)"),
        *["account_id=? AND mode=? AND type=? AND id>? AND id<?)"] * 2,
        "account_id=? AND mode=? AND type=? AND id>?)",
    ]
    assert [{"clr_", "ver_"} & {*values} for _, values in asked] == [set(), {"clr_"}, {"ver_"}] * 2


# --- the command -------------------------------------------------------------------------------


@pytest.fixture(params=ENGINES)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    """Give an operator's desk, on each engine."""
    with desk_at(tmp_path / "data", engine_server(request), **SETTINGS) as made:
        yield made


def test_the_command_lists_and_erases_due_evidence(desk: Desk) -> None:
    """Held evidence is listed and kept; evidence not due is not mentioned; `--dry-run` only lists.

    Commands use the real time: old data is verified with a slow clock.
    """
    stage, bench = desk.stage, desk.bench
    now = stage.clock.now
    stage.clock.now = began = now - FAILED - 2 * DAY
    vendor = insider(stage)
    verified = vendor.verify(vendor.part("verified")).cbid
    failed = verification_of(stage, vendor.verify(vendor.part("underage")).cbid)
    held_buyer = vendor.verify(vendor.part("birthday_tomorrow")).cbid
    held = verification_of(stage, held_buyer)
    hold = bench.read("holds", "place", held_buyer, "--reason", "case 7")["hold_id"]
    ended = rfc3339(began + FAILED)
    expected: list[dict[str, Any]] = [
        {"record_id": failed, "retention_ends_at": ended, "hold_id": None},
        {"record_id": held, "retention_ends_at": ended, "hold_id": hold},
    ]
    for options, erased in (("--dry-run",), []), (("--yes",), [failed]):
        answer = bench.read("retention", "run", *options)
        due = sorted(answer["due"], key=lambda one: str(one["hold_id"]))
        assert due == [{**one, "account_id": vendor.account_id} for one in expected]
        assert answer["erased"] == erased
    assert evidence_left(stage) == {held, verification_of(stage, verified)}
    plain = bench.run("retention", "run", "--yes")
    assert plain.stdout == f"{held}  ended {ended}  on hold: {hold}\n"
    assert plain.stderr == "1 are due, 1 of them on hold; 0 buyers have asked for it.\n"
    assert bench.read("buyers", "show", verified)["status"] == "verified"
    assert bench.read("buyers", "show", held_buyer)["status"] == "failed"
    [shown] = bench.read("buyers", "evidence", verified, "--reason", "case 7")["checks"]
    assert shown["content"] is not None
