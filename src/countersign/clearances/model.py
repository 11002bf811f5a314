"""Clearances: may this order ship? One decision over acknowledgment, buyer, ZIP and order.

Each condition is a check of its own, and all that fail are told at once, in the order of the
table. Nothing here knows a law: what a notice suffices for and what has to follow is its data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Generic, NamedTuple, TypeVar

from msgspec import Struct

from countersign.access.idempotency import IdempotencyEntry
from countersign.buyers.model import Buyer, BuyerStatus, Standing
from countersign.buyers.rules import VerificationRules
from countersign.identity.postal_code import zip5
from countersign.log.record import NewRecord
from countersign.mode import Mode
from countersign.notices.obligations import Following

T = TypeVar("T")

LIFETIME_MAX: Final = timedelta(days=7)
"""No clearance is valid for longer, so no token is."""
_AGE_MAX: Final = timedelta(days=365)


class ClearanceReason(StrEnum):
    """Why an order is not cleared; docs/clearances.md says what to do about each reason."""

    ACKNOWLEDGMENT_NOT_FOUND = "acknowledgment_not_found"
    ACKNOWLEDGMENT_ERASED = "acknowledgment_erased"
    SESSION_MISMATCH = "session_mismatch"
    ACKNOWLEDGMENT_ALREADY_USED = "acknowledgment_already_used"
    ORDER_ALREADY_FULFILLED = "order_already_fulfilled"
    ACKNOWLEDGMENT_TOO_OLD = "acknowledgment_too_old"
    NOTICE_NOT_IN_FORCE = "notice_not_in_force"
    PRODUCT_CLASS_MISSING = "product_class_missing"
    NOTICE_NOT_SUFFICIENT = "notice_not_sufficient"
    BUYER_NOT_FOUND = "buyer_not_found"
    BUYER_MISMATCH = "buyer_mismatch"
    BUYER_NOT_VERIFIED = "buyer_not_verified"
    BUYER_REQUIRES_INPUT = "buyer_requires_input"
    BUYER_EXPIRED = "buyer_expired"
    BUYER_REVOKED = "buyer_revoked"
    ZIP_MISMATCH = "zip_mismatch"
    ADDRESS_MISMATCH = "address_mismatch"


class ClearanceRules(Struct, frozen=True, kw_only=True):
    """What an account asks of its clearances."""

    acknowledgment_max_age: timedelta = timedelta(days=7)
    """How old an acknowledgment may be when its order is cleared."""
    lifetime: timedelta = timedelta(hours=24)
    """How long a clearance is valid, unless the verification ends before."""
    product_class_required: bool = True
    """Whether live orders have to say what is sold."""

    def mistake(self) -> str | None:
        """What is wrong with these rules, in a sentence."""
        if not timedelta(minutes=1) <= self.acknowledgment_max_age <= _AGE_MAX:
            return f"An acknowledgment can be valid for one minute to {_AGE_MAX.days} days."
        if not timedelta(minutes=1) <= self.lifetime <= LIFETIME_MAX:
            return f"A clearance can be valid for one minute to {LIFETIME_MAX.days} days."
        return None


class Order(Struct, frozen=True, kw_only=True):
    """What is asked about."""

    ack_id: str
    """As it was sent, whether or not it can be one."""
    cbid: str
    session_id: str
    shipping_zip: str
    product_class: str | None
    shipping_address: Mapping[str, str] | None
    """With `postal_code`, if it is given at all."""

    def __repr__(self) -> str:
        return f"<Order of {self.ack_id}: hidden>"


class Question(Struct, frozen=True, kw_only=True):
    """An order on its way to a decision. Indexes are keyed hashes, made per account."""

    clearance_id: str
    """Of the decision, if it is a new one."""
    account_id: str
    mode: Mode
    order: Order
    session_index: bytes
    cbid_index: bytes
    order_index: bytes
    """Of the order: two questions with the same one, about one buyer, are about the same order."""
    zip_index: bytes
    index: Callable[[str, str], bytes]
    """The keyed hash of a field and its value."""
    at: datetime
    """The real time, which is that of the record."""
    judged_at: datetime
    """The time that conditions are judged by: the same, but where a test clock is ahead."""


class Acknowledged(Struct, frozen=True, kw_only=True):
    """An acknowledgment of the asking account and mode, as far as clearing needs it."""

    accepted_at: datetime
    notice_id: str
    notice_version: str
    session_index: bytes | None
    cbid_index: bytes | None
    erased: bool


class Use(Struct, frozen=True, kw_only=True):
    """What an acknowledgment is bound to: a buyer, and once it is cleared, an order."""

    ack_id: str
    account_id: str
    mode: Mode
    cbid: str | None
    """None once the buyer is erased; the index stays."""
    cbid_index: bytes
    order_index: bytes | None
    clearance_id: str | None
    """The newest clearance of the order that was granted."""
    closed_at: datetime | None
    """When all that the order asked for was reported as done."""


class Earlier(Struct, frozen=True, kw_only=True):
    """The newest clearance that was granted with an acknowledgment."""

    clearance_id: str
    kid: str
    at: datetime
    judged_at: datetime
    expires_at: datetime


class Circumstances(Struct, frozen=True, kw_only=True):
    """All that the database knows about an order."""

    acknowledgment: Acknowledged | None
    use: Use | None
    earlier: Earlier | None
    buyer: Buyer | None
    """The one that the identifier leads to."""
    bound_to: str | None
    """The identifier under which the buyer goes on that the acknowledgment is bound to."""
    buyer_rules: VerificationRules | None
    """Those of the account; None where it has none of its own."""
    sandbox_zips: frozenset[bytes]
    """The ZIP codes that the sandbox verified the buyer with, as keyed hashes."""
    rules: ClearanceRules


class Case(Struct, frozen=True, kw_only=True):
    """All that a decision rests on."""

    order: Order
    order_index: bytes
    session_index: bytes
    cbid_indexes: frozenset[bytes]
    """Of the identifiers that are known to name the buyer."""
    acknowledgment: Acknowledged | None
    use: Use | None
    notice_in_force: bool
    following: Following
    """What follows from the version that was acknowledged."""
    standing: Standing | None
    """Of the buyer, for the asking account; None if there is no such buyer."""
    zip_proved: bool | None
    """Whether the ZIP code is one that was proved; None: there is nothing to compare it with."""
    rules: ClearanceRules
    now: datetime
    live: bool


class Decision(Struct, frozen=True, kw_only=True):
    """What was decided."""

    reasons: tuple[str, ...]
    obligations: tuple[Mapping[str, Any], ...]
    at: datetime
    expires_at: datetime | None
    """To the second; None unless it is cleared."""

    @property
    def cleared(self) -> bool:
        """Whether the order may ship."""
        return not self.reasons


class Judgement(Struct, frozen=True, kw_only=True):
    """A decision, and what it leads to."""

    decision: Decision
    earlier: Earlier | None
    """The clearance that still stands, in place of a new one."""
    kid: str
    """Of the key that signs the token, if it is granted."""
    binds: bool
    """Whether the acknowledgment belongs to this buyer from now on."""
    zip_compared: bool
    live_would_refuse: tuple[str, ...]
    """Reasons that the order of a test key would meet with a live key only."""


class Clearance(Struct, frozen=True, kw_only=True):
    """What whoever asked is told."""

    clearance_id: str
    cleared: bool
    reasons: tuple[str, ...]
    obligations: tuple[Mapping[str, Any], ...]
    expires_at: datetime | None
    token: str | None
    live_would_refuse: tuple[str, ...]
    """See `Judgement`."""


class SettledOrder(NamedTuple, Generic[T]):
    """An order that was judged, on its way into the database; `act` is whoever asked."""

    act: T
    question: Question
    judgement: Judgement


class WrittenClearance(NamedTuple):
    """What is written of a decision, and told. `record` is None if an earlier one stands."""

    clearance: Clearance
    record: NewRecord | None
    kept: IdempotencyEntry | None


def failing(case: Case) -> tuple[str, ...]:
    """Every reason against the order, in the order of the table; empty: it is cleared.

    After `buyer_requires_input` follow the buyer's own reasons.
    """
    reasons: list[str] = []
    for reason, fails in _CHECKS:
        if fails(case):
            reasons.append(reason.value)
            if reason is ClearanceReason.BUYER_REQUIRES_INPUT and case.standing is not None:
                reasons += [own.value for own in case.standing.reasons]
    return tuple(reasons)


def live_would_refuse(case: Case) -> tuple[str, ...]:
    """The reasons against the order of a test key that hold for live keys only."""
    missing = not case.live and _lacks_class(case.rules, case.order)
    return (ClearanceReason.PRODUCT_CLASS_MISSING.value,) if missing else ()


def _lacks_class(rules: ClearanceRules, order: Order) -> bool:
    """Whether the order has to say what is sold, and does not."""
    return rules.product_class_required and order.product_class is None


def binds(case: Case) -> bool:
    """Whether an acknowledgment that names no buyer now belongs to this one.

    It does at the first clearance that asks for a verified buyer, granted or not: nobody is to try
    one buyer after the other with it.
    """
    return (
        case.acknowledgment is not None
        and not case.acknowledgment.erased
        and not _other_session(case)
        and not _other_buyer(case)
        and _has_status(BuyerStatus.VERIFIED)(case)
    )


def expiry(case: Case) -> datetime:
    """Until when a clearance of now is valid: never longer than the verification is."""
    end = case.now + case.rules.lifetime
    if case.standing is not None and case.standing.expires_at is not None:
        end = min(end, case.standing.expires_at)
    return end.replace(microsecond=0)


def _unknown_acknowledgment(case: Case) -> bool:
    return case.acknowledgment is None


def _erased(case: Case) -> bool:
    return case.acknowledgment is not None and case.acknowledgment.erased


def _other_session(case: Case) -> bool:
    known = case.acknowledgment
    return known is not None and not known.erased and known.session_index != case.session_index


def _already_used(case: Case) -> bool:
    used = case.use.order_index if case.use is not None else None
    return used is not None and used != case.order_index


def _already_fulfilled(case: Case) -> bool:
    use = case.use
    return use is not None and use.order_index == case.order_index and use.closed_at is not None


def _too_old(case: Case) -> bool:
    known = case.acknowledgment
    return known is not None and case.now - known.accepted_at > case.rules.acknowledgment_max_age


def _not_in_force(case: Case) -> bool:
    return case.acknowledgment is not None and not case.notice_in_force


def _class_missing(case: Case) -> bool:
    return case.live and _lacks_class(case.rules, case.order)


def _not_sufficient(case: Case) -> bool:
    known = case.acknowledgment
    return known is not None and not case.following.covers(case.order.product_class)


def _unknown_buyer(case: Case) -> bool:
    return case.standing is None


def _other_buyer(case: Case) -> bool:
    named = case.acknowledgment.cbid_index if case.acknowledgment is not None else None
    if named is None and case.use is not None:
        named = case.use.cbid_index
    return named is not None and named not in case.cbid_indexes


def _has_status(*statuses: BuyerStatus) -> Callable[[Case], bool]:
    return lambda case: case.standing is not None and case.standing.status in statuses


def _other_zip(case: Case) -> bool:
    # A verified buyer whose ZIP code is not known has proved none.
    return case.zip_proved is False or (
        case.zip_proved is None and _has_status(BuyerStatus.VERIFIED)(case)
    )


def _other_address(case: Case) -> bool:
    """Today's verifications keep ZIP codes only: an address has to carry the one compared."""
    address = case.order.shipping_address
    return address is not None and zip5(address["postal_code"]) != zip5(case.order.shipping_zip)


