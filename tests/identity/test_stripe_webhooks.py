"""Stripe's webhooks: authentic ones give a hint, everything else is refused."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from typing import Any, Final

import msgspec
import pytest
import stripe as sdk
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.errors import WebhookRefused
from countersign.identity import stripe
from countersign.identity.model import WebhookHint
from countersign_simulators import stripe as simulated
from countersign_simulators.stripe_sessions import session_id
from tests.identity.asking import JUNK, NOW, FixedClock, fingerprint, places, put
from tests.support.every import every

SECRET: Final = "whsec_of_this_test"
OLD_SECRET: Final = "whsec_of_last_month"
SESSION: Final = "vs_1ExampleAbCdEfGhIjKlMnOp"
EVENT: Final[dict[str, Any]] = {
    "id": "evt_1Example",
    "object": "event",
    "type": "identity.verification_session.verified",
    "data": {"object": {"id": SESSION, "object": "identity.verification_session"}},
}
BODY: Final = json.dumps(EVENT).encode()
TIME: Final = str(int(NOW))


def signature(body: bytes, *, secret: str = SECRET, time: str = TIME) -> str:
    """The recipe as Stripe publishes it: HMAC-SHA256 of time, a full stop, and the raw body."""
    return hmac.new(secret.encode(), time.encode() + b"." + body, hashlib.sha256).hexdigest()


def header(body: bytes = BODY, *, secret: str = SECRET, time: str = TIME) -> str:
    return f"t={time},v1={signature(body, secret=secret, time=time)}"


def read(sent: str | None, body: bytes = BODY) -> WebhookHint | None:
    provider = stripe.Stripe(
        stripe.StripeCredentials(api_key="rk_live_none", webhook_secrets=(OLD_SECRET, SECRET)),
        base_url=None,
        fingerprint=fingerprint,
        clock=FixedClock(),
    )
    headers = {} if sent is None else {"stripe-signature": sent}
    return asyncio.run(provider.read_webhook(headers, body))


HINT: Final = WebhookHint(session_id=SESSION, event_key="evt_1Example")


THIN: Final[dict[str, Any]] = {
    "id": "evt_1Example",
    "object": "v2.core.event",
    "type": "v1.identity.verification_session.verified",
    "related_object": {"id": SESSION, "type": "identity.verification_session"},
}


def test_a_thin_event_gives_its_session_too() -> None:
    """As Stripe recommends them for new destinations; its ping is taken, and says nothing."""
    body = json.dumps(THIN).encode()
    assert read(header(body), body) == HINT
    ping = json.dumps(THIN | {"type": "v2.core.event_destination.ping"}).encode()
    assert read(header(ping), ping) is None


@pytest.mark.parametrize(
    "sent",
    [
        header(),
        header(secret=OLD_SECRET),
        f"t={TIME},v1={'0' * 64},v1={signature(BODY)}",
        f"t={TIME},v0={'0' * 64},v1={signature(BODY)}",
        f"v1={signature(BODY)},t={TIME}",
        header(time=str(int(NOW) - 300)),
        header(time=str(int(NOW) + 300)),
    ],
    ids=["new", "old secret", "two v1", "v0", "other order", "late", "early"],
)
def test_an_authentic_event_gives_its_session(sent: str) -> None:
    """Any `v1` by any secret counts, up to five minutes from now."""
    assert read(sent) == HINT


@every(
    "sent",
    [
        None,
        "",
        ",",
        "=",
        f"t={TIME}",
        f"v1={signature(BODY)}",
        f"t=,v1={signature(BODY)}",
        f"t={TIME},v1=",
        f"t={TIME},v0={signature(BODY)}",
        f"t={TIME},t={TIME},v1={signature(BODY)}",
        f"t={TIME},v1={signature(BODY)[:-1]}",
        f"t={TIME},v1={signature(BODY).upper()}",
        f"t={TIME},v1={signature(BODY)}é",
        f"t={TIME} ,v1={signature(BODY)}",
        f"t=-{TIME},v1={signature(BODY, time=f'-{TIME}')}",
        f"t=+{TIME},v1={signature(BODY, time=f'+{TIME}')}",
        f"t={TIME}.0,v1={signature(BODY, time=f'{TIME}.0')}",
        f"t={'9' * 400},v1={signature(BODY, time='9' * 400)}",
        "t=\u0661\u0662," + f"v1={signature(BODY)}",
        header(secret="whsec_of_somebody_else"),
        header(time=str(int(NOW) - 301)),
        header(time=str(int(NOW) + 301)),
        header(b"another body"),
        header() + "," * 5000,
        header() + ",v1=zz",
    ],
)
def test_a_header_malformed_in_any_way_is_refused(sent: str | None) -> None:
    """No header, half a header, another secret's, too old, too early: 400 and no exception else."""
    with pytest.raises(WebhookRefused):
        read(sent)


