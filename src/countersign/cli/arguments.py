"""Help texts for the positional arguments of commands; options have their own."""

from __future__ import annotations

from inspect import cleandoc
from typing import Final

import click

EXPLAINED: Final = {
    "account": "the id or name of an account",
    "accounts create name": "the name of the new account; no other account may have the same name, "
    "even with other letter case",
    "ack_id": "the id of an acknowledgment (ack_…)",
    "backup directory": "where to write the backup to",
    "check-alarm file": "the file of an alarm, as `countersign log monitor` writes it",
    "cbid": "the identifier of a buyer (cbid_…)",
    "endpoint_id": "the id of a webhook endpoint (whe_…)",
    "erase subject": "the id of an acknowledgment, a verification or a buyer",
    "event_id": "the id of an event (evt_…)",
    "fault": "the fault to simulate",
    "hold_id": "the id of a hold; `countersign holds list` shows the ids",
    "key_id": "the id of a key (key_…), not the key itself; `countersign keys list` shows the ids",
    "kid": "the id of a clearance key; `countersign clearances keys` shows the ids",
    "mirror folder": "the directory to copy the log into",
    "mirror url": "the address of the log: that of its checkpoint, without `/checkpoint`",
    "monitor url": "the address of the log: that of its checkpoint, without `/checkpoint`",
    "new": "a published version, or a notice file",
    "notice_id": "the id of a notice, such as ab1263",
    "notices file": "a notice file (TOML)",
    "old": "a published version",
    "place subject": "the id of an acknowledgment, a buyer or an account",
    "restore directory": "the directory of a backup",
    "status": "the new status",
    "type": "the type of the event",
    "subject": (
        "the id of an account, a buyer, an acknowledgment or a notice, or `log` or `vault`; "
        "left out: all entries"
    ),
    "verify file": "a bundle or a dossier, packed (ZIP) or unpacked (a directory), a proof, or a "
    "receipt",
}
"""Keys are argument names; a key that begins with part of a command's path takes precedence."""


def explain(command: click.Command, path: str) -> click.Command:
    """The command with the help texts of its arguments added; `path` is how it is called."""
    said = [
        sentence
        for parameter in command.params
        if isinstance(parameter, click.Argument) and (sentence := _sentence(parameter, path))
    ]
    # A command is asked for more than once, and may stand in two groups.
    help_ = cleandoc(command.help or "")
    command.help = "\n\n".join([help_, *(s for s in said if s not in help_)])
    return command


def _sentence(argument: click.Argument, path: str) -> str:
    name, words = argument.name or "", path.split()
    places = [" ".join(words[start:]) for start in range(len(words))] + words[:1]
    known = [key for key in (*(f"{place} {name}" for place in places), name) if key in EXPLAINED]
    what = EXPLAINED[known[0]] if known else ""
    if isinstance(argument.type, click.Choice):
        what = f"{what or 'one of'}: {', '.join(map(str, argument.type.choices))}"
    return f"{argument.metavar or name.upper()}: {what}." if what else ""
