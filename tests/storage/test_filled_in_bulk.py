"""Bulk-filled data measures the same as data stored by as many calls: see `bench.fill`."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, select

from bench.plan import NOTICE_ID
from countersign.base.config import load_settings
from countersign.base.db.tables import metadata
from countersign.operate.bootstrap import open_deployment
from countersign.server.app import App

if TYPE_CHECKING:
    from bench.servers import Installation

pytestmark = [pytest.mark.later, pytest.mark.one_engine]

NUMBER = 3
TOGETHER = {"events", "checkpoints"}
"""Several calls at once share a row of these."""


async def acknowledge(installed: Installation, keys: str) -> Counter[str]:
    """Send a request for each key, one after the other; the rows of each table then."""
    from bench.calls import Server  # noqa: PLC0415 - it brings the usual stack along

    async with open_deployment(load_settings(installed.environment)) as deployment:
        server, path = Server(App(deployment), installed.key), f"/v1/notices/{NOTICE_ID}"
        lines = len((await server.ask("GET", path))["bullets"])
        for key in keys:
            sent = {"initials_per_line": ["JD"] * lines, "session_id": key, "cbid": f"buyer_{key}"}
            await server.ask("POST", f"{path}/acknowledge", sent, key)
        return await deployment.database.scan(
            lambda connection: Counter(
                {
                    name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                    for name, table in metadata.tables.items()
                }
            )
        )


def test_filling_adds_the_rows_that_acknowledging_adds(tmp_path: Path) -> None:
    from bench.fill import fill  # noqa: PLC0415 - as above
    from bench.servers import install  # noqa: PLC0415

    installed = install(tmp_path, None, (str(Path(sys.executable).parent / "countersign"),))
    # The first one also makes its prerequisites.
    before = asyncio.run(acknowledge(installed, "a"))
    called = asyncio.run(acknowledge(installed, "bcd"))
    asyncio.run(fill(installed, NUMBER))
    filled = asyncio.run(acknowledge(installed, ""))
    by_calls, by_filling = called - before, filled - called
    assert by_calls["records"] == NUMBER
    assert by_filling.keys() == by_calls.keys()
    assert {name for name in by_calls if by_calls[name] != by_filling[name]} <= TOGETHER
