"""Drills: the embedded database after a stop without warning: damaged, or without its end."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from countersign.base.db.engine import sqlite_module
from tests.drills.site import Site, begun, site
from tests.drills.test_backups import with_keys_of

pytestmark = [pytest.mark.drill, pytest.mark.timeout(300)]

PAGE = 4096
WAL_HEADER = 32
FRAME = PAGE + 24


def test_pages_are_damaged(tmp_path: Path) -> None:
    """It is reported at once, writes are refused, and the remedy is a backup."""
    with site(tmp_path) as broken:
        with broken.load() as load:
            load.until(300, 200)
            before = [order for order in load.orders if order.answers]
            broken.deployment.run("backup", str(tmp_path / "backup"))
            load.until(100, 200)
        broken.judge_waits()
        # Into the database file with it, then a stop without warning.
        broken.stop()
        broken.start()
        broken.kill()
        overwrite(broken.data_dir / "countersign.db")
        with broken.load() as load:
            broken.launch()
            load.until_all(50, 0, 503)
            assert not [one for one in load.tried if one.status == 200]
            assert broken.readiness()[0] in {0, 503}
            said = broken.log.read_text()
            assert "damaged" in said
            severity, words = broken.doctor()["damage"]
            assert severity == "broken"
            assert "restore a backup" in words
        broken.end()
        # The operator's part.
        place = with_keys_of(broken.data_dir, tmp_path / "restored" / "data")
        restored = Site(folder=place.parent, data_dir=place, settings={})
        restored.api_key, restored.log_name = broken.api_key, "test/2"
        restored.deployment.run("restore", str(tmp_path / "backup"), "--yes")
        for mode in ("live", "test"):
            restored.deployment.run("log", "recover", "--mode", mode, "--new-epoch", "--yes")
        with begun(restored):
            with restored.load() as load:
                load.until(100, 200)
                load.until_ready(200, "ok")
            load.orders += before
            restored.judge(more_is_there=True)


def overwrite(file: Path) -> None:
    """Overwrite every eighth page, except the first ones, which identify the file."""
    with file.open("r+b") as database:
        for page in range(40, file.stat().st_size // PAGE, 8):
            database.seek(page * PAGE)
            database.write(os.urandom(PAGE))


def cut(data_dir: Path, copy: Path, answered: set[str]) -> None:
    """Cut frames off the write-ahead log, until the database lacks an acknowledged write."""
    database, wal = data_dir / "countersign.db", data_dir / "countersign.db-wal"
    # Data from before the log restarted at its beginning is no part of it.
    left = answered
    while answered <= left:
        os.truncate(wal, WAL_HEADER + ((wal.stat().st_size - WAL_HEADER) // FRAME - 1) * FRAME)
        shutil.copy(database, copy)
        shutil.copy(wal, copy.with_name(f"{copy.name}-wal"))
        with closing(sqlite_module().connect(copy)) as connection:
            left = {id_ for (id_,) in connection.execute("SELECT id FROM records")}
    assert answered


def test_the_end_of_the_write_ahead_log_is_lost(tmp_path: Path) -> None:
    """As by a disk that confirms writes it has not done: it is detected and reported."""
    with site(tmp_path) as broken:
        with broken.load() as load:
            load.until(300, 200)
            broken.kill()
        orders = [order for order in load.orders if order.answers]
        cut(broken.data_dir, tmp_path / "copy.db", {order.ack_id for order in orders})
        with broken.load() as load:
            broken.start()
            lost = {order.ack_id for order in orders} - broken.kept_ids()
            assert lost
            load.until_ready(200, "suspended")
            load.until(100, 200)
            (said,) = {one["reason"] for one in broken.events("sealing_suspended")}
            # In the second case the lost data was published a moment before.
            assert "although they were accepted" in said or "lost its latest entries" in said
            severity, words = broken.doctor()["logs"]
            assert severity == "broken"
            assert "`countersign log recover`" in words
            # The operator's part: the log goes on as a new one, which cites the old head.
            broken.deployment.run("log", "recover", "--mode", "test", "--new-epoch", "--yes")
            load.until_ready(200, "ok")
        broken.loads[0].orders[:] = [
            order for order in broken.loads[0].orders if order.answers and order.ack_id not in lost
        ]
        broken.judge()
