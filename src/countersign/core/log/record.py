"""Records: facts written once, whose digests become entries of the log of their mode.

Acknowledgments are written by their own room; this writes down other facts.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, NotRequired, TypedDict, Unpack

import msgspec
from msgspec.structs import replace
from sqlalchemy import Column, Connection, select

from countersign.base.db.database import Database
from countersign.base.db.statements import chunks
from countersign.base.db.tables import ended_records
from countersign.base.errors import NotFound
from countersign.base.values import FACT, Clock, Entropy, Mode, from_ns, rfc3339_ms, timed_id
from countersign.core.access.key import Principal
from countersign.core.vault.vault import NONCE_BYTES, SHRED_KEY_BYTES, DataKey, Place, Vault
from countersign_evidence.canonical import Json
from countersign_evidence.record import Draft, entropy_needed, make_records


class RecordType(StrEnum):
    """The type of a record."""

    ACKNOWLEDGMENT = "acknowledgment"
    VERIFICATION = "verification"
    CLEARANCE = "clearance"
    FULFILMENT = "fulfilment"
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


class SealedDisclosures(msgspec.Struct, frozen=True, kw_only=True):
    """The disclosures of a record, encrypted, and the data that is erased with them.

    The blind indexes are keyed hashes that find a record.
    """

    payload: bytes
    shred_key: bytes
    session_index: bytes | None = None
    cbid_index: bytes | None = None
    reference_index: bytes | None = None
    """Blind index of the vendor's order reference."""


class NewRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record to write. Without an account it is a fact of the deployment itself."""

    id: str
    account_id: str | None = None
    mode: Mode
    type: RecordType
    notice_id: str | None = None
    at: datetime
    body: bytes
    digest: bytes
    disclosures: SealedDisclosures | None = None


SEAL_ENTROPY: Final = SHRED_KEY_BYTES + NONCE_BYTES
"""Random bytes that sealing the disclosures of one record takes."""
_ID_ENTROPY: Final = 8
_encode: Final = msgspec.json.Encoder().encode
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


class Recorder:
    """Makes records of facts."""

    def __init__(self, vault: Vault, clock: Clock, entropy: Entropy) -> None:
        self._vault = vault
        self._clock = clock
        self._entropy = entropy

    def of_deployment(
        self, type_: RecordType, mode: Mode, members: Mapping[str, Json]
    ) -> NewRecord:
        """A fact of the deployment itself, never personal."""
        time_ns = self._clock.time_ns()
        record_id = timed_id(FACT, time_ns, self._entropy(_ID_ENTROPY))
        return _made(type_, record_id, mode, time_ns, members, entropy=self._entropy)[0]

    async def of_account(self, type_: RecordType, **fact: Unpack[Fact]) -> NewRecord:
        """A fact of an account, of now; see `account_fact`."""
        time_ns = self._clock.time_ns()
        key = await self._vault.data_key(fact["account_id"], time_ns)
        return account_fact(key, self._entropy, type_, time_ns=time_ns, **fact)


def account_fact(
    key: DataKey, entropy: Entropy, type_: RecordType, *, time_ns: int, **fact: Unpack[Fact]
) -> NewRecord:
    """The record of a fact of an account, made inside the transaction that writes it.

    `key` is the account's data key of this time, Unix nanoseconds.
    """
    id_, account_id, personal = fact["record_id"], fact["account_id"], fact.get("personal")
    what = (type_, id_, fact["mode"], time_ns, {**fact["members"], "account": account_id})
    made, disclosures = _made(*what, entropy=entropy, personal=personal or ())
    if not personal:
        return replace(made, account_id=account_id)
    drawn, index = entropy(SEAL_ENTROPY), fact.get("cbid_index")
    hidden = seal_disclosures(key, id_, disclosures, drawn, account_id=account_id, cbid_index=index)
    return replace(made, account_id=account_id, disclosures=hidden)


def _made(
    type_: RecordType,
    record_id: str,
    mode: Mode,
    time_ns: int,
    members: Mapping[str, Json],
    *,
    entropy: Entropy,
    personal: Sequence[tuple[str, object]] = (),
) -> tuple[NewRecord, Sequence[str]]:
    """The record of a fact, not yet assigned to a buyer, and its encoded disclosures."""
    at = from_ns(time_ns)
    common = {"type": type_.value, "id": record_id, "mode": mode.value, "at": rfc3339_ms(at)}
    drawn = entropy(entropy_needed(len(personal)))
    [written] = make_records([Draft({**members, **common}, personal, drawn)])
    record = NewRecord(
        id=record_id, mode=mode, type=type_, at=at, body=written.body, digest=written.digest
    )
    return record, written.disclosures


def seal_disclosures(
    key: DataKey,
    record_id: str,
    disclosures: Sequence[str],
    entropy: bytes,
    *,
    account_id: str,
    **indexes: bytes | None,
) -> SealedDisclosures:
    """Encrypt a record's encoded disclosures, and add the blind `indexes` that find it.

    `entropy` is SEAL_ENTROPY random bytes: the row's shred key, then the nonce.
    """
    return SealedDisclosures(
        payload=key.seal(
            shred_key=entropy[:SHRED_KEY_BYTES],
            nonce=entropy[SHRED_KEY_BYTES:],
            plaintext=_encode(disclosures),
            table="disclosures",
            column="payload",
            account=account_id,
            row_id=record_id,
        ),
        shred_key=entropy[:SHRED_KEY_BYTES],
        **indexes,
    )


async def open_disclosures(
    vault: Vault, account_id: str, record_id: str, payload: bytes | None, shred_key: bytes | None
) -> tuple[str, ...]:
    """The encoded disclosures that were sealed with `seal_disclosures`; none once erased."""
    if payload is None or shred_key is None:
        return ()
    place = Place(table="disclosures", column="payload", account=account_id, row_id=record_id)
    return _decode(await vault.open(payload, shred_key=shred_key, **place))


def ended(connection: Connection, record_ids: Sequence[str]) -> frozenset[str]:
    """The records among these whose evidence has ended; their entries in the log stay."""
    return among(connection, ended_records.c.record_id, record_ids)


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
