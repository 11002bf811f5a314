"""A run against a server that has no more rights than the page for operators gives it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from countersign_conformance.model import KEPT, Provocation
from tests.conformance.test_provocations import armed, seen, under_a_run
from tests.docs.test_serving_role import (
    as_app,
    cluster,  # noqa: F401 - a fixture
    grant,
    owner,  # noqa: F401 - a fixture
)
from tests.http.backstage import Operator
from tests.http.calls import acknowledge, refusal
from tests.support import postgres
from tests.support.service import Deployment, running_server

pytestmark = pytest.mark.postgres


def test_servers_with_the_printed_grants_can_watch_provoke_and_tidy(
    cluster: postgres.PostgresServer,  # noqa: F811 - a fixture
    owner: Deployment,  # noqa: F811 - a fixture
) -> None:
    """Observations are stored, armed provocations are taken, and old runs are deleted."""
    grant(owner, cluster)
    with Operator(owner) as operator:
        account_id = operator.account()
        with under_a_run(operator, operator.account()):
            pass
        old = int((datetime.now(UTC) - KEPT - timedelta(days=1)).timestamp() * 1000)
        operator.execute("UPDATE conformance_runs SET active_until = :old", old=old)
        with running_server(as_app(owner, cluster)) as server:
            key = operator.key(account_id).token
            provocation = Provocation.ACKNOWLEDGMENT_REFUSED
            with (
                under_a_run(operator, account_id, provocation) as run,
                server.client(key) as client,
            ):
                assert refusal(acknowledge(client)) == (409, "notice_version_mismatch")
                assert armed(operator, run) is None
                assert len(seen(operator, run)) == 2
        # Housekeeping begins with the server.
        assert len(operator.rows("SELECT 1 FROM conformance_runs")) == 1
    found = [json.loads(line) for line in server.log.read_text().splitlines() if line[:1] == "{"]
    assert not [event for event in found if event["event"] != "refused"]
