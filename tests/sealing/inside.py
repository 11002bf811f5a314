"""A server's acts, by its own parts in this process: at another time, or step by step."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from countersign.base.config import load_settings
from countersign.base.values import Mode
from countersign.core.access.key import Principal
from countersign.core.acknowledgments.acknowledge import acknowledge
from countersign.core.acknowledgments.make import NewAcknowledgment
from countersign.core.acknowledgments.model import Origin, Submission
from countersign.operate.bootstrap import Deployment as Opened
from countersign.operate.bootstrap import SystemClock, open_deployment
from tests.support.service import PREFIX, Deployment

NOWHERE = Origin(
    ip=None, ip_source=None, peer_ip=None, forwarded=None, forwarded_truncated=False,
    user_agent=None, user_agent_source=None, user_agent_truncated=False,
)  # fmt: skip


class ShiftedClock(SystemClock):
    """The machine's clock, so many seconds off; they may be changed."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.time_ns = lambda: time.time_ns() + int(self.seconds * 1e9)
        self.monotonic = lambda: time.monotonic() + self.seconds


@asynccontextmanager
async def opened(
    deployment: Deployment, clock: ShiftedClock | None = None, **settings: str
) -> AsyncIterator[Opened]:
    """Open the deployment in this process, with further settings."""
    own = {PREFIX + name: value for name, value in settings.items()}
    loaded = load_settings(deployment.environment | own)
    async with open_deployment(loaded, clock=clock) as found:
        yield found


async def acknowledge_inside(
    deployment: Opened, account: str, notice_id: str, mode: Mode, cbid: str | None = None
) -> tuple[Principal, str]:
    """Acknowledge a notice with one version; returns the principal, and the ack_id."""
    principal, receipt = await receipt_inside(deployment, account, notice_id, mode, cbid)
    return principal, receipt.id


async def receipt_inside(
    deployment: Opened, account: str, notice_id: str, mode: Mode, cbid: str | None = None
) -> tuple[Principal, NewAcknowledgment]:
    """The same; gives all that the caller of *acknowledge* gets."""
    (notice,) = await deployment.notices.registry.versions(notice_id)
    principal = Principal(
        key_id="key_inside", account_id=account, mode=mode, scopes=frozenset(),
        credential="secret_key",
    )  # fmt: skip
    submission = Submission(
        initials_per_line=["JD"] * len(notice.content.bullets), session_id="s", cbid=cbid,
        notice_version=None, origin=NOWHERE,
    )  # fmt: skip
    receipt = await acknowledge(deployment.acknowledgments, principal, notice, submission)
    return principal, receipt
