"""Remains after closing a database."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from countersign.base.db import schema
from countersign.base.db.database import Database
from countersign.base.db.engine import database_url
from countersign.base.values import from_ms
from countersign.core.access.account import Account, add_account, read_account


def test_after_a_clean_end_the_database_file_alone_holds_everything(tmp_path: Path) -> None:
    """A copy of the file made after the server has stopped has all that was answered."""
    url = database_url(None, tmp_path)
    schema.upgrade(url)
    account = Account(id="acct_1", name="Example Arms", created_at=from_ms(0))

    async def write() -> None:
        async with Database(url) as database:
            await database.write(add_account, account)
            assert await database.read(read_account, "acct_1") == account

    asyncio.run(write())
    assert not list(tmp_path.glob("*-wal"))
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(tmp_path / "countersign.db", copy)

    async def read() -> Account | None:
        async with Database(database_url(None, copy)) as database:
            return await database.read(read_account, "acct_1")

    assert asyncio.run(read()) == account
