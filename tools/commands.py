"""The table of the commands; `make docs` writes it to `src/countersign/commands.json`.

It is made from the commands themselves, and is all that `countersign --help` needs of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import cleandoc
from typing import Any

import click

from countersign.core.gate.commands import command_of
from countersign.core.gate.route import Route
from countersign.root import GROUPS, PACKAGED, PLACES, TABLE, module_of, packaged_command
from countersign.server.routes import ROUTES


def table() -> dict[str, dict[str, str]]:
    """By path: the help of each group and command, and where each command is defined."""
    rows: dict[str, dict[str, str]] = {}
    for path, place in PLACES.items():
        declared = getattr(import_module(module_of(place)), place.partition(":")[2])
        rows |= dict(_rows(declared, path, place))
    rows |= {name: {"help": help_} for name, help_ in GROUPS.items()} | operations(ROUTES)
    for name in PACKAGED:
        rows[name] = {"help": _help(packaged_command(name))}
    return dict(sorted(rows.items()))


def operations(routes: Iterable[Route[Any]]) -> dict[str, dict[str, str]]:
    """The rows of the commands that these routes declare, at the `ROUTES` of their modules."""
    return {
        declared.name: {
            "help": _help(command_of(route, declared)),
            "place": f"{route.handler.__module__.removeprefix('countersign.')}:ROUTES "
            + declared.name,
        }
        for route in routes
        for declared in route.commands
    }


def _rows(command: click.Command, path: str, place: str) -> Iterator[tuple[str, dict[str, str]]]:
    if isinstance(command, click.Group):
        yield path, {"help": _help(command)}
        for name, child in command.commands.items():
            yield from _rows(child, f"{path} {name}", f"{place} {name}")
    else:
        yield path, {"help": _help(command), "place": place}


def _help(command: click.Command) -> str:
    """The help of a group, and the first paragraph of a command's: what lists show a part of."""
    help_ = cleandoc(command.help or "")
    return help_ if isinstance(command, click.Group) else help_.partition("\n\n")[0]


def table_text() -> str:
    """The file."""
    return json.dumps(table(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table_text(), encoding="utf-8")
