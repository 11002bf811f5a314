"""The review queue: buyers whose last attempt did not verify them, and the decisions on them.

A buyer leaves the queue when an operator dismisses the attempt, and comes back with the next one.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Row, Select, func, or_, select, update

from countersign.base.db.statements import of_row
from countersign.base.db.tables import buyers, started_checks, verifications
from countersign.base.errors import (
    CountersignError,
    InvalidArgument,
    NotFound,
    ReviewRefused,
    SecondPersonRequired,
    UnknownSubject,
)
from countersign.base.values import Mode, Reason
from countersign.core.access.audit import AuditAction, AuditEntry, write_audit
from countersign.core.access.idempotency import Remember
from countersign.core.access.key import Principal
from countersign.core.access.reach import AccountReach, Reach
from countersign.core.buyers.admin import accept_zip_of
from countersign.core.buyers.evaluate_session import First
from countersign.core.buyers.four_eyes import (
    KeptProposal,
    needs_two,
    proposal_of,
    propose,
    refuse_alone,
)
from countersign.core.buyers.model import BuyerStatus, BuyerStatusView, status_view
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.rules import zip5
from countersign.core.buyers.sandbox import in_state, sandbox_act, write_simulated
from countersign.core.buyers.schemas import VerifyResult, answered
from countersign.core.buyers.sql import NO_REASONS, buyers_by_cbid
from countersign.core.events.sql import decoded_reasons

REVIEWED: Final = (BuyerStatus.PENDING, BuyerStatus.REQUIRES_INPUT, BuyerStatus.FAILED)
"""The statuses of buyers in the queue."""
_NOT_WAITING: Final = "This buyer is not in the review queue of this account."
_ZIP_REASONS: Final = {Reason.ZIP_MISMATCH, Reason.ZIP_UNKNOWN}


class ReviewDecision(StrEnum):
    """What is decided on a buyer in the queue."""

    ACCEPT_ZIP = "accept_zip"
    DISMISS = "dismiss"


class Waiting(Struct, frozen=True, kw_only=True):
    """A buyer in the queue, with the last attempt to verify it."""

    verification_id: str
    cbid: str
    account_id: str
    """Whose attempt it was."""
    mode: Mode
    provider: str
    status: BuyerStatus
    reasons: tuple[Reason, ...]
    attempted_at: datetime
    reference: str | None
    """The checkout session whose check it was; None for any other attempt."""
    proposal: KeptProposal | None
    """The decision of the first of two people; None: nothing, or one person decides."""

    @property
    def view(self) -> BuyerStatusView:
        """What the account sees of the buyer."""
        return BuyerStatusView(status=self.status, reasons=self.reasons)

    @property
    def owner(self) -> AccountReach:
        """The account of the attempt, whose audit gets the decision."""
        return AccountReach(self.account_id, self.mode)


class AcceptedZip(NamedTuple):
    """The ZIP code that is accepted, the document that an operator has seen, and why."""

    zip: str
    document: str
    reason: str


def queue(
    connection: Connection,
    reach: Reach,
    mode: Mode,
    *,
    statuses: Collection[BuyerStatus] = REVIEWED,
    verification_id: str | None = None,
    cbid: str | None = None,
    after: str = "",
    limit: int | None = None,
) -> list[Waiting]:
    """The buyers that wait for a decision, the oldest attempt first.

    In the reach of an account, only buyers whose last attempt was by this account; with
    `verification_id`, only the buyer of that verification; with `cbid`, only this one. `after` is
    the verification of the last buyer of the page before.
    """
    own = verifications.c.id
    named = ((own, verification_id), (buyers.c.cbid, cbid))
    only = [column == value for column, value in named if value is not None]
    found = _query(reach, mode, statuses, own > after, *only).order_by(own).limit(limit)
    return [_from_row(row) for row in connection.execute(found)]


async def accept(
    room: Buyers,
    principal: Principal,
    cbid: str,
    accepted: AcceptedZip,
    entry: Remember[bytes] = None,
) -> VerifyResult:
    """Accept another ZIP code, as `admin.accept_zip`, for an attempt of the caller's account.

    A buyer of the played sandbox is verified if the ZIP code is the only reason against it.

    Raises:
        NotFound: the buyer is not in the review queue of this account.
        ReviewRefused: the buyer does not just lack a ZIP code, or an operator's word does not
            count.
        SecondPersonRequired: two people decide, and this one has proposed it, or a key asks.
    """
    waiting, played = await room.access.database.scan(_waiting, principal, cbid)
    said = {"reason": accepted.reason, "document": accepted.document}
    noted = AuditAction.BUYER_ZIP_ACCEPTED
    audit = room.access.audit.entry(noted, waiting.cbid, waiting.owner, **said)
    index = room.access.secret.blind_index(waiting.account_id, "review", zip5(accepted.zip))
    first = _first_of_two(principal, waiting, index.hex(), audit, entry)
    if played:
        if waiting.status is not BuyerStatus.FAILED or not set(waiting.reasons) <= _ZIP_REASONS:
            raise ReviewRefused("A ZIP code is not all that is against this buyer.")
        act = await sandbox_act(room, principal.account_id, waiting.cbid)

        def play(connection: Connection) -> VerifyResult | CountersignError:
            if (done := first(connection)) is not None:
                return done
            before = buyers_by_cbid(connection, [act.cbid], to_change=True)[act.cbid]
            result = (BuyerStatus.VERIFIED, ())
            after = in_state(before, *result, act.now)
            change, members = (before, after), {"test_helper": True}
            write_simulated(connection, room, act, change, result, members=members)
            write_audit(connection, audit)
            shown = status_view(after, act.account_id, room.providers.floor, act.now)
            return answered(connection, entry, act.cbid, shown)

        return await room.access.database.write(play)
    try:
        return await accept_zip_of(room, principal.reach, accepted.zip, audit, entry, first=first)
    except InvalidArgument as error:
        raise ReviewRefused(error.message) from None
    except UnknownSubject:
        raise NotFound(_NOT_WAITING) from None


async def dismiss(
    room: Buyers, principal: Principal, cbid: str, reason: str, entry: Remember[bytes] = None
) -> VerifyResult:
    """Take a buyer out of the queue until the next attempt; the status stays as it is.

    A principal without an account decides on the buyers of every account.

    Raises:
        NotFound: the buyer is not in this queue.
        SecondPersonRequired: two people decide, and the caller has made the proposal, or is no
            person.
    """
    waiting, _ = await room.access.database.scan(_waiting, principal, cbid)
    said = {"reason": reason, "verification": waiting.verification_id}
    noted = AuditAction.BUYER_REVIEW_DISMISSED
    audit = room.access.audit.entry(noted, waiting.cbid, waiting.owner, **said)
    first = _first_of_two(principal, waiting, "", audit, entry)

    def decide(connection: Connection) -> VerifyResult | CountersignError:
        if (done := first(connection)) is not None:
            return done
        decided = update(buyers).where(buyers.c.cbid == waiting.cbid)
        connection.execute(decided.values(dismissed=waiting.verification_id))
        write_audit(connection, audit)
        return answered(connection, entry, waiting.cbid, waiting.view)

    return await room.access.database.write(decide)


def _first_of_two(
    principal: Principal,
    waiting: Waiting,
    zip_index: str,
    audit: AuditEntry,
    entry: Remember[bytes],
) -> First:
    """Looks at the queue again in the transaction of the decision; None: the decision is final.

    `zip_index` is the keyed hash of the ZIP code to accept; "": the buyer is dismissed.
    """
    decision = ReviewDecision.ACCEPT_ZIP if zip_index else ReviewDecision.DISMISS

    def first(connection: Connection) -> VerifyResult | CountersignError | None:
        # Of two concurrent decisions, the second waits here for the first, and sees its result.
        buyers_by_cbid(connection, [waiting.cbid], to_change=True)
        now = _waiting(connection, principal, waiting.cbid)
        if isinstance(now, NotFound) or now[0].verification_id != waiting.verification_id:
            return NotFound(_NOT_WAITING)
        if principal.person is None:
            return refuse_alone(connection, waiting.account_id)
        if not needs_two(connection, waiting.account_id):
            return None
        about = {"verification_id": waiting.verification_id, "zip_index": zip_index}
        made = propose(connection, now[0].proposal, audit, decision=decision.value, **about)
        if made is None or isinstance(made, SecondPersonRequired):
            return made
        return answered(connection, entry, waiting.cbid, waiting.view, proposed=True)

    return first


def _waiting(
    connection: Connection, principal: Principal, cbid: str
) -> tuple[Waiting, bool] | NotFound:
    """The buyer in this queue, and whether it is one of the played sandbox."""
    own = _query(principal.reach, principal.mode, REVIEWED, buyers.c.cbid == cbid)
    row = connection.execute(own).first()
    if row is None:
        return NotFound(_NOT_WAITING)
    return _from_row(row), row.attempted_by is None


def count_waiting(connection: Connection, reach: Reach, mode: Mode, most: int) -> int:
    """How many buyers wait in the queue in this reach; at most so many are counted."""
    found = _query(reach, mode, REVIEWED).limit(most).subquery()
    return connection.execute(select(func.count()).select_from(found)).scalar_one()


def _query(
    reach: Reach, mode: Mode, statuses: Collection[BuyerStatus], *rest: ColumnElement[bool]
) -> Select[Any]:
    """Each buyer with the newest attempt of the account that sees its reasons."""
    # A verified buyer with reasons is contradicted by an account's own attempt.
    contradicted = {BuyerStatus.VERIFIED} if BuyerStatus.REQUIRES_INPUT in statuses else set()
    # A sandbox belongs to one account, and simulated attempts have no account of their own.
    asked_by = buyers.c.attempted_by if mode is Mode.LIVE else buyers.c.account_id
    newer = verifications.alias()
    started = (
        select(func.min(started_checks.c.reference))
        .where(
            started_checks.c.cbid == verifications.c.cbid,
            started_checks.c.verification_id == verifications.c.id,
        )
        .scalar_subquery()
    )
    return (
        select(
            verifications.c.id.label("verification_id"),
            *(verifications.c.account_id, verifications.c.provider),
            verifications.c.at.label("attempted_at"),
            *(buyers.c.cbid, buyers.c.mode, buyers.c.status, buyers.c.reasons),
            *(buyers.c.attempted_by, buyers.c.proposal, started.label("reference")),
        )
        .join(verifications, verifications.c.cbid == buyers.c.cbid)
        .where(
            buyers.c.mode == mode,
            buyers.c.status.in_([*statuses, *contradicted]),
            or_(buyers.c.status != BuyerStatus.VERIFIED, buyers.c.reasons != NO_REASONS),
            buyers.c.same_as.is_(None),
            verifications.c.account_id == asked_by,
            *(asked_by == reach.account_id,) if isinstance(reach, AccountReach) else (),
            ~select(newer.c.id)
            .where(
                newer.c.cbid == buyers.c.cbid,
                newer.c.account_id == asked_by,
                newer.c.id > verifications.c.id,
            )
            .exists(),
            or_(buyers.c.dismissed.is_(None), buyers.c.dismissed < verifications.c.id),
            *rest,
        )
    )


def _from_row(row: Row[Any]) -> Waiting:
    proposal = proposal_of(row.proposal, row.verification_id)
    status = BuyerStatus.REQUIRES_INPUT if row.status == BuyerStatus.VERIFIED else row.status
    reasons = decoded_reasons(row.reasons)
    return of_row(row, Waiting, status=status, reasons=reasons, proposal=proposal)
