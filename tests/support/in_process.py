"""Requests to the application in this process, without a socket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from countersign.base.http.body import Incoming
from countersign.core.gate.route import Call


def call_of(method: str, target: str, headers: Iterable[tuple[bytes, bytes]]) -> Call:
    """A request of this machine for a path with its query; names of headers in lower case."""
    raw = [*headers]
    path, _, query = target.partition("?")
    return Call(
        method=method,
        path=path,
        query_string=query.encode(),
        headers=dict(raw),
        raw_headers=raw,
        peer="127.0.0.1",
    )


def encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


def whole(body: bytes) -> Incoming:
    """A body that has arrived in one piece."""
    sent = iter([body])

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": next(sent, b""), "more_body": False}

    return Incoming(receive)
