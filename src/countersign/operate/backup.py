"""Backups of the embedded database, with the shred keys apart.

A backup that lives long must not hold what erasing destroys. So the copy of the database contains
no shred keys: those are in a small separate file, which is replaced each time and kept only as long
as erased data may still exist. On PostgreSQL its own tools do this: see the manual.

A copy is made page by page within one read transaction, so that concurrent writes neither restart
it nor get into it partially. Copies need little memory: they use no temporary tables and no
rollback journals, which some builds of SQLite keep in memory.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec
from sqlalchemy import URL, inspect

from countersign.base.cli import Report
from countersign.base.db.engine import Purpose, is_embedded, quick_check, sqlite_module
from countersign.base.db.schema import connected, refuse_moved
from countersign.base.db.statements import statements_of
from countersign.base.errors import BackupFailed, NotInitialised
from countersign.base.values import Mode, from_ns
from countersign.core.buyers.sql import ERASED_BUYER
from countersign.core.log.fork_guard import SUSPENDED
from countersign.core.privacy.erase import ERASURE_DUE, KEYS_MISSING
from countersign_evidence.errors import refused_as
from countersign_evidence.files import replace_file, sync

_RESTORED_KEY: Final = "restored.json"


Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e10)]
"""Unix time."""


class BackupNote(msgspec.Struct, frozen=True):
    """What the data directory has about the last backup; empty: nothing."""

    at: Seconds = 0.0
    directory: str = ""
    shred_keys: str = ""
    restored_at: Seconds | None = None
    """When one was last restored on trial."""


def note_of_backup(data_dir: Path) -> Path:
    """The file in the data directory that notes the last backup."""
    return data_dir / "last-backup.json"


def note_backup(data_dir: Path, directory: Path, shred_keys: Path | None, made_ns: int) -> None:
    """Note in the data directory where the newest backup is. Raises OSError."""
    keys = (shred_keys or directory / SHRED_KEYS).resolve()
    tried = read_note(data_dir).restored_at
    note = BackupNote(made_ns / 1e9, str(directory), str(keys), tried)
    replace_file(note_of_backup(data_dir), msgspec.json.encode(note))


def note_restored(directory: Path, at_ns: int) -> None:
    """Note in a backup that it was restored at this time. Raises OSError."""
    replace_file(directory / _RESTORED_KEY, json.dumps({"restored_at": at_ns / 1e9}).encode())


def read_note(data_dir: Path) -> BackupNote:
    """The note of the last backup, with its last trial."""
    note = _noted(note_of_backup(data_dir))
    if note.directory:
        tried = _noted(Path(note.directory) / _RESTORED_KEY).restored_at
        note = msgspec.structs.replace(note, restored_at=tried or note.restored_at)
    return note


def _noted(file: Path) -> BackupNote:
    """The content of a note; an empty one if nothing is noted, or nothing that can be read."""
    with suppress(OSError, ValueError, msgspec.MsgspecError):
        if file.is_file():  # a pipe would never end
            return msgspec.json.decode(file.read_bytes(), type=BackupNote)
    return BackupNote()


DATABASE: Final = "countersign.db"
SHRED_KEYS: Final = "shred-keys.db"
_MADE: Final = "backup_made"
_SQL: Final = statements_of(__package__)
_NEXT_TO: Final = ("-wal", "-shm", "-journal")
"""Files that SQLite keeps next to a database, and would apply to any database of that name."""
_LOOK_SECONDS: Final = 2.0
"""How long to look for damaged pages of a backup."""
_RESERVE: Final = 64 << 20
"""Bytes that a copy leaves free for others."""
_TABLES: Final = frozenset({"made", "shred_keys", "erased_buyers"})
"""Of a file of shred keys."""
_SHRED_KEY_BYTES: Final = 256
"""At most, on the disk, for one shred key."""
_MB: Final = 1 << 20
_RESTORED: Final = (
    "This database was restored from a backup. Checkpoints may have been published after the "
    "backup, so signing from here could fork the log. `countersign log recover` explains how to "
    "continue."
)


class KeysAge(StrEnum):
    """How old a file of shred keys is, compared with the backup that it is used for."""

    NEWER = "newer"
    SAME = "same"
    OLDER = "older"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The result of a restore: shred keys, and disclosures without one."""

    shred_keys: int
    unreadable: int
    age: KeysAge


