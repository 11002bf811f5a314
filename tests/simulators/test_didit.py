"""The simulated Didit keeps to what Didit's pages say."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pytest

from countersign_simulators import didit
from countersign_simulators.base import Reply, Request

NOW: Final = 1_794_949_200.0
SIMULATOR: Final = didit.Didit(lambda: NOW)
_KEY: Final = MappingProxyType({"x-api-key": str(SIMULATOR.credentials["api_key"])})


def ask(path: str, method: str = "GET", headers: Mapping[str, str] = _KEY) -> Reply:
    """Ask for a path with the right key, unless another is given."""
    request = Request(method=method, path=path, query=(), headers=headers, body=b"")
    return SIMULATOR.answer(request)


def decision(session_id: str) -> Reply:
    return ask(f"/v3/session/{session_id}/decision/")


def test_it_has_enough_sessions_and_each_has_one_name() -> None:
    """At least fourteen parts; no word but `verified` is played twice; identifiers are unique."""
    played = Counter(session.scenario for session in SIMULATOR.sessions)
    assert len(played) >= 14
    assert {word for word, times in played.items() if times > 1} == {"verified"}
    assert len({session.session_id for session in SIMULATOR.sessions}) == played.total()


def test_the_sessions_are_the_same_at_every_start() -> None:
    """Identifiers and people do not change from one run to the next."""
    assert didit.Didit(lambda: NOW).sessions == SIMULATOR.sessions


def test_every_personal_string_of_a_session_is_listed() -> None:
    """Whatever an answer says of a person is in `personal`."""
    names = ("first_name", "last_name", "date_of_birth", "document_number")
    for session in SIMULATOR.sessions:
        if session.scenario in {"huge", "truncated", "rate_limited", "slow", "cut"}:
            continue
        reply = decision(session.session_id)
        reply = decision(session.session_id) if reply.status == 429 else reply
        if reply.status != 200:
            continue
        answer = json.loads(reply.body)
        documents = answer["id_verifications"] or []
        found = {document[name] for document in documents for name in names}
        found.add((answer["expected_details"] or {}).get("date_of_birth"))
        for entry in (*documents, *(answer["poa_verifications"] or [])):
            parsed = entry.get("parsed_address") or entry.get("poa_parsed_address") or {}
            found.add(parsed.get("street_1"))
        assert found - {None} <= set(session.personal)


def test_an_answer_carries_the_limits_of_the_account() -> None:
    """Didit says in headers how many requests are left."""
    headers = dict(decision(SIMULATOR.sessions[0].session_id).headers)
    assert headers["X-RateLimit-Limit"] == "100"
    assert headers["X-RateLimit-Remaining"].isdigit()
    assert headers["X-RateLimit-Reset"].isdigit()


def test_a_path_without_its_slash_is_redirected() -> None:
    """That is how clients lose their key."""
    path = f"/v3/session/{SIMULATOR.sessions[0].session_id}/decision"
    reply = ask(path)
    assert (reply.status, dict(reply.headers)["Location"]) == (301, path + "/")


@pytest.mark.parametrize(
    ("headers", "status"), [({}, 403), ({"x-api-key": "wrong"}, 401), ({"x-api-key": ""}, 401)]
)
def test_without_the_key_every_request_is_refused(headers: dict[str, str], status: int) -> None:
    """No key is 403 and a wrong one 401, in Didit's error shape."""
    reply = ask(f"/v3/session/{SIMULATOR.sessions[0].session_id}/decision/", headers=headers)
    assert reply.status == status
    assert set(json.loads(reply.body)) == {"detail"}


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/v3/session/00000000-0000-4000-8000-000000000000/decision/", "GET", 404),
        ("/v3/session/not-a-uuid/decision/", "GET", 404),
        (f"/v3/session/{SIMULATOR.sessions[0].session_id}/decision/", "POST", 405),
        ("/v2/session/x/decision/", "GET", 404),
        ("/", "GET", 404),
    ],
)
def test_unknown_paths_get_didits_error(path: str, method: str, status: int) -> None:
    """Any request has a response; unknown paths have an error's."""
    reply = ask(path, method)
    assert reply.status == status
    assert set(json.loads(reply.body)) == {"detail"}


def test_a_deleted_session_is_gone() -> None:
    """Didit redacts by deletion: afterwards there is no such session."""
    simulator = didit.Didit(lambda: NOW)
    path = f"/v3/session/{simulator.sessions[0].session_id}"
    request = Request(method="DELETE", path=f"{path}/delete/", query=(), headers=_KEY, body=b"")
    assert simulator.answer(request).status == 204
    again = Request(method="GET", path=f"{path}/decision/", query=(), headers=_KEY, body=b"")
    assert simulator.answer(again).status == 404


def test_a_webhook_is_signed_in_three_ways_with_the_decision_in_it() -> None:
    """Raw bytes, canonical JSON and the simple recipe, each with the destination's secret."""
    secrets: Any = SIMULATOR.credentials["webhook_secrets"]
    webhook = SIMULATOR.webhook(SIMULATOR.sessions[0].session_id)
    headers = dict(webhook.headers)
    raw = hmac.new(secrets[0].encode(), webhook.body, hashlib.sha256).hexdigest()
    assert headers["X-Signature"] == raw
    assert headers["X-Timestamp"] == str(int(NOW))
    assert {"X-Signature-V2", "X-Signature-Simple"} <= set(headers)
    assert json.loads(webhook.body)["decision"]["status"] == "Approved"
