"""`countersign vault`: the key-encryption key."""

from __future__ import annotations

import click

from countersign.base.cli import room_command
from countersign.base.db.schema import value_of
from countersign.core.access.audit import AuditAction
from countersign.core.vault.key_file import rewrap, rotate_key_encryption
from countersign.core.vault.vault import COPIES_REMAIN, VaultRoom, count_keys
from countersign_evidence.cli.support import asking, say, show

_VAULT = "vault"


@click.group()
def vault() -> None:
    """The keys that encrypt personal data and secrets at rest."""


@vault.command("status")
@room_command(VaultRoom)
async def status(room: VaultRoom) -> None:
    """Show the ids of the key-encryption keys, and how many data keys each one wraps.

    It also shows whether the write-ahead log of the embedded database contains copies of erased
    data.
    """
    database, ring = room.access.database, room.encryption
    wrapped = dict.fromkeys(ring.ids, 0) | dict(await database.scan(count_keys))
    remain = await database.read(value_of, COPIES_REMAIN) is not None
    current, data_keys = ring.ids[0].hex(), {id_.hex(): n for id_, n in wrapped.items()}
    lines = [
        f"{id_}  {number} data keys{'  (current)' if id_ == current else ''}"
        for id_, number in data_keys.items()
    ]
    if remain:
        say("warning: countersign.db-wal contains copies of erased data until a server empties it.")
    view = {"current": current, "data_keys": data_keys, "erased_copies_remain": remain}
    show(view, "\n".join(lines))


@vault.command("rewrap")
@room_command(VaultRoom)
async def rewrap_command(room: VaultRoom) -> None:
    """Wrap every data key with the first key-encryption key. Then older keys can be removed."""
    await room.access.audit.note(AuditAction.VAULT_REWRAPPED, _VAULT)
    number = await rewrap(room, _progress)
    say(f"{number} data keys were wrapped with the first key.")
    show({"rewrapped": number}, str(number))


@vault.command("rotate")
@asking(
    "Replace the key-encryption key? The key file then no longer contains the old key, and "
    "older backups open only with that key: keep a copy of the key file with them."
)
@room_command(VaultRoom)
async def rotate(room: VaultRoom) -> None:
    """Create a new key-encryption key, wrap every data key with it, and delete the old key.

    Only for keys in a file. The file contains every required key at all times, so the command can
    be interrupted and run again. Running servers notice the change of the file. Servers that read a
    copy of the file need both keys in the copy while this runs: use `countersign vault rewrap` for
    them. Older backups need the old key: keep the key with them.
    """
    # Before: a rotation that stops halfway has changed the file, too.
    await room.access.audit.note(AuditAction.VAULT_ROTATED, _VAULT)
    id_, number = await rotate_key_encryption(room, _progress)
    current = id_.hex()
    say(f"{number} data keys are wrapped with the new key. Copy the key file to the place")
    say("where you keep its copy. Older backups still need the old key.")
    show({"rewrapped": number, "current": current}, current)


def _progress(total: int) -> None:
    say(f"{total} …")