_CHECKS: Final[tuple[tuple[ClearanceReason, Callable[[Case], bool]], ...]] = (
    (ClearanceReason.ACKNOWLEDGMENT_NOT_FOUND, _unknown_acknowledgment),
    (ClearanceReason.ACKNOWLEDGMENT_ERASED, _erased),
    (ClearanceReason.SESSION_MISMATCH, _other_session),
    (ClearanceReason.ACKNOWLEDGMENT_ALREADY_USED, _already_used),
    (ClearanceReason.ORDER_ALREADY_FULFILLED, _already_fulfilled),
    (ClearanceReason.ACKNOWLEDGMENT_TOO_OLD, _too_old),
    (ClearanceReason.NOTICE_NOT_IN_FORCE, _not_in_force),
    (ClearanceReason.PRODUCT_CLASS_MISSING, _class_missing),
    (ClearanceReason.NOTICE_NOT_SUFFICIENT, _not_sufficient),
    (ClearanceReason.BUYER_NOT_FOUND, _unknown_buyer),
    (ClearanceReason.BUYER_MISMATCH, _other_buyer),
    (
        ClearanceReason.BUYER_NOT_VERIFIED,
        _has_status(BuyerStatus.PENDING, BuyerStatus.FAILED),
    ),
    (ClearanceReason.BUYER_REQUIRES_INPUT, _has_status(BuyerStatus.REQUIRES_INPUT)),
    (ClearanceReason.BUYER_EXPIRED, _has_status(BuyerStatus.EXPIRED)),
    (ClearanceReason.BUYER_REVOKED, _has_status(BuyerStatus.REVOKED)),
    (ClearanceReason.ZIP_MISMATCH, _other_zip),
    (ClearanceReason.ADDRESS_MISMATCH, _other_address),
)
