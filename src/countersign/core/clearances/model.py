"""Clearances: may this order ship? One decision over acknowledgment, buyer, ZIP and order.

Each condition is a check of its own, and all that fail are reported at once, in the order of the
table. No law is coded here: coverage and obligations are data of the notice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from countersign.base.errors import OrderReferenceMissing
from countersign.base.values import ACKNOWLEDGMENT, Mode, is_id
from countersign.core.buyers.model import Buyer, BuyerStatus, BuyerStatusView, ProvedSession
from countersign.core.buyers.rules import VerificationRules, zip5
from countersign.core.clearances.schemas import ClearanceReason, ClearanceRequest
from countersign.core.notices.requirements import NoticeRequirement
from countersign.core.notices.rule import Following
from countersign.core.vault.vault import DataKey
from countersign_evidence.canonical import canonical_json

LIFETIME_MAX: Final = timedelta(days=7)
"""No clearance is valid for longer, so no token is."""
_AGE_MAX: Final = timedelta(days=365)
PAID_AGE_MAX: Final = timedelta(days=180)
"""How long a payment keeps an acknowledgment at most."""
OVERRIDES_MAX: Final = 1_000


class ClearanceRules(Struct, frozen=True, kw_only=True):
    """An account's rules for clearances."""

    acknowledgment_max_age: timedelta = timedelta(days=7)
    """How old an acknowledgment may be when its order is cleared."""
    lifetime: timedelta = timedelta(hours=24)
    """How long a clearance is valid, unless the verification ends before."""
    paid_max_age: timedelta = PAID_AGE_MAX
    """How old it may be if its order was paid while it was cleared, if that is longer."""
    product_class_required: bool = True
    """True if live orders must state the product class."""
    order_reference_required: bool = True
    """True if live orders must be named; accounts of earlier releases begin with False."""
    overrides_per_day: int = 0
    """How many manual overrides its keys may make within 24 hours."""

    def seconds(self) -> dict[str, int]:
        """Its durations in seconds, for display and storage."""
        rules = asdict(self).items()
        periods = {name: period for name, period in rules if isinstance(period, timedelta)}
        return {f"{name}_seconds": int(p.total_seconds()) for name, p in periods.items()}

    def demands(self) -> dict[str, bool]:
        """What live orders must state, for display and storage."""
        return {name: demand for name, demand in asdict(self).items() if isinstance(demand, bool)}

    def mistake(self) -> str | None:
        """The error in these rules, in a sentence."""
        if not timedelta(minutes=1) <= self.acknowledgment_max_age <= _AGE_MAX:
            return f"An acknowledgment can be valid for one minute to {_AGE_MAX.days} days."
        if not timedelta(minutes=1) <= self.lifetime <= LIFETIME_MAX:
            return f"A clearance can be valid for one minute to {LIFETIME_MAX.days} days."
        if not timedelta(minutes=1) <= self.paid_max_age <= PAID_AGE_MAX:
            return f"A payment keeps an acknowledgment for one minute to {PAID_AGE_MAX.days} days."
        if not 0 <= self.overrides_per_day <= OVERRIDES_MAX:
            return f"Keys can make 0 to {OVERRIDES_MAX} manual overrides within 24 hours."
        return None


def order_identity(
    ack_id: str | None,
    session_id: str,
    zip_: str,
    classes: Sequence[str],
    address: object,
    *,
    exemption: object,
) -> str:
    """What makes two requests about one buyer the same order, as text to hash.

    With an acknowledgment the exemption changes nothing, and is no part of it.
    """
    ack_id = ack_id if is_id(ACKNOWLEDGMENT, ack_id or "") else None
    identity = [ack_id, session_id, zip5(zip_), ",".join(classes) or None, address]
    identity += [exemption] if ack_id is None and exemption is not None else []
    return canonical_json(identity).decode()


class NewClearance(Struct, frozen=True, kw_only=True):
    """An order on its way to a decision. Indexes are keyed hashes, made per account."""

    clearance_id: str
    """Of the decision, if it is new."""
    account_id: str
    mode: Mode
    order: ClearanceRequest
    use_id: str
    """What the order is bound by: its acknowledgment, or its first clearance without one."""
    session_index: bytes
    cbid_index: bytes
    order_index: bytes
    """Of the order: two requests with the same one, about one buyer, are about the same order."""
    zip_index: bytes
    reference_index: bytes | None
    """The keyed hash of the order's reference: as given, else that of the acknowledgment."""
    session_of_another: bool
    """Whether its checkout sessions all have another reference than it was given."""
    at: datetime
    """The real time, also that of the record."""
    clock_at: datetime
    """The time for the conditions: later than `at` if a test clock is ahead."""
    key: DataKey
    entropy: bytes
    """Random bytes to seal its record."""


