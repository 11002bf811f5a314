"""The room of the log: what its acts work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from countersign.base.config import Settings
from countersign.base.db.database import Database
from countersign.base.db.engine import is_embedded
from countersign.base.values import Clock
from countersign.core.access.room import Access
from countersign.core.log.anchor import AnchorLog, timestamp_check
from countersign.core.log.clock_guard import ClockGuard, database_time
from countersign.core.log.head_files import Heads
from countersign.core.log.head_store import open_heads
from countersign.core.log.journal import Journal
from countersign.core.log.keys import LogKeys
from countersign.core.log.policy import LogPolicy, witnesses_in
from countersign.core.log.record import Recorder
from countersign.core.log.seal import SealLog
from countersign.core.log.sequencer import Sequencer
from countersign.core.vault.vault import VaultRoom


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRoom:
    """Records, the logs that they are entries of, and the anchors of these."""

    access: Access
    vault: VaultRoom
    heads: Heads
    sequencer: Sequencer
    journal: Journal
    recorder: Recorder
    keys: LogKeys
    seal: SealLog
    policy: LogPolicy
    anchor: AnchorLog
    clock_guard: ClockGuard
    seal_within: timedelta
    """The time within which a receipt promises the entry of a record."""

    @property
    def database(self) -> Database:
        """The database of the deployment."""
        return self.access.database

    @property
    def clock(self) -> Clock:
        """The time of the service."""
        return self.access.clock


async def open_log(vault: VaultRoom, settings: Settings) -> LogRoom:
    """The room, with the signing keys read."""
    access = vault.access
    database, clock = access.database, access.clock
    heads = open_heads(settings.log_head_dir)
    sequencer = Sequencer(clock, heads)
    database.on_end(sequencer.note_accepted, sequencer.forget_unaccepted)
    keys = LogKeys(vault, sequencer, settings)
    await keys.load()
    seal = SealLog(database, sequencer, heads, keys, clock)
    lines, witnesses = witnesses_in(settings.witness_policy_file)
    authorities, roots = settings.timestamp_urls, settings.timestamp_roots_file
    anchor = AnchorLog(
        database=database,
        seal=seal,
        witnesses=[w for w in witnesses if w.url and w.verifier.checkable],
        given=authorities,
        check=timestamp_check(roots) if authorities or roots else None,
        clock=clock,
    )

    async def times() -> Mapping[str, float]:
        found = await anchor.times()
        if not is_embedded(database.url):
            found["the database"] = await database.read(database_time)
        return found

    guard = ClockGuard(clock, times)
    sequencer.why_no_time = guard.why_not
    return LogRoom(
        access=access,
        vault=vault,
        heads=heads,
        sequencer=sequencer,
        journal=Journal(sequencer if is_embedded(database.url) else None),
        recorder=Recorder(vault.vault, clock, access.entropy),
        keys=keys,
        seal=seal,
        policy=LogPolicy(database, lines, clock),
        anchor=anchor,
        clock_guard=guard,
        seal_within=timedelta(seconds=settings.seal_within_seconds),
    )
