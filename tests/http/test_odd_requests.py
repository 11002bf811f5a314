"""Requests that no library sends, as bytes over a socket: each gets its one response."""

from __future__ import annotations

import json
import re
import socket
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import httpx2
import pytest

from countersign.core.gate.route import Reply
from countersign.operate import bootstrap
from countersign.server.app import App
from tests.http import wire
from tests.http.backstage import Operator
from tests.support.every import every
from tests.support.in_process import call_of, whole

pytestmark = pytest.mark.one_engine

NOTICE: Final = b"/v1/notices/ab1263"
VERIFY: Final = b"/v1/buyers/verify"
BODY: Final = b'{"test_mode":true,"provider_identity_session_id":"odd","shipping_zip":"94111"}'
JSON: Final = b"Content-Type: application/json\r\n"
CHUNKED: Final = JSON + b"Transfer-Encoding: chunked\r\n"


def ask(
    client: httpx2.Client,
    target: bytes,
    headers: bytes = b"",
    body: bytes = b"",
    method: bytes = b"GET",
    *,
    with_key: bool = True,
) -> tuple[int, str]:
    """Status, and the code of a refusal; exactly these bytes are sent after the key."""
    request = b"%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" % (method, target)
    if with_key:
        request += b"Authorization: " + client.headers["Authorization"].encode() + b"\r\n"
    answer = wire.send(str(client.base_url), request + headers + b"\r\n" + body)
    failed = answer.status >= 400 and answer.body
    return answer.status, json.loads(answer.body)["error"]["code"] if failed else ""


@pytest.mark.parametrize(
    "headers",
    [b"Authorization: \xff\r\n", b"Authorization: Bearer a\r\n", b"AUTHORIZATION:\r\n"],
)
def test_a_second_key_is_refused_whatever_its_bytes(client: httpx2.Client, headers: bytes) -> None:
    assert ask(client, NOTICE, headers) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (b"Content-Type: \xff\r\n", (415, "unsupported_media_type")),
        (JSON + b"Idempotency-Key: \xff\r\n", (400, "invalid_request")),
        (JSON + b"Idempotency-Key: a\r\nIdempotency-Key: \xff\r\n", (400, "invalid_request")),
        (JSON + b"Content-Encoding: \xff\r\n", (415, "unsupported_media_type")),
        (JSON + b"X-City: S\xc3\xa3o Paulo\r\nX-City: \xff\r\n", (200, "")),
        (JSON + b"Expect: 100-continue\r\n", (200, "")),
    ],
)
def test_bytes_outside_of_ascii_in_a_header_are_seen(
    client: httpx2.Client, headers: bytes, expected: tuple[int, str]
) -> None:
    length = b"Content-Length: %d\r\n" % len(BODY)
    assert ask(client, VERIFY, headers + length, BODY, b"POST") == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (b"http://elsewhere.example/v1/notices/ab1263", (200, "")),
        (b"/v1/notices/%61b1263", (200, "")),
        (NOTICE + b"#fragment", (200, "")),
        (NOTICE + b"?", (200, "")),
        (NOTICE + b"%2Fversions", (404, "notice_not_found")),
        (b"/v1%2Fnotices", (404, "not_found")),
        (b"/v1%2fnotices/%61b1263", (404, "not_found")),
        (b"/docs%2Ferrors", (404, "not_found")),
        (b"/v1/notices?id=a%2Fb", (400, "invalid_request")),
        (b"/v1/notices/%ff", (404, "notice_not_found")),
        (b"/v1/notices/%zz", (404, "notice_not_found")),
        (b"/v1//notices/ab1263", (404, "not_found")),
        (b"*", (404, "not_found")),
        (NOTICE + b"?version=%ff", (400, "invalid_request")),
        (NOTICE + b"?version", (400, "invalid_request")),
        (b"/" + b"a" * 30_000, (404, "not_found")),
        (b"/" + b"a" * 70_000, (431, "")),
    ],
)
def test_odd_addresses_are_read_in_one_way(
    client: httpx2.Client, target: bytes, expected: tuple[int, str]
) -> None:
    assert ask(client, target) == expected


