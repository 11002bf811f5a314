"""Signing and verifying by Standard Webhooks 1.0.0, and what the reference library says to it."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
import standardwebhooks
from hypothesis import given
from hypothesis import strategies as st

from countersign.webhooks.signature import (
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    PrivateKey,
    PublicKey,
    SharedSecret,
    WebhookVerificationFailed,
    sign,
    verify,
)

# libraries/python/tests/test_webhooks.py of the reference repository.
VECTOR_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
VECTOR_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
VECTOR_BODY = b'{"test": 2432232314}'
VECTOR_TIME = 1614265330
VECTOR_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

SHARED = SharedSecret(bytes(range(32)))
PRIVATE = PrivateKey(bytes(range(32)))
NOW = 1_795_210_260
BODY = b'{"type":"acknowledgment.created"}'


def signed() -> dict[str, str]:
    return sign([SHARED, PRIVATE], "evt_1", NOW, BODY)


def test_the_known_answer_of_the_specification() -> None:
    """The vector of the reference repository gives its signature, and verifies."""
    secret = SharedSecret.from_text(VECTOR_SECRET)
    headers = sign([secret], VECTOR_ID, VECTOR_TIME, VECTOR_BODY)
    assert headers[SIGNATURE_HEADER] == VECTOR_SIGNATURE
    assert verify([secret], headers, VECTOR_BODY, VECTOR_TIME) == VECTOR_ID
    assert secret.text == VECTOR_SECRET


def test_the_ed25519_signature_is_that_of_rfc_8032() -> None:
    """v1a signs the same bytes: the first test vector's key, and a body of our own."""
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    key = PrivateKey(seed)
    assert key.public_key.text == "whpk_" + base64.b64encode(public).decode()
    assert PrivateKey.from_text("whsk_" + base64.b64encode(seed).decode()).text == key.text
    headers = sign([key], "evt_1", NOW, BODY)
    assert headers[SIGNATURE_HEADER].startswith("v1a,")
    assert verify([PublicKey.from_text(key.public_key.text)], headers, BODY, NOW) == "evt_1"


def test_the_reference_library_accepts_what_we_sign_and_we_what_it_signs() -> None:
    """Both ways, with a v1a signature beside that the library does not know."""
    library = standardwebhooks.Webhook(SHARED.text)
    now = datetime.now(tz=UTC)
    headers = sign([PRIVATE, SHARED], "evt_1", int(now.timestamp()), BODY)
    assert library.verify(BODY, headers) == {"type": "acknowledgment.created"}
    theirs = headers | {SIGNATURE_HEADER: library.sign("evt_1", now, BODY.decode())}
    assert verify([SHARED], theirs, BODY, now.timestamp()) == "evt_1"


def test_during_a_rotation_old_and_new_keys_both_verify() -> None:
    """A header with the signatures of two generations satisfies holders of either."""
    new, new_private = SharedSecret(b"n" * 32), PrivateKey(b"n" * 32)
    headers = sign([new, new_private, SHARED, PRIVATE], "evt_1", NOW, BODY)
    for key in (SHARED, PRIVATE.public_key, new, new_private.public_key):
        assert verify([key], headers, BODY, NOW) == "evt_1"


@pytest.mark.parametrize("seconds", [-301, 301, -(10**9)])
def test_a_message_that_is_too_old_or_from_the_future_is_refused(seconds: int) -> None:
    """Five minutes either way, and an authentic signature does not help."""
    with pytest.raises(WebhookVerificationFailed):
        verify([SHARED], signed(), BODY, NOW - seconds)
    assert verify([SHARED], signed(), BODY, NOW + 300) == "evt_1"
    assert verify([SHARED], signed(), BODY, NOW - 300) == "evt_1"