class AcknowledgmentFacts(Struct, frozen=True, kw_only=True):
    """An acknowledgment of this account and mode, as far as clearing needs it."""

    accepted_at: datetime
    notice_id: str
    notice_version: str
    session_index: bytes | None
    cbid_index: bytes | None
    reference_index: bytes | None
    erased: bool


class AcknowledgmentUse(NamedTuple):
    """The binding of an acknowledgment: a buyer, and once it is cleared, an order."""

    cbid: str | None
    """None once the buyer is erased; the index stays."""
    cbid_index: bytes
    order_index: bytes | None = None
    clearance_id: str | None = None
    """The newest clearance of the order that was granted."""
    shipped_under: str | None = None
    """The clearance under which the order was reported as shipped."""
    paid_at: datetime | None = None
    """When the order was paid, as reported while it was cleared."""


class GrantedClearance(Struct, frozen=True, kw_only=True):
    """The claims of a token about its clearance."""

    clearance_id: str
    kid: str
    """Id of the key that signs it."""
    at: datetime
    clock_at: datetime
    expires_at: datetime
    """To the second."""
    reference_index: bytes | None = None
    """See `NewClearance`; nothing in a token is about it."""
    order_named: bool = True
    """Whether the request for it had a reference of its own."""


class StoredVerification(NamedTuple):
    """The stored data of a verification."""

    id: str
    account_id: str
    mode: Mode
    status: str
    session_index: bytes | None
    """The provider session; None in the sandbox, and for a remembered buyer."""
    subject_index: bytes | None
    zip_index: bytes | None


class OrderFacts(Struct, frozen=True, kw_only=True):
    """The stored facts about an order."""

    acknowledgment: AcknowledgmentFacts | None
    use: AcknowledgmentUse | None
    earlier: GrantedClearance | None
    """The newest that was granted with the acknowledgment."""
    shipped: GrantedClearance | None
    """The one under which its order was reported as shipped."""
    buyer: Buyer | None
    """The buyer that the identifier resolves to."""
    is_strange: bool
    """Whether the account has not met the live buyer: it has no check and no clearance."""
    is_blocked: bool
    """Whether the account refuses the buyer's orders."""
    bound_to: str | None
    """The current identifier of the buyer that the acknowledgment is bound to."""
    buyer_rules: VerificationRules | None
    """The account's own rules; None: the defaults."""
    sandbox_zips: frozenset[bytes]
    """The ZIP codes that the sandbox verified the buyer with, as keyed hashes."""
    rules: ClearanceRules
    verifications: Sequence[StoredVerification]
    """The account's own of the buyer, oldest first."""


class ClearanceInput(Struct, frozen=True, kw_only=True):
    """The input of a decision."""

    new: NewClearance
    facts: OrderFacts
    cbid_indexes: frozenset[bytes]
    """Of the identifiers known to name the buyer."""
    notice_in_force: bool
    following: Following
    """Coverage and obligations of the acknowledged version, or of the waived notices."""
    waived: tuple[NoticeRequirement, ...]
    not_exempt: ClearanceReason | None
    """Why an order without an acknowledgment needs one."""
    standing: BuyerStatusView | None
    """The buyer's standing for this account; None for an unknown buyer."""
    zip_proved: bool | None
    """Whether the ZIP code is a proved one; None: nothing to compare it with."""
    verification: str | None
    """The account's own verification that the decision relies on; see `relied_on`."""


