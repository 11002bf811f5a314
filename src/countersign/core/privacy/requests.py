"""Buyers who want to be erased: at once if possible, otherwise as soon as possible."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, insert, select

from countersign.base.db.tables import (
    accounts,
    buyers,
    checkout_sessions,
    erasure_requests,
    records,
    remembered,
    started_checks,
    waiting_erasures,
)
from countersign.base.errors import DatabasePermissionDenied, OnHold, UnknownSubject
from countersign.base.values import ACCOUNT, from_ns, is_id, made_at_ms, to_ms
from countersign.core.access.reach import DEPLOYMENT, AccountReach, Reach, mode_of_buyer
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.privacy.erase import destroy_copies, erase_planned, kept_of_plan, plan_erasure
from countersign.core.privacy.erase_sql import (
    find_buyer,
    find_records,
    forget_sessions,
    wait_for_holds,
)
from countersign.core.privacy.held import find_held
from countersign.core.privacy.holds import relying_elsewhere, take_turn
from countersign.core.privacy.model import ErasureReason, Plan
from countersign.core.privacy.person_sql import (
    find_relying,
    find_ties,
    identifiers_by,
    identifiers_of,
)
from countersign.core.privacy.room import Privacy

REQUEST_DAYS: Final = 45
"""Within how many days a request is answered where no account says fewer (California)."""


class ErasureOutcome(StrEnum):
    """The outcome of a request; of several parts, the last in this order."""

    ERASED = "erased"
    KEPT = "kept"
    """Erased except the data of orders on hold, which is erased after the hold."""
    REQUESTED = "requested"
    """The server may not erase: `countersign retention run` does, as the owner of the tables."""
    ON_HOLD = "on_hold"
    """A legal hold keeps it; it is erased when the hold has ended."""


class ErasureRequest(NamedTuple):
    """A buyer with an open request for erasure."""

    cbid: str
    requested_at: datetime
    account_id: str | None
    """The account in whose reach this is listed; of the deployment's, the buyer's first."""
    days: int | None
    """Within how many days that first one answers it; None: it does not say."""

    @property
    def answer_by(self) -> datetime:
        """The deadline for the answer."""
        return self.requested_at + timedelta(days=self.days or REQUEST_DAYS)


class _Part(NamedTuple):
    """The remaining work at an account for a buyer's request."""

    owner: Reach
    older: list[str] | None
    """If an account has something later: its earlier checks and sessions. None: all."""


async def request_erasure(privacy: Privacy, cbid: str) -> ErasureOutcome:
    """Erase a buyer at the buyer's own request, or keep the request; durable when this returns.

    Passkeys and cookies of the buyer are erased in any case.
    """
    now = from_ns(privacy.access.clock.time_ns())
    await privacy.access.database.write(_request, cbid, now)
    return await carry_out_request(privacy, cbid, DEPLOYMENT, at_once=True)


async def carry_out_request(
    privacy: Privacy, cbid: str, reach: Reach, *, at_once: bool = False
) -> ErasureOutcome:
    """Try to erase in this reach the buyer's data from before the request.

    A vendor's hold on the buyer keeps that vendor's data and the buyer's shared data; the data of
    other accounts is erased at once. Accounts with later data keep that, and the shared facts with
    it. `at_once`: whatever there is was there, also by the clock of another server.
    """
    database, now = privacy.access.database, from_ns(privacy.access.clock.time_ns())
    parts = await database.scan(_parts, privacy.access.secret, cbid, reach)
    outcomes = list[ErasureOutcome]()
    if at_once:
        parts = [_Part(part.owner, None) for part in parts]
    if reach == DEPLOYMENT and all(part.older is None for part in parts):
        outcomes.append(await _take(privacy, cbid, _Part(reach, None)))
    if outcomes in ([], [ErasureOutcome.ON_HOLD]):
        outcomes += [await _take(privacy, cbid, part) for part in parts if part.older != []]
    await destroy_copies(database)
    outcome = max(outcomes, key=[*ErasureOutcome].index, default=ErasureOutcome.ERASED)
    if reach == DEPLOYMENT and outcome in {ErasureOutcome.KEPT, ErasureOutcome.ERASED}:
        await database.write(_settle, cbid, now)
    return outcome


async def _take(privacy: Privacy, cbid: str, part: _Part) -> ErasureOutcome:
    try:
        plan = await plan_erasure(privacy, cbid, part.owner)
        if part.older is None:
            kept = await erase_planned(privacy, plan, ErasureReason.REQUEST, by="buyer")
        else:
            kept = await kept_of_plan(privacy, plan)
            now = from_ns(privacy.access.clock.time_ns())
            noting = partial(wait_for_holds, kept=part.older, reason=ErasureReason.REQUEST, at=now)
            await privacy.access.database.write(noting)
            await carry_out_waiting(privacy, part.owner, by="buyer")
    except UnknownSubject:
        return ErasureOutcome.ERASED
    except OnHold:
        return ErasureOutcome.ON_HOLD
    except DatabasePermissionDenied:
        return ErasureOutcome.REQUESTED
    return ErasureOutcome.KEPT if kept else ErasureOutcome.ERASED


