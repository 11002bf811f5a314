"""Data whose retention period has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import Column, Connection, Row, Select, func, select, update

from countersign.base.db.schema import put_value
from countersign.base.db.statements import chunks
from countersign.base.db.tables import (
    accounts,
    acknowledgment_uses,
    buyers,
    clearances,
    disclosures,
    overrides,
    records,
    verification_evidence,
    verifications,
)
from countersign.base.loops import forever
from countersign.base.values import (
    ACKNOWLEDGMENT,
    BUYER,
    CLEARANCE,
    VERIFICATION,
    Mode,
    earliest_id,
    from_ms,
    from_ns,
    is_id,
    made_at_ms,
    to_ms,
)
from countersign.core.access.reach import DEPLOYMENT, Reach, mode_of_buyer
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.review import queue
from countersign.core.log.record import RecordType
from countersign.core.privacy import erase_sql as sql
from countersign.core.privacy.erase import destroy_copies, erase_as_planned, plan_erasure, refusal
from countersign.core.privacy.held import find_held
from countersign.core.privacy.holds import take_turn
from countersign.core.privacy.model import Due, ErasureReason, years_after
from countersign.core.privacy.person_sql import find_ties, identifiers_of
from countersign.core.privacy.requests import (
    ErasureOutcome,
    alone,
    carry_out_request,
    carry_out_waiting,
    requested,
)
from countersign.core.privacy.room import Privacy

RETAINED: Final = "retained_at"
"""Name of the deployment's value with the time of the last run that left nothing due."""
BUYERS_KEPT: Final = timedelta(days=365)
"""A buyer after the last check ended; a refused clearance without an acknowledgment."""
_PAGE: Final = 500
_PERIOD_SECONDS: Final = 3600.0
_PAUSE_SECONDS: Final = 0.02
_Way: TypeAlias = tuple[Select[Any], Callable[[Any], datetime | None]]
"""What may have ended, and when a row of it ends; None: not yet, or never."""


async def list_due(
    privacy: Privacy,
    reach: Reach,
    until: datetime | None = None,
    after: str = "",
    failed: dict[str, Exception] | None = None,
) -> AsyncIterator[Due]:
    """Records in reach past their retention, on hold or not.

    Acknowledgments, then refused clearances without one, then checks, each oldest first; then, for
    the deployment, buyers. `until`: due at that time; `after`: only those after this one. `failed`
    gets what cannot be read; without it, that is raised.
    """
    now = until or from_ns(privacy.access.clock.time_ns())
    kinds = [kind for kind in _WAYS if kind != BUYER or reach == DEPLOYMENT]
    begun = next((kind for kind in kinds if after.startswith(f"{kind}_")), ACKNOWLEDGMENT)
    for kind in kinds[kinds.index(begun) :]:
        # From the first of its kind: records of other kinds are not read.
        place: str | None = after if kind is begun else f"{kind}_"
        while place is not None:
            found, place = await privacy.access.database.scan(
                _due, privacy, now, failed, kind=kind, after=place, reach=reach
            )
            for due in found:
                yield due


async def run(privacy: Privacy) -> None:
    """Retain every hour, beside the requests of a server, until cancelled."""

    async def once() -> None:
        for failure in (await retain(privacy, pause=_PAUSE_SECONDS)).failed.values():
            raise failure

    await forever("retention", once, _PERIOD_SECONDS)


class Retained(NamedTuple):
    """What a run has done."""

    erased: list[str]
    requested: dict[str, ErasureOutcome]
    """By buyer who asked for it, how that went."""
    failed: dict[str, Exception]
    """By what could not be erased, why. A later run tries again."""


