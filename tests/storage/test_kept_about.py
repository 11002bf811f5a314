"""A kept response goes with the acknowledgment or the other object that it is about."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event

from countersign.base.db.database import Database
from countersign.core.access.account import add_account
from countersign.core.access.idempotency import forget_answers, keep_answers, kept_entries
from countersign.core.access.reach import DEPLOYMENT
from tests.storage import items
from tests.storage.test_holds import SECRET
from tests.support.databases import Run, on_sqlite


@pytest.mark.both_engines
def test_a_response_goes_with_what_it_is_about(database: Database, run: Run) -> None:
    """That of an acknowledgment is found by the time at which both were made."""
    owner = items.account()
    run(database.write(add_account, owner))
    own, other = items.identifier("ack"), items.identifier("ack")
    waited = items.idempotency_entry(owner, at=items.NOON + timedelta(seconds=20))
    entries = [
        waited._replace(about=own),
        items.idempotency_entry(owner)._replace(about=other),
        items.idempotency_entry(owner)._replace(about="cbid_1"),
        items.idempotency_entry(owner)._replace(about="cbid_2"),
    ]
    run(database.write(keep_answers, entries))
    run(database.write(forget_answers, SECRET, [own, "cbid_1"], DEPLOYMENT))
    left = run(database.read(kept_entries, [entry.slot for entry in entries]))
    assert [one and one.slot for one in left] == [None, entries[1].slot, None, entries[3].slot]


@on_sqlite
def test_it_is_found_without_a_scan(database: Database, run: Run) -> None:
    asked: list[tuple[str, Any]] = []

    def steps(connection: Connection) -> list[str]:
        listen = connection, "before_cursor_execute", lambda *args: asked.append(args[2:4])
        event.listen(*listen)
        forget_answers(connection, SECRET, [items.identifier("ack"), "cbid_1"], DEPLOYMENT)
        event.remove(*listen)
        plans = [connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {s}", v).all() for s, v in asked]
        return [row[-1] for plan in plans for row in plan]

    in_time = "ix_idempotency_keys_expires_at_slot"
    assert run(database.write(steps)) == [
        "SEARCH idempotency_keys USING COVERING INDEX ix_idempotency_keys_about (about=?)",
        f"SEARCH idempotency_keys USING INDEX {in_time} (expires_at>? AND expires_at<?)",
        "SEARCH idempotency_keys USING INDEX ix_idempotency_keys_about (about=?)",
    ]
