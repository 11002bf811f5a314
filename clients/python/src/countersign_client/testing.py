"""For the tests of your own code: responses without a server, and signed webhook messages."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

import httpx2
import msgspec

from countersign_client.webhooks import sign

SECRET: Final = "whsec_" + "dGVzdGluZy1zZWNyZXQtb2YtdGhlLWNsaWVudA=="
"""A secret to sign messages with in tests."""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An error that the server returns."""

    status: int
    code: str
    message: str = "Refused by a test."
    headers: Mapping[str, str] = field(default_factory=dict)


class Answers:
    """Responses of a server, by method and path: `{"GET /v1/notices/ab1263": {...}}`.

    A list is returned one by one, and its last element from then on. Pass `transport` to an
    httpx2 client, and that to `Countersign(http_client=…)`. `requests` are those that came.
    """

    def __init__(self, answers: Mapping[str, object]) -> None:
        self._answers = {
            name: list(answer) if isinstance(answer, list) else [answer]
            for name, answer in answers.items()
        }
        self.requests: list[httpx2.Request] = []
        self.transport: Final = httpx2.MockTransport(self._answer)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        name = f"{request.method} {request.url.path}"
        if name not in self._answers:
            raise AssertionError(f"the test has no answer for {name}")
        waiting = self._answers[name]
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(answer, Refusal):
            error = {"error": {"code": answer.code, "message": answer.message}}
            return httpx2.Response(answer.status, json=error, headers=dict(answer.headers))
        if isinstance(answer, bytes):
            return httpx2.Response(200, content=answer)
        return httpx2.Response(
            200, content=msgspec.json.encode(answer), headers={"Content-Type": "application/json"}
        )


def webhook_message(
    type_: str,
    data: Mapping[str, object],
    *,
    secret: str = SECRET,
    livemode: bool = False,
    now: float | None = None,
) -> tuple[bytes, dict[str, str]]:
    """The body and the headers of a signed message about an event, to post to your receiver."""
    now = time.time() if now is None else now
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    id_ = f"evt_{uuid4().hex}"
    event = {"type": type_, "timestamp": stamp, "id": id_, "livemode": livemode}
    body = msgspec.json.encode(event | {"created_at": stamp, "data": data})
    return body, sign(secret, id_, int(now), body) | {"content-type": "application/json"}
