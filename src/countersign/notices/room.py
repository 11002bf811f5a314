"""The room of notices: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from countersign.clock import Clock, Entropy
from countersign.db.database import Database
from countersign.log.room import LogRoom
from countersign.notices.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Notices:
    """Notice versions, their lifecycle, and which is in force."""

    log: LogRoom
    registry: Registry
    database: Database
    zone: ZoneInfo
    clock: Clock
    entropy: Entropy


def open_notices(log: LogRoom, zone: ZoneInfo) -> Notices:
    """The room over that of the log; the days of notices begin at midnight in this zone."""
    access = log.access
    return Notices(
        log=log,
        registry=Registry(access.database, access.clock, zone),
        database=access.database,
        zone=zone,
        clock=access.clock,
        entropy=access.entropy,
    )
