"""Persona's webhooks: authentic ones give a hint, everything else is refused."""

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
from countersign.identity import persona
from countersign.identity.model import WebhookHint
from countersign_simulators import persona as simulated
from countersign_simulators.base import Webhook
from countersign_simulators.persona_sessions import session_id
from tests.identity.asking import JUNK, NOW, FixedClock, fingerprint, places, put
from tests.support.every import every

SECRET: Final = "wbhsec_of_this_test"
OLD_SECRET: Final = "wbhsec_of_last_month"
OTHER_SECRET: Final = "wbhsec_of_somebody_else"
INQUIRY: Final = "inq_Example1234567890AbCdEfGhIjK"
EVENT: Final[dict[str, Any]] = {
    "data": {
        "type": "event",
        "id": "evt_Example",
        "attributes": {
            "name": "inquiry.approved",
            "payload": {"data": {"type": "inquiry", "id": INQUIRY}},
            "created-at": "2026-11-01T17:04:30.000Z",
        },
    }
}
BODY: Final = json.dumps(EVENT).encode()
TIME: Final = str(int(NOW))


def signature(body: bytes, *, secret: str = SECRET, time: str = TIME) -> str:
    """The recipe as Persona publishes it: HMAC-SHA256 of time, a full stop, and the raw body."""
    return hmac.new(secret.encode(), time.encode() + b"." + body, hashlib.sha256).hexdigest()


def header(body: bytes = BODY, *, secret: str = SECRET, time: str = TIME) -> str:
    return f"t={time},v1={signature(body, secret=secret, time=time)}"


def provider(*secrets: str) -> persona.Persona:
    credentials = persona.PersonaCredentials(
        api_key="persona_production_none",
        environment="live",
        environment_id="env_Production000000",
        webhook_secrets=secrets,
    )
    return persona.Persona(credentials, base_url=None, fingerprint=fingerprint, clock=FixedClock())


def read(sent: str | None, body: bytes = BODY) -> WebhookHint | None:
    headers = {} if sent is None else {"persona-signature": sent}
    return asyncio.run(provider(OLD_SECRET, SECRET).read_webhook(headers, body))


def event(**attributes: object) -> bytes:
    data = EVENT["data"]
    changed = data | {"attributes": data["attributes"] | attributes}
    return json.dumps({"data": changed}).encode()


HINT: Final = WebhookHint(session_id=INQUIRY, event_key="evt_Example")


@pytest.mark.parametrize(
    "sent",
    [
        header(),
        header(secret=OLD_SECRET),
        f"v1={signature(BODY)},t={TIME}",
        f"{header()} {header(secret=OTHER_SECRET)}",
        f"{header(secret=OTHER_SECRET)} {header()}",
        f"{header(secret=OLD_SECRET)} {header()}",
        header(time=str(int(NOW) - 300)),
        header(time=str(int(NOW) + 300)),
    ],
    ids=["new", "old", "other order", "first", "second", "both", "late", "early"],
)
def test_an_authentic_event_gives_its_inquiry(sent: str) -> None:
    """One set, or two separated by a space while a secret is replaced; up to five minutes off."""
    assert read(sent) == HINT


@every(
    "sent",
    [
        None,
        "",
        " ",
        ",",
        "=",
        f"t={TIME}",
        f"v1={signature(BODY)}",
        f"t=,v1={signature(BODY)}",
        f"t={TIME},v1=",
        f"t={TIME},v0={signature(BODY)}",
        f"t={TIME},t={TIME},v1={signature(BODY)}",
        f"t={TIME},v1={signature(BODY)},v1={signature(BODY)}",
        f"t={TIME},v1={signature(BODY)[:-1]}",
        f"t={TIME},v1={signature(BODY).upper()}",
        f"t={TIME},v1={signature(BODY)}é",
        f"t={TIME}, v1={signature(BODY)}",
        f"t=-{TIME},v1={signature(BODY, time=f'-{TIME}')}",
        f"t={TIME}.0,v1={signature(BODY, time=f'{TIME}.0')}",
        f"t={'9' * 400},v1={signature(BODY, time='9' * 400)}",
        "t=\u0661\u0662," + f"v1={signature(BODY)}",
        header(secret=OTHER_SECRET),
        header(time=str(int(NOW) - 301)),
        header(time=str(int(NOW) + 301)),
        f"{header(time=str(int(NOW) - 301))} {header(secret=OTHER_SECRET)}",
        header(b"another body"),
        f"{header()} nonsense",
        " ".join([header()] * 5),
        header() + " " * 5000,
    ],
)
def test_a_header_malformed_in_any_way_is_refused(sent: str | None) -> None:
    """A fresh set that is not authentic does not rescue an authentic one that is too old."""
    with pytest.raises(WebhookRefused):
        read(sent)


