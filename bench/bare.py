"""Countersign without evidence, for comparison only: ``python -m bench.bare`` serves it.

``python -m bench.bare receipts`` leaves out the receipts alone.

The same server, checks, transaction and promises: an acknowledgment can be read back, is listed and
found by session or buyer, has its event and its kept answer. But it is one row in plain text: no
record, no disclosures, no encryption, no entry in a log. This composition exists here and nowhere
else.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec
import uvloop
from sqlalchemy import BigInteger, Column, Connection, Index, LargeBinary, MetaData, String, Table

from countersign.access.idempotency import IdempotencyEntry, keep_answers
from countersign.access.key import Principal
from countersign.access.test_clocks import REAL_TIME, AccountClock
from countersign.acknowledgments import acknowledge as acknowledging
from countersign.acknowledgments.model import Receipt, Submission
from countersign.acknowledgments.room import Acknowledgments
from countersign.bootstrap import open_deployment
from countersign.config import load_settings
from countersign.db.bulk import BulkInsert
from countersign.events.model import EventType, NewEvent
from countersign.events.sql import write_events
from countersign.ids import ACKNOWLEDGMENT, timed_id
from countersign.instant import from_ns
from countersign.notices.model import NoticeEdition
from countersign.server.server import serve

_TABLE: Final = Table(
    "bare_acknowledgments",
    MetaData(),
    Column("id", String(40), primary_key=True),
    Column("account_id", String(40)),
    Column("mode", String(4)),
    Column("notice_id", String(64)),
    Column("notice_version", String(64)),
    Column("notice_digest", String(64)),
    Column("at", BigInteger),
    Column("session_id", String(255)),
    Column("cbid", String(255)),
    Column("body", LargeBinary),
    Index("bare_in_order", "account_id", "mode", "id"),
    Index("bare_by_session", "account_id", "session_id"),
    Index("bare_by_cbid", "account_id", "cbid"),
)
_insert: Final = BulkInsert(_TABLE, *_TABLE.c.keys())
_encode: Final = msgspec.json.Encoder().encode


class _New(NamedTuple):
    row: tuple[object, ...]
    event: NewEvent
    kept: IdempotencyEntry | None


def _add(connection: Connection, items: Sequence[_New]) -> list[None]:
    _insert(connection, [item.row for item in items])
    write_events(connection, [item.event for item in items])
    keep_answers(connection, [item.kept for item in items if item.kept])
    return [None] * len(items)


async def bare_acknowledge(
    room: Acknowledgments,
    who: Principal,
    notice: NoticeEdition,
    submission: Submission,
    *,
    clock: AccountClock = REAL_TIME,  # noqa: ARG001 - as the act that it stands for
    entry: Callable[[bytes], IdempotencyEntry] | None = None,
) -> Receipt:
    """Check, and store one row and its event; prove nothing."""
    content = notice.content
    acknowledging.check_initials(submission.initials_per_line, len(content.bullets))
    time_ns = room.log.clock.time_ns()
    ack_id = timed_id(ACKNOWLEDGMENT, time_ns, room.log.access.entropy(8))
    response = {"ack_id": ack_id, "notice_id": content.id, "notice_version": content.version}
    receipt = Receipt(ack_id, content.id, content.version, None, _encode(response))
    row = (
        ack_id,
        who.account_id,
        who.mode.value,
        content.id,
        content.version,
        notice.digest,
        time_ns // 1_000_000,
        submission.session_id,
        submission.cbid,
        _encode(submission),
    )
    event = NewEvent(
        type=EventType.ACKNOWLEDGMENT_CREATED,
        account_id=who.account_id,
        mode=who.mode,
        object_id=ack_id,
        at=from_ns(time_ns),
    )
    kept = entry(receipt.body) if entry else None
    await room.log.database.write_batched(_add, _New(row, event, kept))
    return receipt


async def main() -> None:
    """Serve until stopped."""
    # In this process, which does nothing else.
    if sys.argv[1:] == ["receipts"]:
        acknowledging._receipts = lambda *_: {}  # noqa: SLF001 - what is left out is no seam
    else:
        acknowledging.acknowledge = bare_acknowledge
    async with open_deployment(load_settings()) as deployment:
        await deployment.database.write(_TABLE.create)
        await serve(deployment)


if __name__ == "__main__":
    uvloop.run(main())
