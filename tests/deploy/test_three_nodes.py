"""The settings that `deploy/ha/prepare.sh` makes for three nodes, as the service reads them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from countersign.base.config import load_settings

pytestmark = pytest.mark.openssl
PREPARE = Path(__file__).parents[2] / "deploy" / "ha" / "prepare.sh"
URL = "https://countersign.example.com"


def prepare(folder: Path, url: str) -> int:
    """Make the files; gives the exit status."""
    nodes = [f"db{number}=10.0.0.{number}" for number in (1, 2, 3)]
    environment = dict(os.environ) | {"PUBLIC_URL": url}
    return subprocess.run([PREPARE, folder, *nodes], env=environment, check=False).returncode


@pytest.mark.parametrize("role", ["owner", "app"])
def test_tables_and_servers_have_one_public_name_and_one_place_for_keys(
    tmp_path: Path, role: str
) -> None:
    """The name of the live log is for good, and `init` is run with the owner's file."""
    assert prepare(tmp_path / "nodes", URL) == 0
    file = tmp_path / f"nodes/db2/etc/countersign/{role}.toml"
    settings = load_settings({"COUNTERSIGN_CONFIG": str(file)})
    assert (settings.public_url, settings.data_dir) == (URL, Path("/var/lib/countersign"))
    assert f"//countersign_{role}:" in (settings.database_url or "")


@pytest.mark.parametrize("url", ["", "countersign.example.com", 'https://x"\ny', "https://a b"])
def test_no_deployment_is_made_without_a_public_name(tmp_path: Path, url: str) -> None:
    """Else the logs would be named 127.0.0.1."""
    assert prepare(tmp_path / "nodes", url) == 2
    assert not (tmp_path / "nodes").exists()
