"""Veriff's webhooks: authentic ones, their hints, and refusals."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.errors import WebhookRefused
from countersign.identity.model import WebhookHint
from countersign.identity.veriff import Veriff, VeriffCredentials
from countersign_simulators import veriff as simulated
from countersign_simulators.veriff import INTEGRATION
from tests.identity.asking import JUNK, FixedClock, fingerprint
from tests.support.every import every

KEY: Final = "5f0c7a1e-aaaa-4bbb-8ccc-0123456789ab"
NEW, OLD = "new-shared-secret-1", "old-shared-secret-1"
SESSION: Final = "7f1c2a34-0b5d-4e6f-8a90-1234567890ab"
ATTEMPT: Final = "0f9e8d7c-6b5a-4c3d-9e2f-ba0987654321"
DECISION: Final = json.dumps(
    {
        "status": "success",
        "verification": {"id": SESSION, "attemptId": ATTEMPT, "status": "approved", "code": 9001},
    }
).encode()
EVENT: Final = json.dumps(
    {"id": SESSION, "attemptId": ATTEMPT, "feature": "selfid", "code": 7002, "action": "submitted"}
).encode()


def signed(body: bytes, secret: str = NEW) -> dict[str, str]:
    """The headers by Veriff's page "HMAC authentication": hex of HMAC-SHA256 of the raw body."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"x-auth-client": KEY, "x-hmac-signature": digest}


def read(headers: dict[str, str], body: bytes) -> WebhookHint | None:
    provider = Veriff(
        VeriffCredentials(
            api_key=KEY,
            shared_secrets=(NEW, OLD),
            integration_id="5f0c7a1e-0000-4000-8000-000000000000",
            environment="live",
        ),
        base_url="http://127.0.0.1:9",
        fingerprint=fingerprint,
        clock=FixedClock(),
    )
    return asyncio.run(provider.read_webhook(headers, body))


@pytest.mark.parametrize("secret", [NEW, OLD])
def test_a_signed_decision_hints_at_its_session(secret: str) -> None:
    """The recipe of Veriff's page is accepted, by either secret while one is changed."""
    hint = read(signed(DECISION, secret), DECISION)
    assert hint == WebhookHint(session_id=SESSION, event_key=f"{SESSION}:{ATTEMPT}:approved")


def test_a_signed_event_hints_at_its_session() -> None:
    """The other kind of message, without a decision, is understood too."""
    hint = read(signed(EVENT), EVENT)
    assert hint == WebhookHint(session_id=SESSION, event_key=f"{SESSION}:{ATTEMPT}:submitted")


def test_a_second_delivery_has_the_same_key_and_a_new_status_another() -> None:
    """Veriff's messages have no time: session, attempt and status tell a repetition."""
    later = DECISION.replace(b"approved", b"declined")
    other_bytes = DECISION.replace(b'"code": 9001', b'"code": 9001, "reason": null')
    keys = [read(signed(body), body) for body in (DECISION, DECISION, other_bytes, later)]
    found = [hint.event_key if hint else None for hint in keys]
    assert found[0] == found[1] == found[2] != found[3]


@pytest.mark.parametrize(
    "body", [b"{}", b'{"status":"success","data":{}}', b'{"status":"success","verification":null}']
)
def test_an_authentic_message_about_something_else_is_no_hint(body: bytes) -> None:
    """Messages of Veriff's other products are passed over without an error."""
    assert read(signed(body), body) is None


GOOD: Final = signed(DECISION)
DIGEST: Final = GOOD["x-hmac-signature"]


