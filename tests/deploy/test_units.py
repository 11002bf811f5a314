"""The files of `deploy/systemd`: judged by systemd, and started as far as that goes without it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import httpx2
import pytest

from countersign.base.config import SETTINGS, load_settings
from countersign.server.manager import ALIVE, READY, STOPPING
from tests.deploy.conftest import Installed
from tests.http.calls import acknowledge
from tests.support.manager import Manager, hold_socket

UNITS: Final = Path(__file__).parents[2] / "deploy" / "systemd"
PROGRAM: Final = "/opt/countersign/.venv/bin/countersign"
NAMES: Final = sorted(path.name for path in UNITS.iterdir() if path.suffix != ".sh")
SERVICES: Final = [name for name in NAMES if name.endswith(".service")]
EXPOSURE_MAX: Final = 35
"""Tenths, as `systemd-analyze security` counts: 0 is nothing that could be confined, 100 all."""


def lines_of(name: str, key: str) -> list[str]:
    """The values of a key, in order."""
    text = (UNITS / name).read_text(encoding="utf-8").replace("\\\n", " ")
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}=")]


@pytest.mark.systemd
def test_systemd_finds_no_mistake_in_the_units(tmp_path: Path) -> None:
    """Except for missing programs and users, which are installed by hand."""
    true = shutil.which("true")
    for name in NAMES:
        text = (UNITS / name).read_text()
        for place in (PROGRAM, "/opt/countersign/deploy/systemd/"):
            text = text.replace(f"ExecStart={place}", f"ExecStart={true} ")
            text = text.replace(f"ExecStartPre={place}", f"ExecStartPre={true} ")
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
@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_is_confined(name: str, tmp_path: Path) -> None:
    """It can reach the parts of the machine that it needs, and few others."""
    unit = shutil.copy(UNITS / name, tmp_path)
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", f"--threshold={EXPOSURE_MAX}", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-600:] + done.stderr


def test_the_units_name_settings_and_units_that_exist() -> None:
    """A typing error there would be found at three in the night."""
    for name in NAMES:
        for setting in lines_of(name, "Environment"):
            variable = setting.partition("=")[0].removeprefix("COUNTERSIGN_").lower()
            assert variable in {"config", "path", *SETTINGS}, setting
        for key in ("Requires", "OnFailure"):
            for other in " ".join(lines_of(name, key)).split():
                assert other.replace("@%n", "@") in NAMES, other


def test_the_file_of_the_shared_heads_is_read_by_all_who_look_at_them() -> None:
    """Server, doctor and daily work; and its setting is valid."""
    for name in ("countersign.service", "countersign-doctor.service", "countersign-daily.service"):
        assert lines_of(name, "EnvironmentFile") == ["-/etc/countersign/heads.env"]
    lines = (UNITS.parent / "heads.env").read_text(encoding="utf-8").splitlines()
    set_by_it = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    environment = {"COUNTERSIGN_DATABASE_URL": "postgresql://db/countersign"} | set_by_it
    assert load_settings(environment).log_head_dir == set_by_it["COUNTERSIGN_LOG_HEAD_DIR"]
    assert all(set_by_it.values())


def test_start_scripts_never_create_a_deployment() -> None:
    """Units, containers and scripts run `init --upgrade`: a disk that is away is no new machine."""
    root = UNITS.parents[1]
    files = [root / "Containerfile", *(p for p in UNITS.parent.rglob("*") if p.is_file())]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    run = [line for line in lines if "countersign init" in line and not line.startswith("#")]
    assert len(run) == 4
    assert all("countersign init --upgrade" in line for line in run), run


@pytest.mark.crash
def test_the_service_starts_with_its_socket(installed: Installed, tmp_path: Path) -> None:
    """With the socket, the watchdog, and no memory that is both written and executed."""
    (address,) = lines_of("countersign.socket", "ListenStream")
    assert address == f"127.0.0.1:{SETTINGS['port'].default}"
    (first,), (serve,) = (
        lines_of("countersign.service", key) for key in ("ExecStartPre", "ExecStart")
    )
    (seconds,) = lines_of("countersign.service", "WatchdogSec")
    environment = installed.environment | dict(
        setting.split("=", 1) for setting in lines_of("countersign.service", "Environment")[1:]
    )
    with Manager(tmp_path, hold_socket(installed.port)) as manager:
        for status in (1, 0):  # before it is founded by hand, and after
            init = manager.start(environment, installed.command(first))
            assert init.wait(60) == status, manager.log.read_text()
            installed.run("init")
        key = installed.key()
        process = manager.start(environment, installed.command(serve), float(seconds))
        manager.await_notice(READY, process)
        url, headers = f"http://127.0.0.1:{installed.port}", {"Authorization": f"Bearer {key}"}
        with httpx2.Client(base_url=url, headers=headers, timeout=60) as client:
            assert client.get("/readyz").status_code == 200
            made = acknowledge(client)
            address = f"/v1/acknowledgments/{made.json()['ack_id']}"
            assert client.get(f"{address}/proof", headers={"Prefer": "wait=10"}).status_code == 200
            assert client.get(f"{address}/certificate").content.startswith(b"%PDF")
        manager.await_notice(ALIVE, process)
        process.terminate()
        manager.await_notice(STOPPING, process)
        process.terminate()
        assert process.wait(20) == 0


@pytest.mark.crash
@pytest.mark.parametrize("name", ["countersign-daily.service", "countersign-doctor.service"])
def test_the_lines_of_a_timers_unit_run(installed: Installed, tmp_path: Path, name: str) -> None:
    """Without a server, and a second time on the same day."""
    installed.run("init")
    fine = {0, *map(int, " ".join(lines_of(name, "SuccessExitStatus")).split())}
    with Manager(tmp_path) as manager:
        for _ in range(2):
            for line in lines_of(name, "ExecStart"):
                process = manager.start(installed.environment, installed.command(line))
                status = process.wait(60)
                # No server runs here, which the doctor has to say.
                expected = {2} if line.endswith(" doctor") else fine
                assert status in expected, manager.log.read_text()
    if "daily" in name:
        assert len(list((installed.place / "backup").glob("*/countersign.db"))) == 2
