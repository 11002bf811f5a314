"""The test clock of an account: every judgement about time in its sandbox uses it."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from countersign.core.access.clocks import AHEAD_MAX
from countersign.core.access.key import Scope
from countersign.core.gate.act import Writing
from countersign.core.sandbox.routes import Sandbox, advance_test_clock, reset_test_clock
from countersign.core.sandbox.schemas import ClockAdvance
from countersign.operate.bootstrap import Deployment
from tests.http.backstage import Operator, Vendor, make_client, notice_file
from tests.http.calls import acknowledge, acknowledged, refusal, verify
from tests.sandbox.calls import (
    DAY,
    advance,
    buyer,
    clear,
    clock,
    events,
    ok,
    order,
    status,
    time,
)
from tests.support.service import Server

YEAR = 365 * DAY
ROUTES = [
    ("GET", "/v1/test/clock"),
    ("POST", "/v1/test/clock/advance"),
    ("DELETE", "/v1/test/clock"),
    ("POST", "/v1/test/buyers"),
    ("POST", "/v1/test/events"),
    ("GET", "/v1/test/fault"),
    ("POST", "/v1/test/fault"),
    ("DELETE", "/v1/test/fault"),
]


def claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    found: dict[str, Any] = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def test_a_clock_is_read_advanced_and_reset(client: httpx2.Client) -> None:
    """Advances add up, and a reset is real time again."""
    assert clock(client)["ahead_seconds"] == 0
    assert advance(client, seconds=DAY)["ahead_seconds"] == DAY
    ahead = advance(client, seconds=30)
    assert ahead["ahead_seconds"] == DAY + 30
    shown = time(ahead["now"]) - time(ahead["real_time"])
    assert shown == timedelta(seconds=DAY + 30)
    later = time(ahead["now"]) + timedelta(days=400)
    assert time(advance(client, to=later.isoformat())["now"]) == later
    assert clock(client)["ahead_seconds"] > YEAR
    assert ok(client.delete("/v1/test/clock"))["ahead_seconds"] == 0
    assert clock(client)["ahead_seconds"] == 0


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"seconds": 1, "to": "2999-01-01T00:00:00Z"},
        {"seconds": -1},
        {"seconds": int(AHEAD_MAX.total_seconds()) + 1},
        {"to": "2020-01-01T00:00:00Z"},
        {"to": "9999-12-31T23:59:59Z"},
        {"to": "0001-01-01T00:00:00+10:00"},
        {"to": "tomorrow"},
        {"seconds": 1.5},
        {"minutes": 1},
    ],
)
def test_a_clock_never_goes_back_nor_too_far(
    client: httpx2.Client, body: dict[str, object]
) -> None:
    """A refused change leaves the clock where it is."""
    answer = client.post("/v1/test/clock/advance", json=body)
    assert refusal(answer) == (400, "invalid_request")
    assert clock(client)["ahead_seconds"] == 0


def test_advances_do_not_add_up_beyond_the_limit(client: httpx2.Client) -> None:
    """However many they are."""
    advance(client, seconds=int(AHEAD_MAX.total_seconds()))
    answer = client.post("/v1/test/clock/advance", json={"seconds": 1})
    assert refusal(answer) == (400, "invalid_request")


def test_a_buyer_expires_by_the_clock_with_one_event(client: httpx2.Client) -> None:
    """The event is there with the answer to the advance, at its real time."""
    cbid = buyer(client)
    expires_at = status(client, cbid)["expires_at"]
    advance(client, seconds=YEAR - 60)
    assert status(client, cbid)["status"] == "verified"
    assert events(client, "buyer.expired") == []
    advance(client, to=expires_at)
    assert status(client, cbid)["status"] == "expired"
    again = verify(client, provider_identity_session_id="someone", shipping_zip="94105")
    assert ok(again)["status"] == "expired"
    (event,) = events(client, "buyer.expired")
    assert event["data"] == {"cbid": cbid}
    assert event["livemode"] is False
    assert "triggered" not in event
    assert time(event["created_at"]) < time(expires_at)
    advance(client, seconds=YEAR)
    assert len(events(client, "buyer.expired")) == 1


def test_a_buyer_is_reminded_of_by_the_clock(client: httpx2.Client) -> None:
    """Thirty days before the end; a jump past both writes the reminder first."""
    first = buyer(client)
    advance(client, seconds=336 * DAY)
    assert status(client, first)["status"] == "verified"
    assert [event["data"] for event in events(client, "buyer.expiring")] == [{"cbid": first}]
    second = buyer(client, "another")
    advance(client, seconds=YEAR)
    of_second = [event["type"] for event in events(client) if event["data"] == {"cbid": second}]
    assert of_second == ["buyer.verified", "buyer.expiring", "buyer.expired"]
    assert len(events(client, "buyer.expiring")) == 2


def test_a_buyer_verified_by_an_advanced_clock_stays_verified_by_it(client: httpx2.Client) -> None:
    """It is verified from the clock's time, for a year of it."""
    ahead = advance(client, seconds=2 * YEAR)
    found = status(client, buyer(client))
    assert found["status"] == "verified"
    assert time(found["verified_at"]) >= time(ahead["now"])
    assert time(found["expires_at"]) - time(found["verified_at"]) == timedelta(days=365)


