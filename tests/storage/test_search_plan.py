"""A search by what a checkout gave does not walk the account's whole history."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from countersign.acknowledgments.model import AcknowledgmentQuery
from countersign.acknowledgments.sql import _find_statement
from countersign.buyers.zip_attempts_sql import _SELECT, _insert
from countersign.db import schema
from countersign.db.engine import Purpose, database_url, open_engine
from countersign.mode import Mode


@pytest.mark.parametrize("given", ["session_index", "cbid_index"])
def test_a_search_begins_at_the_blind_index(tmp_path: Path, given: str) -> None:
    """The planner has no statistics in a young database, and still no other way to go."""
    url = database_url(None, tmp_path)
    schema.upgrade(url)
    query = AcknowledgmentQuery(
        account_id="acct_1",
        mode=Mode.TEST,
        session_index=b"x" * 16 if given == "session_index" else None,
        cbid_index=b"x" * 16 if given == "cbid_index" else None,
        notice_id=None,
        accepted_after=None,
        accepted_before=None,
        older_than=None,
        limit=21,
    )
    engine = open_engine(url, Purpose.READ)
    with engine.connect() as connection:
        compiled = _find_statement(query).compile(
            engine, compile_kwargs={"render_postcompile": True}
        )
        plan = connection.execute(
            text(f"EXPLAIN QUERY PLAN {compiled.string.replace('?', ':p')}"),
            {"p": b"x"},
        ).all()
    engine.dispose()
    assert f"ix_disclosures_{given}" in str(plan)


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
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {_SELECT['sqlite']}", ("[]",)).all()
    engine.dispose()
    assert "SEARCH z USING INDEX" in str(plan)
