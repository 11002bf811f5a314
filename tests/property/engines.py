"""Both engines side by side: every request goes to both, and the verdict must be the same."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.support.service import Server

Header = tuple[bytes, bytes]
JSON_TYPE: Header = (b"Content-Type", b"application/json")

# Legitimate differences between two servers: identifiers and times.
_OWN = re.compile(
    rb"\b(ack|cbid_test|cbid)_[0-7][0-9a-hjkmnp-tv-z]{25}\b|\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    rb"|\"receipt\":\"[^\"]*\""
)
_OWN_HEADERS = {"date", "x-request-id", "content-length"}


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - any JSON
        """The body."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error; the body has its one shape."""
        body = self.json()
        assert set(body) == {"error"}
        assert set(body["error"]) == {"code", "message"}
        return str(body["error"]["code"])

    @property
    def message(self) -> str:
        """The message of an error."""
        return str(self.json()["error"]["message"])

    @property
    def verdict(self) -> tuple[int, dict[str, str], bytes]:
        """The response without the server's own values."""
        headers = {k: v for k, v in self.headers.items() if k not in _OWN_HEADERS}
        if "retry-after" in headers:
            headers["retry-after"] = "some seconds"
        return self.status, headers, _OWN.sub(b"(own)", self.body)


@dataclass(frozen=True, kw_only=True)
class Side:
    """A server on one engine, and its keys by mode."""

    server: Server
    keys: dict[str, bytes]

    def send(
        self,
        method: bytes,
        target: bytes,
        headers: Sequence[Header] = (),
        body: bytes | None = None,
    ) -> Answer:
        """Send exactly these bytes: no client in between corrects or refuses anything."""
        lines = [method + b" " + target + b" HTTP/1.1", b"Host: countersign.test"]
        lines += [name + b": " + value for name, value in headers]
        lines += [b"Connection: close"]
        if body is not None:
            lines += [b"Content-Length: %d" % len(body)]
        address = urlsplit(self.server.url)
        with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
            connection.sendall(b"\r\n".join([*lines, b"", body or b""]))
            response = HTTPResponse(connection, method=method.decode("ascii"))
            response.begin()
            with response:
                sent = {name.lower(): value for name, value in response.getheaders()}
                return Answer(response.status, sent, response.read())

    def read(self, path: str) -> Any:  # noqa: ANN401 - any JSON
        """The object at this address, for the test key."""
        answer = self.send(b"GET", path.encode(), [(b"Authorization", self.bearer("test"))])
        assert answer.status == 200
        return answer.json()

    def bearer(self, key: str) -> bytes:
        """The credentials with the key of this mode, or with an invalid token."""
        return b"Bearer " + self.keys.get(key, key.encode("latin-1"))


@dataclass(frozen=True, kw_only=True)
class Engines:
    """The two sides."""

    sqlite: Side
    postgres: Side

    def send(
        self,
        method: bytes,
        target: bytes,
        *,
        key: str | None = "test",
        headers: Sequence[Header] = (),
        body: bytes | None = None,
    ) -> tuple[Answer, Answer]:
        """Send a request to both; they must agree, and neither may fail for its own reasons.

        `key` is the mode of the key to send, or an invalid token.
        """
        answers = []
        for side in (self.sqlite, self.postgres):
            own: tuple[Header, ...] = ()
            if key is not None:
                own = ((b"Authorization", side.bearer(key)),)
            answers.append(side.send(method, target, [*own, *headers], body))
        one, other = answers
        assert one.verdict == other.verdict
        assert one.status < 500 or one.code == "provider_unavailable"
        return one, other

    def post(self, path: str, body: bytes) -> tuple[Answer, Answer]:
        """Send bytes that claim to be JSON."""
        return self.send(b"POST", path.encode(), headers=[JSON_TYPE], body=body)
