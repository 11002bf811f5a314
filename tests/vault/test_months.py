"""Data keys by month: data encrypted in a month ends with its key."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

from countersign.base.config import load_settings
from countersign.operate.bootstrap import open_deployment
from tests.http.backstage import another_deployment

LONGEST_MONTH_NS: Final = 31 * 86_400 * 1_000_000_000


def test_each_month_of_an_account_has_its_own_key(tmp_path: Path) -> None:
    """Also where the key of the month before is in memory."""
    made = another_deployment(tmp_path / "data")

    async def ask() -> list[bytes]:
        async with open_deployment(load_settings(made.environment)) as opened:
            now = time.time_ns()
            months = (now, now + LONGEST_MONTH_NS, now)
            return [(await opened.vault.vault.data_key("acct_new", at)).id for at in months]

    this, following, again = asyncio.run(ask())
    assert this == again != following
