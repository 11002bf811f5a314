"""`countersign vault`: the key-encryption key."""

from __future__ import annotations

from collections.abc import Mapping

import click

from countersign.access.audit import AuditAction
from countersign.cli.support import command, confirm, say, show, with_room
from countersign.vault.data_keys_sql import counts, noted_copies
from countersign.vault.room import VaultRoom
from countersign.vault.rotate_key import Rotated, rewrap, rotate_key_encryption

_VAULT = "vault"


@click.group()
def vault() -> None:
    """The keys that encrypt personal data and secrets at rest."""


@vault.command("status")
@command
def status(*, as_json: bool) -> None:
    """Show the ids of the key-encryption keys, and how many data keys each one wraps.

    It also shows whether the write-ahead log of the embedded database contains copies of erased
    data.
    """
    current, data_keys, remain = _status()
    lines = [
        f"{id_}  {number} data keys{'  (current)' if id_ == current else ''}"
        for id_, number in data_keys.items()
    ]
    if remain:
        say("warning: countersign.db-wal contains copies of erased data until a server empties it.")
    view = {"current": current, "data_keys": data_keys, "erased_copies_remain": remain}
    show(view, "\n".join(lines), as_json=as_json)


@vault.command("rewrap")
@command
def rewrap_command(*, as_json: bool) -> None:
    """Wrap every data key with the first key-encryption key. Then older keys can be removed."""
    number = _rewrap()
    say(f"{number} data keys were wrapped with the first key.")
    show({"rewrapped": number}, str(number), as_json=as_json)


@vault.command("rotate")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def rotate(*, yes: bool, as_json: bool) -> None:
    """Create a new key-encryption key, wrap every data key with it, and delete the old key.

    Only for keys in a file. The file contains every required key at all times, so the command can
    be interrupted and run again. Running servers notice the change of the file. Servers that read a
    copy of the file need both keys in the copy while this runs: use `countersign vault rewrap` for
    them. Older backups need the old key: keep the key with them.
    """
    confirm(
        "Replace the key-encryption key? The key file then no longer contains the old key, and "
        "older backups open only with that key: keep a copy of the key file with them.",
        yes=yes,
    )
    done = _rotate()
    current = done.current.hex()
    say(f"{done.rewrapped} data keys are wrapped with the new key. Copy the key file to the place")
    say("where you keep its copy. Older backups still need the old key.")
    show({"rewrapped": done.rewrapped, "current": current}, current, as_json=as_json)


@with_room(VaultRoom)
async def _status(room: VaultRoom) -> tuple[str, Mapping[str, int], bool]:
    database, ring = room.access.database, room.encryption
    wrapped = dict.fromkeys(ring.ids, 0) | dict(await database.scan(counts))
    remain = await database.read(noted_copies) is not None
    return ring.current_id.hex(), {id_.hex(): number for id_, number in wrapped.items()}, remain


@with_room(VaultRoom)
async def _rewrap(room: VaultRoom) -> int:
    await room.access.audit.note(AuditAction.VAULT_REWRAPPED, _VAULT)
    return await rewrap(room, _progress)


@with_room(VaultRoom)
async def _rotate(room: VaultRoom) -> Rotated:
    # Before: a rotation that stops halfway has changed the file, too.
    await room.access.audit.note(AuditAction.VAULT_ROTATED, _VAULT)
    return await rotate_key_encryption(room, _progress)


def _progress(total: int) -> None:
    say(f"{total} …")
