"""Webhooks on a laptop: events are read from the server, and posted to a receiver near by."""

from __future__ import annotations

import os
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final, Self

import httpx2
import msgspec

from countersign_client.client import Countersign
from countersign_client.failure import CountersignError
from countersign_client.types import Event, EventType
from countersign_client.webhooks import sign

POLL_SECONDS: Final = 1.0
_FORWARD_SECONDS_MAX: Final = 30.0
_WAIT_SECONDS_MAX: Final = 60.0


def new_secret() -> str:
    """A random secret to sign with."""
    return "whsec_" + b64encode(os.urandom(32)).decode()


def follow(
    client: Countersign,
    *,
    type_: EventType | None = None,
    since: str | None = None,
    say: Callable[[str], object],
    sleep: Callable[[float], object] = time.sleep,
) -> Iterator[Event]:
    """Every event from a time on, without end; left out: from now on.

    `say` is given a sentence when the server cannot be reached.

    Raises CountersignError for anything that waiting does not help against.
    """
    since = since or datetime.now(tz=UTC).isoformat(timespec="seconds")
    after = None
    while True:
        wait = POLL_SECONDS
        try:
            for page in client.events.list(type=type_, since=since, after=after, limit=100).pages():
                for event in page.data:
                    yield event
                    after = event.id
                after = page.next_cursor or after
        except CountersignError as error:
            if error.status is not None and error.status != 429 and error.status < 500:
                raise
            wait = min(max(wait, error.retry_after or 0), _WAIT_SECONDS_MAX)
            say(f"The server cannot be read ({error.message}); trying again in {wait:g} s.")
        sleep(wait)


class Forwarder:
    """Posts events to a receiver, signed as a server signs them (`v1` alone)."""

    def __init__(self, url: str, secret: str) -> None:
        self._url, self._secret = url, secret
        self._http = httpx2.Client(timeout=_FORWARD_SECONDS_MAX, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def post(self, event: Event) -> str:
        """The status that the receiver returned, or the kind of error."""
        members = {**msgspec.to_builtins(event), "timestamp": event.created_at}
        body = msgspec.json.encode(
            {name: value for name, value in members.items() if value is not None}
        )
        headers = sign(self._secret, event.id, int(time.time()), body)
        headers["Content-Type"] = "application/json"
        try:
            return str(self._http.post(self._url, content=body, headers=headers).status_code)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            return type(error).__name__
