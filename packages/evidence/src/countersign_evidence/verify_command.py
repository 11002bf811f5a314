"""`countersign verify`: check evidence without a server, a database or a network."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click

from countersign_evidence.cli.files import FILE, read_file, read_histories, read_policy
from countersign_evidence.cli.support import command, fail, is_given, printable, say, watching
from countersign_evidence.dossier import (
    CONTAINER_BYTES_MAX,
    Dossier,
    other_verifiers,
    read_container,
)
from countersign_evidence.errors import EvidenceError, InvalidArgument, refused_as
from countersign_evidence.instant import rfc3339
from countersign_evidence.monitor.against import compare
from countersign_evidence.monitor.watch import LookStatus, Seen
from countersign_evidence.offline.verify import (
    STATUS,
    about_certificate,
    date_of,
    stopped,
    verify_folder,
)
from countersign_evidence.policy import Policy, UnnamedKey
from countersign_evidence.receipt import check_receipt, is_receipt
from countersign_evidence.verification import (
    STEPS,
    CheckTimestamp,
    Conclusion,
    Verdict,
    judged,
    verify_file,
)

_OWN_KEY = (
    "the key was not checked: it came in this dossier, and the person who made the dossier may "
    "have made the key too. Give the operator's policy from another source: --policy POLICY"
)
_READ_HERE = (
    "the signature does not cover dossier.pdf, verify.py and verify.html in a dossier: rely on "
    "this output, not on them"
)
_OMITTED = "a dossier cannot show that nothing was left out besides what it says is missing"
_UNKNOWN_KEY = (
    ", and a key under its name did: get the operator's present policy, or give what the log "
    "serves as `keys` with --key-history"
)
_TEST = "this is test evidence: it proves nothing about a sale"
_VENDOR = "the vendor asserts that the buyer was shown the notice and typed the initials"
_HOSTED = (
    "a client that had the session's token sent the initials: this does not show who used it, that "
    "it was a browser, or that the notice was read"
)
_ASSUMED = "the vendor did not say which version was shown: the one in force was assumed"
_IN_LOG = {
    LookStatus.CONSISTENT: "STILL IN THE LOG  ",
    LookStatus.ALARM: "",
    LookStatus.UNCHECKED: "THE LOG COULD NOT BE CHECKED  ",
}


@click.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--policy",
    "policy_file",
    type=FILE,
    help="The keys that you trust. Without it a dossier is checked against its own key.",
)
@click.option(
    "--timestamp-roots",
    type=FILE,
    help="Certificates (PEM) of the time-stamp authorities that you trust.",
)
@click.option(
    "--own-key",
    is_flag=True,
    help="Exit with 0, not 3, if all checks pass with the key in the dossier itself.",
)
@click.option(
    "--against",
    metavar="URL",
    help="The address of the log: is what this file proves still in it?",
)
@click.option(
    "--key-history",
    type=FILE,
    help="Of a receipt: what the log serves as `keys`, which names its other keys.",
)
@command
def verify(
    file: Path,
    policy_file: Path | None,
    timestamp_roots: Path | None,
    against: str | None,
    key_history: Path | None,
    *,
    own_key: bool,
) -> None:
    """Check a dossier, packed or unpacked, a proof, or a receipt.

    Exit status: 0 all checks passed; 1 a check failed; 2 the file could not be checked, also where
    something for it is missing; 3 all checks passed, but only with the key in the dossier itself.

    Standard output begins with at most six lines for people; its last one is the verdict with what
    identifies the file. The verified text is printed on standard error.

    The command needs no server, no database and no network. Only --against connects to the log.
    With it, 1 also means that the log contradicts the file (then the alarm is a file in the current
    directory: countersign log check-alarm), and 2 that the log could not be reached or checked.
    """
    with _unchecked():
        policy = None if policy_file is None else read_policy(policy_file)
        if against is not None and policy is None:
            raise InvalidArgument("--against needs the keys that you trust: --policy POLICY.")
        data = _read(file)
        check_timestamp = _timestamp_check(timestamp_roots)
        if is_receipt(data):
            if against is not None:
                raise InvalidArgument(
                    "--against checks a proof. Whether the log kept the promise of a receipt is "
                    f"checked by {watching()} monitor --receipts."
                )
            _verify_receipt(data, policy, read_histories(key_history))
            return
        if key_history is not None:
            raise InvalidArgument(
                "--key-history is for receipts: for a proof, use a present policy."
            )
    if data.startswith(b"%PDF"):
        say(about_certificate(data))
        sys.exit(STATUS[Conclusion.UNCHECKED])
    if file.is_dir():
        verdict, data = judged(partial(verify_folder, file), policy, check_timestamp)
    else:
        verdict = verify_file(data, policy, check_timestamp)
    verdict = _compared(verdict, data)
    warnings = _warnings(verdict)
    _say(verdict, warnings)
    said = asdict(replace(verdict, dossier=None)) | {"dossier": _view(verdict.dossier)}
    view = {"ok": verdict.outcome is Conclusion.OK, **said, "warnings": warnings}
    seen = compare(data, policy, against) if against and policy and verdict.ok else None
    if seen is not None:
        view["against"] = seen.view()
    _print(view, verdict.line())
    if seen is not None:
        _say_seen(seen)
        sys.exit(seen.status)
    if not (own_key and verdict.outcome is Conclusion.CONSISTENT):
        sys.exit(STATUS[verdict.outcome])


@contextmanager
def _unchecked() -> Iterator[None]:
    """Exit with the status for an unchecked file if something needed is missing."""
    try:
        yield
    except InvalidArgument as error:
        fail(error, status=STATUS[Conclusion.UNCHECKED])


def _say(verdict: Verdict, warnings: list[str]) -> None:
    """Print the verdict for people, and warnings on standard error."""
    for line in () if is_given("as_json") else (*verdict.summary, ""):
        click.echo(line)
    for warning in warnings:
        say(f"warning: {warning}")
    for line in verdict.dossier.words if verdict.dossier else ():
        say(_printable(line))
    for remark in verdict.remarks:
        say(_printable(f"odd, and no failure: {remark}"))
    for cosigned in verdict.facts.get("cosigned", ()):
        say(_printable(f"cosigned by {cosigned['name']} at {date_of(cosigned['time'])}"))
    if others := verdict.facts.get("other_files"):
        say(_printable(f"not part of the dossier, and not checked: {', '.join(others)}"))
    if "certificate" in verdict.facts:
        say(_printable(verdict.facts["certificate"]))
    for stamp in verdict.facts.get("timestamps", ()):
        say(_printable(f"time-stamp: {stamp}"))


def _say_seen(seen: Seen) -> None:
    """The verdict of the current log on the file."""
    if not is_given("as_json"):
        click.echo(_printable(_IN_LOG[seen.status] + seen.message))
    if seen.alarm_file is not None:
        say(f"the file of the alarm: {seen.alarm_file}")


def _verify_receipt(data: bytes, policy: Policy | None, histories: Sequence[bytes]) -> None:
    """Print a receipt's promise; exit status 1 if no log of the policy promised it.

    2 if it was signed by a key with such a log's name that is not known to be the log's.
    """
    if policy is None:
        raise InvalidArgument("A receipt needs the policy to check it against: --policy POLICY.")
    try:
        found = check_receipt(data, policy, histories)
    except EvidenceError as error:
        unknown = isinstance(error, UnnamedKey)
        message = f"{error}{_UNKNOWN_KEY if unknown else ''}"
        verdict = "COULD NOT BE CHECKED" if unknown else "FAILED"
        view = {"ok": False, "message": message}
        _print(view, f"{verdict}: {message}")
        sys.exit(STATUS[Conclusion.UNCHECKED if unknown else Conclusion.FAILED])
    digest, until = found.digest.hex(), rfc3339(found.sealed_by)
    message = f"{found.origin} promised to have the record {digest} by {until}"
    say("a receipt is a promise, not a proof: ask for the dossier, and check that one")
    view = {
        "ok": True,
        "message": message,
        "record_sha256": digest,
        "log": found.origin,
        "sealed_by": until,
    }
    _print(view, f"OK  {message}")


def _compared(verdict: Verdict, data: bytes) -> Verdict:
    """The verdict, with the results of comparing the PDF and the verifiers with this release's."""
    if not verdict.ok or not verdict.dossier:
        return verdict
    try:
        found = _made_again(data, verdict.dossier)
    except EvidenceError as error:
        return Verdict(
            outcome=Conclusion.FAILED,
            step=len(STEPS),
            name=STEPS[-1],
            message=str(error),
            summary=tuple(stopped(STEPS[-1])),
            facts=verdict.facts,
        )
    if others := other_verifiers(read_container(data)):
        found += f"; {' and '.join(others)} in the dossier: of another release, or changed"
    return replace(verdict, facts={**verdict.facts, "certificate": found})


