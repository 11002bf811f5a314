"""The effects of a run on requests: on one of one account, in test mode, while it lasts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from countersign.base.snapshot import STALENESS_SECONDS
from countersign.base.values import timed_id
from countersign.operate import bootstrap
from countersign_conformance import watch as conformance_watch
from countersign_conformance.kit import watch_vendors
from countersign_conformance.model import RUN, Observation, Provocation, Run
from countersign_conformance.store import RunStore
from tests.http.backstage import Operator, Vendor, make_client, notice_file
from tests.http.calls import acknowledge, refusal, verify
from tests.sandbox.calls import ZIP, buyer, clear, events, ok, order, status
from tests.support.service import Deployment, Server, running_server

pytestmark = [pytest.mark.long, pytest.mark.one_engine]

HOLD = timedelta(seconds=1)
A_WHILE = timedelta(minutes=5)


@pytest.fixture
def vendor(operator: Operator, server: Server) -> Iterator[Vendor]:
    """Give an account of this test alone."""
    with operator.vendor(server) as made:
        yield made


@pytest.fixture
def other(operator: Operator, server: Server) -> Iterator[Vendor]:
    """Give a second account."""
    with operator.vendor(server) as made:
        yield made


@contextmanager
def under_a_run(
    operator: Operator,
    account_id: str,
    armed: Provocation | None = None,
    lasts: timedelta = A_WHILE,
) -> Iterator[Run]:
    """Begin a run as the command does, and let every server hear of it."""
    now = datetime.now(UTC)

    async def begin(opened: bootstrap.Deployment) -> Run:
        run = Run(
            id=timed_id(RUN, opened.clock.time_ns(), opened.access.entropy(8)),
            account_id=account_id,
            started_at=now,
            ends_at=now + lasts,
            active_until=now + lasts,
            hold=HOLD,
            armed=armed,
        )
        assert await RunStore(opened.database).begin(run)
        return run

    async def end(opened: bootstrap.Deployment) -> None:
        await RunStore(opened.database).prolong(run.id, now, datetime.now(UTC))

    run = operator.act(begin)
    wait(operator)
    try:
        yield run
    finally:
        operator.act(end)


def wait(operator: Operator, seconds: float = STALENESS_SECONDS) -> None:
    """Let servers forget cached state."""

    async def work(_: bootstrap.Deployment) -> None:
        await asyncio.sleep(seconds)

    operator.act(work)


def seen(operator: Operator, run: Run) -> list[dict[str, Any]]:
    """The observations of a run, in order."""
    rows = operator.rows(
        "SELECT seen FROM conformance_observations WHERE run_id = :run ORDER BY id", run=run.id
    )
    return [json.loads(row["seen"]) for row in rows]


def armed(operator: Operator, run: Run) -> str | None:
    (row,) = operator.rows("SELECT armed FROM conformance_runs WHERE id = :run", run=run.id)
    found: str | None = row["armed"]
    return found


def test_a_retry_does_not_trigger_a_first_requests_provocation(
    operator: Operator, vendor: Vendor
) -> None:
    def act(key: str) -> httpx2.Response:
        return acknowledge(vendor.test, headers={"Idempotency-Key": key})

    first = ok(act("before"))
    with under_a_run(operator, vendor.account_id, Provocation.ACKNOWLEDGMENT_REFUSED):
        assert ok(act("before")) == first
        assert refusal(act("new")) == (409, "notice_version_mismatch")


def test_an_acknowledgment_is_refused_once_without_a_trace(
    operator: Operator, vendor: Vendor
) -> None:
    """The second one is accepted; nothing in the response gives the provocation away."""
    with under_a_run(operator, vendor.account_id, Provocation.ACKNOWLEDGMENT_REFUSED) as run:
        first = acknowledge(vendor.test, session_id="order-1")
        assert refusal(first) == (409, "notice_version_mismatch")
        assert not [name for name in first.headers if "provoke" in name or "conform" in name]
        assert vendor.test.get("/v1/acknowledgments").json()["data"] == []
        ok(acknowledge(vendor.test, session_id="order-1"))
        assert [one.get("provoked") for one in seen(operator, run)] == [
            None,
            "acknowledgment_refused",
            None,
            None,
            None,
        ]


def test_the_provider_is_down_once_and_a_retry_is_safe(operator: Operator, vendor: Vendor) -> None:
    """With a time to come back, as live verification says it."""
    with under_a_run(operator, vendor.account_id, Provocation.PROVIDER_UNAVAILABLE):
        headers = {"Idempotency-Key": "one"}
        body = {"shipping_zip": ZIP, "test_mode": True}
        first = vendor.test.post("/v1/buyers/verify", json=body, headers=headers)
        assert refusal(first) == (503, "provider_unavailable")
        assert first.headers["retry-after"] == "2"
        again = vendor.test.post("/v1/buyers/verify", json=body, headers=headers)
        assert ok(again)["status"] == "verified"


def test_an_answer_is_withheld_after_the_act_was_done(operator: Operator, vendor: Vendor) -> None:
    """A client that hangs up and asks again with the same key gets it; it is stored once."""
    body = {"initials_per_line": ["JD"] * 4, "session_id": "order-1"}
    headers = {"Idempotency-Key": "one"}
    path = "/v1/notices/ab1263/acknowledge"
    with under_a_run(operator, vendor.account_id, Provocation.ANSWER_WITHHELD):
        with pytest.raises(httpx2.TimeoutException):
            vendor.test.post(path, json=body, headers=headers, timeout=0.5)
        again = vendor.test.post(path, json=body, headers=headers)
        assert again.headers["idempotent-replayed"] == "true"
        (stored,) = vendor.test.get("/v1/acknowledgments").json()["data"]
        assert stored["ack_id"] == again.json()["ack_id"]


def test_a_client_that_outwaits_a_withheld_answer_has_to_ask_again(
    operator: Operator, vendor: Vendor
) -> None:
    """The answer does not say whether it was stored; it was."""
    with under_a_run(operator, vendor.account_id, Provocation.ANSWER_WITHHELD):
        answer = acknowledge(vendor.test, headers={"Idempotency-Key": "one"})
        assert refusal(answer) == (503, "outcome_unknown")
        assert answer.headers["retry-after"] == "1"
        assert len(vendor.test.get("/v1/acknowledgments").json()["data"]) == 1


def test_an_order_is_not_cleared_once_by_a_real_decision(
    operator: Operator, vendor: Vendor
) -> None:
    """It can be read back and takes no reports. The buyer stays as it is, and no event is made."""
    cbid = buyer(vendor.test)
    asked = order(vendor.test, cbid)
    before = status(vendor.test, cbid)

    said_before = events(vendor.test, "buyer.requires_input", "buyer.verified")
    with under_a_run(operator, vendor.account_id, Provocation.ORDER_NOT_CLEARED) as run:
        refused = clear(vendor.test, asked)
        assert (refused["cleared"], refused["reasons"]) == (False, ["buyer_requires_input"])
        path = f"/v1/clearances/{refused['clearance_id']}"
        assert ok(vendor.test.get(path))["cleared"] is False
        report = vendor.test.post(f"{path}/fulfilment", json={"carrier": "UPS"})
        assert refusal(report) == (409, "clearance_not_granted")
        assert status(vendor.test, cbid) == before
        assert events(vendor.test, "buyer.requires_input", "buyer.verified") == said_before
        assert clear(vendor.test, asked)["cleared"] is True
        found = [one for one in seen(operator, run) if one["operation"] == "clearOrder"]
    assert [one["cleared"] for one in found] == [False, True]
    assert [one.get("provoked") for one in found] == ["order_not_cleared", None]


def test_an_order_that_would_not_be_cleared_anyway_is_not_provoked(
    operator: Operator, vendor: Vendor
) -> None:
    """It does not verify an unverified buyer either."""
    cbid = buyer(vendor.test, "test_failed")
    with under_a_run(operator, vendor.account_id, Provocation.ORDER_NOT_CLEARED) as run:
        for who in (cbid, "nobody"):
            assert clear(vendor.test, order(vendor.test, cbid) | {"cbid": who})["cleared"] is False
        assert armed(operator, run) == "order_not_cleared"
    assert status(vendor.test, cbid)["status"] == "failed"


@pytest.mark.parametrize("provocation", Provocation)
def test_other_accounts_and_live_mode_notice_nothing(
    operator: Operator, vendor: Vendor, other: Vendor, provocation: Provocation
) -> None:
    """Nothing of theirs is provoked or observed."""
    operator.publish(notice_file(f"untouched-{provocation}".replace("_", "-"), "2026-01-01"))
    name = f"untouched-{provocation}".replace("_", "-")
    with under_a_run(operator, vendor.account_id, provocation) as run:
        ok(acknowledge(vendor.live, notice_id=name, session_id="order-1"))
        assert refusal(vendor.live.get("/v1/buyers/cbid_none/status")) == (404, "not_found")
        asked = order(other.test, buyer(other.test))
        assert clear(other.test, asked)["cleared"] is True
        assert seen(operator, run) == []
        assert armed(operator, run) == provocation


def test_a_request_refused_earlier_does_not_use_up_the_provocation(
    operator: Operator, vendor: Vendor
) -> None:
    """It is kept for a request that reaches its operation."""
    with under_a_run(operator, vendor.account_id, Provocation.ACKNOWLEDGMENT_REFUSED) as run:
        path = "/v1/notices/ab1263/acknowledge"
        assert refusal(vendor.test.post(path, content=b"{}"))[0] == 415
        assert armed(operator, run) == "acknowledgment_refused"
        (one,) = seen(operator, run)
        assert (one["status"], one["code"]) == (415, "unsupported_media_type")


def test_when_a_run_is_over_requests_are_answered_as_ever(
    operator: Operator, vendor: Vendor
) -> None:
    """Also if its command was killed before it removed the provocation."""
    lasts = timedelta(seconds=1)
    armed_so = Provocation.ACKNOWLEDGMENT_REFUSED
    with under_a_run(operator, vendor.account_id, armed_so, lasts) as run:
        wait(operator, 1)
        ok(acknowledge(vendor.test))
        assert armed(operator, run) == "acknowledgment_refused"
        assert seen(operator, run) == []


@contextmanager
def servers(deployment: Deployment, server: Server) -> Iterator[Sequence[Server]]:
    """Run a second server, where several can serve one database."""
    with ExitStack() as stack:
        running = [server]
        if "DATABASE_URL" in deployment.settings:
            running.append(stack.enter_context(running_server(deployment)))
        yield running


def test_one_of_many_concurrent_requests_is_provoked_on_however_many_servers(
    operator: Operator, deployment: Deployment, server: Server
) -> None:
    """All the others are answered as ever, and each is written down once."""
    account_id = operator.account()
    key = operator.key(account_id).token
    body = {"initials_per_line": ["JD"] * 4}
    path = "/v1/notices/ab1263/acknowledge"
    with servers(deployment, server) as running, ExitStack() as stack:
        clients = [stack.enter_context(make_client(one, key)) for one in running]
        with (
            under_a_run(operator, account_id, Provocation.ACKNOWLEDGMENT_REFUSED) as run,
            ThreadPoolExecutor(8) as pool,
        ):
            posted = [
                pool.submit(clients[n % len(clients)].post, path, json=body) for n in range(16)
            ]
            statuses = sorted(future.result().status_code for future in posted)
            assert statuses == [200] * 15 + [409]
            assert len(seen(operator, run)) == 16


def test_no_personal_data_and_no_secret_is_written(operator: Operator, vendor: Vendor) -> None:
    """A vendor's values are recognised by keyed digests alone."""
    with under_a_run(operator, vendor.account_id) as run:
        cbid = buyer(vendor.test, "the-session-of-jane")
        headers = {"Idempotency-Key": "key-of-jane"}
        answer = acknowledge(
            vendor.test, session_id="order-of-jane", ip="203.0.113.77", cbid=cbid, headers=headers
        )
        asked = {"ack_id": ok(answer)["ack_id"], "cbid": cbid, "session_id": "order-of-jane"}
        decision = clear(vendor.test, asked | {"shipping_zip": ZIP})
        report = {"carrier": "UPS", "tracking_number": "1Z-of-jane"}
        path = f"/v1/clearances/{decision['clearance_id']}/fulfilment"
        ok(vendor.test.post(path, json=report))
        written = json.dumps(seen(operator, run))
    for word in ("jane", "JD", ZIP, "203.0.113.77", cbid, asked["ack_id"], "1Z-", "csign_"):
        assert word not in written
    assert decision["clearance_id"] not in written
    assert len(json.loads(written)) == 5


