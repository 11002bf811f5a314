"""`countersign backup` and `restore` for the embedded database; `database` for PostgreSQL roles."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

import click

from countersign.base.cli import A_FILE, SaidProgress
from countersign.base.config import load_settings
from countersign.base.db.engine import url_of
from countersign.base.files import only_server
from countersign.operate.backup import KeysAge, Restored, back_up, note_backup, note_restored
from countersign.operate.backup import restore as restore_backup
from countersign.operate.bootstrap import SystemClock
from countersign.operate.serving_role import grant
from countersign.operate.serving_role import grants as serving_role_grants
from countersign_evidence.cli.support import command, confirm, say, show

_WARNINGS: Final = {
    KeysAge.SAME: (
        "The shred keys are as old as the backup: data that was erased after the backup is "
        "readable again. Erase that data again, or restore with the shred keys of a later "
        "backup."
    ),
    KeysAge.OLDER: (
        "The shred keys are older than the backup: data that was stored between the two is not "
        "readable, and data that was erased after the backup is readable again. Use newer shred "
        "keys if you have them."
    ),
    KeysAge.NONE: "Without shred keys no personal data can be read. Did you forget --shred-keys?",
}


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--shred-keys",
    type=A_FILE,
    help="The file for the shred keys, outside of DIRECTORY. Give the same file each time; it is "
    "replaced. Left out: shred-keys.db in DIRECTORY.",
)
@command
def backup(directory: Path, *, shred_keys: Path | None) -> None:
    """Copy the embedded database into a new DIRECTORY. Servers can keep running.

    A copy and shred keys of the same time make data readable that is erased later. So give the same
    --shred-keys file at every backup: then only the newest shred keys exist. The secret key and the
    key-encryption key are not copied: keep copies of them elsewhere.
    """
    settings = load_settings()
    url = url_of(settings)
    made_ns = SystemClock.time_ns()
    back_up(url, directory, shred_keys, made_ns, SaidProgress("Copying"))
    try:
        note_backup(settings.data_dir, directory.resolve(), shred_keys, made_ns)
    except OSError as error:
        say(f"warning: `countersign doctor` will not know of this backup: {error}")
    say(f"Copied into {directory.resolve()}.")
    if shred_keys is None:
        say(
            "shred-keys.db in this backup makes data readable that is erased later. Delete the "
            "shred-keys.db files of older backups. Next time, give one file outside of the "
            "backup with --shred-keys."
        )
    say(
        "Not copied: the secret key and the key-encryption key. Without them the backup is useless."
    )
    show({"directory": str(directory.resolve())}, str(directory.resolve()))


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--shred-keys",
    type=A_FILE,
    help="The newest shred key file. Left out: the one in DIRECTORY, if it exists.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def restore(directory: Path, *, shred_keys: Path | None) -> None:
    """Restore the embedded database from a backup. No database may exist, and no server may run.

    Run `countersign init` next. Sealing is suspended, since checkpoints may have been published
    after the backup: `countersign log recover` explains how to continue. With newer shred keys,
    data that was erased after the backup stays erased.
    """
    settings = load_settings()
    confirm(f"Restore {directory} into {settings.data_dir}?")
    lock = only_server(settings.data_dir) if settings.data_dir.is_dir() else nullcontext()
    with lock:
        url = url_of(settings)
        restored = restore_backup(directory, url, shred_keys, SaidProgress("Copying"))
        with suppress(OSError):  # it may be in a read-only place
            note_restored(directory, SystemClock.time_ns())
    say(f"Restored, with {restored.shred_keys} shred keys. {_about(restored)}".rstrip())
    say(
        "Run `countersign init`. Sealing is suspended; `countersign log recover` explains how "
        "to continue."
    )
    view = {
        "shred_keys": restored.shred_keys,
        "unreadable": restored.unreadable,
        "shred_keys_age": restored.age.value,
    }
    show(view, str(restored.shred_keys))


@click.group()
def database() -> None:
    """The rights of the PostgreSQL role of servers."""


@database.command("grants")
@click.option("--role", required=True, help="The role that servers use to connect.")
@click.option("--apply", is_flag=True, help="Also run the SQL, as the role of the settings.")
@click.option("--console", "further", flag_value="console", help="Also for acts of staff.")
@click.option("--retention", "further", flag_value="retention", help="Also for `retention keep`.")
@command
def grants(role: str, *, apply: bool, further: str | None) -> None:
    """Print the SQL that grants a role exactly the rights that servers need.

    Run it with --apply, as the owner of the tables, after `countersign init` and again after each
    upgrade.
    """
    statements = serving_role_grants(role, further or "")
    if apply:
        grant(url_of(load_settings()), role, further or "")
    show({"statements": statements}, "\n".join(f"{s};" for s in statements))


def _about(restored: Restored) -> str:
    if restored.age is not KeysAge.NEWER:
        return f"Warning: {_WARNINGS[restored.age]}"
    if not restored.unreadable:
        return ""
    return f"Data that was erased after the backup stays erased: {restored.unreadable} records."