def test_a_head_request_gets_the_headers_alone(client: httpx2.Client) -> None:
    headers = ((b"Authorization", client.headers["Authorization"].encode()),)
    whole = wire.request(str(client.base_url), NOTICE, headers=headers)
    head = wire.request(str(client.base_url), NOTICE, method=b"HEAD", headers=headers)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["Content-Length"] == str(len(whole.body))
    matching = (*headers, (b"If-None-Match", whole.headers["ETag"].encode()))
    known = wire.request(str(client.base_url), NOTICE, headers=matching)
    assert (known.status, known.body) == (304, b"")
    assert "Content-Length" not in known.headers


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"HTTP/1.1\r\nHost: a\r\nHost: a\r\n", 400),
        (b"HTTP/1.1\r\nHost: a\r\nhost: b\r\n", 400),
        (b"HTTP/1.1\r\n", 400),
        (b"HTTP/1.1\r\nHost: a\r\n", 200),
        (b"HTTP/1.0\r\n", 200),
        (b"HTTP/1.0\r\nHost: a\r\nHost: b\r\n", 400),
    ],
)
@pytest.mark.parametrize("path", [b"/healthz", b"/openapi.json", b"/unknown"])
def test_there_is_one_host(client: httpx2.Client, path: bytes, head: bytes, status: int) -> None:
    """RFC 9112 section 3.2: two are refused and, from HTTP/1.1 on, none, whatever the path."""
    request = b"GET " + path + b" " + head + b"Connection: close\r\n\r\n"
    answer = wire.send(str(client.base_url), request)
    found = 404 if path == b"/unknown" and status == 200 else status
    assert answer.status == found
    if found == 400:
        assert json.loads(answer.body)["error"]["code"] == "invalid_request"


@pytest.mark.parametrize("trailer", [b"", b"X-Trailer: a\r\n"])
def test_a_body_in_pieces_is_one_body(client: httpx2.Client, trailer: bytes) -> None:
    pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n" + trailer + b"\r\n"
    assert ask(client, VERIFY, CHUNKED, pieces, b"POST") == (200, "")


def test_a_body_of_two_lengths_is_read_in_one_way(client: httpx2.Client) -> None:
    """A proxy that believes the other length would find a second request in the body (RFC 9112)."""
    place = urlsplit(str(client.base_url))
    key = client.headers["Authorization"].encode()
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n" % (VERIFY, key)
    pieces = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    second = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    for lengths, status in (
        (b"Content-Length: %d\r\n" % len(pieces) + CHUNKED, b"200"),
        (CHUNKED + b"Content-Length: 4\r\n", b"200"),
        (JSON + b"Content-Length: %d\r\nContent-Length: 4\r\n" % len(BODY), b"400"),
        (JSON + b"Content-Length: +%d\r\n" % len(BODY), b"400"),
        (JSON + b"Transfer-Encoding: chunked, identity\r\n", b"400"),
        (JSON + b"Transfer-Encoding: \x0bchunked\r\n", b"400"),
    ):
        with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
            connection.sendall(head + lengths + b"\r\n" + pieces + second)
            received = b"".join(iter(partial(connection.recv, 65536), b""))
        # The connection ends with the response: later bytes are not read as a request.
        assert received.startswith(b"HTTP/1.1 " + status), lengths
        assert received.count(b"HTTP/1.1 ") == 1, lengths


@every("method", ["GET", "POST"])
def test_a_body_of_two_lengths_is_refused_by_the_application_itself(
    operator: Operator, method: str
) -> None:
    """Whatever the HTTP server lets through."""
    lengths = [(b"transfer-encoding", b"chunked"), (b"content-length", b"2")]

    async def ask(opened: bootstrap.Deployment) -> Reply:
        call = call_of(method, "/healthz", [(b"host", b"x"), *lengths])
        return await App(opened).handle(call, whole(b"{}"))

    reply = operator.act(ask)
    assert (reply.status, json.loads(reply.body)["error"]["code"]) == (400, "invalid_request")


