"""The simulated Plaid, judged by Plaid's published description and by its own SDK."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from countersign.identity.plaid import SESSION_ID, Plaid
from countersign_simulators import plaid as simulated
from countersign_simulators.base import Reply, Request, Session
from countersign_simulators.server import serve
from tests.identity.asking import FixedClock
from tests.simulators import published

SECRET: Final = simulated.SECRETS["live"]
GET: Final = "/identity_verification/get"
UNREADABLE: Final = {"truncated", "oversized", "bad_gateway", "other_environment"}
NEWER: Final = {
    "kyc_check.id_number.ssa_verification.is_deceased",
    "kyc_check.id_number.ssa_verification.match",
}
"""Sorted from the SDK, which is newer than the description."""


def post(
    simulator: simulated.Plaid,
    path: str,
    body: object,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"plaid-client-id": simulated.CLIENT_ID, "plaid-secret": SECRET}
    sent = given if headers is None else headers
    return simulator.answer(Request(method="POST", path=path, query=(), headers=sent, body=raw))


def verification(simulator: simulated.Plaid, session: Session) -> Reply:
    """The session's answer; the second one if the first one asks for patience."""
    asked = {"identity_verification_id": session.session_id}
    first = post(simulator, GET, asked)
    return post(simulator, GET, asked) if first.status == 429 else first


def plaid() -> simulated.Plaid:
    return simulated.Plaid(FixedClock().now)


@pytest.mark.vectors
def test_every_answer_matches_plaids_description(shared_vectors: Path) -> None:
    """Requests and answers fit the schemas; an unknown status is the one thing that may not."""
    description = published.load(
        shared_vectors.parent / "specs" / "plaid-identity-verification.json"
    )
    asked = published.validator(description, "IdentityVerificationGetRequest")
    answered = published.validator(description, "IdentityVerificationGetResponse")
    simulator = plaid()
    for session in simulator.sessions:
        asked.validate({"identity_verification_id": session.session_id})
        reply = verification(simulator, session)
        if session.scenario in UNREADABLE or reply.status != 200:
            continue
        body = json.loads(reply.body)
        assert answered.is_valid(body) is (session.scenario != "unknown_status"), session.session_id
        answered.validate(body | {"status": "active"})


@pytest.mark.vectors
def test_every_field_that_plaid_describes_is_sorted(shared_vectors: Path) -> None:
    """A new field requires a decision."""
    description = published.load(
        shared_vectors.parent / "specs" / "plaid-identity-verification.json"
    )
    described = published.fields(description, "IdentityVerificationGetResponse")
    assert len(described) > 150
    assert published.unsorted(described, Plaid.words.fields) == set()
    assert published.undescribed(described, Plaid.words.fields) == NEWER


