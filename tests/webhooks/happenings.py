"""Lets something happen while a server runs, as an act of another process would."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from countersign.base.config import load_settings
from countersign.base.values import Mode
from countersign.core.events.model import EventType, NewEvent
from countersign.core.events.sql import write_events
from countersign.operate.bootstrap import open_deployment
from tests.storage import items
from tests.support.service import Deployment


def happen(
    deployment: Deployment,
    account: str,
    number: int = 1,
    type_: EventType = EventType.BUYER_VERIFIED,
) -> list[str]:
    """Write this many events of an account's test mode; gives the ids of their objects."""
    now = datetime.now(tz=UTC)
    new = [
        NewEvent(account, Mode.TEST, type_, items.identifier("cbid_test"), now)
        for _ in range(number)
    ]

    async def work() -> None:
        async with open_deployment(load_settings(deployment.environment)) as opened:
            await opened.database.write(write_events, new)

    asyncio.run(work())
    return [event.object_id for event in new]
