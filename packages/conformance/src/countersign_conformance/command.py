"""`countersign conformance`: test a vendor's integration while it runs in test mode."""

from __future__ import annotations

import asyncio
import signal
import sys
import textwrap
from datetime import timedelta
from typing import Any, Final

import click

from countersign.base.cli import with_room
from countersign.base.config import load_settings
from countersign.base.values import rfc3339, rfc3339_ms
from countersign.core.access.account import Account, find_account
from countersign.operate.bootstrap import Deployment
from countersign_conformance.kit import run_conformance
from countersign_conformance.model import Check, Finding, Report, Verdict
from countersign_evidence.cli.support import Duration, command, say, show

_SHOWN: Final = {
    Verdict.PASSED: "passed  ",
    Verdict.FAILED: "FAILED  ",
    Verdict.NOT_SEEN: "not seen",
}
_INDENT: Final = " " * 10
_WIDTH: Final = 98


@click.command()
@click.option("--account", required=True, help="Id or name of the account.")
@click.option(
    "--for", "duration", type=Duration(), default="10m", show_default=True, help="4h at most."
)
@click.option(
    "--step",
    type=Duration(),
    default="2m",
    show_default=True,
    help="How long to wait for you in each step.",
)
@click.option(
    "--hold",
    type=Duration(),
    default="30s",
    show_default=True,
    help="How long to withhold a response: longer than your client waits. 2m at most.",
)
@click.option(
    "--linger",
    type=Duration(),
    default="30s",
    show_default=True,
    help="How long to watch that an uncleared order does not ship.",
)
@command
def conformance(
    account: str, *, duration: timedelta, step: timedelta, hold: timedelta, linger: timedelta
) -> None:
    """Test the integration of ACCOUNT while it runs in test mode, and print a report.

    Run it on the machine of the server. It provokes one refusal, one outage, one lost response, one
    order that is not cleared, and duplicate and forged webhooks, and prints what to do in your test
    shop. Live mode and other accounts are not affected. Ctrl-C ends the run and prints the report.
    The exit status is 0 if at least one check was judged and every judged check passed.
    """
    found, report = _conduct(account, duration=duration, step=step, hold=hold, linger=linger)
    guides = load_settings().public_url
    show(_view(found, report, guides), _text(found, report, guides))
    if not report.passed:
        sys.exit(1)


@with_room(Deployment)
async def _conduct(
    deployment: Deployment,
    account: str,
    *,
    duration: timedelta,
    step: timedelta,
    hold: timedelta,
    linger: timedelta,
) -> tuple[Account, Report]:
    found = await find_account(deployment.access, account)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    report = await run_conformance(deployment)(
        found.id,
        duration=duration,
        step_limit=step,
        hold=hold,
        linger=linger,
        stop=stop,
        say=say,
    )
    return found, report


def _view(account: Account, report: Report, guides: str) -> dict[str, Any]:
    return {
        "run_id": report.run.id,
        "account_id": account.id,
        "livemode": False,
        "started_at": rfc3339(report.run.started_at),
        "ended_at": rfc3339(report.ended_at),
        "passed": report.passed,
        "counts": {verdict.value: report.count(verdict) for verdict in Verdict},
        "observed": report.observed,
        "complete": report.complete,
        "checks": [
            {
                "id": check.id,
                "title": check.title,
                "provocation": check.provoked or None,
                "verdict": finding.verdict.value,
                "seen": finding.seen,
                "at": [rfc3339_ms(at) for at in finding.at],
                "advice": check.advice,
                "page": guides + check.page,
                "not_judged": check.not_judged or None,
            }
            for check, finding in report.findings
        ],
    }


def _text(account: Account, report: Report, guides: str) -> str:
    counts = ", ".join(
        f"{report.count(verdict)} {_SHOWN[verdict].strip().lower()}" for verdict in Verdict
    )
    began, ended = rfc3339(report.run.started_at), rfc3339(report.ended_at)
    end = "." if report.complete else "; later ones did not fit into the run."
    return "\n".join(
        [
            f"Conformance of {account.name} in test mode, {began} to {ended}",
            f"{counts}; {report.observed} requests and messages observed{end}",
            *(_lines(check, finding, guides) for check, finding in report.findings),
        ]
    )


def _lines(check: Check, finding: Finding, guides: str) -> str:
    lines = ["", f"{_SHOWN[finding.verdict]}  {check.title}  [{check.id}]"]
    if check.provoked:
        lines.append(_wrapped(f"How: {check.provoked}."))
    lines.append(_wrapped(f"Seen: {finding.seen}"))
    if finding.at and finding.verdict is Verdict.FAILED:
        lines.append(_wrapped(f"At: {', '.join(rfc3339_ms(at) for at in finding.at)}"))
    if check.not_judged:
        lines.append(_wrapped(f"Not judged: {check.not_judged}"))
    if finding.verdict is not Verdict.PASSED:
        lines.append(_wrapped(f"What to do: {check.advice} See {guides}{check.page}"))
    return "\n".join(lines)


def _wrapped(text: str) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