class ClearanceResult(Struct, frozen=True, kw_only=True):
    """A decision and its consequences."""

    reasons: tuple[str, ...]
    obligations: tuple[Mapping[str, Any], ...]
    granted: GrantedClearance | None
    """Of this order; None: not cleared."""
    is_new: bool
    """Whether it is written down: else an earlier clearance is still valid."""
    waived: tuple[NoticeRequirement, ...]
    """The notices that it did not need."""
    binds: bool
    """Whether the acknowledgment belongs to this buyer from now on."""
    zip_compared: bool
    paid_at: datetime | None
    """The payment that kept the acknowledgment; None: it needed none."""
    already_shipped: bool
    """Whether it is the decision under which the order was shipped, not a new one."""
    verification: str | None
    """See `ClearanceInput`."""
    live_would_refuse: tuple[str, ...]
    """Reasons that the order of a test key would meet with a live key only."""
    override: tuple[str, str] | None = None
    """The override of this refused order, and the clearance that it is of."""


REFUSES_BINDING: Final = frozenset(
    {
        ClearanceReason.ACKNOWLEDGMENT_NOT_FOUND,
        ClearanceReason.ACKNOWLEDGMENT_ERASED,
        ClearanceReason.SESSION_MISMATCH,
        ClearanceReason.BUYER_MISMATCH,
    }
)


def valid_earlier(new: NewClearance, facts: OrderFacts) -> GrantedClearance | None:
    """The clearance of this same order that is still valid."""
    use, earlier = facts.use, facts.earlier
    if use is None or earlier is None or use.order_index != new.order_index:
        return None
    return earlier if new.clock_at < earlier.expires_at else None


def shipped_under(new: NewClearance, facts: OrderFacts) -> GrantedClearance | None:
    """The clearance under which this same order was shipped."""
    return facts.shipped if facts.use and facts.use.order_index == new.order_index else None


def with_reference(new: NewClearance, facts: OrderFacts) -> NewClearance | None:
    """The order with the reference of its acknowledgment, if it comes without one.

    None: its reference differs from that of the acknowledgment, of its valid clearance, or of that
        under which it was shipped; or from
        that of its checkout sessions, unless one of the two has this one.
    """
    of_order = (facts.acknowledgment, valid_earlier(new, facts), shipped_under(new, facts))
    known = {one.reference_index for one in of_order if one} - {None}
    if new.session_of_another and not known:
        return None
    if new.reference_index is None:
        acknowledged = facts.acknowledgment and facts.acknowledgment.reference_index
        return replace(new, reference_index=acknowledged) if acknowledged else new
    return new if known <= {new.reference_index} else None


def paid_while_cleared(case: ClearanceInput) -> datetime | None:
    """When this same order was paid, if that was reported while it was cleared.

    It keeps the acknowledgment; the buyer and the address are judged again.
    """
    use = case.facts.use
    return use.paid_at if use is not None and use.order_index == case.new.order_index else None


def kept_by(case: ClearanceInput) -> datetime | None:
    """The payment without which the acknowledgment would not count any more; None: no need."""
    known, max_age = case.facts.acknowledgment, case.facts.rules.acknowledgment_max_age
    if known is None or (case.notice_in_force and case.new.clock_at - known.accepted_at <= max_age):
        return None
    return paid_while_cleared(case)


def failed_checks(case: ClearanceInput) -> list[ClearanceReason]:
    """Every condition that the order does not meet, in the order of the table."""
    new, use, rules = case.new, case.facts.use, case.facts.rules
    order, known = new.order, case.facts.acknowledgment
    there = known is not None
    status = case.standing.status if case.standing is not None else None
    erased = known is not None and known.erased
    bound_to = known.cbid_index if known is not None else None
    if bound_to is None and use is not None:
        bound_to = use.cbid_index
    address = order.shipping_address
    is_paid, max_age = paid_while_cleared(case) is not None, rules.acknowledgment_max_age
    if is_paid:
        max_age = max(max_age, rules.paid_max_age)
    checks = {
        ClearanceReason.ACKNOWLEDGMENT_NOT_FOUND: not there and order.ack_id is not None,
        ClearanceReason.ACKNOWLEDGMENT_ERASED: erased,
        ClearanceReason.SESSION_MISMATCH: known is not None
        and not erased
        and known.session_index != new.session_index,
        ClearanceReason.ACKNOWLEDGMENT_ALREADY_USED: use is not None
        and use.order_index not in {None, new.order_index},
        ClearanceReason.ACKNOWLEDGMENT_TOO_OLD: known is not None
        and new.clock_at - known.accepted_at > max_age,
        ClearanceReason.NOTICE_NOT_IN_FORCE: there and not case.notice_in_force and not is_paid,
        ClearanceReason.PRODUCT_CLASS_MISSING: new.mode is Mode.LIVE and _lacks_class(rules, order),
        ClearanceReason.NOTICE_NOT_SUFFICIENT: (there or bool(case.waived))
        and not all(map(case.following.covers, order.classes)),
        ClearanceReason.BUYER_NOT_FOUND: status is None,
        ClearanceReason.BUYER_MISMATCH: bound_to is not None and bound_to not in case.cbid_indexes,
        ClearanceReason.BUYER_NOT_VERIFIED: status in {BuyerStatus.PENDING, BuyerStatus.FAILED},
        ClearanceReason.BUYER_REQUIRES_INPUT: status is BuyerStatus.REQUIRES_INPUT,
        ClearanceReason.BUYER_EXPIRED: status is BuyerStatus.EXPIRED,
        ClearanceReason.BUYER_REVOKED: status is BuyerStatus.REVOKED,
        ClearanceReason.REFUSED_BY_VENDOR: case.facts.is_blocked,
        # A verified buyer without a known ZIP code has proved none.
        ClearanceReason.ZIP_MISMATCH: case.zip_proved is False
        or (case.zip_proved is None and status is BuyerStatus.VERIFIED),
        # Today's verifications keep ZIP codes only: an address needs the compared one.
        ClearanceReason.ADDRESS_MISMATCH: address is not None
        and zip5(address.postal_code) != zip5(order.shipping_zip),
    }
    failed = [reason for reason, fails in checks.items() if fails]
    return failed if case.not_exempt is None else [*failed, case.not_exempt]


