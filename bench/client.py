"""A small HTTP client for what happens outside the measurements."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

from bench.errors import BenchError
from bench.plan import NOTICE_ID, UNIQUE, Endpoint, Operation

OK: Final = 200
TIMEOUT_SECONDS: Final = 10


class Client:
    """Calls one server on loopback over one connection."""

    def __init__(self, connection: HTTPConnection, key: str) -> None:
        """Keep the connection and the key to show."""
        self._connection = connection
        self._key = key

    def call(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        """Send one request; any answer but 200 is an error."""
        headers = {"Authorization": f"Bearer {self._key}"}
        if body:
            unique = secrets.token_hex(len(UNIQUE) // 2)
            body = body.replace(UNIQUE, unique)
            headers |= {"Content-Type": "application/json", "Idempotency-Key": unique}
        self._connection.request(method, path, body or None, headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status != OK:
            message = f"{method} {path} answered {response.status}: {answer[:500]!r}"
            raise BenchError(message)
        parsed: dict[str, Any] = json.loads(answer)
        return parsed


@contextmanager
def client(port: int, key: str) -> Iterator[Client]:
    """Open a client."""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        yield Client(connection, key)
    finally:
        connection.close()


def answers(port: int, key: str) -> bool:
    """Tell whether a server already answers the notice."""
    try:
        with client(port, key) as caller:
            caller.call("GET", f"/v1/notices/{NOTICE_ID}")
    except (OSError, HTTPException, BenchError):
        return False
    return True


def try_once(endpoint: Endpoint, operation: Operation) -> dict[str, Any]:
    """Send the first request of an operation, to see that it works before it is measured."""
    call = operation.calls(endpoint)[0]
    try:
        with client(endpoint.port, endpoint.key) as caller:
            return caller.call(operation.method, call.path, call.body)
    except (OSError, HTTPException, ValueError) as error:
        message = f"{operation.name} does not work: {error!r}"
        raise BenchError(message) from error
