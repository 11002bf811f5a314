"""Made-up things to store: whole, distinct, and made of plain values."""

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, insert, text

from countersign.base.db.database import Database
from countersign.base.db.tables import Field, verifications
from countersign.base.errors import RateLimited
from countersign.base.values import Clock, Entropy, Mode, timed_id, to_ms
from countersign.core.access.account import Account
from countersign.core.access.idempotency import (
    LIFETIME,
    IdempotencyEntry,
    KeyedRequest,
    keep_answers,
    kept_entries,
)
from countersign.core.access.key import VENDOR_SCOPES, ApiKey, KeyKind, Principal
from countersign.core.access.reach import AccountReach
from countersign.core.access.room import Access, open_access
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.acknowledgments import find
from countersign.core.acknowledgments.make import NewAcknowledgment
from countersign.core.acknowledgments.model import StoredAcknowledgment
from countersign.core.acknowledgments.schemas import AcknowledgmentsQuery
from countersign.core.acknowledgments.write_together import write_together
from countersign.core.buyers.model import Buyer, BuyerStatus
from countersign.core.buyers.sandbox import in_state
from countersign.core.buyers.sql import (
    BuyerAndRules,
    StatusQuery,
    buyers_and_rules,
    buyers_by_cbid,
    encoded_reasons,
    write_buyer,
    write_status_event,
)
from countersign.core.buyers.zips import ZipSubject, count_zip
from countersign.core.log.journal import Journal
from countersign.core.log.record import NewRecord, RecordType
from countersign.core.notices.model import LifecycleEvent, NoticeEvent
from countersign_evidence.record import CBID_FIELD, REFERENCE_FIELD, SESSION_FIELD

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
JOURNAL = Journal(None)
"""Queues records for sealing, and seals nothing."""
_numbers = itertools.count(1)


def identifier(prefix: str, at: datetime = NOON) -> str:
    """Make a unique identifier; later ones sort later."""
    time_ns = int(at.timestamp()) * 10**9
    return timed_id(prefix, time_ns, next(_numbers).to_bytes(8, "big"))


def some_bytes(length: int = 32) -> bytes:
    """Give bytes that no other item has, with zero and non-ASCII bytes among them."""
    return (b"\x00\xff" + sha256(next(_numbers).to_bytes(8, "big")).digest() * 8)[:length]


def access(database: Database, clock: Clock, entropy: Entropy = os.urandom) -> Access:
    """Open the room of accounts and keys, for an operator named someone."""
    secret = DeploymentSecret(bytes(32))
    return open_access(database, secret, operator="someone", clock=clock, entropy=entropy)


def account(name: str | None = None) -> Account:
    return Account(id=identifier("acct"), name=name or f"Vendor №{next(_numbers)}", created_at=NOON)


def api_key(owner: Account, mode: Mode = Mode.TEST, **different: object) -> ApiKey:
    fields: dict[str, Any] = {
        "id": identifier("key"),
        "account_id": owner.id,
        "mode": mode,
        "kind": KeyKind.SECRET,
        "scopes": VENDOR_SCOPES,
        "hint": f"csign_sk_{mode}_…Ab3d",
        "created_at": NOON,
        "lifetime": None,
        "expires_at": None,
        "revoked_at": None,
        "last_used_at": None,
        "replaces": None,
    }
    return ApiKey(**fields | different)


def idempotency_entry(
    owner: Account, mode: Mode = Mode.TEST, *, slot: bytes | None = None, at: datetime = NOON
) -> IdempotencyEntry:
    return IdempotencyEntry(
        slot=slot or some_bytes(),
        account_id=owner.id,
        mode=mode.value,
        fingerprint=some_bytes(),
        response=some_bytes(90),
        created_at=to_ms(at),
        expires_at=to_ms(at + LIFETIME),
    )


def acknowledgment(
    owner: Account,
    mode: Mode = Mode.TEST,
    *,
    at: datetime = NOON,
    ack_id: str | None = None,
    notice_id: str = "a-notice",
    session_index: bytes | None = None,
    cbid_index: bytes | None = None,
    reference_index: bytes | None = None,
    keep: IdempotencyEntry | None = None,
) -> NewAcknowledgment:
    """Make an acknowledgment to write."""
    body = b'{"type":"acknowledgment","x":"' + some_bytes(40).hex().encode() + b'"}'
    room: Any = SimpleNamespace(log=SimpleNamespace(journal=JOURNAL))
    made: Any = None  # what it was made from does not matter here
    new = NewAcknowledgment(
        room=room,
        **dict.fromkeys(("who", "notice", "submission", "clock", "key", "time_ns"), made),
        id=ack_id or identifier("ack", at),
        account_id=owner.id,
        mode=mode,
        notice_id=notice_id,
        at=at,
        at_ms=to_ms(at),
        body=body,
        digest=sha256(body).digest(),
        payload=b"\x01" + some_bytes(60),
        shred_key=some_bytes(),
        session_index=session_index,
        cbid_index=cbid_index,
        reference_index=reference_index,
        entry=_request(keep),
    )
    if keep is not None:
        new.slot, new.fingerprint, new.response = keep.slot, keep.fingerprint, keep.response
        new.kept_at, new.expires_at = keep.created_at, keep.expires_at
    return new


async def add(database: Database, new: NewAcknowledgment) -> None:
    """Write an acknowledgment as acknowledging does, in a batch with others."""
    await database.write_batched(write_together, new, lambda made: made)


