"""`countersign vault`: the key-encryption key."""

from __future__ import annotations

from collections.abc import Mapping

import click

from countersign.access.audit_entry import AuditAction
from countersign.bootstrap import Deployment
from countersign.cli.support import command, confirm, say, show, with_deployment
from countersign.vault.data_keys_sql import noted_copies
from countersign.vault.rotate_key import Rotated

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
    current, counts, remain = _status()
    lines = [
        f"{id_}  {number} data keys{'  (current)' if id_ == current else ''}"
        for id_, number in counts.items()
    ]
    if remain:
        say("warning: countersign.db-wal contains copies of erased data until a server empties it.")
    view = {"current": current, "data_keys": counts, "erased_copies_remain": remain}
    show(view, "\n".join(lines), as_json=as_json)


@vault.command("rewrap")
@command
def rewrap(*, as_json: bool) -> None:
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


@with_deployment
async def _status(deployment: Deployment) -> tuple[str, Mapping[str, int], bool]:
    counts = {
        id_.hex(): number for id_, number in (await deployment.vault.data_keys.counts()).items()
    }
    ring = deployment.vault.encryption
    remain = await deployment.database.read(noted_copies) is not None
    return ring.current_id.hex(), {id_.hex(): 0 for id_ in ring.ids} | counts, remain


@with_deployment
async def _rewrap(deployment: Deployment) -> int:
    await deployment.access.audit.note(AuditAction.VAULT_REWRAPPED, _VAULT)
    return await deployment.vault.rotate_key.rewrap(_progress)


@with_deployment
async def _rotate(deployment: Deployment) -> Rotated:
    # Before: a rotation that stops halfway has changed the file, too.
    await deployment.access.audit.note(AuditAction.VAULT_ROTATED, _VAULT)
    return await deployment.vault.rotate_key(_progress)


def _progress(total: int) -> None:
    say(f"{total} …")
