"""Acknowledge a notice: check the initials, write the record, keep the response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, select

from countersign.base.db.statements import run_deferred
from countersign.base.db.tables import checkout_sessions, disclosures
from countersign.base.errors import (
    EmptyInitials,
    InitialsCountMismatch,
    NoticeVersionMismatch,
    OrderReferenceMismatch,
    StorageUnavailable,
)
from countersign.base.values import from_ns
from countersign.core.access.clocks import REAL_TIME, AccountClock
from countersign.core.access.idempotency import KeyedRequest
from countersign.core.access.key import Principal
from countersign.core.access.room import Access
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.acknowledgments.make import NewAcknowledgment, make
from countersign.core.acknowledgments.model import Submission
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.acknowledgments.write_together import defer, write_together
from countersign.core.log.blind_runs import found_by
from countersign.core.notices.model import NoticeEdition, is_blank
from countersign.core.orders.sql import bound_key, indexed_keys
from countersign.core.parties import bound_in, bound_now
from countersign_evidence.process import Process
from countersign_evidence.record import REFERENCE_FIELD, SESSION_FIELD

CHECKOUT_FIELD: Final = "checkout_session.session_id"
"""Domain of the blind indexes of checkout sessions."""


def reference_index(
    secret: DeploymentSecret, account_id: str, reference: str | None
) -> bytes | None:
    """The blind index of this reference; None without one."""
    if reference is None:
        return None
    return secret.blind_index(account_id, REFERENCE_FIELD, reference)


async def of_another_order(
    access: Access, who: Principal, session_id: str | None, reference: str | None
) -> bool:
    """Whether its checkout sessions, acknowledgments and refusals all have another reference.

    Without a reference there is no lookup.
    """
    if session_id is None or reference is None:
        return False
    own = reference_index(access.secret, who.account_id, reference)
    index, account_id = access.secret.blind_index, who.account_id
    links = index(account_id, CHECKOUT_FIELD, session_id)
    acks = index(account_id, SESSION_FIELD, session_id)
    known = await access.database.read(_references_of, who, links, acks)
    return bool(known) and own not in known


async def order_of_reference(
    access: Access, who: Principal, session_id: str | None, reference: str | None
) -> bytes | None:
    """See `bound_key`. Without a reference there is no lookup.

    Raises:
        OrderReferenceMismatch: the session has another reference.
    """
    if reference is None:
        return None
    if await of_another_order(access, who, session_id, reference):
        raise OrderReferenceMismatch("The session has another order_reference.")
    index, account_id = access.secret.blind_index, who.account_id
    session = None if session_id is None else index(account_id, SESSION_FIELD, session_id)
    named = index(account_id, REFERENCE_FIELD, reference)
    return await access.database.read(bound_key, who.reach, session, named)


def _references_of(connection: Connection, who: Principal, links: bytes, acks: bytes) -> set[bytes]:
    c, d = checkout_sessions.c, disclosures.c
    of_links = select(c.reference_index).where(c.session_index == links)
    of_acks = select(d.reference_index).where(found_by(connection, d.session_index, acks))
    return {
        reference
        for own in (of_links, of_acks)
        for reference in connection.scalars(own.filter_by(account_id=who.account_id, mode=who.mode))
        if reference is not None
    }


async def acknowledge(
    room: Acknowledgments,
    who: Principal,
    notice: NoticeEdition,
    submission: Submission,
    *,
    clock: AccountClock = REAL_TIME,
    entry: KeyedRequest | None = None,
) -> NewAcknowledgment:
    """Store an acknowledgment of this notice version; durable when this returns.

    `entry` makes the stored response for a retry.

    Raises:
        OrderReferenceMismatch: its session was used for another reference.
    """
    new, access = await begin(room, who, notice, submission, clock), room.log.access
    new.entry = entry
    if submission.order_reference is not None:
        named = submission.session_id, submission.order_reference
        new.order_key = await order_of_reference(access, who, *named)
    return await access.database.write_batched(write_together, new, make)


async def make_hosted(new: NewAcknowledgment, process: Process) -> NewAcknowledgment:
    """Make a hosted acknowledgment, which has begun, for `write_hosted`.

    Only its account and mode matter: the record states that a checkout session was used.
    """
    if len(process.lines) != len(new.notice.content.bullets):
        # Readers would refuse the record.
        raise ValueError("the process needs an entry for each of the notice's lines")
    new.process = process
    own = new.account_id, new.mode
    new.room.bound[own] = await new.room.log.database.read(bound_now, *own)
    return make([new])[0]


def write_hosted(connection: Connection, new: Sequence[NewAcknowledgment]) -> None:
    """Write acknowledgments that are prepared, with their events, in the caller's transaction.

    The order of each is that of its checkout session.

    StorageUnavailable if a party was described since: the caller already has a receipt, which must
    not promise another record.
    """
    now = bound_in(connection, {(one.account_id, one.mode) for one in new})
    if any(one.bound != now[one.account_id, one.mode] for one in new):
        raise StorageUnavailable("The description of a party was changed at this moment.")
    sessions = {one.id: one.process.checkout_session for one in new if one.process is not None}
    keys = dict(indexed_keys(connection, sessions.values()))
    for one in new:
        one.order_key = keys.get(sessions.get(one.id, ""))
    defer(connection, new)
    # The caller's next statements may need it.
    run_deferred(connection)


async def begin(
    room: Acknowledgments,
    who: Principal,
    notice: NoticeEdition,
    submission: Submission,
    clock: AccountClock,
) -> NewAcknowledgment:
    """The acknowledgment of this moment, if it is in order; not made yet."""
    content, shown = notice.content, submission.notice_version
    if shown is not None and shown != content.version:
        raise NoticeVersionMismatch(f"The version in force is {content.version}, not {shown}.")
    check_initials(submission.initials_per_line, len(content.bullets))
    time_ns = room.log.access.clock.time_ns()
    return NewAcknowledgment(
        room=room,
        who=who,
        notice=notice,
        submission=submission,
        clock=clock,
        key=await room.log.vault.vault.data_key(who.account_id, time_ns),
        account_id=who.account_id,
        mode=who.mode,
        notice_id=content.id,
        time_ns=time_ns,
        at_ms=time_ns // 1_000_000,
        at=from_ns(time_ns),
    )


def check_initials(initials: Sequence[str], lines: int) -> None:
    """Check the initials for a notice of this many lines: the count first, then the blanks.

    They are kept exactly as typed.
    """
    if len(initials) != lines:
        raise InitialsCountMismatch(
            f"The notice has {lines} lines to initial: expected {lines} elements in "
            f"initials_per_line, got {len(initials)}."
        )
    if any(map(is_blank, set(initials))):
        blank = [str(number) for number, text in enumerate(initials, 1) if is_blank(text)]
        word = "line" if len(blank) == 1 else "lines"
        raise EmptyInitials(f"The initials are blank on {word} {', '.join(blank)}.")
