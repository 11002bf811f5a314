"""The simulated Veriff keeps to what Veriff's pages say."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pytest

from countersign_simulators import veriff
from countersign_simulators.base import Reply, Request

NOW: Final = 1_794_949_200.0
_NONE: Final[Mapping[str, str | None]] = MappingProxyType({})
SIMULATOR: Final = veriff.Veriff(lambda: NOW)


def sign(message: bytes) -> str:
    secrets: Any = SIMULATOR.credentials["shared_secrets"]
    return hmac.new(secrets[0].encode(), message, hashlib.sha256).hexdigest()


def get(path: str, method: str = "GET", headers: Mapping[str, str | None] = _NONE) -> Reply:
    """Request a path with right credentials by default."""
    asked = path.split("/")[3] if path.count("/") > 2 else ""
    good = {
        "x-auth-client": str(SIMULATOR.credentials["api_key"]),
        "x-hmac-signature": sign(asked.encode()),
    }
    sent = {name: value for name, value in (good | dict(headers)).items() if value is not None}
    return SIMULATOR.answer(Request(method=method, path=path, query=(), headers=sent, body=b""))


def decision(session_id: str) -> Reply:
    return get(f"/v1/sessions/{session_id}/decision")


def test_it_has_enough_sessions_and_each_has_one_name() -> None:
    """At least fourteen parts; no word but `verified` is played twice; identifiers are unique."""
    played = Counter(session.scenario for session in SIMULATOR.sessions)
    assert len(played) >= 14
    assert {word for word, times in played.items() if times > 1} == {"verified"}
    assert len({session.session_id for session in SIMULATOR.sessions}) == played.total()


def test_the_sessions_are_the_same_at_every_start() -> None:
    """Identifiers and people do not change from one run to the next."""
    assert veriff.Veriff(lambda: NOW).sessions == SIMULATOR.sessions


def test_every_personal_string_of_a_session_is_listed() -> None:
    """Whatever an answer says of a person is in `personal`, and nothing else is."""
    for session in SIMULATOR.sessions:
        if session.scenario in {"huge", "truncated", "rate_limited", "slow", "cut"}:
            continue
        reply = decision(session.session_id)
        reply = decision(session.session_id) if reply.status == 429 else reply
        if reply.status != 200:
            continue
        answer = json.loads(reply.body)["verification"] or {}
        person, document = answer.get("person") or {}, answer.get("document") or {}
        found = {person.get("firstName"), person.get("lastName"), person.get("dateOfBirth")}
        found |= {document.get("number")}
        for address in person.get("addresses") or []:
            found.add(address.get("parsedAddress", {}).get("street"))
            assert any(line in address["fullAddress"] for line in session.personal)
        assert found - {None} <= set(session.personal)


def test_an_answer_has_the_headers_that_the_reference_lists() -> None:
    """`x-auth-client` and `x-hmac-signature` over the raw body, and no integration."""
    reply = decision(SIMULATOR.sessions[0].session_id)
    headers = dict(reply.headers)
    assert headers["x-hmac-signature"] == sign(reply.body)
    assert headers["x-auth-client"] == SIMULATOR.credentials["api_key"]
    assert not any(name.startswith("vrf-") for name in headers)


def test_one_session_has_the_headers_that_older_pages_show() -> None:
    """`vrf-auth-client`, `vrf-hmac-signature` and `vrf-integration-id`."""
    reply = decision(f"7e51ff00-0000-4000-8000-{11:012d}")
    headers = dict(reply.headers)
    assert headers["vrf-hmac-signature"] == sign(reply.body)
    assert headers["vrf-auth-client"] == SIMULATOR.credentials["api_key"]
    assert headers["vrf-integration-id"] == SIMULATOR.credentials["integration_id"]
    assert not any(name.startswith("x-") for name in headers)


def test_an_undecided_session_has_a_null_verification() -> None:
    """No decision is a success without a verification, not an error."""
    pending = next(each for each in SIMULATOR.sessions if each.scenario == "pending")
    reply = decision(pending.session_id)
    assert reply.status == 200
    assert json.loads(reply.body)["verification"] is None


@pytest.mark.parametrize(
    "headers",
    [
        {"x-auth-client": None},
        {"x-auth-client": "wrong"},
        {"x-hmac-signature": None},
        {"x-hmac-signature": "0" * 64},
    ],
)
def test_an_inauthentic_request_gets_401(headers: dict[str, str | None]) -> None:
    """Key and HMAC over the session id are both checked, in Veriff's error shape."""
    reply = get(f"/v1/sessions/{SIMULATOR.sessions[0].session_id}/decision", headers=headers)
    assert reply.status == 401
    error = json.loads(reply.body)
    assert error["status"] == "fail"
    assert len(error["code"]) == 4
    assert "verification" not in error


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/v1/sessions/00000000-0000-4000-8000-000000000000/decision", "GET", 404),
        ("/v1/sessions/not-a-uuid/decision", "GET", 400),
        (f"/v1/sessions/{SIMULATOR.sessions[0].session_id}/decision", "POST", 405),
        ("/v1/sessions/x/y", "GET", 404),
        ("/", "GET", 404),
    ],
)
def test_unknown_paths_get_veriffs_error(path: str, method: str, status: int) -> None:
    """Any request has a response; unknown paths have an error's."""
    reply = get(path, method)
    assert reply.status == status
    assert json.loads(reply.body)["status"] == "fail"


def test_both_kinds_of_webhook_are_signed_over_their_bytes() -> None:
    """A decided session sends its decision, an undecided one an event, each with its HMAC."""
    by_part = {each.scenario: each for each in SIMULATOR.sessions}
    for plays, member in (("failed", "verification"), ("pending", "action")):
        webhook = SIMULATOR.webhook(by_part[plays].session_id)
        headers = dict(webhook.headers)
        assert headers["X-HMAC-SIGNATURE"] == sign(webhook.body)
        assert headers["X-AUTH-CLIENT"] == SIMULATOR.credentials["api_key"]
        assert member in json.loads(webhook.body)
