"""Acknowledge a notice: check the initials, write the record, keep the response."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from io import BytesIO
from typing import Final

import msgspec
from sqlalchemy import Connection, select

from countersign.base.db.statements import run_deferred
from countersign.base.db.tables import checkout_sessions, disclosures
from countersign.base.errors import (
    EmptyInitials,
    InitialsCountMismatch,
    NoticeVersionMismatch,
    OrderReferenceMismatch,
    StorageUnavailable,
    TokenUnavailable,
)
from countersign.base.values import ACKNOWLEDGMENT, from_ns, rfc3339_ms, timed_id
from countersign.core.access.clocks import REAL_TIME, AccountClock
from countersign.core.access.idempotency import NONCE_BYTES, Keep
from countersign.core.access.key import Principal
from countersign.core.access.room import Access
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.acknowledgments.model import (
    AS_SUBMITTED,
    HOSTED_CREDENTIAL,
    PERSONAL_FIELDS,
    Capture,
    Receipt,
    Submission,
    VersionSource,
)
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.acknowledgments.schemas import AcknowledgmentReceipt
from countersign.core.acknowledgments.write_together import (
    Made,
    bound_as_now,
    defer,
    write_together,
)
from countersign.core.log.blind_runs import found_by
from countersign.core.log.record import (
    SEAL_ENTROPY,
    NewRecord,
    RecordType,
    SealedDisclosures,
    seal_disclosures,
)
from countersign.core.notices.model import NoticeEdition, is_blank
from countersign.core.orders.sql import bound_key, indexed_keys
from countersign.core.parties import Bound, bound_now
from countersign.core.vault.vault import DataKey
from countersign_evidence.disclosure import SALT_BYTES
from countersign_evidence.process import PROCESS, Process
from countersign_evidence.receipt import make_receipts
from countersign_evidence.record import (
    CBID_FIELD,
    REFERENCE_FIELD,
    SESSION_FIELD,
    Draft,
    SealedRecord,
    Subject,
    bullet_digests,
    entropy_needed,
    make_records,
)

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


_ID_ENTROPY: Final = 8
_ENTROPY: Final = _ID_ENTROPY + entropy_needed(len(PERSONAL_FIELDS)) + SEAL_ENTROPY
_encode: Final = msgspec.json.Encoder().encode


class _Order(msgspec.Struct, kw_only=True):
    """An acknowledgment that was found to be in order, on its way into the database.

    `ack_id`, `bound`, `entropy` and `nonce` are not for the caller: `_make` fills them in.
    """

    room: Acknowledgments
    ack_id: str = ""
    bound: Bound = Bound()
    who: Principal
    notice: NoticeEdition
    submission: Submission
    time_ns: int
    at: datetime
    clock: AccountClock
    key: DataKey
    entropy: bytes = b""
    nonce: bytes = b""
    entry: Keep | None
    order_key: bytes | None = None
    process: Process | None = None
    """How it was made, if it is hosted."""


async def acknowledge(
    room: Acknowledgments,
    who: Principal,
    notice: NoticeEdition,
    submission: Submission,
    *,
    clock: AccountClock = REAL_TIME,
    entry: Keep | None = None,
) -> Receipt:
    """Store an acknowledgment of this notice version; durable when this returns.

    `entry` makes the stored response for a retry.

    Raises:
        OrderReferenceMismatch: its session was used for another reference.
    """
    order = await _order(room, who, notice, submission, clock=clock, entry=entry)
    session_id, reference = submission.session_id, submission.order_reference
    order.order_key = await order_of_reference(room.log.access, who, session_id, reference)
    return await room.log.access.database.write_batched(write_together, order, _make)


async def prepare_hosted(
    room: Acknowledgments,
    who: Principal,
    notice: NoticeEdition,
    submission: Submission,
    process: Process,
    *,
    clock: AccountClock = REAL_TIME,
) -> Made:
    """Check and make a hosted acknowledgment, of now, for `write_hosted`.

    Only account and mode of `who` matter: the record states that a checkout session was used.
    """
    if len(process.lines) != len(notice.content.bullets):
        # Readers would refuse the record.
        raise ValueError("the process needs an entry for each of the notice's lines")
    order = await _order(room, who, notice, submission, clock=clock, process=process)
    bound = await room.log.database.read(bound_now, who.account_id, who.mode)
    order.room.bound[who.account_id, who.mode] = bound
    return _make([order])[0]


def write_hosted(connection: Connection, made: Made) -> Receipt:
    """Write an acknowledgment that is prepared, with its events, in the caller's transaction.

    Its order is that of the checkout session.

    StorageUnavailable if a party was described since: the caller already has a receipt, which must
    not promise another record.
    """
    if bound_as_now(connection, [made]) != [made]:
        raise StorageUnavailable("The description of a party was changed at this moment.")
    of_session = indexed_keys(connection, [made.checkout_session])
    made.order_key = next((key for _, key in of_session), None)
    defer(connection, [made])
    # The caller's next statements may need it.
    run_deferred(connection)
    return made.receipt


async def _order(
    room: Acknowledgments,
    who: Principal,
    notice: NoticeEdition,
    submission: Submission,
    *,
    clock: AccountClock,
    entry: Keep | None = None,
    process: Process | None = None,
) -> _Order:
    """The acknowledgment of this moment, if it is in order."""
    content, shown = notice.content, submission.notice_version
    if shown is not None and shown != content.version:
        raise NoticeVersionMismatch(f"The version in force is {content.version}, not {shown}.")
    check_initials(submission.initials_per_line, len(content.bullets))
    time_ns, vault = room.log.access.clock.time_ns(), room.log.vault.vault
    key = await vault.data_key(who.account_id, time_ns)
    return _Order(
        room=room,
        who=who,
        notice=notice,
        submission=submission,
        time_ns=time_ns,
        at=from_ns(time_ns),
        clock=clock,
        key=key,
        entry=entry,
        process=process,
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


def _make(orders: Sequence[_Order]) -> list[Made]:
    """The orders of one room as they are written.

    Their records are made together: one by one, each between two requests, they take half as long
    again.
    """
    needed = [
        _ENTROPY
        + SALT_BYTES * ((o.process is not None) + (o.submission.order_reference is not None))
        for o in orders
    ]
    # Asking the system for a few bytes releases the interpreter each time.
    drawn = BytesIO(orders[0].room.log.access.entropy(sum(needed) + NONCE_BYTES * len(orders)))
    for order, size in zip(orders, needed, strict=True):
        order.ack_id = timed_id(ACKNOWLEDGMENT, order.time_ns, drawn.read(_ID_ENTROPY))
        order.entropy, order.nonce = drawn.read(size - _ID_ENTROPY), drawn.read(NONCE_BYTES)
        order.bound = order.room.bound.get((order.who.account_id, order.who.mode), order.bound)
    return _made(orders)


def _rebound(order: _Order, bound: Bound) -> Made:
    """The same acknowledgment, bound to these descriptions."""
    order.bound = order.room.bound[order.who.account_id, order.who.mode] = bound
    order.nonce = b""  # it has encrypted the other response
    return _made([order])[0]


def _made(orders: Sequence[_Order]) -> list[Made]:
    made, sealed = [], make_records([*map(_draft, orders)])
    receipts = _receipts(orders, sealed)
    for order, record in zip(orders, sealed, strict=True):
        content, hidden = order.notice.content, _hidden(order, record)
        written = NewRecord(
            id=order.ack_id,
            account_id=order.who.account_id,
            mode=order.who.mode,
            type=RecordType.ACKNOWLEDGMENT,
            notice_id=content.id,
            at=order.at,
            body=record.body,
            digest=record.digest,
            disclosures=hidden,
        )
        answer = AcknowledgmentReceipt(
            ack_id=order.ack_id,
            notice_id=content.id,
            notice_version=content.version,
            receipt=receipts.get(order.ack_id),
        )
        body = _encode(answer)
        receipt = Receipt(order.ack_id, answer.receipt, body)
        kept = None if order.entry is None else order.entry(body, order.nonce)
        made.append(
            Made(
                order.room.log.journal,
                written,
                hidden,
                receipt,
                order.entry,
                kept,
                order.bound,
                partial(_rebound, order),
                order.order_key,
                order.process.checkout_session if order.process else "",
            )
        )
    return made


def _receipts(orders: Sequence[_Order], made: Sequence[SealedRecord]) -> dict[str, str]:
    """The receipts by `ack_id`: one signature per mode, none if no key can sign."""
    log, found = orders[0].room.log, dict[str, str]()
    for mode in {order.who.mode for order in orders}:
        signers = log.sequencer.signing(mode)
        if signers:
            own = [(o, r) for o, r in zip(orders, made, strict=True) if o.who.mode is mode]
            until = max(order.at for order, _ in own) + log.seal_within
            try:
                receipts = make_receipts([record.digest for _, record in own], until, signers)
            except TokenUnavailable:  # sealing says so, and no act is refused for it
                continue
            found |= zip((order.ack_id for order, _ in own), receipts, strict=True)
    return found


def _draft(order: _Order) -> Draft:
    """The record of an order, each personal field one disclosure; see spec/evidence-format.md."""
    notice, submission, origin = order.notice, order.submission, order.submission.origin
    subject = Subject(
        id=order.ack_id,
        account=order.who.account_id,
        account_record=order.bound.account,
        operator_record=order.bound.operator,
        capture_process=order.bound.capture_process if order.process is None else msgspec.UNSET,
        mode=order.who.mode,
        notice_id=notice.content.id,
        notice_version=notice.content.version,
        notice_digest=notice.digest,
        notice_version_source=VersionSource.ASSUMED
        if submission.notice_version is None
        else VersionSource.ASSERTED,
        bullets=order.room.bullet_digests.get(notice.digest) or _bullets(order),
        capture=Capture.VENDOR_API if order.process is None else Capture.HOSTED,
        credential=order.who.credential if order.process is None else HOSTED_CREDENTIAL,
        accepted_at=rfc3339_ms(order.at),
        test_clock=order.clock.text(order.at) or msgspec.UNSET,
    )
    ip: dict[str, object] = {
        "ip": origin.ip,
        "source": origin.ip_source,
        "peer_ip": origin.peer_ip,
        "forwarded": origin.forwarded,
        "truncated": origin.forwarded_truncated,
    }
    agent: dict[str, object] = {
        "user_agent": origin.user_agent,
        "source": origin.user_agent_source,
        "truncated": origin.user_agent_truncated,
    }
    if submission.initials_from:
        ips, agents = zip(*submission.initials_from, strict=True)
        ip |= {"initials_from": ips} if {*ips} != {origin.ip} else {}
        agent |= {"initials_from": agents} if {*agents} != {origin.user_agent} else {}
    values = (*[getattr(submission, name) for name in AS_SUBMITTED], ip, agent)
    personal: tuple[tuple[str, object], ...] = tuple(zip(PERSONAL_FIELDS, values, strict=True))
    if order.process is not None:
        personal = (*personal, (PROCESS, order.process))
    if submission.order_reference is not None:
        personal = (*personal, (REFERENCE_FIELD, submission.order_reference))
    return Draft(subject, personal, order.entropy[:-SEAL_ENTROPY])


def _bullets(order: _Order) -> msgspec.Raw:
    notice = order.notice
    made = bullet_digests([(bullet.id, bullet.text) for bullet in notice.content.bullets])
    order.room.bullet_digests[notice.digest] = made
    return made


def _hidden(order: _Order, record: SealedRecord) -> SealedDisclosures:
    account_id, secret = order.who.account_id, order.room.log.access.secret
    session, cbid, index = order.submission.session_id, order.submission.cbid, secret.blind_index
    return seal_disclosures(
        order.key,
        order.ack_id,
        record.disclosures,
        order.entropy[-SEAL_ENTROPY:],
        account_id=account_id,
        session_index=None if session is None else index(account_id, SESSION_FIELD, session),
        cbid_index=None if cbid is None else index(account_id, CBID_FIELD, cbid),
        reference_index=reference_index(secret, account_id, order.submission.order_reference),
    )
