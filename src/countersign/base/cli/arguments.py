"""Help texts for the positional arguments of commands; options have their own."""

from typing import Final

import click

from countersign.base.mode import Mode

A_MODE: Final = click.Choice([mode.value for mode in Mode])
"""The type of an option that is a mode."""
EXPLAINED: Final = {
    "account": "the id or name of an account",
    "account_id": "the id or name of an account",
    "accounts create name": "the name of the new account; no other account may have the same name, "
    "even with other letter case",
    "backup directory": "where to write the backup to",
    "cbid": "the identifier of a buyer (cbid_…)",
    "endpoint_id": "the id of a webhook endpoint (whe_…)",
    "erase subject": "the id of an acknowledgment, a verification or a buyer",
    "event_id": "the id of an event (evt_…)",
    "fault": "the fault to simulate",
    "hold_id": "the id of a hold; `countersign holds list` shows the ids",
    "key_id": "the id of a key (key_…), not the key itself; `countersign keys list` shows the ids",
    "kid": "the id of a clearance key; `countersign clearances keys` shows the ids",
    "members name": "the name of a person, or the id (per_…)",
    "new": "a published version, or a notice file",
    "notice_id": "the id of a notice, such as ab1263",
    "notices file": "a notice file (TOML)",
    "old": "a published version",
    "person_id": "the name of a person, or the id (per_…)",
    "place subject": "the id of any record of an order, a buyer or an account",
    "restore directory": "the directory of a backup",
    "staff name": "the name of a person, or the id (per_…)",
    "status": "the new status",
    "type": "the type of the event",
    "subject": (
        "the id of an account, a buyer, an acknowledgment or a notice, or `log` or `vault`; "
        "left out: all entries"
    ),
}
"""Keys are argument names; a key that begins with part of a command's path takes precedence."""
