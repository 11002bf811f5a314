"""Clear an order: one decision over acknowledgment, buyer and ZIP, written down as evidence."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any, Final, NamedTuple

from msgspec import UNSET, to_builtins
from msgspec.structs import replace
from sqlalchemy import Connection

from countersign.base.db.statements import BulkInsert, deferred_statements
from countersign.base.db.tables import clearances
from countersign.base.errors import (
    CountersignError,
    InvalidRequest,
    OrderReferenceMismatch,
    RateLimited,
)
from countersign.base.values import (
    ACKNOWLEDGMENT,
    CLEARANCE,
    from_ns,
    is_id,
    rfc3339,
    rfc3339_ms,
    timed_id,
    to_ms,
)
from countersign.core.access.idempotency import INSERT_ANSWERS, NONCE_BYTES, KeyedRequest, taken
from countersign.core.access.key import Principal
from countersign.core.acknowledgments.acknowledge import of_another_order, reference_index
from countersign.core.buyers.model import BuyerStatus, best_proof, status_view
from countersign.core.buyers.rules import VerificationRules, zip5
from countersign.core.buyers.sql import buyers_by_cbid
from countersign.core.buyers.zips import count_zip, own_zip_subject, proves_zip
from countersign.core.clearances.exempt import without_notice
from countersign.core.clearances.facts_sql import BatchFacts, with_uses
from countersign.core.clearances.keys import Signers, order_digest, token_claims
from countersign.core.clearances.model import (
    REFUSES_BINDING,
    AcknowledgmentFacts,
    ClearanceInput,
    ClearanceResult,
    GrantedClearance,
    NewClearance,
    OrderFacts,
    binds,
    expiry,
    failed_checks,
    kept_by,
    live_would_refuse,
    order_identity,
    reasons_of,
    relied_on,
    shipped_under,
    valid_earlier,
    with_reference,
)
from countersign.core.clearances.room import Clearances
from countersign.core.clearances.schemas import ClearanceDecision, ClearanceRequest, NamesClasses
from countersign.core.gate.route import encode
from countersign.core.log.record import SEAL_ENTROPY, NewRecord, RecordType
from countersign.core.notices.model import NoticeEdition
from countersign.core.notices.registry import KnownNotices
from countersign.core.notices.rule import COMPARED_ZIP, NOTHING
from countersign.core.parties import Bound
from countersign_evidence.disclosure import SALT_BYTES
from countersign_evidence.record import (
    CBID_FIELD,
    REFERENCE_FIELD,
    SESSION_FIELD,
    entropy_needed,
    make_records,
)

SHIPPING_FIELD: Final = "shipping"
VERIFICATION_FIELD: Final = "verification"
EXEMPTION_FIELD: Final = "exemption"
RECORD_ENTROPY: Final = entropy_needed(4) + SEAL_ENTROPY
"""Random bytes that the record of one decision takes: it has four personal fields. An order with a
reference takes a salt more, and so does one with an exemption."""
_ID_ENTROPY: Final = 8
_insert_clearances: Final = BulkInsert(
    clearances, "id", "account_id", "mode", "ack_id", "kid", "expires_at", "at"
)


class Cleared(NamedTuple):
    """A decision as the account gets it; `body` is the response."""

    decision: ClearanceDecision
    body: bytes
    live_would_refuse: tuple[str, ...]
    """See `ClearanceResult`."""


class PreparedOrder(NamedTuple):
    """An order on its way into a transaction, and what it is decided with."""

    room: Clearances
    new: NewClearance
    signers: Signers
    notices: KnownNotices
    fresh: bool
    """True if the notices were read for this order, not taken from memory."""
    input_required: bool
    entry: KeyedRequest | None


async def clear_order(item: PreparedOrder) -> Cleared:
    """Decide whether an order may ship; durable when this returns.

    The same order gets the same clearance while that is valid and all conditions still hold.
    """
    database, registry = item.room.access.database, item.room.registry
    while (cleared := await database.write_batched(clear_together, item)) is None:
        # A reason against the notice counts only after a fresh read.
        item = item._replace(notices=await registry.notices(fresh=True), fresh=True)
    return cleared


async def notices_naming(room: Clearances, wanted: NamesClasses) -> tuple[KnownNotices, bool]:
    """The notices to decide by, and whether they were read for this request.

    Raises:
        InvalidRequest: no notice is about such a class of products, or they are given twice.
    """
    several = wanted.product_classes is not None
    if several and wanted.product_class is not None:
        raise InvalidRequest("Expected this or product_class, not both - at `$.product_classes`.")
    notices, fresh = await room.registry.notices(), False
    if not notices.classes.issuperset(wanted.classes):
        # A typing error, not goods that need a dealer, unless a new notice names them.
        notices, fresh = await room.registry.notices(fresh=True), True
        if not notices.classes.issuperset(wanted.classes):
            known, name = ", ".join(sorted(notices.classes)), "es" * several
            raise InvalidRequest(f"Expected one of {known} - at `$.product_class{name}`.")
    return notices, fresh


async def prepare_order(
    room: Clearances,
    who: Principal,
    order: ClearanceRequest,
    entry: KeyedRequest | None = None,
    *,
    input_required: bool = False,
) -> PreparedOrder:
    """Prepare the input of `clear_together`, which may run in another act's transaction.

    `input_required`: decide as if the buyer were in `requires_input`.

    Raises:
        InvalidRequest: no notice is about such a class of products.
    """
    access, vault = room.access, room.log.vault.vault
    if order.ack_id is None and order.exemption is None:
        raise InvalidRequest("A required field is missing - at `$.ack_id`.")
    notices, fresh = await notices_naming(room, order)
    reference = order.order_reference
    another = await of_another_order(access, who, order.session_id, reference)
    test_clock = await access.test_clocks.of(who.account_id, who.mode)
    time_ns = access.clock.time_ns()
    at = from_ns(time_ns)
    more = SALT_BYTES * sum(one is not None for one in (reference, order.exemption))
    entropy = access.entropy(_ID_ENTROPY + RECORD_ENTROPY + more)
    index, account_id, zip_ = access.secret.blind_index, who.account_id, zip5(order.shipping_zip)
    identity = order_identity(
        *(order.ack_id, order.session_id, zip_, order.classes, order.shipping_address),
        exemption=to_builtins(order.exemption),
    )
    clearance_id = timed_id(CLEARANCE, time_ns, entropy[:_ID_ENTROPY])
    new = NewClearance(
        clearance_id=clearance_id,
        use_id=clearance_id if order.ack_id is None else order.ack_id,
        account_id=account_id,
        mode=who.mode,
        order=order,
        session_index=index(account_id, SESSION_FIELD, order.session_id),
        cbid_index=index(account_id, CBID_FIELD, order.cbid),
        order_index=index(account_id, "order", identity),
        zip_index=index(account_id, "zip", zip_),
        reference_index=reference_index(access.secret, account_id, reference),
        session_of_another=another,
        at=at,
        clock_at=test_clock.at(at),
        key=await vault.data_key(account_id, time_ns),
        entropy=entropy[_ID_ENTROPY:],
    )
    signers = await room.keys.signers(who.mode)
    return PreparedOrder(room, new, signers, notices, fresh, input_required, entry)


def clear_together(
    connection: Connection, items: Sequence[PreparedOrder]
) -> Sequence[Cleared | CountersignError | None]:
    """Decide these orders one after the other, and leave the decisions to be written together.

    None, and nothing written, for an order whose notices may be too old to decide by. See
    `slot_taken` for an order that was decided before. What is left is written with the commit, or
    by `run_deferred` before the same transaction reads it.
    """
    room, deferred = items[0].room, deferred_statements(connection)
    before = taken(connection, [item.entry for item in items])
    outcomes: list[Cleared | CountersignError | None] = [*before]
    news = with_uses(connection, [item.new for item in items])
    items = [item._replace(new=new) for item, new in zip(items, news, strict=True)]
    facts = BatchFacts(connection, room.access.secret, news)
    decided: list[tuple[int, PreparedOrder, ClearanceResult]] = []
    for place, given in enumerate(items):
        if outcomes[place] is not None:
            continue
        of_order = facts.of(given.new)
        new = with_reference(given.new, of_order)
        if new is None:
            outcomes[place] = OrderReferenceMismatch()
            continue
        item = given if new is given.new else given._replace(new=new)
        if (result := _decide(item, of_order)) is None:
            continue
        if result.granted is None:
            result = facts.overridden(connection, item.new, result)
        refusal = facts.count_zip(item.new, result.reasons) if result.zip_compared else None
        if refusal is not None:
            outcomes[place] = refusal
            continue
        facts.apply(item.new, result)
        decided.append((place, item, result))
    written = [(item.new, result) for _, item, result in decided if result.is_new]
    records = [_record(new, one, facts.parties[new.account_id, new.mode]) for new, one in written]
    make_records(records)
    for record, (new, _) in zip(records, written, strict=True):
        record.seal(new.key)
    room.log.journal.defer(connection, deferred, records)
    _insert_clearances.defer(connection, deferred, [_row(*one) for one in written])
    facts.defer(connection, deferred)
    facts.write_acts(connection, [(item.new, result) for _, item, result in decided])
    # Asking the system for a few bytes releases the interpreter each time.
    drawn, kept = BytesIO(room.access.entropy(NONCE_BYTES * len(decided))), []
    for place, item, result in decided:
        outcomes[place] = cleared = _cleared(item, result)
        if item.entry is not None:
            kept.append(item.entry(cleared.body, drawn.read(NONCE_BYTES)))
    INSERT_ANSWERS.defer(connection, deferred, kept)
    return outcomes


def _row(new: NewClearance, result: ClearanceResult) -> tuple[object, ...]:
    use_id, granted = new.use_id, result.granted
    return (
        new.clearance_id,
        new.account_id,
        new.mode.value,
        # A clearance's identifier in `ack_id` is no acknowledgment.
        use_id if new.order.ack_id is None or is_id(ACKNOWLEDGMENT, use_id) else None,
        granted and granted.kid,
        granted and to_ms(granted.expires_at),
        to_ms(new.at),
    )


def _decide(item: PreparedOrder, facts: OrderFacts) -> ClearanceResult | None:
    new, case = item.new, case_of(item, facts)
    stale = case.not_exempt or (facts.acknowledgment is not None and not case.notice_in_force)
    if not item.fresh and stale:
        return None
    failed = failed_checks(case)
    shipped = shipped_under(new, facts) if REFUSES_BINDING.isdisjoint(failed) else None
    reasons = () if shipped else reasons_of(case, failed)
    earlier = None if reasons or shipped else valid_earlier(new, facts)
    granted, ends = shipped or earlier, expiry(case)
    if earlier is not None and new.order.order_reference is not None and not earlier.order_named:
        # The new record names the order, but does not prolong the clearance.
        granted, ends = None, min(ends, earlier.expires_at)
    if not reasons and granted is None:
        granted = GrantedClearance(
            clearance_id=new.clearance_id,
            kid=item.signers.at(new.at).kid,
            at=new.at,
            clock_at=new.clock_at,
            expires_at=ends,
            reference_index=new.reference_index,
            order_named=new.order.order_reference is not None,
        )
    return ClearanceResult(
        reasons=reasons,
        obligations=() if reasons else (*case.following.obligations, COMPARED_ZIP),
        granted=granted,
        is_new=granted is None or granted.clearance_id == new.clearance_id,
        waived=() if reasons else case.waived,
        binds=binds(case, failed),
        zip_compared=case.zip_proved is not None and not (shipped or earlier),
        paid_at=None if reasons or shipped else kept_by(case),
        already_shipped=shipped is not None,
        verification=case.verification,
        live_would_refuse=live_would_refuse(case),
    )


def case_of(item: PreparedOrder, facts: OrderFacts) -> ClearanceInput:
    """The input of the decision about this order."""
    new, floor, acknowledgment = item.new, item.room.floor, facts.acknowledgment
    rules = facts.buyer_rules.at_least(floor) if facts.buyer_rules else floor
    view = None
    if facts.buyer is not None:
        view = status_view(facts.buyer, new.account_id, rules, new.clock_at)
        if item.input_required:
            view = replace(view, status=BuyerStatus.REQUIRES_INPUT)
    shown = current = None
    if acknowledgment is not None:
        id_, named = acknowledgment.notice_id, acknowledgment.notice_version
        versions = item.notices.versions.get(id_, ())
        shown = next((v for v in versions if v.content.version == named), None)
        real = new.clock_at == new.at
        current = item.notices.current(id_, new.mode, new.clock_at, remember=real)
    proof = best_proof(facts.buyer, rules, new.account_id) if facts.buyer else None
    following = NOTHING if shown is None else shown.following
    needed = new.order.ack_id is not None
    judged = (following, (), None) if needed else without_notice(new, item.notices)
    return ClearanceInput(
        new=new,
        facts=facts,
        cbid_indexes=_cbid_indexes(item, facts),
        notice_in_force=shown is not None and shown is current,
        following=judged[0],
        waived=judged[1],
        not_exempt=judged[2],
        standing=view,
        zip_proved=_zip_proved(item, facts, rules),
        verification=relied_on(facts, proof),
    )


def _cbid_indexes(item: PreparedOrder, facts: OrderFacts) -> frozenset[bytes]:
    """A buyer joined to another one has several identifiers."""
    new, buyer, use = item.new, facts.buyer, facts.use
    indexes = {new.cbid_index}
    if buyer is not None:
        if buyer.cbid != new.order.cbid:
            index = item.room.access.secret.blind_index(new.account_id, CBID_FIELD, buyer.cbid)
            indexes.add(index)
        if use is not None and facts.bound_to == buyer.cbid:
            indexes.add(use.cbid_index)
    return frozenset(indexes)


def _zip_proved(item: PreparedOrder, facts: OrderFacts, rules: VerificationRules) -> bool | None:
    buyer, new = facts.buyer, item.new
    if buyer is None or (buyer.simulated and buyer.account_id != new.account_id):
        return None
    if buyer.simulated and not buyer.proofs:
        verified = buyer.verified_at is not None
        return new.zip_index in facts.sandbox_zips if verified else None
    proof = best_proof(buyer, rules, new.account_id)
    if proof is None:
        return None
    secret, zip_ = item.room.access.secret, new.order.shipping_zip
    return proves_zip(secret, new.account_id, buyer.cbid, proof, rules, zip_, new.clock_at)


def _cleared(item: PreparedOrder, result: ClearanceResult) -> Cleared:
    """The response to an order: its new clearance, or the earlier one again."""
    new, order, granted, token = item.new, item.new.order, result.granted, None
    if granted is not None and not result.already_shipped:
        claims = token_claims(
            item.room.public_url,
            new.mode,
            new.account_id,
            granted,
            ack_id=order.ack_id or "",
            order_sha256=order_digest(order.shipping_zip, order.classes, order.session_id),
            obligations=result.obligations,
        )
        token = item.signers.of(granted.kid, new.at).sign(claims)
    override_id, refused_id = result.override or (UNSET, new.clearance_id)
    decision = ClearanceDecision(
        clearance_id=granted.clearance_id if granted else refused_id,
        cleared=granted is not None,
        order_named=order.order_reference is not None,
        reasons=result.reasons,
        obligations=result.obligations,
        expires_at=granted.expires_at if granted else None,
        token=token,
        already_shipped=result.already_shipped,
        overridden=UNSET if result.override is None else True,
        override_id=override_id,
    )
    return Cleared(decision, encode(decision), result.live_would_refuse)


def _record(new: NewClearance, result: ClearanceResult, bound: Bound) -> NewRecord:
    """The record of a decision, with the members of spec/evidence-format.md.

    The buyer and the destination are disclosures, encrypted.
    """
    order, granted = new.order, result.granted
    members: dict[str, Any] = {
        **bound.members(),
        "type": RecordType.CLEARANCE.value,
        "id": new.clearance_id,
        "mode": new.mode.value,
        "at": rfc3339_ms(new.at),
        "account": new.account_id,
        "ack_id": order.ack_id if is_id(ACKNOWLEDGMENT, order.ack_id or "") else None,
        "cleared": granted is not None,
        "order_named": order.order_reference is not None,
        "reasons": result.reasons,
        "obligations": result.obligations,
        "expires_at": rfc3339(granted.expires_at) if granted else None,
    }
    if new.clock_at != new.at:
        members["test_clock"] = rfc3339_ms(new.clock_at)
    if result.paid_at is not None:
        members["paid_at"] = rfc3339(result.paid_at)
    if result.waived:
        members["exempt_from"] = to_builtins(result.waived)
    classes = order.classes
    shipping = {
        "zip": order.shipping_zip,
        "address": to_builtins(order.shipping_address),
        "product_class": classes[0] if len(classes) == 1 else None,
        **({"product_classes": classes} if len(classes) > 1 else {}),
    }
    personal = (
        (CBID_FIELD, order.cbid),
        (SESSION_FIELD, order.session_id),
        (SHIPPING_FIELD, shipping),
        (VERIFICATION_FIELD, result.verification),
        *([(REFERENCE_FIELD, order.order_reference)] if order.order_reference else []),
        *([(EXEMPTION_FIELD, to_builtins(order.exemption))] if order.exemption else []),
    )
    record = NewRecord(
        id=new.clearance_id,
        account_id=new.account_id,
        mode=new.mode,
        type=RecordType.CLEARANCE,
        at=new.at,
        members=members,
        personal=personal,
        # A granted clearance is found by its acknowledgment, which has the same session.
        session_index=None if granted and order.ack_id is not None else new.session_index,
        cbid_index=new.cbid_index,
        reference_index=new.reference_index,
    )
    record.draw(new.entropy)
    return record


async def foresee(
    room: Clearances, who: Principal, order: ClearanceRequest, notice: NoticeEdition, known: str
) -> tuple[str, ...]:
    """Why this order would not be cleared now, if its buyer had just initialed this notice.

    `known` is the buyer whose browser asks, by any of the buyer's identifiers: the result reveals
    nothing about other buyers' orders. Only the tried ZIP code is written, where the account does
    not see it.

    Raises:
        RateLimited: too many ZIP codes were tried for the buyer.
        InvalidRequest: no notice is about such a class of products.
    """
    item = await prepare_order(room, who, order)
    new, secret = item.new, item.room.access.secret

    def foreseen(connection: Connection) -> tuple[str, ...] | RateLimited:
        facts = BatchFacts(connection, secret, [new]).of(new)
        person = buyers_by_cbid(connection, [known], follow=True).get(known)
        if facts.buyer is None or person is None or person.cbid != facts.buyer.cbid:
            return ()
        initialed = AcknowledgmentFacts(
            accepted_at=new.clock_at,
            notice_id=notice.content.id,
            notice_version=notice.content.version,
            session_index=new.session_index,
            cbid_index=new.cbid_index,
            reference_index=None,
            erased=False,
        )
        case = case_of(item, replace(facts, acknowledgment=initialed, is_strange=False))
        if not case.notice_in_force:
            return ()  # another one was published since the notices were read
        if case.zip_proved is not None:
            subject = own_zip_subject(secret, new.account_id, new.mode, person.cbid)
            if refusal := count_zip(connection, subject, new.zip_index, new.at):
                return refusal
        return reasons_of(case, failed_checks(case))

    return await room.access.database.write(foreseen)
