"""The buyer's actions in a checkout session, on the hosted page or in the component."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias

from msgspec import UNSET
from sqlalchemy import Connection

from countersign.base.errors import CheckoutSessionClosed, NoticeVersionMismatch
from countersign.base.http.schemas import view
from countersign.base.values import rfc3339_ms
from countersign.core.acknowledgments.acknowledge import (
    begin,
    check_initials,
    make_hosted,
    write_hosted,
)
from countersign.core.acknowledgments.find import find_one
from countersign.core.acknowledgments.make import NewAcknowledgment
from countersign.core.acknowledgments.model import Client, Origin, Submission
from countersign.core.checkout import model, store
from countersign.core.checkout.brand import Brand, brands_of
from countersign.core.checkout.model import Collected, Session, Status, require_open
from countersign.core.checkout.order import Reading
from countersign.core.checkout.sessions import cleared, order_of, principal_of, with_decisions
from countersign.core.clearances.clear import PreparedOrder
from countersign.core.notices.model import NoticeEdition
from countersign.hosted.pages import identity
from countersign.hosted.pages.room import HostedPages
from countersign.hosted.toolkit.screens import WORDS
from countersign_evidence.process import Binding, Claim, Line, Process, Surface

_OTHERS: Final = "Other initials were sent at the same time."
_TEXT_CHANGED: Final = "The notice has changed since it was shown: show the new text."


async def brand(room: HostedPages, session: Session) -> Brand:
    """How the account is shown to buyers."""
    return await room.access.database.read_batched(brands_of, session.account_id)


async def notice_of(room: HostedPages, session: Session) -> NoticeEdition:
    """The version in force of the notice that this session collects initials for.

    Raises:
        NoticeNotReviewed, NoticeNotInForce: it was taken out of force since.
    """
    clock = await room.access.test_clocks.of(session.account_id, session.mode)
    notice_id = session.asked.notice_id or ""
    return await room.clearances.registry.in_force(notice_id, session.mode, clock)


async def show(  # noqa: PLR0917 - what is kept of it
    room: HostedPages,
    session: Session,
    notice: NoticeEdition,
    surface: Surface,
    rendered_digest: str | None,
    locale: str,
) -> Session:
    """Note that this text was served.

    Of simultaneous views only the first to be written is noted, with its time and page. A view that
    began before another one was recorded is ignored.
    """
    text = (notice.content.version, notice.digest, len(notice.content.bullets))
    began = await store.clock_of(room, session)

    def served(before: Session, now: datetime) -> Session:
        after = model.shown(before, now, text, surface, rendered_digest, locale)
        reading = None if before.content is None else before.content.reading
        since = (
            reading is not None
            and (reading.notice_digest, reading.surface, reading.locale)
            == (notice.digest, surface, locale)
            and all(one.shown_at > began for one in reading.lines if one.initialed_at is None)
        )
        return before if since else after

    return await room.looks.join(
        (session.id, session.browser, notice.digest, surface, locale),
        lambda: store.change(room, session, served),
    )


async def initial(  # noqa: PLR0917 - what arrives with initials
    room: HostedPages,
    session: Session,
    digest: str,
    initials: Sequence[str],
    client: Client,
    rendered_digest: str | None = None,
) -> Session:
    """Take the initials for every line of the text with this digest; nothing is final yet.

    `client` is where they came from, `rendered_digest` the digest of the text that the surface
    claims to have rendered.

    Raises:
        CheckoutSessionClosed: it has ended, or collects something else now.
        NoticeVersionMismatch: that text is not in force any more, or was not shown there.
        InitialsCountMismatch, EmptyInitials: as for any acknowledgment.
    """
    require_open(session, await store.clock_of(room, session), Collected.ACKNOWLEDGMENT)
    notice = await notice_of(room, session)
    if notice.digest != digest:
        raise NoticeVersionMismatch(_TEXT_CHANGED)
    check_initials(initials, len(notice.content.bullets))
    taken = partial(model.initialed, digest=digest, initials=initials, client=client)
    return await store.change(room, session, partial(taken, rendered_digest=rendered_digest))


async def review(room: HostedPages, session: Session, locale: str) -> Session:
    """Note that the review of the session's initials was served, with its sentences in this locale.

    Raises:
        CheckoutSessionClosed: it has ended, or has no initials, or others by now.
    """
    given = _initials(session)

    def seen(before: Session, now: datetime) -> Session:
        after = model.reviewed(before, now, locale)
        if _initials(before) != given:
            raise CheckoutSessionClosed(_OTHERS)
        return after

    return await room.looks.join(
        (session.id, session.browser, "review", locale, given),
        lambda: store.change(room, session, seen),
    )


def _initials(session: Session) -> tuple[str, Sequence[str] | None] | None:
    """The initials of a session, and the digest of their text."""
    reading = session.asked.reading
    return None if reading is None else (reading.notice_digest, reading.initials)


async def accept(
    room: HostedPages, session: Session, origin: Origin, page_origin: str | None = None
) -> Session:
    """Acknowledge with the initials that the session has, end it, and decide about the order.

    All of it is one transaction. `origin` is the origin of the buyer's own connection,
    `page_origin` the page around the component according to the request.

    Raises:
        CheckoutSessionClosed: it has ended, or has no initials, or other initials than at the start
            of the call; or its buyer is no longer verified.
        NoticeVersionMismatch: the text is not in force any more.
    """
    given = session.asked.reading
    while True:
        now = await store.clock_of(room, session)
        content = require_open(session, now, Collected.ACKNOWLEDGMENT)
        reading = content.reading
        if reading is None or reading.initials is None:
            raise CheckoutSessionClosed("There are no initials to send yet.")
        if given is None or (reading.initials, reading.locale) != (given.initials, given.locale):
            raise CheckoutSessionClosed(_OTHERS)
        await identity.require_verified(room, session)
        notice = await notice_of(room, session)
        if notice.digest != reading.notice_digest:
            raise NoticeVersionMismatch(_TEXT_CHANGED)
        submission = Submission(
            initials_per_line=reading.initials,
            session_id=content.session_id,
            cbid=session.cbid,
            notice_version=reading.notice_version,
            origin=origin,
            order_reference=content.order_reference,
            initials_from=[line.client or origin.client for line in reading.lines],
        )
        clock = await room.access.test_clocks.of(session.account_id, session.mode)
        process = _process(session, reading, notice, page_origin)
        who = principal_of(session)
        begun = await begin(room.acknowledgments, who, notice, submission, clock)
        new = await make_hosted(begun, process)

        def acknowledged(
            before: Session, at: datetime, reading: Reading = reading, new: NewAcknowledgment = new
        ) -> Session:
            same = require_open(before, at, Collected.ACKNOWLEDGMENT).reading == reading
            return model.acknowledged(before, at, new.id, new.receipt) if same else before

        order = await order_of(room, acknowledged(session, now))
        session = await store.change(room, session, acknowledged, _write_accepted, (new, order))
        if session.ack_id is not None:
            # Decided by now, unless the order was refused or the notices had to be read again.
            return await cleared(room, session)


_Accepted: TypeAlias = tuple[NewAcknowledgment, PreparedOrder | None]


def _write_accepted(
    connection: Connection, accepted: Sequence[tuple[_Accepted, Session]]
) -> list[Session]:
    """Write acknowledgments, and decisions about the orders for which the facts suffice."""
    write_hosted(connection, [new for (new, _), _ in accepted])
    orders = [(order, session) for (_, order), session in accepted if order is not None]
    after = iter(with_decisions(connection, orders) if orders else ())
    return [session if order is None else next(after) for (_, order), session in accepted]


async def repeated(room: HostedPages, session: Session, initials: Sequence[str]) -> bool:
    """Whether a completed session was acknowledged with just these initials."""
    if session.status is not Status.COMPLETED or session.ack_id is None:
        return False
    found = await find_one(room.acknowledgments, principal_of(session), session.ack_id)
    return found.initials_per_line == list(initials)


def _process(
    session: Session, reading: Reading, notice: NoticeEdition, page_origin: str | None
) -> Process:
    """How the initials were made, as stated in the record."""
    at = rfc3339_ms
    check = session.content.identity if session.content else None
    binding = Binding.NONE
    if reading.surface is Surface.PAGE:
        # The holder of the token may be another program than the browser that made the check.
        binding = check.binding if check is not None and check.verified else Binding.LINK
    return view(
        Process,
        reading,
        checkout_session=session.id,
        origin=page_origin,
        opened_at=at(reading.opened_at),
        lines=[
            Line(
                shown_at=at(line.shown_at),
                initialed_at=at(line.initialed_at),
                changed_at=None if line.changed_at is None else at(line.changed_at),
                changes=line.changes,
                method=line.method or UNSET,
            )
            for line in reading.lines
            if line.initialed_at is not None  # always, once there are initials
        ],
        reviewed_at=None if reading.reviewed_at is None else at(reading.reviewed_at),
        agreement=notice.content.attestation_text,
        consent=WORDS[reading.locale]["consent"],
        binding=binding,
        verification=None if check is None else check.verification,
        claimed=[
            Claim(line=one.line, event=one.event.value, at=at(one.at)) for one in reading.claimed
        ],
    )
