"""Accounts are renamed, disabled, enabled and closed, next to a running server."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from countersign.core.access.keys import REVOCATION_LAG_SECONDS
from countersign_simulators.registry import SIMULATORS
from tests.checkout.buyer import wanted
from tests.cli.conftest import Bench
from tests.cli.evidence import make_many
from tests.support.service import Server

pytestmark = pytest.mark.long

NOTICES = "/v1/notices"


def said(server: Server, key: str) -> tuple[int, str]:
    with server.client(key) as client:
        answer = client.get(NOTICES)
    code = answer.json()["error"]["code"] if answer.status_code != 200 else ""
    return answer.status_code, code


def refused(server: Server, key: str) -> tuple[int, str]:
    """The refusal for a key that worked before, within the time limit."""
    since = time.monotonic()
    while True:
        asked = time.monotonic()
        status, code = said(server, key)
        if status != 200:
            return status, code
        # However slow this machine is: later requests must be refused.
        assert asked - since < REVOCATION_LAG_SECONDS
        time.sleep(0.1)


def listed(bench: Bench, account: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [a for a in bench.read("accounts", "list") if a["account_id"] == account]
    return found


def open_session(server: Server, key: str) -> dict[str, Any]:
    """A checkout session that is open."""
    with server.client(key) as client:
        answer = client.post("/v1/checkout_sessions", json=wanted())
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_a_renamed_account_keeps_its_id_and_its_keys(served: tuple[Bench, Server]) -> None:
    bench, server = served
    account = bench.account("before the wedding")
    bench.account("taken")
    key = bench.key(account)
    assert bench.run("accounts", "rename", account, "after").stdout == "after\n"
    assert listed(bench, account)["name"] == "after"
    assert said(server, key) == (200, "")
    assert "account_exists" in bench.refused("accounts", "rename", "after", "Taken")
    assert "invalid_argument" in bench.refused("accounts", "rename", "after", "acct_1")
    assert "account_not_found" in bench.refused("accounts", "rename", "before the wedding", "x")
    # It may change the case of its own name.
    bench.run("accounts", "rename", "after", "After")
    assert listed(bench, account)["name"] == "After"


def test_no_key_of_a_disabled_account_works_until_it_is_enabled(
    served: tuple[Bench, Server],
) -> None:
    bench, server = served
    account, other = bench.account("disabled"), bench.key(bench.account("its neighbour"))
    keys = [bench.key(account, mode) for mode in ("test", "live")]
    revoked = bench.read("keys", "create", "--account", account, "--mode", "test")
    bench.run("keys", "revoke", revoked["key_id"], "--yes")
    assert [said(server, key) for key in keys] == [(200, "")] * 2
    session = open_session(server, keys[0])
    bench.run("accounts", "disable", account, "--yes")
    bench.run("accounts", "disable", account, "--yes")
    assert [refused(server, key) for key in keys] == [(403, "account_disabled")] * 2
    made = bench.run("keys", "create", "--account", account, "--mode", "test", "--json")
    assert f"accounts enable {account}" in made.stderr.replace("\n", " ")
    new = json.loads(made.stdout)
    assert new["works"]
    rotated = bench.run("keys", "rotate", new["key_id"])
    assert f"accounts enable {account}" in rotated.stderr.replace("\n", " ")
    assert said(server, new["key"]) == (403, "account_disabled")
    assert refused(server, revoked["key"]) == (401, "invalid_api_key")
    assert said(server, other) == (200, "")
    assert listed(bench, account)["status"] == "disabled"
    with server.client(session["client_token"]) as buyer:
        assert buyer.get("/v1/checkout_sessions/current").status_code == 200
    bench.run("accounts", "enable", account)
    assert [said(server, key) for key in keys] == [(200, "")] * 2
    assert said(server, revoked["key"]) == (401, "invalid_api_key")
    assert listed(bench, account)["status"] == "active"


def test_a_closed_account_keeps_its_evidence_alone(
    served: tuple[Bench, Server], tmp_path: Path
) -> None:
    bench, server = served
    account = bench.account("closing")
    key = bench.key(account)
    make_many(bench, account, 3)
    open_session(server, key)
    with server.client(key) as client:
        hook = client.post("/v1/webhook_endpoints", json={"url": "https://hooks.example/x"})
        assert hook.status_code == 200, hook.text
        before = client.get("/v1/acknowledgments").json()["data"]
    bench.run("accounts", "origins", "add", account, "https://shop.example")
    credentials = tmp_path / "stripe.json"
    credentials.write_text(json.dumps(dict(SIMULATORS["stripe"](time.time).credentials)))
    credentials.chmod(0o600)
    for more in (("set",), ("add", "--test-keys")):
        bench.run(
            *("accounts", "verification", more[0], account, "--provider", "stripe", *more[1:]),
            *("--credentials-file", str(credentials), "--dangerous-base-url", "http://127.0.0.1:9"),
        )
    closed = bench.read("accounts", "close", "closing", "--yes")
    ends = [closed[name] for name in ("webhook_endpoints", "origins", "checkout_sessions")]
    assert (ends, closed["keys"] > 0) == ([1, 1, 1], True)
    assert (closed["records"], closed["records_with_personal_data"]) == (3, 3)
    assert refused(server, key) == (401, "invalid_api_key")
    assert listed(bench, account)["status"] == "closed"
    assert bench.read("accounts", "origins", "list", account)["origins"] == []
    assert bench.read("webhooks", "list", "--account", account) == []
    assert (
        "stripe" not in bench.run("accounts", "verification", "show", account, check=False).stdout
    )
    of_it = ("--account", account, "--mode", "test")
    (session,) = bench.read("checkout-sessions", "list", *of_it)
    assert session["status"] == "expired"
    exported = bench.run("acknowledgments", "export", *of_it, "--json").stdout.splitlines()
    assert {json.loads(line)["ack_id"] for line in exported} == {one["ack_id"] for one in before}
    for again in (
        ("accounts", "close", account, "--yes"),
        ("accounts", "enable", account),
        ("accounts", "disable", account, "--yes"),
        ("accounts", "rename", account, "opening"),
        ("keys", "create", "--account", account, "--mode", "test"),
        ("accounts", "origins", "add", account, "https://shop.example"),
        ("webhooks", "add", *of_it, "--url", "https://hooks.example/y"),
    ):
        assert "account_closed" in bench.refused(*again), again
    taken = bench.refused("accounts", "create", "Closing").replace("\n", " ")
    assert "account_exists" in taken
    assert "its name stays taken" in taken
