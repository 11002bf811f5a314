"""The room of operations: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.clock import Clock
from countersign.config import Settings
from countersign.db.database import Database
from countersign.log.head_files import HeadFiles
from countersign.notices.room import Notices
from countersign.operations.readiness import WriteCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """Keeping a deployment in order."""

    settings: Settings
    clock: Clock
    database: Database
    notices: Notices
    check_writing: WriteCheck


def open_operations(settings: Settings, notices: Notices, heads: HeadFiles) -> Operations:
    """The room above open notices."""
    access = notices.log.access
    return Operations(
        settings=settings,
        clock=access.clock,
        database=access.database,
        notices=notices,
        check_writing=WriteCheck(access.database, heads, access.clock),
    )
