"""The fork guard: whether the database agrees with the last published checkpoint.

The last published checkpoint of each mode is kept outside the database (`log.head_files`). A
database that lacks it was restored, or has lost its tail: signing on from there would be a fork. On
PostgreSQL that holds only if all servers keep it in one place, so the database stores the name of
the place; and a server that detects a possible fork stores that, too, so that all servers stop.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from sqlalchemy import Connection, Row, bindparam, select

from countersign.base.db.statements import DriverStatement
from countersign.base.db.tables import checkpoints, log_heads, log_keys, logs
from countersign.base.errors import SealingSuspended
from countersign.base.values import Mode
from countersign.core.log.head_files import Heads
from countersign.core.log.model import SQL
from countersign.core.log.tree_sql import tree_at
from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import Checkpoint, Verifier, checkpoint_of, open_note

SUSPENDED: Final = "sealing_suspended"
"""Name of the deployment's value that says why sealing waits for the operator."""
_PLACE: Final = "log_heads_place"
_NOTED: Final = DriverStatement(SQL["noted"])
_NOTE: Final = DriverStatement(SQL["note"])
_FORGET: Final = DriverStatement(SQL["forget"])
_WAYS_OUT: Final = "`countersign log recover` explains how to continue."


# Built once: the guard runs for every published checkpoint.
_NEWEST: Final = (
    select(logs.c.id, logs.c.epoch, logs.c.origin, log_heads.c.size)
    .join(log_heads, log_heads.c.log_id == logs.c.id)
    .where(logs.c.mode == bindparam("mode"))
    .order_by(logs.c.epoch.desc())
    .limit(1)
)
_OF_ORIGIN: Final = select(logs.c.id, logs.c.epoch).where(
    logs.c.mode == bindparam("mode"), logs.c.origin == bindparam("origin")
)
_ROOT: Final = select(checkpoints.c.root).where(
    checkpoints.c.log_id == bindparam("log_id"), checkpoints.c.size == bindparam("size")
)
_KEYS: Final = select(log_keys.c.vkey).where(log_keys.c.log_id == bindparam("log_id"))


def newest_log(connection: Connection, mode: Mode) -> Row[int, int, str, int] | None:
    """Id, epoch, origin and size of the newest log of a mode."""
    return connection.execute(_NEWEST, {"mode": mode}).one_or_none()


def why_suspended(connection: Connection, mode: Mode) -> str | None:
    """Why sealing waits for the operator on every server; None: it does not."""
    return _noted(connection, f"{SUSPENDED}:{mode.value}")


def suspend_all(connection: Connection, mode: Mode, reason: str) -> None:
    """Let all servers stop sealing until the operator decides: this one sees a fork coming."""
    _NOTE(connection, f"{SUSPENDED}:{mode.value}", reason.encode())


def resume(connection: Connection, mode: Mode, heads: Heads) -> None:
    """Let sealing go on, guarded by these heads: the operator has decided."""
    _FORGET(connection, f"{SUSPENDED}:{mode.value}")
    if _has_places(connection):
        _FORGET(connection, _PLACE)
        take_place(connection, heads)


def take_place(connection: Connection, heads: Heads) -> None:
    """Store the place of this deployment's heads, unless it is stored already.

    SealingSuspended if they are kept elsewhere.
    """
    if _has_places(connection):
        place = heads.named_place()
        _NOTE(connection, _PLACE, place.encode())
        reason = kept_elsewhere(connection, place)
        if reason is not None:
            raise SealingSuspended(reason)


def kept_elsewhere(connection: Connection, place: str | None) -> str | None:
    """Why heads in this place guard nothing; None: it is the deployment's, or none is stored."""
    noted = _noted(connection, _PLACE) if _has_places(connection) else None
    if noted is None or noted == place:
        return None
    return (
        "Another server keeps the last published checkpoints, in another place than this one. "
        "More than one server needs one place: set COUNTERSIGN_LOG_HEAD_DIR to a directory "
        f"or an object store that all of them share. {_WAYS_OUT}"
    )


def _has_places(connection: Connection) -> bool:
    return connection.dialect.name != "sqlite"  # which has one server


