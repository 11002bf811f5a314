"""HTTP as bytes, for requests that an HTTP client would correct before sending them."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from http.client import HTTPResponse
from urllib.parse import urlsplit

import httpx2


@dataclass(frozen=True)
class Answer:
    """An answer as it came; the names of headers are in lower case."""

    status: int
    headers: httpx2.Headers
    body: bytes


def send(url: str, request: bytes) -> Answer:
    """Send these bytes to the server at this address, and read one answer."""
    place = urlsplit(url)
    assert place.hostname is not None
    assert place.port is not None
    with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
        connection.sendall(request)
        response = HTTPResponse(connection, method=request.partition(b" ")[0].decode("latin-1"))
        response.begin()
        body = response.read()
        return Answer(response.status, httpx2.Headers(response.getheaders()), body)


def request(
    url: str,
    target: bytes,
    *,
    method: bytes = b"GET",
    headers: tuple[tuple[bytes, bytes], ...] = (),
    body: bytes = b"",
) -> Answer:
    """Send a request whose target and headers are exactly these bytes."""
    lines = [b" ".join((method, target, b"HTTP/1.1")), b"Host: countersign", b"Connection: close"]
    lines += [name + b": " + value for name, value in headers]
    if body:
        lines.append(b"Content-Length: " + str(len(body)).encode())
    return send(url, b"\r\n".join(lines) + b"\r\n\r\n" + body)
