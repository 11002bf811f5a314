"""ZIP codes guessed at every worker of two servers at once, on one PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Barrier

import httpx2
import pytest
from psycopg import sql
from sqlalchemy import make_url

from countersign.core.buyers.model import ZIPS_PER_DAY
from tests.clearances.checkout import CLEARANCES, SESSION
from tests.cli.crew import one_client_each
from tests.cli.serving import wait_until
from tests.http.backstage import Operator, another_deployment
from tests.http.calls import acknowledge, refusal, verify
from tests.support import postgres
from tests.support.service import running_server

pytestmark = [pytest.mark.postgres, pytest.mark.first_try]

ROUNDS = 6
WORKERS = 2
SERVERS = 2
EACH = 3
"""Callers at each worker: two fewer than may guess; twelve in all."""


@dataclass(frozen=True)
class Guessers:
    """Clients of one account: `EACH` of each worker."""

    clients: list[httpx2.Client]

    def at_once(self, session: str, cbid: str, ack_id: str, first: int) -> list[httpx2.Response]:
        """Responses to concurrent requests that each try another ZIP code."""
        start = Barrier(len(self.clients))

        def one(number: int, client: httpx2.Client) -> httpx2.Response:
            code = f"{first + number:05}"
            start.wait(10)
            if number % 2:
                fields = {"provider_identity_session_id": session, "shipping_zip": code}
                return verify(client, **fields)
            order = {"ack_id": ack_id, "cbid": cbid, "shipping_zip": code, "session_id": SESSION}
            return client.post(CLEARANCES, json=order)

        with ThreadPoolExecutor(len(self.clients)) as threads:
            calls = [threads.submit(one, n, client) for n, client in enumerate(self.clients)]
            return [call.result() for call in calls]


@pytest.fixture(params=["read committed", "repeatable read"])
def guessers(
    request: pytest.FixtureRequest,
    postgres_server: postgres.PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Guessers]:
    """Give clients of two servers with two workers, whatever isolation an operator's default is."""
    place = tmp_path_factory.mktemp("guessers") / "data"
    deployment = another_deployment(place, postgres_server)
    name = make_url(deployment.settings["DATABASE_URL"]).database
    with postgres_server.connect() as connection:
        connection.execute(
            sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = {}").format(
                sql.Identifier(name or ""), request.param
            )
        )
    with ExitStack() as stack:
        operator = stack.enter_context(Operator(deployment))
        key = operator.key(operator.account()).token
        clients: list[httpx2.Client] = []
        for _ in range(SERVERS):
            server = stack.enter_context(running_server(deployment, WORKERS=str(WORKERS)))
            wait_until(lambda s=server: "Countersign serves" in s.log.read_text(), "both workers")  # type: ignore[misc]
            for _ in range(EACH):
                clients += stack.enter_context(one_client_each(server, key))
        yield Guessers(clients)


def test_two_servers_with_two_workers_allow_no_extra_guess(guessers: Guessers) -> None:
    """Exactly as many as allowed, over verify and clearances together."""
    one = guessers.clients[0]
    for number in range(ROUNDS):
        session = f"vs_guessed_{number}"
        sent = {"provider_identity_session_id": session, "shipping_zip": "94110"}
        cbid = verify(one, **sent).json()["cbid"]
        lines = ["A", "B", "C", "D"]
        made = acknowledge(one, initials_per_line=lines, session_id=SESSION)
        ack_id = made.json()["ack_id"]
        answers = guessers.at_once(session, cbid, ack_id, 10_000 + 100 * number)
        refused = [refusal(answer) for answer in answers if answer.status_code != 200]
        # The ZIP code that the buyer was verified with counts, too.
        assert refused == [(429, "rate_limited")] * (len(answers) - ZIPS_PER_DAY + 1)
