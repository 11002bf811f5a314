"""`csign`: what a vendor does at a terminal, without the server's software."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, NoReturn, ParamSpec, get_args
from uuid import uuid4

import click
import msgspec

from countersign_client import types
from countersign_client.client import Countersign
from countersign_client.failure import CountersignError
from countersign_client.listening import Forwarder, follow, new_secret
from countersign_client.version import __version__

P = ParamSpec("P")

EVENT_TYPES: Final = get_args(types.EventType)


@click.group()
@click.version_option(__version__)
def csign() -> None:
    """Countersign for vendors: events, checkout sessions and evidence, with your API key."""


@csign.group()
def events() -> None:
    """Read what has happened."""


@csign.group("checkout-sessions")
def checkout_sessions() -> None:
    """Create and read links for one buyer and one order."""


def connected(
    function: Callable[Concatenate[Countersign, P], None],
) -> Callable[P, None]:
    """Adds the options that every command has, and gives the function a client."""

    @click.option(
        "--server",
        envvar="COUNTERSIGN_BASE_URL",
        show_envvar=True,
        required=True,
        help="The server's URL.",
    )
    @click.option(
        "--key",
        envvar="COUNTERSIGN_API_KEY",
        show_envvar=True,
        required=True,
        help="An API key. Prefer the variable to the option.",
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")
    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        server, key = str(kwargs.pop("server")), str(kwargs.pop("key"))
        try:
            with Countersign(api_key=key, base_url=server) as client:
                function(client, *args, **kwargs)
        except ValueError as error:
            _fail("invalid_argument", str(error), as_json=bool(kwargs["as_json"]))
        except CountersignError as error:
            _fail(error.code, str(error), as_json=bool(kwargs["as_json"]))

    return wrapper


@csign.command()
@click.option("--forward-to", required=True, help="The URL on this machine that gets the events.")
@click.option(
    "--secret", help="Sign with this whsec_… secret. Left out: a new one, which is printed."
)
@click.option("--type", "type_", type=click.Choice(EVENT_TYPES), help="Only events of this type.")
@click.option("--since", help="Begin with events of this time. Left out: now.")
@connected
def listen(
    client: Countersign,
    *,
    forward_to: str,
    secret: str | None,
    type_: types.EventType | None,
    since: str | None,
    as_json: bool,
) -> None:
    """Post the events of your account to a receiver on this machine until you stop it (Ctrl-C).

    The server need not reach this machine. Each event is signed as a webhook and posted once. The
    key needs the scope events:read.
    """
    secret = secret or new_secret()
    click.echo(f"Forwarding to {forward_to}. Verify with: {secret}", err=True)
    with Forwarder(forward_to, secret) as forwarder:
        for event in follow(client, type_=type_, since=since, say=_say):
            result = forwarder.post(event)
            shown = {**msgspec.to_builtins(event), "answer": result}
            _show(shown, f"{event.type}  {event.id}  →  {result}", as_json=as_json)


@events.command("list")
@click.option("--type", "type_", type=click.Choice(EVENT_TYPES), help="Only events of this type.")
@click.option("--since", help="Begin with events of this time.")
@click.option("--after", help="Begin after this event.")
@connected
def list_events(
    client: Countersign,
    *,
    type_: types.EventType | None,
    since: str | None,
    after: str | None,
    as_json: bool,
) -> None:
    """Print all events, oldest first: one on each line."""
    for event in client.events.list(type=type_, since=since, after=after, limit=100):
        _show_event(event, as_json=as_json)


@events.command("show")
@click.argument("event_id")
@connected
def show_event(client: Countersign, *, event_id: str, as_json: bool) -> None:
    """Print one event."""
    _show_event(client.events.retrieve(event_id), as_json=as_json)


@checkout_sessions.command("create")
@click.option("--return-url", required=True, help="Where the buyer goes afterwards.")
@click.option("--session-id", help="Your name for the order. Left out: a random one.")
@click.option("--notice", "notice_id", default="ab1263", show_default=True, help="The notice.")
@click.option("--identity", is_flag=True, help="Verify the buyer first.")
@click.option("--zip", "shipping_zip", help="Where the parcel goes.")
@click.option("--product-class", help="What is sold, such as accessory.")
@click.option("--cbid", help="The buyer, if you know.")
@click.option("--locale", type=click.Choice(["en", "es"]), help="The language of the interface.")
@click.option("--expires-in", "expires_in_seconds", type=int, help="How many seconds it works.")
@connected
def create_checkout_session(
    client: Countersign,
    /,
    *,
    session_id: str | None,
    identity: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - as click gives them
) -> None:
    """Create a link, and print it: send it to the buyer alone."""
    made = client.checkout_sessions.create(
        session_id=session_id or f"cs_{uuid4().hex}",
        collect=["identity", "acknowledgment"] if identity else ["acknowledgment"],
        **given,
    )
    if not as_json:
        click.echo(
            f"{made.checkout_session_id}, until {made.expires_at:%Y-%m-%d %H:%M} UTC:", err=True
        )
    _show(made, str(made.url), as_json=as_json)


@checkout_sessions.command("list")
@click.option("--session-id", help="Only those with this name for the order.")
@connected
def list_checkout_sessions(client: Countersign, *, session_id: str | None, as_json: bool) -> None:
    """Print all sessions, newest first: one on each line."""
    for session in client.checkout_sessions.list(session_id=session_id, limit=100):
        _show_session(session, as_json=as_json)


@checkout_sessions.command("show")
@click.argument("checkout_session_id")
@connected
def show_checkout_session(client: Countersign, *, checkout_session_id: str, as_json: bool) -> None:
    """Print one session."""
    _show_session(client.checkout_sessions.retrieve(checkout_session_id), as_json=as_json)


@checkout_sessions.command("cancel")
@click.argument("checkout_session_id")
@connected
def cancel_checkout_session(
    client: Countersign, *, checkout_session_id: str, as_json: bool
) -> None:
    """Cancel an open session."""
    _show_session(client.checkout_sessions.cancel(checkout_session_id), as_json=as_json)


def _evidence(what: str, suffix: str, help_: str) -> None:
    @csign.command(what, help=f"{help_} It waits for sealing, at most ten seconds.")
    @click.argument("id_", metavar="CLEARANCE_OR_ACK_ID" if what == "dossier" else "ACK_ID")
    @click.option("--output", "-o", help="The file, or - for standard output. Left out: by the id.")
    @connected
    def save(client: Countersign, *, id_: str, output: str | None, as_json: bool) -> None:
        of = client.clearances if id_.startswith("clr_") else client.acknowledgments
        if not hasattr(of, what):
            why = f"A {what} is of an acknowledgment: ack_…, not {id_}."
            _fail("invalid_argument", why, as_json=as_json)
        content = getattr(of, what)(id_, wait_seconds=10)
        content = content.encode() if isinstance(content, str) else content
        if output == "-":
            sys.stdout.buffer.write(content)
            return
        path = Path(output or f"{id_}{suffix}")
        try:
            path.write_bytes(content)
        except OSError as error:
            _fail("file_not_written", str(error), as_json=as_json)
        _show({"file": str(path), "bytes": len(content)}, str(path), as_json=as_json)


_evidence("certificate", ".pdf", "Save the certificate of an acknowledgment.")
_evidence("proof", ".tlog-proof", "Save the proof that the log has the record.")
_evidence("dossier", "-dossier.zip", "Save everything needed to verify an order.")


def _show_event(event: types.Event, *, as_json: bool) -> None:
    data = "  ".join(f"{name}={_word(value)}" for name, value in event.data.items())
    _show(
        event,
        f"{event.created_at:%Y-%m-%dT%H:%M:%SZ}  {event.type}  {event.id}  {data}",
        as_json=as_json,
    )


def _show_session(session: types.CheckoutSession, *, as_json: bool) -> None:
    known = {"ack_id": session.ack_id, "cbid": session.cbid, "clearance_id": session.clearance_id}
    parts = [session.checkout_session_id, session.status, *filter(None, known.values())]
    if session.cleared is not None:
        parts += ["cleared" if session.cleared else "not cleared", *session.reasons]
    _show(session, "  ".join(parts), as_json=as_json)


def _word(value: str | Iterable[str] | None) -> str:
    """A value of an event; None is what was erased."""
    return value if isinstance(value, str) else ",".join(value or ["-"])


def _show(result: object, line: str, *, as_json: bool) -> None:
    click.echo(msgspec.json.encode(result).decode() if as_json else line)


def _say(message: str) -> None:
    click.echo(message, err=True)


def _fail(code: str, message: str, *, as_json: bool) -> NoReturn:
    error = {"error": {"code": code, "message": message}}
    click.echo(json.dumps(error) if as_json else f"Error: {message}", err=True)
    sys.exit(1)
