"""Two reviewers who decide on one buyer at once: one succeeds, and the other is told so."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

import pytest

from countersign.base.values import Mode
from countersign.core.access.key import Scope
from countersign.core.buyers import admin, review
from countersign.core.buyers import routes as verifying
from countersign.core.buyers.review import AcceptedZip
from countersign.core.buyers.schemas import BuyerVerificationRequest, VerifyResult
from tests.http.backstage import Operator, another_deployment, make_client
from tests.support import postgres
from tests.support.providers import playing
from tests.support.service import running_server
from tests.verification.conftest import each_engine
from tests.verification.inside import Stage
from tests.verification.live import live_vendor
from tests.verification.test_review import BILL, NEW_ZIP, WITH_OPERATOR

DISMISS: Final = {"decision": "dismiss", "reason": "case 7"}
ACCEPT: Final = {
    "decision": "accept_zip",
    "zip": NEW_ZIP,
    "document": BILL.document,
    "reason": BILL.reason,
}


@each_engine
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("decisions", ["dd", "da", "ad", "aa"])
def test_one_of_two_concurrent_reviewers_decides(stage: Stage, decisions: str, mode: Mode) -> None:
    """The other finds no such buyer in the queue, and the audit has only the one decision."""
    vendor = stage.insider(zip_sources=WITH_OPERATOR)
    room, who = stage.opened.buyers, replace(vendor.principal, mode=mode)
    if mode is Mode.LIVE:
        cbid = vendor.verify(vendor.part("verified"), "10002").cbid
    else:
        asked = BuyerVerificationRequest(
            provider_identity_session_id="test_zip_mismatch", shipping_zip="94105", test_mode=True
        )
        cbid = stage.do(verifying.verify(room, who, asked)).cbid

    async def decide(number: int, decision: str) -> VerifyResult:
        own = replace(who, key_id=f"key_{number}")
        if decision == "d":
            return await review.dismiss(room, own, cbid, "case 7")
        return await review.accept(room, own, cbid, AcceptedZip(NEW_ZIP, "a bill", "case 7"))

    async def at_once() -> list[VerifyResult | BaseException]:
        each = (decide(*one) for one in enumerate(decisions))
        return await asyncio.gather(*each, return_exceptions=True)

    said = sorted(getattr(one, "code", "decided") for one in stage.do(at_once()))
    assert said == ["decided", "not_found"]
    noted = stage.do(admin.audit_log(room, cbid))
    assert len([one for one in noted if one.action.startswith("buyer_")]) == 1


@pytest.mark.postgres
def test_one_of_two_concurrent_servers_decides(
    postgres_server: postgres.PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Over one database: *dismiss* at one and *accept* at the other are not both 200."""
    own = another_deployment(tmp_path_factory.mktemp("two") / "data", postgres_server)
    with ExitStack() as stack:
        servers = [stack.enter_context(running_server(own)) for _ in range(2)]
        operator = stack.enter_context(Operator(own))
        played = stack.enter_context(playing("stripe"))
        vendor = stack.enter_context(
            live_vendor(operator, servers[0], played, zip_sources=WITH_OPERATOR)
        )
        scopes = [Scope.BUYERS_REVIEW]
        tokens = [operator.key(vendor.account_id, "live", scopes=scopes).token for _ in range(2)]
        clients = [
            stack.enter_context(make_client(server, token))
            for server, token in zip(servers, tokens, strict=True)
        ]
        threads = stack.enter_context(ThreadPoolExecutor(2))
        for number in range(4):
            cbid = vendor.verify(played.part("verified", number), "10002").json()["cbid"]
            path = f"/v1/buyers/{cbid}/review"
            with operator.acts_held():
                sent = [
                    threads.submit(client.post, path, json=body, headers={"Idempotency-Key": key})
                    for client, body, key in zip(
                        clients, (DISMISS, ACCEPT), (f"a-{number}", f"b-{number}"), strict=True
                    )
                ]
                _until_both_wait(operator)
            answers = sorted((one.result().status_code, one.result().text) for one in sent)
            assert [status for status, _ in answers] == [200, 404], answers
            assert "not in the review queue" in answers[1][1]
            if '"verified"' in answers[0][1]:
                break  # The sessions are of one person, who waits for no decision any more.


def _until_both_wait(operator: Operator) -> None:
    """Return when two connections wait for a lock: one for the acts' table, one for the buyer."""
    query = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    while len(operator.rows(f"{query} AND datname = current_database()")) < 2:
        time.sleep(0.01)
