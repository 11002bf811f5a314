"""Report the fulfilment of a cleared order: in steps, each of them a record."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import combinations
from typing import Final

from msgspec import UNSET
from sqlalchemy import Connection, func, insert, select, update

from countersign.base.db.tables import acknowledgment_uses, clearances, fulfilments
from countersign.base.errors import (
    ClearanceNotGranted,
    Erased,
    FulfilmentContradicted,
    InvalidRequest,
    NotFound,
    OrderReferenceMismatch,
)
from countersign.base.http.body import in_utc
from countersign.base.values import (
    FULFILMENT,
    from_ns,
    parse_rfc3339,
    rfc3339,
    timed_id,
    to_the_second,
)
from countersign.core.access.key import Principal, Scope
from countersign.core.clearances.read import (
    CARRIER_FIELD,
    TRACKING_FIELD,
    StoredClearance,
    decided_in,
    fulfilments_of,
    refuse_another,
    report_of,
    stored_clearance,
)
from countersign.core.clearances.room import Clearances
from countersign.core.clearances.schemas import Fulfilment, FulfilmentReceipt, FulfilmentRequest
from countersign.core.events.model import EventType, NewEvent
from countersign.core.events.sql import write_events
from countersign.core.gate.act import Acts, Writing
from countersign.core.log.record import RecordType, account_fact
from countersign.core.notices.rule import ADULT_SIGNATURE
from countersign.core.orders.model import OrderState
from countersign.core.orders.sql import write_act_with
from countersign.core.parties import bound_now
from countersign_evidence.canonical import Json

_PERSONAL: Final = (CARRIER_FIELD, TRACKING_FIELD)
_SIGNATURE: Final = "adult_signature_obtained"
# Members of the record itself; null: not stated in this report.
_TIMES: Final = ("shipped_at", "delivered_at")
_OPEN: Final = (_SIGNATURE, *_TIMES)
_PAID: Final = "paid_at"
REPORTS_MAX: Final = 32
"""Under one clearance: as many as its dossier has."""
CLOCKS_APART: Final = timedelta(minutes=5)
"""How much earlier than its predecessor, or later than now, an event may be: clocks differ."""


FULFILMENTS: Final = Acts("Clearances", Clearances, scope=Scope.CLEARANCES_CREATE)


@FULFILMENTS.act(
    "POST /v1/clearances/{clearance_id}/fulfilment",
    "Report the fulfilment of an order, step by step",
    refusals=(
        NotFound,
        ClearanceNotGranted,
        FulfilmentContradicted,
        OrderReferenceMismatch,
        Erased,
    ),
)
async def fulfil_order(
    room: Clearances, who: Principal, clearance_id: str, reported: FulfilmentRequest, write: Writing
) -> FulfilmentReceipt:
    """Report the fulfilment of an order, in one step or in several.

    The order is closed when every obligation is reported; it still takes what was not reported
    before, such as the delivery. A report cannot be changed, only corrected by a new one that names
    it; a report that repeats what is known gets the receipt of the earlier one.
    """
    facts, receipt = _facts(reported), None
    if not facts and reported.corrects is None:
        names = ", ".join((*_PERSONAL, *_TIMES, _SIGNATURE, _PAID))
        raise InvalidRequest(f"At least one of these fields is required: {names}.")
    if _PAID in facts and len(facts) > 1:
        raise InvalidRequest("Expected in a report of its own - at `$.paid_at`.")
    while receipt is None:
        stored = await stored_clearance(room, who, clearance_id)
        refuse_another(room, who, stored, reported.order_reference)
        every = [await report_of(room, who, record) for record in stored.fulfilments]
        receipt = await _write(room, who, stored, every, reported, write=write)
    return receipt


def _facts(report: FulfilmentRequest | Fulfilment) -> dict[str, Json]:
    """The stated facts, by field."""
    values = {name: getattr(report, name) for name in (*_OPEN, *_PERSONAL, _PAID)}
    return {
        name: rfc3339(in_utc(value, f"$.{name}")) if isinstance(value, datetime) else value
        for name, value in values.items()
        if value is not None and value is not UNSET
    }


async def _write(
    room: Clearances,
    who: Principal,
    stored: StoredClearance,
    every: list[Fulfilment],
    reported: FulfilmentRequest,
    *,
    write: Writing,
) -> FulfilmentReceipt | None:
    """The receipt; None if another report was written after `every` earlier one was read."""
    decided, facts = decided_in(stored.record.body), _facts(reported)
    if not decided.cleared or stored.ack_id is None:
        raise ClearanceNotGranted
    _refuse_erased(stored, facts)
    earlier, repeated = _compared(every, facts, reported.corrects, stored.record.id)
    time_ns = room.access.clock.time_ns()
    key = await room.log.vault.vault.data_key(who.account_id, time_ns)
    # Closed by at least one report, with the signature if the order asks for it.
    signature = any(duty.get("type") == ADULT_SIGNATURE for duty in decided.obligations)
    said = [facts, *map(_facts, earlier)]
    obtained, state = any(one.get(_SIGNATURE) for one in said), _order_state(facts)
    paid_at, is_sent = (
        next(filter(None, map(_paid_at, said)), None),
        state is not None or any(map(_is_of_shipment, earlier)),
    )
    at, of_order = from_ns(time_ns), acknowledgment_uses.c.ack_id == stored.ack_id
    now = (await room.access.test_clocks.of(who.account_id, who.mode)).at(at)
    expired = stored.expires_at is None or now >= stored.expires_at
    first_decision = select(func.min(clearances.c.at)).where(
        clearances.c.ack_id == stored.ack_id,
        clearances.c.account_id == who.account_id,
        clearances.c.expires_at.is_not(None),
    )

    def fulfil(
        connection: Connection,
    ) -> FulfilmentReceipt | NotFound | FulfilmentContradicted | None:
        # Two reports at once take turns.
        lock = select(acknowledgment_uses).where(of_order).with_for_update()
        use = connection.execute(lock).one_or_none()
        if use is None:  # the evidence of the order has ended since it was read
            return NotFound("The clearance was not found.")
        closed_at = use.closed_at
        rows = {row.id: row for row in fulfilments_of(connection, [str(stored.ack_id)])}
        if [*rows] != [one.fulfilment_id for one in every]:
            return None
        if repeated is not None:
            written = repeated.fulfilment_id, repeated.clearance_id
        else:
            decided_at = connection.execute(first_decision).scalar_one()
            odd = _out_of_order(decided_at, earlier, facts, now, signature=signature)
            unconfirmed = None if reported.confirm_order_of_events else odd
            refused = _refused(decided_at, facts, at, odd=unconfirmed, expired=expired)
            if refused is not None:
                return FulfilmentContradicted(refused)
            closes = state is not None and closed_at is None and (obtained or not signature)
            written = add(connection, closes=closes, confirms=odd is not None), stored.record.id
            # A correction can leave nothing of a shipment: the order is open again.
            closed_at = at if closes else closed_at if is_sent else None
            shipped_under = (use.shipped_under or stored.record.id) if is_sent else None
            used = {"closed_at": closed_at, "shipped_under": shipped_under, "paid_at": paid_at}
            connection.execute(update(acknowledgment_uses).where(of_order).values(used))
            if wrong := rows.get(reported.corrects or ""):  # the order leaves the state it led to
                write_act_with(connection, stored.record.id, wrong.id, wrong.at)
        return FulfilmentReceipt(
            fulfilment_id=written[0], clearance_id=written[1], closed_at=to_the_second(closed_at)
        )

    def add(connection: Connection, *, closes: bool, confirms: bool) -> str:
        members: dict[str, Json] = {
            "clearance_id": stored.record.id,
            **{name: facts.get(name) for name in (*_OPEN, *({_PAID} & facts.keys()))},
        }
        members |= {"order_of_events_confirmed": True} if confirms else {}
        members |= {"corrects": reported.corrects} if reported.corrects else {}
        record = account_fact(
            key,
            room.access.entropy,
            RecordType.FULFILMENT,
            record_id=timed_id(FULFILMENT, time_ns, room.access.entropy(8)),
            account_id=who.account_id,
            mode=who.mode,
            time_ns=time_ns,
            members=members | bound_now(connection, who.account_id, who.mode).members(),
            personal=[(name, facts.get(name)) for name in _PERSONAL],
        )
        room.log.journal.write(connection, [record])
        connection.execute(
            insert(fulfilments).values(
                id=record.id,
                account_id=who.account_id,
                mode=who.mode,
                clearance_id=stored.record.id,
                ack_id=stored.ack_id,
                adult_signature=bool(facts.get(_SIGNATURE)),
                closes=closes,
                at=at,
            )
        )
        write_act_with(connection, stored.record.id, record.id, at, state)
        if closes:
            id_, kind = stored.record.id, EventType.CLEARANCE_CLOSED
            write_events(connection, [NewEvent(who.account_id, who.mode, kind, id_, at)])
        return record.id

    return await write(fulfil)


def _order_state(facts: Mapping[str, Json]) -> OrderState | None:
    """The resulting state of an order; None: unchanged, by a payment or a bare correction."""
    if facts.keys() <= {_PAID}:
        return None
    arrived = facts.get(_SIGNATURE) or "delivered_at" in facts
    return OrderState.DELIVERED if arrived else OrderState.SHIPPED


def _is_of_shipment(report: Fulfilment) -> bool:
    """Whether it is neither a payment nor a bare correction; its carrier may be erased."""
    return report.paid_at is UNSET and (report.corrects is UNSET or bool(_facts(report)))


def _refuse_erased(stored: StoredClearance, facts: Mapping[str, Json]) -> None:
    """A repeated report does not bring erased personal data back."""
    erased = any(record.payload is None for record in (stored.record, *stored.fulfilments))
    if erased and not facts.keys().isdisjoint(_PERSONAL):
        names = " and ".join(f"`{name}`" for name in _PERSONAL)
        raise Erased(f"The personal data of this order was erased. Report without {names}.")


def _compared(
    every: list[Fulfilment], facts: Mapping[str, Json], corrects: str | None, clearance_id: str
) -> tuple[list[Fulfilment], Fulfilment | None]:
    """The earlier reports that count, and the one that this one repeats."""
    own = [one.fulfilment_id for one in every if one.clearance_id == clearance_id]
    corrections = {one.corrects: one for one in every if one.corrects}
    wrong = {*corrections, corrects}
    earlier = [one for one in every if one.fulfilment_id not in wrong]
    done = corrections.get(corrects or "")
    if done and _facts(done) == facts:
        return earlier, done
    if corrects and (done or corrects not in own):
        raise FulfilmentContradicted(
            f"{corrects} is no report under this clearance, or another report has corrected it."
        )
    _refuse_contradiction(earlier, facts)
    repeated = None if corrects else _repeated(earlier, facts)
    if repeated is None and len(own) >= REPORTS_MAX:
        raise FulfilmentContradicted(f"This clearance has {REPORTS_MAX} reports: no more are kept.")
    return earlier, repeated


def _refuse_contradiction(earlier: list[Fulfilment], facts: Mapping[str, Json]) -> None:
    for one in earlier:
        for name, value in _facts(one).items():
            # "No signature" holds until one is reported.
            later = name == _SIGNATURE and value is False
            if not later and facts.get(name, value) != value:
                raise FulfilmentContradicted(
                    f"Report {one.fulfilment_id} of this order has another `{name}`. If that was "
                    "wrong, name it as `corrects`."
                )


def _out_of_order(
    decided_at: datetime,
    earlier: list[Fulfilment],
    facts: Mapping[str, Json],
    now: datetime,
    *,
    signature: bool,
) -> str | None:
    """How the newly reported facts are in the future, or break rule 5, 6 or 7 of evidence-format.

    `signature`: whether one is required. What earlier reports break is not repeated.
    """
    first, now_ = "the first decision that cleared the order", "now"
    known = {first, now_, *(f"`{name}`" for one in earlier for name in _facts(one))}
    said = {name: value for one in earlier for name, value in _facts(one).items()} | {**facts}
    told = [(f"`{name}`", parse_rfc3339(str(said[name]))) for name in _TIMES if name in said]
    for (before, then), (name, at) in combinations([(first, decided_at), *told, (now_, now)], 2):
        if then - at > CLOCKS_APART and not known.issuperset({before, name}):
            return f"{name} is {rfc3339(at)}, and {before} {rfc3339(then)}"
    unsigned = signature and said.get(_SIGNATURE) is False and "delivered_at" in said
    if unsigned and not known.issuperset({f"`{_SIGNATURE}`", "`delivered_at`"}):
        return "the order was delivered without the signature of an adult that it requires"
    return None


def _refused(
    decided_at: datetime, facts: Mapping[str, Json], at: datetime, *, odd: str | None, expired: bool
) -> str | None:
    """Why this report is not taken, which contradicts the order of events as said."""
    if odd is not None:
        return (
            f"By this report, {odd}. If it is right, repeat it with "
            "`confirm_order_of_events` true: it is kept then, and shown as odd."
        )
    paid_at = _paid_at(facts)
    if paid_at and expired:
        return "A payment is reported while the clearance is valid: have the order cleared again."
    if paid_at and not decided_at - CLOCKS_APART <= paid_at <= at + CLOCKS_APART:
        return "`paid_at` is before the first decision that cleared the order, or in the future."
    return None


def _paid_at(facts: Mapping[str, Json]) -> datetime | None:
    return parse_rfc3339(str(facts[_PAID])) if _PAID in facts else None


def _repeated(earlier: list[Fulfilment], facts: Mapping[str, Json]) -> Fulfilment | None:
    """The report that states the most of these facts, if earlier reports state them all."""
    stated = {name: value for one in earlier for name, value in _facts(one).items()}
    if not facts.items() <= stated.items():
        return None
    return max(earlier, key=lambda one: len(facts.items() & _facts(one).items()), default=None)