class SeenBackup(NamedTuple):
    """A backup as it is now."""

    made_at: datetime
    file: Path
    sample: tuple[str, str, bytes, bytes] | None
    """Account, record, payload and shred key of its newest disclosures; None: it has none."""


def find_backup(data_dir: Path) -> SeenBackup:
    """Look at the newest backup that is noted: at its pages for a while, and at its shred keys.

    Raises BackupFailed, and says why nothing could be restored from it.
    """
    note = read_note(data_dir)
    if not note.directory:
        raise BackupFailed("no backup was made")
    file = Path(note.directory) / DATABASE
    keys = Path(note.shred_keys or file.with_name(SHRED_KEYS))
    driver: Any = sqlite_module()
    try:
        for path in (file, keys):
            if not path.is_file():
                raise BackupFailed(f"the backup's {path} is gone")
        with closing(driver.connect(f"{file.as_uri()}?mode=ro", uri=True)) as backup:
            until = time.monotonic() + _LOOK_SECONDS
            backup.set_progress_handler(lambda: time.monotonic() > until, 100_000)
            if (verdict := quick_check(backup)) not in {"ok", "SQLITE_INTERRUPT"}:
                raise BackupFailed(f"the backup {file} is damaged: {verdict}")
            backup.set_progress_handler(None, 0)
            made = "SELECT CAST(value AS TEXT) FROM deployment WHERE name = ?"
            made_ns = int(backup.execute(made, (_MADE,)).fetchone()[0])
            backup.execute("ATTACH DATABASE ? AS keys", (f"{keys.as_uri()}?mode=ro",))
            (keys_ns,) = backup.execute("SELECT max(at_ns) FROM keys.made").fetchone()
            if (keys_ns or 0) < made_ns:
                raise BackupFailed(f"the shred keys {keys} are older than the backup {file}")
            sample = backup.execute(
                "SELECT d.account_id, d.record_id, d.payload, k.key FROM main.disclosures AS d"
                " JOIN keys.shred_keys AS k ON k.record_id = d.record_id"
                " ORDER BY d.record_id DESC LIMIT 1"
            ).fetchone()
    except (OSError, driver.Error, TypeError, ValueError) as error:
        raise BackupFailed(f"the backup {file} cannot be read: {error}") from error
    return SeenBackup(from_ns(made_ns), file, sample)


def back_up(url: URL, target: Path, shred_keys: Path | None, made_ns: int, report: Report) -> None:
    """Write a backup of a database into a new directory, while servers run.

    The file `shred_keys` is replaced whole; None: a new one in the directory. By the time `made_ns`
    a file of shred keys is compared with a backup.

    Raises:
        BackupFailed: says what to do, for example if space is short; no file is left then.
        NotInitialised: there is no database.
        DatabaseMoved: its data is elsewhere by now.
    """
    if not is_embedded(url):
        raise BackupFailed(
            "`countersign backup` copies the embedded database. Back up PostgreSQL with its own "
            "tools, and the table shred_keys separately; a running server explains how under "
            "/docs/backup."
        )
    if not Path(url.database or "").is_file():
        raise NotInitialised
    with connected(url, Purpose.LOOK) as connection:
        if inspect(connection).has_table("deployment"):
            refuse_moved(connection)
    driver: Any = sqlite_module()
    keys = shred_keys or target / SHRED_KEYS
    _refuse_other_file(keys, Path(url.database or "").parent)
    with refused_as(BackupFailed, f"The backup into {target} failed", OSError, driver.Error):
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(target.iterdir()):
            raise BackupFailed(f"{target} is not empty. Name a new directory for each backup.")
        keys.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft, keys_draft = target / "draft.db", keys.with_name(f"{keys.name}.new")
        with _draft(draft), _draft(keys_draft):
            with (
                closing(driver.connect(url.database)) as source,
                closing(driver.connect(str(draft))) as copy,
            ):
                number = source.execute("SELECT count(*) FROM shred_keys").fetchone()[0]
                _require_room(keys.parent, number * _SHRED_KEY_BYTES)
                _copy(source, copy, target, number * _SHRED_KEY_BYTES, report)
                # Only now: data erased during the copy is in neither file.
                _take_keys_out(copy, keys_draft, made_ns)
            # The keys first: without them, no one can read the copy.
            sync(keys_draft)
            keys_draft.replace(keys)
            sync(keys.parent)
            sync(draft)
            draft.rename(target / DATABASE)
            sync(target)


