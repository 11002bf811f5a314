"""Deployments, accounts and clients for the acceptance tests.

Two deployments run on each engine: the shared one with every default, and one with everything
configured and notices in every state of their life.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.http.backstage import Operator, Vendor, another_deployment, notice_file
from tests.support import postgres
from tests.support.engines import Once, kept
from tests.support.service import Deployment, Server, free_port, running_server

PUBLIC_URL = "https://countersign.example.com"
SECURITY_CONTACT = "mailto:security@countersign.example.com"
RATE = 400
"""Requests that a key may make on the configured server; the pause after them is half a minute."""

LIVE_NOTICE = "three-lines"
LIVE_VERSION = "2020-01"


@dataclass(frozen=True, kw_only=True)
class Configured:
    """A deployment with every setting set; its server runs."""

    deployment: Deployment
    server: Server
    operator: Operator
    metrics_url: str


@pytest.fixture
def vendor(operator: Operator, server: Server) -> Iterator[Vendor]:
    """Give an account of this test alone on the shared server, with a client for each mode."""
    with operator.vendor(server) as made:
        yield made


@pytest.fixture
def other_vendor(operator: Operator, server: Server) -> Iterator[Vendor]:
    """Give a second account on the shared server."""
    with operator.vendor(server) as made:
        yield made


@pytest.fixture
def account(vendor: Vendor) -> str:
    """Give the id of this test's own account."""
    return vendor.account_id


@pytest.fixture
def client(vendor: Vendor) -> httpx2.Client:
    """Give a client with a test key of this test's own account."""
    return vendor.test


here = pytest.fixture(scope="package")(kept)


@pytest.fixture(scope="package")
def configured(
    request: pytest.FixtureRequest,
    deployment: Deployment,
    here: Once,
    tmp_path_factory: pytest.TempPathFactory,
) -> Configured:
    """Give a server with everything configured, on the engine of the shared deployment."""
    engine: postgres.PostgresServer | None = None
    if "DATABASE_URL" in deployment.settings:
        engine = request.getfixturevalue("postgres_server")
    return here(
        ("configured", deployment.data_dir),
        lambda: _run_configured(tmp_path_factory.mktemp("configured"), engine),
    )


@contextmanager
def _run_configured(place: Path, engine: postgres.PostgresServer | None) -> Iterator[Configured]:
    metrics_port = free_port()
    own = another_deployment(
        place / "data",
        engine,
        PUBLIC_URL=PUBLIC_URL,
        SECURITY_CONTACT=SECURITY_CONTACT,
        METRICS_PORT=str(metrics_port),
        RATE_LIMIT=f"{RATE}/{RATE * 120}",
        TRUSTED_PROXIES="10.0.0.0/8,2001:db8:ffff::/48",
    )
    with running_server(own) as server, Operator(own) as operator:
        _sign_off_a_live_notice(own, place)
        _fill_the_registry(operator)
        yield Configured(
            deployment=own,
            server=server,
            operator=operator,
            metrics_url=f"http://127.0.0.1:{metrics_port}/metrics",
        )


@pytest.fixture
def configured_vendor(configured: Configured) -> Iterator[Vendor]:
    """Give an account of this test alone on the configured server."""
    with configured.operator.vendor(configured.server) as made:
        yield made


def _sign_off_a_live_notice(deployment: Deployment, place: Path) -> None:
    """Do as the handbook says, with the commands themselves."""
    file = place / "notice.toml"
    file.write_text(notice_file(LIVE_NOTICE, LIVE_VERSION), encoding="utf-8")
    deployment.run("notices", "publish", str(file))
    signed = ("--version", LIVE_VERSION, "--by", "A. Reader", "--against", "https://law.example/1")
    deployment.run("notices", "review", LIVE_NOTICE, *signed)


def _fill_the_registry(operator: Operator) -> None:
    """Publish notices in every state."""
    operator.publish(
        notice_file("amended", "1", lines=2),
        notice_file("amended", "2", lines=3, effective_from="2021-01-01"),
        notice_file("amended", "9-later", effective_from="2999-01-01"),
        notice_file("scheduled", "1", effective_from="2999-01-01"),
        notice_file("withdrawn", "1"),
        notice_file("enjoined", "1"),
    )
    operator.publish(
        notice_file("amended", "3-draft", lines=4, effective_from="2022-01-01"), reviewed=False
    )
    operator.withdraw("withdrawn", "1")
    operator.withdraw("enjoined", "1", enjoined=True)
