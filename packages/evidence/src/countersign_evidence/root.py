"""`countersign-evidence`: verifying and watching, without the service."""

from copy import copy

import click

from countersign_evidence import __version__
from countersign_evidence.cli.arguments import explain
from countersign_evidence.cli.support import ALONE, WITH_SERVICE
from countersign_evidence.monitor.commands import (
    check_alarm_file,
    check_audit_command,
    mirror_log,
    monitor,
)
from countersign_evidence.verify_command import verify


@click.group(
    ALONE, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name=ALONE)
def main() -> None:
    """Countersign's evidence: check it, and watch the logs that hold it.

    Results go to standard output, messages to standard error.
    """


for part in (verify, monitor, mirror_log, check_alarm_file, check_audit_command):
    alone = explain(copy(part), part.name or "")
    alone.help = (alone.help or "").replace(WITH_SERVICE, ALONE)
    main.add_command(alone)
