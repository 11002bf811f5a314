"""Writing down facts other than acknowledgments, as records for the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from countersign.clock import Clock, Entropy
from countersign.evidence.canonical import Json
from countersign.evidence.disclosure import Disclosure
from countersign.evidence.record import FactDraft, SealedRecord, entropy_needed, make_facts
from countersign.ids import timed_id
from countersign.instant import from_ns, rfc3339_ms
from countersign.log.record import NewRecord, RecordType, SealedDisclosures
from countersign.mode import Mode
from countersign.vault.vault import NONCE_BYTES, SHRED_KEY_BYTES, DataKey, Vault

SEAL_ENTROPY: Final = SHRED_KEY_BYTES + NONCE_BYTES
"""Random bytes that sealing the disclosures of one record takes."""
_ID_ENTROPY: Final = 8
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(tuple[str, ...]).decode


class Recorder:
    """Makes records of facts."""

    def __init__(self, vault: Vault, clock: Clock, entropy: Entropy) -> None:
        self._vault = vault
        self._clock = clock
        self._entropy = entropy

    def of_deployment(
        self, type_: RecordType, prefix: str, mode: Mode, members: Mapping[str, Json]
    ) -> NewRecord:
        """A fact of the deployment itself; nothing in it is personal."""
        time_ns = self._clock.time_ns()
        record_id = timed_id(prefix, time_ns, self._entropy(_ID_ENTROPY))
        members = {**members, **_common(type_, record_id, mode, time_ns)}
        [written] = make_facts([FactDraft(members, (), self._entropy(entropy_needed(0)))])
        return _new_record(type_, record_id, mode, time_ns, written)

    async def of_account(
        self,
        type_: RecordType,
        *,
        record_id: str,
        account_id: str,
        mode: Mode,
        members: Mapping[str, Json],
        personal: Sequence[tuple[str, object]] = (),
        cbid_index: bytes | None = None,
    ) -> NewRecord:
        """A fact of an account, of now; see `account_fact`."""
        time_ns = self._clock.time_ns()
        return account_fact(
            await self._vault.data_key(account_id, time_ns),
            self._entropy,
            type_,
            record_id=record_id,
            account_id=account_id,
            mode=mode,
            time_ns=time_ns,
            members=members,
            personal=personal,
            cbid_index=cbid_index,
        )


def account_fact(
    key: DataKey,
    entropy: Entropy,
    type_: RecordType,
    *,
    record_id: str,
    account_id: str,
    mode: Mode,
    time_ns: int,
    members: Mapping[str, Json],
    personal: Sequence[tuple[str, object]] = (),
    cbid_index: bytes | None = None,
) -> NewRecord:
    """The record of a fact of an account, made inside the transaction that writes it.

    Args:
        key: the account's data key of this time.
        entropy: source of random bytes.
        type_: what it is about.
        record_id: the identifier of the record.
        account_id: the account.
        mode: the mode, and with it the log.
        time_ns: when it happened, Unix nanoseconds.
        members: what the record says openly, in addition to what every record says.
        personal: name and value of each personal field; they become encrypted disclosures.
        cbid_index: the blind index by which the record is found for a buyer.
    """
    members = {**members, **_common(type_, record_id, mode, time_ns), "account": account_id}
    drawn = entropy(entropy_needed(len(personal)))
    [written] = make_facts([FactDraft(members, personal, drawn)])
    sealed = None
    if personal:
        sealed = seal_disclosures(
            key,
            record_id,
            written.disclosures,
            entropy(SEAL_ENTROPY),
            account_id=account_id,
            cbid_index=cbid_index,
        )
    return _new_record(
        type_, record_id, mode, time_ns, written, account_id=account_id, disclosures=sealed
    )


def _common(type_: RecordType, record_id: str, mode: Mode, time_ns: int) -> dict[str, Json]:
    """What every record of a fact says."""
    return {
        "type": type_.value,
        "id": record_id,
        "mode": mode.value,
        "at": rfc3339_ms(from_ns(time_ns)),
    }


def _new_record(
    type_: RecordType,
    record_id: str,
    mode: Mode,
    time_ns: int,
    written: SealedRecord,
    *,
    account_id: str | None = None,
    disclosures: SealedDisclosures | None = None,
) -> NewRecord:
    return NewRecord(
        id=record_id,
        account_id=account_id,
        mode=mode,
        type=type_,
        notice_id=None,
        at=from_ns(time_ns),
        body=written.body,
        digest=written.digest,
        disclosures=disclosures,
    )


def seal_disclosures(
    key: DataKey,
    record_id: str,
    disclosures: Sequence[Disclosure],
    entropy: bytes,
    *,
    account_id: str,
    session_index: bytes | None = None,
    cbid_index: bytes | None = None,
) -> SealedDisclosures:
    """Encrypt a record's disclosures, with the blind indexes by which it is found.

    `entropy` is SEAL_ENTROPY random bytes: the row's shred key, then the nonce.
    """
    return SealedDisclosures(
        payload=key.seal(
            shred_key=entropy[:SHRED_KEY_BYTES],
            nonce=entropy[SHRED_KEY_BYTES:],
            table="disclosures",
            column="payload",
            account=account_id,
            row_id=record_id,
            plaintext=_encode([disclosure.encoded for disclosure in disclosures]),
        ),
        shred_key=entropy[:SHRED_KEY_BYTES],
        session_index=session_index,
        cbid_index=cbid_index,
    )


async def open_disclosures(
    vault: Vault, account_id: str, record_id: str, payload: bytes, shred_key: bytes
) -> tuple[str, ...]:
    """The encoded disclosures that were sealed with `seal_disclosures`.

    Raises:
        WrongKeyEncryptionKey: they do not open.
    """
    return _decode(
        await vault.open(
            payload,
            shred_key=shred_key,
            table="disclosures",
            column="payload",
            account=account_id,
            row_id=record_id,
        )
    )
