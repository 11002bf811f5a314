"""`countersign webhooks listen`: receive the events of a running server on a laptop.

The command polls the server for events, so the server need not reach this machine, and posts each
event with the signatures of a normal delivery.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import click
import httpx2

from countersign.base.config import load_settings
from countersign.base.errors import InvalidArgument
from countersign.base.values import rfc3339
from countersign.core.events.model import EventType
from countersign.core.webhooks.model import (
    SECRET_BYTES,
    PrivateKey,
    SharedSecret,
    SigningKey,
    parse_target,
    sign,
)
from countersign_evidence.cli.support import command, say, show

_POLL_SECONDS: Final = 1.0
_FORWARD_SECONDS_MAX: Final = 30.0


@click.command()
@click.option("--forward-to", required=True, help="The URL on this machine that gets the events.")
@click.option("--server", help="The server's URL. Left out: COUNTERSIGN_PUBLIC_URL.")
@click.option(
    "--key",
    envvar="COUNTERSIGN_API_KEY",
    show_envvar=True,
    required=True,
    help="An API key with the scope events:read. Prefer the variable to the option.",
)
@click.option(
    "--secret",
    help="Sign with this whsec_… secret, and with a v1a key derived from it. Left out: new ones, "
    "which are printed.",
)
@click.option(
    "--type",
    "type_",
    type=click.Choice([t.value for t in EventType]),
    help="Only events of this type.",
)
@click.option("--since", help="Begin with events of this time. Left out: now.")
@command
def listen(
    forward_to: str,
    *,
    server: str | None,
    key: str,
    secret: str | None,
    type_: str | None,
    since: str | None,
) -> None:
    """Receive the events of a running server on this machine until you stop it (Ctrl-C).

    Each event is signed and posted once. The command prints the status that your receiver returns.
    """
    shared = _secret(secret)
    # It is derived from the secret, so that both stay the same from one start to the next.
    private = PrivateKey(shared.signature(b"countersign webhooks listen, v1a"))
    base = server or load_settings().public_url
    named = "--server" if server else "The public URL of the settings"
    for option, address in ((named, base), ("--forward-to", forward_to)):
        try:
            parse_target(address, private=True)
        except ValueError as error:
            hint = "" if "://" in address else f" Did you mean http://{address}?"
            raise InvalidArgument(f"{option} must be {error}, not {address!r}.{hint}") from error
    headers = {"Authorization": f"Bearer {key}"}
    say(f"Listening to {base}, forwarding to {forward_to}. Verify with:")
    say(f"  v1   {shared.text}")
    say(f"  v1a  {private.public_key}")
    query = {"since": since or rfc3339(datetime.now(tz=UTC)), "limit": "100"}
    if type_ is not None:
        query["type"] = type_
    with (
        httpx2.Client(base_url=base, headers=headers, timeout=_FORWARD_SECONDS_MAX) as api,
        httpx2.Client(timeout=_FORWARD_SECONDS_MAX, trust_env=False) as local,
    ):
        for event in _follow(api, query):
            result = _forward(local, forward_to, [shared, private], event)
            show(event | {"answer": result}, f"{event['type']}  {event['id']}  →  {result}")


def _secret(text: str | None) -> SharedSecret:
    if text is None:
        return SharedSecret(os.urandom(SECRET_BYTES))
    try:
        return SharedSecret.from_text(text)
    except ValueError as error:
        raise InvalidArgument(
            "--secret: expected whsec_ and the base64 of 24 to 64 bytes."
        ) from error


def _follow(api: httpx2.Client, query: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Every event from now on, without end."""
    while True:
        try:
            response = api.get("/v1/events", params=query)
        except httpx2.TransportError as error:
            say(f"The server cannot be reached ({type(error).__name__}); trying again.")
            time.sleep(_POLL_SECONDS)
            continue
        if response.status_code >= 500 or response.status_code == 429:
            say(f"The server returned {response.status_code}; trying again.")
        elif response.status_code != 200:
            raise InvalidArgument(
                f"The server returned {response.status_code}: {response.text[:300]}"
            )
        else:
            page = response.json()
            for event in page["data"]:
                yield event
                query["after"] = event["id"]
            if page["next_cursor"] is not None:
                query["after"] = page["next_cursor"]
                continue
        time.sleep(_POLL_SECONDS)


def _forward(local: httpx2.Client, url: str, keys: list[SigningKey], event: dict[str, Any]) -> str:
    """Post an event like a delivery; returns the status or the kind of error."""
    body = json.dumps(event | {"timestamp": event["created_at"]}).encode()
    headers = {"Content-Type": "application/json"} | sign(keys, event["id"], int(time.time()), body)
    try:
        return str(local.post(url, content=body, headers=headers).status_code)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return type(error).__name__
