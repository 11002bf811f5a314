"""The command group."""

import os

import click

from countersign import __version__
from countersign.cli.accounts import accounts
from countersign.cli.acknowledgments import acknowledgments
from countersign.cli.arguments import explain
from countersign.cli.audit import audit
from countersign.cli.backup import backup, restore
from countersign.cli.buyers import buyers
from countersign.cli.clearances import clearances
from countersign.cli.conformance import conformance
from countersign.cli.database import database
from countersign.cli.erase import erase, holds, retention
from countersign.cli.keys import keys
from countersign.cli.log import log
from countersign.cli.notices import notices
from countersign.cli.server import dev, init, serve
from countersign.cli.simulate import simulate_provider
from countersign.cli.support import log_to_standard_error
from countersign.cli.test_helpers import test_helpers
from countersign.cli.vault import vault
from countersign.cli.verify import verify
from countersign.cli.webhooks import webhooks


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="countersign")
def main() -> None:
    """Countersign: buyer verification and notice acknowledgment.

    Settings come from COUNTERSIGN_* variables or the TOML file that COUNTERSIGN_CONFIG names.
    Results go to standard output, messages to standard error.
    """
    # Only this user may read databases, secrets and locks.
    os.umask(0o077)
    log_to_standard_error()


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
    simulate_provider,
    test_helpers,
    conformance,
    webhooks,
):
    main.add_command(part)
explain(main)
