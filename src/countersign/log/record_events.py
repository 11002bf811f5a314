"""The events of a new record."""

from __future__ import annotations

from typing import Final

import msgspec

from countersign.events.model import EventType, NewEvent
from countersign.ids import ACKNOWLEDGMENT, is_id
from countersign.log.record import NewRecord, RecordType


class _Erased(msgspec.Struct):
    erased: tuple[str, ...] = ()


_read_erased: Final = msgspec.json.Decoder(_Erased).decode
_CREATED: Final = {
    RecordType.ACKNOWLEDGMENT: EventType.ACKNOWLEDGMENT_CREATED,
    RecordType.CLEARANCE: EventType.CLEARANCE_CREATED,
}


def events_of(record: NewRecord) -> list[NewEvent]:
    """The events that follow from the record alone.

    Records of other types have none, or need more than the record says: the acts that write these
    records also write their events.
    """
    if record.account_id is None:
        return []
    created = _CREATED.get(record.type)
    if created is not None:
        return [NewEvent(record.account_id, record.mode, created, record.id, record.at)]
    if record.type is not RecordType.ERASURE:
        return []
    erased = EventType.ACKNOWLEDGMENT_ERASED
    return [
        NewEvent(record.account_id, record.mode, erased, id_, record.at)
        for id_ in _read_erased(record.body).erased
        if is_id(ACKNOWLEDGMENT, id_)
    ]
