"""Deployments of a test's own: for what changes the log for good."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sealing.authority import make_authority
from tests.support.engines import ENGINES, engine_settings
from tests.support.service import Deployment


@pytest.fixture(params=ENGINES)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Deployment:
    """Give an initialised deployment of this test alone, on each engine."""
    made = Deployment(data_dir=tmp_path / "data", settings=engine_settings(request))
    made.run("init")
    return made


@pytest.fixture
def embedded(tmp_path: Path) -> Deployment:
    """Give an initialised deployment on the embedded database."""
    made = Deployment(data_dir=tmp_path / "data")
    made.run("init")
    return made


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a time-stamp authority whose certificates end after thirty days."""
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def moved(tmp_path: Path) -> Callable[[Deployment], Deployment]:
    """Give the same deployment in another directory, with copies of its keys and no database."""

    def move(old: Deployment) -> Deployment:
        place = tmp_path / "elsewhere"
        place.mkdir(mode=0o700)
        for name in ("secret.key", "key-encryption.key"):
            (place / name).write_bytes((old.data_dir / name).read_bytes())
        return Deployment(data_dir=place, settings=old.settings)

    return move
