"""Authentic and false webhook messages: both clients judge them."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from typing import NamedTuple

from countersign.core.webhooks.model import PrivateKey, SharedSecret, sign

SECRET, OTHER, PRIVATE = SharedSecret(b"s" * 32), SharedSecret(b"o" * 24), PrivateKey(b"k" * 32)
BODY = json.dumps(
    {
        "type": "buyer.revoked",
        "timestamp": "2026-11-20T21:31:00Z",
        "id": "evt_1",
        "livemode": True,
        "created_at": "2026-11-20T21:31:00Z",
        "data": {"cbid": "cbid_é€"},
    }
).encode()


class Message(NamedTuple):
    """A message, and whether it is authentic."""

    secret: str
    headers: dict[str, str]
    body: bytes
    authentic: bool

    def as_json(self) -> dict[str, object]:
        return self._asdict() | {"body": b64encode(self.body).decode()}


def messages() -> list[Message]:
    """By the signatures of the server, now."""
    now = int(time.time())
    headers = sign([SECRET, PRIVATE], "evt_1", now, BODY)
    rotating = sign([OTHER, PrivateKey(b"x" * 32), PRIVATE, SECRET], "evt_1", now, BODY)
    good = [headers, rotating, {name.title(): value for name, value in headers.items()}]
    good.append(sign([SECRET, PRIVATE], "evt_1", now - 250, BODY))
    bad = [
        headers | {"webhook-id": "evt_2"},
        headers | {"webhook-timestamp": str(now - 1)},
        headers | {"webhook-timestamp": "yesterday"},
        headers | {"webhook-timestamp": ""},
        headers | {"webhook-timestamp": "9" * 400},
        headers | {"webhook-signature": ""},
        headers | {"webhook-signature": "v1,AAAA v1a,AAAA v1,%%% v1a,%%% v1 v1a"},
        headers | {"webhook-signature": "v1,é€ v1a,é€"},
        headers | {"webhook-signature": headers["webhook-signature"].replace("v1", "v2")},
        sign([SECRET, PRIVATE], "evt_1", now - 400, BODY),
        sign([SECRET, PRIVATE], "evt_1", now + 400, BODY),
        sign([OTHER, PrivateKey(b"x" * 32)], "evt_1", now, BODY),
    ]
    bad += [{n: v for n, v in headers.items() if n != name} for name in headers]
    found = []
    for secret in (SECRET.text, PRIVATE.public_key):
        found += [Message(secret, one, BODY, authentic=True) for one in good]
        found += [Message(secret, one, BODY, authentic=False) for one in bad]
        found.append(Message(secret, headers, BODY + b" ", authentic=False))
        nothing = sign([SECRET, PRIVATE], "evt_1", now, b"[1]")
        found.append(Message(secret, nothing, b"[1]", authentic=False))
        for body in (b"{", b'{"id": "\xff"}', b"[" * 5_000):
            nothing = sign([SECRET, PRIVATE], "evt_1", now, body)
            found.append(Message(secret, nothing, body, authentic=False))
    # A signature of one kind is not valid as the other.
    found.append(Message(SECRET.text, sign([PRIVATE], "evt_1", now, BODY), BODY, authentic=False))
    only = sign([SECRET], "evt_1", now, BODY)
    found.append(Message(PRIVATE.public_key, only, BODY, authentic=False))
    return found
