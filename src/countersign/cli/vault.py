"""`countersign vault`: the key-encryption key."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

import click

from countersign.bootstrap import Deployment
from countersign.cli.support import command, confirm, say, show, with_deployment
from countersign.config import load_settings
from countersign.errors import InvalidArgument
from countersign.providers.key_encryption import (
    KEY_BYTES,
    key_file,
    key_id,
    key_source,
    key_text,
    parse_keys,
    replace_key_file,
)

_CHUNK = 200
_SETTLE_SECONDS = 2.0


@click.group()
def vault() -> None:
    """The vault: what is personal or secret, encrypted at rest."""


@vault.command("status")
@command
def status(*, as_json: bool) -> None:
    """Tell the key-encryption keys by their ids, and how many data keys each one wraps."""
    current, counts = _status()
    lines = [
        f"{id_}  {number} data keys{'  (current)' if id_ == current else ''}"
        for id_, number in counts.items()
    ]
    show({"current": current, "data_keys": counts}, "\n".join(lines), as_json=as_json)


@vault.command("rewrap")
@command
def rewrap(*, as_json: bool) -> None:
    """Wrap every data key with the first key-encryption key; then older ones can be removed."""
    number = _rewrap()
    say(f"{number} data keys were wrapped anew.")
    show({"rewrapped": number}, str(number), as_json=as_json)


@vault.command("rotate")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def rotate(*, yes: bool, as_json: bool) -> None:
    """Make a new key-encryption key, wrap every data key with it, and forget the old one.

    Only for keys in a file. At each moment the file holds every key that is needed, so that it can
    be interrupted and run again; running servers read the file again by themselves. Backups from
    before need the old key: keep it with them.
    """
    uri = load_settings().key_encryption_key
    file = key_file(uri)
    if file is None:
        msg = (
            "The key-encryption key is not in a file: put the new one first where it comes from, "
            "and run `countersign vault rewrap`."
        )
        raise InvalidArgument(msg)
    confirm(f"Replace the key-encryption key in {file}?", yes=yes)
    old = key_source(uri)()
    keys = parse_keys(old)
    new = os.urandom(KEY_BYTES)
    replace_key_file(file, key_text(new) + "".join(key_text(key) for key in keys))
    number = _rewrap()
    # A server that read the file just before it changed has stored what it wrapped by then.
    time.sleep(_SETTLE_SECONDS)
    number += _rewrap()
    replace_key_file(file, key_text(new))
    say(f"{number} data keys are wrapped with the new key. Copy {file} to where you keep its copy.")
    show({"rewrapped": number, "current": key_id(new).hex()}, key_id(new).hex(), as_json=as_json)


@with_deployment
async def _status(deployment: Deployment) -> tuple[str, Mapping[str, int]]:
    counts = {id_.hex(): number for id_, number in (await deployment.data_keys.counts()).items()}
    ring = deployment.encryption
    return ring.current_id.hex(), {id_.hex(): 0 for id_ in ring.ids} | counts


@with_deployment
async def _rewrap(deployment: Deployment) -> int:
    total = 0
    while number := await deployment.vault.rewrap(_CHUNK):
        total += number
        say(f"{total} …")
    return total
