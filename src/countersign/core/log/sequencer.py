"""Sealing: each waiting record gets the next index of its log, and the new head is signed.

On the embedded database this happens inside the transaction of the act, whose write lock admits one
process at a time; the head is signed there only if the last checkpoint is old enough, and otherwise
by a later transaction. On PostgreSQL a separate transaction does all of it under an advisory lock,
with compare-and-set of the head. The tree's edge is cached between transactions, and read again
whenever the head in the database is not the one of the edge: after a rollback, or when another
process has sealed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import structlog
from sqlalchemy import Connection

from countersign.base.db.statements import BulkInsert, DriverStatement
from countersign.base.db.tables import checkpoints, log_entries, log_tiles
from countersign.base.errors import (
    CountersignError,
    HeadUnavailable,
    SealingSuspended,
    TokenUnavailable,
)
from countersign.base.values import Clock, Mode, from_ms, rfc3339_ms
from countersign.core.events.sql import write_sealed_events
from countersign.core.log.fork_guard import (
    kept_elsewhere,
    lost_tail,
    suspend_all,
    take_place,
    why_not,
)
from countersign.core.log.head_files import Heads
from countersign.core.log.model import SQL
from countersign.core.log.record import NewRecord
from countersign.core.log.tree_sql import digests, tree_at
from countersign_evidence.entry import leaves_of, origin_mode
from countersign_evidence.errors import EvidenceError
from countersign_evidence.note import ED25519, Checkpoint, Signer, sign_checkpoint
from countersign_evidence.tiles import WIDTH, GrowingTree

BATCH_MAX: Final = 10_000
BATCH_MIN: Final = 64
SLICE_SECONDS: Final = 0.02
"""Rough limit for one sealing transaction: acts wait for it."""
_APART_SECONDS: Final = 0.1
"""The same on PostgreSQL: acts do not wait, and a commit may have to reach a standby."""
_CLOCK_TOLERANCE_MS: Final = 1000
CHECKPOINT_MS: Final = 1000
"""Minimum age of the last checkpoint before the next one, unless a caller waits."""
_NUMBER: Final = re.compile(r"[0-9]+")
_DAMAGED: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_ADVISORY_LOCK: Final = {Mode.LIVE: 0x636F756E6C, Mode.TEST: 0x636F756E74}

_HEAD: Final = DriverStatement(SQL["head"])
_EMPTY: Final = DriverStatement(SQL["empty"])
_SWAP_HEAD: Final = DriverStatement(SQL["swap_head"])
_SAVEPOINT: Final = DriverStatement("SAVEPOINT sealing")
_ROLL_BACK: Final = DriverStatement("ROLLBACK TO sealing")
_RELEASE: Final = DriverStatement("RELEASE sealing")
_TRY_LOCK: Final = DriverStatement("SELECT pg_try_advisory_xact_lock(?)")
_LOCK: Final = DriverStatement("SELECT pg_advisory_xact_lock(?)")
_TAKE: Final = {
    engine: DriverStatement(SQL[f"take_on_{engine}"]) for engine in ("sqlite", "postgresql")
}
insert_entries: Final = BulkInsert(log_entries, "log_id", "leaf_index", "record_id", "digest")
_insert_tiles: Final = BulkInsert(log_tiles, "log_id", "level", "tile_index", "hashes", "root")
_insert_checkpoint: Final = BulkInsert(checkpoints, "log_id", "size", "root", "note", "at")

_log: Final = structlog.get_logger("countersign.sealing")


_Waiting: TypeAlias = Callable[[], Sequence[tuple[str, bytes]]] | Sequence[NewRecord]
"""What takes records from the queue, by id and digest; or those of the act."""


class Placed(NamedTuple):
    """Where a log continues: its id, the first new index, and Unix milliseconds."""

    log_id: int
    start: int
    at_ms: int


class _KeysChanged(CountersignError):
    """The log has newer keys than this process has read; the next attempt uses them."""


class _Head(NamedTuple):
    log_id: int
    origin: str
    size: int
    root: bytes
    at_ms: int
    keys_revision: int


@dataclass(slots=True)
class _Edge:
    """The right edge of a log as this process knows it, and who signs."""

    head: _Head
    tree: GrowingTree
    signers: tuple[Signer, ...]
    signed: tuple[int, int] = (0, 0)
    """Size and time of the newest checkpoint, as of this transaction."""
    has_signed: bool = False
    """Whether the keys were seen to sign: until then nothing is placed without a checkpoint."""


class Sequencer:
    """Seals the records of both modes; one object a process."""

    def __init__(self, clock: Clock, heads: Heads) -> None:
        self._clock = clock
        self.batch = BATCH_MIN
        """How many queued records are sealed at a time: as many as fit into a slice."""
        self._heads = heads
        self._edges: dict[Mode, _Edge] = {}
        self._signers: dict[tuple[int, int], tuple[Signer, ...]] = {}
        self._signing: dict[Mode, Sequence[Signer]] = {}
        self._accepted: dict[Mode, tuple[int, int]] = {}
        self._forks: dict[Mode, str] = {}
        """For each mode, why no server may seal; not yet noted in the database."""
        self.suspended: dict[Mode, str] = {}
        """Why the records of a mode are not sealed at the moment."""
        self.quiet = False
        """Whether the caller shows why sealing is suspended, so that it need not be logged."""
        self.why_no_time: Callable[[], str | None] = lambda: None
        """The reason not to sign by this machine's clock; None: signing is allowed."""
        self.unknown_keys: set[Mode] = set()
        """The modes whose log has signing keys that this process has not learned."""

    def learn(self, log_id: int, keys_revision: int, signers: Sequence[Signer]) -> None:
        """Set the signing keys of a log, as of this revision."""
        self._signers = {k: v for k, v in self._signers.items() if k[0] != log_id}
        self._signers[log_id, keys_revision] = tuple(signers)
        # Asked for with each batch of acknowledgments; of a mode's logs the newest comes last.
        self._signing = {
            Mode(origin_mode(own[0].verifier.name)): [s for s in own if s.verifier.kind == ED25519]
            for _, own in sorted(self._signers.items(), key=lambda log: log[0])
            if own
        }
        self._edges = {m: e for m, e in self._edges.items() if e.head.log_id != log_id}

    def signing(self, mode: Mode) -> Sequence[Signer]:
        """The Ed25519 keys that sign now for the newest log of a mode, as this process knows it."""
        return () if self.why_no_time() else self._signing.get(mode, ())

    def sealed(self, mode: Mode) -> tuple[int, int] | None:
        """The log that this process sealed last in a mode, and its size."""
        edge = self._edges.get(mode)
        return None if edge is None else (edge.head.log_id, edge.head.size)

    def note_accepted(self) -> None:
        """After a commit: note the head outside the embedded database, which may lose its end.

        Callers have no answer yet.
        """
        for mode, edge in [*self._edges.items()]:
            place = edge.head.log_id, edge.head.size
            if self._accepted.get(mode) != place:
                self._heads.accept(mode, *place)
                self._accepted[mode] = place

    def forget_unaccepted(self) -> None:
        """After a rollback: the next commit must not note an uncommitted head."""
        for mode, edge in [*self._edges.items()]:
            if self._accepted.get(mode) != (edge.head.log_id, edge.head.size):
                self.check_again(mode)

    def check_again(self, mode: Mode) -> None:
        """Compare with the last published checkpoint before anything more is sealed."""
        self._edges.pop(mode, None)

    def suspend(
        self, mode: Mode, reason: str, event: str = "sealing_suspended", **more: str
    ) -> None:
        """Note why nothing is sealed; logged once, even if the numbers in the reason change."""
        self._edges.pop(mode, None)
        known = _NUMBER.sub("", self.suspended.get(mode, ""))
        if not self.quiet and known != _NUMBER.sub("", reason):
            _log.error(event, mode=mode.value, reason=reason, **more)
        self.suspended[mode] = reason

    def wait_for_turn(self, connection: Connection, mode: Mode) -> None:
        """Let no other process seal in this mode until the transaction ends."""
        # On the embedded database the transaction itself does that.
        if connection.dialect.name == "postgresql":
            _LOCK(connection, _ADVISORY_LOCK[mode])

    def place_inline(
        self, connection: Connection, mode: Mode, waiting: _Waiting, *, sign: bool = False
    ) -> Placed | None:
        """Give these the next places in the log of their mode; None: they could not be sealed.

        An act, which a failure to seal must not fail, writes the entries and their events itself.
        """
        placed = None
        self._forks.pop(mode, None)
        _SAVEPOINT(connection)
        try:
            placed = self._append(connection, mode, waiting, sign=sign)
        except _KeysChanged:
            if mode not in self.unknown_keys:
                _log.info("log_keys_changed", mode=mode.value)
            self.unknown_keys.add(mode)
        except (HeadUnavailable, SealingSuspended, TokenUnavailable) as reason:
            self.suspend(mode, reason.message)
        except Exception as error:  # noqa: BLE001 - whatever it is, the act goes on
            kind = type(error).__name__
            self.suspend(mode, _unexpected(error), "sealing_failed", kind=kind)
        if placed is None:
            _ROLL_BACK(connection)
        else:
            self.suspended.pop(mode, None)
        _RELEASE(connection)
        return placed

    def seal_queue(self, connection: Connection, mode: Mode, *, sign: bool = True) -> int:
        """Seal queued records, at most `batch`; returns the number of new entries.

        With `sign` the head has a checkpoint afterwards, even if the last one is young.
        No-op on PostgreSQL while another process seals.
        """
        postgres = connection.dialect.name == "postgresql"
        if postgres and not _TRY_LOCK(connection, _ADVISORY_LOCK[mode]).fetchone()[0]:
            return 0
        rows, began = list[tuple[str, bytes]](), self._clock.monotonic()

        def take() -> Sequence[tuple[str, bytes]]:
            # Exactly the records that this statement took from the queue are sealed.
            taken = _TAKE[connection.dialect.name](connection, mode.value, self.batch)
            rows.extend(sorted((row[0], bytes(row[1])) for row in taken))
            return rows

        if self.place_inline(connection, mode, take, sign=sign) is None:
            reason = self._forks.pop(mode, None)
            if postgres and reason is not None:
                suspend_all(connection, mode, reason)
            return 0
        if len(rows) == self.batch:
            slice_seconds = _APART_SECONDS if postgres else SLICE_SECONDS
            self.batch = _fitting(len(rows), self._clock.monotonic() - began, slice_seconds)
        return len(rows)

    def sign_last(self, connection: Connection, mode: Mode) -> None:
        """Make a checkpoint of all that the log of a mode holds, since it ends with that.

        No-op if its keys are missing. It is a prefix of whatever was published, so it is no fork.
        """
        row = _HEAD(connection, mode.value).fetchone()
        if row is None or row[6] == row[2]:
            return
        head = _Head(row[0], row[1], row[2], bytes(row[3]), row[4], row[5])
        signers = self._signers.get((head.log_id, head.keys_revision))
        if signers:
            with suppress(SealingSuspended, TokenUnavailable):
                _tree(connection, head)
                now_ms = self._clock.time_ns() // 1_000_000
                self._sign(connection, head, signers, max(now_ms, head.at_ms, row[7]))

    def _sign(
        self, connection: Connection, head: _Head, signers: Sequence[Signer], at_ms: int
    ) -> None:
        checkpoint = Checkpoint(head.origin, head.size, head.root)
        note = sign_checkpoint(checkpoint, signers, at_ms // 1000)
        _insert_checkpoint(connection, [(head.log_id, head.size, head.root, note, at_ms)])

    def _append(self, connection: Connection, mode: Mode, take: _Waiting, *, sign: bool) -> Placed:
        reason = self.why_no_time()
        if reason is not None:
            raise SealingSuspended(reason)
        edge = self._edge(connection, mode)
        head, tree = edge.head, edge.tree
        now_ms = self._clock.time_ns() // 1_000_000
        if now_ms < head.at_ms - _CLOCK_TOLERANCE_MS:
            raise SealingSuspended(
                "The clock is behind the last checkpoint, which was made at "
                f"{rfc3339_ms(from_ms(head.at_ms))} by this service's clock. If the clock is "
                "slow now, correct it: sealing then continues automatically. If the clock was "
                "fast when the checkpoint was made, sealing continues at that time, or "
                "immediately in a new epoch: `countersign log recover --new-epoch`."
            )
        queued = take() if callable(take) else ()
        new = [d for _, d in queued] if callable(take) else [one.digest for one in take]
        signed_size, signed_at = edge.signed
        placed = Placed(head.log_id, head.size, max(now_ms, head.at_ms, signed_at))
        signs = sign or not edge.has_signed or placed.at_ms - signed_at >= CHECKPOINT_MS
        if not new and not (signs and signed_size < head.size):
            return placed
        # From here on the edge is ahead of the database, until both agree again at the end.
        self._edges.pop(mode, None)
        if not edge.has_signed:
            take_place(connection, self._heads)
        tree.extend(leaves_of(head.origin, new))
        size, root, (log_id, _, at_ms) = tree.size, tree.root(), placed
        swapped = _SWAP_HEAD(connection, size, root, at_ms, log_id, head.size, head.root)
        if swapped.rowcount != 1:
            raise SealingSuspended("Another process sealed at the same time.")
        if queued:
            entries = [(log_id, index, *one) for index, one in enumerate(queued, head.size)]
            insert_entries(connection, entries)
            write_sealed_events(connection, log_id, head.size, size, from_ms(at_ms))
        tiles = tree.take_tiles()
        if tiles:
            _insert_tiles(connection, [(log_id, t.level, t.index, t.hashes, t.root) for t in tiles])
        edge.head = head._replace(size=size, root=root, at_ms=at_ms)
        if signs:
            self._sign(connection, edge.head, edge.signers, at_ms)
            edge.has_signed = True
        self._edges[mode] = edge
        return placed

    def _edge(self, connection: Connection, mode: Mode) -> _Edge:
        """The edge for the head in the database, if the log may continue from there."""
        row = _HEAD(connection, mode.value).fetchone()
        if row is None:
            raise SealingSuspended(
                f"The {mode.value} log does not exist yet: run `countersign init`."
            )
        if row[8] is not None:
            raise SealingSuspended(bytes(row[8]).decode())
        head = _Head(row[0], row[1], row[2], bytes(row[3]), row[4], row[5])
        known = self._edges.pop(mode, None)
        if known is not None and (known.head == head or _has_grown(connection, known, head)):
            known.signed = row[6], row[7]
            self._edges[mode] = known
            return known
        signers = self._signers.get((head.log_id, head.keys_revision))
        if signers is None:
            raise _KeysChanged
        if not signers:
            raise SealingSuspended(
                f"No key can sign {head.origin}: its keys are missing from the database, have "
                "retired, or cannot be decrypted. `countersign log check` shows which. Restore "
                "them, or begin a new epoch: `countersign log recover`."
            )
        self._refuse_fork(connection, mode, head)
        edge = _Edge(head, _tree(connection, head), signers, (row[6], row[7]))
        self._edges[mode] = edge
        return edge

    def _refuse_fork(self, connection: Connection, mode: Mode, head: _Head) -> None:
        """Compare the database with the last published checkpoint, which is stored elsewhere."""
        note, place = self._heads.kept(mode)
        elsewhere = kept_elsewhere(connection, place)
        if note is None and head.size == 0 and elsewhere is None:
            # Kept before there is an entry: from then on, it may not be missing.
            note = bytes(_EMPTY(connection, head.log_id).fetchone()[0])
            self._heads.advance(mode, note, None)
        reason = why_not(connection, mode, note) or lost_tail(
            connection, mode, self._heads.accepted(mode)
        )
        if reason is not None and note is not None:
            # All have to stop. Heads kept elsewhere, or missing, concern this server alone.
            self._forks[mode] = reason
        elif elsewhere is not None:
            reason = elsewhere
        if reason is not None:
            raise SealingSuspended(reason)


def _has_grown(connection: Connection, known: _Edge, head: _Head) -> bool:
    """Move the edge past another process's entries; False if it does not match this head.

    Only new entries are read, since workers of one server seal in turn.
    """
    same_log = known.head.log_id == head.log_id and known.head.keys_revision == head.keys_revision
    if not same_log or not known.head.size < head.size <= known.head.size + WIDTH:
        return False
    new = digests(connection, head.log_id, known.head.size, head.size)
    known.tree.extend(leaves_of(head.origin, new))
    known.tree.take_tiles()  # the other has stored them
    if (known.tree.size, known.tree.root()) != (head.size, head.root):
        return False
    known.head = head
    return True


def _unexpected(error: Exception) -> str:
    name = getattr(getattr(error, "orig", None), "sqlite_errorname", None) or ""
    if name.startswith(_DAMAGED):
        return (
            f"The database is damaged ({name}): `countersign log check` shows how far it can be "
            "read. Stop the servers, and restore a backup into another directory."
        )
    return f"Unexpected error {type(error).__name__}; sealing will be tried again."


def _tree(connection: Connection, head: _Head) -> GrowingTree:
    """The tree up to this head, by the entries and tiles in the database."""
    with suppress(EvidenceError):  # entries or tiles are missing
        tree = tree_at(connection, head.log_id, head.size)
        if tree.root() == head.root:
            return tree
    raise SealingSuspended(
        f"The entries of {head.origin} do not match the root of its head: the database was "
        "changed or is damaged. `countersign log check` shows where. Recover the database, or "
        "begin a new epoch: `countersign log recover`."
    )


def _fitting(sealed: int, seconds: float, slice_seconds: float) -> int:
    """How many records fit into a slice, if `sealed` took `seconds`; at most twice as many."""
    fit = int(sealed * slice_seconds / max(seconds, slice_seconds / 2))
    return min(max(fit, BATCH_MIN), BATCH_MAX)
