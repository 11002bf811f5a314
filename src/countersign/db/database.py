"""The database as the acts see it: `write`, `read` and `scan`, each behind a batcher."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeAlias, TypeVar

import structlog
from sqlalchemy import URL, Connection, Engine, RootTransaction
from sqlalchemy.exc import DBAPIError, IntegrityError

from countersign.db.batching import (
    BatchAct,
    Batcher,
    CommitBatcher,
    LoopBatcher,
    Outcomes,
    QueuedCall,
    ThreadBatcher,
)
from countersign.db.engine import (
    BUSY_TIMEOUT_SECONDS,
    Purpose,
    denial,
    is_deadlock,
    is_embedded,
    open_engine,
    translate,
    without_busy_timeout,
)
from countersign.errors import (
    CountersignError,
    DatabasePermissionDenied,
    IdempotencyInProgress,
    InternalError,
    Overloaded,
    StorageUnavailable,
)

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

_Plain: TypeAlias = tuple[Callable[..., Any], Any, Any]

_EMPTYING_ATTEMPTS: Final = 10
_EMPTYING_PAUSE_SECONDS: Final = 0.2

_log: Final = structlog.get_logger("countersign.storage")


class Database:
    """One database behind three batchers; which kind each is depends on the engine."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self._writing = open_engine(url, Purpose.WRITE)
        self._reading = open_engine(url, Purpose.READ)
        self._held: tuple[_Embedded, _Asking] | tuple[()] = ()
        self._write: Batcher
        self._read: Batcher
        if is_embedded(url):
            transactor, asking = _Embedded(self._writing), _Asking(self._reading)
            self._held = (transactor, asking)
            self._write = CommitBatcher("countersign-commit", transactor, BUSY_TIMEOUT_SECONDS)
            self._read = LoopBatcher(asking)
        else:
            self._write = ThreadBatcher("countersign-write", self._change)
            self._read = ThreadBatcher("countersign-read", self._ask)
        self._scan = ThreadBatcher("countersign-scan", self._ask)
        self._batchers = {"write": self._write, "read": self._read, "scan": self._scan}
        self._sequence = self._write
        if not is_embedded(url):
            self._sequence = ThreadBatcher("countersign-seal", self._change)
            self._batchers["seal"] = self._sequence

    async def __aenter__(self) -> Self:
        for batcher in self._batchers.values():
            batcher.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for batcher in self._batchers.values():
            await batcher.close()
        # With the last connection the embedded database puts its log into the database file.
        for holder in self._held:
            holder.close()
        self._writing.dispose()
        self._reading.dispose()

    async def write(
        self,
        act: Callable[Concatenate[Connection, P], R | CountersignError],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Run `act(connection, …)` in a transaction shared with others; durable on return.

        A CountersignError that the act returns refuses it, and keeps what it has written; one that
        it raises also rolls that back.
        """
        result: R = await self._write.call(_run_each, (act, args, kwargs))
        return result

    async def write_batched(self, act: BatchAct[T, R], item: T) -> R:
        """The same for an act on many items at once; see `batching.BatchAct`."""
        return await self._write.call(act, item)

    async def read(
        self,
        act: Callable[Concatenate[Connection, P], R | CountersignError],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Look something up by its key, in the turn of other look-ups."""
        result: R = await self._read.call(_ask_each, (act, args, kwargs))
        return result

    async def read_batched(self, act: BatchAct[T, R], item: T) -> R:
        """Look something up by its key, in a query shared with others."""
        return await self._read.call(act, item)

    async def scan(
        self,
        act: Callable[Concatenate[Connection, P], R | CountersignError],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Ask for something that may take long, such as a list."""
        result: R = await self._scan.call(_ask_each, (act, args, kwargs))
        return result

    async def scan_batched(self, act: BatchAct[T, R], item: T) -> R:
        """Ask what may take long, once for all who ask the same."""
        return await self._scan.call(act, item)

    async def sequence(
        self,
        act: Callable[Concatenate[Connection, P], R | CountersignError],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Seal: on the embedded database a write like others, else a transaction apart."""
        result: R = await self._sequence.call(_run_each, (act, args, kwargs))
        return result

    async def empty_log(self) -> bool:
        """Empty the write-ahead log of the embedded database; False if that was not possible.

        Deleted rows are overwritten in the database file itself (secure_delete); copies of their
        pages can stand in the log until it is emptied, which another process that reads puts off.
        """
        return not is_embedded(self.url) or await asyncio.to_thread(self._empty_log)

    def _empty_log(self) -> bool:
        engine = open_engine(self.url, Purpose.WRITE)
        with closing(engine.raw_connection()) as connection:
            cursor = connection.cursor()
            # Nobody can write while it waits for readers: often and briefly, not once and long.
            cursor.execute("PRAGMA busy_timeout=100")
            busy = True
            for left in reversed(range(_EMPTYING_ATTEMPTS)):
                busy = bool(cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
                if not busy or not left:
                    break
                time.sleep(_EMPTYING_PAUSE_SECONDS)
        engine.dispose()
        return not busy

    def batches(self) -> dict[str, tuple[int, int, int]]:
        """By name: batches done, calls in them, and calls waiting now."""
        return {name: (b.batches, b.calls, b.pending) for name, b in self._batchers.items()}

    def _ask(self, calls: Sequence[QueuedCall]) -> Outcomes:
        try:
            with self._reading.connect() as connection:
                return _run(connection, calls)
        except Exception as error:  # noqa: BLE001 - every caller gets its answer
            refusal = _refusal(error)
            if isinstance(refusal, StorageUnavailable):
                self._reading.dispose()
            return [refusal] * len(calls)

    def _change(self, calls: Sequence[QueuedCall]) -> Outcomes:
        try:
            return _transact(self._writing, calls)
        except Exception as error:  # noqa: BLE001 - every caller gets its answer
            if isinstance(translate(error), StorageUnavailable):
                # Its connections may all lead to a server that is gone, or is a standby now.
                self._writing.dispose()
            return _apart(self._writing, calls, error)


class _Asking:
    """Look-ups in the embedded database, on a connection of their own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None

    def __call__(self, calls: Sequence[QueuedCall]) -> Outcomes:
        """The outcomes; each query sees what was committed before it."""
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            return _run(self._connection, calls)
        except Exception as error:  # noqa: BLE001 - every caller gets its answer
            _discard(self._connection)
            self._connection = None
            return [_refusal(error)] * len(calls)

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()


class _Embedded:
    """Transactions on the embedded database. See `batching.Transactor`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None
        self._transaction: RootTransaction | None = None
        self._failure: Exception | None = None

    def prepare(self, calls: Sequence[QueuedCall]) -> Outcomes | None:
        """Begin, and do the calls; `commit` deals with a failure."""
        self._failure = None
        try:
            if self._connection is None:
                self._connection = without_busy_timeout(self._engine.connect())
            self._transaction = self._connection.begin()
            return _run(self._connection, calls)
        except Exception as error:  # noqa: BLE001 - every caller gets its answer
            is_locked = not isinstance(error, CountersignError) and isinstance(
                translate(error), Overloaded
            )
            if self._connection is not None and is_locked:
                self._connection.rollback()
                return None
            self._undo()
            self._failure = error
            return []

    def commit(self, calls: Sequence[QueuedCall], outcomes: Outcomes) -> Outcomes:
        """Commit; after a failure, give each call a transaction of its own."""
        if self._failure is None and self._transaction is not None:
            try:
                self._transaction.commit()
                return outcomes
            except Exception as error:  # noqa: BLE001 - every caller gets its answer
                self._undo()
                self._failure = error
        assert self._failure is not None  # noqa: S101 - prepare() began, or failed
        return _apart(self._engine, calls, self._failure)

    def give_up(self, calls: Sequence[QueuedCall]) -> Outcomes:
        """Another process holds the write lock and does not let go."""
        return [Overloaded(retry_after=int(BUSY_TIMEOUT_SECONDS))] * len(calls)

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()

    def _undo(self) -> None:
        """Roll back by leaving the connection: whatever state it is in, the next one is clean."""
        connection, self._connection, self._transaction = self._connection, None, None
        _discard(connection)


def _run_each(connection: Connection, calls: Sequence[_Plain]) -> list[Any]:
    return [act(connection, *args, **kwargs) for act, args, kwargs in calls]


def _ask_each(connection: Connection, calls: Sequence[_Plain]) -> list[Any]:
    """What has only read leaves nothing to undo: its error is its own."""
    outcomes: list[Any] = []
    for act, args, kwargs in calls:
        try:
            outcomes.append(act(connection, *args, **kwargs))
        except CountersignError as error:
            outcomes.append(error)
    return outcomes


def _discard(connection: Connection | None) -> None:
    if connection is not None:
        connection.invalidate()
        connection.close()


def _apart(engine: Engine, calls: Sequence[QueuedCall], error: Exception) -> Outcomes:
    """What to answer after a batch failed and was rolled back.

    A fault of the database is everybody's. Otherwise one call spoils the batch, or another server
    has just written the same row or locked the same rows in another order: each gets a transaction
    of its own, which sees that row and locks little.
    """
    if not (isinstance(error, IntegrityError | CountersignError) or is_deadlock(error)):
        refusal = _refusal(error)
        if len(calls) == 1 or not isinstance(refusal, InternalError | DatabasePermissionDenied):
            return [refusal] * len(calls)
    return [_alone(engine, call) for call in calls]


def _alone(engine: Engine, call: QueuedCall) -> object:
    try:
        return _transact(engine, [call])[0]
    except Exception as error:  # noqa: BLE001 - the caller gets its answer
        return _refusal(error)


def _transact(engine: Engine, calls: Sequence[QueuedCall]) -> Outcomes:
    with engine.connect() as connection, connection.begin():
        return _run(connection, calls)


def _run(connection: Connection, calls: Sequence[QueuedCall]) -> Outcomes:
    """Do the calls of each act together, and put the outcomes in the order of the calls."""
    places: dict[BatchAct[Any, Any], list[int]] = {}
    for place, (act, *_) in enumerate(calls):
        places.setdefault(act, []).append(place)
    if len(places) == 1:
        only = calls[0][0](connection, [item for _, item, _ in calls])
        if len(only) != len(calls):
            msg = "an act gives one outcome for each item"
            raise ValueError(msg)
        return only
    outcomes: list[object] = [None] * len(calls)
    for act, own in places.items():
        for place, outcome in zip(own, act(connection, [calls[p][1] for p in own]), strict=True):
            outcomes[place] = outcome
    return outcomes


def _refusal(error: Exception) -> CountersignError:
    refusal = translate(error)
    # A conflict of two requests is the answer to one of them, and no trouble of the database.
    if refusal is not error and not isinstance(refusal, IdempotencyInProgress):
        # The driver's message can hold values of rows: only its kind is logged.
        origin = getattr(error, "orig", None)
        _log.error(
            "database_error",
            kind=type(error).__name__,
            cause=type(origin).__name__ if origin is not None else None,
            state=getattr(origin, "sqlstate", None) or getattr(origin, "sqlite_errorname", None),
            denied=denial(error) if isinstance(error, DBAPIError) else None,
            answered=refusal.code,
        )
    return refusal
