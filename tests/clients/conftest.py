"""A server for the clients, and the proxy in front of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from countersign.core.access.key import PEOPLE_SCOPES, Scope
from tests.clients.proxy import Proxy, running_proxy
from tests.http.backstage import Operator, another_deployment
from tests.support import node
from tests.support.engines import ENGINES, Once, engine_server
from tests.support.postgres import PostgresServer
from tests.support.service import Server, free_port, running_server

SCOPES = sorted(frozenset(Scope) - PEOPLE_SCOPES)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A server that may call receivers on this machine, and the proxy in front of it."""

    server: Server
    proxy: Proxy
    operator: Operator

    def vendor(self) -> tuple[str, dict[str, Any]]:
        """Make an account; gives a key with every scope, and what cases have to know."""
        account = self.operator.account()
        key = self.operator.key(account, scopes=SCOPES).token
        closed = f"http://127.0.0.1:{free_port()}"
        session = f"cs_{uuid4().hex}"
        return key, {
            "account": account,
            "issuer": self.server.url,
            "closed": closed,
            "session": session,
        }


def allow_overrides(place: Place, account: str) -> None:
    """Let keys of the account override refusals."""
    words = ("accounts", "clearance", "set", account, "--overrides-per-day", "9")
    place.operator.deployment.run(*words)


@contextmanager
def running_place(data: Path, postgres_server: PostgresServer | None) -> Iterator[Place]:
    """Run a server with a proxy."""
    made = another_deployment(data, postgres_server, WEBHOOK_ALLOW_PRIVATE="true")
    with (
        Operator(made) as operator,
        running_server(made) as server,
        running_proxy(server.url) as proxy,
    ):
        yield Place(server=server, proxy=proxy, operator=operator)


@pytest.fixture(scope="session", params=ENGINES)
def every_place(
    request: pytest.FixtureRequest, once: Once, tmp_path_factory: pytest.TempPathFactory
) -> Place:
    """Run a server on each engine."""
    data = tmp_path_factory.getbasetemp() / f"clients-{request.param}" / "data"
    return once(data, partial(running_place, data, engine_server(request)))


@pytest.fixture(scope="session")
def place(once: Once, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Run the server on SQLite."""
    data = tmp_path_factory.getbasetemp() / "clients-sqlite" / "data"
    return once(data, partial(running_place, data, None))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the TypeScript client; for tests marked `npm`."""
    return node.build_client(tmp_path_factory.mktemp("built"))
