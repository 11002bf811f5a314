"""The permanent record of an erasure: that it happened, without the person."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from countersign.base.values import Mode
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.log import logs_sql, tree_sql
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from tests.sealing.acts import acknowledge, check
from tests.sealing.inside import opened
from tests.support.service import Deployment, running_server

pytestmark = pytest.mark.long

BUYER = {"test_mode": True, "provider_identity_session_id": "vs_1", "shipping_zip": "94111"}
PURCHASES = 6


def erasures(own: Deployment) -> list[dict[str, Any]]:
    """The records of erasures in the test log, in its order."""

    async def read() -> list[bytes]:
        async with opened(own) as service:
            await service.log.seal.settle()
            log = (await service.log.seal.current())[Mode.TEST]
            head = await service.database.read(logs_sql.latest, log.id)
            assert head
            ids = [
                id_
                for id_, _ in await service.database.scan(tree_sql.entries, log.id, 0, head.size)
            ]
            bodies = await service.database.scan(tree_sql.record_bodies, ids)
            return [bodies[id_] for id_ in ids]

    found = [json.loads(body) for body in asyncio.run(read())]
    return [record for record in found if record["type"] == "erasure"]


def test_no_record_of_an_erasure_links_two_acts_of_a_buyer(own: Deployment) -> None:
    """Each erased record has its own, of any account, and in no order."""
    account, other = own.account("vendor"), own.account("other vendor")
    with (
        running_server(own) as server,
        server.client(own.key(account)) as client,
        server.client(own.key(other)) as stranger,
    ):
        cbid = client.post("/v1/buyers/verify", json=BUYER).json()["cbid"]
        made = [acknowledge(client, cbid=cbid) for _ in range(PURCHASES)]
        made.append(acknowledge(stranger, cbid=cbid))
        plan = own.read("erase", cbid, "--with-acknowledgments", "--yes")
    assert set(made) < set(plan["records"]), "the verification goes too"
    found = erasures(own)
    assert [len(record["erased"]) for record in found] == [1] * len(plan["records"])
    assert {record["erased"][0] for record in found} == set(plan["records"])
    assert len({record["id"] for record in found}) == len(found)
    assert {record["reason"] for record in found} == {"request"}
    assert cbid not in json.dumps(found)
    assert check(own)["findings"] == []
    # By chance 6 of them are in their old order once in 720 times, of two erasures in 518,400.
    orders = [[r["erased"][0] for r in found if r["erased"][0] in made[:PURCHASES]]]
    with running_server(own) as server, server.client(own.key(account)) as client:
        cbid = client.post("/v1/buyers/verify", json=BUYER).json()["cbid"]
        again = [acknowledge(client, cbid=cbid) for _ in range(PURCHASES)]
        own.run("erase", cbid, "--with-acknowledgments", "--yes")
    orders.append([r["erased"][0] for r in erasures(own) if r["erased"][0] in again])
    assert any(order != sorted(order) for order in orders)


def test_the_erasure_of_a_buyer_is_recorded_even_if_nothing_else_was_erased(
    own: Deployment,
) -> None:
    """By the account whose buyer it was, without its identifier."""
    account = own.account("vendor")
    with running_server(own) as server, server.client(own.key(account)) as client:
        cbid = client.post("/v1/buyers/verify", json=BUYER).json()["cbid"]

    async def erase_its_verifications() -> None:
        async with opened(own) as service:
            plan = await plan_erasure(service.privacy, cbid, DEPLOYMENT)
            for record in plan.records:
                await erase_planned(
                    service.privacy,
                    await plan_erasure(service.privacy, record.record_id, DEPLOYMENT),
                    ErasureReason.OTHER,
                )

    asyncio.run(erase_its_verifications())
    own.run("erase", cbid, "--yes")
    *_, last = erasures(own)
    assert (last["erased"], last["account"]) == ([], account)
    assert check(own)["findings"] == []