def reasons_of(case: ClearanceInput, failed: list[ClearanceReason]) -> tuple[str, ...]:
    """The reasons to report: after `buyer_requires_input` follow the buyer's.

    Not for an account that has not met the buyer.
    """
    reasons: list[str] = []
    for reason in failed:
        reasons.append(reason.value)
        asked = reason is ClearanceReason.BUYER_REQUIRES_INPUT and not case.facts.is_strange
        if asked and case.standing is not None:
            reasons += [of_buyer.value for of_buyer in case.standing.reasons]
    return tuple(reasons)


def live_would_refuse(case: ClearanceInput) -> tuple[str, ...]:
    """The reasons against the order of a test key that hold for live keys only."""
    rules, order = case.facts.rules, case.new.order
    if case.new.mode is not Mode.TEST:
        return ()
    missing = {
        ClearanceReason.PRODUCT_CLASS_MISSING.value: _lacks_class(rules, order),
        OrderReferenceMissing.code: rules.order_reference_required
        and order.order_reference is None,
    }
    return tuple(reason for reason, lacks in missing.items() if lacks)


def binds(case: ClearanceInput, failed: list[ClearanceReason]) -> bool:
    """Whether an acknowledgment that names no buyer now belongs to this one.

    It does at the first clearance that asks for a verified buyer, granted or not: one cannot try
    buyer after buyer with it. An order without one is bound once it is cleared.
    """
    if case.new.order.ack_id is None and failed:
        return False
    verified = case.standing is not None and case.standing.status is BuyerStatus.VERIFIED
    return verified and REFUSES_BINDING.isdisjoint(failed)


def relied_on(facts: OrderFacts, proof: ProvedSession | None) -> str | None:
    """The record of the account's own verification of the buyer that a decision relies on.

    The newest of the session that verifies the buyer, or else the newest that found the buyer
    verified, or else the newest. None: the account has made none.
    """
    best = max(
        facts.verifications,
        key=lambda one: (
            proof is not None and (one.session_index or b"").hex() == proof.session,
            one.status == BuyerStatus.VERIFIED,
            one.id,
        ),
        default=None,
    )
    return None if best is None else best.id


def expiry(case: ClearanceInput) -> datetime:
    """Until when a clearance of now is valid: never longer than the verification is."""
    end = case.new.clock_at + case.facts.rules.lifetime
    if case.standing is not None and case.standing.expires_at is not None:
        end = min(end, case.standing.expires_at)
    exemption = case.new.order.exemption if case.waived else None
    if exemption is not None and exemption.expires_on is not None:
        last = datetime.combine(min(exemption.expires_on, end.date()), time(), UTC)
        end = min(end, last + timedelta(days=1))
    return end.replace(microsecond=0)


def _lacks_class(rules: ClearanceRules, order: ClearanceRequest) -> bool:
    return rules.product_class_required and not order.classes
