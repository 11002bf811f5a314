"""A search by a checkout's values does not scan the account's whole history."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert

from countersign.base.db import schema
from countersign.base.db.engine import Purpose, database_url, open_engine
from countersign.base.db.tables import Field, disclosures, legal_holds
from countersign.base.values import Mode
from countersign.core.access.account import add_account
from countersign.core.access.reach import DEPLOYMENT, AccountReach, Reach
from countersign.core.acknowledgments.find import find
from countersign.core.acknowledgments.schemas import AcknowledgmentsQuery
from countersign.core.buyers.zips import _TRIED, _insert
from countersign.core.orders import sql as orders
from countersign.core.orders.model import key_of_member
from countersign.core.privacy.erase_sql import find_naming
from countersign.core.privacy.held import find_held
from countersign.core.privacy.model import Hold
from tests.storage import items
from tests.storage.test_holds import SECRET


@pytest.mark.parametrize("given", ["session_id", "cbid", "order_reference"])
def test_a_search_begins_at_the_blind_index(tmp_path: Path, given: Field) -> None:
    """In a young database the planner has no statistics, and still no other plan."""
    url = database_url(None, tmp_path)
    schema.upgrade(url)
    index = {given: b"x" * 16}
    asked: list[tuple[str, Any]] = []
    engine = open_engine(url, Purpose.READ)
    event.listen(engine, "before_cursor_execute", lambda *args: asked.append((args[2], args[3])))
    with engine.connect() as connection:
        find(connection, items.principal(items.account()), AcknowledgmentsQuery(), index)
        [(statement, values)] = asked
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    engine.dispose()
    text = str([row[-1] for row in plan])
    assert "SEARCH disclosures USING INDEX sqlite_autoindex_disclosures_1 (record_id=?)" in text
    assert "SEARCH blind_runs USING PRIMARY KEY (run=? AND key=?)" in text


def test_data_to_erase_and_held_data_are_found_without_a_scan(tmp_path: Path) -> None:
    """For a buyer named in an acknowledgment, with a hold on an identity check."""
    url = database_url(None, tmp_path)
    schema.upgrade(url)
    account, check, ack = items.account(), items.identifier("ver"), items.identifier("ack")
    asked: list[tuple[str, Any]] = []
    engine = open_engine(url, Purpose.WRITE)
    with engine.begin() as connection:
        add_account(connection, account)
        hold = Hold(
            id=items.identifier("hold"),
            subject=check,
            reason="case 7",
            placed_at=items.NOON,
            released_at=None,
        )
        connection.execute(insert(legal_holds), asdict(hold))
        for record_id in (ack, check):
            row = {"record_id": record_id, "account_id": account.id, "mode": "live"}
            connection.execute(insert(disclosures), row | {"cbid_index": b"x", "payload": b"y"})
        listen = "before_cursor_execute", lambda *args: asked.append((args[2], args[3]))
        event.listen(engine, *listen)
        find_naming(connection, SECRET, ["cbid_1"], DEPLOYMENT)
        find_held(connection, SECRET, [ack, check], DEPLOYMENT)
        event.remove(engine, *listen)
        plans = [connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {s}", v).all() for s, v in asked]
    engine.dispose()
    steps = [row[-1] for plan in plans for row in plan]
    assert "SEARCH blind_runs USING PRIMARY KEY (run=? AND key=?)" in steps
    assert not [step for step in steps if step.startswith(("SCAN disclosures", "SCAN records"))]


@pytest.mark.parametrize("reach", [DEPLOYMENT, AccountReach("acct_1", Mode.TEST)])
@pytest.mark.parametrize("analyzed", [False, True])
def test_an_order_is_found_without_a_scan_of_the_accounts_acts(
    tmp_path: Path, reach: Reach, analyzed: bool
) -> None:
    """By any member, its key or the reference that it is bound to, and forgotten likewise."""
    url = database_url(None, tmp_path)
    schema.upgrade(url)
    asked: list[tuple[str, Any]] = []
    engine = open_engine(url, Purpose.WRITE)
    ack, link, key = items.identifier("ack"), items.identifier("chk"), b"k" * 16
    with engine.begin() as connection:
        if analyzed:
            rows = [("acct_1", "test", n, n.to_bytes(16), f"clr_{n}") for n in range(2_000)]
            connection.exec_driver_sql(
                "INSERT INTO order_acts (account_id, mode, at, key, member_id, indexed)"
                " VALUES (?, ?, ?, ?, ?, TRUE)",
                rows,
            )
            connection.exec_driver_sql("ANALYZE")
        listen = "before_cursor_execute", lambda *args: asked.append((args[2], args[3]))
        event.listen(engine, *listen)
        orders.find_orders(connection, reach, [key, key_of_member(ack)])
        orders.order_keys(connection, reach, [ack, link])
        orders.bound_key(connection, reach, key, b"r" * 16)
        orders.delete_acts(connection, [ack, link])
        event.remove(engine, *listen)
        plans = [connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {s}", v).all() for s, v in asked]
    engine.dispose()
    steps = [row[-1] for plan in plans for row in plan]
    found = [step for step in steps if "order_acts" in step]
    # To the row of an acknowledgment, by its record; all others by the indexes of this table.
    by_place = "PRIMARY KEY (account_id=? AND mode=? AND at=?"
    assert [step for step in found if "USING INDEX" not in step and by_place not in step] == []
    assert len(found) > 3
    assert not [step for step in steps if step.startswith("SCAN records")]


def test_zip_tries_are_looked_up_by_subject_for_any_plan(
    tmp_path: Path,
) -> None:
    """After ANALYZE of many rows of one account, as an operator may have done."""
    url = database_url(None, tmp_path)
    schema.upgrade(url)
    engine = open_engine(url, Purpose.WRITE)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO accounts (id, name, created_at) VALUES ('acct_1', 'shop', 0)"
        )
        rows = [("acct_1", "test", n.to_bytes(16), n.to_bytes(16), n) for n in range(2_000)]
        _insert(connection, rows)
        connection.exec_driver_sql("ANALYZE")
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {_TRIED['sqlite']}", ("[]",)).all()
    engine.dispose()
    assert "SEARCH z USING INDEX" in str(plan)