@every(
    "headers",
    [
        {},
        {"x-auth-client": KEY},
        {"x-hmac-signature": DIGEST},
        GOOD | {"x-auth-client": KEY.upper()},
        GOOD | {"x-auth-client": "é"},
        GOOD | {"x-auth-client": "\ud800"},
        GOOD | {"x-hmac-signature": ""},
        GOOD | {"x-hmac-signature": DIGEST[:-1]},
        GOOD | {"x-hmac-signature": DIGEST + "0"},
        GOOD | {"x-hmac-signature": DIGEST + "\n"},
        GOOD | {"x-hmac-signature": " " + DIGEST},
        GOOD | {"x-hmac-signature": "sha256=" + DIGEST},
        GOOD | {"x-hmac-signature": "é" * 64},
        GOOD | {"x-hmac-signature": "\uff10" * 64},
        GOOD | {"x-hmac-signature": f"{DIGEST}, {DIGEST}"},
        GOOD | {"x-hmac-signature": signed(DECISION, "another-secret-0")["x-hmac-signature"]},
        GOOD | {"x-hmac-signature": signed(EVENT)["x-hmac-signature"]},
        GOOD | {"x-hmac-signature": hashlib.sha256(DECISION + NEW.encode()).hexdigest()},
        # The legacy header, by its own recipe, is no substitute.
        {
            "x-auth-client": KEY,
            "x-signature": hashlib.sha256(DECISION + NEW.encode()).hexdigest(),
        },
        {"x-auth-client": KEY, "x-signature": DIGEST},
    ],
)
def test_a_missing_or_malformed_header_is_refused(headers: dict[str, str]) -> None:
    """Only the whole signature over these bytes, for this client, is accepted."""
    with pytest.raises(WebhookRefused):
        read(headers, DECISION)


@every(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"not json",
        DECISION[:-3],
        DECISION.replace(SESSION.encode(), SESSION.upper().encode()),
        DECISION.replace(SESSION.encode(), b"../../etc"),
        DECISION.replace(ATTEMPT.encode(), b"first"),
        DECISION.replace(b"approved", b"approved\\n"),
        DECISION.replace(b'"approved"', b"9001"),
        b'{"id":1,"action":"submitted"}',
        b'{"verification":[]}',
    ],
)
def test_an_authentic_message_that_cannot_be_read_is_refused(body: bytes) -> None:
    """A signature does not make an impossible session id possible."""
    with pytest.raises(WebhookRefused):
        read(signed(body), body)


@given(
    st.dictionaries(
        st.sampled_from(["x-auth-client", "x-hmac-signature", "x-signature"]),
        st.text(max_size=80) | st.just(DIGEST) | st.just(KEY),
    ),
    st.binary(max_size=80) | st.just(EVENT),
)
def test_no_header_or_body_escapes_as_another_error(headers: dict[str, str], body: bytes) -> None:
    """Whatever is sent without the secret is refused, and nothing else happens."""
    with pytest.raises(WebhookRefused):
        read(headers, body)


@given(JUNK, JUNK, JUNK)
def test_no_signed_content_escapes_as_another_error(one: Any, two: Any, three: Any) -> None:  # noqa: ANN401 - any JSON value
    """Any JSON that is properly signed gives a hint, nothing, or a refusal."""
    members = {"id": one, "attemptId": two, "status": three, "action": three}
    for content in (members, {"verification": members}, one):
        body = json.dumps(content).encode()
        try:
            hint = read(signed(body), body)
        except WebhookRefused:
            continue
        assert hint is None or hint.session_id == one


def test_the_simulator_signs_as_the_adapter_expects() -> None:
    """Both sides are written from Veriff's recipe, and agree."""
    simulator = simulated.Veriff(FixedClock().now)
    provider = Veriff(
        VeriffCredentials(
            api_key=simulated.API_KEY,
            shared_secrets=(simulated.SHARED_SECRET,),
            integration_id=INTEGRATION,
            environment="live",
        ),
        base_url="http://127.0.0.1:9",
        fingerprint=fingerprint,
        clock=FixedClock(),
    )
    for session in simulator.sessions:
        if session.scenario in {"unknown_status", "other_session"}:
            continue
        webhook = simulator.webhook(session.session_id)
        headers = {name.lower(): value for name, value in webhook.headers}
        hint = asyncio.run(provider.read_webhook(headers, webhook.body))
        assert hint is not None
        assert hint.session_id == session.session_id