async def retain(privacy: Privacy, *, pause: float = 0) -> Retained:
    """Erase all that is due and not on hold, each in a transaction: a later run goes on.

    What fails stops nothing else, but then the promise is not kept. `pause`: seconds after each.
    """
    access, now = privacy.access, from_ns(privacy.access.clock.time_ns())
    outcomes, failed = dict[str, ErasureOutcome](), dict[str, Exception]()
    for some in chunks(await access.database.scan(_to_cut, now, failed)):
        with alone("whole responses", failed):
            await access.database.write(_cut, access.secret, some)
    erased = await carry_out_waiting(privacy, DEPLOYMENT, failed=failed)
    for one in await access.database.scan(requested, access.secret, DEPLOYMENT):
        with alone(one.cbid, failed):
            outcomes[one.cbid] = await carry_out_request(privacy, one.cbid, DEPLOYMENT)
    async for due in list_due(privacy, DEPLOYMENT, failed=failed):
        # Erased meanwhile, put on hold, or checked again: what is new is not in the plan.
        with alone(due.record_id, failed):
            plan = await plan_erasure(privacy, due.record_id, DEPLOYMENT)
            reason, there = ErasureReason.RETENTION, plan.records or plan.buyer
            if there and not await erase_as_planned(privacy, plan, reason, {}, details={}):
                erased.append(due.record_id)
        await asyncio.sleep(pause)
    await destroy_copies(access.database)
    if not failed:
        await access.database.write(put_value, RETAINED, str(to_ms(now)).encode())
    return Retained(erased, outcomes, failed)


def _to_cut(connection: Connection, now: datetime, failed: dict[str, Exception]) -> list[str]:
    """The checks with a whole response whose time is over, or that no review needs any more."""
    e, a = verification_evidence.c, accounts.c
    keeps = a.responses_until.is_not(None) & (a.responses_until > now)
    wanted = select(e.record_id, e.whole_until).join(accounts, a.id == e.account_id)
    wanted = wanted.where(e.whole_until.is_not(None), (e.whole_until <= now) | ~keeps)
    found = {row.record_id: row.whole_until for row in connection.execute(wanted)}
    waiting = {*found}
    with alone("the review queue", failed):
        waiting = {one.verification_id for m in Mode for one in queue(connection, DEPLOYMENT, m)}
    return [id_ for id_, end in found.items() if end <= now or id_ not in waiting]


def _cut(connection: Connection, secret: DeploymentSecret, ids: Sequence[str]) -> None:
    """Delete the whole responses of these checks, except those on hold."""
    take_turn(connection)
    e, held = verification_evidence.c, find_held(connection, secret, ids, DEPLOYMENT)
    own = update(verification_evidence).where(e.record_id.in_(ids), e.record_id.not_in([*held]))
    connection.execute(own.values(response=None, whole_until=None))
    sql.note_copies(connection, ids[0])


def _due(
    connection: Connection,
    privacy: Privacy,
    now: datetime,
    failed: dict[str, Exception] | None,
    *,
    kind: str,
    after: str,
    reach: Reach,
) -> tuple[Sequence[Due], str | None]:
    """What is due on the page after a record, and the record to continue after; None: the last."""
    (query, end_of), secret = _WAYS[kind](connection, privacy, now), privacy.access.secret
    id_: Column[str] = buyers.c.cbid if kind == BUYER else records.c.id
    query = query.where(reach.rows(id_.table), id_ > after).order_by(id_).limit(_PAGE)
    page, found = connection.execute(query).all(), list[tuple[str, str, datetime]]()
    for row in page:
        with alone(row[0], failed):
            if (end := end_of(row)) is not None and end <= now:
                found.append((row[0], row.account_id, end))
    held = find_held(connection, secret, [name for name, *_ in found], reach)
    due = [
        Due(record_id=name, account_id=of, retention_ended_at=end, hold=held.get(name, (None,))[0])
        for name, of, end in found
    ]
    return due, page[-1][0] if page else None


def _acknowledgments(connection: Connection, _: Privacy, now: datetime) -> _Way:
    """Those that still have disclosures and are old enough for the shortest period."""
    years = sql.find_retention_years(connection)
    oldest = earliest_id(ACKNOWLEDGMENT, to_ms(years_after(now, -min(years.values(), default=50))))
    found = _DISCLOSED.where(records.c.type == RecordType.ACKNOWLEDGMENT, records.c.id < oldest)
    return found, lambda row: sql.kept_until(row, years)


