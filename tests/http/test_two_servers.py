"""Two servers on one PostgreSQL database: they act as one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import httpx2
import pytest

from countersign.core.access.role import Role
from tests.http.backstage import Operator, another_deployment, make_client, notice_file
from tests.http.calls import acknowledge, refusal
from tests.staff.conftest import Desk
from tests.support import postgres
from tests.support.service import Server, running_server

pytestmark = [pytest.mark.postgres, pytest.mark.first_try]

LINES = ["A", "B", "C", "D"]


@dataclass(frozen=True)
class Pair:
    """Two servers of one deployment."""

    operator: Operator
    servers: tuple[Server, Server]


@pytest.fixture(scope="module")
def pair(
    postgres_server: postgres.PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """Run two servers on a database of their own."""
    deployment = another_deployment(tmp_path_factory.mktemp("pair") / "data", postgres_server)
    with (
        running_server(deployment, CONSOLE="true") as one,
        running_server(deployment, CONSOLE="true") as other,
        Operator(deployment) as operator,
    ):
        yield Pair(operator, (one, other))


@pytest.fixture
def clients(pair: Pair) -> Iterator[tuple[httpx2.Client, httpx2.Client]]:
    """Give a client of each server with the same new key."""
    token = pair.operator.key(pair.operator.account()).token
    with ExitStack() as stack:
        one, other = (stack.enter_context(make_client(s, token)) for s in pair.servers)
        yield one, other


def test_one_idempotency_key_has_one_effect_on_two_servers(
    pair: Pair, clients: tuple[httpx2.Client, httpx2.Client]
) -> None:
    """Both begin before either has ended: one acts, the other learns that it is in progress."""

    def act(client: httpx2.Client) -> httpx2.Response:
        return acknowledge(client, initials_per_line=LINES, headers={"Idempotency-Key": "k1"})

    for client in clients:
        acknowledge(client, initials_per_line=LINES)
    with ThreadPoolExecutor(2) as threads:
        with pair.operator.acts_held():
            calls = [threads.submit(act, client) for client in clients]
            _until_both_wait(pair.operator)
        answers = sorted((call.result() for call in calls), key=lambda a: a.status_code)
    assert [answer.status_code for answer in answers] == [200, 409]
    assert refusal(answers[1]) == (409, "idempotency_in_progress")
    # It is a normal response to one of them, not a fault of the database.
    assert not any("database_error" in server.log.read_text() for server in pair.servers)
    assert len(clients[0].get("/v1/acknowledgments").json()["data"]) == len(clients) + 1
    for client in clients:
        again = act(client)
        assert again.content == answers[0].content
        assert again.headers["Idempotent-Replayed"] == "true"


def test_an_invitation_that_another_server_has_just_made_is_the_response(pair: Pair) -> None:
    """Not "the name is taken", although this very request took it."""
    desk = Desk(server=pair.servers[0], operator=pair.operator)
    body = {"name": "Grace", "role": "developer"}

    def invite(client: httpx2.Client) -> httpx2.Response:
        return client.post("/v1/staff", json=body, headers={"Idempotency-Key": "grace"})

    with desk.person(Role.OWNER) as owner, make_client(pair.servers[1]) as other:
        other.headers["Authorization"] = owner.client.headers["Authorization"]
        with ThreadPoolExecutor(2) as threads:
            with pair.operator.acts_held():
                calls = [threads.submit(invite, client) for client in (owner.client, other)]
                _until_both_wait(pair.operator)
            answers = [call.result() for call in calls]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert answers[0].content == answers[1].content
        assert sorted(answer.headers.get("Idempotent-Replayed", "") for answer in answers) == [
            *("", "true")
        ]
        taken = owner.client.post("/v1/staff", json=body, headers={"Idempotency-Key": "again"})
        assert refusal(taken) == (409, "people_refused")


def test_data_stored_by_one_server_is_read_by_the_other(
    clients: tuple[httpx2.Client, httpx2.Client],
) -> None:
    made = acknowledge(clients[0], initials_per_line=LINES).json()
    path = f"/v1/acknowledgments/{made['ack_id']}"
    # Its evidence is the same from both once it is sealed.
    assert clients[1].get(f"{path}/proof", headers={"Prefer": "wait=10"}).status_code == 200
    assert clients[1].get(path).json() == clients[0].get(path).json()


def test_a_notice_published_once_is_served_by_both(
    pair: Pair, clients: tuple[httpx2.Client, httpx2.Client]
) -> None:
    pair.operator.publish(notice_file("both", "1"))
    assert [client.get("/v1/notices/both").status_code for client in clients] == [200, 200]


def _until_both_wait(operator: Operator) -> None:
    """Return when two transactions wait for a lock on this database."""
    query = (
        "SELECT count(*) AS n FROM pg_locks JOIN pg_database d ON d.oid = database"
        " WHERE NOT granted AND d.datname = current_database()"
    )
    while operator.rows(query)[0]["n"] < 2:
        time.sleep(0.01)
