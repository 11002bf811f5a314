"""`countersign simulate-provider`: rehearse live verification without an account at a provider."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import click
import httpx2

from countersign.base.errors import AddressInUse, InvalidArgument
from countersign_evidence.cli.support import command, json_text, say, show
from countersign_simulators.base import Session, Simulator
from countersign_simulators.registry import SIMULATORS
from countersign_simulators.server import serve

_PORT = 9100


@click.command("simulate-provider")
@click.argument("name", metavar="NAME", type=click.Choice(list(SIMULATORS)))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--webhook-url",
    metavar="URL",
    help="Send a signed message to this URL whenever a session changes.",
)
@click.option("--list", "listing", is_flag=True, help="Print the simulated sessions, and exit.")
@click.option(
    "--credentials", is_flag=True, help="Print a credentials file for the simulator, and exit."
)
@click.option(
    "--test-mode",
    is_flag=True,
    help="With --credentials: those of the provider's test mode, for test keys.",
)
@click.option(
    "--send-webhook",
    nargs=2,
    metavar="SESSION_ID URL",
    help="Send a signed message about a session to this URL, and exit.",
)
@command
def simulate_provider(
    name: str,
    *,
    host: str,
    port: int,
    webhook_url: str | None,
    listing: bool,
    credentials: bool,
    test_mode: bool,
    send_webhook: tuple[str, str] | None,
) -> None:
    """Simulate an identity provider over HTTP. All persons are invented.

    Connect an account to the simulator with `countersign accounts verification set ACCOUNT
    --provider NAME --credentials-file FILE --dangerous-base-url http://127.0.0.1:9100`.
    """
    simulator = SIMULATORS[name](time.time)
    if listing:
        for session in simulator.sessions:
            click.echo(json_text(_view(session)))
    elif credentials:
        held = simulator.test_credentials if test_mode else simulator.credentials
        show(held, json_text(held, indent=2))
    elif send_webhook is not None:
        status = _send(simulator, *send_webhook)
        say(f"The receiver returned {status}.")
        show({"status": status}, str(status))
    else:
        asyncio.run(_serve(simulator, host, port, webhook_url))


async def _serve(simulator: Simulator, host: str, port: int, webhook_url: str | None) -> None:
    try:
        async with serve(simulator, host=host, port=port, webhook_url=webhook_url) as served:
            say(f"Simulating {simulator.name} at {served.url}; stop with Ctrl+C.")
            show({"url": served.url}, served.url)
            await asyncio.Event().wait()
    except OSError as error:
        msg = f"{host} port {port} cannot be used: {error.strerror}. Give another port: --port N."
        raise AddressInUse(msg) from error
    except asyncio.CancelledError:
        return


def _send(simulator: Simulator, session_id: str, url: str) -> int:
    if session_id not in {session.session_id for session in simulator.sessions}:
        msg = f"Unknown session {session_id!r}; --list shows all sessions."
        raise InvalidArgument(msg)
    message = simulator.webhook(session_id)
    try:
        answer = httpx2.post(
            url, content=message.body, headers=dict(message.headers), trust_env=False
        )
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        msg = f"{url} cannot be reached: {type(error).__name__}."
        raise InvalidArgument(msg) from error
    return answer.status_code


def _view(session: Session) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "plays": session.scenario,
        "shipping_zip": session.shipping_zip,
        "subject_reference": session.subject_reference,
        "personal": list(session.personal),
    }
