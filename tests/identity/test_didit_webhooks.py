"""Didit's webhooks: authentic ones, their hints, and refusals."""

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
from countersign.identity.didit import (
    CANONICAL_BYTES_MAX,
    CANONICAL_MEMBERS_MAX,
    Didit,
    DiditCredentials,
)
from countersign.identity.model import WebhookHint
from countersign_simulators import didit as simulated
from tests.identity.asking import JUNK, NOW, FixedClock, fingerprint
from tests.support.every import every

NEW, OLD = "new-destination-secret", "old-destination-secret"
SECONDS: Final = int(NOW)
SESSION: Final = "3b2c1d0e-1111-4222-8333-444455556666"
MESSAGE: Final[dict[str, Any]] = {
    "webhook_type": "status.updated",
    "event_id": "evt-1",
    "timestamp": SECONDS,
    "session_id": SESSION,
    "status": "Approved",
    "decision": {"score": 95.0, "half": 0.5, "first_name": "Zoë Bärenfröhlich", "list": [1.0, {}]},
}
# Computed by Didit's recipe: sorted names, no spaces, Unicode as it is, 95.0 written 95.
CANONICAL: Final = (
    '{"decision":{"first_name":"Zoë Bärenfröhlich","half":0.5,"list":[1,{}],"score":95},'
    f'"event_id":"evt-1","session_id":"{SESSION}","status":"Approved",'
    f'"timestamp":{SECONDS},"webhook_type":"status.updated"}}'
).encode()
BODY: Final = json.dumps(MESSAGE).encode()


def mac(message: bytes, secret: str = NEW) -> str:
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def canonical(message: object) -> bytes:
    """For messages without whole floats, Didit's recipe is plain sorted JSON."""
    text = json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def read(
    headers: dict[str, str], body: bytes, secrets: tuple[str, ...] = (NEW, OLD)
) -> WebhookHint | None:
    provider = Didit(
        DiditCredentials(api_key="application-key", webhook_secrets=secrets),
        base_url="http://127.0.0.1:9",
        fingerprint=fingerprint,
        clock=FixedClock(),
    )
    return asyncio.run(provider.read_webhook(headers, body))


V2: Final = {"x-timestamp": str(SECONDS), "x-signature-v2": mac(CANONICAL)}
RAW: Final = {"x-timestamp": str(SECONDS), "x-signature": mac(BODY)}
HINT: Final = WebhookHint(session_id=SESSION, event_key="evt-1")


@pytest.mark.parametrize(
    "body",
    [
        BODY,
        CANONICAL,
        json.dumps(MESSAGE, indent=4).encode(),
        json.dumps(MESSAGE, ensure_ascii=False).encode(),
        json.dumps(dict(reversed(MESSAGE.items()))).encode(),
        BODY.replace(b"95.0", b"95").replace(b"1.0", b"1e0"),
    ],
)
def test_the_second_signature_survives_another_encoding(body: bytes) -> None:
    """X-Signature-V2 covers the parsed message, whatever its JSON encoding."""
    assert read(V2, body) == HINT


def test_the_first_signature_covers_the_bytes() -> None:
    """X-Signature is accepted over the very bytes and over no others."""
    assert read(RAW, BODY) == HINT
    with pytest.raises(WebhookRefused):
        read(RAW, BODY + b" ")


def test_either_signature_is_enough_and_either_secret() -> None:
    """Re-encoding breaks the raw signature; two secrets overlap during a replacement."""
    assert read(V2 | {"x-signature": "0" * 64}, BODY) == HINT
    assert read(RAW | {"x-signature-v2": "0" * 64}, BODY) == HINT
    assert read(V2 | {"x-signature-v2": mac(CANONICAL, OLD)}, BODY) == HINT
    assert read(RAW | {"x-signature": mac(BODY, OLD).upper()}, BODY) == HINT


def test_the_simple_signature_alone_is_refused() -> None:
    """X-Signature-Simple does not cover the decision."""
    for simple in (
        f"{SECONDS}:{SESSION}:Approved:status.updated",
        f"{SESSION}|Approved|{SECONDS}",
    ):
        headers = {"x-timestamp": str(SECONDS), "x-signature-simple": mac(simple.encode())}
        with pytest.raises(WebhookRefused):
            read(headers, BODY)


