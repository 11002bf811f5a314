"""Drills: a backup under load that is restored, and one of an older release."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from countersign.base.db import schema
from countersign.base.db.engine import Purpose, database_url
from countersign.operate.backup import back_up
from tests.drills.site import Site, begun, site
from tests.storage.test_filled import FILLED, FIRST, fill

pytestmark = [pytest.mark.drill, pytest.mark.timeout(300)]

KEYS = ("secret.key", "key-encryption.key")


def with_keys_of(old: Path, new: Path) -> Path:
    """A directory for a restored database: the keys, and the published heads."""
    new.mkdir(parents=True, mode=0o700)
    for name in KEYS:
        shutil.copy(old / name, new / name)
        (new / name).chmod(0o600)
    shutil.copytree(old / "heads", new / "heads")
    return new


def test_a_backup_is_made_under_load_and_restored(tmp_path: Path) -> None:
    """Data acknowledged before it began is in it, and the restored deployment continues."""
    with site(tmp_path) as first:
        with first.load() as load:
            load.until(300, 200)
            before = [order for order in load.orders if order.answers]
            first.deployment.run("backup", str(tmp_path / "backup"))
            load.until(100, 200)
        first.judge()
        first.stop()
        place = with_keys_of(first.data_dir, tmp_path / "second" / "data")
        second = Site(folder=place.parent, data_dir=place, settings={})
        second.api_key, second.log_name = first.api_key, "test/2"
        second.deployment.run("restore", str(tmp_path / "backup"), "--yes")
        severity, words = second.doctor()["logs"]
        assert severity == "broken"
        assert "log recover" in words
        for mode in ("live", "test"):
            second.deployment.run("log", "recover", "--mode", mode, "--new-epoch", "--yes")
        with begun(second):
            with second.load() as load:
                load.until(100, 200)
                load.until_ready(200, "ok")
            # The vendors' data from the time of the backup, and their later responses.
            load.orders += before
            assert {order.ack_id for order in before} <= second.kept_ids()
            second.judge(more_is_there=True)
            assert second.deployment.read("log", "check")["findings"] == []


def test_a_backup_of_an_older_release_is_restored_into_this_one(tmp_path: Path) -> None:
    """It is migrated, and its data can be read and proved."""
    old = tmp_path / "old"
    shutil.copytree(FILLED, old)
    url = database_url(None, old)
    with schema.connected(url, Purpose.WRITE) as connection, connection.begin():
        schema.migrate(connection, FIRST)
        fill(connection)
    back_up(url, tmp_path / "backup", None, 0, lambda _done, _total, _unit: None)
    place = with_keys_of(old, tmp_path / "new" / "data")
    new = Site(folder=place.parent, data_dir=place, settings={})
    new.deployment.run("restore", str(tmp_path / "backup"), "--yes")
    new.deployment.run("init")
    for mode in ("live", "test"):
        new.deployment.run(
            "log", "recover", "--mode", mode, "--published-head",
            str(place / "heads" / f"{mode}.checkpoint"), "--yes",
        )  # fmt: skip
    with begun(new):
        with new.load() as load:
            load.until(200, 200)
            load.until_ready(200, "ok")
        new.judge()
        assert new.deployment.read("log", "check")["findings"] == []