@given(st.text(max_size=200) | st.from_regex(r"(t|v1)=[0-9a-f]{0,70}([, ](t|v1)=[^,]*)*"))
def test_no_header_whatever_raises_anything_else(sent: str) -> None:
    """Fuzzed: a header that we did not sign is refused."""
    with pytest.raises(WebhookRefused):
        read(sent)


def test_a_body_changed_by_one_space_is_refused() -> None:
    """The raw bytes are signed, not the parsed content."""
    with pytest.raises(WebhookRefused):
        read(header(), BODY + b" ")


@pytest.mark.parametrize(
    "name", ["verification.passed", "inquiry.updated-tags", "account.created", ""]
)
def test_an_authentic_event_about_something_else_is_ignored(name: str) -> None:
    """It is answered well, so that Persona does not send it eight times."""
    body = event(name=name)
    assert read(header(body), body) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"data":{"type":"event"}}',
        json.dumps({"data": EVENT["data"] | {"id": None}}).encode(),
        json.dumps({"data": EVENT["data"] | {"id": "evt_" + "1" * 300}}).encode(),
        json.dumps({"data": EVENT["data"] | {"type": "inquiry"}}).encode(),
        event(payload=None),
        event(payload={"data": {"id": "inq_1/../x"}}),
        event(payload={"data": {"id": "vs_1ExampleAbCdEfGhIjKlMnOp"}}),
        event(name=None),
    ],
)
def test_a_signed_body_that_is_no_event_is_refused(body: bytes) -> None:
    """Authentic messages are parsed with care, too."""
    with pytest.raises(WebhookRefused):
        read(header(body), body)


@given(place=st.sampled_from(places(EVENT)), junk=JUNK | st.just(...))
def test_no_signed_event_whatever_raises_anything_else(
    place: tuple[str | int, ...], junk: object
) -> None:
    """A hint at a well-formed inquiry, nothing, or a refusal."""
    body = json.dumps(put(EVENT, place, junk)).encode()
    try:
        hint = read(header(body), body)
    except WebhookRefused:
        return
    assert hint is None or persona.SESSION_ID.fullmatch(hint.session_id)


@pytest.mark.parametrize("secrets", [(), ("",)])
def test_without_a_secret_every_webhook_is_refused(secrets: tuple[str, ...]) -> None:
    """An account without a secret does not accept the empty string as one."""
    with pytest.raises(WebhookRefused):
        asyncio.run(provider(*secrets).read_webhook({"persona-signature": header()}, BODY))


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("Created", "inquiry.created"),
        ("Pending", "inquiry.started"),
        ("Completed", "inquiry.completed"),
        ("NeedsReview", "inquiry.marked-for-review"),
        ("Verified", "inquiry.approved"),
        ("Declined", "inquiry.declined"),
        ("Failed", "inquiry.failed"),
        ("Expired", "inquiry.expired"),
        ("Redacted", "inquiry.redacted"),
    ],
)
def test_the_simulators_events_are_accepted(part: str, name: str) -> None:
    """Each status has an event, signed with both secrets of a rotation."""
    clock = FixedClock()
    simulator = simulated.Persona(clock.now)
    message = simulator.webhook(session_id(part))
    assert json.loads(message.body)["data"]["attributes"]["name"] == name
    content = dict(simulator.credentials)
    for secrets in ([simulated.WEBHOOK_SECRET], [simulated.OLD_WEBHOOK_SECRET]):
        credentials = msgspec.convert(
            content | {"webhook_secrets": secrets}, persona.PersonaCredentials
        )
        hint = asyncio.run(_hint(credentials, message, clock))
        assert hint is not None
        assert hint.session_id == session_id(part)


def test_events_of_one_delivery_share_a_key_and_different_events_do_not() -> None:
    """A duplicate is known by its key; a late delivery is refused by its time."""
    clock = FixedClock()
    simulator = simulated.Persona(clock.now)
    credentials = msgspec.convert(simulator.credentials, persona.PersonaCredentials)
    first, second = (simulator.webhook(session_id("Verified")) for _ in range(2))

    def key(message: Webhook) -> str:
        hint = asyncio.run(_hint(credentials, message, clock))
        assert hint is not None
        return hint.event_key

    assert key(first) == key(first) != key(second)
    clock.seconds += 1
    elsewhere = simulated.Persona(clock.now).webhook(session_id("Verified"))
    assert key(elsewhere) not in {key(first), key(second)}
    clock.seconds += 301
    with pytest.raises(WebhookRefused):
        key(first)


async def _hint(
    credentials: persona.PersonaCredentials, message: Webhook, clock: FixedClock
) -> WebhookHint | None:
    asked = persona.Persona(credentials, base_url=None, fingerprint=fingerprint, clock=clock)
    sent = {name.lower(): value for name, value in message.headers}
    return await asked.read_webhook(sent, message.body)
