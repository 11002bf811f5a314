"""The command group."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import click

from countersign import __version__
from countersign.access.commands import accounts, keys
from countersign.acknowledgments.commands import acknowledgments
from countersign.acknowledgments.verify_command import verify
from countersign.bootstrap import open_deployment
from countersign.buyers.commands import audit, buyers
from countersign.buyers.settings_commands import verification
from countersign.clearances.commands import clearance, clearances
from countersign.cli.arguments import explain
from countersign.cli.packaged import PACKAGED, packaged_command
from countersign.cli.support import log_to_standard_error
from countersign.config import load_settings
from countersign.log.commands import log
from countersign.notices.commands import notices
from countersign.operations.commands import backup, database, restore
from countersign.privacy.commands import erase, holds, retention
from countersign.sandbox.commands import test_helpers
from countersign.server.commands import dev, init, serve
from countersign.vault.commands import vault
from countersign.webhooks.commands import webhooks

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
for part in (
    init,
    serve,
    dev,
    accounts,
    buyers,
    clearances,
    keys,
    notices,
    acknowledgments,
    verify,
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
    *map(packaged_command, PACKAGED),
):
    main.add_command(part)
explain(main)
