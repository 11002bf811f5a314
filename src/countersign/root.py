"""The command group: names and help lines from a table, and each command from its own room."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from countersign import __version__

R = TypeVar("R")

TABLE: Final = Path(__file__).with_name("commands.json")
"""Help and module of each command, help of each group. `make docs` writes it."""
PLACES: Final = {
    "accounts brand": "operate.commands.checkout:brand_command",
    "accounts preview": "operate.commands.checkout:preview_command",
    "accounts capture-process": "operate.commands.parties:capture_process_command",
    "accounts clearance": "operate.commands.clearances:clearance",
    "accounts close": "operate.commands.erasures:close_account_command",
    "accounts describe": "operate.commands.parties:describe_account_command",
    "accounts evidence-end": "operate.commands.erasures:evidence_end_command",
    "accounts show": "operate.commands.parties:show_account",
    "accounts verification": "operate.commands.buyers:verification",
    "acknowledgments": "operate.commands.acknowledgments:acknowledgments",
    "acknowledgments certificate": "operate.commands.dossiers:certificate",
    "acknowledgments list": "operate.commands.acknowledgments:list_command",
    "acknowledgments show": "operate.commands.acknowledgments:show_command",
    "audit": "operate.commands.buyers:audit",
    "backup": "operate.commands.database:backup",
    "buyers": "operate.commands.buyers:buyers",
    "certification": "server.certification_command:certification",
    "clearances": "operate.commands.clearances:clearances",
    "database": "operate.commands.database:database",
    "dev": "server.commands:dev",
    "doctor": "operate.commands.doctor:doctor",
    "dossier": "operate.commands.dossiers:dossier",
    "erase": "operate.commands.erasures:erase_command",
    "init": "server.commands:init",
    "log": "operate.commands.log:log",
    "log check-alarm": "countersign_evidence.monitor.commands:check_alarm_file",
    "log check-audit": "countersign_evidence.monitor.commands:check_audit_command",
    "log mirror": "countersign_evidence.monitor.commands:mirror_log",
    "log monitor": "countersign_evidence.monitor.commands:monitor",
    "members remove": "operate.commands.people:remove_member",
    "migrate-database": "server.move_command:migrate_database",
    "notices": "operate.commands.notices:notices",
    "operator": "operate.commands.parties:operator",
    "restore": "operate.commands.database:restore",
    "retention": "operate.commands.erasures:retention",
    "retention end": "operate.commands.erasures:end_command",
    "serve": "server.commands:serve",
    "sign-pdf": "core.dossiers.sign_pdf:sign_pdf",
    "staff remove": "operate.commands.people:remove_staff",
    "status": "operate.commands.doctor:status",
    "subject": "operate.commands.dossiers:subject",
    "vault": "operate.commands.vault:vault",
    "verify": "countersign_evidence.verify_command:verify",
    "webhooks listen": "operate.commands.webhooks:listen",
}
"""The module and name that declare each command or group; commands of operations are declared by
their routes. A module is one of the service, or of the evidence by its whole name."""
GROUPS: Final = {
    "accounts": "Accounts, one for each vendor.",
    "accounts origins": "The pages that checkout sessions of live keys may embed or return to.",
    "checkout-sessions": "Links by which one buyer initials a notice for one order.",
    "holds": "Legal holds, which prevent erasure.",
    "keys": "API keys. A key is shown once and stored as a keyed hash.",
    "members": "People of an account, who see at /console what is theirs.",
    "staff": "People who work on the whole deployment, at /console.",
    "test": "The sandbox of an account: its clock, buyers, events and faults. Never live.",
    "test buyer": "The buyers of the sandbox.",
    "test clock": "The test clock, which puts the sandbox ahead of real time.",
    "test fault": "Simulated faults of the identity provider in the sandbox.",
    "webhooks": "Webhook endpoints and their deliveries.",
}
"""The groups of the commands that operations have."""
PACKAGED: Final = {
    "simulate-provider": "countersign-simulators",
    "conformance": "countersign-conformance",
}
"""The distribution of each command that is not part of the service."""
_GROUP: Final = "countersign.commands"


class Later(click.Command):
    """A command with its name and help in the table; its room is loaded when it is called."""

    def __init__(self, path: str, help_: str, find: Callable[[], click.Command]) -> None:
        super().__init__(path.rsplit(maxsplit=1)[-1], help=help_)
        self._path = path
        self._find = find

    def load(self) -> click.Command:
        """The command itself."""
        # Neither is needed for a list.
        from countersign.base.cli import EXPLAINED  # noqa: PLC0415
        from countersign_evidence.cli.arguments import explain  # noqa: PLC0415

        return explain(self._find(), self._path, EXPLAINED)

    # The entry point for click, to run a command and to complete its words.
    def make_context(self, *args: Any, **extra: Any) -> click.Context:  # noqa: ANN401
        return self.load().make_context(*args, **extra)


def module_of(place: str) -> str:
    """The whole name of the module of a place."""
    module = place.partition(":")[0]
    return module if module.startswith("countersign_evidence.") else f"countersign.{module}"


def command_at(place: str) -> click.Command:
    """The command of a place: a module, a group or routes in it, and names below that."""
    first, *inner = place.partition(":")[2].split()
    # What modules define lives as long as the process: the collector need not look through it.
    gc.disable()
    found = getattr(import_module(module_of(place)), first)
    gc.freeze()
    gc.enable()
    if isinstance(found, tuple):
        from countersign.core.gate.commands import command_among  # noqa: PLC0415 - as above

        return command_among(found, " ".join(inner))
    for name in inner:
        found = found.commands[name]
    command: click.Command = found
    return command


def packaged_command(name: str) -> click.Command:
    """The command, or one that names the missing package."""
    # Reading package metadata takes longer than the rest of listing the commands.
    from importlib.metadata import entry_points  # noqa: PLC0415

    for entry in entry_points(group=_GROUP, name=name):
        found: click.Command = entry.load()
        return found
    return _missing(name)


def _missing(name: str) -> click.Command:
    from countersign.base.errors import PackageNotInstalled  # noqa: PLC0415 - as above
    from countersign_evidence.cli.support import command  # noqa: PLC0415 - as above

    distribution = PACKAGED[name]

    @click.command(
        name,
        help=f"Not installed: this command is part of the package {distribution}.",
        context_settings={"ignore_unknown_options": True},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @command
    def missing(*, arguments: tuple[str, ...]) -> None:  # noqa: ARG001 - any
        raise PackageNotInstalled(
            f"The command {name} is part of the package {distribution}, which is not installed. "
            f"Install {distribution} in the same environment."
        )

    return missing


def add_commands(group: click.Group, table: Mapping[str, Mapping[str, str]]) -> None:
    """Give the group each command of this table, and the groups that they stand in."""
    groups = {"": group}
    for path, row in table.items():
        above, _, name = path.rpartition(" ")
        if "place" in row:
            find = partial(command_at, row["place"])
            groups[above].add_command(Later(path, row["help"], find))
        elif name in PACKAGED:
            groups[above].add_command(Later(path, row["help"], partial(packaged_command, name)))
        else:
            groups[path] = click.Group(name, help=row["help"])
            groups[above].add_command(groups[path])


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="countersign")
@click.pass_context
def main(context: click.Context) -> None:
    """Countersign: buyer verification and notice acknowledgment.

    Settings come from COUNTERSIGN_* variables or the TOML file that COUNTERSIGN_CONFIG names.
    Results go to standard output, messages to standard error.
    """
    from countersign.base.cli import log_to_standard_error  # noqa: PLC0415 - not for a list

    # Only this user may read databases, secrets and locks.
    os.umask(0o077)
    log_to_standard_error()
    context.obj = _open_room


@asynccontextmanager
async def _open_room(kind: type[R]) -> AsyncIterator[R]:
    # Every room of the service: only for a command that opens a deployment.
    from countersign.base.config import load_settings  # noqa: PLC0415
    from countersign.operate.bootstrap import open_deployment  # noqa: PLC0415

    async with open_deployment(load_settings()) as deployment:
        yield deployment.room(kind)


add_commands(main, json.loads(TABLE.read_bytes()))