def _refusals(connection: Connection, _: Privacy, now: datetime) -> _Way:
    """Clearances of no acknowledgment: refused ones, and the first of an exempt order."""
    years = sql.find_retention_years(connection)
    c, oldest = clearances.c, earliest_id(CLEARANCE, to_ms(now - BUYERS_KEPT))
    # One that was erased, or has ended, is no order's any more.
    kept = sql.of_own(clearances) & c.ack_id.in_(select(disclosures.c.record_id))
    alone = (c.ack_id == c.id) | c.kid.is_(None) & ~kept
    overridden = c.id.in_(select(overrides.c.clearance_id)).label("overridden")
    found = _DISCLOSED.join(clearances, c.id == records.c.id).add_columns(c.kid, overridden)
    found = found.where(records.c.type == RecordType.CLEARANCE, records.c.id < oldest, alone)

    def end_of(row: Any) -> datetime | None:  # noqa: ANN401 - as in `_Way`
        if row.overridden:  # no notice is named: as long as any is kept
            return years_after(row.at, max(years.values())) if years else None
        return row.at + BUYERS_KEPT if row.kid is None else sql.kept_until(row, years)

    return found, end_of


def _evidence(_: Connection, privacy: Privacy, now: datetime) -> _Way:
    """Verifications with evidence past its retention."""
    v, kept = verifications.c, privacy.kept
    verified = v.status == BuyerStatus.VERIFIED
    found = sql.SELECT_ERASABLE.where(records.c.type == RecordType.VERIFICATION)
    found = found.add_columns(verified.label("verified")).join(verifications, v.id == records.c.id)
    found = found.join(verification_evidence, verification_evidence.c.record_id == v.id)
    ended = (verified & (v.at < now - kept.verified)) | (~verified & (v.at < now - kept.other))
    return found.where(ended), lambda row: row.at + (kept.verified if row.verified else kept.other)


def _buyers(connection: Connection, privacy: Privacy, now: datetime) -> _Way:
    """Buyers a year after their last check ended: with no order, evidence or hold.

    Of a revoked one, only until it was erased: then it has no check. A review that nobody decides
    ends the check a year later.
    """
    b, v, uses, old = buyers.c, verifications.c, acknowledgment_uses.c, now - BUYERS_KEPT
    e, other, secret = verification_evidence.c, buyers.alias(), privacy.access.secret
    person = select(other.c.cbid).where((other.c.cbid == b.cbid) | (other.c.same_as == b.cbid))
    person = person.correlate(buyers)
    shown = select(v.id).join(verification_evidence, e.record_id == v.id).where(v.cbid.in_(person))
    checked = select(func.max(v.at)).where(v.cbid == b.cbid).scalar_subquery()
    # Most orders are seen here, and no buyer of theirs is looked at any closer.
    used = select(uses.ack_id).where(uses.cbid == b.cbid).exists()

    def end_of(row: Row[*tuple[Any, ...]]) -> datetime | None:
        cbid, _, at = row
        ties = find_ties(connection, secret, identifiers_of(connection, cbid), DEPLOYMENT)
        ended = max([at or from_ms(0), *(from_ms(made_at_ms(tie.id)) for tie in ties)])
        held = refusal(connection, {}, cbid, DEPLOYMENT)
        if held or not all(is_id(VERIFICATION, tie.id) for tie in ties):
            return None
        waits = queue(connection, DEPLOYMENT, mode_of_buyer(cbid), cbid=cbid)
        return ended + BUYERS_KEPT * (2 if waits else 1)

    found = (
        select(b.cbid, b.account_id, b.expires_at)
        .where(b.same_as.is_(None), ~used)
        .where(b.expires_at.is_(None) | (b.expires_at < old), checked.is_(None) | (checked < old))
        .where((b.status != BuyerStatus.REVOKED) | checked.is_not(None), ~shown.exists())
    )
    return found, end_of


_DISCLOSED: Final = sql.SELECT_ERASABLE.join(disclosures, disclosures.c.record_id == records.c.id)
_WAYS: Final = {
    ACKNOWLEDGMENT: _acknowledgments,
    CLEARANCE: _refusals,
    VERIFICATION: _evidence,
    BUYER: _buyers,
}
