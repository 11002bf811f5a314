"""Headers that must not be repeated, and misdeclared bodies."""

from __future__ import annotations

import httpx2
import pytest

pytestmark = pytest.mark.one_engine

VERIFY = "/v1/buyers/verify"
BODY = b'{"test_mode":true}'


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer another"),
        ("Content-Type", "application/json"),
        ("Idempotency-Key", "another"),
    ],
)
def test_a_repeated_header_is_refused(client: httpx2.Client, name: str, value: str) -> None:
    """A proxy in front may have read the first one, and we would read the last."""
    own = {
        "Authorization": client.headers["Authorization"],
        "Content-Type": "application/json",
        "Idempotency-Key": "one",
    }
    answer = client.post(VERIFY, content=BODY, headers=[*own.items(), (name, value)])
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_request"
    assert name.lower() in answer.json()["error"]["message"]


def test_a_compressed_body_is_an_unsupported_media_type(client: httpx2.Client) -> None:
    """It is not read as if it were plain."""
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = client.post(VERIFY, content=BODY, headers=headers)
    assert answer.status_code == 415
    assert answer.json()["error"]["code"] == "unsupported_media_type"
