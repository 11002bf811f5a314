"""Clear an order: one decision over acknowledgment, buyer and ZIP, written down as evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace
from sqlalchemy import Connection

from countersign.access.idempotency import IdempotencyEntry, keep_answers
from countersign.access.key import Principal
from countersign.buyers.model import BuyerStatus, best_proof, status_view
from countersign.buyers.rules import AbsentCountry, VerificationRules
from countersign.buyers.write_evaluation import proved_zip_index
from countersign.clearances.facts_sql import BatchFacts
from countersign.clearances.keys import Signers
from countersign.clearances.model import (
    ClearanceInput,
    ClearanceResult,
    NewClearance,
    Order,
    OrderFacts,
    binds,
    expiry,
    failed_checks,
    live_would_refuse,
    reasons_of,
)
from countersign.clearances.record import RECORD_ENTROPY, RecordDraft, clearance_records
from countersign.clearances.room import Clearances
from countersign.clearances.schemas import ClearanceDecision
from countersign.clearances.token import token_claims
from countersign.db.bulk import BulkInsert
from countersign.db.tables import clearances
from countersign.errors import CountersignError, InvalidRequest
from countersign.evidence.canonical import canonical_json
from countersign.evidence.record import CBID_FIELD, SESSION_FIELD
from countersign.http.reply import encode
from countersign.identity.postal_code import zip5
from countersign.ids import ACKNOWLEDGMENT, CLEARANCE, is_id, timed_id
from countersign.instant import from_ns, to_ms
from countersign.notices.model import NoticeStatus, status_of
from countersign.notices.obligations import COMPARED_ZIP, NOTHING, Following
from countersign.notices.registry import AllVersions
from countersign.vault.vault import DataKey

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


class _Item(NamedTuple):
    """An order on its way into a transaction, and what its decision is written down with."""

    room: Clearances
    new: NewClearance
    key: DataKey
    signers: Signers
    entropy: bytes
    notices: AllVersions
    fresh: bool
    """Whether the notices are those of now."""
    input_required: bool
    entry: Callable[[bytes], IdempotencyEntry] | None


async def clear_order(
    room: Clearances,
    who: Principal,
    order: Order,
    entry: Callable[[bytes], IdempotencyEntry] | None = None,
    *,
    input_required: bool = False,
) -> Cleared:
    """Decide whether an order may ship; durable when this returns.

    The same order gets the same clearance while that is valid and all conditions still hold.
    `input_required`: decide as if the buyer were in `requires_input`.

    Raises:
        InvalidRequest: the product class is neither a usual one nor named by a notice.
        RateLimited: the account has tried too many ZIP codes for this buyer today.
    """
    await _check_class(room, order.product_class)
    test_clock = await room.test_clocks.of(who.account_id, who.mode)
    time_ns = room.clock.time_ns()
    at = from_ns(time_ns)
    entropy = room.entropy(_ID_ENTROPY + RECORD_ENTROPY)
    index, account_id, zip_ = room.secret.blind_index, who.account_id, zip5(order.shipping_zip)
    item = _Item(
        room=room,
        new=NewClearance(
            clearance_id=timed_id(CLEARANCE, time_ns, entropy[:_ID_ENTROPY]),
            account_id=account_id,
            mode=who.mode,
            order=order,
            session_index=index(account_id, SESSION_FIELD, order.session_id),
            cbid_index=index(account_id, CBID_FIELD, order.cbid),
            order_index=index(account_id, "order", _whole(order, zip_)),
            zip_index=index(account_id, "zip", zip_),
            at=at,
            clock_at=test_clock.at(at),
        ),
        key=await room.vault.data_key(account_id, time_ns),
        signers=await room.keys.signers(who.mode),
        entropy=entropy[_ID_ENTROPY:],
        notices=await room.registry.notices(),
        fresh=False,
        input_required=input_required,
        entry=entry,
    )
    cleared = await room.database.write_batched(_clear, item)
    if cleared is None:
        # What speaks against the notice counts only after a fresh look.
        notices = await room.registry.notices(fresh=True)
        item = item._replace(notices=notices, fresh=True)
        cleared = await room.database.write_batched(_clear, item)
    assert cleared is not None  # noqa: S101 - a fresh look leaves nothing open
    return cleared


async def _check_class(room: Clearances, product_class: str | None) -> None:
    """Refuse a class that no notice names: a typing error, not goods that need a dealer."""
    if product_class is None:
        return
    if product_class in room.duties.classes(await room.registry.notices()):
        return
    known = room.duties.classes(await room.registry.notices(fresh=True))
    if product_class not in known:
        msg = f"Expected one of {', '.join(sorted(known))} - at `$.product_class`."
        raise InvalidRequest(msg)


def _whole(order: Order, zip_: str) -> str:
    """All that makes two orders the same, as one text."""
    members = [order.ack_id, order.session_id, zip_, order.product_class, order.shipping_address]
    return canonical_json(members).decode()


def _clear(
    connection: Connection, items: Sequence[_Item]
) -> Sequence[Cleared | CountersignError | None]:
    """Decide these orders one after the other, and write the decisions together.

    None, and nothing written, for an order whose notices may be too old to decide by.
    """
    room = items[0].room
    facts = BatchFacts(connection, room.secret, [item.new for item in items])
    outcomes: list[Cleared | CountersignError | None] = [None] * len(items)
    decided: list[tuple[int, _Item, ClearanceResult]] = []
    for place, item in enumerate(items):
        result = _decide(item, facts.of(item.new))
        if result is None:
            continue
        refusal = facts.count_zip(item.new) if result.zip_compared else None
        if refusal is not None:
            outcomes[place] = refusal
            continue
        facts.apply(item.new, result)
        decided.append((place, item, result))
    _write_new(connection, room, [(item, result) for _, item, result in decided])
    facts.write(connection)
    kept = []
    for place, item, result in decided:
        outcomes[place] = cleared = _cleared(item, result)
        if item.entry is not None:
            kept.append(item.entry(cleared.body))
    keep_answers(connection, kept)
    return outcomes


def _write_new(
    connection: Connection, room: Clearances, decided: Sequence[tuple[_Item, ClearanceResult]]
) -> None:
    """Write the records and rows of the decisions that are new."""
    drafts = [
        RecordDraft(item.key, item.new, result, item.entropy)
        for item, result in decided
        if result.earlier is None
    ]
    room.journal.write(connection, clearance_records(drafts))
    if drafts:
        _insert_clearances(connection, [_row(draft.new, draft.result) for draft in drafts])


def _row(new: NewClearance, result: ClearanceResult) -> tuple[object, ...]:
    return (
        new.clearance_id,
        new.account_id,
        new.mode.value,
        new.order.ack_id if is_id(ACKNOWLEDGMENT, new.order.ack_id) else None,
        result.kid if result.cleared else None,
        None if result.expires_at is None else to_ms(result.expires_at),
        to_ms(new.at),
    )


def _decide(item: _Item, facts: OrderFacts) -> ClearanceResult | None:
    case = _input(item, facts)
    if item.input_required and case.standing is not None:
        rehearsed = replace(case.standing, status=BuyerStatus.REQUIRES_INPUT)
        case = replace(case, standing=rehearsed)
    if not item.fresh and facts.acknowledgment is not None and not case.notice_in_force:
        return None
    failed = failed_checks(case)
    reasons = reasons_of(case, failed)
    earlier = facts.earlier
    if reasons or earlier is None or item.new.clock_at >= earlier.expires_at:
        earlier = None
    return ClearanceResult(
        reasons=reasons,
        obligations=() if reasons else (*case.following.obligations, COMPARED_ZIP),
        expires_at=None if reasons else expiry(case),
        earlier=earlier,
        kid=item.signers.at(item.new.at).kid,
        binds=binds(case, failed),
        zip_compared=case.zip_proved is not None,
        live_would_refuse=live_would_refuse(case),
    )


def _input(item: _Item, facts: OrderFacts) -> ClearanceInput:
    new, floor = item.new, item.room.floor
    rules = facts.buyer_rules.at_least(floor) if facts.buyer_rules else floor
    in_force, following = _notice(item, facts)
    view = None
    if facts.buyer is not None:
        view = status_view(facts.buyer, new.account_id, rules, new.clock_at)
    return ClearanceInput(
        new=new,
        facts=facts,
        cbid_indexes=_cbid_indexes(item, facts),
        notice_in_force=in_force,
        following=following,
        standing=view,
        zip_proved=_zip_proved(item, facts, rules),
    )


def _notice(item: _Item, facts: OrderFacts) -> tuple[bool, Following]:
    """Whether the version that was acknowledged is in force, and what follows from it."""
    acknowledgment, new = facts.acknowledgment, item.new
    if acknowledgment is None:
        return False, NOTHING
    versions = item.notices.get(acknowledgment.notice_id, ())
    named = acknowledgment.notice_version
    version = next((v for v in versions if v.content.version == named), None)
    if version is None:
        return False, NOTHING
    status = status_of(version, versions, new.mode, new.clock_at)
    return status is NoticeStatus.IN_FORCE, item.room.duties.of(version)


def _cbid_indexes(item: _Item, facts: OrderFacts) -> frozenset[bytes]:
    """A buyer that was found to be a known one has several identifiers."""
    new, buyer, use = item.new, facts.buyer, facts.use
    indexes = {new.cbid_index}
    if buyer is not None:
        if buyer.cbid != new.order.cbid:
            indexes.add(item.room.secret.blind_index(new.account_id, CBID_FIELD, buyer.cbid))
        if use is not None and facts.bound_to == buyer.cbid:
            indexes.add(use.cbid_index)
    return frozenset(indexes)


def _zip_proved(item: _Item, facts: OrderFacts, rules: VerificationRules) -> bool | None:
    buyer, new = facts.buyer, item.new
    if buyer is None or (buyer.simulated and buyer.account_id != new.account_id):
        return None
    if buyer.simulated and not buyer.proofs:
        verified = buyer.verified_at is not None
        return new.zip_index in facts.sandbox_zips if verified else None
    proof = best_proof(buyer, rules)
    if proof is None:
        return None
    secret, zip_ = item.room.secret, new.order.shipping_zip
    countries = (False, True) if rules.absent_country is AbsentCountry.US else (False,)
    return any(
        proved_zip_index(secret, buyer.cbid, zip_, source, country_assumed=assumed) in proof.zips
        for source in rules.zip_sources
        for assumed in countries
    )


def _cleared(item: _Item, result: ClearanceResult) -> Cleared:
    """The response to an order: its new clearance, or the earlier one again."""
    new, earlier, expires_at = item.new, result.earlier, result.expires_at
    id_, kid, at, clock_at = new.clearance_id, result.kid, new.at, new.clock_at
    if earlier is not None:
        id_, kid, at, clock_at = earlier.clearance_id, earlier.kid, earlier.at, earlier.clock_at
        expires_at = earlier.expires_at
    token = None
    if expires_at is not None:
        claims = token_claims(
            item.room.public_url,
            new.mode,
            new.account_id,
            id_,
            order=new.order,
            obligations=result.obligations,
            at=at,
            clock_at=clock_at,
            expires_at=expires_at,
        )
        token = item.signers.of(kid, new.at).sign(claims)
    decision = ClearanceDecision(
        clearance_id=id_,
        cleared=result.cleared,
        reasons=result.reasons,
        obligations=result.obligations,
        expires_at=expires_at,
        token=token,
    )
    return Cleared(decision, encode(decision), result.live_would_refuse)
