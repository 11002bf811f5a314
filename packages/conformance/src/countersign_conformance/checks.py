"""The checks of requests in a conformance run: pure functions of observations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from countersign.base.errors import EmptyInitials, IdempotencyKeyReused, InitialsCountMismatch
from countersign.core.clearances.schemas import ClearanceReason
from countersign_conformance.history import (
    History,
    failed,
    many,
    not_seen,
    passed,
    passed_if_lasting,
)
from countersign_conformance.model import (
    ACKNOWLEDGE,
    ACTS,
    BUYER_STATUS,
    CLEAR,
    FULFIL,
    GET_NOTICE,
    RETRY_AFTER_SECONDS,
    VERIFY,
    Finding,
    Observation,
    Provocation,
)
from countersign_conformance.orders import order_of, was_fetched_again

_WRONG_INITIALS: Final = {InitialsCountMismatch.code, EmptyInitials.code}
_WRONG_ACKNOWLEDGMENT: Final = {
    ClearanceReason.ACKNOWLEDGMENT_NOT_FOUND.value,
    ClearanceReason.SESSION_MISMATCH.value,
    ClearanceReason.ACKNOWLEDGMENT_ALREADY_USED.value,
    ClearanceReason.BUYER_MISMATCH.value,
}
_EARLY: Final = timedelta(seconds=RETRY_AFTER_SECONDS - 0.2)
_SHIPPED_BEFORE: Final = timedelta(seconds=60)
"""Further apart than the clocks of two companies should be."""


def version_sent(history: History) -> Finding:
    """Acknowledgments name the text that they are about."""
    stored = [one for one in history.of(ACKNOWLEDGE) if one.done]
    if not stored:
        return not_seen("No acknowledgment was stored.")
    without = [one for one in stored if not one.version_sent]
    fetched = len(history.of(GET_NOTICE))
    stored_and_fetched = (
        f"{many(len(stored), 'acknowledgment')} stored; the notice was fetched "
        f"{many(fetched, 'time')}"
    )
    if without:
        return failed(f"{stored_and_fetched}; {len(without)} had no notice_version.", *without)
    return passed(f"{stored_and_fetched}; each acknowledgment had notice_version.")


def lines_initialed(history: History) -> Finding:
    """There is an entry for each line, and none is blank."""
    sent = [one for one in history.of(ACKNOWLEDGE) if one.done or one.code in _WRONG_INITIALS]
    if not sent:
        return not_seen("No acknowledgment was sent.")
    wrong = [one for one in sent if one.code is not None]
    if wrong:
        codes = ", ".join(sorted({one.code or "" for one in wrong}))
        return failed(f"{len(wrong)} of {len(sent)} acknowledgments were refused: {codes}.", *wrong)
    lines = sorted({one.lines or 0 for one in sent})
    return passed(
        f"{many(len(sent), 'acknowledgment')} with {_either(lines)} initials each, none blank."
    )


def refusal_handled(history: History) -> Finding:  # noqa: PLR0911 - one for each outcome
    """After a refused acknowledgment, the notice is fetched and acknowledged again."""
    refused = history.provoked(Provocation.ACKNOWLEDGMENT_REFUSED)
    if refused is None:
        return not_seen("No acknowledgment was sent, so none could be refused.")
    after = history.after(refused)
    order = order_of(history, refused)
    if not order.is_known:
        return not_seen(
            "The refused acknowledgment had no session_id or cbid of its own, so later requests "
            "cannot be assigned to its order."
        )
    again = _first(
        one
        for one in after
        if one.operation == ACKNOWLEDGE and one.notice == refused.notice and order.has(one)
    )
    going_on = _first(one for one in after if one.operation == CLEAR and order.has(one))
    if going_on and (again is None or _is_before(after, going_on, again)):
        return failed(
            "The order continued: a clearance was requested without a new acknowledgment.",
            refused,
            going_on,
        )
    if again is None:
        return not_seen(
            "No new acknowledgment with the same session_id or cbid was sent: the order was "
            "abandoned, or started again under other identifiers."
        )
    fetched = was_fetched_again(history, order, refused, again)
    if fetched is False:
        waited = _seconds(refused, again)
        return failed(
            f"The acknowledgment was sent again after {waited} s, but the notice was not "
            "fetched again.",
            refused,
            again,
        )
    if not again.done:
        return failed(f"The new acknowledgment was refused: {again.code}.", refused, again)
    if fetched is None:
        return not_seen(
            "The notice was fetched before the new acknowledgment, but perhaps for another order."
        )
    return passed(
        "The notice was fetched again, then a new acknowledgment was sent.", refused, again
    )


def unavailable_handled(history: History) -> Finding:  # noqa: PLR0911 - one for each outcome
    """While the identity provider is down, no order continues."""
    down = history.provoked(Provocation.PROVIDER_UNAVAILABLE)
    if down is None:
        return not_seen("No verification was sent, so none could fail.")
    after = history.after(down)
    tries = [
        one for one in after if one.operation == VERIFY and _is_same_person(history, down, one)
    ]
    again = _first(tries)
    between = after if again is None else after[: _index(after, again)]
    known = {
        one.buyer
        for one in history.seen
        if one.operation in {VERIFY, BUYER_STATUS} and one.status == 200
    }
    going_on = _first(one for one in between if one.operation == CLEAR and one.buyer not in known)
    if going_on:
        return failed("A clearance was requested for a buyer who was not verified.", going_on)
    if again is None:
        return not_seen(
            "The verification was not sent again: no request had its Idempotency-Key or its "
            "identity session."
        )
    waited = _seconds(down, again)
    if again.at - down.at < _EARLY:
        return failed(
            f"The verification was sent again after {waited} s, before the "
            f"{RETRY_AFTER_SECONDS} s of Retry-After.",
            down,
            again,
        )
    if not any(one.status == 200 for one in tries):
        if tries[-1].status >= 500:
            return not_seen(
                f"The verification was sent again after {waited} s, and got no response in this "
                "run."
            )
        return failed(
            f"The verification was sent again, and was refused: {tries[-1].code}.", down, tries[-1]
        )
    return passed(
        f"The verification was sent again after {waited} s; nothing was cleared before that.",
        down,
        again,
    )


def timeout_repeated(history: History) -> Finding:
    """A request whose response was lost is sent again, and nothing is stored twice."""
    lost = history.provoked(Provocation.ANSWER_WITHHELD)
    if lost is None:
        return not_seen("No acknowledgment was stored, so no response could be lost.")
    after, order = history.after(lost), order_of(history, lost)
    same = [
        one
        for one in after
        if one.operation == ACKNOWLEDGE
        and one.notice == lost.notice
        and (_has_same(order.session, one.session) or _has_same(lost.key, one.key))
    ]
    repeated = False
    for one in same:
        if one.replayed and one.key == lost.key:
            repeated = True
        # After a response the buyer may initial again; the same body once more is no new act.
        elif one.done and (not repeated or _has_same(lost.body, one.body)):
            how = "without an Idempotency-Key" if one.key is None else "under another key"
            return failed(f"The acknowledgment was stored a second time, {how}.", lost, one)
        elif one.code == IdempotencyKeyReused.code and not repeated:
            return failed("Another body was sent with the same Idempotency-Key.", lost, one)
    replay = _first(one for one in same if one.replayed and one.key == lost.key)
    going_on = _first(
        one for one in after if one.operation == CLEAR and _has_same(order.session, one.session)
    )
    if going_on and (replay is None or _is_before(after, going_on, replay)):
        return failed("The order continued without a response.", lost, going_on)
    if replay is None:
        return not_seen(
            "The acknowledgment was not sent again: no request had its key or its session_id."
        )
    return passed_if_lasting(
        history,
        replay,
        "The acknowledgment was sent again with the same key and body, and stored once.",
    )


def idempotency_keys(history: History) -> Finding:
    """Each act has its own key."""
    acts = history.of(*ACTS)
    if not acts:
        return not_seen("No request was sent.")
    lost = history.provoked(Provocation.ANSWER_WITHHELD)
    without = [one for one in acts if one.key is None]
    reused = [
        one
        for one in acts
        if one.code == IdempotencyKeyReused.code and (lost is None or one.key != lost.key)
    ]
    if without or reused:
        parts = []
        if without:
            names = ", ".join(sorted({one.operation for one in without}))
            parts.append(f"{len(without)} of {many(len(acts), 'request')} had no key ({names})")
        if reused:
            parts.append(f"{len(reused)} had the key of another body")
        return failed("; ".join(parts) + ".", *without, *reused)
    return passed(
        f"{many(len(acts), 'request')}, each with a key; no key was used for another body."
    )


def clearance_first(history: History) -> Finding:
    """A clearance is requested, with the order's identifiers, before it ships."""
    asked = [one for one in history.of(CLEAR) if one.status == 200]
    wrong = [
        one
        for one in asked
        if not _WRONG_ACKNOWLEDGMENT.isdisjoint(one.reasons) and not _is_upset(history, one)
    ]
    if wrong:
        reasons = ", ".join(sorted({reason for one in wrong for reason in one.reasons}))
        return failed(f"{len(wrong)} of {len(asked)} clearances were refused: {reasons}.", *wrong)
    cleared = {one.clearance: one for one in asked if one.cleared}
    reports = history.of(FULFIL)
    unknown = [one for one in reports if one.status == 404]
    if unknown:
        return failed(f"{many(len(unknown), 'report')} named no clearance of this run.", *unknown)
    early = [
        one
        for one in reports
        if one.shipped_at is not None
        and (granted := cleared.get(one.clearance)) is not None
        and one.shipped_at < granted.at - _SHIPPED_BEFORE
    ]
    if early:
        return failed(f"{many(len(early), 'order')} shipped before being cleared.", *early)
    done = [one for one in reports if one.done and one.clearance in cleared]
    if not done:
        return not_seen(
            f"{many(len(cleared), 'order')} cleared, none reported as shipped: the time of "
            "shipping is unknown."
        )
    return passed(
        f"{many(len(cleared), 'order')} cleared, {len(done)} reported as shipped after that."
    )


