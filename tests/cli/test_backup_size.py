"""A backup needs little memory, looks at the room first, and says how far it has come."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import URL

from countersign.base.cli import SaidProgress
from countersign.base.errors import BackupFailed
from countersign.operate.backup import back_up, restore
from tests.cli.conftest import Bench
from tests.cli.evidence import make_evidence

MB = 1 << 20


def url_of(bench: Bench) -> URL:
    """The database of a deployment."""
    return URL.create("sqlite", database=str(bench.data_dir / "countersign.db"))


def no_report(_done: int, _total: int, _unit: str) -> None:
    """Nothing is said."""


def test_a_backup_without_room_is_refused_before_anything_is_written(
    initialised: Bench, tmp_path: Path
) -> None:
    """It says how much there is and how much it takes; a restore does the same."""
    target = tmp_path / "backup"
    initialised.run("backup", str(target))
    for database in (initialised.data_dir / "countersign.db", target / "countersign.db"):
        claim(database, shutil.disk_usage(tmp_path).free)
    wanted = r"has [0-9]+ MB free, and [0-9]+ MB are needed.*larger disk"
    with pytest.raises(BackupFailed, match=wanted):
        back_up(url_of(initialised), tmp_path / "second", None, 1, no_report)
    assert [*(tmp_path / "second").iterdir()] == []
    elsewhere = URL.create("sqlite", database=str(tmp_path / "other" / "countersign.db"))
    with pytest.raises(BackupFailed, match=wanted):
        restore(target, elsewhere, None, no_report)
    assert [*(tmp_path / "other").iterdir()] == []


def claim(database: Path, size: int) -> None:
    """Make a database that large, without taking the room: a file with a hole."""
    pages = size // 4096
    with database.open("r+b") as file:
        file.truncate(pages * 4096)
        file.seek(28)
        file.write(pages.to_bytes(4, "big"))


def test_a_backup_is_a_snapshot_although_servers_write(initialised: Bench, tmp_path: Path) -> None:
    """Concurrent writes are not in it, and do not restart it; progress is reported."""
    database = str(initialised.data_dir / "countersign.db")
    said: list[tuple[int, int]] = []
    with closing(sqlite3.connect(database)) as writer:
        for number in range(40):
            writer.execute("INSERT INTO deployment VALUES (?, zeroblob(?))", (f"x{number}", MB))
        writer.commit()

        def report(done: int, total: int, _unit: str) -> None:
            said.append((done, total))
            writer.execute("UPDATE deployment SET value = x'01' WHERE name = ?", (f"x{len(said)}",))
            writer.execute("INSERT INTO deployment VALUES (?, x'02')", (f"y{len(said)}",))
            writer.commit()

        back_up(url_of(initialised), tmp_path / "backup", None, 1, report)
    assert len(said) > 2
    assert said == sorted(said)
    assert said[-1][0] == said[-1][1] >= 40
    with closing(sqlite3.connect(tmp_path / "backup" / "countersign.db")) as copy:
        sizes = copy.execute("SELECT length(value) FROM deployment WHERE name GLOB 'x*'").fetchall()
        assert sizes == [(MB,)] * 40
        assert copy.execute("SELECT 1 FROM deployment WHERE name GLOB 'y*'").fetchall() == []
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_no_byte_of_a_shred_key_is_left_in_a_backup(initialised: Bench, tmp_path: Path) -> None:
    """Not in free pages either: the copy had them once."""
    make_evidence(initialised, initialised.account("vendor"), tmp_path)
    back_up(url_of(initialised), tmp_path / "backup", None, 1, no_report)
    with closing(sqlite3.connect(tmp_path / "backup" / "shred-keys.db")) as connection:
        keys = [bytes(key) for (key,) in connection.execute("SELECT key FROM shred_keys")]
    assert keys
    copy = (tmp_path / "backup" / "countersign.db").read_bytes()
    assert [key for key in keys if key in copy] == []


def test_long_work_reports_its_progress(capsys: pytest.CaptureFixture[str]) -> None:
    """Once in a period, on standard error; short work says nothing."""
    now = iter([0.0, 1.0, 5.0, 5.0, 6.0, 10.0, 10.0])
    progress = SaidProgress("Copying", 5.0, lambda: next(now))
    for done in (10, 1000, 1500, 2000):
        progress(done, 2000, "MB")
    assert capsys.readouterr() == (
        "",
        "Copying: 50 % (1,000 of 2,000 MB)\nCopying: 100 % (2,000 of 2,000 MB)\n",
    )
