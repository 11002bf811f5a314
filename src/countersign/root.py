"""The command group."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from typing import Final, TypeVar

import click

from countersign import __version__
from countersign.access.commands import accounts, keys
from countersign.acknowledgments.commands import acknowledgments
from countersign.bootstrap import open_deployment
from countersign.buyers.commands import audit, buyers, verification
from countersign.checkout.commands import checkout_sessions
from countersign.checkout.verification_commands import verification_sessions
from countersign.clearances.commands import clearance, clearances
from countersign.cli.arguments import explain
from countersign.cli.support import command, log_to_standard_error
from countersign.config import load_settings
from countersign.dossiers.commands import dossier
from countersign.dossiers.sign_pdf import sign_pdf
from countersign.dossiers.verify_command import verify
from countersign.errors import PackageNotInstalled
from countersign.log.commands import log
from countersign.monitor.commands import check_alarm_file, mirror_log, monitor
from countersign.notices.commands import notices
from countersign.operations.commands import backup, database, restore
from countersign.parties.commands import operator
from countersign.privacy.commands import erase, holds, retention
from countersign.sandbox.commands import test_helpers
from countersign.server.certification_command import certification
from countersign.server.commands import dev, init, serve
from countersign.vault.commands import vault
from countersign.webhooks.commands import webhooks

PACKAGED: Final = {
    "simulate-provider": "countersign-simulators",
    "conformance": "countersign-conformance",
}
"""The distribution of each command."""
_GROUP: Final = "countersign.commands"


def packaged_command(name: str) -> click.Command:
    """The command, or one that says which package is missing."""
    for entry in entry_points(group=_GROUP, name=name):
        found: click.Command = entry.load()
        return found
    return _missing(name)


def _missing(name: str) -> click.Command:
    distribution = PACKAGED[name]

    @click.command(
        name,
        help=f"Not installed: this command is part of the package {distribution}.",
        context_settings={"ignore_unknown_options": True},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @command
    def missing(*, arguments: tuple[str, ...], as_json: bool) -> None:  # noqa: ARG001 - any
        raise PackageNotInstalled(
            f"The command {name} is part of the package {distribution}, which is not installed. "
            f"Install {distribution} in the same environment."
        )

    return missing


R = TypeVar("R")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="countersign")
@click.pass_context
def main(context: click.Context) -> None:
    """Countersign: buyer verification and notice acknowledgment.

    Settings come from COUNTERSIGN_* variables or the TOML file that COUNTERSIGN_CONFIG names.
    Results go to standard output, messages to standard error.
    """
    # Only this user may read databases, secrets and locks.
    os.umask(0o077)
    log_to_standard_error()
    context.obj = _open_room


@asynccontextmanager
async def _open_room(kind: type[R]) -> AsyncIterator[R]:
    async with open_deployment(load_settings()) as deployment:
        yield deployment.room(kind)


accounts.add_command(verification)
accounts.add_command(clearance)
for outside in (monitor, mirror_log, check_alarm_file):
    log.add_command(outside)
for part in (
    init,
    serve,
    dev,
    operator,
    accounts,
    buyers,
    clearances,
    keys,
    notices,
    acknowledgments,
    dossier,
    sign_pdf,
    verify,
    certification,
    log,
    vault,
    database,
    erase,
    holds,
    retention,
    audit,
    backup,
    restore,
    test_helpers,
    webhooks,
    checkout_sessions,
    *map(packaged_command, PACKAGED),
):
    main.add_command(part)
buyers.add_command(verification_sessions)
explain(main)