def _parts(
    connection: Connection, secret: DeploymentSecret, cbid: str, reach: Reach
) -> list[_Part]:
    """The accounts in reach that have data of a buyer with a request."""
    names = identifiers_of(connection, cbid)
    wanted = select(erasure_requests.c.requested_at).where(erasure_requests.c.cbid.in_(names))
    asked = connection.execute(wanted).scalar()
    if asked is None:
        return [_Part(reach, [])]
    ties, until = find_relying(connection, secret, names, reach), to_ms(asked)
    if not ties and isinstance(reach, AccountReach):
        # The account whose hold alone kept the buyer erases the buyer too.
        others = relying_elsewhere(connection, secret, names, reach)
        return [] if others else [_Part(reach, None)]
    later = {tie.owner for tie in ties if made_at_ms(tie.id) > until}
    parts = [_Part(owner, None) for owner in {tie.owner for tie in ties} - later]
    for owner in later:
        buyer = find_buyer(connection, secret, cbid, owner)
        checks = [c.record_id for c in buyer.verifications if not c.erased_at] if buyer else []
        had = [*checks, *(buyer.sessions if buyer else ())]
        parts.append(_Part(owner, [id_ for id_ in had if made_at_ms(id_) <= until]))
    return parts


def _settle(connection: Connection, cbid: str, at: datetime) -> None:
    """Delete the request of this time or before: it is carried out."""
    asked, names = erasure_requests.c, identifiers_of(connection, cbid)
    settled = delete(erasure_requests).where(asked.cbid.in_(names), asked.requested_at <= at)
    connection.execute(settled)


@contextmanager
def alone(subject: str, failed: dict[str, Exception] | None) -> Iterator[None]:
    """Around the erasure of one of many: a hold stops nothing else, nor a failure that is noted.

    Nor does it if others have erased it meanwhile.
    """
    try:
        with suppress(OnHold, UnknownSubject):
            yield
    except Exception as error:
        if failed is None:
            raise
        failed[subject] = error


async def carry_out_waiting(
    privacy: Privacy, reach: Reach, *, by: str = "", failed: dict[str, Exception] | None = None
) -> list[str]:
    """Erase the data in reach that waited for the end of a hold, unless another hold keeps it.

    Returns the records and checkout sessions that were erased; `failed` notes what fails.
    """
    database, erased = privacy.access.database, list[str]()
    erase = partial(erase_planned, by=by) if by else erase_planned
    try:
        waiting = await database.read(_waiting, reach)
    except DatabasePermissionDenied:
        return []  # of a server: `countersign retention run` erases it, as the owner of the tables
    for id_, reason, is_session in waiting:
        with alone(id_, failed):
            if is_session:
                if await database.write(_erase_session, privacy.access.secret, id_, reach):
                    erased.append(id_)
                continue
            found = await database.read(find_records, reach, records.c.id == id_)
            left = tuple(record for record in found if record.erased_at is None)
            plan = Plan(subject=id_, reach=reach, buyer=None, records=left, kept_until=None)
            await erase(privacy, plan, ErasureReason(reason))
            erased.append(id_)
    if erased:
        await destroy_copies(database)
    return erased


def _erase_session(
    connection: Connection, secret: DeploymentSecret, id_: str, reach: Reach
) -> bool:
    """Destroy the content of a checkout session that waited for it; False: a hold keeps it."""
    take_turn(connection)
    if find_held(connection, secret, [id_], reach):
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
    connection: Connection,
    secret: DeploymentSecret,
    reach: Reach,
    kept_by: Collection[str] | None = None,
) -> Sequence[ErasureRequest]:
    """The buyers who are still to be erased, in the order of their requests.

    In the reach of an account, only buyers whose data this account still has to erase. `kept_by`:
    only buyers that holds on these subjects may have kept.
    """
    asked = erasure_requests.c
    of = accounts.c
    waiting = select(asked.cbid, asked.requested_at, buyers.c.account_id, of.request_days)
    waiting = waiting.outerjoin(buyers, buyers.c.cbid == asked.cbid)
    waiting = waiting.outerjoin(accounts, of.id == buyers.c.account_id).order_by(asked.requested_at)
    if kept_by is not None and not any(is_id(ACCOUNT, one) for one in kept_by):
        names = identifiers_by(connection, kept_by)
        waiting = waiting.where(asked.cbid.in_({one for known in names.values() for one in known}))
    found = [ErasureRequest(*row) for row in connection.execute(waiting)]
    if not isinstance(reach, AccountReach):
        return found
    by_cbid = {one.cbid: one for one in found if mode_of_buyer(one.cbid) is reach.mode}
    names = identifiers_by(connection, by_cbid)
    owners = {name: by_cbid[cbid] for cbid, known in names.items() for name in known}
    ties = {tie.cbid for tie in find_ties(connection, secret, owners, reach)}
    own = {owners[cbid].cbid: owners[cbid]._replace(cbid=cbid) for cbid in sorted(ties)}
    days = connection.execute(select(of.request_days).where(of.id == reach.account_id)).scalar_one()
    return [
        one._replace(account_id=reach.account_id, days=days)
        for one in own.values()
        if any(part.older != [] for part in _parts(connection, secret, one.cbid, reach))
    ]


def _request(connection: Connection, cbid: str, now: datetime) -> None:
    cbids, asked = identifiers_of(connection, cbid), erasure_requests.c.cbid
    connection.execute(delete(remembered).where(remembered.c.cbid.in_(cbids)))
    connection.execute(delete(erasure_requests).where(asked.in_(cbids)))
    connection.execute(insert(erasure_requests), {"cbid": cbids[0], "requested_at": now})
