"""One limit over two servers with two workers each, on one PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import httpx2
import pytest

from tests.cli.crew import one_client_each
from tests.cli.serving import wait_until
from tests.http.backstage import Operator, another_deployment
from tests.support import postgres
from tests.support.service import Deployment, Server, running_server, start_server

pytestmark = [pytest.mark.postgres, pytest.mark.first_try]

LIMIT = 600
SECONDS = 36_000
"""So long that practically nothing refills during a test."""
LEAST, MOST = 0.9 * LIMIT, 1.1 * LIMIT
PATH = "/v1/notices/ab1263"


@dataclass(frozen=True)
class Site:
    """Two servers, and how to become a new caller of them."""

    deployment: Deployment
    operator: Operator
    servers: Sequence[Server]

    def key(self) -> str:
        return self.operator.key(self.operator.account()).token

    def leases(self) -> int:
        """How often the database was asked."""
        query = (
            "SELECT n_tup_ins + n_tup_upd AS n FROM pg_stat_user_tables"
            " WHERE relname = 'rate_shares'"
        )
        return int(self.operator.rows(query)[0]["n"])


@pytest.fixture(scope="module")
def site(
    postgres_server: postgres.PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """Run two servers that share a place for heads, as several servers must."""
    place = tmp_path_factory.mktemp("limited")
    made = another_deployment(place / "data", postgres_server)
    own = {"LOG_HEAD_DIR": str(place / "heads"), "RATE_LIMIT": f"{LIMIT}/{SECONDS}"}
    settings = dict(made.settings) | own | {"WORKERS": "2"}
    deployment = Deployment(data_dir=made.data_dir, settings=settings)
    with ExitStack() as stack:
        servers = [stack.enter_context(running_server(deployment)) for _ in range(2)]
        for server in servers:
            wait_until(lambda s=server: "Countersign serves" in s.log.read_text(), "both workers")  # type: ignore[misc]
        yield Site(deployment, stack.enter_context(Operator(made)), servers)


def passed(client: httpx2.Client, number: int) -> int:
    """How many of these requests in a row are admitted; the others are refused for long."""
    passed = 0
    for _ in range(number):
        answer = client.get(PATH)
        assert answer.status_code in {200, 429}, answer.text
        passed += answer.status_code == 200
        if answer.status_code == 429:
            assert int(answer.headers["Retry-After"]) >= 1
    return passed


def at_once(clients: Sequence[httpx2.Client], numbers: Sequence[int]) -> int:
    with ThreadPoolExecutor(len(clients)) as threads:
        return sum(threads.map(passed, clients, numbers))


@pytest.mark.parametrize("parts", [(1, 1, 1, 1), (1, 0, 0, 0), (10, 1, 1, 0), (0, 3, 0, 1)])
def test_a_caller_has_its_limit_however_its_requests_are_spread(
    site: Site, parts: tuple[int, ...]
) -> None:
    """Of twice the limit, 90 to 110 % of the limit are admitted, and few ask the database."""
    numbers = [2 * LIMIT * part // sum(parts) for part in parts]
    with ExitStack() as stack:
        key = site.key()
        clients = [
            client for s in site.servers for client in stack.enter_context(one_client_each(s, key))
        ]
        before = site.leases()
        assert LEAST <= at_once(clients, numbers) <= MOST
        assert site.leases() - before <= 2 * LIMIT // 4


def test_a_killed_server_leaves_its_limit_to_the_other(site: Site) -> None:
    """Except a hundredth for each of its workers."""
    key = site.key()
    killed = start_server(site.deployment)
    with killed.client(key) as client:
        used = passed(client, LIMIT // 2)
    killed.kill()
    with site.servers[0].client(key) as client:
        assert LEAST <= used + passed(client, LIMIT) <= MOST


def test_the_remaining_requests_in_the_headers_are_right_except_for_use_by_others(
    site: Site,
) -> None:
    with site.servers[0].client(site.key()) as client:
        left = [
            int(client.get(PATH).headers["ratelimit"].split(";")[1].removeprefix("r="))
            for _ in range(20)
        ]
    assert left == [*range(LIMIT - 1, LIMIT - 21, -1)]


def test_without_the_database_each_server_counts_for_itself(site: Site) -> None:
    """The table is missing, as if a role had lost its rights; no request fails."""
    key = site.key()
    site.operator.execute("ALTER TABLE rate_shares RENAME TO away")
    try:
        for server in site.servers:
            with server.client(key) as client:
                assert passed(client, LIMIT + 20) == LIMIT
            assert '"rate_limit_alone"' in server.log.read_text()
    finally:
        site.operator.execute("ALTER TABLE away RENAME TO rate_shares")
