"""Read acknowledgments back: one by its id, or a list by what it was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from countersign.access.key import Principal
from countersign.access.secrets import DeploymentSecret
from countersign.acknowledgments.acknowledge import CBID_FIELD, SESSION_FIELD
from countersign.acknowledgments.evidence_report import explained
from countersign.acknowledgments.model import (
    AcknowledgmentQuery,
    Capture,
    StoredAcknowledgment,
    VersionSource,
)
from countersign.acknowledgments.sql import granted_clearances
from countersign.db.database import Database
from countersign.errors import NotFound
from countersign.evidence.disclosure import read_disclosure
from countersign.ids import ACKNOWLEDGMENT, is_id
from countersign.log.append_record import open_disclosures
from countersign.log.record import Sealed
from countersign.mode import Mode
from countersign.ports import AcknowledgmentStore
from countersign.vault.vault import Vault


class RecordView(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a record that are read back."""

    notice_id: str
    notice_version: str
    notice_digest: str
    notice_version_source: VersionSource
    capture: Capture
    test_clock: datetime | None = None
    """What the account's test clock showed, if it was ahead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgmentView:
    """An acknowledgment as its account reads it; `personal` is None once it is erased.

    `personal` holds the disclosed fields by name, in the shapes of spec/evidence-format.md.
    """

    ack_id: str
    mode: Mode
    accepted_at: datetime
    record: RecordView
    personal: dict[str, Any] | None
    sealed: Sealed | None
    erased_at: datetime | None
    clearance_id: str | None
    """The newest clearance that was granted with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An acknowledgment as evidence: exact bytes, and the encoded disclosures by name.

    `disclosures` is None once they are erased.
    """

    record: bytes
    accepted_at: datetime
    notice_digest: str
    disclosures: dict[str, str] | None
    erased_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What to look for; None is no limit."""

    session_id: str | None = None
    cbid: str | None = None
    notice_id: str | None = None
    accepted_after: datetime | None = None
    accepted_before: datetime | None = None
    after: str | None = None
    limit: int = 20


_decode_record: Final = msgspec.json.Decoder(RecordView).decode


class FindAcknowledgments:
    """Reading back."""

    def __init__(
        self,
        store: AcknowledgmentStore,
        database: Database,
        secret: DeploymentSecret,
        vault: Vault,
    ) -> None:
        self._store = store
        self._database = database
        self._secret = secret
        self._vault = vault

    async def one(self, principal: Principal, ack_id: str) -> AcknowledgmentView:
        """One acknowledgment of the asking account and mode.

        Raises:
            NotFound: there is none with this id for this key.
        """
        (view,) = await self._views([await self._stored(principal, ack_id)])
        return view

    async def record(self, principal: Principal, ack_id: str) -> bytes:
        """The exact bytes of the record of one acknowledgment; nothing is decrypted for it.

        Raises:
            NotFound: there is none with this id for this key.
        """
        return (await self._stored(principal, ack_id)).record

    async def found(self, principal: Principal, ack_id: str) -> Found:
        """One acknowledgment as evidence.

        Raises:
            NotFound: there is none with this id for this key.
        """
        stored = await self._stored(principal, ack_id)
        disclosures = await self._opened(stored)
        return Found(
            record=stored.record,
            accepted_at=stored.accepted_at,
            notice_digest=_decode_record(stored.record).notice_digest,
            disclosures=None
            if disclosures is None
            else {read_disclosure(encoded)[1]: encoded for encoded in disclosures},
            erased_at=stored.erased_at,
        )

    async def many(
        self, principal: Principal, search: Search
    ) -> tuple[Sequence[AcknowledgmentView], str | None]:
        """A page, newest first, and the cursor of the next one (None on the last page)."""
        found = await self._store.find(
            AcknowledgmentQuery(
                account_id=principal.account_id,
                mode=principal.mode,
                session_index=self._index(principal, SESSION_FIELD, search.session_id),
                cbid_index=self._index(principal, CBID_FIELD, search.cbid),
                notice_id=search.notice_id,
                accepted_after=search.accepted_after,
                accepted_before=search.accepted_before,
                older_than=search.after,
                limit=search.limit + 1,
            )
        )
        page = found[: search.limit]
        return await self._views(page), page[-1].ack_id if len(found) > len(page) else None

    async def _stored(self, principal: Principal, ack_id: str) -> StoredAcknowledgment:
        stored = None
        if is_id(ACKNOWLEDGMENT, ack_id):
            stored = await self._store.get(principal.account_id, principal.mode, ack_id)
        if stored is None:
            msg = "The acknowledgment was not found."
            raise NotFound(msg)
        return stored

    async def _views(self, stored: Sequence[StoredAcknowledgment]) -> list[AcknowledgmentView]:
        ack_ids = [item.ack_id for item in stored]
        granted = await self._database.read(granted_clearances, ack_ids)
        return [await self._view(item, granted.get(item.ack_id)) for item in stored]

    async def _view(
        self, stored: StoredAcknowledgment, clearance_id: str | None
    ) -> AcknowledgmentView:
        with explained(stored.ack_id):
            return await self._read(stored, clearance_id)

    async def _read(
        self, stored: StoredAcknowledgment, clearance_id: str | None
    ) -> AcknowledgmentView:
        disclosures = await self._opened(stored)
        personal = None
        if disclosures is not None:
            personal = {name: value for _, name, value in map(read_disclosure, disclosures)}
        return AcknowledgmentView(
            ack_id=stored.ack_id,
            mode=stored.mode,
            accepted_at=stored.accepted_at,
            record=_decode_record(stored.record),
            personal=personal,
            sealed=stored.sealed,
            erased_at=stored.erased_at,
            clearance_id=clearance_id,
        )

    async def _opened(self, stored: StoredAcknowledgment) -> tuple[str, ...] | None:
        if stored.payload is None or stored.shred_key is None:
            return None
        return await open_disclosures(
            self._vault, stored.account_id, stored.ack_id, stored.payload, stored.shred_key
        )

    def _index(self, principal: Principal, field: str, value: str | None) -> bytes | None:
        if value is None:
            return None
        return self._secret.blind_index(principal.account_id, field, value)