def test_a_session_that_expired_before_is_reported_as_expired(client: httpx2.Client) -> None:
    """Also if its expiry by the clock is later than the real time."""
    advance(client, seconds=2 * YEAR)
    cbid = buyer(client, "test_expired")
    assert status(client, cbid)["status"] == "expired"
    (event,) = events(client)
    assert event["type"] == "buyer.expired"


def test_a_notice_comes_into_force_by_the_clock_of_the_account_that_asks(
    operator: Operator, vendor: Vendor, other: Vendor
) -> None:
    """Served, listed, acknowledged, and refused where the words are old; for this account alone."""
    began = time(clock(vendor.test)["real_time"])
    day = (began + timedelta(days=40)).date().isoformat()
    name = f"flips-{vendor.account_id[-8:]}"
    operator.publish(
        notice_file(name, "1", lines=2), notice_file(name, "2", lines=3, effective_from=day)
    )
    path = f"/v1/notices/{name}"

    def version(asking: httpx2.Client) -> str:
        found: str = ok(asking.get(path))["version"]
        return found

    def states(asking: httpx2.Client) -> list[str]:
        return [row["status"] for row in ok(asking.get(f"{path}/versions"))["data"]]

    assert version(vendor.test) == "1"
    assert states(vendor.test) == ["scheduled", "in_force"]
    advance(vendor.test, seconds=41 * DAY)
    assert version(vendor.test) == "2"
    assert states(vendor.test) == ["in_force", "superseded"]
    listed = {
        row["notice_id"]: row["version"] for row in ok(vendor.test.get("/v1/notices"))["data"]
    }
    assert listed[name] == "2"
    stale = acknowledge(
        vendor.test, notice_id=name, notice_version="1", initials_per_line=["A", "B"]
    )
    assert refusal(stale) == (409, "notice_version_mismatch")
    assert acknowledged(vendor.test, notice_id=name)["notice_version"] == "2"
    for asking in (vendor.live, other.test, other.live):
        assert version(asking) == "1"
        assert states(asking) == ["scheduled", "in_force"]
    ok(vendor.test.delete("/v1/test/clock"))
    assert version(vendor.test) == "1"


def test_a_future_notice_is_in_force_by_the_clock(operator: Operator, vendor: Vendor) -> None:
    """Before that no version is in force, so the refused notice is served now."""
    began = time(clock(vendor.test)["real_time"])
    day = (began + timedelta(days=40)).date().isoformat()
    name = f"comes-{vendor.account_id[-8:]}"
    operator.publish(notice_file(name, "1", effective_from=day))
    assert refusal(vendor.test.get(f"/v1/notices/{name}")) == (409, "notice_not_in_force")
    advance(vendor.test, seconds=DAY)
    assert refusal(vendor.test.get(f"/v1/notices/{name}")) == (409, "notice_not_in_force")
    advance(vendor.test, seconds=41 * DAY)
    assert ok(vendor.test.get(f"/v1/notices/{name}"))["version"] == "1"
    name = f"now-{vendor.account_id[-8:]}"
    operator.publish(notice_file(name, "1"))
    assert ok(vendor.test.get(f"/v1/notices/{name}"))["version"] == "1"
    operator.withdraw(name, "1")
    assert refusal(vendor.test.get(f"/v1/notices/{name}")) == (409, "notice_not_in_force")


def test_an_acknowledgment_ages_by_the_clock(client: httpx2.Client) -> None:
    """One from before the advance is too old; one from after it is new, whatever its real time."""
    cbid = buyer(client)
    old = order(client, cbid, "order-1")
    advance(client, seconds=8 * DAY)
    assert clear(client, old)["reasons"] == ["acknowledgment_too_old"]
    assert clear(client, order(client, cbid, "order-2"))["cleared"] is True


def test_evidence_has_the_real_time_and_the_time_of_the_clock(client: httpx2.Client) -> None:
    """`accepted_at` is never the clock's; without a clock none is mentioned."""
    before = acknowledged(client)
    assert "test_clock" not in before
    ahead = advance(client, seconds=100 * DAY)
    after = acknowledged(client)
    assert time(after["accepted_at"]) < time(ahead["now"]) - timedelta(days=99)
    difference = time(after["test_clock"]) - time(after["accepted_at"])
    assert difference == timedelta(days=100)
    proof = client.get(
        f"/v1/acknowledgments/{after['ack_id']}/proof", headers={"Prefer": "wait=10"}
    )
    assert proof.status_code == 200
    newest = ok(client.get("/v1/acknowledgments"))["data"][0]
    assert newest["test_clock"] == after["test_clock"]
    assert ok(client.get("/v1/acknowledgments", params={"accepted_after": ahead["now"]})) == {
        "data": [],
        "next_cursor": None,
    }


