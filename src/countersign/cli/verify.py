"""`countersign verify`: check evidence without a server, a database or a network."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from countersign.cli.support import command, say, show
from countersign.domain.instant import rfc3339
from countersign.errors import InvalidArgument
from countersign.evidence.errors import EvidenceError
from countersign.evidence.policy import Policy, parse_policy
from countersign.evidence.verification import CheckTimestamp, Verdict, verify_file

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("file", type=_FILE)
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
    """Check a bundle or a proof. One line says what came of it; exit status 0 only if all is well.

    It needs no server, no database and no network.
    """
    policy = None if policy_file is None else _policy(policy_file)
    verdict = verify_file(file.read_bytes(), policy, _timestamp_check(timestamp_roots))
    if verdict.ok and verdict.facts["policy"] == "bundle":
        say(
            "warning: checked against the key that came in this very bundle. To trust nobody, "
            "give the operator's policy from another source: --policy POLICY"
        )
    for cosigned in verdict.facts.get("cosigned", ()):
        at = rfc3339(datetime.fromtimestamp(cosigned["time"], UTC))
        say(f"cosigned by {cosigned['name']} at {at}")
    for stamp in verdict.facts.get("timestamps", ()):
        say(f"time-stamp: {stamp}")
    show(_view(verdict), verdict.line(), as_json=as_json)
    if not verdict.ok:
        sys.exit(1)


def _policy(file: Path) -> Policy:
    try:
        return parse_policy(file.read_bytes())
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
    }
