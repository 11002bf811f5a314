"""The units that the guide prints for the daily work."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "operate.md"


def test_a_second_backup_on_one_day_has_a_directory_of_its_own() -> None:
    """`backup` refuses a directory that is not empty: a second run would make the unit fail."""
    (form,) = re.findall(
        r'backup \\\n +"/srv/countersign-backup/\$\(date \+(\S+)\)"', GUIDE.read_text()
    )
    form = form.replace("%%", "%")  # as systemd reads it
    names = {datetime(2026, 11, 23, 3, 0, s).strftime(form) for s in (0, 1)}  # noqa: DTZ001 - local
    assert len(names) == 2
