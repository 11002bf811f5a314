"""The database as the stores see it: `read` and `write`, each behind a batcher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import structlog
from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import IntegrityError

from countersign.errors import CountersignError, InternalError
from countersign.storage.batching import Act, Batcher
from countersign.storage.engine import Purpose, open_engine, translate

T = TypeVar("T")
R = TypeVar("R")

_log = structlog.get_logger("countersign.storage")
_Calls = Sequence[tuple[Act[Any, Any], Any]]


class Database:
    """One database, with a thread for writing and one for reading."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self._engines = {purpose: open_engine(url, purpose) for purpose in Purpose}
        self._writer = Batcher("countersign-writer", self._writes)
        self._reader = Batcher("countersign-reader", self._reads)

    async def __aenter__(self) -> Database:
        self._writer.start()
        self._reader.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._writer.close()
        await self._reader.close()
        for engine in self._engines.values():
            engine.dispose()

    async def write(self, act: Act[T, R], item: T) -> R:
        """Do this in a transaction shared with others; it is durable when this returns."""
        return await self._writer.call(act, item)

    async def read(self, act: Act[T, R], item: T) -> R:
        """Ask this in a query shared with others."""
        return await self._reader.call(act, item)

    def batches(self) -> dict[str, tuple[int, int, int]]:
        """By name: batches run, calls in them, and calls waiting now."""
        return {
            name: (batcher.batches, batcher.calls, batcher.pending)
            for name, batcher in (("write", self._writer), ("read", self._reader))
        }

    def _reads(self, calls: _Calls) -> Sequence[object]:
        try:
            with self._engines[Purpose.READ].connect() as connection:
                return _run(connection, calls)
        except Exception as error:  # noqa: BLE001 - every caller gets its answer
            return [_refusal(error)] * len(calls)

    def _writes(self, calls: _Calls) -> Sequence[object]:
        engine = self._engines[Purpose.WRITE]
        try:
            return _transact(engine, calls)
        except IntegrityError:
            # One of them spoils the batch, which was rolled back, or another server has just
            # written the same row: each gets a transaction of its own, which sees that row.
            return [_alone(engine, call) for call in calls]
        except Exception as error:  # noqa: BLE001 - every caller gets its answer
            refusal = _refusal(error)
            if len(calls) == 1 or not isinstance(refusal, InternalError):
                return [refusal] * len(calls)
        return [_alone(engine, call) for call in calls]


def _alone(engine: Engine, call: tuple[Act[Any, Any], Any]) -> object:
    try:
        return _transact(engine, [call])[0]
    except Exception as error:  # noqa: BLE001 - the caller gets its answer
        return _refusal(error)


def _transact(engine: Engine, calls: _Calls) -> Sequence[object]:
    with engine.connect() as connection, connection.begin():
        return _run(connection, calls)


def _run(connection: Connection, calls: _Calls) -> Sequence[object]:
    """Do the calls of each act together, and put the outcomes in the order of the calls."""
    places: dict[Act[Any, Any], list[int]] = {}
    for place, (act, _) in enumerate(calls):
        places.setdefault(act, []).append(place)
    if len(places) == 1:
        return calls[0][0](connection, [item for _, item in calls])
    outcomes: list[object] = [None] * len(calls)
    for act, own in places.items():
        for place, outcome in zip(own, act(connection, [calls[p][1] for p in own]), strict=True):
            outcomes[place] = outcome
    return outcomes


def _refusal(error: Exception) -> CountersignError:
    refusal = translate(error)
    if refusal is not error:
        # The driver's message can hold values of rows: only its kind is logged.
        origin = getattr(error, "orig", None)
        _log.error(
            "database_error",
            kind=type(error).__name__,
            cause=type(origin).__name__ if origin is not None else None,
            state=getattr(origin, "sqlstate", None) or getattr(origin, "sqlite_errorname", None),
            constraint=isinstance(error, IntegrityError),
            answered=refusal.code,
        )
    return refusal
