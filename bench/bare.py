"""Countersign without evidence, for comparison only: ``python -m bench.bare`` serves it.

The same server, checks, transaction and promises: an acknowledgment can be read back, is listed and
found by session or buyer, has its event and its kept answer. But it is one row in plain text: no
record, no disclosures, no encryption, no entry in a log. This composition exists here and nowhere
else.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import msgspec
import uvloop
from sqlalchemy import BigInteger, Column, Connection, Index, LargeBinary, MetaData, String, Table

from countersign.access.idempotency import IdempotencyEntry, keep_answers
from countersign.access.key import Principal
from countersign.acknowledgments.acknowledge import Submission
from countersign.acknowledgments.initials import check_initials
from countersign.acknowledgments.model import Receipt
from countersign.bootstrap import Deployment, open_deployment
from countersign.config import load_settings
from countersign.db.bulk import BulkInsert
from countersign.events.model import EventType, NewEvent
from countersign.events.sql import write_events
from countersign.ids import ACKNOWLEDGMENT, timed_id
from countersign.instant import from_ns
from countersign.notices.model import NoticeVersion
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


def _make_table(connection: Connection, items: Sequence[None]) -> list[None]:
    _TABLE.create(connection)
    return [None] * len(items)


class BareAcknowledge:
    """Judges and stores, and proves nothing."""

    def __init__(self, deployment: Deployment) -> None:
        """Use the database of this deployment."""
        self._deployment = deployment

    async def __call__(
        self,
        principal: Principal,
        notice: NoticeVersion,
        submission: Submission,
        remember: Callable[[Receipt], IdempotencyEntry] | None = None,
    ) -> Receipt:
        """Store one row, and its event."""
        content = notice.content
        check_initials(submission.initials_per_line, len(content.bullets))
        deployment = self._deployment
        time_ns = deployment.clock.time_ns()
        receipt = Receipt(
            timed_id(ACKNOWLEDGMENT, time_ns, deployment.entropy(8)), content.id, content.version
        )
        row = (
            receipt.ack_id,
            principal.account_id,
            principal.mode.value,
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
            account_id=principal.account_id,
            mode=principal.mode,
            object_id=receipt.ack_id,
            at=from_ns(time_ns),
        )
        kept = remember(receipt) if remember else None
        await deployment.database.write_batched(_add, _New(row, event, kept))
        return receipt


async def main() -> None:
    """Serve until stopped."""
    async with open_deployment(load_settings()) as deployment:
        await deployment.database.write_batched(_make_table, None)
        bare = BareAcknowledge(deployment)
        room = replace(deployment.acknowledgments, acknowledge=bare)  # type: ignore[arg-type]
        await serve(replace(deployment, acknowledgments=room))


if __name__ == "__main__":
    uvloop.run(main())
