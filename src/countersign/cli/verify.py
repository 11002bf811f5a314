"""`countersign verify`: check evidence without a server, a database or a network."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from countersign.cli.support import command, printable, say
from countersign.domain.instant import rfc3339
from countersign.errors import InvalidArgument
from countersign.evidence.bundle import BUNDLE_BYTES_MAX, pack
from countersign.evidence.cosignature import cosigned_at
from countersign.evidence.errors import EvidenceError
from countersign.evidence.policy import Policy, parse_policy
from countersign.evidence.verification import CheckTimestamp, Verdict, verify_file

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OWN_KEY = (
    "checked against the key that came in this very bundle. To trust nobody, give the operator's "
    "policy from another source: --policy POLICY"
)
_READ_HERE = (
    "nothing vouches for certificate.pdf, verify.py and verify.html in a bundle: read the words "
    "here, not there"
)
_TEST = "this is test evidence: it proves nothing about a sale"
_VENDOR = "that the buyer was shown the notice, and typed the initials, is what the vendor asserts"


@click.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--policy",
    "policy_file",
    type=_FILE,
    help="The keys that you trust. Without it a bundle is checked against its own key.",
)
@click.option(
    "--timestamp-roots",
    type=_FILE,
    help="Certificates (PEM) of time-stamp authorities that you trust.",
)
@command
def verify(
    file: Path, policy_file: Path | None, timestamp_roots: Path | None, *, as_json: bool
) -> None:
    """Check a bundle, packed or unpacked, or a proof. Exit status 0 only if all is well.

    One line on standard output says what came of it; the words that were checked go beside it.

    It needs no server, no database and no network.
    """
    policy = None if policy_file is None else _policy(policy_file)
    verdict = verify_file(_read(file), policy, _timestamp_check(timestamp_roots))
    for line in _words(verdict):
        say(_printable(line))
    warnings = _warnings(verdict)
    for warning in warnings:
        say(f"warning: {warning}")
    for cosigned in verdict.facts.get("cosigned", ()):
        at = cosigned_at(cosigned["time"])
        told = rfc3339(at) if at else f"{cosigned['time']} (Unix time), which is no date"
        say(_printable(f"cosigned by {cosigned['name']} at {told}"))
    for stamp in verdict.facts.get("timestamps", ()):
        say(_printable(f"time-stamp: {stamp}"))
    answer = json.dumps(_view(verdict) | {"warnings": warnings})
    click.echo(answer if as_json else _printable(verdict.line()))
    if not verdict.ok:
        sys.exit(1)


def _read(place: Path) -> bytes:
    """A file, or the bundle that was unpacked into a folder."""
    try:
        if not place.is_dir():
            return _bytes(place)
        found = [p for p in (*place.iterdir(), *place.glob("timestamps/*")) if p.is_file()]
        packed, others = pack({p.relative_to(place).as_posix(): _bytes(p) for p in found})
    except OSError as error:
        msg = f"{place} cannot be read: {error.strerror}."
        raise InvalidArgument(msg) from error
    if others:
        say(_printable(f"not part of the bundle, and not looked at: {', '.join(others)}"))
    return packed


def _bytes(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(BUNDLE_BYTES_MAX + 1)  # one more than is taken is enough to refuse it


def _words(verdict: Verdict) -> Iterator[str]:
    """What was acknowledged, in the words that were checked."""
    if not verdict.notice:
        return
    yield f"accepted at {verdict.record.get('accepted_at')} by the service's own clock"
    yield f"The notice reads: {verdict.notice.get('heading')}"
    initials = verdict.shown.get("initials_per_line")
    for number, bullet in enumerate(verdict.notice["bullets"]):
        given = initials[number : number + 1] if isinstance(initials, list) else []
        yield f"  [{given[0] if given else 'not shown'}] {bullet['text']}"
    for name, value in verdict.shown.items():
        if name != "initials_per_line":
            yield f"  {name}: {json.dumps(value, ensure_ascii=False)}"


def _warnings(verdict: Verdict) -> list[str]:
    """What nobody should overlook in a good verdict."""
    if not verdict.ok:
        return []
    told = {
        _OWN_KEY: verdict.facts["policy"] == "bundle",
        _TEST: verdict.record.get("mode") == "test",
        _VENDOR: verdict.record.get("capture") == "vendor_api",
        _READ_HERE: bool(verdict.notice),
    }
    return [warning for warning, due in told.items() if due]


def _printable(text: str) -> str:
    """A text from a file, on one line."""
    return printable(text, keep="")


def _policy(file: Path) -> Policy:
    try:
        return parse_policy(file.read_bytes(), any_kind=True)
    except EvidenceError as error:
        msg = f"{file} is no policy: {error}."
        raise InvalidArgument(msg) from error


def _timestamp_check(roots: Path | None) -> CheckTimestamp | None:
    """The check of RFC 3161 responses, where its library is installed."""
    try:
        from countersign.providers import timestamps  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        if roots is not None:
            msg = "--timestamp-roots needs the package rfc3161-client: install it."
            raise InvalidArgument(msg) from error
        return None
    try:
        return (
            timestamps.timestamp_check(roots.read_bytes()) if roots else timestamps.check_timestamp
        )
    except EvidenceError as error:
        msg = f"{roots}: {error}."
        raise InvalidArgument(msg) from error


def _view(verdict: Verdict) -> dict[str, object]:
    return {
        "ok": verdict.ok,
        "step": verdict.step,
        "name": verdict.name,
        "message": verdict.message,
        "facts": dict(verdict.facts),
        "shown": dict(verdict.shown),
        "record": dict(verdict.record),
        "notice": dict(verdict.notice),
    }
