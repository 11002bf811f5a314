"""The cost of a day's figures as more is stored: ``python -m bench.today``.

An embedded database with so many acknowledgments, spread over the two weeks that the console
counts, each with a decision and a completed checkout session; every tenth decision is a refusal.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from sqlalchemy import Connection, event

from bench.fill import fill
from bench.options import LASTING
from bench.servers import install
from countersign.base.db.engine import Purpose, database_url, open_engine
from countersign.base.values import Mode
from countersign.core.access.key import Principal
from countersign.staff.acts import today

_DECIDED: Final = """
INSERT INTO records SELECT replace(id, 'ack_', 'clr_'), account_id, mode, 'clearance', NULL, at,
digest, CAST('{"reasons":["acknowledgment_too_old"]}' AS BLOB)
FROM records WHERE type = 'acknowledgment'

INSERT INTO clearances SELECT id, account_id, mode, NULL,
CASE WHEN substr(id, -1) < '3' THEN NULL ELSE 'key' END, NULL, at
FROM records WHERE type = 'clearance'

INSERT INTO events (tx, account_id, mode, type, object_id, at)
SELECT 0, account_id, mode, 'checkout_session.completed', id, at FROM clearances

UPDATE accounts SET created_at = 0
"""


def main() -> None:
    """Fill, measure, and print the times."""
    parser = argparse.ArgumentParser(prog="python -m bench.today", description=__doc__)
    parser.add_argument("--stored", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--work-dir", type=Path, default=LASTING if LASTING.is_dir() else None)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="countersign-today-", dir=options.work_dir) as name:
        folder = Path(name)
        installed = install(folder, None, (str(Path(sys.executable).parent / "countersign"),))
        asyncio.run(fill(installed, options.stored, timedelta(days=13)))
        data = Path(installed.environment["COUNTERSIGN_DATA_DIR"])
        engine = open_engine(database_url(None, data), Purpose.WRITE)
        with engine.begin() as connection:
            for statement in _DECIDED.strip().split("\n\n"):
                connection.exec_driver_sql(statement)
        with engine.connect() as connection:
            sys.stdout.write(_measured(connection, options.rounds))
        engine.dispose()


def _measured(connection: Connection, rounds: int) -> str:
    account, mode, stored = connection.exec_driver_sql(
        "SELECT account_id, mode, count(*) FROM records WHERE type = 'acknowledgment' GROUP BY 1, 2"
        " ORDER BY 3 DESC LIMIT 1"
    ).one()
    who = Principal(
        key_id="", account_id=account, mode=Mode(mode), scopes=frozenset(), credential=""
    )
    asked = list[str]()
    event.listen(connection, "before_cursor_execute", lambda *given: asked.append(given[2]))
    times = [_time(lambda: today.today(connection, who, datetime.now(UTC))) for _ in range(rounds)]
    shown = today.today(connection, who, datetime.now(UTC))
    most = max(one.acknowledgments or 0 for one in shown.days)
    return (
        f"{stored:,} stored: {median(times):.1f} ms of processor time, first {times[0]:.1f} ms, "
        f"{len(asked) // (rounds + 1)} statements; most of a day {most:,}\n"
    )


def _time(act: Callable[[], object]) -> float:
    begun = time.process_time()
    act()
    return (time.process_time() - begun) * 1000


if __name__ == "__main__":
    main()
