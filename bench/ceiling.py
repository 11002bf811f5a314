"""The ceiling: a constant answer straight from the HTTP server, no framework and no storage."""

from asyncio import AbstractEventLoop
from typing import Final, Protocol

BODY: Final = b'{"ok":true}'
HEADERS: Final = [("content-type", "application/json")]


class Scope(Protocol):
    """The part of an RSGI scope that is used here."""

    proto: str
    method: str


class HttpProtocol(Protocol):
    """The part of RSGI's HTTP protocol object that is used here."""

    async def __call__(self) -> bytes:
        """Read the whole body of the request."""

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Answer."""


class Ceiling:
    """An RSGI application that answers every request alike; it reads the body of a POST."""

    def __rsgi_init__(self, loop: AbstractEventLoop) -> None:
        """Do nothing at start."""

    async def __rsgi__(self, scope: Scope, protocol: HttpProtocol) -> None:
        """Answer one request."""
        if scope.proto != "http":
            return
        if scope.method == "POST":
            await protocol()
        protocol.response_bytes(200, HEADERS, BODY)


app = Ceiling()
