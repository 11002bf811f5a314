"""Data whose retention period has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypeAlias

from sqlalchemy import ColumnElement, Connection, Select, func, select, update

from countersign.base.db.schema import put_value
from countersign.base.db.statements import chunks, rows
from countersign.base.db.tables import (
    accounts,
    acknowledgment_uses,
    buyers,
    clearances,
    disclosures,
    records,
    verification_evidence,
    verifications,
)
from countersign.base.errors import OnHold, UnknownSubject
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
from countersign.core.access.reach import DEPLOYMENT, AccountReach, Reach
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.review import queue
from countersign.core.log.record import RecordType
from countersign.core.privacy import erase_sql as sql
from countersign.core.privacy.erase import (
    destroy_copies,
    erase_as_planned,
    plan_erasure,
    refusal,
)
from countersign.core.privacy.held import find_held
from countersign.core.privacy.model import Due, Erasable, ErasureReason, years_after
from countersign.core.privacy.person_sql import find_ties, identifiers_of
from countersign.core.privacy.requests import (
    ErasureOutcome,
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
_Page: TypeAlias = Sequence[tuple[str, str, datetime | None]]
"""Identifiers, each with the account and when its retention ends; None: not yet, or never."""


async def list_due(
    privacy: Privacy, reach: Reach, until: datetime | None = None, after: str = ""
) -> AsyncIterator[Due]:
    """Records in reach past their retention, on hold or not.

    Acknowledgments, then refused clearances without one, then checks, each oldest first; then, for
    the deployment, buyers. `until`: due at that time; `after`: only those after this one.
    """
    now = until or from_ns(privacy.access.clock.time_ns())
    begun = next((kind for kind in _KINDS if after.startswith(f"{kind}_")), ACKNOWLEDGMENT)
    for kind in _KINDS[_KINDS.index(begun) :]:
        place: str | None = after if kind is begun else ""
        while place is not None:
            found, place = await privacy.access.database.scan(
                _due, privacy, now, kind=kind, after=place, reach=reach
            )
            for due in found:
                yield due


async def run(privacy: Privacy) -> None:
    """Retain every hour, beside the requests of a server, until cancelled."""
    await forever("retention", partial(retain, privacy, pause=_PAUSE_SECONDS), _PERIOD_SECONDS)


async def retain(
    privacy: Privacy, *, pause: float = 0
) -> tuple[list[str], dict[str, ErasureOutcome]]:
    """Erase all that is due and not on hold, each in a transaction: a later run goes on.

    `pause`: seconds after each. Returns what was erased, and of the buyers who asked for it, how
    that went.
    """
    access, now = privacy.access, from_ns(privacy.access.clock.time_ns())
    erased, outcomes = await carry_out_waiting(privacy, DEPLOYMENT), dict[str, ErasureOutcome]()
    for one in await access.database.scan(requested, access.secret, DEPLOYMENT):
        outcomes[one.cbid] = await carry_out_request(privacy, one.cbid, DEPLOYMENT)
    async for due in list_due(privacy, DEPLOYMENT):
        # Erased meanwhile, put on hold, or checked again: what is new is not in the plan.
        with suppress(OnHold, UnknownSubject):
            plan = await plan_erasure(privacy, due.record_id, DEPLOYMENT)
            reason = ErasureReason.RETENTION
            if await erase_as_planned(privacy, plan, reason, {}, details={}) is None:
                erased.append(due.record_id)
        await asyncio.sleep(pause)
    await access.database.write(_cut_responses, now)
    await destroy_copies(access.database)
    await access.database.write(put_value, RETAINED, str(to_ms(now)).encode())
    return erased, outcomes


def _cut_responses(connection: Connection, now: datetime) -> None:
    """Delete providers' whole responses whose time is over, or that no review needs any more."""
    e, a = verification_evidence.c, accounts.c
    keeps = a.responses_until.is_not(None) & (a.responses_until > now)
    wanted = select(e.record_id, e.whole_until).join(accounts, a.id == e.account_id)
    wanted = wanted.where(e.whole_until.is_not(None), (e.whole_until <= now) | ~keeps)
    waiting = {one.verification_id for mode in Mode for one in queue(connection, DEPLOYMENT, mode)}
    found = [id_ for id_, end in connection.execute(wanted) if end <= now or id_ not in waiting]
    for some in chunks(found):
        cut = update(verification_evidence).where(e.record_id.in_(some))
        connection.execute(cut.values(response=None, whole_until=None))
        sql.note_copies(connection, some[0])


def _due(
    connection: Connection, privacy: Privacy, now: datetime, *, kind: str, after: str, reach: Reach
) -> tuple[Sequence[Due], str | None]:
    """What is due on the page after a record, and the record to continue after; None: the last."""
    page, secret = _PAGES[kind](connection, privacy, now, after, reach), privacy.access.secret
    found = [(id_, of, end) for id_, of, end in page if end is not None and end <= now]
    held = find_held(connection, secret, [id_ for id_, *_ in found], reach)
    due = [
        Due(record_id=id_, account_id=of, retention_ended_at=end, hold=held.get(id_, (None,))[0])
        for id_, of, end in found
    ]
    return due, page[-1][0] if page else None


