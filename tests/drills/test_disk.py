"""Drills: disk faults of a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.serving import wait_until
from tests.drills.disks import disk
from tests.drills.site import site

pytestmark = [pytest.mark.drill, pytest.mark.mounts, pytest.mark.timeout(300)]


def test_a_disk_that_can_only_be_read(tmp_path: Path) -> None:
    """Every act is refused, and reads work; after a repair all continues."""
    with disk(tmp_path, 200) as own, site(tmp_path, own.place / "data") as broken:
        with broken.load() as load:
            load.until(200, 200)
            own.break_off()
            load.until_all(50, 503)
            load.until_ready(503)
            with broken.client() as client:
                assert client.get("/v1/acknowledgments").status_code == 200
            severity, words = broken.doctor()["data_directory"]
            assert severity == "broken"
            assert "Mount the file system for writing" in words
        # The operator's part.
        broken.stop()
        own.unmount()
        own.mount()
        broken.start()
        with broken.load() as load:
            load.until(100, 200)
            load.until_ready(200, "ok")
        broken.judge()
        broken.stop()


def test_a_disk_is_full(tmp_path: Path) -> None:
    """Writes are refused until there is space; accepted ones are sealed, and the server can end."""
    with disk(tmp_path, 160) as own, site(tmp_path, own.place / "data") as broken:
        with broken.load() as load:
            load.until(200, 200)
            assert broken.doctor()["disk"][0] == "fine"
            for _ in range(2):
                filler = own.fill()
                load.until_all(50, 503)
                load.until_ready(503)
                wait_until(lambda: own.free > 2**20, "the reserve is given up")
                severity, words = broken.doctor()["disk"]
                assert severity == "broken"
                assert "Free space" in words
                with broken.client() as client:
                    refused = client.post(load.orders[0].path, json={"initials_per_line": []})
                    assert refused.status_code in {422, 503}
                    assert client.get("/v1/acknowledgments").status_code == 200
                load.until(50, 503)
                assert own.free > 2**20, "nothing but the last words uses it"
                filler.unlink()
                load.until_ready(200, "ok")
                load.until(100, 200)
            own.fill()
            load.until_all(50, 503)
            assert broken.events("disk_full")
            # It ends in order with a full disk, and starts.
            assert broken.stop() == 0
            (own.place / "of-another-program").unlink()
            broken.start()
            load.until(100, 200)
        broken.judge()
        broken.stop()
