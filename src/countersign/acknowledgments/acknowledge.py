"""Acknowledge a notice: check the initials, write the record, keep the response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

import msgspec
from sqlalchemy import Connection

from countersign.access.idempotency import IdempotencyEntry, keep_answers
from countersign.access.key import Principal
from countersign.access.test_clock import REAL_TIME, AccountClock
from countersign.acknowledgments.model import (
    PERSONAL_FIELDS,
    Capture,
    Receipt,
    Submission,
    VersionSource,
)
from countersign.acknowledgments.room import Acknowledgments
from countersign.errors import EmptyInitials, InitialsCountMismatch, NoticeVersionMismatch
from countersign.evidence.record import (
    CBID_FIELD,
    SESSION_FIELD,
    Draft,
    SealedRecord,
    Subject,
    bullet_digests,
    entropy_needed,
    make_records,
)
from countersign.ids import ACKNOWLEDGMENT, timed_id
from countersign.instant import from_ns, rfc3339_ms
from countersign.log.append_record import SEAL_ENTROPY, seal_disclosures
from countersign.log.record import NewRecord, RecordType
from countersign.notices.model import NoticeEdition
from countersign.notices.visible_text import is_blank
from countersign.vault.vault import DataKey

_ID_ENTROPY: Final = 8
_ENTROPY: Final = _ID_ENTROPY + entropy_needed(len(PERSONAL_FIELDS)) + SEAL_ENTROPY
_encode: Final = msgspec.json.Encoder().encode


class _Order(msgspec.Struct, frozen=True, kw_only=True):
    """An acknowledgment that was found to be in order, on its way into the database."""

    room: Acknowledgments
    ack_id: str
    who: Principal
    notice: NoticeEdition
    submission: Submission
    at: datetime
    clock: AccountClock
    key: DataKey
    entropy: bytes
    entry: Callable[[bytes], IdempotencyEntry] | None


async def acknowledge(
    room: Acknowledgments,
    who: Principal,
    notice: NoticeEdition,
    submission: Submission,
    *,
    clock: AccountClock = REAL_TIME,
    entry: Callable[[bytes], IdempotencyEntry] | None = None,
) -> Receipt:
    """Store an acknowledgment of this notice version; durable when this returns.

    Args:
        room: of acknowledgments.
        who: the key that sends it.
        notice: the version in force.
        submission: what the buyer typed, and where it came from.
        clock: the test clock of the account.
        entry: makes what is kept of the response for a repeated request.

    Raises:
        NoticeVersionMismatch: `notice_version` was given and is not this version.
        InitialsCountMismatch, EmptyInitials: see `check_initials`.
    """
    content, shown = notice.content, submission.notice_version
    if shown is not None and shown != content.version:
        msg = f"The version in force is {content.version}, not {shown}."
        raise NoticeVersionMismatch(msg)
    check_initials(submission.initials_per_line, len(content.bullets))
    time_ns = room.clock.time_ns()
    key = room.vault.cached(who.account_id, time_ns)
    if key is None:
        key = await room.vault.data_key(who.account_id, time_ns)
    entropy = room.entropy(_ENTROPY)
    order = _Order(
        room=room,
        ack_id=timed_id(ACKNOWLEDGMENT, time_ns, entropy[:_ID_ENTROPY]),
        who=who,
        notice=notice,
        submission=submission,
        at=from_ns(time_ns),
        clock=clock,
        key=key,
        entropy=entropy[_ID_ENTROPY:],
        entry=entry,
    )
    return await room.database.write_batched(_acknowledge, order)


def check_initials(initials: Sequence[str], lines: int) -> None:
    """Check the initials for a notice of this many lines: the count first, then the blanks.

    They are kept exactly as typed.

    Raises:
        InitialsCountMismatch: not exactly one element per line.
        EmptyInitials: the initials of one or more lines are blank.
    """
    if len(initials) != lines:
        msg = f"The notice has {lines} lines to initial: expected {lines} elements in "
        msg += f"initials_per_line, got {len(initials)}."
        raise InitialsCountMismatch(msg)
    if any(map(is_blank, set(initials))):
        blank = [str(number) for number, text in enumerate(initials, 1) if is_blank(text)]
        word = "line" if len(blank) == 1 else "lines"
        msg = f"The initials are blank on {word} {', '.join(blank)}."
        raise EmptyInitials(msg)


def _acknowledge(connection: Connection, orders: Sequence[_Order]) -> Sequence[Receipt]:
    """Write the orders that share a transaction, all of them on the database of one room.

    Their records are made together: one by one, each between two requests, they take half as long
    again.
    """
    journal = orders[0].room.journal
    records, receipts, kept = [], [], []
    for order, record in zip(orders, make_records([*map(_draft, orders)]), strict=True):
        records.append(_new_record(order, record))
        receipt = _receipt(order)
        receipts.append(receipt)
        if order.entry is not None:
            kept.append(order.entry(receipt.body))
    journal.write(connection, records)
    keep_answers(connection, kept)
    return receipts


def _draft(order: _Order) -> Draft:
    """The record of an order, each personal field one disclosure; see spec/evidence-format.md."""
    notice, submission, origin = order.notice, order.submission, order.submission.origin
    subject = Subject(
        id=order.ack_id,
        account=order.who.account_id,
        mode=order.who.mode,
        notice_id=notice.content.id,
        notice_version=notice.content.version,
        notice_digest=notice.digest,
        notice_version_source=VersionSource.ASSUMED
        if submission.notice_version is None
        else VersionSource.ASSERTED,
        bullets=order.room.bullet_digests.get(notice.digest) or _bullets(order),
        capture=Capture.VENDOR_API,
        credential=order.who.credential,
        accepted_at=rfc3339_ms(order.at),
        test_clock=order.clock.text(order.at) or msgspec.UNSET,
    )
    ip = {
        "ip": origin.ip,
        "source": origin.ip_source,
        "peer_ip": origin.peer_ip,
        "forwarded": origin.forwarded,
        "truncated": origin.forwarded_truncated,
    }
    agent = {
        "user_agent": origin.user_agent,
        "source": origin.user_agent_source,
        "truncated": origin.user_agent_truncated,
    }
    values = (submission.initials_per_line, submission.session_id, submission.cbid, ip, agent)
    personal = tuple(zip(PERSONAL_FIELDS, values, strict=True))
    return Draft(subject, personal, order.entropy[:-SEAL_ENTROPY])


def _bullets(order: _Order) -> msgspec.Raw:
    notice = order.notice
    made = bullet_digests([(bullet.id, bullet.text) for bullet in notice.content.bullets])
    order.room.bullet_digests[notice.digest] = made
    return made


def _new_record(order: _Order, record: SealedRecord) -> NewRecord:
    who, secret, entropy = order.who, order.room.secret, order.entropy[-SEAL_ENTROPY:]
    session, cbid = order.submission.session_id, order.submission.cbid
    return NewRecord(
        id=order.ack_id,
        account_id=who.account_id,
        mode=who.mode,
        type=RecordType.ACKNOWLEDGMENT,
        notice_id=order.notice.content.id,
        at=order.at,
        body=record.body,
        digest=record.digest,
        disclosures=seal_disclosures(
            order.key,
            order.ack_id,
            record.disclosures,
            entropy,
            account_id=who.account_id,
            session_index=None
            if session is None
            else secret.blind_index(who.account_id, SESSION_FIELD, session),
            cbid_index=None
            if cbid is None
            else secret.blind_index(who.account_id, CBID_FIELD, cbid),
        ),
    )


def _receipt(order: _Order) -> Receipt:
    id_, version = order.notice.content.id, order.notice.content.version
    response = {"ack_id": order.ack_id, "notice_id": id_, "notice_version": version}
    return Receipt(order.ack_id, id_, version, _encode(response))