def test_a_second_signature_with_the_time_before_the_message_is_refused() -> None:
    """That recipe is in one test somewhere, and not in Didit's documentation."""
    for between in ("", ".", ":"):
        prefixed = mac(f"{SECONDS}{between}".encode() + CANONICAL)
        with pytest.raises(WebhookRefused):
            read(V2 | {"x-signature-v2": prefixed}, BODY)


@pytest.mark.parametrize("change", [b"Declined", b"approved"])
def test_a_changed_message_is_refused(change: bytes) -> None:
    """Neither signature is valid for other content."""
    body = BODY.replace(b"Approved", change)
    for headers in (V2, RAW):
        with pytest.raises(WebhookRefused):
            read(headers, body)


@pytest.mark.parametrize("offset", [-301, 301, -86400, 86400])
def test_an_old_or_future_message_is_refused(offset: int) -> None:
    """300 seconds to either side, by the header and by the message's own time."""
    with pytest.raises(WebhookRefused):
        read(V2 | {"x-timestamp": str(SECONDS + offset)}, BODY)
    # The header is not signed: a new one does not make an old message new.
    message = MESSAGE | {"timestamp": SECONDS + offset, "decision": {}}
    headers = {"x-timestamp": str(SECONDS), "x-signature-v2": mac(canonical(message))}
    with pytest.raises(WebhookRefused):
        read(headers, json.dumps(message).encode())


@pytest.mark.parametrize("offset", [-300, 300])
def test_a_message_within_the_tolerance_is_accepted(offset: int) -> None:
    """Clocks differ: five minutes are allowed."""
    assert read(V2 | {"x-timestamp": str(SECONDS + offset)}, BODY) == HINT


@every(
    "headers",
    [
        {},
        {"x-timestamp": str(SECONDS)},
        {"x-signature-v2": V2["x-signature-v2"]},
        {"x-signature": RAW["x-signature"]},
        V2 | {"x-timestamp": ""},
        V2 | {"x-timestamp": f"{SECONDS}.0"},
        V2 | {"x-timestamp": f" {SECONDS}"},
        V2 | {"x-timestamp": f"+{SECONDS}"},
        V2 | {"x-timestamp": f"-{SECONDS}"},
        V2 | {"x-timestamp": f"{SECONDS}\n"},
        V2 | {"x-timestamp": "\uff11" * 10},
        V2 | {"x-timestamp": "9" * 5000},
        V2 | {"x-timestamp": "2026-11-17T17:00:00Z"},
        V2 | {"x-signature-v2": ""},
        V2 | {"x-signature-v2": V2["x-signature-v2"][:-1]},
        V2 | {"x-signature-v2": V2["x-signature-v2"] + "0"},
        V2 | {"x-signature-v2": "sha256=" + V2["x-signature-v2"]},
        V2 | {"x-signature-v2": "é" * 64},
        V2 | {"x-signature-v2": "\ud800" * 64},
        V2 | {"x-signature-v2": mac(CANONICAL, "another-secret")},
        V2 | {"x-signature-v2": hashlib.sha256(CANONICAL).hexdigest()},
        RAW | {"x-signature": mac(BODY, "another-secret")},
        RAW | {"x-signature": RAW["x-signature"] + "\n"},
    ],
)
def test_a_missing_or_malformed_header_is_refused(headers: dict[str, str]) -> None:
    """Time and one whole signature are needed."""
    with pytest.raises(WebhookRefused):
        read(headers, BODY)