@given(st.text(max_size=200) | st.from_regex(r"(t|v1|v0)=[0-9a-f]{0,70}(,(t|v1)=[^,]*)*"))
def test_no_header_whatever_raises_anything_else(sent: str) -> None:
    """Fuzzed: a header that we did not sign is refused."""
    with pytest.raises(WebhookRefused):
        read(sent)


def test_a_body_changed_by_one_space_is_refused() -> None:
    """The raw bytes are signed, not the parsed content."""
    with pytest.raises(WebhookRefused):
        read(header(), BODY + b" ")


@pytest.mark.parametrize("kind", ["charge.succeeded", "identity.verification_session.new", ""])
def test_an_authentic_event_about_something_else_is_ignored(kind: str) -> None:
    """It is answered well, so that Stripe does not send it again for three days."""
    body = json.dumps(EVENT | {"type": kind}).encode()
    assert read(header(body), body) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"object":"event"}',
        json.dumps(EVENT | {"id": None}).encode(),
        json.dumps(EVENT | {"id": "evt_" + "1" * 300}).encode(),
        json.dumps(EVENT | {"object": "list"}).encode(),
        json.dumps(EVENT | {"data": None}).encode(),
        json.dumps(EVENT | {"data": {"object": {"id": "vs_1/../x"}}}).encode(),
        json.dumps(EVENT | {"data": {"object": {"id": "inq_1ExampleAbCdEfGhIjKlMnOp"}}}).encode(),
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
    """A hint at a well-formed session, nothing, or a refusal."""
    body = json.dumps(put(EVENT, place, junk)).encode()
    try:
        hint = read(header(body), body)
    except WebhookRefused:
        return
    assert hint is None or stripe.SESSION_ID.fullmatch(hint.session_id)


def test_without_a_secret_every_webhook_is_refused() -> None:
    """An account without a secret does not accept the empty string as one."""
    for secrets in ((), ("",)):
        provider = stripe.Stripe(
            stripe.StripeCredentials(api_key="rk_live_none", webhook_secrets=secrets),
            base_url=None,
            fingerprint=fingerprint,
            clock=FixedClock(),
        )
        with pytest.raises(WebhookRefused):
            asyncio.run(provider.read_webhook({"stripe-signature": header()}, BODY))


def test_stripes_own_signatures_are_accepted() -> None:
    """We accept signatures made by Stripe's SDK."""
    signed = sdk.WebhookSignature.generate_signature_header(BODY.decode(), SECRET, int(NOW))
    assert read(signed) == HINT


@pytest.mark.parametrize("change", ["processing", "verified", "requires_input", "canceled"])
def test_the_simulators_events_are_accepted_by_us_and_by_stripes_sdk(change: str) -> None:
    """Each status has an event; the session in it is not expanded."""
    names = {
        "processing": "Processing",
        "verified": "Verified",
        "requires_input": "NotStarted",
        "canceled": "Canceled",
    }
    clock = FixedClock()
    simulator = simulated.Stripe(clock.now)
    message = simulator.webhook(session_id(names[change]))
    sent = dict(message.headers)["Stripe-Signature"]
    credentials = msgspec.convert(simulator.credentials, stripe.StripeCredentials)
    provider = stripe.Stripe(credentials, base_url=None, fingerprint=fingerprint, clock=clock)
    hint = asyncio.run(provider.read_webhook({"stripe-signature": sent}, message.body))
    assert hint is not None
    assert hint.session_id == session_id(names[change])
    sdk.WebhookSignature.verify_header(message.body, sent, simulated.WEBHOOK_SECRET)
    event = json.loads(message.body)
    assert event["type"] == f"identity.verification_session.{change}"
    assert "verified_outputs" not in event["data"]["object"]


def test_events_of_one_delivery_share_a_key_and_different_events_do_not() -> None:
    """A duplicate is known by its key; a late delivery is refused by its time."""
    clock = FixedClock()
    simulator = simulated.Stripe(clock.now)
    first, second = (simulator.webhook(session_id("Verified")) for _ in range(2))
    credentials = msgspec.convert(simulator.credentials, stripe.StripeCredentials)
    provider = stripe.Stripe(credentials, base_url=None, fingerprint=fingerprint, clock=clock)

    def key(message: Any) -> str:  # noqa: ANN401 - a simulator's message
        sent = {name.lower(): value for name, value in message.headers}
        hint = asyncio.run(provider.read_webhook(sent, message.body))
        assert hint is not None
        return hint.event_key

    assert key(first) == key(first) != key(second)
    clock.seconds += 1
    elsewhere = simulated.Stripe(clock.now).webhook(session_id("Verified"))
    assert key(elsewhere) not in {key(first), key(second)}
    clock.seconds += 301
    with pytest.raises(WebhookRefused):
        key(first)
