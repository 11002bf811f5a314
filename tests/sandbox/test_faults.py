"""Planned faults: as many verifications as planned fail, with the answers of live verification."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from countersign.base.errors import ProviderSessionNotBound, Refusal
from countersign.core.buyers.decision import refuse_unusable
from countersign.core.buyers.sandbox import OUTCOMES, Fault
from countersign.core.gate.act import Writing
from countersign.core.gate.route import error_reply
from countersign.core.sandbox.routes import Sandbox, plan_test_fault
from countersign.core.sandbox.schemas import FaultRequest
from countersign.identity.model import Finding, ProviderResult
from countersign.operate.bootstrap import Deployment
from tests.http.backstage import Operator, Vendor
from tests.http.calls import refusal, verify
from tests.sandbox.calls import ZIP, buyer, events, ok

pytestmark = pytest.mark.one_engine

PATH = "/v1/test/fault"
# Status, code and Retry-After of each.
SAID = {
    "timeout": (503, "provider_unavailable", "5"),
    "rate_limited": (503, "provider_unavailable", "30"),
    "server_error": (503, "provider_unavailable", "5"),
    "unintelligible": (503, "provider_unavailable", "5"),
    "session_not_found": (422, "provider_session_not_found", None),
    "session_not_bound": (422, "provider_session_not_bound", None),
    "misconfigured": (409, "verification_misconfigured", None),
}
NONE = {"fault": None, "calls": None, "delay_seconds": None}


def plan(client: httpx2.Client, fault: str, **more: int) -> dict[str, Any]:
    return ok(client.post(PATH, json={"fault": fault} | more))


def judge(client: httpx2.Client, **more: Any) -> httpx2.Response:  # noqa: ANN401 - any field
    return verify(client, provider_identity_session_id="someone", shipping_zip=ZIP, **more)


def live_refusal(fault: Fault) -> Refusal:
    """The error of live verification for an adapter's result of this fault."""
    outcome: Finding | None = OUTCOMES.get(fault)
    if outcome is None:
        return ProviderSessionNotBound()
    with pytest.raises(Refusal) as raised:
        refuse_unusable(ProviderResult(provider="stripe", session_id="vs_1", outcome=outcome))
    return raised.value


def test_every_fault_is_here() -> None:
    """A new one needs a line above."""
    assert set(SAID) == {fault.value for fault in Fault}


@pytest.mark.parametrize("fault", SAID)
def test_a_fault_answers_as_live_verification_does(client: httpx2.Client, fault: str) -> None:
    """Body byte for byte, status, code, when to retry; nothing is written, and a retry is safe."""
    assert plan(client, fault, calls=1) == {"fault": fault, "calls": 1, "delay_seconds": 0}
    answer = judge(client)
    status, code, retry_after = SAID[fault]
    assert refusal(answer) == (status, code)
    assert answer.headers.get("retry-after") == retry_after
    assert answer.content == error_reply(live_refusal(Fault(fault)), "").body
    assert events(client) == []
    assert ok(judge(client))["status"] == "verified"
    assert ok(client.get(PATH)) == NONE


def test_exactly_as_many_calls_fail_as_planned_under_concurrency(client: httpx2.Client) -> None:
    """Exactly as many."""
    plan(client, "server_error", calls=7)
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: judge(client).status_code, range(20)))
    assert Counter(answers) == {503: 7, 200: 13}
    assert ok(client.get(PATH)) == NONE


def test_without_a_number_all_calls_fail_until_it_is_cleared(client: httpx2.Client) -> None:
    """And the last plan counts."""
    plan(client, "timeout", calls=2)
    plan(client, "misconfigured")
    assert [judge(client).status_code for _ in range(5)] == [409] * 5
    assert ok(client.get(PATH)) == {"fault": "misconfigured", "calls": None, "delay_seconds": 0}
    assert ok(client.delete(PATH)) == NONE
    assert judge(client).status_code == 200


def test_the_remaining_faults_are_shown(client: httpx2.Client) -> None:
    """After each call that met it."""
    plan(client, "timeout", calls=3)
    judge(client)
    assert ok(client.get(PATH))["calls"] == 2


def test_only_verifications_that_would_be_judged_meet_it(client: httpx2.Client) -> None:
    """A kept answer, a status and a malformed request take none of the calls."""
    headers = {"Idempotency-Key": "judged"}
    body = {"test_mode": True, "provider_identity_session_id": "someone", "shipping_zip": ZIP}
    first = client.post("/v1/buyers/verify", json=body, headers=headers)
    plan(client, "timeout", calls=1)
    again = client.post("/v1/buyers/verify", json=body, headers=headers)
    assert again.content == first.content
    assert client.get(f"/v1/buyers/{first.json()['cbid']}/status").status_code == 200
    assert judge(client, surprise=1).status_code == 400
    assert client.post("/v1/buyers/verify", json={}).status_code == 403
    assert ok(client.get(PATH))["calls"] == 1
    assert judge(client).status_code == 503


def test_a_retry_with_its_idempotency_key_succeeds_after_the_fault(client: httpx2.Client) -> None:
    """Failures are not kept."""
    plan(client, "timeout", calls=1)
    body = {"test_mode": True, "provider_identity_session_id": "someone", "shipping_zip": ZIP}
    headers = {"Idempotency-Key": "retried"}
    answers = [client.post("/v1/buyers/verify", json=body, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [503, 200]
    assert "idempotent-replayed" not in answers[1].headers


def test_no_other_caller_meets_the_fault(vendor: Vendor, other: Vendor) -> None:
    """Neither another account nor this account's live mode."""
    plan(vendor.test, "misconfigured")
    assert buyer(other.test)
    assert ok(other.test.get(PATH)) == NONE
    fields = {"provider_identity_session_id": "vs_1", "shipping_zip": ZIP}
    answer = vendor.live.post("/v1/buyers/verify", json=fields)
    assert refusal(answer) == (409, "verification_not_configured")


def test_a_slow_fault_outlasts_a_client_that_does_not_wait(client: httpx2.Client) -> None:
    """The answer comes after the delay; the client's own time-out is earlier."""
    plan(client, "timeout", delay_seconds=2)
    body = {"test_mode": True, "provider_identity_session_id": "someone"}
    with pytest.raises(httpx2.ReadTimeout):
        client.post("/v1/buyers/verify", json=body, timeout=0.5)
    assert judge(client).status_code == 503


def test_another_processs_plan_applies_at_once(
    operator: Operator, vendor: Vendor, client: httpx2.Client
) -> None:
    """The command, or another server."""
    wanted = FaultRequest(fault=Fault.SESSION_NOT_FOUND, calls=1)

    async def set_(opened: Deployment) -> None:
        sandbox, write = Sandbox(vendor.account_id), Writing(opened.access.database)
        await plan_test_fault(opened.sandbox, sandbox, wanted, write)

    for _ in range(3):
        assert judge(client).status_code == 200
        operator.act(set_)
        assert judge(client).status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"fault": "fire"},
        {"fault": "timeout", "calls": 0},
        {"fault": "timeout", "calls": 1001},
        {"fault": "timeout", "delay_seconds": 16},
        {"fault": "timeout", "delay_seconds": -1},
    ],
)
def test_invalid_plans_are_refused(client: httpx2.Client, body: dict[str, object]) -> None:
    """The earlier plan stays."""
    plan(client, "timeout", calls=5)
    assert refusal(client.post(PATH, json=body)) == (400, "invalid_request")
    assert ok(client.get(PATH))["calls"] == 5