@pytest.mark.parametrize("now", [float("nan"), float("inf")])
def test_a_clock_that_is_no_number_lets_nothing_pass(now: float) -> None:
    """A comparison that is never true must not mean accepted."""
    with pytest.raises(WebhookVerificationFailed):
        verify([SHARED], signed(), BODY, now)


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": "evt_2"},
        {"webhook-id": ""},
        {"webhook-id": "evt.1"},
        {"webhook-id": "é"},
        {"webhook-id": "e" * 300},
        {"webhook-timestamp": str(NOW + 1)},
        {"webhook-timestamp": f"{NOW}.0"},
        {"webhook-timestamp": f" {NOW}"},
        {"webhook-timestamp": f"{NOW}\n"},
        {"webhook-timestamp": f"+{NOW}"},
        {"webhook-timestamp": "1_795_210_260"},
        {"webhook-timestamp": "²"},
        {"webhook-timestamp": "٣"},
        {"webhook-timestamp": "nan"},
        {"webhook-timestamp": "1e9"},
        {"webhook-timestamp": "9" * 5000},
        {"webhook-timestamp": ""},
        {"webhook-signature": ""},
        {"webhook-signature": "v1"},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1,%%%"},
        {"webhook-signature": "v1,é"},
        {"webhook-signature": "v1,AAAA,AAAA"},
        {"webhook-signature": "v1a,AAAA"},
        {"webhook-signature": "v2," + "A" * 44},
        {"webhook-signature": " " * 4000},
        {"webhook-signature": "v1,\ud800"},
        {"Webhook-Id": "evt_1"},
    ],
)
def test_every_malformed_header_gives_the_one_error(change: dict[str, str]) -> None:
    """Never a ValueError, whatever is in it; this was a slip of other verifiers."""
    headers = signed() | change
    with pytest.raises(WebhookVerificationFailed):
        verify([SHARED, PRIVATE.public_key], headers, BODY, NOW)


@pytest.mark.parametrize("missing", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_missing_header_gives_the_one_error(missing: str) -> None:
    """A message without one of the three is no message."""
    headers = {name: value for name, value in signed().items() if name != missing}
    with pytest.raises(WebhookVerificationFailed):
        verify([SHARED], headers, BODY, NOW)


@given(st.dictionaries(st.sampled_from([*signed()]), st.text()), st.binary())
def test_no_headers_and_no_body_bring_another_error(headers: dict[str, str], body: bytes) -> None:
    """Any text in any header, and any bytes: the one error."""
    with pytest.raises(WebhookVerificationFailed):
        verify([SHARED, PRIVATE.public_key], signed() | headers, body + b"x", NOW)


@given(st.text(), st.integers(0, 3))
def test_a_signature_among_rubbish_counts(rubbish: str, place: int) -> None:
    """What is malformed is passed over: the next version of the scheme may stand beside v1."""
    parts = [p for p in rubbish.split(" ") if p.isascii()][:4]
    parts.insert(place, signed()[SIGNATURE_HEADER])
    headers = signed() | {SIGNATURE_HEADER: " ".join(parts)}
    assert verify([SHARED], headers, BODY, NOW) == "evt_1"


def test_names_of_headers_count_in_any_letter_case() -> None:
    """As HTTP has it."""
    shouted = {name.upper(): value for name, value in signed().items()}
    assert verify([SHARED], shouted, BODY, NOW) == "evt_1"


@pytest.mark.parametrize(
    "text", ["whsec_", "whsec_AAAA", "whsk_" + "A" * 44, "A" * 44, "whsec_%%%", "whsec_" + "A" * 99]
)
def test_a_secret_of_the_wrong_form_is_refused(text: str) -> None:
    """24 to 64 bytes behind whsec_, as the specification has it."""
    with pytest.raises(ValueError):  # noqa: PT011 - the decoder's own is one of them
        SharedSecret.from_text(text)


@pytest.mark.parametrize("message_id", ["", "a.b", "a b", "é", "a\nb"])
def test_an_id_that_could_be_misread_is_not_signed(message_id: str) -> None:
    """A full stop in the id would let one signature stand for two messages."""
    with pytest.raises(ValueError, match="can be signed"):
        sign([SHARED], message_id, NOW, BODY)


def test_secrets_do_not_show_in_a_traceback() -> None:
    """What is printed by accident says nothing."""
    assert "AAEC" not in repr(SHARED) + repr(PRIVATE)


def test_the_timestamp_is_whole_seconds() -> None:
    """Integer Unix seconds, as receivers parse them."""
    assert signed()[TIMESTAMP_HEADER] == str(NOW)