LAST: Final = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
ASK: Final = LAST.replace(b"Connection: close\r\n", b"")


def head(*lines: bytes, line: bytes = b"GET /healthz HTTP/1.1") -> bytes:
    """A head with these lines after its host, and the last request of the connection."""
    return b"\r\n".join([line, b"Host: x", *lines, b"", b""]) + LAST


def post(*lines: bytes, body: bytes, version: bytes = b"1.1") -> bytes:
    """A request with the body of a verification, and the last request of the connection."""
    line = b"POST /v1/buyers/verify HTTP/" + version
    return b"\r\n".join([line, b"Host: x", b"KEY", *lines, b"", body]) + LAST


def chunked(size: bytes = b"%x" % len(BODY), end: bytes = b"\r\n") -> bytes:
    return size + end + BODY + end + b"0" + end + end


@every(
    ("sent", "statuses"),
    [
        (ASK * 50 + LAST, [200] * 51),
        (head(line=b"GET /healthz HTTP/1.0"), [200]),
        (head(b"Connection: keep-alive", line=b"GET /healthz HTTP/1.0"), [200, 200]),
        (head(b"X: y").replace(b"\r\n", b"\n"), [200, 200]),
        (head(line=b"BREW /healthz HTTP/1.1"), [405, 200]),
        (head(b"Connection: Upgrade", b"Upgrade: h2c"), [200, 200]),
        (head(*(b"X-%d: y" % number for number in range(90))), [200, 200]),
        (head(*(b"X-%d: y" % number for number in range(150))), [431]),
        (head(b"X: " + b"a" * 70_000), [431]),
        (head(b"X : y"), [400]),
        (head(b"X: a", b" b"), [400]),
        (head(b"X: a\rb"), [400]),
        (head(b"X: a\0b"), [400]),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 64, [400]),
        (post(b"Transfer-Encoding: chunked", body=chunked()), [200, 200]),
        (post(b"Transfer-Encoding: xchunked", body=chunked()), [400]),
        (post(b"Transfer-Encoding: chunked", body=chunked(), version=b"1.0"), [400]),
        (post(b"Transfer-Encoding: chunked", body=chunked(b"1" + b"0" * 16)), [400]),
        (post(b"Transfer-Encoding: chunked", body=chunked(end=b"\n")), [400]),
        (post(b"Content-Length : %d" % len(BODY), body=BODY), [400]),
        (post(b"Content-Length: 1" + b"0" * 20, body=BODY), [400]),
        (
            post(
                b"Connection: Upgrade",
                b"Upgrade: h2c",
                b"Content-Length: %d" % len(BODY),
                body=BODY,
            ),
            [200, 200],
        ),
        (
            post(b"Expect: 100-continue", b"Content-Length: %d" % len(BODY), body=BODY),
            [100, 200, 200],
        ),
    ],
)
def test_each_request_of_a_connection_gets_its_own_response(
    client: httpx2.Client, sent: bytes, statuses: list[int]
) -> None:
    """Whatever is malformed ends the connection: nothing behind it is read as a request."""
    place = urlsplit(str(client.base_url))
    key = (
        b"Content-Type: application/json\r\nAuthorization: "
        + client.headers["Authorization"].encode()
    )
    with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
        connection.sendall(sent.replace(b"KEY", key))
        received = b"".join(iter(partial(connection.recv, 65536), b""))
    assert [int(found) for found in re.findall(rb"HTTP/1\.[01] (\d{3}) ", received)] == statuses


@pytest.mark.parametrize("end", [b"", b"ZZ\r\n"])
def test_a_truncated_body_is_not_a_body(client: httpx2.Client, end: bytes) -> None:
    """Even if the part that arrived is complete JSON."""
    place = urlsplit(str(client.base_url))
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n" % (
        VERIFY,
        client.headers["Authorization"].encode(),
    )
    with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
        connection.sendall(head + CHUNKED + b"\r\n%x\r\n%s\r\n" % (len(BODY), BODY) + end)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"before its body was complete" in answer
