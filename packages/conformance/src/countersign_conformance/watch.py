"""Accounts with a conformance run, and observations of them by any server process.

Servers know the runs from a snapshot, at most 250 ms old. For an account without a run that is a
dictionary lookup; requests of live mode do not come here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import structlog

from countersign.base.errors import CountersignError
from countersign.base.snapshot import Snapshot
from countersign.base.values import Clock, Entropy, from_ns, timed_id
from countersign.core.access.secrets import DeploymentSecret
from countersign_conformance.model import (
    OBSERVATION,
    OBSERVATIONS_MAX,
    Observation,
    Provocation,
    Run,
)
from countersign_conformance.store import RunStore

_log: Final = structlog.get_logger("countersign.conformance")


class WatchVendors:
    """The runs as one process sees them."""

    def __init__(
        self, store: RunStore, secret: DeploymentSecret, clock: Clock, entropy: Entropy
    ) -> None:
        self._store = store
        self._secret = secret
        self._clock = clock
        self._entropy = entropy
        self._noted: Counter[str] = Counter()
        self._known: Mapping[str, Run] = {}
        self._runs = Snapshot(self._read, clock)

    def now(self) -> datetime:
        """The real time: test clocks do not apply to runs."""
        return from_ns(self._clock.time_ns())

    async def run_of(self, account_id: str) -> Run | None:
        """The active run of this account."""
        run = (await self._runs.get()).get(account_id)
        return run if run is not None and self.now() < run.active_until else None

    async def take(self, run: Run, provocation: Provocation) -> bool:
        """Whether this is the one request to provoke."""
        return await self._store.take(run.id, provocation, self.now())

    async def note(self, run: Run, observation: Observation) -> None:
        """Store observations. A failure is only logged: the vendor gets its response."""
        if self._noted[run.id] >= OBSERVATIONS_MAX:
            return
        self._noted[run.id] += 1
        try:
            id_ = timed_id(OBSERVATION, self._clock.time_ns(), self._entropy(8))
            await self._store.observe(run.id, id_, observation)
        except CountersignError as error:
            _log.warning("observation_lost", code=error.code)

    def mark(self, account_id: str, field: str, value: str) -> str:
        """A keyed digest, in hex, that identifies a value without storing it."""
        return self._secret.blind_index(account_id, "conformance", value, f" {field}").hex()

    async def _read(self) -> Mapping[str, Run]:
        """The active runs by account; if they cannot be read, those known before."""
        try:
            runs = await self._store.active(self.now())
        except CountersignError as error:
            # The requests themselves report database errors.
            _log.warning("runs_not_read", code=error.code)
            return self._known
        self._known = {run.account_id: run for run in runs}
        if len(self._noted) > len(runs):
            ids = {run.id for run in runs}
            self._noted = Counter({id_: n for id_, n in self._noted.items() if id_ in ids})
        return self._known