def test_a_clearance_and_its_token_expire_by_the_clock(client: httpx2.Client) -> None:
    """The same one is returned while it is valid; afterwards the order is decided again."""
    advance(client, seconds=10 * DAY)
    asked = order(client, buyer(client))
    first = clear(client, asked)
    assert first["cleared"] is True
    path = f"/v1/clearances/{first['clearance_id']}"
    read = ok(client.get(path))
    assert read["token"] == first["token"]
    assert clear(client, asked) == first
    said = claims(first["token"])
    assert said["test_clock"] - said["iat"] == 10 * DAY
    assert said["exp"] - said["test_clock"] <= DAY
    assert time(read["test_clock"]) - time(read["created_at"]) == timedelta(days=10)
    advance(client, seconds=DAY)
    assert ok(client.get(path))["token"] is None
    second = clear(client, asked)
    assert second["cleared"] is True
    assert second["clearance_id"] != first["clearance_id"]


def test_a_clearance_without_a_clock_mentions_none(client: httpx2.Client) -> None:
    """And its token is not good either."""
    granted = clear(client, order(client, buyer(client)))
    assert "test_clock" not in claims(granted["token"])
    assert "test_clock" not in ok(client.get(f"/v1/clearances/{granted['clearance_id']}"))


def test_a_repeated_advance_moves_the_clock_once(client: httpx2.Client) -> None:
    """A lost answer is fetched again, byte for byte; the window of that is real time."""
    send = {"json": {"seconds": 3 * DAY}, "headers": {"Idempotency-Key": "advance"}}
    first = client.post("/v1/test/clock/advance", **send)  # type: ignore[arg-type]  # both are keywords of it
    again = client.post("/v1/test/clock/advance", **send)  # type: ignore[arg-type]  # both are keywords of it
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    assert clock(client)["ahead_seconds"] == 3 * DAY


def test_zip_codes_are_counted_by_real_time(client: httpx2.Client) -> None:
    """A clock is no way around the limit."""
    fields = {"provider_identity_session_id": "guessed"}
    for code in ("10001", "10002", "10003", "10004", "10005"):
        ok(verify(client, shipping_zip=code, **fields))
    advance(client, seconds=2 * DAY)
    assert refusal(verify(client, shipping_zip="10006", **fields)) == (429, "rate_limited")


def test_no_other_time_moves(vendor: Vendor, other: Vendor) -> None:
    """Neither another account's sandbox nor this account's live mode."""
    cbid = buyer(other.test)
    advance(vendor.test, seconds=3 * YEAR)
    assert clock(other.test)["ahead_seconds"] == 0
    assert status(other.test, cbid)["status"] == "verified"
    assert events(other.test, "buyer.expired") == []
    assert events(vendor.live) == []


def test_another_processs_change_applies_at_once(
    operator: Operator, client: httpx2.Client, vendor: Vendor
) -> None:
    """An advance or a reset answers when every server goes by it."""
    cbid = buyer(client)

    async def ahead(opened: Deployment) -> None:
        sandbox, write = Sandbox(vendor.account_id), Writing(opened.access.database)
        await advance_test_clock(opened.sandbox, sandbox, ClockAdvance(seconds=YEAR), write)

    async def back(opened: Deployment) -> None:
        sandbox, write = Sandbox(vendor.account_id), Writing(opened.access.database)
        await reset_test_clock(opened.sandbox, sandbox, write)

    for _ in range(3):
        assert status(client, cbid)["status"] == "verified"
        operator.act(ahead)
        assert status(client, cbid)["status"] == "expired"
        operator.act(back)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_live_key_has_no_sandbox(vendor: Vendor, method: str, path: str) -> None:
    """The answer says so, whatever it asks for."""
    body: dict[str, str] | None = None if method != "POST" else {}
    answer = vendor.live.request(method, path, json=body)
    assert refusal(answer) == (403, "mode_mismatch")


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_restricted_key_needs_the_scope(
    operator: Operator, server: Server, vendor: Vendor, method: str, path: str
) -> None:
    """`sandbox:manage`, and that is enough."""
    less, enough = operator.keys(
        vendor.account_id, [("test", [Scope.BUYERS_READ]), ("test", [Scope.SANDBOX_MANAGE])]
    )
    body: dict[str, str] | None = None if method != "POST" else {}
    with make_client(server, less.token) as client:
        answer = client.request(method, path, json=body)
        assert refusal(answer) == (403, "forbidden")
        assert 'scope="sandbox:manage"' in answer.headers["www-authenticate"]
    with make_client(server, enough.token) as client:
        assert client.request(method, path, json=body).status_code in {200, 400}
