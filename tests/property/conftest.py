"""The two servers that the generated requests go to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.property.engines import Engines, Side
from tests.support import postgres
from tests.support.service import Deployment, running_server

PUBLIC_URL = "http://countersign.test"


@pytest.fixture(scope="package")
def engines(
    postgres_server: postgres.PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engines]:
    """Run a server on each engine, for the whole folder; they call themselves the same."""
    urls = {"sqlite": {}, "postgres": {"DATABASE_URL": postgres.fresh_database(postgres_server)}}
    sides = {}
    with ExitStack() as stack:
        for name, settings in urls.items():
            deployment = Deployment(
                data_dir=tmp_path_factory.mktemp(f"engine-{name}") / "data",
                settings=settings | {"PUBLIC_URL": PUBLIC_URL},
            )
            deployment.run("init")
            account = deployment.account("property")
            sides[name] = Side(
                server=stack.enter_context(running_server(deployment)),
                keys={mode: deployment.key(account, mode).encode() for mode in ("test", "live")},
            )
        yield Engines(**sides)
