"""`countersign backup` and `restore`, for the embedded database."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

from countersign.bootstrap import back_up_deployment, restore_deployment
from countersign.cli.support import command, confirm, say, show
from countersign.config import load_settings
from countersign.lock import only_server


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@command
def backup(directory: Path, *, as_json: bool) -> None:
    """Copy the embedded database into a new DIRECTORY, while servers run.

    The shred keys go into a file of their own, shred-keys.db: keep only the newest one of those,
    and no longer than erased data may still exist. The secret key and the key-encryption key are
    not copied: keep them elsewhere.
    """
    back_up_deployment(load_settings(), directory)
    say(f"Copied into {directory.resolve()}.")
    say("Keep shred-keys.db apart from the rest, and only the newest one.")
    say("Not copied: the secret key and the key-encryption key. Without them it cannot be opened.")
    show({"directory": str(directory.resolve())}, str(directory.resolve()), as_json=as_json)


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--shred-keys",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The newest shred-keys.db. Left out: that of DIRECTORY, if it is there.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def restore(directory: Path, *, shred_keys: Path | None, yes: bool, as_json: bool) -> None:
    """Make the embedded database from a backup; there must be none, and no server may run.

    Sealing is suspended afterwards, since checkpoints may have been published after the backup:
    `countersign log recover` explains how to go on. What was erased after the backup has to be
    erased again, unless a newer shred-keys.db is given.
    """
    settings = load_settings()
    confirm(f"Restore {directory} into {settings.data_dir}?", yes=yes)
    lock = only_server(settings.data_dir) if settings.data_dir.is_dir() else nullcontext()
    with lock:
        number = restore_deployment(settings, directory, shred_keys)
    say(f"Restored, with {number} shred keys. Sealing is suspended: countersign log recover")
    show({"shred_keys": number}, str(number), as_json=as_json)