def test_a_run_has_limited_room(
    operator: Operator, vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vendor's load test does not fill the disk."""
    monkeypatch.setattr(conformance_watch, "OBSERVATIONS_MAX", 3)
    with under_a_run(operator, vendor.account_id) as run:

        async def work(opened: bootstrap.Deployment) -> None:
            watch = watch_vendors(opened)
            one = Observation(operation="getNotice", at=watch.now(), status=200)
            for _ in range(10):
                await watch.note(run, one)

        operator.act(work)
        assert len(seen(operator, run)) == 3


def test_stored_answers_are_repeated_and_not_provoked(operator: Operator, vendor: Vendor) -> None:
    """A repeated request is no new act."""
    headers = {"Idempotency-Key": "one"}
    first = ok(verify(vendor.test, shipping_zip=ZIP))
    assert first["status"] == "verified"
    body = {"initials_per_line": ["JD"] * 4}
    path = "/v1/notices/ab1263/acknowledge"
    ok(vendor.test.post(path, json=body, headers=headers))
    with under_a_run(operator, vendor.account_id, Provocation.ACKNOWLEDGMENT_REFUSED) as run:
        ok(vendor.test.post(path, json=body, headers=headers))
        (one,) = seen(operator, run)
        assert one["replayed"] is True
        assert armed(operator, run) == "acknowledgment_refused"


def test_the_same_report_about_two_orders_is_two_acts(operator: Operator, vendor: Vendor) -> None:
    """A carrier and a number that a shop always sends are not done again because of a message."""
    granted = []
    for number in range(2):
        asked = order(vendor.test, buyer(vendor.test), f"order-{number}")
        granted.append(clear(vendor.test, asked)["clearance_id"])
    with under_a_run(operator, vendor.account_id, None) as run:
        for clearance_id in granted:
            path = f"/v1/clearances/{clearance_id}/fulfilment"
            ok(vendor.test.post(path, json={"carrier": "UPS"}))
        first, second = (one["body"] for one in seen(operator, run))
    assert first != second
