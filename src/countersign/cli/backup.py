"""`countersign backup` and `restore`, for the embedded database."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Final

import click

from countersign.bootstrap import back_up_deployment, restore_deployment
from countersign.cli.support import command, confirm, say, show
from countersign.config import load_settings
from countersign.lock import only_server
from countersign.storage.backup import KeysAge, Restored

_WARNINGS: Final = {
    KeysAge.SAME: (
        "Its shred keys are as old as the backup: what was erased after it can be read again. "
        "Erase it again, or restore with the shred keys of a later backup."
    ),
    KeysAge.OLDER: (
        "Those shred keys are older than the backup: what came between the two cannot be read, "
        "and what was erased after the backup can be read again. Use newer ones if there are any."
    ),
    KeysAge.NONE: "Without shred keys nothing personal can be read. Was --shred-keys forgotten?",
}


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--shred-keys",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the shred keys go, outside of DIRECTORY; always the same file, which is replaced. "
    "Left out: shred-keys.db in DIRECTORY.",
)
@command
def backup(directory: Path, *, shred_keys: Path | None, as_json: bool) -> None:
    """Copy the embedded database into a new DIRECTORY, while servers run.

    Whoever has the copy and the shred keys of the same time can read what is erased later. So give
    one file for --shred-keys at every backup: then only the newest of them exist. The secret key
    and the key-encryption key are not copied: keep them elsewhere.
    """
    back_up_deployment(load_settings(), directory, shred_keys)
    say(f"Copied into {directory.resolve()}.")
    if shred_keys is None:
        say(
            "Its shred-keys.db can bring back what will be erased: delete those of older backups, "
            "and next time name one file outside with --shred-keys."
        )
    say("Not copied: the secret key and the key-encryption key. Without them it cannot be opened.")
    show({"directory": str(directory.resolve())}, str(directory.resolve()), as_json=as_json)


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--shred-keys",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The newest file of shred keys. Left out: that of DIRECTORY, if it is there.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def restore(directory: Path, *, shred_keys: Path | None, yes: bool, as_json: bool) -> None:
    """Make the embedded database from a backup; there must be none, and no server may run.

    Run `countersign init` next. Sealing is suspended, since checkpoints may have been published
    after the backup: `countersign log recover` explains how to go on. With newer shred keys, what
    was erased after the backup stays erased.
    """
    settings = load_settings()
    confirm(f"Restore {directory} into {settings.data_dir}?", yes=yes)
    lock = only_server(settings.data_dir) if settings.data_dir.is_dir() else nullcontext()
    with lock:
        restored = restore_deployment(settings, directory, shred_keys)
    say(f"Restored, with {restored.shred_keys} shred keys. {_told(restored)}".rstrip())
    say("Run `countersign init`. Sealing is suspended: countersign log recover")
    view = {
        "shred_keys": restored.shred_keys,
        "unreadable": restored.unreadable,
        "shred_keys_age": restored.age.value,
    }
    show(view, str(restored.shred_keys), as_json=as_json)


def _told(restored: Restored) -> str:
    if restored.age is KeysAge.NEWER:
        number = restored.unreadable
        return f"What was erased since the backup stays so: {number} records." if number else ""
    return f"Warning: {_WARNINGS[restored.age]}"