def not_cleared_kept(history: History) -> Finding:
    """An order that was not cleared is kept back."""
    kept = {
        one.clearance: one for one in history.of(CLEAR) if one.status == 200 and not one.cleared
    }
    shipped = [one for one in history.of(FULFIL) if one.clearance in kept]
    if shipped:
        return failed(
            f"{many(len(shipped), 'report')} named an order that was not cleared.", *shipped
        )
    refused = history.provoked(Provocation.ORDER_NOT_CLEARED)
    if refused is None:
        return not_seen("No clearance was requested, so none could be refused.")
    asked_again = any(
        one.operation == CLEAR and _has_same(refused.session, one.session)
        for one in history.after(refused)
    )
    then = "requested again later" if asked_again else "not requested again"
    return passed_if_lasting(
        history, refused, f"No shipping was reported for this order; the clearance was {then}."
    )


def _first(found: Iterable[Observation]) -> Observation | None:
    return next(iter(found), None)


def _has_same(mark: str | None, other: str | None) -> bool:
    """Whether both have the same value; missing values are never the same."""
    return mark is not None and mark == other


def _is_same_person(history: History, down: Observation, one: Observation) -> bool:
    if _has_same(down.key, one.key):
        return True
    # A shop may test all orders with one identity session, which then identifies no buyer.
    is_own = not any(before.subject == down.subject for before in history.before(down))
    return is_own and _has_same(down.subject, one.subject)


def _is_upset(history: History, clearance: Observation) -> bool:
    """Whether its acknowledgment was provoked and not sent again: another check is about that."""
    last = _first(
        one
        for one in reversed(history.before(clearance))
        if one.operation == ACKNOWLEDGE and _has_same(clearance.session, one.session)
    )
    return last is not None and last.provoked is not None


def _index(seen: Sequence[Observation], wanted: Observation) -> int:
    return next(place for place, one in enumerate(seen) if one is wanted)


def _is_before(seen: Sequence[Observation], one: Observation, other: Observation) -> bool:
    return _index(seen, one) < _index(seen, other)


def _seconds(one: Observation, other: Observation) -> str:
    return f"{(other.at - one.at).total_seconds():.1f}"


def _either(numbers: Sequence[int]) -> str:
    return " or ".join(str(number) for number in numbers)
