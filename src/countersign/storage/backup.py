"""Backups of the embedded database, with the shred keys apart.

A backup that lives long must not hold what erasing destroys. So the copy of the database has no
shred keys in it, and those go into a small file of their own, which is replaced each time and kept
no longer than erased data may still exist. On PostgreSQL its own tools do this: see the manual.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL

from countersign.domain.mode import Mode
from countersign.errors import BackupFailed, NotInitialised
from countersign.storage.engine import is_embedded, sqlite_module
from countersign.storage.sequencer import SUSPENDED

DATABASE: Final = "countersign.db"
SHRED_KEYS: Final = "shred-keys.db"
_RESTORED: Final = (
    "This database was restored from a backup, and checkpoints may have been published since that "
    "it does not hold. Signing on from here could be a fork. `countersign log recover` explains "
    "the ways out."
)


def back_up(url: URL, target: Path) -> None:
    """Write a backup of a database into a new directory, while servers run.

    Raises:
        BackupFailed: the database is not the embedded one, the directory is not empty, or it
            cannot be written.
    """
    if not is_embedded(url):
        msg = (
            "`countersign backup` copies the embedded database. Back PostgreSQL up with its own "
            "tools, and the table shred_keys apart: docs/operate.md tells how."
        )
        raise BackupFailed(msg)
    if not Path(url.database or "").is_file():
        raise NotInitialised
    driver: Any = sqlite_module()
    try:
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(target.iterdir()):
            msg = f"{target} is not empty."
            raise BackupFailed(msg)
        draft = target / "draft.db"
        with (
            closing(driver.connect(url.database)) as source,
            closing(driver.connect(str(draft))) as copy,
        ):
            source.backup(copy)
            # Only now: what is erased while copying is in neither.
            copy.execute("PRAGMA journal_mode=DELETE")
            copy.execute("PRAGMA secure_delete=ON")
            copy.execute("ATTACH DATABASE ? AS keys", (str(target / SHRED_KEYS),))
            copy.execute(
                "CREATE TABLE keys.shred_keys (record_id TEXT PRIMARY KEY, key BLOB) WITHOUT ROWID"
            )
            copy.execute("INSERT INTO keys.shred_keys SELECT record_id, key FROM main.shred_keys")
            copy.execute("DELETE FROM main.shred_keys")
            copy.commit()
            copy.execute("DETACH DATABASE keys")
            copy.execute("VACUUM")
        draft.rename(target / DATABASE)
        _sync(target)
    except (OSError, driver.Error) as error:
        msg = f"The backup into {target} failed: {error}."
        raise BackupFailed(msg) from error


def restore(source: Path, database: Path, shred_keys: Path | None) -> int:
    """Make a database from a backup; sealing is suspended until the operator has decided.

    Args:
        source: the directory of the backup.
        database: where the database is to be; nothing may be there.
        shred_keys: the file of shred keys, the newest that there is; None: without them nothing
            personal can be read, and everything else can.

    Returns:
        how many shred keys were put back.

    Raises:
        BackupFailed: a file is missing or broken, or there is a database already.
    """
    backup = source / DATABASE
    if not backup.is_file():
        msg = f"{source} holds no backup: {DATABASE} is missing in it."
        raise BackupFailed(msg)
    if database.exists():
        msg = f"There is a database already: {database}. Move it away before restoring."
        raise BackupFailed(msg)
    driver: Any = sqlite_module()
    draft = database.with_suffix(".restoring")
    draft.unlink(missing_ok=True)
    restored = 0
    try:
        database.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (
            closing(driver.connect(str(backup))) as old,
            closing(driver.connect(str(draft))) as new,
        ):
            old.backup(new)
            (verdict,) = new.execute("PRAGMA integrity_check").fetchone()
            if verdict != "ok":
                msg = f"The backup in {source} is damaged: {verdict}."
                raise BackupFailed(msg)
            if shred_keys is not None:
                restored = _put_back(new, shred_keys)
            for mode in Mode:
                new.execute(
                    "INSERT OR REPLACE INTO deployment (name, value) VALUES (?, ?)",
                    (f"{SUSPENDED}:{mode.value}", _RESTORED.encode()),
                )
            new.commit()
        draft.rename(database)
        _sync(database.parent)
    except (OSError, driver.Error) as error:
        msg = f"Restoring {source} failed: {error}."
        raise BackupFailed(msg) from error
    return restored


def _put_back(connection: Any, shred_keys: Path) -> int:  # noqa: ANN401 - a DBAPI connection
    if not shred_keys.is_file():
        msg = f"There is no file of shred keys: {shred_keys}."
        raise BackupFailed(msg)
    connection.execute("ATTACH DATABASE ? AS keys", (str(shred_keys),))
    # Only of what the backup knows, and of nothing that was erased by then.
    done = connection.execute(
        "INSERT OR IGNORE INTO main.shred_keys SELECT k.record_id, k.key FROM keys.shred_keys k"
        " JOIN main.disclosures d ON d.record_id = k.record_id"
    )
    number: int = done.rowcount
    connection.commit()
    connection.execute("DETACH DATABASE keys")
    return number


def _sync(directory: Path) -> None:
    for path in directory.iterdir():
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
