"""The unit that restores the newest backup on trial, and its script."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from countersign.operations.backup_note import read_note
from tests.support.service import Deployment

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
NAMES = ("countersign-restore-trial.service", "countersign-restore-trial.timer")


@pytest.mark.systemd
def test_systemd_finds_no_mistake_in_the_units_of_the_trial(tmp_path: Path) -> None:
    """Without what is installed by hand: programs, users, and the unit of alarms."""
    for name in (*NAMES, "countersign-alert@.service"):
        text = (UNITS / name).read_text()
        for place in ("/opt/countersign/deploy/systemd/",):
            text = text.replace(f"ExecStart={place}", f"ExecStart={shutil.which('true')} ")
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in NAMES)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )
    ours = [line for line in done.stderr.splitlines() if "countersign" in line]
    assert (done.returncode, ours) == (0, []), done.stderr


@pytest.mark.systemd
def test_the_trial_is_confined(tmp_path: Path) -> None:
    """It reads keys and backups, and writes to the scratch directory and to its note."""
    shutil.copy(UNITS / NAMES[0], tmp_path / NAMES[0])
    words = ["security", "--offline=yes", "--threshold=35", str(tmp_path / NAMES[0])]
    done = subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-600:] + done.stderr


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
    assert read_note(deployment.data_dir)["restored_at"] is not None
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
