"""Records: facts written once, whose digests become entries of the log of their mode.

Acknowledgments are written by their own room; this writes down other facts.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, NotRequired, TypedDict, Unpack

import msgspec
from msgspec import Struct
from sqlalchemy import Column, Connection, select

from countersign.base.db.database import Database
from countersign.base.db.statements import chunks
from countersign.base.db.tables import ended_records
from countersign.base.errors import NotFound
from countersign.base.values import FACT, Clock, Entropy, Mode, from_ns, rfc3339_ms, timed_id
from countersign.core.access.key import Principal
from countersign.core.vault.vault import NONCE_BYTES, SHRED_KEY_BYTES, DataKey, Place, Vault
from countersign_evidence.canonical import Json
from countersign_evidence.disclosure import b64url_each
from countersign_evidence.record import Record, entropy_needed, make_records


class RecordType(StrEnum):
    """The type of a record."""

    ACKNOWLEDGMENT = "acknowledgment"
    VERIFICATION = "verification"
    CLEARANCE = "clearance"
    FULFILMENT = "fulfilment"
    OVERRIDE = "override"
    ERASURE = "erasure"
    NOTICE_EVENT = "notice_event"
    KEY_ROTATION = "key_rotation"
    APPROVERS = "approvers"
    EPOCH = "epoch"
    RECOVERY = "recovery"
    OPERATOR = "operator"
    ACCOUNT = "account"
    CAPTURE_PROCESS = "capture_process"
    AUDIT_HEAD = "audit_head"


class NewRecord(Record, kw_only=True):
    """A record to write. Without an account it is a fact of the deployment itself.

    The fields with the names of columns are its rows; the blind indexes are keyed hashes that find
    it.
    """

    id: str = ""
    account_id: str = ""
    mode: Mode
    type: RecordType
    notice_id: str | None = None
    at: datetime
    shred_key: bytes = b""
    """Random bytes without which the payload cannot be read; they are erased with it."""
    nonce: bytes = b""
    """Random bytes to encrypt the payload with."""
    payload: bytes | None = None
    """The disclosures, encrypted; None: it has none."""
    session_index: bytes | None = None
    cbid_index: bytes | None = None
    reference_index: bytes | None = None
    """Blind index of the vendor's order reference."""

    def draw(self, entropy: bytes) -> None:
        """Take the random bytes of a record with disclosures, the last SEAL_ENTROPY to seal it."""
        self.entropy, rest = entropy[:-SEAL_ENTROPY], entropy[-SEAL_ENTROPY:]
        self.shred_key, self.nonce = rest[:SHRED_KEY_BYTES], rest[SHRED_KEY_BYTES:]

    def seal(self, key: DataKey) -> None:
        """Encrypt the disclosures."""
        self.payload = key.seal(
            shred_key=self.shred_key,
            nonce=self.nonce,
            plaintext=b"\n" + b"\n".join(self.disclosures),
            table="disclosures",
            column="payload",
            account=self.account_id,
            row_id=self.id,
        )


SEAL_ENTROPY: Final = SHRED_KEY_BYTES + NONCE_BYTES
"""Random bytes that sealing the disclosures of one record takes."""
_decode: Final = msgspec.json.Decoder(tuple[str, ...]).decode


class Fact(TypedDict):
    """The content of a record about a fact of an account."""

    record_id: str
    account_id: str
    mode: Mode
    members: Mapping[str, Json]
    """Its public members, without those common to all records."""
    personal: NotRequired[Sequence[tuple[str, object]]]
    """Name and value of each field that becomes an encrypted disclosure."""
    cbid_index: NotRequired[bytes]
    """The blind index that finds the record for a buyer."""


class Recorder(Struct, frozen=True, eq=False):
    """Makes records of facts."""

    vault: Vault
    clock: Clock
    entropy: Entropy

    def of_deployment(
        self, type_: RecordType, mode: Mode, members: Mapping[str, Json]
    ) -> NewRecord:
        """A fact of the deployment itself, never personal."""
        time_ns = self.clock.time_ns()
        record_id = timed_id(FACT, time_ns, self.entropy(8))
        record = _record(type_, record_id, mode, time_ns, members)
        record.entropy = self.entropy(entropy_needed(0))
        make_records([record])
        return record

    async def of_account(self, type_: RecordType, **fact: Unpack[Fact]) -> NewRecord:
        """A fact of an account, of now; see `account_fact`."""
        time_ns = self.clock.time_ns()
        key = await self.vault.data_key(fact["account_id"], time_ns)
        return account_fact(key, self.entropy, type_, time_ns=time_ns, **fact)


def account_fact(
    key: DataKey, entropy: Entropy, type_: RecordType, *, time_ns: int, **fact: Unpack[Fact]
) -> NewRecord:
    """The record of a fact of an account, made inside the transaction that writes it.

    `key` is the account's data key of this time, Unix nanoseconds.
    """
    account_id, personal = fact["account_id"], fact.get("personal", ())
    members = {**fact["members"], "account": account_id}
    record = _record(type_, fact["record_id"], fact["mode"], time_ns, members)
    record.account_id, record.personal = account_id, personal
    record.cbid_index = fact.get("cbid_index")
    record.entropy = entropy(entropy_needed(len(personal)))
    make_records([record])
    if personal:
        record.shred_key, record.nonce = entropy(SHRED_KEY_BYTES), entropy(NONCE_BYTES)
        record.seal(key)
    return record


def _record(
    type_: RecordType, record_id: str, mode: Mode, time_ns: int, members: Mapping[str, Json]
) -> NewRecord:
    at = from_ns(time_ns)
    common = {"type": type_.value, "id": record_id, "mode": mode.value, "at": rfc3339_ms(at)}
    return NewRecord(members={**members, **common}, id=record_id, mode=mode, type=type_, at=at)


async def open_disclosures(
    vault: Vault, account_id: str, record_id: str, payload: bytes | None, shred_key: bytes | None
) -> tuple[str, ...]:
    """The encoded disclosures that `NewRecord.seal` encrypted; none once erased."""
    if payload is None or shred_key is None:
        return ()
    place = Place(table="disclosures", column="payload", account=account_id, row_id=record_id)
    opened = await vault.open(payload, shred_key=shred_key, **place)
    # Until 0027 the plaintext was a JSON array of the encoded ones.
    return tuple(b64url_each(opened.splitlines()[1:])) if opened[:1] == b"\n" else _decode(opened)


def among(connection: Connection, column: Column[str], values: Sequence[str]) -> frozenset[str]:
    """Those of these values that the column has."""
    queries = [select(column).where(column.in_(chunk)) for chunk in chunks(values)]
    return frozenset(one for query in queries for one in connection.execute(query).scalars())


async def missing(database: Database, who: Principal, record_id: str, noun: str) -> NotFound:
    """The refusal for a missing record; the account and mode that had it learn why."""
    e = ended_records.c
    own = (e.record_id == record_id, e.account_id == who.account_id, e.mode == who.mode)

    def has_ended(connection: Connection) -> bool:
        return connection.execute(select(e.at).where(*own)).first() is not None

    # The caller may have sent anything: PostgreSQL takes no U+0000.
    if record_id.isascii() and record_id.isprintable() and await database.read(has_ended):
        return NotFound(f"The evidence of this {noun} has ended, and its record was deleted.")
    return NotFound(f"The {noun} was not found.")
