"""Buyers who want to be erased: at once where that may be, else as soon as it may be."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from countersign.access.reach import DEPLOYMENT, AccountReach, Reach
from countersign.access.secrets import DeploymentSecret
from countersign.db.tables import (
    buyers,
    checkout_sessions,
    erasure_requests,
    records,
    remembered,
    started_checks,
    waiting_erasures,
)
from countersign.errors import DatabasePermissionDenied, OnHold, UnknownSubject
from countersign.instant import from_ns
from countersign.privacy.erase import destroy_copies, erase_planned, plan_erasure
from countersign.privacy.erase_sql import find_accounts_of, find_records, forget_sessions
from countersign.privacy.held import Rests, find_held, kept_of
from countersign.privacy.holds import active_holds, take_turn
from countersign.privacy.model import ErasureReason, Plan
from countersign.privacy.person_sql import find_ties, identifiers_of
from countersign.privacy.room import Privacy


class ErasureOutcome(StrEnum):
    """What came of a request."""

    ERASED = "erased"
    KEPT = "kept"
    """Erased but for what orders on hold need; that is erased when the hold has ended."""
    ON_HOLD = "on_hold"
    """A legal hold keeps it; it is erased when the hold has ended."""
    REQUESTED = "requested"
    """The server may not erase: `countersign retention run` does, as the owner of the tables."""


class ErasureRequest(NamedTuple):
    """A buyer who has asked to be erased, and is not yet."""

    cbid: str
    requested_at: datetime
    account_id: str | None
    """The account in whose reach this is listed; of the deployment's, the buyer's first."""


async def request_erasure(privacy: Privacy, cbid: str) -> ErasureOutcome:
    """Erase a buyer at the buyer's own request, or keep the request; durable when this returns.

    What the buyer is remembered by goes in any case.
    """
    now = from_ns(privacy.access.clock.time_ns())
    await privacy.access.database.write(_request, cbid, now)
    return await carry_out_request(privacy, cbid, DEPLOYMENT)


async def carry_out_request(privacy: Privacy, cbid: str, reach: Reach) -> ErasureOutcome:
    """Try to erase in this reach a buyer who has asked for it.

    A vendor's hold on the buyer keeps what it has itself and the shared facts of the buyer; what
    others have goes at once.
    """
    try:
        plan = await plan_erasure(privacy, cbid, reach)
        kept = await erase_planned(privacy, plan, ErasureReason.REQUEST, by="buyer")
    except UnknownSubject:
        if reach == DEPLOYMENT:
            settled = delete(erasure_requests).where(erasure_requests.c.cbid == cbid)
            await privacy.access.database.write(lambda c: c.execute(settled).rowcount)
    except OnHold:
        for own in await privacy.access.database.scan(_free, privacy, cbid, reach):
            with suppress(OnHold, UnknownSubject, DatabasePermissionDenied):
                plan = await plan_erasure(privacy, cbid, own)
                await erase_planned(privacy, plan, ErasureReason.REQUEST, by="buyer")
        return ErasureOutcome.ON_HOLD
    except DatabasePermissionDenied:
        return ErasureOutcome.REQUESTED
    else:
        await destroy_copies(privacy.access.database)
        return ErasureOutcome.KEPT if kept else ErasureOutcome.ERASED
    return ErasureOutcome.ERASED


def _free(connection: Connection, privacy: Privacy, cbid: str, reach: Reach) -> set[AccountReach]:
    """The accounts that have something of a buyer, unless the deployment itself holds the buyer."""
    subjects = [cbid, *(one for one, _ in find_accounts_of(connection, cbid, reach))]
    active, names = active_holds(connection, reach), identifiers_of(connection, cbid)
    binding = {owner for one in subjects for _, owner in active.get(one, ())}
    ties = find_ties(connection, privacy.access.secret, names, reach)
    alone = reach == DEPLOYMENT and DEPLOYMENT not in binding
    return {AccountReach(tie.account_id, tie.mode) for tie in ties if alone}


async def carry_out_waiting(privacy: Privacy, reach: Reach) -> list[str]:
    """Erase what waited in reach for the end of a hold, but for what one still keeps.

    Returns the records and checkout sessions that were erased.
    """
    database, erased = privacy.access.database, list[str]()
    for id_, reason, is_session in await database.read(_waiting, reach):
        if is_session:
            rests = (await kept_of(privacy, [id_], reach)).rests
            if await database.write(_erase_session, privacy.access.secret, id_, rests, reach):
                erased.append(id_)
            continue
        found = await database.read(find_records, reach, records.c.id == id_)
        left = tuple(record for record in found if record.erased_at is None)
        plan = Plan(subject=id_, reach=reach, buyer=None, records=left, kept_until=None)
        with suppress(OnHold):
            await erase_planned(privacy, plan, ErasureReason(reason))
            erased.append(id_)
    if erased:
        await destroy_copies(database)
    return erased


def _erase_session(
    connection: Connection, secret: DeploymentSecret, id_: str, rests: Rests, reach: Reach
) -> bool:
    """Destroy what a checkout session holds, which waited for that; False: a hold keeps it."""
    take_turn(connection)
    held, sealed = find_held(connection, secret, [id_], rests, reach)
    if held or sealed:
        return False
    forget_sessions(connection, secret, [id_], reach)
    connection.execute(delete(started_checks).where(started_checks.c.reference == id_))
    connection.execute(delete(waiting_erasures).where(waiting_erasures.c.record_id == id_))
    return True


def _waiting(connection: Connection, reach: Reach) -> Sequence[tuple[str, str, bool]]:
    w, session = waiting_erasures.c, checkout_sessions.c.id
    rows = connection.execute(
        select(w.record_id, w.reason, records.c.id)
        .outerjoin(records, records.c.id == w.record_id)
        .outerjoin(checkout_sessions, session == w.record_id)
        .where(reach.rows(records) | reach.rows(checkout_sessions))
        .order_by(w.record_id)
    )
    # A session that is gone already has nothing to wait for any more.
    return [(row.record_id, row.reason, row.id is None) for row in rows]


def requested(
    connection: Connection, secret: DeploymentSecret, reach: Reach
) -> Sequence[ErasureRequest]:
    """The buyers who are still to be erased, in the order of their requests.

    In the reach of an account, those of whom it has something.
    """
    asked = erasure_requests.c
    waiting = select(asked.cbid, asked.requested_at, buyers.c.account_id)
    waiting = waiting.outerjoin(buyers, buyers.c.cbid == asked.cbid).order_by(asked.requested_at)
    found = [ErasureRequest(*row) for row in connection.execute(waiting)]
    if not isinstance(reach, AccountReach):
        return found
    owners = {name: one for one in found for name in identifiers_of(connection, one.cbid)}
    ties = {tie.cbid for tie in find_ties(connection, secret, owners, reach)}
    own = {owners[cbid].cbid: owners[cbid]._replace(cbid=cbid) for cbid in sorted(ties)}
    return [one._replace(account_id=reach.account_id) for one in own.values()]


def _request(connection: Connection, cbid: str, now: datetime) -> None:
    cbids = identifiers_of(connection, cbid)
    connection.execute(delete(remembered).where(remembered.c.cbid.in_(cbids)))
    same = select(erasure_requests.c.cbid).where(erasure_requests.c.cbid == cbids[0])
    if connection.execute(same).first() is None:
        connection.execute(insert(erasure_requests), {"cbid": cbids[0], "requested_at": now})
