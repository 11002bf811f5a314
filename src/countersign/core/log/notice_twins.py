"""Compare the events of notices with the records of them that the logs seal.

Which notices are in force follows from rows of `notice_events`, and these are in no log: deleting
a row would bring a withdrawn notice back. Each row has a twin, a record in the log of each mode.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import zip_longest
from typing import Final, TypeAlias

import msgspec
from sqlalchemy import Connection, select

from countersign.base.db.tables import deployment_records, notice_events
from countersign.base.values import Mode
from countersign.core.log.record import RecordType

_APART: Final = timedelta(minutes=1)
"""Row and record are written in one transaction, each with a look at the clock."""
_UNRECORDED: Final = "rule_published"
"""The event that has no record: it says nothing of a text."""
_Event: TypeAlias = tuple[str, str, str]


class _Twin(msgspec.Struct):
    event: str
    notice_id: str
    notice_version: str


_read: Final = msgspec.json.Decoder(_Twin).decode


def unmatched_events(connection: Connection) -> list[tuple[Mode, str]]:
    """Differences between the rows and their sealed records, by the mode of the log."""
    record, found = deployment_records.c, list[tuple[Mode, str]]()
    events = select(notice_events).where(notice_events.c.type != _UNRECORDED)
    kept = connection.execute(events).all()
    for mode in Mode:
        of_mode = (record.type == RecordType.NOTICE_EVENT, record.mode == mode)
        sealed = connection.execute(select(record.body, record.at).where(*of_mode)).all()
        rows = [((row.type, row.notice_id, row.version), row.at) for row in kept]
        twins = [(of, at) for body, at in sealed if (of := _named_in(body)) is not None]
        for key in sorted({key for key, _ in (*rows, *twins)}):
            event, notice_id, version = key
            pair = [sorted(at for of, at in side if of == key) for side in (rows, twins)]
            what = f"version {version} of the notice {notice_id} was {event}"
            for listed, twin in zip_longest(*pair):
                if listed is None:
                    found.append((mode, f"{what} by a record of the log, but the event is missing"))
                elif twin is None:
                    found.append((mode, f"{what} by an event of which the log has no record"))
                elif abs(listed - twin) > _APART:
                    found.append((mode, f"{what} at another time than the record of the log says"))
    return found


def _named_in(body: bytes) -> _Event | None:
    """The event in a record; None if it is damaged, which is a separate finding."""
    try:
        twin = _read(body)
    except (msgspec.MsgspecError, TypeError):
        return None
    return twin.event, twin.notice_id, twin.notice_version
