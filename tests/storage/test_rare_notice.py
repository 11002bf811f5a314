"""A list by a notice that hardly any acknowledgment is of does not walk the account."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import URL, Connection, event

from countersign.base.db.engine import Purpose, open_engine
from countersign.base.db.tables import accounts, records
from countersign.core.access.key import Principal
from countersign.core.acknowledgments.find import find
from countersign.core.acknowledgments.schemas import AcknowledgmentsQuery
from tests.storage import items

_INDEX = "ix_records_account_id_mode_type_notice_id_id"
_RARE = 3


def fill(connection: Connection, who: Principal) -> None:
    """Store 4,000 acknowledgments of one notice, and three of another one among the oldest."""
    account = {"id": who.account_id, "name": "shop", "created_at": items.NOON}
    connection.execute(accounts.insert(), account)
    rows = [
        {
            "id": f"ack_{n:08d}",
            "account_id": who.account_id,
            "mode": who.mode,
            "type": "acknowledgment",
            "notice_id": "rare" if n < _RARE else "common",
            "at": items.NOON,
            "digest": n.to_bytes(32),
            "body": b"{}",
        }
        for n in range(4_000)
    ]
    connection.execute(records.insert(), rows)


def explained(connection: Connection, who: Principal) -> str:
    """Return the engine's plan for the first page of the rare notice."""
    asked: list[tuple[str, Any]] = []
    event.listen(
        connection, "before_cursor_execute", lambda *args: asked.append((args[2], args[3]))
    )
    found = find(connection, who, AcknowledgmentsQuery(notice_id="rare"), {})
    assert [item.ack_id for item in found] == [f"ack_{n:08d}" for n in (2, 1, 0)]
    [(statement, values)] = asked
    explain = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
    plan = connection.exec_driver_sql(f"{explain} {statement}", values)
    return "\n".join(row[-1] for row in plan)


@pytest.mark.parametrize("analysed", [False, True])
def test_a_list_by_a_rare_notice_begins_at_its_own_records(own_url: URL, analysed: bool) -> None:
    """With statistics or without."""
    who = items.principal(items.account())
    engine = open_engine(own_url, Purpose.WRITE)
    with engine.begin() as connection:
        fill(connection, who)
        if analysed:
            connection.exec_driver_sql("ANALYZE")
        plan = explained(connection, who)
    engine.dispose()
    assert _INDEX in plan