@pytest.mark.parametrize(
    "decision",
    [
        "x" * CANONICAL_BYTES_MAX,
        [0] * CANONICAL_MEMBERS_MAX,
        [{}] * (CANONICAL_MEMBERS_MAX // 2),
        {"a": [[]] * (CANONICAL_MEMBERS_MAX // 2)},
    ],
)
def test_a_large_message_counts_only_with_the_signature_of_its_bytes(decision: object) -> None:
    """X-Signature-V2 can be checked only after parsing: a stranger must not make us parse much."""
    message = MESSAGE | {"decision": decision}
    body = canonical(message)
    time = {"x-timestamp": str(SECONDS)}
    with pytest.raises(WebhookRefused):
        read(time | {"x-signature-v2": mac(body)}, body)
    assert read(time | {"x-signature": mac(body)}, body) == HINT


def test_a_number_that_would_grow_has_no_canonical_form() -> None:
    """`1e300` is five bytes, and 301 digits as an integer."""
    body = json.dumps(MESSAGE | {"decision": {"n": 1e300}}).encode()
    grown = canonical(MESSAGE | {"decision": {"n": int(1e300)}})
    with pytest.raises(WebhookRefused):
        read({"x-timestamp": str(SECONDS), "x-signature-v2": mac(grown)}, body)


def test_without_a_secret_every_message_is_refused() -> None:
    """An account without a destination at Didit gets no messages from it."""
    with pytest.raises(WebhookRefused):
        read(V2 | RAW, BODY, secrets=())
    with pytest.raises(WebhookRefused):
        read({"x-timestamp": str(SECONDS), "x-signature": mac(BODY, "")}, BODY, secrets=())


@every(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"not json",
        b'{"webhook_type":NaN}',
        b'{"webhook_type":"status.updated"}',
        BODY.replace(SESSION.encode(), SESSION.upper().encode()),
        BODY.replace(SESSION.encode(), b"../../etc"),
        BODY.replace(f'"{SESSION}"'.encode(), b"17"),
        BODY[:-1] + b',"status":"Declined"}',
        b'{"webhook_type":"status.updated","session_id":"\\ud800"}',
        b"[" * 100_000,
    ],
)
def test_an_authentic_message_that_cannot_be_read_is_refused(body: bytes) -> None:
    """A signature does not make an impossible session id possible."""
    with pytest.raises(WebhookRefused):
        read({"x-timestamp": str(SECONDS), "x-signature": mac(body)}, body)


@pytest.mark.parametrize(
    "members",
    [
        {"webhook_type": "transaction.created"},
        {"webhook_type": "user.status.updated"},
        {"webhook_type": None},
        {"session_kind": "business", "session_id": None},
    ],
)
def test_an_authentic_message_about_something_else_is_no_hint(members: dict[str, Any]) -> None:
    """Messages about businesses, users and payments are passed over without an error."""
    body = json.dumps(MESSAGE | members).encode()
    assert read({"x-timestamp": str(SECONDS), "x-signature": mac(body)}, body) is None


def test_without_an_event_id_the_key_is_a_digest_of_the_message() -> None:
    """Two deliveries in different encodings are one event."""
    message = {name: value for name, value in MESSAGE.items() if name != "event_id"}
    message |= {"decision": {"first_name": "Zoë"}}
    headers = {"x-timestamp": str(SECONDS), "x-signature-v2": mac(canonical(message))}
    hints = [
        read(headers, json.dumps(message).encode()),
        read(headers, json.dumps(message, indent=2, ensure_ascii=False).encode()),
    ]
    keys = {hint.event_key for hint in hints if hint}
    assert keys == {hashlib.sha256(canonical(message)).hexdigest()}


@given(
    st.dictionaries(
        st.sampled_from(["x-timestamp", "x-signature", "x-signature-v2", "x-signature-simple"]),
        st.text(max_size=80) | st.sampled_from([str(SECONDS), "0" * 64]),
    ),
    st.binary(max_size=80) | st.just(BODY) | JUNK.map(lambda junk: json.dumps(junk).encode()),
)
def test_no_header_or_body_escapes_as_another_error(headers: dict[str, str], body: bytes) -> None:
    """Whatever is sent without the secret is refused, and nothing else happens."""
    with pytest.raises(WebhookRefused):
        read(headers, body)


@given(JUNK, JUNK, JUNK)
def test_no_signed_content_escapes_as_another_error(one: Any, two: Any, three: Any) -> None:  # noqa: ANN401 - any JSON value
    """Any JSON that is properly signed gives a hint, nothing, or a refusal."""
    for content in (MESSAGE | {"session_id": one, "timestamp": two, "event_id": three}, one):
        body = json.dumps(content).encode()
        try:
            hint = read({"x-timestamp": str(SECONDS), "x-signature": mac(body)}, body)
        except WebhookRefused:
            continue
        assert hint is None or hint.session_id == one


def test_the_simulator_signs_as_the_adapter_expects() -> None:
    """Both sides are written from Didit's recipe, and agree on either signature."""
    simulator = simulated.Didit(FixedClock().now)
    for session in simulator.sessions:
        webhook = simulator.webhook(session.session_id)
        headers = {name.lower(): value for name, value in webhook.headers}
        for leave_out in ("x-signature", "x-signature-v2"):
            one = {name: value for name, value in headers.items() if name != leave_out}
            hint = read(one, webhook.body, secrets=(simulated.WEBHOOK_SECRET,))
            assert hint is not None
            assert hint.session_id == session.session_id
