"""Help texts for the positional arguments of commands; options have their own."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from typing import Final

import click

EXPLAINED: Final = {
    "check-audit folder": "the directory that the operator exported: the audit with its chain",
    "check-alarm file": "the file of an alarm, as `countersign log monitor` writes it",
    "mirror folder": "the directory to copy the log into",
    "mirror url": "the address of the log: that of its checkpoint, without `/checkpoint`",
    "monitor url": "the address of the log: that of its checkpoint, without `/checkpoint`",
    "verify file": "a dossier, packed (ZIP) or unpacked (a directory), a proof, or a receipt",
}
"""Keys are argument names; a key that begins with part of a command's path takes precedence."""


def explain(
    command: click.Command, path: str, texts: Mapping[str, str] = EXPLAINED
) -> click.Command:
    """The command with the help texts of its arguments added; `path` is how it is called.

    Keys of the texts are as in `EXPLAINED`, which counts too.
    """
    known = {**EXPLAINED, **texts}
    said = [
        sentence
        for parameter in command.params
        if isinstance(parameter, click.Argument) and (sentence := _sentence(parameter, path, known))
    ]
    # A command may be listed more than once, in two groups.
    help_ = cleandoc(command.help or "")
    command.help = "\n\n".join([help_, *(s for s in said if s not in help_)])
    return command


def _sentence(argument: click.Argument, path: str, texts: Mapping[str, str]) -> str:
    name, words = argument.name or "", path.split()
    places = [" ".join(words[start:]) for start in range(len(words))] + words[:1]
    known = [key for key in (*(f"{place} {name}" for place in places), name) if key in texts]
    what = texts[known[0]] if known else ""
    if isinstance(argument.type, click.Choice):
        what = f"{what or 'one of'}: {', '.join(map(str, argument.type.choices))}"
    return f"{argument.metavar or name.upper()}: {what}." if what else ""
