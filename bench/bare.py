"""Countersign without evidence, for comparison only: ``python -m bench.bare`` serves it.

The same server, checks and transaction, but an acknowledgment is one bare row: no record, no
disclosures, no encryption, no entry in a log. This composition exists here and nowhere else.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import msgspec
import uvloop
from sqlalchemy import Column, Connection, LargeBinary, MetaData, String, Table, text

from countersign.bootstrap import Deployment, open_deployment
from countersign.config import load_settings
from countersign.domain.acknowledgment import Receipt
from countersign.domain.idempotency import IdempotencyEntry
from countersign.domain.initials import check_initials
from countersign.domain.key import Principal
from countersign.domain.notice import NoticeVersion
from countersign.http.server import serve
from countersign.ids import ACKNOWLEDGMENT, timed_id
from countersign.services.acknowledge import Submission
from countersign.storage.bulk import BulkInsert

_TABLE: Final = Table(
    "bare_acknowledgments",
    MetaData(),
    Column("id", String(40), primary_key=True),
    Column("account_id", String(40)),
    Column("body", LargeBinary),
)
_insert: Final = BulkInsert(_TABLE, "id", "account_id", "body")
_encode: Final = msgspec.json.Encoder().encode


def _add(connection: Connection, items: Sequence[tuple[str, str, bytes]]) -> list[None]:
    _insert(connection, items)
    return [None] * len(items)


def _make_table(connection: Connection, items: Sequence[None]) -> list[None]:
    connection.execute(
        text("CREATE TABLE bare_acknowledgments (id TEXT PRIMARY KEY, account_id TEXT, body BLOB)")
    )
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
        remember: Callable[[Receipt], IdempotencyEntry] | None = None,  # noqa: ARG002 - the real one's signature
    ) -> Receipt:
        """Store one row."""
        content = notice.content
        check_initials(submission.initials_per_line, len(content.bullets))
        deployment = self._deployment
        id_ = timed_id(ACKNOWLEDGMENT, deployment.clock.time_ns(), deployment.entropy(8))
        row = (id_, principal.account_id, _encode(submission))
        await deployment.database.write(_add, row)
        return Receipt(id_, content.id, content.version)


async def main() -> None:
    """Serve until stopped."""
    async with open_deployment(load_settings()) as deployment:
        await deployment.database.write(_make_table, None)
        bare = BareAcknowledge(deployment)
        await serve(replace(deployment, acknowledge=bare))  # type: ignore[arg-type]


if __name__ == "__main__":
    uvloop.run(main())
