"""The unit that restores the newest backup on trial, and its script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from countersign.operate.backup import read_note
from tests.support.service import Deployment

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"


@pytest.mark.later  # it runs a script whose commands have tests of their own
def test_the_newest_backup_is_restored_on_trial(tmp_path: Path) -> None:
    """It says so, notes it for the doctor, and leaves nothing; a damaged backup is a failure."""
    deployment = Deployment(data_dir=tmp_path / "data")
    deployment.run("init")
    backups, scratch = tmp_path / "backups", tmp_path / "scratch"
    scratch.mkdir()
    empty = trial(deployment, backups, scratch)
    assert (empty.returncode, "no backup" in empty.stderr) == (1, True)
    for day in ("2026-11-01T030000", "2026-11-02T030000"):
        shred_keys = str(backups / "shred-keys.db")
        deployment.run("backup", str(backups / day), "--shred-keys", shred_keys)
    done = trial(deployment, backups, scratch)
    assert done.returncode == 0, done.stderr
    assert "2026-11-02T030000/ was restored and checked" in done.stdout
    assert read_note(deployment.data_dir).restored_at is not None
    assert not (backups / "2026-11-01T030000" / "restored.json").exists()
    with (backups / "2026-11-02T030000" / "countersign.db").open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(64 << 10))
    assert trial(deployment, backups, scratch).returncode != 0
    assert [*scratch.iterdir()] == []


def trial(deployment: Deployment, backups: Path, scratch: Path) -> subprocess.CompletedProcess[str]:
    """Run the script as the unit does."""
    environment = deployment.environment
    del environment["COUNTERSIGN_DATA_DIR"]
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    places = (backups, scratch, deployment.data_dir)
    return subprocess.run(
        [str(UNITS / "restore-trial.sh"), *map(str, places)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
