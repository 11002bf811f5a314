"""Metrics of links: started checks, passed buyers, and waiting ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from countersign.base.errors import ProviderUnavailable
from countersign.base.values import Mode
from countersign.core.checkout.model import Collected
from countersign.hosted.pages import identity
from countersign.hosted.remembered import inform, remember_cookie, use_cookie
from countersign_simulators.base import Reply
from tests.checkout.checks import ZIP, Checks, checks_at
from tests.verification.conftest import stage
from tests.verification.inside import Stage
from tests.verification.test_watching import metrics

__all__ = ["stage"]


@pytest.fixture
def checks(stage: Stage) -> Iterator[Checks]:
    with ExitStack() as stack:
        yield checks_at(stage, stack)


def _pass(checks: Checks, cbid: str) -> None:
    """Let the buyer pass by a cookie, in a new session."""

    async def work() -> None:
        room = checks.room
        value = await remember_cookie(room.remembered, Mode.LIVE, cbid)
        known = await use_cookie(room.remembered, Mode.LIVE, value)
        assert known is not None
        informing = await inform(room.remembered, checks.who.account_id, known, ZIP)
        await identity.remembered(room, session, informing, known.kind)

    session = checks.create(Collected.IDENTITY)
    checks.do(work())


def test_started_checks_are_counted_by_provider_and_outcome(checks: Checks) -> None:
    """One for each requested check, whether the provider made it or not."""
    session = checks.begun()
    down = Reply(status=500, body=b"")
    with checks.providers[1].mood(lambda *_: down), pytest.raises(ProviderUnavailable):
        checks.begin(session, "persona")
    seen = metrics(checks.stage)
    name = "countersign_identity_checks_started_total"
    assert f'{name}{{outcome="started",provider="stripe"}} 1.0' in seen
    assert f'{name}{{outcome="provider_unavailable",provider="persona"}} 1.0' in seen


def test_remembered_buyers_are_counted_by_passkey_or_cookie(checks: Checks) -> None:
    """An unverified person is not counted: no one passed."""
    session = checks.begun()
    checks.submit(session, "verified")
    cbid = checks.follow(session).cbid
    assert cbid is not None
    _pass(checks, cbid)
    _pass(checks, cbid)
    counted = 'countersign_remembered_passes_total{kind="cookie"} 2.0'
    assert counted in metrics(checks.stage)
    checks.stage.revoke(cbid)
    _pass(checks, cbid)
    assert counted in metrics(checks.stage)


def test_open_streams_are_in_the_metrics(checks: Checks) -> None:
    session = checks.create(Collected.IDENTITY)

    async def work() -> tuple[int, int]:
        updates = checks.room.updates
        stream = updates.after(session.id, 99, (session.account_id, session.mode))
        await anext(stream)
        during = updates.open
        await stream.aclose()
        return during, updates.open

    assert checks.do(work()) == (1, 0)
    assert "countersign_event_streams 0.0" in metrics(checks.stage)