def _noted(connection: Connection, name: str) -> str | None:
    noted = _NOTED(connection, name).fetchone()
    return None if noted is None else bytes(noted[0]).decode()


def guard(
    connection: Connection, mode: Mode, note: bytes | None, place: str | None
) -> tuple[int | None, str | None, bool]:
    """Compare the newest log of a mode with the checkpoint that is kept outside the database.

    Returns the id of that log; why it contradicts the checkpoint, None: it does not; and whether
    the operator has to decide, or the heads of the deployment are kept elsewhere.
    """
    newest = newest_log(connection, mode)
    held = why_suspended(connection, mode) or kept_elsewhere(connection, place)
    return newest and newest.id, why_not(connection, mode, note), held is not None


def why_not(connection: Connection, mode: Mode, note: bytes | None) -> str | None:
    """Why the log of a mode must not continue after this kept checkpoint; None: it may.

    Without one, only an empty log begins.
    """
    newest = newest_log(connection, mode)
    if newest is None or (note is None and newest.size == 0):
        return None
    if note is None:
        return (
            f"{newest.origin} has {newest.size} entries, and the file of its last published "
            "checkpoint is missing. Without it, the server cannot detect whether the database was "
            "restored or lost its latest entries. Put it back at COUNTERSIGN_LOG_HEAD_DIR, or set "
            f"that to the place where the other servers of this database keep it. {_WAYS_OUT}"
        )
    published = checkpoint_of(note)
    named = {"mode": mode, "origin": published.origin}
    log = connection.execute(_OF_ORIGIN, named).one_or_none()
    lacking = (
        f"A checkpoint of size {published.size} of {published.origin} was published, but the "
        f"database does not contain it (its own head is {newest.origin}, size {newest.size}): "
        "the database was restored from a backup, or lost its latest entries. Signing from here "
        f"would fork the log. {_WAYS_OUT}"
    )
    if log is None:
        return lacking
    wrong = _unsigned(connection, log.id, note)
    if wrong is not None:
        return (
            f"The kept last published checkpoint of {published.origin} does not verify with the "
            f"keys of that log ({wrong}): someone has changed it, or the log got another key "
            f"after this database was backed up. {_WAYS_OUT}"
        )
    if log.epoch < newest.epoch:
        return None  # the operator began a new epoch after that one
    return None if holds(connection, log.id, published) else lacking


def lost_tail(connection: Connection, mode: Mode, accepted: tuple[int, int] | None) -> str | None:
    """Why the log must not continue: it once had more entries; None: it had not.

    `accepted` is the id of a log and its size, as noted outside the database after a commit.
    """
    newest = newest_log(connection, mode)
    if newest is None or accepted is None or newest.id != accepted[0]:
        return None
    if newest.size >= accepted[1]:
        return None
    return (
        f"{newest.origin} had {accepted[1]} entries, and the database has {newest.size}: its "
        f"latest {accepted[1] - newest.size} are lost, although they were accepted, and vendors "
        "have receipts for them. A disk that confirms writes it has not done can lose the end of "
        "the write-ahead log like that, and so does a copy of the file without that log. "
        f"{_WAYS_OUT}"
    )


def holds(connection: Connection, log_id: int, published: Checkpoint) -> bool:
    """Whether this checkpoint belongs to the log: it was made here, or its entries are here.

    Old checkpoints are deleted (`logs_sql.forget`), entries never.
    """
    place = {"log_id": log_id, "size": published.size}
    root = connection.execute(_ROOT, place).scalar_one_or_none()
    if root is None:
        with suppress(EvidenceError):
            root = tree_at(connection, log_id, published.size).root()
    return root is not None and bytes(root) == published.root


def _unsigned(connection: Connection, log_id: int, note: bytes) -> str | None:
    """The error in the signatures, if the keys are known."""
    rows = connection.execute(_KEYS, {"log_id": log_id})
    try:
        verifiers = [Verifier.parse(vkey) for vkey in rows.scalars()]
        if verifiers:
            open_note(note, verifiers)
    except EvidenceError as error:
        return str(error)
    return None
