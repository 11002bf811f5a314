"""Deployments whose commands run in no time, with and without a running server."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.warm import Command, Warm
from tests.support import postgres, privacy
from tests.support.service import Deployment, Server, running_server

ENGINES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@dataclass(frozen=True, kw_only=True)
class Bench(Deployment):
    """A deployment on which commands are tried out."""

    warm: Warm

    def command(self, *arguments: str, typed: str = "", directory: Path | None = None) -> Command:
        """Give a command, to be run beside others."""
        return Command(
            arguments=arguments,
            environment=self.environment,
            typed=typed,
            directory=directory or self.data_dir.parent,
        )

    def run(
        self, *arguments: str, check: bool = True, typed: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run `countersign ARGUMENTS` to its end, with this typed in."""
        (done,) = self.warm.run(self.command(*arguments, typed=typed))
        privacy.watch_command(arguments, done.stdout + done.stderr)
        if check and done.returncode != 0:
            raise AssertionError(f"countersign {' '.join(arguments)}: {done.stderr}")
        return done

    def refused(self, *arguments: str, typed: str = "") -> str:
        """Run a command that must fail with status 1; gives what it said."""
        done = self.run(*arguments, check=False, typed=typed)
        assert done.returncode == 1, done
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        return done.stderr

    def but(self, **settings: str) -> "Bench":
        """Give the same deployment under other settings."""
        return Bench(
            data_dir=self.data_dir, settings=dict(self.settings) | settings, warm=self.warm
        )


@pytest.fixture(scope="session")
def warm() -> Warm:
    """Give what runs commands."""
    return Warm()


@pytest.fixture
def bench(warm: Warm, tmp_path: Path) -> Bench:
    """Give a new deployment on SQLite, not initialised."""
    return Bench(data_dir=tmp_path / "data", warm=warm)


@pytest.fixture(scope="session")
def initialised_once(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a data directory after `init`, to be copied."""
    made = Bench(data_dir=tmp_path_factory.mktemp("initialised") / "data", warm=warm)
    made.run("init")
    return made.data_dir


@pytest.fixture
def initialised(bench: Bench, initialised_once: Path) -> Bench:
    """Give a new deployment on SQLite."""
    shutil.copytree(initialised_once, bench.data_dir)
    return bench


@pytest.fixture(params=ENGINES)
def either(request: pytest.FixtureRequest, warm: Warm, tmp_path: Path) -> Bench:
    """Give a new deployment, not initialised, on each engine."""
    return Bench(data_dir=tmp_path / "data", settings=_engine(request), warm=warm)


@pytest.fixture(scope="session", params=ENGINES)
def served(
    request: pytest.FixtureRequest, warm: Warm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Bench, Server]]:
    """Give a deployment with a running server, on each engine; tests may add what they like."""
    folder = tmp_path_factory.mktemp("served")
    bench = Bench(data_dir=folder / "data", settings=_engine(request), warm=warm)
    bench.run("init")
    with running_server(bench) as server:
        yield bench, server


def _engine(request: pytest.FixtureRequest) -> Mapping[str, str]:
    if request.param == "sqlite":
        return {}
    server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
    return {"DATABASE_URL": postgres.fresh_database(server)}
