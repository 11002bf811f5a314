"""How the deployment stands, over the API: logs, what is owed, findings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final

from msgspec import Meta, Struct
from sqlalchemy import Connection, func, select

from countersign import __version__
from countersign.base.db.engine import is_embedded
from countersign.base.db.tables import checkout_sessions
from countersign.base.errors import StorageUnavailable
from countersign.base.http.schemas import Timestamp, view
from countersign.base.values import Mode, from_ns
from countersign.core.access.key import Scope
from countersign.core.access.reach import DeploymentReach
from countersign.core.gate.act import Acts
from countersign.operate.bootstrap import Deployment
from countersign.operate.doctor.examine import CHECKS, FoundByDoctor, examine, worst
from countersign.operate.doctor.promises import PROMISES, owed
from countersign.operate.doctor.sight import Severity, Sight, UnseenError

_IN_PROCESS: Final = (
    *("disk", "key_files", "limits", "database", "schema", "rights", "durability", "keys"),
    *("logs", "log_keys", "webhooks", "notices", "promises"),
)
"""The checks of `countersign doctor` that need no network, and are quick."""
_SECONDS: Final = 5.0
_NOTHING: Final[Mapping[str, datetime | None]] = {"": None}


class LogStanding(Struct, frozen=True, kw_only=True):
    """The newest log of a mode."""

    livemode: bool
    log: Annotated[str, Meta(examples=["evidence.example.com/v1/log/live/1"])]
    """Its origin."""
    size: Annotated[int, Meta(examples=[1024])]
    """How many entries it has."""
    checkpoint_at: Timestamp
    """When its newest checkpoint was made."""
    suspended: str | None
    """Why nothing is sealed; null: sealing goes on. On the machine: `countersign log recover`."""


class PromiseStanding(Struct, frozen=True, kw_only=True):
    """What is owed to somebody, since when, and how long it may be."""

    promise: Annotated[str, Meta(examples=["delivered"])]
    of: Annotated[str, Meta(examples=["live"])]
    """Tells several of one promise apart, such as the modes of logs."""
    owed_since: Timestamp | None
    """Of the oldest; null: nothing is owed."""
    severity: Annotated[Severity, Meta(examples=[Severity.FINE])]
    ticket_after_seconds: Annotated[int, Meta(examples=[3600])]
    """From then on it is work for today (`warning`)."""
    page_after_seconds: Annotated[int | None, Meta(examples=[259200])]
    """From then on for now (`broken`); null: never."""


class DeploymentStanding(Struct, frozen=True, kw_only=True):
    """How the deployment stands."""

    at: Timestamp
    """When this was looked up."""
    version: Annotated[str, Meta(examples=[__version__])]
    public_url: Annotated[str, Meta(examples=["https://evidence.example.com"])]
    database: Annotated[str, Meta(examples=["sqlite"])]
    logs: list[LogStanding]
    promises: list[PromiseStanding]
    open_checkout_sessions: Annotated[int, Meta(examples=[3])]
    """Of live keys."""


class DoctorFindings(Struct, frozen=True, kw_only=True):
    """What `countersign doctor` says of what can be judged inside a server."""

    severity: Annotated[Severity, Meta(examples=[Severity.WARNING])]
    findings: list[FoundByDoctor]


STANDING: Final = Acts(
    "Staff: deployment",
    Deployment,
    scope=Scope.DEPLOYMENT_READ,
    reach=DeploymentReach,
    console=True,
)


@STANDING.act("GET /v1/deployment", "See what is owed, and how sealing stands")
async def get_deployment(room: Deployment) -> DeploymentStanding:
    """How sealing stands, and what is owed since when: entries, times, backups and more."""
    states = await room.log.seal.states()
    return DeploymentStanding(
        at=from_ns(room.clock.time_ns()).replace(microsecond=0),
        version=__version__,
        public_url=room.settings.public_url,
        database="sqlite" if is_embedded(room.database.url) else "postgresql",
        logs=[
            view(LogStanding, state, state.log, log=state.log.origin, checkpoint_at=state.log.at)
            for state in states
        ],
        promises=await asyncio.to_thread(_promises),
        open_checkout_sessions=await room.database.scan(_open_sessions),
    )


@STANDING.act("GET /v1/deployment/findings", "See what is wrong")
async def get_findings() -> DoctorFindings:
    """What is wrong, as far as a server can judge it: `countersign doctor` looks at more."""
    checks = {name: CHECKS[name] for name in _IN_PROCESS}
    lines = await asyncio.to_thread(lambda: examine(Sight(os.environ, _SECONDS), checks))
    return DoctorFindings(severity=worst(lines), findings=lines)


def _promises() -> list[PromiseStanding]:
    look = Sight(os.environ, _SECONDS)
    try:
        every = owed(look)
    except UnseenError:
        raise StorageUnavailable from None
    return [
        PromiseStanding(
            promise=name,
            of=of,
            owed_since=None if at is None else at.replace(microsecond=0),
            severity=PROMISES[name].severity(look.now - (at or look.now)),
            ticket_after_seconds=PROMISES[name].ticket,
            page_after_seconds=PROMISES[name].page,
        )
        for name, oldest in every.items()
        for of, at in ({one.of: one.since for one in oldest} or _NOTHING).items()
    ]


def _open_sessions(connection: Connection) -> int:
    c = checkout_sessions.c
    open_ = c.mode == Mode.LIVE, c.expiry_due_at.is_not(None)
    return connection.execute(select(func.count()).where(*open_)).scalar_one()


ROUTES: Final = STANDING.routes