def _request(kept: IdempotencyEntry | None) -> KeyedRequest | None:
    """The request, at the time of its response."""
    if kept is None:
        return None
    at: Any = SimpleNamespace(now=lambda: kept.created_at)
    caller: Any = None  # who sent it does not matter here
    return KeyedRequest(at, kept.slot, kept.fingerprint, caller)


def principal(owner: Account, mode: Mode = Mode.TEST) -> Principal:
    return Principal(
        key_id="key", account_id=owner.id, mode=mode, scopes=VENDOR_SCOPES, credential="secret_key"
    )


async def found(
    database: Database,
    owner: Account,
    mode: Mode = Mode.TEST,
    *,
    session_index: bytes | None = None,
    cbid_index: bytes | None = None,
    reference_index: bytes | None = None,
    **narrowed: Any,  # noqa: ANN401 - the fields of a search
) -> Sequence[StoredAcknowledgment]:
    """Ask for all acknowledgments of an account and mode, unless narrowed down."""
    search = AcknowledgmentsQuery(**{"limit": 100} | narrowed)
    who = principal(owner, mode)
    given: dict[Field, bytes | None] = {
        SESSION_FIELD: session_index,
        CBID_FIELD: cbid_index,
        REFERENCE_FIELD: reference_index,
    }
    indexes = {field: index for field, index in given.items() if index is not None}
    return await database.scan(find.find, who, search, indexes)


async def kept(database: Database, slot: bytes) -> IdempotencyEntry | None:
    """The content of a slot."""
    return await database.read_batched(kept_entries, slot)


def fact(
    owner: Account | None = None,
    mode: Mode = Mode.TEST,
    kind: RecordType = RecordType.VERIFICATION,
    record_id: str | None = None,
) -> NewRecord:
    """Make a record of something else; without an owner, one of the deployment itself."""
    body = b'{"type":"fact","x":"' + some_bytes(40).hex().encode() + b'"}'
    return NewRecord(
        id=record_id or identifier("rec"),
        account_id="" if owner is None else owner.id,
        mode=mode,
        type=kind,
        at=NOON,
        body=body,
        digest=sha256(body).digest(),
    )


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The rows of an act of verifying."""

    record: NewRecord
    cbid: str
    status: BuyerStatus
    decide: Callable[[Buyer | None], Buyer]
    """The buyer after it, from the buyer as stored."""
    subject: ZipSubject | None
    zip_index: bytes | None
    keep: IdempotencyEntry | None


def verification(
    owner: Account,
    cbid: str,
    mode: Mode = Mode.TEST,
    *,
    status: BuyerStatus = BuyerStatus.VERIFIED,
    at: datetime = NOON,
    subject_index: bytes | None = None,
    zip_index: bytes | None = None,
    decide: Callable[[Buyer | None], Buyer] | None = None,
    keep: IdempotencyEntry | None = None,
) -> Verification:
    def first_call_decides(known: Buyer | None) -> Buyer:
        blank = Buyer(cbid=cbid, account_id=owner.id, mode=mode, simulated=True)
        return known or in_state(blank, status, (), at)

    return Verification(
        record=replace(fact(owner, mode, record_id=identifier("ver")), at=at),
        cbid=cbid,
        status=status,
        decide=decide or first_call_decides,
        subject=ZipSubject(owner.id, mode, subject_index) if subject_index else None,
        zip_index=zip_index,
        keep=keep,
    )


async def verify(database: Database, new: Verification) -> Buyer:
    """Write a verification and the buyer that it makes, as the acts do."""
    return await database.write(_verify, new)


def _verify(connection: Connection, new: Verification) -> Buyer | RateLimited:
    if new.subject and new.zip_index:
        refusal = count_zip(connection, new.subject, new.zip_index, new.record.at)
        if refusal is not None:
            return refusal
    before = buyers_by_cbid(connection, [new.cbid], to_change=True).get(new.cbid)
    buyer = new.decide(before)
    write_buyer(connection, before, buyer)
    if buyer != before:
        record = new.record
        own = {"id": record.id, "account_id": record.account_id, "mode": record.mode}
        said = {"status": new.status, "reasons": encoded_reasons(())}
        row = own | said | {"cbid": new.cbid, "provider": "sandbox", "at": record.at}
        connection.execute(insert(verifications), row)
        write_status_event(connection, buyer, new.record.at)
        JOURNAL.write(connection, [new.record])
    if new.keep is not None:
        keep_answers(connection, [new.keep])
    return buyer


async def buyer_of(
    database: Database, account_id: str, mode: Mode, cbid: str
) -> BuyerAndRules | None:
    """The buyer as this account finds it, and the account's rules."""
    return await database.read_batched(buyers_and_rules, StatusQuery(account_id, mode, cbid))


def notice_event(
    notice_id: str,
    version: str = "1",
    kind: LifecycleEvent = LifecycleEvent.PUBLISHED,
    at: datetime = NOON,
) -> NoticeEvent:
    return NoticeEvent(
        id=identifier("nev", at),
        notice_id=notice_id,
        version=version,
        type=kind,
        at=at,
        details={"by": "Ünï Cödé", "against": "https://example.com/law"},
    )


def both_modes(account_id: str) -> list[AccountReach]:
    """The reach of an account in each mode."""
    return [AccountReach(account_id, mode) for mode in Mode]


def fill(connection: Connection, size: int) -> None:
    """Write a row of this many bytes."""
    row = "INSERT INTO log_pending (record_id, mode, digest) VALUES (:id, 'test', zeroblob(:size))"
    connection.execute(text(row), {"id": identifier("rec"), "size": size})
