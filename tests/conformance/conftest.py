"""Shops that are judged all at the same time, on one server of each engine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta

import pytest

from countersign.base.values import Mode
from countersign.core.events.model import EventType
from countersign.core.gate import commands
from countersign.core.gate.act import Writing
from countersign.core.webhooks.endpoints import create_webhook_endpoint
from countersign.core.webhooks.schemas import WebhookEndpointRequest
from countersign.operate import bootstrap
from countersign_conformance.kit import run_conformance
from countersign_conformance.model import Finding, Report, Verdict
from tests.conformance.shop import HOLD_SECONDS, Manners, Shop, doing_business, receiving
from tests.http.backstage import Operator
from tests.support.engines import ENGINES, engine_settings
from tests.support.service import Deployment, Server, running_server

SETTINGS = {"WEBHOOK_ALLOW_PRIVATE": "true", "WEBHOOK_TIMEOUT_SECONDS": "20"}
GOOD = Manners()


@dataclass(frozen=True)
class Judged:
    """A shop, and what came of its run."""

    shop: Shop
    account_id: str
    report: Report
    answers: list[str]

    def finding(self, check_id: str) -> Finding:
        return next(f for check, f in self.report.findings if check.id == check_id)

    def with_verdict(self, verdict: Verdict) -> set[str]:
        return {check.id for check, f in self.report.findings if f.verdict is verdict}


@pytest.fixture(scope="package", params=ENGINES)
def deployment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Deployment:
    """Give a deployment that sends webhooks to this machine too, on each engine."""
    settings = SETTINGS | engine_settings(request)
    made = Deployment(data_dir=tmp_path_factory.mktemp(request.param) / "data", settings=settings)
    made.run("init")
    return made


@pytest.fixture(scope="package")
def server(deployment: Deployment) -> Iterator[Server]:
    """Run a server."""
    with running_server(deployment) as running:
        yield running


def new_shop(operator: Operator, server: Server, manners: Manners) -> tuple[str, Shop]:
    """Make an account with a test key; gives its id and its shop."""
    account_id = operator.account()
    return account_id, Shop(server.url, operator.key(account_id).token, manners)


def connect(operator: Operator, account_id: str, shop: Shop, url: str) -> None:
    """Have the account's events sent to the shop's receiver."""

    async def work(opened: bootstrap.Deployment) -> str:
        # No event of this type occurs otherwise, which a shop would act on, too.
        quiet = [EventType.NOTICE_PUBLISHED] if shop.manners.acts_on_duplicates else None
        wanted = WebhookEndpointRequest(url=url, event_types=quiet)
        who, write = commands.operator(account_id, Mode.TEST), Writing(opened.access.database)
        made = await create_webhook_endpoint(opened.webhooks, who, wanted, None, write)
        return made.secret

    shop.secret = operator.act(work)


async def judge(
    opened: bootstrap.Deployment,
    account_id: str,
    answers: list[str],
    *,
    step_seconds: float = 12,
    linger_seconds: float = 6,
    stop: asyncio.Event | None = None,
) -> Report:
    """Run the kit on an account."""
    return await run_conformance(opened)(
        account_id,
        duration=timedelta(seconds=100),
        step_limit=timedelta(seconds=step_seconds),
        hold=timedelta(seconds=HOLD_SECONDS),
        linger=timedelta(seconds=linger_seconds),
        stop=stop or asyncio.Event(),
        say=answers.append,
    )


def judge_all(operator: Operator, server: Server, cases: dict[str, Manners]) -> dict[str, Judged]:
    """Judge shops of these manners, all at the same time."""
    with ExitStack() as stack:
        shops = {name: new_shop(operator, server, manners) for name, manners in cases.items()}
        for account_id, shop in shops.values():
            connect(operator, account_id, shop, stack.enter_context(receiving(shop)))
        for _, shop in shops.values():
            stack.enter_context(doing_business(shop))
        answers: dict[str, list[str]] = {name: [] for name in shops}

        async def work(opened: bootstrap.Deployment) -> list[Report]:
            return await asyncio.gather(
                *(
                    judge(opened, account_id, answers[name])
                    for name, (account_id, _) in shops.items()
                )
            )

        reports = operator.act(work)
    return {
        name: Judged(shop, account_id, report, answers[name])
        for (name, (account_id, shop)), report in zip(shops.items(), reports, strict=True)
    }


@pytest.fixture(scope="package")
def operator(deployment: Deployment) -> Iterator[Operator]:
    """The operator of this deployment, which is not the shared one."""
    with Operator(deployment) as made:
        yield made
