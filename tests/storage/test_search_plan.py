"""A search by what a checkout gave does not walk the account's whole history."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from countersign.domain.acknowledgment import AcknowledgmentQuery
from countersign.domain.mode import Mode
from countersign.storage import schema
from countersign.storage.acknowledgments import _find_statement
from countersign.storage.engine import Purpose, database_url, open_engine


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
