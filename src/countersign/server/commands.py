"""`init`, `serve` and `dev`."""

from __future__ import annotations

import asyncio
import shlex
import sys
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import click

from countersign.base.cli import say_if_local
from countersign.base.config import Settings, load_settings, unknown_variables
from countersign.base.db.engine import is_embedded, url_of
from countersign.base.db.pooler import refuse_unknown_pooler
from countersign.base.errors import (
    CountersignError,
    HeadsOverwritable,
    HeadUnavailable,
    InvalidConfiguration,
    NotInitialised,
    UnknownAccount,
)
from countersign.base.files import loose_mode, only_server
from countersign.base.host import is_loopback
from countersign.base.values import Mode, from_ns
from countersign.core.access.account import create_account, find_account
from countersign.core.access.key import KeyKind
from countersign.core.access.keys import create_key, has_live_key, keys_of
from countersign.core.access.reach import AccountReach
from countersign.core.log.authorities import known_authorities, read_choice, write_authorities
from countersign.core.notices.notice_file import parse_notice_file, shipped_notice_files
from countersign.core.vault.key_file import key_file
from countersign.operate import serving_role
from countersign.operate.bootstrap import (
    Deployment,
    initialise,
    open_deployment,
)
from countersign.operate.commands.log import ALONE, anchor_lines, log_states
from countersign.server.listen import refuse_taken
from countersign.server.manager import READY, notify
from countersign_evidence.cli.support import command, is_given, say, show
from countersign_evidence.entry import entry_host

_DEMO_ACCOUNT = "demo"
_LOOKING: Final[set[asyncio.Task[None]]] = set()
"""The event loop itself does not keep a task."""


@click.command()
@click.option(
    "--time-stamps",
    metavar="NAME,…",
    help="Public time-stamp authorities to ask from now on, such as sigstore,digicert; `none` "
    "asks no more. Left out: as before.",
)
@click.option(
    "--upgrade",
    is_flag=True,
    help="Do not create a deployment: only upgrade an existing one. For scripts that start "
    "servers.",
)
@command
def init(*, time_stamps: str | None, upgrade: bool) -> None:
    """Create a new deployment, or upgrade the existing one. Running it again is safe."""
    settings = load_settings()
    names = None if time_stamps is None else read_choice(time_stamps)
    done = asyncio.run(initialise(settings, time_stamps=names, founds=not upgrade))
    logs = log_states()
    origins = [state.log.origin for state in logs]
    live = next(state.log.origin for state in logs if state.log.mode is Mode.LIVE)
    if not done.upgraded:
        say("The schema of the database is up to date.")
    say(f"Ready in {settings.data_dir.resolve()}.")
    if any(state.suspended for state in logs):
        say(f"The newest logs are {' and '.join(origins)}. Sealing is suspended.")
        say("`countersign log recover` explains how to continue, with these logs or with new ones.")
    else:
        say(f"The logs are named {' and '.join(origins)}. These names cannot change.")
        say_if_local(live)
    file = write_authorities(settings.data_dir)
    if settings.timestamp_urls:
        say(f"Time-stamps come from {', '.join(settings.timestamp_urls)}, as the settings say.")
    elif done.time_stamps:
        say(f"Time-stamps come from {', '.join(done.time_stamps)}.")
    else:
        say(
            "No time-stamp authority is asked. To have public ones asked: countersign init "
            f"--time-stamps {','.join(known_authorities())} ({file} says what they are)."
        )
    for publication in done.published:
        content = publication.content
        say(f"Notice {content.id} version {content.version} is published.")
        for gap in content.text_gaps:
            say(f"  incomplete: {gap}")
    if is_given("as_json"):
        notices = [
            {"notice_id": p.content.id, "version": p.content.version} for p in done.published
        ]
        place = str(settings.data_dir.resolve())
        view = {"data_dir": place, "notices": notices, "logs": origins}
        show(view | {"time_stamps": list(done.time_stamps)}, "")


@click.command()
@command
def serve() -> None:
    """Run the server until it is stopped (Ctrl-C or SIGTERM)."""
    _serve(load_settings(), demo=False)


@click.command()
@command
def dev() -> None:
    """Try it out: run init, create a demo account with a test key, print a curl line, and serve."""
    settings = load_settings()
    _refuse_production(settings.public_url.partition("://")[2])
    refuse_taken(settings.host, settings.port)
    asyncio.run(initialise(settings))
    _serve(settings, demo=True)


def _refuse_production(name: str) -> None:
    """Keep the demo account out of a deployment that others use; `name` is the name of its log."""
    if not is_loopback(entry_host(name)):
        raise InvalidConfiguration(
            f"This deployment has the public name {entry_host(name)}, and `countersign dev` "
            "(`make run`) would add a demo account to it. Start it with `countersign serve`. To "
            "try things out, unset COUNTERSIGN_PUBLIC_URL and COUNTERSIGN_DATA_DIR."
        )


