"""Signing by Standard Webhooks 1.0.0, compared with the reference library."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
import standardwebhooks

from countersign.core.webhooks.model import (
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    PrivateKey,
    SharedSecret,
    sign,
)
from tests.webhooks.verifying import verify

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
    assert verify([secret.text], headers, VECTOR_BODY, VECTOR_TIME) == VECTOR_ID
    assert secret.text == VECTOR_SECRET


def test_the_ed25519_signature_matches_rfc_8032() -> None:
    """v1a signs the same bytes: the first test vector's key, and a body of our own."""
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    key = PrivateKey(seed)
    assert key.public_key == "whpk_" + base64.b64encode(public).decode()
    headers = sign([key], "evt_1", NOW, BODY)
    assert headers[SIGNATURE_HEADER].startswith("v1a,")
    assert verify([key.public_key], headers, BODY, NOW) == "evt_1"


def test_the_reference_library_and_we_accept_each_others_signatures() -> None:
    """Both ways, with a v1a signature in the same header that the library does not know."""
    library = standardwebhooks.Webhook(SHARED.text)
    now = datetime.now(tz=UTC)
    headers = sign([PRIVATE, SHARED], "evt_1", int(now.timestamp()), BODY)
    assert library.verify(BODY, headers) == {"type": "acknowledgment.created"}
    theirs = headers | {SIGNATURE_HEADER: library.sign("evt_1", now, BODY.decode())}
    assert verify([SHARED.text], theirs, BODY, now.timestamp()) == "evt_1"


def test_during_a_rotation_old_and_new_keys_both_verify() -> None:
    """A header with the signatures of two generations satisfies holders of either."""
    new, new_private = SharedSecret(b"n" * 32), PrivateKey(b"n" * 32)
    headers = sign([new, new_private, SHARED, PRIVATE], "evt_1", NOW, BODY)
    for key in (SHARED.text, PRIVATE.public_key, new.text, new_private.public_key):
        assert verify([key], headers, BODY, NOW) == "evt_1"


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
    """An accidental print reveals nothing."""
    assert "AAEC" not in repr(SHARED) + repr(PRIVATE)


def test_the_timestamp_is_whole_seconds() -> None:
    """Integer Unix seconds, as receivers parse them."""
    assert signed()[TIMESTAMP_HEADER] == str(NOW)
