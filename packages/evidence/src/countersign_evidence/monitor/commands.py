"""`countersign log monitor`, `mirror`, `check-alarm`, `check-audit`: for people outside."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from countersign_evidence.alarm import ALARM_BYTES_MAX
from countersign_evidence.audit import CHAIN, HEADS, PROOF_ENDING, check_audit
from countersign_evidence.check_alarm import Shown, check_alarm
from countersign_evidence.cli.files import FILE, read_file, read_histories, read_policy
from countersign_evidence.cli.support import Duration, command, is_given, printable, say, show
from countersign_evidence.errors import InvalidArgument
from countersign_evidence.files import locked
from countersign_evidence.monitor.against import write_alarm
from countersign_evidence.monitor.mirror import Copy, mirror
from countersign_evidence.monitor.round import Again, AlarmFound, Look, Unchecked, Watch
from countersign_evidence.monitor.source import Unreachable, open_source
from countersign_evidence.monitor.state import DamagedState, State
from countersign_evidence.monitor.watch import LookStatus, Seen, follow, look
from countersign_evidence.offline.verify import STATUS
from countersign_evidence.policy import TEST_ORIGIN, Policy

_FOLDER: Final = click.Path(file_okay=False, path_type=Path)
_SHOWN: Final = {Shown.PROVED: 0, Shown.FAILED: 1, Shown.UNCHECKED: 2, Shown.OBSERVED: 3}

_POLICY: Final = click.option(
    "--policy", "policy_file", type=FILE, required=True, help="The keys of the log, and witnesses."
)
_AGAIN: Final = click.option(
    "--again",
    type=Duration(),
    default="7d",
    show_default=True,
    help="Time in which everything that was read before is read again.",
)


@click.command("monitor")
@click.argument("url")
@_POLICY
@click.option(
    "--state", "folder", type=_FOLDER, required=True, help="Directory to remember the log in."
)
@click.option(
    "--receipts",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory with receipts: alarm if the log has not got what it promised.",
)
@click.option("--once", is_flag=True, help="Check once and exit, as for cron.")
@click.option(
    "--every", type=Duration(), default="60s", show_default=True, help="Pause between two checks."
)
@click.option(
    "--silence",
    type=Duration(),
    default="1d",
    show_default=True,
    help="Alarm if the log could not be checked for longer.",
)
@click.option("--frozen", type=Duration(), help="Alarm if the log has not grown for longer.")
@_AGAIN
@command
def monitor(
    url: str,
    policy_file: Path,
    folder: Path,
    receipts: Path | None,
    *,
    once: bool,
    every: timedelta,
    silence: timedelta,
    frozen: timedelta | None,
    again: timedelta,
) -> None:
    """Watch a log from outside: every checkpoint, signature, tile and entry.

    Exit status: 0 all that was published is consistent; 1 alarm; 2 the log could not be reached or
    checked. Without --once the command runs until there is an alarm, or it is stopped.

    An alarm is a file in STATE/alarms that others can check: countersign log check-alarm.
    """
    policy = _policy(policy_file)

    async def run() -> Seen:
        state = State(folder)
        watch = Watch(
            policy=policy,
            clock=time.time_ns,
            state=state,
            progress=_progress,
            silence=silence,
            frozen=frozen,
            receipts=receipts,
            again=Again(whole=again),
        )
        async with open_source(url) as source:
            if once:
                return await look(watch, source)
            return await follow(watch, source, every, _show)

    with _readable(folder), locked(folder / "lock"):
        seen = _until_stopped(run())
    if seen is not None:
        _show(seen)
        sys.exit(seen.status)


@click.command("mirror")
@click.argument("url")
@click.argument("folder", type=_FOLDER)
@_POLICY
@_AGAIN
@command
def mirror_log(url: str, folder: Path, policy_file: Path, *, again: timedelta) -> None:
    """Copy a log into a directory of files that any web server can serve.

    Everything is checked before it is written. Running it again continues, also after it was
    killed. Exit status: 0 the copy is complete; 1 the log contradicts its own signatures, and the
    alarm is a file in the current directory; 2 the log could not be reached or checked.
    """
    policy = _policy(policy_file)

    async def run() -> None:
        async with open_source(url) as source:
            looking = Look(policy=policy, clock=time.time_ns)
            head = await mirror(looking, source, Copy(folder), _progress, Again(whole=again))
        show(
            {"log": head.origin, "size": head.size},
            f"{head.origin}: {head.size} entries are in {folder}",
        )

    try:
        with _readable(folder), locked(folder / ".lock"):
            asyncio.run(run())
    except AlarmFound as found:
        _show(Seen.of(found.alarm, write_alarm(found.alarm)))
        sys.exit(LookStatus.ALARM)


@click.command("check-alarm")
@click.argument("file", type=FILE)
@_POLICY
@click.option(
    "--key-history", type=FILE, help="What the log serves as `keys`: it names its other keys."
)
@command
def check_alarm_file(file: Path, policy_file: Path, key_history: Path | None) -> None:
    """Check the file of an alarm that somebody else found.

    Exit status: 0 the log's own signatures prove it; 1 the file does not show what it says; 2 it
    depends on a signature that cannot be checked, or that is by a key which is not known to be the
    log's; 3 the file is consistent, and that this was served is the word of its writer.
    """
    policy = _policy(policy_file)
    data = read_file(file, ALARM_BYTES_MAX)
    judged = check_alarm(data, policy, read_histories(key_history))
    kind = judged.alarm.kind.value if judged.alarm else None
    of = f" of {', '.join(judged.origins)}" if judged.origins else ""
    line = f"{judged.shown.value.upper()}{f' ({kind})' if kind else ''}{of}: {judged.message}"
    view: dict[str, Any] = {
        "shown": judged.shown.value,
        "alarm": kind,
        "logs": judged.origins,
        "message": judged.message,
    }
    if any(TEST_ORIGIN in origin for origin in judged.origins):
        say("warning: this is a test log, whose key is public: it proves nothing")
    if judged.alarm is not None:
        view |= {"url": judged.alarm.url, "observed_at": judged.alarm.observed_at}
        say(printable(f"observed at {judged.alarm.observed_at} at {judged.alarm.url}", keep=""))
    show(view, printable(line, keep=""))
    sys.exit(_SHOWN[judged.shown])


@click.command("check-audit")
@click.argument("folder", type=_FOLDER)
@_POLICY
@command
def check_audit_command(folder: Path, policy_file: Path) -> None:
    """Check an exported audit: its chain, and the heads of it that the live log sealed.

    Exit status: 0 the entries up to the newest head are as they were sealed; 1 they are not, or one
    is dated back; 2 nothing is sealed, or it cannot be read. A remark is odd, and can be honest.
    """
    policy = _policy(policy_file)
    proofs = {
        path.name.removesuffix(PROOF_ENDING): read_file(path)
        for path in sorted((folder / HEADS).glob(f"*{PROOF_ENDING}"))
    }
    try:
        with (folder / CHAIN).open("rb") as lines:
            found = check_audit(lines, proofs, policy)
    except OSError as error:
        _unchecked(f"{folder / CHAIN} cannot be read: {error.strerror}")
    for remark in found.remarks:
        say(f"remark: {remark}")
    said = f"{found.entries} entries, {found.heads} sealed heads"
    if found.sealed_by:
        left = found.entries - found.sealed
        after = f"; the {left} after it are the operator's word" if left else ""
        said += f". The newest head, {found.sealed_by}, covers {found.sealed}{after}"
    show(asdict(found), "\n".join([*found.findings, said]))
    sys.exit(STATUS["failed" if found.findings else "ok" if found.sealed else "unchecked"])


def _until_stopped(work: Coroutine[Any, Any, Seen]) -> Seen | None:
    """The result of the work; None if SIGINT or SIGTERM came first."""

    async def run() -> Seen | None:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        with suppress(asyncio.CancelledError):
            return await task
        return None

    return asyncio.run(run())


def _policy(file: Path) -> Policy:
    """The policy; without one nothing can be checked, and that is not an alarm."""
    try:
        return read_policy(file)
    except InvalidArgument as error:
        _unchecked(error.message)


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Errors that are no alarm: an unusable folder or log."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BlockingIOError:
        _unchecked(f"another process is writing to {folder}")
    except OSError as error:
        _unchecked(f"{folder} cannot be written: {error.strerror}")
    except (DamagedState, Unchecked, Unreachable) as error:
        _unchecked(str(error))


def _show(seen: Seen) -> None:
    if is_given("as_json") or seen.status is LookStatus.CONSISTENT:
        show(seen.view(), printable(seen.message, keep=""))
        return
    unchecked = seen.status is LookStatus.UNCHECKED
    say(f"could not be checked: {seen.message}" if unchecked else seen.message)
    if seen.alarm_file is not None:
        show(seen.view(), printable(str(seen.alarm_file), keep=""))


def _unchecked(message: str) -> NoReturn:
    _show(Seen(status=LookStatus.UNCHECKED, message=message))
    sys.exit(LookStatus.UNCHECKED)


def _progress(origin: str, size: int, of: int) -> None:
    say(f"{origin}: {size} of {of} entries checked")
