"""Deployments of a test's own: for what changes the log for good."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.http.backstage import another_deployment
from tests.sealing.authority import make_authority
from tests.support.engines import ENGINES, engine_server
from tests.support.service import Deployment


@pytest.fixture(params=ENGINES)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Deployment:
    """Give an initialised deployment of this test alone, on each engine."""
    return another_deployment(tmp_path / "data", engine_server(request))


@pytest.fixture
def embedded(tmp_path: Path) -> Deployment:
    """Give an initialised deployment on the embedded database."""
    return another_deployment(tmp_path / "data")


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