def restore(source: Path, url: URL, shred_keys: Path | None, report: Report) -> Restored:
    """Make a database from a backup; sealing is suspended until the operator has decided.

    `shred_keys` is the newest file of shred keys; None: that of the backup, if it has one. Without
    shred keys personal data cannot be read.
    """
    if not is_embedded(url):
        raise BackupFailed(
            "`countersign restore` restores the embedded database. Restore PostgreSQL with its "
            "own tools; a running server explains how under /docs/backup."
        )
    database = Path(url.database or "")
    if shred_keys is None and (source / SHRED_KEYS).is_file():
        shred_keys = source / SHRED_KEYS
    backup = source / DATABASE
    if not backup.is_file():
        raise BackupFailed(f"{source} is not a backup: it has no {DATABASE}.")
    there = [file for file in (database, *_journals(database)) if file.exists()]
    if there:
        names = ", ".join(str(file) for file in there)
        raise BackupFailed(
            f"Files of another database exist: {names}. Move all of them away before restoring; "
            "otherwise they would be used as parts of the restored database."
        )
    driver: Any = sqlite_module()
    draft = database.with_suffix(".restoring")
    with refused_as(BackupFailed, f"Restoring {source} failed", OSError, driver.Error):
        database.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _draft(draft):
            with (
                closing(driver.connect(str(backup))) as old,
                closing(driver.connect(str(draft))) as new,
            ):
                room = shred_keys.stat().st_size if shred_keys and shred_keys.is_file() else 0
                _copy(old, new, database.parent, room, report)
                new.execute("PRAGMA journal_mode=OFF")
                (verdict,) = new.execute("PRAGMA integrity_check").fetchone()
                if verdict != "ok":
                    raise BackupFailed(f"The backup in {source} is damaged: {verdict}.")
                restored = _put_back(new, shred_keys)
                if restored.age is KeysAge.NEWER and restored.unreadable:
                    _note(new, KEYS_MISSING, b"1")
                for mode in Mode:
                    _note(new, f"{SUSPENDED}:{mode.value}", _RESTORED.encode())
                new.commit()
            sync(draft)
            draft.rename(database)
            sync(database.parent)
    return restored


