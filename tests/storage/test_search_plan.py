"""A search by what a checkout gave does not walk the account's whole history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from countersign.acknowledgments.find import find
from countersign.acknowledgments.schemas import AcknowledgmentsQuery
from countersign.buyers.sql import _TRIED, _insert
from countersign.db import schema
from countersign.db.engine import Purpose, database_url, open_engine
from tests.storage import items


@pytest.mark.parametrize("given", ["session_index", "cbid_index"])
def test_a_search_begins_at_the_blind_index(tmp_path: Path, given: str) -> None:
    """The planner has no statistics in a young database, and still no other way to go."""
    url = database_url(None, tmp_path)
    schema.upgrade(url)
    index = {given: b"x" * 16}
    asked: list[tuple[str, Any]] = []
    engine = open_engine(url, Purpose.READ)
    event.listen(engine, "before_cursor_execute", lambda *args: asked.append((args[2], args[3])))
    with engine.connect() as connection:
        find(connection, items.principal(items.account()), AcknowledgmentsQuery(), **index)
        [(statement, values)] = asked
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    engine.dispose()
    text = str([row[-1] for row in plan])
    assert "SEARCH disclosures USING INDEX sqlite_autoindex_disclosures_1 (record_id=?)" in text
    assert "SEARCH blind_runs USING PRIMARY KEY (run=? AND key=?)" in text


def test_zip_tries_are_looked_up_by_subject_whatever_the_planner_has_learned(
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
