"""The acts on an order: these functions call Countersign and store its responses.

All raise a `CountersignError` of the client if the service refuses or does not respond. It is
logged, nothing is stored, and the order is unchanged: treat it as a no.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from countersign_client import CountersignError, errors
from countersign_django.conf import client
from countersign_django.models import CountersignOrder, State, nothing
from countersign_django.needing import CannotSell, Needed, logged, logger, needs, place_of
from countersign_django.signals import order_changed

__all__ = (
    "CannotSell",
    "Needed",
    "begin",
    "cancel",
    "decide",
    "known_buyer",
    "needs",
    "paid",
    "place_of",
    "refresh",
    "report",
    "settle",
    "state_now",
    "take_over",
)


def state_now(
    order: CountersignOrder,
    product_classes: Collection[str],
    *,
    state: str,
    zip_code: str,
    country: str = "US",
    residence_state: str = "",
) -> State:
    """The state of an order for what is in it now: `none` if that is not what was asked about.

    It notes if nothing is needed, see `needs`, and ends the session for another place. If the
    service does not respond, the order is as it was, or `none`.
    """
    is_same = False
    try:
        state, zip_code = place_of(state, zip_code, country)
        asked = (",".join(sorted(set(product_classes))), zip_code)
        is_same = asked == (order.product_class, order.shipping_zip)
        if is_same and order.state not in {State.NONE, State.NOT_NEEDED}:
            return order.state
        needed = needs(
            product_classes, state=state, zip_code=zip_code, residence_state=residence_state
        )
        if needed is None and not (is_same and order.state == State.NOT_NEEDED):
            noted = {} if _is_own(order) else nothing()
            noted |= {"bound_to": order.itself(), "session_status": State.NOT_NEEDED}
            _drop(order, **noted | dict(zip(("product_class", "shipping_zip"), asked, strict=True)))
        elif needed is not None and order.state == State.OPEN:
            _drop(order)
    except (CannotSell, CountersignError) as error:
        return order.state if is_same and isinstance(error, CountersignError) else State.NONE
    return State.NONE if needed else State.NOT_NEEDED


def known_buyer(of_customer: QuerySet[CountersignOrder]) -> str:
    """The buyer of a customer's newest decided order, if it was cleared; else "".

    For `begin(cbid=)`, with the orders of the signed-in customer, newest first, if the account
    counts as the buyer: its password then suffices for a purchase with initials alone. After a
    refusal the next session has an identity check.
    """
    decided = of_customer.exclude(cbid="").exclude(cleared=None)
    newest = next((order for order in decided[:10] if order.is_own), None)
    return newest.cbid if newest and newest.cleared else ""


@logged()
def begin(
    order: CountersignOrder,
    needed: Needed,
    *,
    return_url: str,
    cbid: str = "",
    origin: str = "",
    locale: str = "",
) -> str:
    """Create a checkout session for an order that is saved; returns the buyer's link.

    `cbid` is the customer's, see `known_buyer`: then only the notice is shown.
    `origin` is the scheme, host and port of your page, if it has the component in it. An order that
    was not cleared can be begun again. While a session is open its link is returned, and for a
    cleared order `return_url`; but if `needed` is for another ZIP code or class than before, the
    open session is cancelled, a clearance no longer counts, and another session is created.
    A copied order is a new order.
    """
    if not _is_own(order) and (order.bound_to or order.reference):
        # Copied without `save`: not even the random name of another order is its own.
        rows = type(order)._base_manager.filter(pk=order.pk, bound_to=order.bound_to)  # noqa: SLF001 - as below
        rows.update(**nothing())
        order.refresh_from_db()
    # A session for another address must not lead to a payment, so it is not fetched.
    if order.state == State.NOT_NEEDED or _is_about_another(order, needed):
        _drop(order)
    match settle(order):
        case State.OPEN:
            return order.notice_url
        case State.CLEARED | State.OVERRIDDEN:
            return return_url
        case _:
            pass
    if not order.reference:
        # Two requests at once agree on one.
        rows = type(order)._base_manager.filter(pk=order.pk, reference="")  # noqa: SLF001 - as below
        rows.update(reference=f"cs_{secrets.token_hex(16)}", bound_to=order.itself())
        # Alone: with `fields` Django would make an order without the rest, and one that reads
        # itself in `__init__` would read all of it in the same way, without end.
        values = type(order)._base_manager.values_list("reference", "bound_to")  # noqa: SLF001
        order.reference, order.bound_to = values.get(pk=order.pk)
    kinds: Sequence[str] = ["acknowledgment"]
    if needed.identity and not cbid:
        kinds = ["identity", "acknowledgment"]
    before = (order.state, order.checkout_session_id)
    # The same call again returns the same session, and there is another after its end, or for
    # another address or language.
    called = order.order_reference()
    asked = repr((needed, return_url, cbid, origin, locale, before, *filter(None, [called])))
    made = client().checkout_sessions.create(
        session_id=order.reference,
        order_reference=called or None,
        return_url=return_url,
        collect=kinds,  # type: ignore[arg-type]  # words of the API
        notice_id=needed.notice_id,
        cbid=cbid or None,
        shipping_zip=needed.shipping_zip,
        product_classes=needed.product_class.split(","),
        origin=origin or None,
        locale="es" if locale.startswith("es") else None,
        idempotency_key=f"{order.reference}-{hashlib.sha256(asked.encode()).hexdigest()}",
    )
    _store(
        order,
        only_if=before,
        product_class=needed.product_class,
        shipping_zip=needed.shipping_zip,
        checkout_session_id=made.checkout_session_id,
        session_status=made.status,
        notice_url=made.url or "",
        client_token=made.client_token or "",
        cleared=None,
        reasons=[],
        override_id="",
    )
    return order.notice_url


@logged()
def refresh(order: CountersignOrder) -> State:
    """Read the session of an order that waits for its buyer, and store how it ended.

    The decision at its end is stored too. It asks for no decision, so a page that anybody
    can open, a mail scanner too, may call it.
    """
    if _is_own(order) and order.state == State.OPEN:
        session = client().checkout_sessions.retrieve(order.checkout_session_id)
        if session.status != "open":
            clearance = None
            if session.cleared and session.clearance_id:
                clearance = client().clearances.retrieve(session.clearance_id)
            _store(
                order,
                only_if=(State.OPEN, session.checkout_session_id),
                session_status=session.status,
                notice_url="",
                client_token="",
                ack_id=session.ack_id or "",
                receipt=session.receipt or "",
                cbid=session.cbid or "",
                clearance_id=session.clearance_id or "",
                cleared=session.cleared,
                reasons=list(session.reasons),
                obligations=list(clearance.obligations) if clearance else [],
                clearance_token=(clearance.token or "") if clearance else "",
                cleared_until=clearance.expires_at if clearance else None,
            )
    return order.state


@logged()
def settle(order: CountersignOrder) -> State:
    """`refresh`, and `decide` if nothing was decided: for a message, or a button of the buyer."""
    if refresh(order) == State.UNDECIDED and order.ack_id and order.cbid:
        decide(order)
    return order.state


@logged()
def decide(order: CountersignOrder, needed: Needed | None = None) -> State:
    """Ask whether the order may ship, and store the decision: the last one counts.

    Call it before the parcel leaves, with the present result of `needs`: if its ZIP code or class
    is not the one that was begun, the state becomes `none`, and the order must be begun again.
    Without `needed` the order counts as unchanged. A refused order that got a manual override since
    becomes `overridden`: no event tells it. An order that was reported as shipped is not decided
    again, and an order whose buyer has not finished is not decided yet. If the notice was initialed
    for an order with another `order_reference()`, this one was not begun.
    """
    if not _is_own(order):
        return order.state
    if needed is not None and _is_about_another(order, needed):
        _drop(order)
    if order.shipped_at is not None or order.session_status != "completed":
        return order.state
    try:
        decision = client().clearances.create(
            ack_id=order.ack_id,
            cbid=order.cbid,
            session_id=order.reference,
            order_reference=order.order_reference() or None,
            shipping_zip=order.shipping_zip,
            product_classes=order.product_class.split(","),
        )
    except errors.OrderReferenceMismatch as error:
        logger.warning("%s is not what was decided about: %s", order.itself(), error)
        _store(order, decided=order.checkout_session_id, **nothing())
        return order.state
    if decision.already_shipped:
        # Reported by `report`, which has not stored it yet, or never could.
        _store(order, decided=order.checkout_session_id, shipped_at=timezone.now())
        return order.state
    _store(
        order,
        decided=order.checkout_session_id,
        clearance_id=decision.clearance_id,
        cleared=decision.cleared,
        reasons=list(decision.reasons),
        override_id=decision.override_id or "",
        obligations=list(decision.obligations),
        clearance_token=decision.token or "",
        cleared_until=decision.expires_at,
    )
    return order.state


@logged()
def report(
    order: CountersignOrder,
    *,
    carrier: str = "",
    tracking_number: str = "",
    shipped_at: datetime | None = None,
    delivered_at: datetime | None = None,
    adult_signature_obtained: bool | None = None,
    confirm_order_of_events: bool | None = None,
    corrects: str = "",
) -> None:
    """Report the fulfilment of a cleared order; repeat it with later facts.

    Of an overridden order nothing is reported, only noted that it was shipped.

    `corrects`: the earlier report that was wrong (`ful_…`, in
    `client().clearances.retrieve(order.clearance_id).fulfilments`); this one stands in its place.
    `confirm_order_of_events`: the times are right, although the parcel left before the order was
    cleared, or came before it left. The evidence shows that you confirmed it.

    Raises ValueError for an order that was not begun, such as a copy of a cleared one, and
    `errors.FulfilmentContradicted` for such times without the confirmation: nothing is stored.
    """
    if not _is_own(order):
        raise ValueError("This order was not begun: there is no clearance for it.")
    if order.state == State.OVERRIDDEN:
        # The service takes no report: it is evidence of a cleared order.
        _store(order, shipped_at=order.shipped_at or shipped_at or timezone.now())
        return
    made = client().clearances.fulfil(
        order.clearance_id,
        order_reference=order.order_reference() or None,
        carrier=carrier or None,
        tracking_number=tracking_number or None,
        shipped_at=shipped_at,
        delivered_at=delivered_at,
        adult_signature_obtained=adult_signature_obtained,
        confirm_order_of_events=confirm_order_of_events,
        corrects=corrects or None,
    )
    _store(
        order,
        shipped_at=(not corrects and order.shipped_at) or shipped_at or timezone.now(),
        closed_at=made.closed_at,
    )


@logged()
def paid(order: CountersignOrder, *, paid_at: datetime | None = None) -> None:
    """Report that a cleared order was paid, while its clearance is valid; not of an overridden one.

    It keeps the acknowledgment for later decisions, up to 180 days: only buyer and address are
    judged again. Left out, `paid_at` is now.

    Raises ValueError for an order that was not begun, and `errors.FulfilmentContradicted` if the
    clearance has expired.
    """
    if not _is_own(order):
        raise ValueError("This order was not begun: there is no clearance for it.")
    if order.state == State.OVERRIDDEN:
        return
    client().clearances.fulfil(
        order.clearance_id,
        order_reference=order.order_reference() or None,
        paid_at=paid_at or timezone.now(),
    )


@logged()
def cancel(order: CountersignOrder) -> State:
    """End the session of an order that waits for its buyer: the link collects nothing more."""
    if _is_own(order) and order.state == State.OPEN:
        try:
            client().checkout_sessions.cancel(order.checkout_session_id)
        except CountersignError as error:
            # It ended at the same moment: how, says the session.
            if error.code != "checkout_session_closed":
                raise
        refresh(order)
    return order.state


def _is_own(order: CountersignOrder) -> bool:
    """`order.is_own`, after a check of orders from releases that did not note the subject.

    Its session is its own if the service has this order's reference for it; without a reference, if
    no other order has the session.
    """
    if order.bound_to or not order.checkout_session_id:
        return order.is_own
    try:
        session = client().checkout_sessions.retrieve(order.checkout_session_id)
    except errors.NotFound:
        return False
    model = order._meta.get_field("bound_to").model  # noqa: SLF001 - Django's public API, by this name
    rows = model._base_manager.filter(checkout_session_id=order.checkout_session_id)  # noqa: SLF001 - all orders
    if session.order_reference is None:
        is_own = rows.count() == 1
    else:
        is_own = session.order_reference == order.order_reference()
    if is_own:
        rows.filter(pk=order.pk, bound_to="").update(bound_to=order.itself())
        order.bound_to = order.itself()
    return is_own


@logged()
def take_over(order: CountersignOrder) -> bool:
    """Check an order from a release that did not note its subject: whether it continues."""
    return _is_own(order)


def _is_about_another(order: CountersignOrder, needed: Needed) -> bool:
    """True if the order waits, or was cleared, overridden or shipped, for other needs than now."""
    if order.state not in {State.OPEN, State.UNDECIDED, State.CLEARED, State.OVERRIDDEN}:
        return False
    before = (order.product_class, order.shipping_zip)
    return before != (needed.product_class, needed.shipping_zip)


def _drop(order: CountersignOrder, **noted: object) -> None:
    """Give up a begun order: nothing is cleared, and the link collects nothing more.

    `noted` is stored instead of nothing.

    The ids stay: the next session has another key by them, and the receipt can be collected.
    """
    before = (order.state, order.checkout_session_id)
    if order.state == State.OPEN:
        try:
            client().checkout_sessions.cancel(order.checkout_session_id)
        except CountersignError as error:
            # It has ended: how does not matter.
            if error.code != "checkout_session_closed":
                raise
    dropped: dict[str, Any] = {
        "session_status": "",
        "notice_url": "",
        "client_token": "",
        "clearance_id": "",
        "cleared": None,
        "reasons": [],
        "override_id": "",
        "obligations": [],
        "clearance_token": "",
        "cleared_until": None,
        "shipped_at": None,
        "closed_at": None,
    }
    _store(order, only_if=before, **dropped | noted)


def _store(
    order: CountersignOrder,
    *,
    only_if: tuple[State, str] | None = None,
    decided: str | None = None,
    **values: object,
) -> None:
    """Store values, and report another state: once, however many requests see it.

    With `only_if` a state and a session: only if they are still the order's. With `decided` only
    if this session is, and it is completed: not after the order was changed meanwhile.
    """
    model = type(order)
    with transaction.atomic():
        locked = model._base_manager.select_for_update().get(pk=order.pk)  # noqa: SLF001 - the manager that Django has for this
        before = locked.state
        is_same = only_if is None or only_if == (before, locked.checkout_session_id)
        now = (locked.checkout_session_id, locked.session_status)
        if is_same and (decided is None or now == (decided, "completed")):
            for name, value in values.items():
                setattr(locked, name, value)
            locked.save(update_fields=list(values))
            if locked.state != before:
                order_changed.send(sender=model, order=locked, before=before)
    # All fields: receivers changed other fields, and related objects, of the locked one.
    order.refresh_from_db()