def _copy(source: Any, copy: Any, place: Path, more: int, report: Report) -> None:  # noqa: ANN401 - DBAPI connections
    """Copy a database as it is now; into this directory `more` bytes are to follow."""
    copy.execute("PRAGMA synchronous=OFF")  # it is flushed once, when complete
    source.isolation_level = None
    source.execute("BEGIN")
    source.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    page, pages = (
        source.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count")
    )
    _require_room(place, page * pages + more)

    def copied(_status: int, left: int, total: int) -> None:
        report((total - left) * page // _MB, total * page // _MB, "MB")

    source.backup(copy, pages=4096, progress=copied)
    source.execute("ROLLBACK")


def _require_room(place: Path, needed: int) -> None:
    free = shutil.disk_usage(place).free
    if free < needed + _RESERVE:
        raise BackupFailed(
            f"{place} has {free // _MB} MB free, and {(needed + _RESERVE) // _MB} MB are needed: "
            "free some, or choose a directory on a larger disk."
        )


def _take_keys_out(copy: Any, keys: Path, made_ns: int) -> None:  # noqa: ANN401 - a DBAPI connection
    copy.execute("PRAGMA journal_mode=DELETE")  # what its header says; it was a write-ahead log
    # No journal holds the keys, in memory or on the disk: a draft that fails is thrown away.
    copy.execute("PRAGMA journal_mode=OFF")
    copy.execute("PRAGMA secure_delete=ON")  # the pages of the keys stay, and hold zeros
    copy.execute("ATTACH DATABASE ? AS keys", (str(keys),))
    for statement in _SQL["take_keys_out"].split(";"):
        copy.execute(statement, {"made_ns": made_ns, "erased": f"{ERASED_BUYER}*"})
    _note(copy, _MADE, str(made_ns).encode())
    copy.commit()
    copy.execute("DETACH DATABASE keys")


def _refuse_other_file(keys: Path, data_dir: Path) -> None:
    """Another kind of file is not overwritten by shred keys.

    Raises BackupFailed if something else is there, or if it lies in the data directory.
    """
    if keys.resolve().is_relative_to(data_dir.resolve()):
        raise BackupFailed(f"{keys} is in the data directory: keep the shred keys apart from it.")
    if not keys.exists():
        return
    driver: Any = sqlite_module()
    try:
        with closing(driver.connect(f"{keys.resolve().as_uri()}?mode=ro", uri=True)) as found:
            tables = {row[0] for row in found.execute("SELECT name FROM sqlite_master")}
    except driver.Error:
        tables = set()
    if not tables >= _TABLES or "deployment" in tables:
        raise BackupFailed(f"{keys} is there and is not a shred key file: it is not replaced.")


def _put_back(connection: Any, shred_keys: Path | None) -> Restored:  # noqa: ANN401 - as above
    taken = connection.execute("SELECT value FROM deployment WHERE name = ?", (_MADE,)).fetchone()
    backup_made = 0 if taken is None else int(taken[0])
    number, age = 0, KeysAge.NONE
    if shred_keys is not None:
        if not shred_keys.is_file():
            raise BackupFailed(f"The shred key file {shred_keys} does not exist.")
        connection.execute("ATTACH DATABASE ? AS keys", (str(shred_keys),))
        tables = {row[0] for row in connection.execute("SELECT name FROM keys.sqlite_master")}
        if not tables >= _TABLES:
            raise BackupFailed(f"{shred_keys} is not a shred key file.")
        (made,) = connection.execute("SELECT max(at_ns) FROM keys.made").fetchone()
        made = made or 0
        age = KeysAge.SAME
        if made != backup_made:
            age = KeysAge.NEWER if made > backup_made else KeysAge.OLDER
        number = connection.execute(_SQL["put_keys_back"]).rowcount
        if age is KeysAge.NEWER:
            connection.execute(_SQL["erase_again"], (ERASURE_DUE,))
        connection.commit()
        connection.execute("DETACH DATABASE keys")
    (unreadable,) = connection.execute(_SQL["unreadable"]).fetchone()
    return Restored(shred_keys=number, unreadable=unreadable, age=age)


def _note(connection: Any, name: str, value: bytes) -> None:  # noqa: ANN401 - as above
    connection.execute(
        "INSERT OR REPLACE INTO deployment (name, value) VALUES (?, ?)", (name, value)
    )


def _journals(database: Path) -> list[Path]:
    return [database.with_name(database.name + suffix) for suffix in _NEXT_TO]


@contextmanager
def _draft(path: Path) -> Iterator[None]:
    """While a file is written under this name; any file not renamed is deleted at the end."""
    files = [path, *_journals(path)]
    for file in files:
        file.unlink(missing_ok=True)  # of an attempt that was killed
    try:
        yield
    finally:
        for file in files:
            file.unlink(missing_ok=True)