def _acknowledgments(
    connection: Connection, _: Privacy, now: datetime, after: str, reach: Reach
) -> _Page:
    """Acknowledgments after one, oldest first, and when the retention period of each ends.

    Only those that still have disclosures and are old enough for the shortest period.
    """
    years = sql.find_retention_years(connection)
    if not years:
        return []
    oldest = earliest_id(ACKNOWLEDGMENT, to_ms(years_after(now, -min(years.values()))))
    own = (records.c.type == RecordType.ACKNOWLEDGMENT, records.c.id < oldest)
    found = rows(connection, _disclosed(after, reach, *own), Erasable)
    return [(one.record_id, one.account_id, sql.kept_until(one, years)) for one in found]


def _refusals(connection: Connection, _: Privacy, now: datetime, after: str, reach: Reach) -> _Page:
    """The same of refused clearances that belong to no acknowledgment, and so to no order."""
    c, old = clearances.c, now - BUYERS_KEPT
    alone = select(c.id).where(c.id == records.c.id, c.kid.is_(None), ~sql.of_own(clearances))
    own = (records.c.type == RecordType.CLEARANCE, records.c.at < old, alone.exists())
    found = rows(connection, _disclosed(after, reach, *own), Erasable)
    return [(one.record_id, one.account_id, one.at + BUYERS_KEPT) for one in found]


def _evidence(
    connection: Connection, privacy: Privacy, now: datetime, after: str, reach: Reach
) -> _Page:
    """The same of verifications with evidence past its retention."""
    kept = privacy.kept
    verified, at = verifications.c.status == BuyerStatus.VERIFIED, verifications.c.at
    query = (
        select(records.c.id, records.c.account_id, verified.label("verified"), at.label("at"))
        .join(verifications, verifications.c.id == records.c.id)
        .join(verification_evidence, verification_evidence.c.record_id == records.c.id)
        .where(
            reach.rows(records),
            records.c.id > after,
            (verified & (at < now - kept.verified)) | (~verified & (at < now - kept.other)),
        )
        .order_by(records.c.id)
        .limit(_PAGE)
    )
    return [
        (row.id, row.account_id, row.at + (kept.verified if row.verified else kept.other))
        for row in connection.execute(query)
    ]


def _disclosed(after: str, reach: Reach, *conditions: ColumnElement[bool]) -> Select[Any]:
    """The next records with disclosures."""
    query = sql.SELECT_ERASABLE.join(disclosures, disclosures.c.record_id == records.c.id)
    query = query.where(reach.rows(records), records.c.id > after, *conditions)
    return query.order_by(records.c.id).limit(_PAGE)


def _buyers(
    connection: Connection, privacy: Privacy, now: datetime, after: str, reach: Reach
) -> _Page:
    """The same of buyers a year after their last check ended, unless an order or hold is left.

    Of a revoked one, only until it was erased: then it has no check. They belong to the deployment.
    """
    b, v, uses, old = buyers.c, verifications.c, acknowledgment_uses.c, now - BUYERS_KEPT
    checked = select(func.max(v.at)).where(v.cbid == b.cbid).scalar_subquery()
    # Most orders are seen here, and no buyer of theirs is looked at any closer.
    used = select(uses.ack_id).where(uses.cbid == b.cbid).exists()
    wanted = (
        select(b.cbid, b.account_id, b.expires_at)
        .where(b.cbid > after, b.same_as.is_(None), ~used)
        .where(b.expires_at.is_(None) | (b.expires_at < old), checked.is_(None) | (checked < old))
        .where((b.status != BuyerStatus.REVOKED) | checked.is_not(None))
    )
    page = list[tuple[str, str, datetime | None]]()
    if isinstance(reach, AccountReach):
        return page
    for cbid, account_id, at in connection.execute(wanted.order_by(b.cbid).limit(_PAGE)):
        names = identifiers_of(connection, cbid)
        ties = find_ties(connection, privacy.access.secret, names, DEPLOYMENT)
        ended = max([at or from_ms(0), *(from_ms(made_at_ms(tie.id)) for tie in ties)])
        kept = refusal(connection, {}, cbid, DEPLOYMENT) is not None
        kept |= not all(is_id(VERIFICATION, tie.id) for tie in ties)
        page.append((cbid, account_id, None if kept else ended + BUYERS_KEPT))
    return page


_KINDS: Final = (ACKNOWLEDGMENT, CLEARANCE, VERIFICATION, BUYER)
_PAGES: Final = dict(zip(_KINDS, (_acknowledgments, _refusals, _evidence, _buyers), strict=True))
