"""Store many acknowledgments at once: copies of an ordinary one.

The ordinary code writes them, so that every table, index, event and tile is as after so many calls;
each copy has its own identifier, blind indexes and slot. The encrypted data of a copy is that of
the first one: nothing reads it back.
"""

from __future__ import annotations

import time
from datetime import timedelta
from hashlib import sha256
from io import BytesIO
from secrets import token_bytes
from typing import Final

from msgspec.structs import replace
from sqlalchemy import Connection

from bench.plan import NOTICE_ID
from bench.rounds import say
from bench.servers import Installation
from bench.vendor import initials, vendor
from countersign.base.config import load_settings
from countersign.base.db.engine import Purpose, open_engine
from countersign.base.db.statements import allow_deferred, run_deferred
from countersign.base.values import ACKNOWLEDGMENT, Mode, timed_id
from countersign.core.access.account import all_accounts
from countersign.core.access.clocks import REAL_TIME
from countersign.core.access.secrets import INDEX_BYTES
from countersign.core.acknowledgments.acknowledge import begin
from countersign.core.acknowledgments.make import NewAcknowledgment, make
from countersign.core.acknowledgments.write_together import defer
from countersign.core.log.blind_runs import GROUP, RUN_ROWS, do_step, new_run
from countersign.core.vault.vault import SHRED_KEY_BYTES
from countersign.operate.bootstrap import Deployment, open_deployment

_RUN: Final = GROUP * RUN_ROWS
"""Number of records in a merged run: they are written as merged runs."""
_TOGETHER: Final = 512
_STEP_NS: Final = 1_000
"""Time between two copies; all are in the past before a server begins again."""


async def fill(installed: Installation, number: int, over: timedelta = timedelta(0)) -> None:
    """Store so many acknowledgments in an embedded database without a server.

    `over`: the period in which they appear to have been made; it ends now.
    """
    async with open_deployment(load_settings(installed.environment)) as deployment:
        first = await _first(deployment)
        engine = open_engine(deployment.database.url, Purpose.WRITE)
        with engine.connect() as connection:
            cursor = connection.connection.cursor()
            # If the filled data is lost, fill again.
            cursor.execute("PRAGMA synchronous=OFF")
            cursor.execute("PRAGMA cache_size=-1000000")
            cursor.close()
            begun = time.time_ns()
            past = int(over.total_seconds() * 1e9)
            for start in range(0, number, _RUN):
                end = min(start + _RUN, number)
                with connection.begin():
                    allow_deferred(connection)
                    step = past // number or _STEP_NS
                    _write(connection, first, begun - past, step, range(start, end))
                say(f"{end:,} of {number:,} stored in {(time.time_ns() - begun) / 1e9:.0f} s")
            deployment.log.sequencer.note_accepted()
        engine.dispose()


async def _first(deployment: Deployment) -> NewAcknowledgment:
    (account,) = await deployment.database.scan(all_accounts)
    who = vendor(account.id)
    notice = await deployment.notices.registry.in_force(NOTICE_ID, Mode.TEST)
    submission = initials(
        len(notice.content.bullets), "checkout_" + "0" * 22, "cbid_test_" + "0" * 26
    )
    new = await begin(deployment.acknowledgments, who, notice, submission, REAL_TIME)
    path = f"/v1/notices/{NOTICE_ID}/acknowledge"
    new.entry = deployment.access.idempotency.keyed(who, "POST", path, "key", b"{}")
    return make([new])[0]


def _write(
    connection: Connection, first: NewAcknowledgment, begun: int, step: int, places: range
) -> None:
    last = ""
    for start in places[::_TOGETHER]:
        own = range(start, min(start + _TOGETHER, places.stop))
        copies = [_copy(first, begun + place * step) for place in own]
        defer(connection, copies)
        run_deferred(connection)
        last = copies[-1].id
    if len(places) == _RUN:
        do_step(connection, new_run(places.start // RUN_ROWS, last))
        run_deferred(connection)


def _copy(first: NewAcknowledgment, time_ns: int) -> NewAcknowledgment:
    assert first.slot is not None
    drawn = BytesIO(token_bytes(8 + SHRED_KEY_BYTES + 2 * INDEX_BYTES + len(first.slot)))
    id_ = timed_id(ACKNOWLEDGMENT, time_ns, drawn.read(8))
    body = first.body.replace(first.id.encode(), id_.encode())
    return replace(
        first,
        id=id_,
        body=body,
        digest=sha256(body).digest(),
        shred_key=drawn.read(SHRED_KEY_BYTES),
        session_index=drawn.read(INDEX_BYTES),
        cbid_index=drawn.read(INDEX_BYTES),
        slot=drawn.read(),
    )
