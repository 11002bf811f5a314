"""Deployments whose commands run in no time, with and without a running server."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.engines import ENGINES, engine_settings
from tests.support.service import Deployment, Server, free_port, running_server


@dataclass(frozen=True, kw_only=True)
class Bench(Deployment):
    """A deployment on which commands are tried out."""

    def refused(self, *arguments: str, typed: str = "") -> str:
        """Run a command that must fail with status 1; returns its message."""
        done = self.run(*arguments, check=False, typed=typed)
        assert done.returncode == 1, done
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        return done.stderr

    def but(self, **settings: str) -> "Bench":
        """The same deployment with other settings."""
        return Bench(data_dir=self.data_dir, settings=dict(self.settings) | settings)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Give a new deployment on SQLite, not initialised."""
    return Bench(data_dir=tmp_path / "data")


@pytest.fixture(scope="session")
def initialised_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a data directory after `init`, to be copied."""
    made = Bench(data_dir=tmp_path_factory.mktemp("initialised") / "data")
    made.run("init")
    return made.data_dir


@pytest.fixture
def initialised(bench: Bench, initialised_once: Path) -> Bench:
    """Give a new deployment on SQLite, with a port that no other server has."""
    shutil.copytree(initialised_once, bench.data_dir)
    return bench.but(PORT=str(free_port()))


@pytest.fixture(params=ENGINES)
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """Give a new deployment, not initialised, on each engine."""
    return Bench(data_dir=tmp_path / "data", settings=engine_settings(request))


@pytest.fixture(scope="package", params=ENGINES)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Bench, Server]]:
    """A deployment with a running server, on each engine; tests may add to it."""
    place = tmp_path_factory.mktemp("served") / "data"
    bench = Bench(data_dir=place, settings=engine_settings(request))
    bench.run("init")
    with running_server(bench) as server:
        yield bench, server
