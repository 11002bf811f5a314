"""Read acknowledgments back: one by its id, or a list by what it was given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import msgspec
import structlog

from countersign.access.key import Principal
from countersign.acknowledgments import sql
from countersign.acknowledgments.model import (
    AcknowledgmentView,
    RecordView,
    Search,
    StoredAcknowledgment,
)
from countersign.acknowledgments.room import Acknowledgments
from countersign.errors import DamagedValue, EvidenceDamaged, NotFound
from countersign.evidence.disclosure import read_disclosure
from countersign.evidence.record import CBID_FIELD, SESSION_FIELD
from countersign.ids import ACKNOWLEDGMENT, is_id
from countersign.log.append_record import open_disclosures

read_record: Final = msgspec.json.Decoder(RecordView).decode
_log: Final = structlog.get_logger("countersign.evidence")


async def find_one(room: Acknowledgments, who: Principal, ack_id: str) -> AcknowledgmentView:
    """One acknowledgment of the account and mode of this key.

    Raises:
        NotFound: there is none with this id for this key.
        EvidenceDamaged: it cannot be read.
    """
    return await _view(room, await stored(room, who, ack_id))


async def find_many(
    room: Acknowledgments, who: Principal, search: Search
) -> tuple[Sequence[AcknowledgmentView], str | None]:
    """A page, newest first, and the cursor of the next one (None on the last page).

    Raises:
        EvidenceDamaged: one of them cannot be read.
    """
    one_more = replace(search, limit=search.limit + 1)
    found = await room.database.scan(
        sql.find,
        who,
        one_more,
        _index(room, who, SESSION_FIELD, search.session_id),
        _index(room, who, CBID_FIELD, search.cbid),
    )
    page = [await _view(room, item) for item in found[: search.limit]]
    return page, page[-1].ack_id if len(found) > len(page) else None


async def stored(room: Acknowledgments, who: Principal, ack_id: str) -> StoredAcknowledgment:
    """One acknowledgment with its disclosures encrypted.

    Raises:
        NotFound: there is none with this id for this key.
    """
    found = None
    if is_id(ACKNOWLEDGMENT, ack_id):
        found = await room.database.read(sql.get, who, ack_id)
    if found is None:
        msg = "The acknowledgment was not found."
        raise NotFound(msg)
    return found


async def opened(room: Acknowledgments, found: StoredAcknowledgment) -> tuple[str, ...] | None:
    """Its encoded disclosures; None once they are erased."""
    if found.payload is None or found.shred_key is None:
        return None
    return await open_disclosures(
        room.vault, found.account_id, found.ack_id, found.payload, found.shred_key
    )


@contextmanager
def refusing_damage(ack_id: str) -> Iterator[None]:
    """Log and refuse whatever stored evidence causes here that sound evidence cannot.

    Raises:
        EvidenceDamaged: it does not verify, or cannot even be read.
    """
    try:
        yield
    except (DamagedValue, msgspec.MsgspecError, ValueError, LookupError, TypeError) as error:
        _log.error("evidence_damaged", ack_id=ack_id, kind=type(error).__name__, reason=str(error))
        raise EvidenceDamaged from error


async def _view(room: Acknowledgments, found: StoredAcknowledgment) -> AcknowledgmentView:
    with refusing_damage(found.ack_id):
        disclosures, personal = await opened(room, found), None
        if disclosures is not None:
            personal = {name: value for _, name, value in map(read_disclosure, disclosures)}
        return AcknowledgmentView(
            ack_id=found.ack_id,
            mode=found.mode,
            accepted_at=found.accepted_at,
            record=read_record(found.record),
            personal=personal,
            sealed=found.sealed,
            erased_at=found.erased_at,
            clearance_id=found.clearance_id,
        )


def _index(room: Acknowledgments, who: Principal, field: str, value: str | None) -> bytes | None:
    return None if value is None else room.secret.blind_index(who.account_id, field, value)
