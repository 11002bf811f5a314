"""Clearances read back, and reports of what was done for their orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from countersign.access.idempotency_entry import IdempotencyEntry
from countersign.access.key import Principal
from countersign.access.secrets import DeploymentSecret
from countersign.access.test_clocks import TestClocks
from countersign.clearances.fulfilment import (
    ClearanceQuery,
    Fulfilment,
    FulfilmentReceipt,
    NewFulfilment,
    StoredClearance,
    StoredRecord,
)
from countersign.clearances.keys import ClearanceKeys
from countersign.clearances.model import Order
from countersign.clearances.record import SHIPPING_FIELD
from countersign.clearances.token import ClearanceToken
from countersign.errors import ClearanceNotGranted, NotFound
from countersign.evidence.disclosure import read_disclosure
from countersign.evidence.record import CBID_FIELD, SESSION_FIELD
from countersign.ids import CLEARANCE, FULFILMENT, is_id, timed_id
from countersign.instant import from_ns, rfc3339
from countersign.log.append_record import Recorder, open_disclosures
from countersign.log.record import RecordType, Sealed
from countersign.mode import Mode
from countersign.ports import Clock, Entropy, FulfilmentStore
from countersign.vault.vault import Vault

_CARRIER_FIELD: Final = "carrier"
_TRACKING_FIELD: Final = "tracking_number"


class _Decided(msgspec.Struct):
    """The members of a clearance's record that are read back."""

    cleared: bool
    reasons: tuple[str, ...]
    obligations: tuple[dict[str, Any], ...]
    test_clock: datetime | None = None


class _Reported(msgspec.Struct):
    """The members of a fulfilment's record that are read back."""

    clearance_id: str
    adult_signature_obtained: bool | None
    shipped_at: datetime | None
    delivered_at: datetime | None


_read_decided: Final = msgspec.json.Decoder(_Decided).decode
_read_reported: Final = msgspec.json.Decoder(_Reported).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearanceSearch:
    """What to look for; None is no limit."""

    ack_id: str | None = None
    session_id: str | None = None
    cbid: str | None = None
    after: str | None = None
    limit: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FulfilmentView:
    """A report as its account reads it."""

    fulfilment_id: str
    clearance_id: str
    at: datetime
    reported: Fulfilment


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearanceView:
    """A clearance as its account reads it; `order` is None once it is erased."""

    clearance_id: str
    mode: Mode
    ack_id: str | None
    order: Order | None
    cleared: bool
    reasons: Sequence[str]
    obligations: Sequence[Mapping[str, Any]]
    at: datetime
    expires_at: datetime | None
    test_clock: datetime | None
    """What the account's test clock showed, if it was ahead; `expires_at` is by that clock."""
    token: str | None
    """None unless it is granted, and valid still."""
    sealed: Sealed | None
    erased_at: datetime | None
    fulfilments: Sequence[FulfilmentView]
    closed_at: datetime | None


