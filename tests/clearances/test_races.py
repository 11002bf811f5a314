"""Questions at the same moment: one acknowledgment, one buyer, one order.

On PostgreSQL the callers ask two servers in turn.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier
from typing import Any

import httpx2
import pytest

from countersign.core.buyers.model import ZIPS_PER_DAY
from tests.clearances.checkout import CLEARANCES, SESSION, ZIP, Checkout
from tests.http.calls import refusal
from tests.support.service import Server, running_server

pytestmark = pytest.mark.both_engines

ROUNDS = 12
CALLERS = 6


@pytest.fixture(scope="module")
def servers(server: Server) -> Iterator[Sequence[Server]]:
    """Give every server that there can be on this database."""
    with ExitStack() as stack:
        found = [server]
        if "DATABASE_URL" in server.deployment.settings:
            # Of one service with one address, because tokens name it.
            other = running_server(server.deployment, PUBLIC_URL=server.url)
            found.append(stack.enter_context(other))
        yield found


@pytest.fixture
def callers(checkout: Checkout, servers: Sequence[Server]) -> Iterator[list[httpx2.Client]]:
    """Give clients of one account, a connection each."""
    headers = {"Authorization": checkout.client.headers["Authorization"]}
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                httpx2.Client(base_url=at.url, headers=headers, timeout=30.0, verify=False)
            )
            for at, _ in zip(itertools.cycle(servers), range(CALLERS), strict=False)
        ]


def at_once(
    callers: Sequence[httpx2.Client], path: str, bodies: Sequence[dict[str, Any]]
) -> list[httpx2.Response]:
    """The responses when each posts its body at the same moment."""
    start = Barrier(len(callers))

    def one(number: int, client: httpx2.Client) -> httpx2.Response:
        start.wait(10)
        return client.post(path, json=bodies[number])

    with ThreadPoolExecutor(len(callers)) as threads:
        calls = [threads.submit(one, n, client) for n, client in enumerate(callers)]
        return [call.result() for call in calls]


def _order(ack_id: str, cbid: str, **more: object) -> dict[str, Any]:
    return {"ack_id": ack_id, "cbid": cbid, "shipping_zip": ZIP, "session_id": SESSION} | more


def _bodies(answers: Sequence[httpx2.Response]) -> list[dict[str, Any]]:
    assert {answer.status_code for answer in answers} == {200}, [a.text for a in answers]
    return [answer.json() for answer in answers]


def test_one_of_several_orders_with_one_acknowledgment_is_cleared(
    checkout: Checkout, callers: list[httpx2.Client]
) -> None:
    """The others get the answer that it is used already."""
    cbid = checkout.buyer()
    for _ in range(ROUNDS):
        ack_id = checkout.initialed()
        orders = [
            _order(ack_id, cbid, shipping_address={"line1": str(n), "postal_code": ZIP})
            for n in range(CALLERS)
        ]
        found = _bodies(at_once(callers, CLEARANCES, orders))
        assert sorted(answer["cleared"] for answer in found) == [False] * (CALLERS - 1) + [True]
        against = {tuple(answer["reasons"]) for answer in found if not answer["cleared"]}
        assert against == {("acknowledgment_already_used",)}


def test_an_acknowledgment_is_bound_to_one_of_several_concurrent_buyers(
    checkout: Checkout, callers: list[httpx2.Client]
) -> None:
    """The first one wins; the others are not the buyer that it belongs to."""
    cbids = [checkout.buyer() for _ in range(CALLERS)]
    for _ in range(ROUNDS):
        ack_id = checkout.initialed()
        found = _bodies(at_once(callers, CLEARANCES, [_order(ack_id, cbid) for cbid in cbids]))
        assert sorted(answer["cleared"] for answer in found) == [False] * (CALLERS - 1) + [True]
        against = {tuple(answer["reasons"]) for answer in found if not answer["cleared"]}
        assert against == {("buyer_mismatch",)}


def test_one_order_asked_for_several_times_gets_one_clearance(
    checkout: Checkout, callers: list[httpx2.Client]
) -> None:
    cbid = checkout.buyer()
    for _ in range(ROUNDS):
        ack_id = checkout.initialed()
        answers = at_once(callers, CLEARANCES, [_order(ack_id, cbid)] * CALLERS)
        assert len({answer.content for answer in answers}) == 1
        assert answers[0].json()["cleared"] is True
        found = checkout.client.get(CLEARANCES, params={"ack_id": ack_id}).json()["data"]
        assert len(found) == 1


def test_one_of_several_reports_closes_an_order(
    checkout: Checkout, callers: list[httpx2.Client]
) -> None:
    for _ in range(ROUNDS):
        clearance_id = checkout.cleared()["clearance_id"]
        path = f"{CLEARANCES}/{clearance_id}/fulfilment"
        answers = at_once(callers, path, [{"carrier": str(n)} for n in range(CALLERS)])
        refused = [answer for answer in answers if answer.status_code != 200]
        assert len(refused) == CALLERS - 1
        assert {refusal(answer) for answer in refused} == {(409, "fulfilment_contradicted")}
        assert len(checkout.back(clearance_id)["fulfilments"]) == 1


def test_concurrent_servers_allow_no_extra_guess_of_zip_codes(
    checkout: Checkout, callers: list[httpx2.Client]
) -> None:
    """The buyer's verified ZIP code counts, too; each order is a different one."""
    for number in range(ROUNDS // 3):
        cbid = checkout.buyer()
        bodies = [
            _order(checkout.initialed(), cbid, shipping_zip=f"1{number}00{n}")
            for n in range(CALLERS)
        ]
        answers = at_once(callers, CLEARANCES, bodies)
        refused = [refusal(a) for a in answers if a.status_code != 200]
        assert refused == [(429, "rate_limited")] * (CALLERS - ZIPS_PER_DAY + 1)
