"""One account's trouble with its provider affects no other account."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from functools import partial

import pytest
from sqlalchemy import Connection

from countersign.base.errors import StorageUnavailable
from countersign.core.buyers import poll_sessions, sessions_sql
from countersign.core.buyers import routes as verifying
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.session_evidence import FIRST_POLL
from countersign.core.buyers.sessions_sql import PendingSession
from tests.verification.conftest import each_engine
from tests.verification.inside import Stage
from tests.verification.test_settling import playing_another, undecided

PAGE = 4


def copies(stage: Stage, number: int) -> None:
    """Repeat the one polled session, as if many had been asked about before it."""
    [row] = stage.rows("SELECT * FROM pending_sessions")
    for i in range(number):
        own = dict(row) | {
            "id": f"ses_hostile{i:03}",
            "asked_index": f"asked {i}".encode(),
            "next_poll_at": row["next_poll_at"] - 1,
        }
        names = ", ".join(own)
        marks = ", ".join(f":{name}" for name in own)
        stage.execute(f"INSERT INTO pending_sessions ({names}) VALUES ({marks})", **own)  # noqa: S608
        stage.execute(
            "INSERT INTO shred_keys (record_id, key) SELECT :new, key FROM shred_keys"
            " WHERE record_id = :old",
            new=own["id"],
            old=row["id"],
        )


@each_engine
def test_a_hanging_provider_delays_no_webhook_of_another_account(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many hanging sessions take neither the places nor the page of the others."""
    monkeypatch.setattr(poll_sessions, "PERIOD_SECONDS", 0.05)
    monkeypatch.setattr(poll_sessions, "_PAGE", PAGE)
    hostile = stage.insider()
    undecided(hostile)
    copies(stage, 2 * PAGE)
    innocent = stage.insider()
    session, decided, cbid = undecided(innocent)
    stage.clock.now += FIRST_POLL
    room = stage.opened.buyers

    async def watch() -> None:
        running = asyncio.create_task(poll_sessions.run(room))
        while hostile.playing.asked(hostile.part("pending")) < 2:  # noqa: ASYNC110 - another thread
            await asyncio.sleep(0.01)
        message = innocent.playing.simulator.webhook(session.session_id)
        headers = {name.lower(): value for name, value in message.headers}
        integration = await poll_sessions.webhook_integrations(room, "stripe", innocent.account_id)
        await poll_sessions.take_webhook(room, integration, headers, message.body)
        ask = partial(verifying.buyer_status, room)
        while (await ask(innocent.principal, cbid)).status is not BuyerStatus.VERIFIED:
            assert not running.done()
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    with (
        hostile.playing.mood(lambda _, reply: replace(reply, delay=60.0)),
        playing_another(innocent, session, decided),
    ):
        stage.do(asyncio.wait_for(watch(), 20))
    assert innocent.standing(cbid).status is BuyerStatus.VERIFIED


def test_one_unclaimable_session_leaves_no_poll_behind(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All polls of a turn have ended when the turn ends, whatever happened to one of them."""
    unlucky, lucky = stage.insider(), stage.insider()
    undecided(unlucky)
    session, decided, cbid = undecided(lucky)
    claim = sessions_sql.claim

    def failing(connection: Connection, pending: PendingSession, at: datetime) -> bool:
        if pending.account_id == unlucky.account_id:
            raise StorageUnavailable
        return claim(connection, pending, at)

    monkeypatch.setattr(sessions_sql, "claim", failing)
    with playing_another(lucky, session, decided):
        assert stage.wait(FIRST_POLL) == 1
    assert lucky.standing(cbid).status is BuyerStatus.VERIFIED
