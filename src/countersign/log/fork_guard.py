"""The fork guard: whether the database goes with the checkpoint that was published last.

The last published checkpoint of each mode is kept outside the database (`log.head_files`). A
database that lacks it was restored, or has lost its tail: signing on from there would be a fork.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, Row, delete, select

from countersign.db.tables import checkpoints, deployment, log_heads, log_keys, logs
from countersign.evidence.errors import EvidenceError
from countersign.evidence.note import Verifier, open_note
from countersign.log.head_files import checkpoint_of
from countersign.log.model import Guarded
from countersign.mode import Mode

SUSPENDED: Final = "sealing_suspended"
"""Name of the deployment's value that says why sealing waits for the operator."""
_WAYS_OUT: Final = "`countersign log recover` explains how to continue."


def newest_log(connection: Connection, mode: Mode) -> Row[int, int, str, int] | None:
    """Id, epoch, origin and size of the newest log of a mode."""
    return connection.execute(
        select(logs.c.id, logs.c.epoch, logs.c.origin, log_heads.c.size)
        .join(log_heads, log_heads.c.log_id == logs.c.id)
        .where(logs.c.mode == mode)
        .order_by(logs.c.epoch.desc())
        .limit(1)
    ).one_or_none()


def suspended_by_operator(connection: Connection, mode: Mode) -> str | None:
    """Why sealing waits for the operator after a restore; None: it does not."""
    name = f"{SUSPENDED}:{mode.value}"
    query = select(deployment.c.value).where(deployment.c.name == name)
    noted = connection.execute(query).scalar_one_or_none()
    return None if noted is None else bytes(noted).decode()


def forget_suspension(connection: Connection, mode: Mode) -> None:
    """Let sealing go on: the operator has decided what a restore had left open."""
    connection.execute(delete(deployment).where(deployment.c.name == f"{SUSPENDED}:{mode.value}"))


def guard(connection: Connection, mode: Mode, kept: bytes | None) -> Guarded:
    """Compare the newest log of a mode with the checkpoint that is kept outside the database."""
    newest = newest_log(connection, mode)
    return Guarded(
        log_id=None if newest is None else newest.id,
        refusal=why_not(connection, mode, kept),
        restored=suspended_by_operator(connection, mode) is not None,
    )


def why_not(connection: Connection, mode: Mode, note: bytes | None) -> str | None:
    """Why the log of a mode must not continue after this kept checkpoint; None: it may.

    Without one, a log that has entries goes on only on PostgreSQL, where each server has a
    directory of its own and a new one has nothing in it yet. The embedded database has one, and
    `init` has put a checkpoint there.
    """
    newest = newest_log(connection, mode)
    if newest is None:
        return None
    if note is None:
        return _missing(connection, newest)
    published = checkpoint_of(note)
    log = connection.execute(
        select(logs.c.id, logs.c.epoch).where(
            logs.c.mode == mode, logs.c.origin == published.origin
        )
    ).one_or_none()
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
    root = connection.execute(
        select(checkpoints.c.root).where(
            checkpoints.c.log_id == log.id, checkpoints.c.size == published.size
        )
    ).scalar_one_or_none()
    return None if root is not None and bytes(root) == published.root else lacking


def _missing(connection: Connection, newest: Row[int, int, str, int]) -> str | None:
    if newest.size == 0 or connection.dialect.name != "sqlite":
        return None
    return (
        f"{newest.origin} has {newest.size} entries, and the file of its last published "
        "checkpoint is missing. Without it, the server cannot detect whether the database was "
        "restored or lost its latest entries. Put the file back into the directory of "
        f"COUNTERSIGN_LOG_HEAD_DIR. {_WAYS_OUT}"
    )


def _unsigned(connection: Connection, log_id: int, note: bytes) -> str | None:
    """What is wrong with the signatures, where the keys are known."""
    rows = connection.execute(select(log_keys.c.vkey).where(log_keys.c.log_id == log_id))
    try:
        verifiers = [Verifier.parse(vkey) for vkey in rows.scalars()]
        if verifiers:
            open_note(note, verifiers)
    except EvidenceError as error:
        return str(error)
    return None
