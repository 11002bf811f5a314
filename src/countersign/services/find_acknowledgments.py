"""Read acknowledgments back: one by its id, or a list by what it was given."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from countersign.domain.acknowledgment import (
    AcknowledgmentQuery,
    Capture,
    StoredAcknowledgment,
    VersionSource,
)
from countersign.domain.key import Principal
from countersign.domain.mode import Mode
from countersign.errors import NotFound
from countersign.ids import ACKNOWLEDGMENT, is_id
from countersign.ports import AcknowledgmentStore
from countersign.services.acknowledge import CBID_FIELD, SESSION_FIELD
from countersign.services.secrets import DeploymentSecret


class RecordView(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a record that are read back."""

    notice_id: str
    notice_version: str
    notice_digest: str
    notice_version_source: VersionSource
    capture: Capture


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
_decode_disclosure: Final = msgspec.json.Decoder(tuple[str, str, Any]).decode


class FindAcknowledgments:
    """Reading back."""

    def __init__(self, store: AcknowledgmentStore, secret: DeploymentSecret) -> None:
        self._store = store
        self._secret = secret

    async def one(self, principal: Principal, ack_id: str) -> AcknowledgmentView:
        """One acknowledgment of the asking account and mode.

        Raises:
            NotFound: there is none with this id for this key.
        """
        stored = None
        if is_id(ACKNOWLEDGMENT, ack_id):
            stored = await self._store.get(principal.account_id, principal.mode, ack_id)
        if stored is None:
            msg = "The acknowledgment was not found."
            raise NotFound(msg)
        return _view(stored)

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
        return [_view(item) for item in page], page[-1].ack_id if len(found) > len(page) else None

    def _index(self, principal: Principal, field: str, value: str | None) -> bytes | None:
        if value is None:
            return None
        return self._secret.blind_index(principal.account_id, field, value)


def _view(stored: StoredAcknowledgment) -> AcknowledgmentView:
    personal = None
    if stored.disclosures is not None:
        fields = (_decode_disclosure(_unpadded(encoded)) for encoded in stored.disclosures)
        personal = {name: value for _, name, value in fields}
    return AcknowledgmentView(
        ack_id=stored.ack_id,
        mode=stored.mode,
        accepted_at=stored.accepted_at,
        record=_decode_record(stored.record),
        personal=personal,
    )


def _unpadded(encoded: str) -> bytes:
    return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