def _warn(settings: Settings, *, embedded: bool) -> None:
    heads = settings.log_head_dir
    if not embedded and heads == settings.data_dir / "heads":
        say(
            f"note: the last published checkpoints are kept in {heads}. Another server of this "
            "database needs the same place (COUNTERSIGN_LOG_HEAD_DIR), or it does not seal."
        )
    for name in unknown_variables():
        say(f"warning: {name} is not a setting of this release and has no effect.")
    for file in (settings.secret_key_file, key_file(settings.key_encryption_key)):
        if file is not None and (mode := loose_mode(file)):
            say(f"warning: others can read or change {file} (mode {mode:04o}): chmod 600 {file}")


def _serve(settings: Settings, *, demo: bool) -> None:
    # These take long to import, and the other commands do without them.
    import uvloop  # noqa: PLC0415

    from countersign.operate.reserve import lent_space  # noqa: PLC0415
    from countersign.server.server import serve as serve_http  # noqa: PLC0415
    from countersign.server.workers import Worker, fork_workers  # noqa: PLC0415

    url = url_of(settings)
    embedded = is_embedded(url)
    _warn(settings, embedded=embedded)
    if not embedded:
        refuse_unknown_pooler(url)
        serving_role.check_rights(url)
    elif not settings.data_dir.is_dir():
        raise NotInitialised
    lock = only_server(settings.data_dir, serves=True) if embedded else nullcontext()
    ready = partial(_say_ready, settings.public_url)

    async def run(worker: Worker | None) -> None:
        # Processes share the concurrency that the server is allowed.
        share = max(1, settings.provider_concurrency // settings.workers)
        own = replace(settings, provider_concurrency=share)
        turn, writes = (worker.turn, worker.shared.writes) if worker else (None, None)
        async with open_deployment(own, turn=turn, writes=writes) as deployment:
            if worker is None or worker.begins_server:
                if demo:
                    await _greet(deployment)
                await _refuse_overwritable(deployment)
                await _say_anchors(deployment)
            with suppress(CountersignError):  # it asks again soon
                await deployment.log.clock_guard.look()
            if was_broken_off:
                await _look_for_damage(deployment)
            await serve_http(deployment, worker.say_ready if worker else ready, worker)

    with lock as was_broken_off, lent_space(settings.data_dir):
        worker = None
        if settings.workers > 1:
            worker = fork_workers(settings.workers, settings.host, settings.port, ready)
        uvloop.run(run(worker))


def _say_ready(public_url: str, host: str, port: int) -> None:
    say(f"Countersign serves {public_url} on {host} port {port}")
    notify(READY)


async def _refuse_overwritable(deployment: Deployment) -> None:
    """Refuse a place in which several servers would overwrite each other's heads."""
    if is_embedded(deployment.database.url):
        return  # which has one server, and its heads in a directory
    try:
        await asyncio.to_thread(deployment.log.heads.check)
    except HeadsOverwritable:
        raise
    except HeadUnavailable:
        pass  # the server accepts, and seals when the place is back


async def _look_for_damage(deployment: Deployment) -> None:
    """Before anything is accepted, or where that takes long, while the server serves."""
    looking = asyncio.create_task(deployment.database.look_for_damage())
    _LOOKING.add(looking)
    await asyncio.wait([looking], timeout=3.0)


async def _say_anchors(deployment: Deployment) -> None:
    """With live keys: whether third parties have seen the live log, and up to which size."""
    now = from_ns(deployment.clock.time_ns())
    if await deployment.database.read(has_live_key, now):
        last = await deployment.log.anchor.last()
        for line in anchor_lines(last):
            say(line)
        if not last:
            say(
                f"warning: there are live keys, but no witness and no time-stamp authority: {ALONE}"
            )


async def _greet(deployment: Deployment) -> None:
    """Make the demo account and its first test key, and show a line to try."""
    _refuse_production((await deployment.log.seal.current())[Mode.LIVE].origin)
    try:
        account = await find_account(deployment.access, _DEMO_ACCOUNT)
    except UnknownAccount:
        account = await create_account(deployment.access, _DEMO_ACCOUNT)
    now = from_ns(deployment.clock.time_ns())
    known = [
        key
        for key in await deployment.database.scan(keys_of, AccountReach(account.id, Mode.TEST))
        if key.kind is KeyKind.SECRET and key.works_at(now)
    ]
    base = deployment.settings.public_url
    # As this command was typed: from a checkout, or wherever a wheel put it.
    program = sys.argv[0] if Path(sys.argv[0]).name == "countersign" else "countersign"
    if deployment.settings.console:
        # The command has its own settings: without this one it warns that the console is off.
        line = f"COUNTERSIGN_CONSOLE=true {program} staff invite 'Your Name' --role compliance"
        say(f"A link to the console:  {line}")
    notice_id = parse_notice_file(next(iter(shipped_notice_files().values()))).id
    if known:
        say(f"The demo account already has a test key ({known[-1].hint}), which was shown once.")
        say(f"For another one:  {program} keys create --account {_DEMO_ACCOUNT} --mode test")
    else:
        access = deployment.access
        token = (await access.database.write(create_key, access, account.id, Mode.TEST)).token
        say("A test key, shown only once. Paste this in another terminal, for lines of the guides:")
        say(f"\n  BASE={base}\n  KEY={token}\n")
        header = shlex.quote(f"Authorization: Bearer {token}")
        say(f"Or try it with one line:\n\n  curl -H {header} {base}/v1/notices/{notice_id}\n")
    say(f"Guides and API:  {base}/docs")