def _made_again(data: bytes, dossier: Dossier) -> str:
    """Whether the service makes the same PDF, in words; only the service can make it."""
    for made in entry_points(group="countersign_evidence.pdf"):
        compare: Callable[[bytes, Dossier], str] = made.load()
        return compare(data, dossier)
    return "dossier.pdf was not compared: the package countersign-service is not installed"


def _view(dossier: Dossier | None) -> dict[str, Any] | None:
    """The content of a dossier, for programs."""
    if dossier is None:
        return None
    records = [
        {"index" if name == "position" else name: value for name, value in one.items()}
        for one in dossier.order["records"]
    ]
    return {**dossier.order, "records": records}


def _read(place: Path) -> bytes:
    """A file; nothing for a folder, which is read while it is verified."""
    if place.is_dir():
        return b""
    if not place.is_file():  # reading a pipe or a device may never end
        raise InvalidArgument(f"{place} is neither a file nor a directory.")
    return read_file(place, CONTAINER_BYTES_MAX)  # and one more: enough to refuse a larger file


def _warnings(verdict: Verdict) -> list[str]:
    """Notes for the reader of a good verdict."""
    if not verdict.ok:
        return []
    warnings = {
        _OWN_KEY: verdict.facts["policy"] == "own",
        _TEST: verdict.record.get("mode") == "test",
        _VENDOR: verdict.record.get("capture") == "vendor_api",
        _HOSTED: verdict.record.get("capture") == "hosted",
        _ASSUMED: verdict.record.get("notice_version_source") == "assumed",
        "the text of the notice is known to be incomplete": bool(verdict.notice.get("text_gaps")),
        _READ_HERE: verdict.dossier is not None,
        _OMITTED: verdict.dossier is not None,
    }
    return [warning for warning, due in warnings.items() if due]


def _print(view: Mapping[str, object], line: str) -> None:
    click.echo(json.dumps(view) if is_given("as_json") else _printable(line))


def _printable(text: str) -> str:
    """A text from a file, on one line."""
    return printable(text, keep="")


def _timestamp_check(roots: Path | None) -> CheckTimestamp | None:
    if roots is None:
        return None
    try:
        from countersign_evidence import timestamp_signer  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise InvalidArgument("--timestamp-roots needs the package rfc3161-client.") from error
    with refused_as(InvalidArgument, str(roots)):
        return timestamp_signer.timestamp_check(read_file(roots))
