"""`countersign test …` while a server runs, on each engine: the same acts as over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from countersign.base.values import rfc3339
from tests.cli.conftest import Bench, served  # noqa: F401 - fixtures
from tests.http.calls import refusal, verify
from tests.sandbox.calls import ZIP, buyer, clock, events, ok, status, time
from tests.support.service import Server

pytestmark = pytest.mark.one_engine


@dataclass(frozen=True)
class Shop:
    """An account, its test key, and the commands."""

    bench: Bench
    account: str
    client: httpx2.Client

    def read(self, *words: str) -> Any:  # noqa: ANN401 - any JSON
        return self.bench.read("test", *words)


@pytest.fixture
def shop(served: tuple[Bench, Server], request: pytest.FixtureRequest) -> Iterator[Shop]:  # noqa: F811 - fixture
    """Give an account of this test alone on a running server."""
    bench, server = served
    account = bench.account(request.node.name)
    with server.client(bench.key(account)) as client:
        yield Shop(bench, account, client)


def test_the_clock_is_shown_advanced_and_reset(shop: Shop) -> None:
    """The server uses it as soon as the command is done."""
    cbid = buyer(shop.client)
    assert shop.read("clock", "show", shop.account)["ahead_seconds"] == 0
    ahead = shop.read("clock", "advance", shop.account, "--by", "365d")
    assert ahead["ahead_seconds"] == 365 * 86400
    assert clock(shop.client)["ahead_seconds"] == 365 * 86400
    assert status(shop.client, cbid)["status"] == "expired"
    assert [event["data"]["cbid"] for event in events(shop.client, "buyer.expired")] == [cbid]
    wanted = rfc3339(time(ahead["now"]) + timedelta(days=300))
    later = shop.read("clock", "advance", shop.account, "--to", wanted)
    assert later["now"] == wanted
    assert time(later["real_time"]) < time(later["now"])
    assert shop.read("clock", "reset", shop.account)["ahead_seconds"] == 0
    assert status(shop.client, cbid)["status"] == "verified"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--by", "4000d"), "invalid_request"),
        (("--to", "2020-01-01T00:00:00Z"), "invalid_request"),
        (("--to", "tomorrow"), "invalid_request"),
        ((), "invalid_request"),
        (("--by", "1d", "--to", "2999-01-01T00:00:00Z"), "invalid_request"),
    ],
)
def test_a_clock_is_not_moved_wrongly(shop: Shop, words: tuple[str, ...], code: str) -> None:
    """The command says why, and the clock stays."""
    said = shop.bench.refused("test", "clock", "advance", shop.account, *words, "--json")
    assert json.loads(said.splitlines()[-1])["error"]["code"] == code
    assert clock(shop.client)["ahead_seconds"] == 0


def test_a_buyer_is_put_in_a_state(shop: Shop) -> None:
    """With its reasons and its event; only in the sandbox of the account that is named."""
    cbid = buyer(shop.client)
    answer = shop.read(
        *("buyer", "set", shop.account, cbid, "failed"),
        *("--reason", "zip_mismatch", "--reason", "document_expired"),
    )
    assert answer["reasons"] == ["zip_mismatch", "document_expired"]
    assert status(shop.client, cbid)["status"] == "failed"
    assert len(events(shop.client, "buyer.failed")) == 1
    stranger = shop.bench.account(f"stranger to {shop.account}")
    for account, name in ((stranger, cbid), (shop.account, "cbid_00000000000000000000000000")):
        said = shop.bench.refused("test", "buyer", "set", account, name, "revoked", "--json")
        assert json.loads(said)["error"]["code"] == "not_found"
    assert status(shop.client, cbid)["status"] == "failed"


def test_the_operators_view_of_a_buyer_goes_by_its_test_clock(shop: Shop) -> None:
    """`buyers show` has the account's view, and so does the reinstating command."""
    cbid = buyer(shop.client)
    shop.read("clock", "advance", shop.account, "--by", "366d")
    assert shop.bench.read("buyers", "show", cbid)["status"] == "expired"
    shop.bench.run("buyers", "revoke", cbid, "--reason", "case 7", "--yes")
    reinstated = shop.bench.read("buyers", "reinstate", cbid, "--reason", "a mistake")
    assert reinstated == {"cbid": cbid, "livemode": False, "status": "expired"}


def test_an_event_is_triggered(shop: Shop) -> None:
    """Its id is printed, and the account reads it."""
    done = shop.bench.run("test", "trigger", shop.account, "clearance.closed")
    (event,) = events(shop.client)
    assert done.stdout == event["id"] + "\n"
    assert event["triggered"] is True
    cbid = buyer(shop.client)
    answer = shop.read("trigger", shop.account, "buyer.revoked", "--object", cbid)
    assert answer["data"] == {"cbid": cbid}
    assert status(shop.client, cbid)["status"] == "verified"


def test_faults_are_planned_shown_and_cleared(shop: Shop) -> None:
    """The next verification meets them."""

    def judge() -> httpx2.Response:
        return verify(shop.client, provider_identity_session_id="someone", shipping_zip=ZIP)

    planned = shop.read("fault", "set", shop.account, "misconfigured", "--calls", "2")
    assert planned == {"fault": "misconfigured", "calls": 2, "delay_seconds": 0}
    assert refusal(judge()) == (409, "verification_misconfigured")
    assert shop.read("fault", "show", shop.account)["calls"] == 1
    none = {"fault": None, "calls": None, "delay_seconds": None}
    assert shop.read("fault", "clear", shop.account) == none
    assert ok(judge())["status"] == "verified"
    said = shop.bench.refused("test", "fault", "set", shop.account, "timeout", "--delay", "16s")
    assert "15" in said
    assert "(--delay)" in said


def test_an_account_that_does_not_exist_is_named(shop: Shop) -> None:
    """By every command of the group."""
    for words in (
        ("clock", "show", "nobody"),
        ("clock", "advance", "nobody", "--by", "1d"),
        ("clock", "reset", "nobody"),
        ("buyer", "set", "nobody", "cbid_test_00000000000000000000000000", "revoked"),
        ("trigger", "nobody", "buyer.revoked"),
        ("fault", "show", "nobody"),
        ("fault", "set", "nobody", "timeout"),
        ("fault", "clear", "nobody"),
    ):
        assert "account_not_found" in shop.bench.refused("test", *words)
