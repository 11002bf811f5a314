"""A small HTTP/1.1 client: quick enough to keep the server busy, exact about lost responses.

A general client would use more time than the server, so that a kill would mostly hit no request.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Self


class Lost(Exception):
    """The connection ended before the whole answer had arrived."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def replayed(self) -> bool:
        """Whether this is the answer to an earlier request with the same Idempotency-Key."""
        return self.headers.get("idempotent-replayed") == "true"


class Connection:
    """One kept-alive connection, for one request at a time."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, api_key: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._common = f"Host: test\r\nAuthorization: Bearer {api_key}\r\n"

    @classmethod
    async def open(cls, port: int, api_key: str) -> Self:
        """Connect.

        Raises:
            Lost: nothing listens.
        """
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError as error:
            raise Lost from error
        return cls(reader, writer, api_key)

    def close(self) -> None:
        """Hang up."""
        self._writer.close()

    async def get(self, path: str) -> Answer:
        """Ask for this."""
        return await self._exchange(f"GET {path} HTTP/1.1\r\n{self._common}\r\n".encode())

    async def post(self, path: str, body: bytes, idempotency_key: str) -> Answer:
        """Send this."""
        head = (
            f"POST {path} HTTP/1.1\r\n{self._common}Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nIdempotency-Key: {idempotency_key}\r\n\r\n"
        )
        return await self._exchange(head.encode() + body)

    async def _exchange(self, request: bytes) -> Answer:
        try:
            self._writer.write(request)
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            status, *lines = head.rstrip().split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines)
            }
            body = await self._reader.readexactly(int(headers["content-length"]))
        except (OSError, asyncio.IncompleteReadError) as error:
            raise Lost from error
        return Answer(int(status.split()[1]), headers, body)
