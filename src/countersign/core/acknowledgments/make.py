"""An acknowledgment on its way, and its evidence: record, disclosures, receipt, response."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from operator import attrgetter
from typing import Final

import msgspec

from countersign.base.errors import TokenUnavailable
from countersign.base.values import ACKNOWLEDGMENT, rfc3339_ms, timed_id
from countersign.core.access.clocks import AccountClock
from countersign.core.access.idempotency import NONCE_BYTES, KeyedRequest
from countersign.core.access.key import Principal
from countersign.core.acknowledgments.model import (
    AS_SUBMITTED,
    HOSTED_CREDENTIAL,
    PERSONAL_FIELDS,
    Capture,
    Submission,
    VersionSource,
)
from countersign.core.acknowledgments.room import Acknowledgments
from countersign.core.acknowledgments.schemas import AcknowledgmentReceipt
from countersign.core.log.record import SEAL_ENTROPY, NewRecord, RecordType
from countersign.core.notices.model import NoticeEdition
from countersign.core.parties import Bound
from countersign.core.vault.vault import DataKey
from countersign_evidence.disclosure import SALT_BYTES
from countersign_evidence.process import PROCESS, Process
from countersign_evidence.receipt import make_receipts
from countersign_evidence.record import (
    CBID_FIELD,
    REFERENCE_FIELD,
    SESSION_FIELD,
    Subject,
    bullet_digests,
    entropy_needed,
    make_records,
)

_ID_ENTROPY: Final = 8
_ENTROPY: Final = entropy_needed(len(PERSONAL_FIELDS)) + SEAL_ENTROPY
_encode: Final = msgspec.json.Encoder().encode
_submitted: Final = attrgetter(*AS_SUBMITTED)


class NewAcknowledgment(NewRecord, kw_only=True):
    """An acknowledgment that was found to be in order, on its way into the database.

    The gates begin it, `make` adds its evidence, and `write_together` its place; see `NewRecord`.
    """

    type: RecordType = RecordType.ACKNOWLEDGMENT
    room: Acknowledgments
    who: Principal
    notice: NoticeEdition
    submission: Submission
    clock: AccountClock
    key: DataKey
    time_ns: int
    at_ms: int
    entry: KeyedRequest | None = None
    """Makes the stored response for a retry."""
    process: Process | None = None
    """How it was made, if it is hosted."""
    bound: Bound = Bound()
    """The parties' records that the record binds."""
    answer_nonce: bytes = b""
    receipt: str | None = None
    """The signed promise that the log will have its record (evidence.receipt)."""
    answer: bytes = b""
    """The response as JSON, which is also kept for a repeated request."""
    slot: bytes | None = None
    fingerprint: bytes | None = None
    response: bytes | None = None
    kept_at: int | None = None
    expires_at: int | None = None
    order_key: bytes | None = None
    """Of an order that exists already; None: the one that its session or reference names."""
    log_id: int | None = None
    leaf_index: int | None = None


def make(new: Sequence[NewAcknowledgment]) -> Sequence[NewAcknowledgment]:
    """Make the evidence of these, of one room.

    Their records are made together: one by one, each between two requests, they take half as long
    again.
    """
    room = new[0].room
    needed = [
        _ENTROPY
        + SALT_BYTES * ((n.process is not None) + (n.submission.order_reference is not None))
        for n in new
    ]
    # Asking the system for a few bytes releases the interpreter each time.
    each = len(new) * (_ID_ENTROPY + NONCE_BYTES)
    drawn = BytesIO(room.log.access.entropy(sum(needed) + each))
    index = room.log.access.secret.blind_index
    for one, size in zip(new, needed, strict=True):
        said, account_id = one.submission, one.account_id
        one.id = timed_id(ACKNOWLEDGMENT, one.time_ns, drawn.read(_ID_ENTROPY))
        one.draw(drawn.read(size))
        one.answer_nonce = drawn.read(NONCE_BYTES)
        one.bound = room.bound.get((account_id, one.mode), one.bound)
        if said.session_id is not None:
            one.session_index = index(account_id, SESSION_FIELD, said.session_id)
        if said.cbid is not None:
            one.cbid_index = index(account_id, CBID_FIELD, said.cbid)
        if said.order_reference is not None:
            one.reference_index = index(account_id, REFERENCE_FIELD, said.order_reference)
    _make_bound(new)
    return new


def make_again(new: NewAcknowledgment, bound: Bound) -> None:
    """Make it anew, bound to these descriptions."""
    new.bound = new.room.bound[new.account_id, new.mode] = bound
    new.answer_nonce = b""  # it has encrypted the other response
    _make_bound([new])


def _make_bound(new: Sequence[NewAcknowledgment]) -> None:
    for one in new:
        _describe(one)
    make_records(new)
    log = new[0].room.log
    for mode in {one.mode for one in new}:
        own, signers = [one for one in new if one.mode is mode], log.sequencer.signing(mode)
        receipts: Sequence[str | None] = [None] * len(own)
        if signers:
            until = max(one.at for one in own) + log.seal_within
            with suppress(TokenUnavailable):  # sealing says so, and no act is refused for it
                receipts = make_receipts([one.digest for one in own], until, signers)
        for one, receipt in zip(own, receipts, strict=True):
            one.receipt = receipt
    for one in new:
        one.seal(one.key)
        one.answer = _encode(
            AcknowledgmentReceipt(
                ack_id=one.id,
                notice_id=one.notice.content.id,
                notice_version=one.notice.content.version,
                receipt=one.receipt,
            )
        )
        if one.entry is not None:
            kept = one.entry(one.answer, one.answer_nonce, one.id)
            one.slot, one.fingerprint, one.response = kept.slot, kept.fingerprint, kept.response
            one.kept_at, one.expires_at = kept.created_at, kept.expires_at


def _describe(new: NewAcknowledgment) -> None:
    """The content of the record, each personal field a disclosure; see spec/evidence-format.md."""
    notice, submission, process = new.notice, new.submission, new.process
    origin, bullets = submission.origin, new.room.bullet_digests.get(notice.digest)
    if bullets is None:
        bullets = bullet_digests([(bullet.id, bullet.text) for bullet in notice.content.bullets])
        new.room.bullet_digests[notice.digest] = bullets
    new.members = Subject(
        id=new.id,
        account=new.account_id,
        account_record=new.bound.account,
        operator_record=new.bound.operator,
        capture_process=new.bound.capture_process if process is None else msgspec.UNSET,
        mode=new.mode,
        notice_id=notice.content.id,
        notice_version=notice.content.version,
        notice_digest=notice.digest,
        notice_version_source=VersionSource.ASSUMED
        if submission.notice_version is None
        else VersionSource.ASSERTED,
        bullets=bullets,
        capture=Capture.VENDOR_API if process is None else Capture.HOSTED,
        credential=new.who.credential if process is None else HOSTED_CREDENTIAL,
        accepted_at=rfc3339_ms(new.at),
        test_clock=(new.clock.ahead and new.clock.text(new.at)) or msgspec.UNSET,
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
    values = (*_submitted(submission), ip, agent)
    personal: list[tuple[str, object]] = [*zip(PERSONAL_FIELDS, values, strict=True)]
    if process is not None:
        personal.append((PROCESS, process))
    if submission.order_reference is not None:
        personal.append((REFERENCE_FIELD, submission.order_reference))
    new.personal = personal