def test_plaids_sdk_reads_every_session() -> None:
    """Including members required beyond the description; and its errors, and the webhook's key."""
    import plaid as sdk  # noqa: PLC0415 - slow: only the test that needs it pays
    from plaid.api.plaid_api import PlaidApi  # noqa: PLC0415
    from plaid.model.identity_verification_get_request import (  # noqa: PLC0415
        IdentityVerificationGetRequest,
    )
    from plaid.model.webhook_verification_key_get_request import (  # noqa: PLC0415
        WebhookVerificationKeyGetRequest,
    )

    simulator = plaid()
    failing = {"truncated", "oversized", "slow", "cut"}

    def use(url: str) -> dict[str, str]:
        keys = {"clientId": simulated.CLIENT_ID, "secret": SECRET, "plaidVersion": "2020-09-14"}
        found = {}
        with sdk.ApiClient(sdk.Configuration(host=url, api_key=keys)) as client:
            api = PlaidApi(client)
            for session in simulator.sessions:
                if session.scenario in failing:
                    continue
                request = IdentityVerificationGetRequest(
                    identity_verification_id=session.session_id
                )
                try:
                    answer = api.identity_verification_get(request)
                    found[session.session_id] = str(answer["status"])
                except sdk.ApiException as error:
                    found[session.session_id] = str(error.status)
            asked = WebhookVerificationKeyGetRequest(key_id=simulator.key_id)
            key = api.webhook_verification_key_get(asked)["key"]
            found["key"] = f"{key['crv']} {key['kid']}"
        return found

    async def run() -> dict[str, str]:
        async with serve(simulator) as served:
            return await asyncio.to_thread(use, served.url)

    found = asyncio.run(run())
    assert found["key"] == f"P-256 {simulator.key_id}"
    odd = {
        "idv_ActiveNotBegun": "active",
        "idv_PendingReview": "pending_review",
        "idv_FailedDocument": "failed",
        "idv_CanceledInReview": "canceled",
        "idv_ExpiredUnfinished": "expired",
        "idv_UnknownStatus": "under_observation",
        "idv_SandboxEnvironment": "400",
        "idv_RateLimitedOnce": "429",
        "idv_RateLimitedLonger": "429",
        "idv_ServerError": "500",
        "idv_BadGatewayPage": "502",
    }
    reply = {s.session_id for s in simulator.sessions if s.scenario not in failing}
    assert {k: v for k, v in found.items() if k != "key"} == dict.fromkeys(reply, "success") | odd


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "code"),
    [
        ("/item/get", {}, None, 404, "NOT_FOUND"),
        (GET, b"[", None, 400, "INVALID_BODY"),
        (GET, [], None, 400, "INVALID_BODY"),
        (GET, {}, {}, 400, "MISSING_FIELDS"),
        (GET, {}, None, 400, "MISSING_FIELDS"),
        (
            GET,
            {"client_id": simulated.CLIENT_ID, "secret": "wrong"},
            {},
            400,
            "INVALID_API_KEYS",
        ),
        (GET, {}, {"plaid-version": "2019-05-29"}, 400, "INCOMPATIBLE_API_VERSION"),
        (GET, {"identity_verification_id": 7}, None, 400, "INVALID_FIELD"),
        (
            GET,
            {"identity_verification_id": "idv_NobodyHasThis"},
            None,
            400,
            "INVALID_FIELD",
        ),
        (
            "/webhook_verification_key/get",
            {"key_id": "unknown"},
            None,
            400,
            "INVALID_WEBHOOK_VERIFICATION_KEY_ID",
        ),
    ],
)
def test_errors_have_plaids_shape(
    path: str, body: object, headers: dict[str, str] | None, status: int, code: str
) -> None:
    """With type, code and request id, as JSON."""
    answer = post(plaid(), path, body, headers)
    found = json.loads(answer.body)
    assert (answer.status, found["error_code"]) == (status, code)
    assert found["error_type"] in {"INVALID_REQUEST", "INVALID_INPUT"}
    assert found["request_id"].startswith("sim")


def test_client_and_secret_may_be_in_the_body() -> None:
    """As Plaid allows."""
    asked = {
        "client_id": simulated.CLIENT_ID,
        "secret": SECRET,
        "identity_verification_id": "idv_VerifiedLicense",
    }
    assert post(plaid(), GET, asked, {}).status == 200


def test_the_list_of_sessions_keeps_its_promises() -> None:
    """Well-formed identifiers, one part each but for `verified`, and all personal strings."""
    simulator = plaid()
    sessions = simulator.sessions
    plays = Counter(session.scenario for session in sessions)
    assert len({session.session_id for session in sessions}) == len(sessions)
    assert plays.pop("verified") > 5
    assert len(plays) > 20
    assert set(plays.values()) == {1}
    assert all(SESSION_ID.fullmatch(session.session_id) for session in sessions)
    answer = {"given_name", "family_name", "date_of_birth", "street", "email_address", "id_number"}
    for session in sessions:
        if session.scenario in UNREADABLE or verification(simulator, session).status != 200:
            continue
        body = json.loads(verification(simulator, session).body)
        for text in _personal(body, answer):
            assert text in session.personal, (session.session_id, text)


def _personal(body: Any, names: set[str]) -> set[str]:  # noqa: ANN401 - any JSON
    """The strings of members with one of these names, without the verdicts of checks."""
    found: set[str] = set()
    if isinstance(body, list):
        found.update(*(_personal(member, names) for member in body))
    elif isinstance(body, dict):
        for name, member in body.items():
            if name in names and isinstance(member, str) and "match" not in member:
                found.add(member)
            elif name not in {"analysis", "kyc_check"}:
                found |= _personal(member, names)
    return found


def test_the_sessions_are_the_same_at_every_start() -> None:
    """A vendor may write their identifiers down."""
    assert [s.session_id for s in plaid().sessions] == [s.session_id for s in plaid().sessions]
