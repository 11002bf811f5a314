"""Restarts under load: behind a proxy, no caller notices."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.serving import wait_until
from tests.crash.restarts import RESTARTS, Balancer, Tally, load, plainly, unit
from tests.http.backstage import another_deployment
from tests.support import postgres
from tests.support.nginx import by_tls, nginx
from tests.support.service import Deployment, free_port

pytestmark = [pytest.mark.crash, pytest.mark.first_try, pytest.mark.one_engine, pytest.mark.long]

DRAIN = {"DRAIN_SECONDS": "1"}


@pytest.fixture
def deployed(tmp_path: Path) -> Deployment:
    """Give an initialised deployment whose servers drain."""
    made = another_deployment(tmp_path / "data")
    return Deployment(data_dir=made.data_dir, settings=DRAIN)


def check(tally: Tally, deployment: Deployment, key: str, port: int) -> None:
    """Nothing failed, and each acknowledged write is there once."""
    assert dict(tally.failures) == {}
    assert len(set(tally.ack_ids)) == len(tally.ack_ids) > RESTARTS
    connection = plainly(port)()
    connection.request(
        "GET",
        f"/v1/acknowledgments/{tally.ack_ids[-1]}/proof",
        headers={"Authorization": f"Bearer {key}", "Prefer": "wait=10"},
    )
    assert connection.getresponse().status == 200
    connection.close()
    assert deployment.run("log", "check").returncode == 0


@pytest.mark.timeout(300)
def test_restarts_refuse_no_connection_if_the_manager_holds_the_socket(
    deployed: Deployment, tmp_path: Path
) -> None:
    """With a single server, and nothing in front of it; idle new connections survive, too."""
    key, port = deployed.key(deployed.account("vendor")), free_port()
    with unit(deployed, port, tmp_path / "m", socket=True) as server:
        with load(plainly(port, silent_seconds=0.02), key) as tally:
            for _ in range(RESTARTS):
                server.restart()
        check(tally, deployed, key, port)


@pytest.mark.nginx
@pytest.mark.timeout(300)
def test_restarts_are_not_seen_behind_nginx(deployed: Deployment, tmp_path: Path) -> None:
    """With the file and the units of `deploy/`."""
    key, port = deployed.key(deployed.account("vendor")), free_port()
    with (
        unit(deployed, port, tmp_path / "m", socket=True) as server,
        nginx(tmp_path / "nginx", port) as front,
    ):
        with load(by_tls(front), key) as tally:
            for _ in range(RESTARTS):
                server.restart()
        check(tally, deployed, key, port)


@pytest.mark.postgres
@pytest.mark.timeout(300)
def test_restarts_are_invisible_behind_a_balancer_that_checks_readiness(
    postgres_server: postgres.PostgresServer, tmp_path: Path
) -> None:
    """With two servers on one database, restarted in turn, and no socket that stays."""
    made = another_deployment(tmp_path / "data", postgres_server)
    deployed = Deployment(data_dir=made.data_dir, settings=dict(made.settings) | DRAIN)
    key, ports = deployed.key(deployed.account("vendor")), (free_port(), free_port())
    with (
        unit(deployed, ports[0], tmp_path / "m", socket=False) as first,
        unit(deployed, ports[1], tmp_path / "n", socket=False) as second,
        Balancer(ports) as balancer,
    ):
        with load(balancer.connect, key) as tally:
            for turn in range(RESTARTS):
                (first, second)[turn % 2].restart()
                wait_until(lambda: all(map(balancer.sees, ports)), "both in service")
        check(tally, deployed, key, ports[0])