class FulfilOrder:
    """Reading clearances back, and closing their orders."""

    def __init__(
        self,
        *,
        store: FulfilmentStore,
        keys: ClearanceKeys,
        token: ClearanceToken,
        recorder: Recorder,
        secret: DeploymentSecret,
        vault: Vault,
        clocks: TestClocks,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._clocks = clocks
        self._store = store
        self._keys = keys
        self._token = token
        self._recorder = recorder
        self._secret = secret
        self._vault = vault
        self._clock = clock
        self._entropy = entropy

    async def one(self, principal: Principal, clearance_id: str) -> ClearanceView:
        """One clearance of the asking account and mode.

        Raises:
            NotFound: there is none with this id for this key.
        """
        return await self._view(await self._stored(principal, clearance_id))

    async def many(
        self, principal: Principal, search: ClearanceSearch
    ) -> tuple[Sequence[ClearanceView], str | None]:
        """A page, newest first, and the cursor of the next one (None on the last page)."""
        found = await self._store.find(
            ClearanceQuery(
                account_id=principal.account_id,
                mode=principal.mode,
                ack_id=search.ack_id,
                session_index=self._index(principal, SESSION_FIELD, search.session_id),
                cbid_index=self._index(principal, CBID_FIELD, search.cbid),
                older_than=search.after,
                limit=search.limit + 1,
            )
        )
        page = found[: search.limit]
        cursor = page[-1].record.id if len(found) > len(page) else None
        return [await self._view(stored) for stored in page], cursor

    async def report(
        self,
        principal: Principal,
        clearance_id: str,
        fulfilment: Fulfilment,
        remember: Callable[[FulfilmentReceipt], IdempotencyEntry] | None = None,
    ) -> FulfilmentReceipt:
        """Write down what was done; with the last of it the order is closed.

        Raises:
            NotFound: there is no such clearance for this key.
            ClearanceNotGranted: the order was not cleared.
            ClearanceClosed: all was reported already.
        """
        stored = await self._stored(principal, clearance_id)
        decided = _read_decided(stored.record.body)
        if not decided.cleared or stored.ack_id is None:
            raise ClearanceNotGranted
        time_ns = self._clock.time_ns()
        record = await self._recorder.of_account(
            RecordType.FULFILMENT,
            record_id=timed_id(FULFILMENT, time_ns, self._entropy(8)),
            account_id=principal.account_id,
            mode=principal.mode,
            members={
                "clearance_id": clearance_id,
                "adult_signature_obtained": fulfilment.adult_signature_obtained,
                "shipped_at": _time(fulfilment.shipped_at),
                "delivered_at": _time(fulfilment.delivered_at),
            },
            personal=(
                (_CARRIER_FIELD, fulfilment.carrier),
                (_TRACKING_FIELD, fulfilment.tracking_number),
            ),
        )
        return await self._store.add(
            NewFulfilment(
                record=record,
                account_id=principal.account_id,
                mode=principal.mode,
                clearance_id=clearance_id,
                ack_id=stored.ack_id,
                adult_signature=bool(fulfilment.adult_signature_obtained),
                obligations=decided.obligations,
                at=from_ns(time_ns),
                remember=remember,
            )
        )

    def _index(self, principal: Principal, field: str, value: str | None) -> bytes | None:
        if value is None:
            return None
        return self._secret.blind_index(principal.account_id, field, value)

    async def _stored(self, principal: Principal, clearance_id: str) -> StoredClearance:
        stored = None
        if is_id(CLEARANCE, clearance_id):
            stored = await self._store.get(principal.account_id, principal.mode, clearance_id)
        if stored is None:
            msg = "The clearance was not found."
            raise NotFound(msg)
        return stored

    async def _view(self, stored: StoredClearance) -> ClearanceView:
        record, decided = stored.record, _read_decided(stored.record.body)
        personal = await self._opened(stored.account_id, record)
        order = None if personal is None else _order(stored.ack_id, personal)
        return ClearanceView(
            clearance_id=record.id,
            mode=stored.mode,
            ack_id=stored.ack_id,
            order=order,
            cleared=decided.cleared,
            reasons=decided.reasons,
            obligations=decided.obligations,
            at=record.at,
            expires_at=stored.expires_at,
            test_clock=decided.test_clock,
            token=await self._signed(stored, order, decided),
            sealed=record.sealed,
            erased_at=record.erased_at,
            fulfilments=[await self._report(stored.account_id, r) for r in stored.fulfilments],
            closed_at=stored.closed_at,
        )

    async def _signed(
        self,
        stored: StoredClearance,
        order: Order | None,
        decided: _Decided,
    ) -> str | None:
        """The token once more, the same as it was given."""
        now, expires_at = from_ns(self._clock.time_ns()), stored.expires_at
        if order is None or expires_at is None or stored.kid is None:
            return None
        clock = await self._clocks.of(stored.account_id, stored.mode)
        if clock.at(now) >= expires_at:
            return None
        signers = await self._keys.signers(stored.mode)
        claims = self._token.claims(
            account_id=stored.account_id,
            mode=stored.mode,
            clearance_id=stored.record.id,
            order=order,
            obligations=decided.obligations,
            at=stored.record.at,
            judged_at=decided.test_clock or stored.record.at,
            expires_at=expires_at,
        )
        return signers.of(stored.kid, now).sign(claims)

    async def _report(self, account_id: str, record: StoredRecord) -> FulfilmentView:
        personal = await self._opened(account_id, record) or {}
        reported = _read_reported(record.body)
        return FulfilmentView(
            fulfilment_id=record.id,
            clearance_id=reported.clearance_id,
            at=record.at,
            reported=Fulfilment(
                carrier=personal.get(_CARRIER_FIELD),
                tracking_number=personal.get(_TRACKING_FIELD),
                shipped_at=reported.shipped_at,
                delivered_at=reported.delivered_at,
                adult_signature_obtained=reported.adult_signature_obtained,
            ),
        )

    async def _opened(self, account_id: str, record: StoredRecord) -> dict[str, Any] | None:
        if record.payload is None or record.shred_key is None:
            return None
        disclosures = await open_disclosures(
            self._vault, account_id, record.id, record.payload, record.shred_key
        )
        return {name: value for _, name, value in map(read_disclosure, disclosures)}


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else rfc3339(instant)


def _order(ack_id: str | None, personal: Mapping[str, Any]) -> Order:
    shipping = personal[SHIPPING_FIELD]
    return Order(
        ack_id=ack_id or "",
        cbid=personal[CBID_FIELD],
        session_id=personal[SESSION_FIELD],
        shipping_zip=shipping["zip"],
        product_class=shipping["product_class"],
        shipping_address=shipping["address"],
    )
