"""Commands of packages that are installed next to the service."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

import click

from countersign.cli.support import command
from countersign.errors import PackageNotInstalled

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
        msg = (
            f"The command {name} is part of the package {distribution}, which is not installed. "
            f"Install {distribution} in the same environment."
        )
        raise PackageNotInstalled(msg)

    return missing
