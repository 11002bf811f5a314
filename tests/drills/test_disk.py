"""Drills: what a disk can do to a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.drills.disks import disk
from tests.drills.site import site

pytestmark = [pytest.mark.drill, pytest.mark.mounts, pytest.mark.timeout(300)]


def test_a_disk_that_can_only_be_read(tmp_path: Path) -> None:
    """Every act is refused, and what can be read is read; after a repair all goes on."""
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
