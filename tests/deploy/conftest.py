"""An operator's installation by the guide, in another place."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import service
from tests.support.service import free_port

PLACES = {
    "/opt/countersign/.venv/bin/countersign": f"{sys.executable} -m countersign",
    "/srv/countersign-backup": "backup",
}


@dataclass(frozen=True, kw_only=True)
class Installed:
    """The settings file of a deployment, and how the lines of units become commands."""

    place: Path
    port: int

    @property
    def environment(self) -> dict[str, str]:
        """The units' environment: the location of the settings."""
        bare = service.Deployment(data_dir=self.place).environment
        del bare["COUNTERSIGN_DATA_DIR"]
        return bare | {"COUNTERSIGN_CONFIG": str(self.place / "countersign.toml")}

    def command(self, line: str) -> list[str]:
        """The command of an `ExecStart=`, as systemd reads it, in this place."""
        for there, here in PLACES.items():
            line = line.replace(there, here if " " in here else str(self.place / here))
        return shlex.split(line.replace("%%", "%"))

    def run(self, *arguments: str) -> str:
        """Run a command as the operator does; returns its output."""
        command = [sys.executable, "-m", "countersign", *arguments]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def key(self) -> str:
        """Make an account and a key."""
        account = self.run("accounts", "create", "vendor")
        return self.run("keys", "create", "--account", account, "--mode", "test")


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """Give the settings of the guide."""
    port, place = free_port(), tmp_path
    (place / "backup").mkdir(mode=0o700)
    (place / "countersign.toml").write_text(
        f'data_dir = "{place / "data"}"\npublic_url = "https://countersign.example.com"\n'
        f"port = {port}\n"
    )
    return Installed(place=place, port=port)
