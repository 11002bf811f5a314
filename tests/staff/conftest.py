"""A server whose console is on, with people of each role."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import pytest
from sqlalchemy import Connection, insert

from countersign.base.db.tables import people, person_grants, person_sessions
from countersign.base.values import from_ns, timed_id
from countersign.core.access.key import PERSON_ENTROPY_BYTES, PERSON_SESSION, compose_token
from countersign.core.access.role import Role
from countersign.operate import bootstrap
from tests.http.backstage import Operator, Vendor, another_deployment, make_client, notice_file
from tests.staff.street import STAFF, Account, Street
from tests.support import postgres
from tests.support.document import Document, committed_document
from tests.support.engines import Once, kept
from tests.support.providers import playing
from tests.support.service import Deployment, Server, running_server
from tests.verification.live import configure

DOCUMENT = Document(committed_document())


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A deployment with its console on; its server runs."""

    server: Server
    operator: Operator

    @contextmanager
    def person(
        self,
        role: Role = Role.OWNER,
        account: str = "",
        mode: str = "live",
        *,
        member: bool = False,
    ) -> Iterator[Person]:
        """A signed-in person with this role, who calls for this account or for none."""

        async def work(opened: bootstrap.Deployment) -> tuple[str, str]:
            token = compose_token(PERSON_SESSION, secrets.token_bytes(PERSON_ENTROPY_BYTES))
            digest = opened.access.secret.key_digest(token)
            of = account if member else None
            return await opened.database.write(_sign_in, role, of, digest), token

        person_id, token = self.operator.act(work)
        about = {"Countersign-Account": account, "Countersign-Mode": mode} if account else {}
        with make_client(self.server, token, **about) as client:
            yield Person(person_id, client)


@dataclass(frozen=True)
class Person:
    """A person and the client of the person's session."""

    id: str
    client: httpx2.Client

    def get(self, path: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401 - any JSON
        return self.ask("GET", path, None, status, headers)

    def post(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - any JSON
        return self.ask("POST", path, body or {}, status, headers)

    def ask(
        self,
        method: str,
        path: str,
        body: object,
        status: int,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - any JSON
        """Ask, and compare the answer with the document."""
        answer = self.client.request(method, path, json=body, headers=dict(headers or {}))
        assert answer.status_code == status, answer.text
        assert DOCUMENT.answer_faults(method, path, answer) == []
        return answer.json()


def _sign_in(connection: Connection, role: Role, account_id: str | None, digest: bytes) -> str:
    time_ns = time.time_ns()
    now = from_ns(time_ns)
    person, grant, session = (
        timed_id(kind, time_ns, secrets.token_bytes(8)) for kind in ("per", "grt", "ps")
    )
    connection.execute(insert(people), {"id": person, "name": "Ada", "created_at": now})
    granted = {"account_id": account_id, "role": role.value, "granted_by": "a test"}
    own = {"id": grant, "person_id": person, "granted_at": now}
    connection.execute(insert(person_grants), own | granted)
    times = dict.fromkeys(("created_at", "last_used_at", "passkey_at"), now)
    signed_in = {"id": session, "person_id": person, "digest": digest} | times
    connection.execute(insert(person_sessions), signed_in)
    return person


here = pytest.fixture(scope="package")(kept)


@pytest.fixture(scope="package")
def desk(
    request: pytest.FixtureRequest,
    deployment: Deployment,
    here: Once,
    tmp_path_factory: pytest.TempPathFactory,
) -> Desk:
    """Give a server whose console is on, on the engine of the shared deployment."""
    engine: postgres.PostgresServer | None = None
    if "DATABASE_URL" in deployment.settings:
        engine = request.getfixturevalue("postgres_server")

    @contextmanager
    def run() -> Iterator[Desk]:
        made = another_deployment(tmp_path_factory.mktemp("staff") / "data", engine)
        own = replace(made, settings={**made.settings, "CONSOLE": "true"})
        with running_server(own) as server, Operator(own) as operator:
            yield Desk(server=server, operator=operator)

    return here(("desk", deployment.data_dir), run)


@pytest.fixture
def shop(desk: Desk) -> Iterator[Vendor]:
    """Give an account of this test alone."""
    with desk.operator.vendor(desk.server) as made:
        yield made


@pytest.fixture
def owner(desk: Desk) -> Iterator[Person]:
    """Give an owner of the deployment, who asks about no account."""
    with desk.person() as made:
        yield made


@pytest.fixture
def street(desk: Desk) -> Iterator[Street]:
    """Give two vendors at the simulated Stripe, and the notice that live keys acknowledge there."""
    if not desk.operator.rows("SELECT 1 FROM notice_versions WHERE notice_id = 'law'"):
        desk.operator.publish(notice_file("law", "1"))
    with ExitStack() as stack:
        played = stack.enter_context(playing("stripe"))
        made: list[Account] = []
        for _ in range(2):
            account_id = desk.operator.account()
            configure(desk.operator, account_id, played)
            keys = desk.operator.keys(account_id, [(mode, STAFF) for mode in ("live", "test")])
            clients = [stack.enter_context(make_client(desk.server, key.token)) for key in keys]
            made.append(Account(account_id, *clients))
        first, other = made
        yield Street(desk.operator, desk.server, first, other, played)
