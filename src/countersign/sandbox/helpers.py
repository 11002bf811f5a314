"""What test keys do to their own sandbox by hand: put buyers in a state, and trigger events.

Each act is for an account and never for its live mode: the HTTP operations, the commands and
whatever else provokes a vendor's integration call these.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace
from sqlalchemy import Connection, select

from countersign.access.idempotency import IdempotencyEntry, keep_answers
from countersign.buyers.model import (
    VALIDITY,
    Buyer,
    BuyerStatus,
    BuyerStatusView,
    VerificationAttempt,
    after_revocation,
    simulated_status_view,
    status_at,
)
from countersign.buyers.room import Buyers
from countersign.buyers.sandbox import PROVIDER, SimulatedAct, sandbox_act, simulated_record
from countersign.buyers.sql import (
    buyers_by_cbid,
    write_buyer,
    write_status_event,
    write_verification,
)
from countersign.db.tables import verifications
from countersign.errors import InvalidRequest, NotFound
from countersign.events.model import Event, EventType, EventView, NewEvent
from countersign.events.sql import write_one_event
from countersign.ids import ACKNOWLEDGMENT, CLEARANCE, SANDBOX_BUYER, base32, is_id, timed_id
from countersign.instant import from_ns
from countersign.mode import Mode
from countersign.reason import Reason
from countersign.sandbox.room import SandboxRoom

_PREFIXES: Final = {
    "buyer": SANDBOX_BUYER,
    "acknowledgment": ACKNOWLEDGMENT,
    "clearance": CLEARANCE,
}
"""Of the identifiers of objects, by the first word of an event's type."""
_NOTICE_ID_MAX: Final = 64
_NO_OBJECT: Final = "Expected {} for this type of event - at `$.object_id`."
_NO_BUYER: Final = "The buyer identifier was not found in the sandbox of this account."
_DEFAULT_REASONS: Final = {
    BuyerStatus.FAILED: (Reason.IDENTITY_FAILED,),
    BuyerStatus.REQUIRES_INPUT: (Reason.IDENTITY_REQUIRES_INPUT,),
}
_BEFORE: Final = timedelta(days=1)


async def move_buyer(  # noqa: PLR0917 - as the API names them
    room: SandboxRoom,
    account_id: str,
    cbid: str,
    status: BuyerStatus,
    reasons: tuple[Reason, ...] = (),
    remember: Callable[[BuyerStatusView], IdempotencyEntry] | None = None,
) -> BuyerStatusView:
    """Put a sandbox buyer in any state; the event of that state is written with it.

    Raises:
        NotFound: the account has no such sandbox buyer.
        InvalidRequest: there are reasons, and none belong to this state.
    """
    usual = _DEFAULT_REASONS.get(status)
    if usual is None and reasons:
        msg = f"Only the states {' and '.join(_DEFAULT_REASONS)} have reasons - at `$.reasons`."
        raise InvalidRequest(msg)
    if not is_id(SANDBOX_BUYER, cbid):
        raise NotFound(_NO_BUYER)
    act = await sandbox_act(room.buyers, account_id, cbid)
    attempt = VerificationAttempt(status=status, at=act.now, reasons=reasons or usual or ())
    return await room.buyers.database.write(_move_buyer, room.buyers, act, attempt, remember)


def _move_buyer(
    connection: Connection,
    room: Buyers,
    act: SimulatedAct,
    attempt: VerificationAttempt,
    remember: Callable[[BuyerStatusView], IdempotencyEntry] | None,
) -> BuyerStatusView | NotFound:
    before = buyers_by_cbid(connection, [act.cbid], to_change=True).get(act.cbid)
    if before is None or (before.account_id, before.mode) != (act.account_id, Mode.TEST):
        return NotFound(_NO_BUYER)
    after = _moved(before, attempt.status, attempt.reasons, act.now)
    if after != before:
        write_buyer(connection, before, after)
        record = simulated_record(room, act, None, attempt, test_helper=True)
        stored = VerificationAttempt(status=after.status, at=act.now, reasons=after.reasons)
        # The session whose guesses of ZIP codes are counted.
        subject = (
            select(verifications.c.subject_index)
            .where(verifications.c.cbid == act.cbid)
            .order_by(verifications.c.id)
            .limit(1)
        )
        write_verification(
            connection,
            record,
            stored,
            cbid=act.cbid,
            provider=PROVIDER,
            subject_index=connection.execute(subject).scalar(),
        )
        write_status_event(connection, after, from_ns(act.time_ns), shown=act.now)
        room.journal.write(connection, [record])
    view = simulated_status_view(after, act.now)
    if remember is not None:
        keep_answers(connection, [remember(view)])
    return view


def _moved(buyer: Buyer, status: BuyerStatus, reasons: tuple[Reason, ...], now: datetime) -> Buyer:
    """A sandbox buyer in another state, whatever the way there would be; `now` by the test clock.

    Unchanged where it is in that state already, so that asking twice does no more than once; but
    `verified` begins again, as with a new verification.
    """
    match status:
        case BuyerStatus.VERIFIED:
            return replace(
                buyer, status=status, reasons=(), verified_at=now, expires_at=now + VALIDITY
            )
        case BuyerStatus.EXPIRED:
            if status_at(buyer, now) is status:
                return buyer
            began = now - VALIDITY - _BEFORE
            verified_at = began if buyer.verified_at is None else min(buyer.verified_at, now)
            return replace(
                buyer,
                status=BuyerStatus.VERIFIED,
                reasons=(),
                verified_at=verified_at,
                expires_at=now,
            )
        case BuyerStatus.REVOKED:
            return after_revocation(buyer)
        case _:
            return replace(buyer, status=status, reasons=reasons, verified_at=None, expires_at=None)


async def trigger_event(
    room: SandboxRoom,
    account_id: str,
    type_: EventType,
    object_id: str | None = None,
    remember: Callable[[EventView], IdempotencyEntry] | None = None,
) -> EventView:
    """Write an event without a cause; it is listed and delivered like any other.

    Without `object_id` it is about an object that does not exist.

    Raises:
        InvalidRequest: `object_id` cannot be one of an object that such an event is about.
    """
    new = _event(room.buyers, account_id, type_, object_id)
    return await room.buyers.database.write(_trigger, room, new, remember)


def _trigger(
    connection: Connection,
    room: SandboxRoom,
    new: NewEvent,
    remember: Callable[[EventView], IdempotencyEntry] | None,
) -> EventView:
    view = room.events.ids.view(write_one_event(connection, new))
    if remember is not None:
        keep_answers(connection, [remember(view)])
    return view


def _event(room: Buyers, account_id: str, type_: EventType, object_id: str | None) -> NewEvent:
    time_ns = room.clock.time_ns()
    now = from_ns(time_ns)
    example = Event.example(account_id, Mode.TEST, type_, now)
    prefix = _PREFIXES.get(type_.partition(".")[0])
    if prefix is None:
        if object_id is not None and not 0 < len(object_id) <= _NOTICE_ID_MAX:
            raise InvalidRequest(_NO_OBJECT.format("the id of a notice"))
        object_id = object_id or example.object_id
    elif object_id is None:
        object_id = f"{prefix}_{base32(int.from_bytes(room.entropy(16), 'big'))}"
        if prefix != SANDBOX_BUYER:  # that one is random
            object_id = timed_id(prefix, time_ns, room.entropy(8))
    elif not is_id(prefix, object_id):
        raise InvalidRequest(_NO_OBJECT.format(f"an identifier that begins with {prefix}_"))
    return NewEvent(account_id, Mode.TEST, type_, object_id, now, example.version, triggered=True)
