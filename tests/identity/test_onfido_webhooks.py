"""Onfido's webhooks: the body's HMAC-SHA256 in hexadecimal; everything else is refused."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.errors import WebhookRefused
from countersign.identity import onfido
from countersign.identity.model import WebhookHint
from countersign_simulators import onfido as simulated
from tests.identity.asking import JUNK, FixedClock, fingerprint, places, put
from tests.support.every import every

SECRET: Final = "WebhookTokenOfThisTest"
OLD_SECRET: Final = "WebhookTokenOfLastMonth"
SESSION: Final = "6f5e4d3c-2222-4333-8444-555566667777"
EVENT: Final[dict[str, Any]] = {
    "payload": {
        "resource_type": "workflow_run",
        "action": "workflow_run.completed",
        "object": {
            "id": SESSION,
            "status": "approved",
            "completed_at_iso8601": "2026-11-17T16:59:00Z",
            "href": f"https://api.us.onfido.com/v3.6/workflow_runs/{SESSION}",
        },
        "resource": {"id": SESSION, "output": {"dob": "1990-01-01"}},
    }
}
BODY: Final = json.dumps(EVENT).encode()


def signature(body: bytes = BODY, secret: str = SECRET) -> str:
    """The recipe as Onfido publishes it."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def hint(
    sent: str | None,
    body: bytes = BODY,
    *,
    secrets: tuple[str, ...] = (OLD_SECRET, SECRET),
    header: str = "x-sha2-signature",
) -> WebhookHint | None:
    provider = onfido.Onfido(
        onfido.OnfidoCredentials(
            api_token="api_live_us.none",
            environment="live",
            region="us",
            webhook_secrets=secrets,
        ),
        base_url=None,
        fingerprint=fingerprint,
        clock=FixedClock(),
    )
    return asyncio.run(provider.read_webhook({} if sent is None else {header: sent}, body))


def event(**members: object) -> bytes:
    return json.dumps({"payload": EVENT["payload"] | members}).encode()


@pytest.mark.parametrize("secret", [SECRET, OLD_SECRET])
def test_an_authentic_event_gives_its_run(secret: str) -> None:
    """By any of the secrets during a replacement."""
    found = hint(signature(secret=secret))
    assert found == WebhookHint(session_id=SESSION, event_key=hashlib.sha256(BODY).hexdigest())


def test_repeated_deliveries_of_one_event_have_the_same_key() -> None:
    """Onfido signs no time: anyone with a message can replay it, and must gain nothing."""
    later = event(object=EVENT["payload"]["object"] | {"completed_at_iso8601": "2027"})
    first, again, other = hint(signature()), hint(signature()), hint(signature(later), later)
    assert first is not None
    assert other is not None
    assert first == again
    assert other.event_key != first.event_key


@pytest.mark.parametrize(
    "kind", ["check", "report", "workflow_task", "workflow_timeline_file", "audit_log", None]
)
def test_an_authentic_event_about_something_else_is_no_hint(kind: str | None) -> None:
    """A webhook for all events gets many that say nothing of a run's outcome."""
    body = event(resource_type=kind)
    assert hint(signature(body), body) is None


@every(
    "body",
    [
        b"",
        b"[]",
        b"not JSON",
        b"\xff",
        b'{"payload": 7}',
        event(resource_type=["workflow_run"]),
        event(object=None),
        event(object={}),
        event(object={"id": SESSION.upper()}),
        event(object={"id": f"../{SESSION}"}),
        event(object={"id": [SESSION]}),
        BODY[:-1] + b', "payload": {}}',
    ],
)
def test_an_unreadable_authentic_event_is_refused(body: bytes) -> None:
    """Signed nonsense is nonsense; one without a payload is about nothing."""
    with pytest.raises(WebhookRefused):
        hint(signature(body), body)


@every(
    "sent",
    [
        None,
        "",
        "0" * 64,
        signature()[:-1],
        signature() + "0",
        signature().upper(),
        f"sha256={signature()}",
        f" {signature()}",
        f"{signature()}\n",
        f"{signature()},{signature()}",
        signature()[:-1] + "\uff11",
        signature()[:-1] + "\ud800",
        "g" * 64,
        signature(secret="of somebody else"),
        signature(secret=""),
        signature(BODY + b" "),
        hmac.new(SECRET.encode(), BODY, hashlib.sha1).hexdigest(),
        hmac.new(SECRET.encode(), BODY, hashlib.sha512).hexdigest(),
        "a" * 100_000,
    ],
)
def test_a_malformed_or_forged_signature_is_refused(sent: str | None) -> None:
    """In every way, and always with the same refusal."""
    with pytest.raises(WebhookRefused):
        hint(sent)


def test_without_a_secret_no_message_is_authentic() -> None:
    """Not even a message signed with an empty one."""
    for secrets in ((), ("",)):
        with pytest.raises(WebhookRefused):
            hint(signature(secret=""), secrets=secrets)


def test_the_older_header_is_ignored() -> None:
    """`X-Signature` is SHA-1, and a right signature in the wrong place is none."""
    with pytest.raises(WebhookRefused):
        hint(signature(), header="x-signature")


@given(sent=st.text(max_size=80) | st.text("0123456789abcdef", min_size=64, max_size=64))
def test_no_header_raises_anything_else(sent: str) -> None:
    """Whatever the header contains, the answer is the one refusal."""
    with pytest.raises(WebhookRefused):
        hint(sent)


@given(place=st.sampled_from(places(EVENT)), junk=JUNK | st.just(...))
def test_no_signed_event_raises_anything_else(place: tuple[str | int, ...], junk: object) -> None:
    """It is a hint at the run that it names, or none, or refused."""
    body = json.dumps(put(EVENT, place, junk)).encode()
    try:
        found = hint(signature(body), body)
    except WebhookRefused:
        return
    assert found is None or found.session_id == json.loads(body)["payload"]["object"]["id"]


def test_every_message_of_the_simulator_is_authentic() -> None:
    """With the secret of the credentials that it prints."""
    simulator = simulated.Onfido(FixedClock().now)
    secrets = msgspec.convert(simulator.credentials, onfido.OnfidoCredentials).webhook_secrets
    for session in simulator.sessions:
        sent = simulator.webhook(session.session_id)
        headers = {name.lower(): value for name, value in sent.headers}
        found = hint(headers["x-sha2-signature"], sent.body, secrets=secrets)
        assert found is not None
        assert found.session_id == session.session_id
