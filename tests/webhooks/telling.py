"""A deployment in this process, and the events of its accounts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from countersign.base.values import Mode
from countersign.core.access.key import Principal
from countersign.core.buyers import expiry
from countersign.core.events.routes import EventsQuery, list_events
from tests.clearances.desk import Desk, MovingClock, open_desk
from tests.support import postgres
from tests.support.acts import asked
from tests.support.engines import ENGINES, engine_server

ZIP = "94105"
NOTICE = "ab1263"
SIGNED_FOR = """
id = "of-this-test"
version = "{version}"
title = "A notice"
heading = "Read this"
attestation_text = "I have read it"
source_law = "Civil Code 1"
source_bill = "AB 1"
jurisdiction = "US-CA"
language = "en"
effective_from = 2026-01-01
retention_years = 5
source_url = "https://law.example/text"
editorial = []
text_gaps = []
bullets = [{{ id = "a", text = "The only line." }}]
"""

Reported = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module", params=ENGINES)
def desk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    """Give a deployment in this process whose clock the tests move forward, on each engine."""
    data_dir = tmp_path_factory.mktemp(f"events_of-{request.param}") / "data"
    # Not before the beginning of the logs, which is set by the machine's clock.
    clock = MovingClock(datetime.now(tz=UTC).replace(microsecond=0) + timedelta(days=1))
    with open_desk(data_dir, clock, engine_server(request)) as made:
        yield made


def events_of(desk: Desk, who: Principal) -> list[Reported]:
    """Read all events of an account, in order."""
    desk.do(desk.deployment.log.seal.settle())
    postgres.settle()
    found: list[Reported] = []
    after = None
    while True:
        query = EventsQuery(after=after, limit=100)
        page = desk.do(asked(list_events, desk.deployment.events, who.reach, query))
        if not page.data:
            return found
        found += [(event.type.value, event.data) for event in page.data]
        after = page.data[-1].id


def of_buyers(desk: Desk, who: Principal) -> list[Reported]:
    return [event for event in events_of(desk, who) if event[0].startswith("buyer.")]


def sweep(desk: Desk) -> int:
    return desk.do(expiry.sweep(desk.deployment.buyers))


def in_mode(who: Principal, mode: Mode) -> Principal:
    """The same account with a key of this mode."""
    return Principal(
        key_id=who.key_id,
        account_id=who.account_id,
        mode=mode,
        scopes=who.scopes,
        credential=who.credential,
    )


def verified_by(desk: Desk, who: Principal, cbid: str) -> None:
    """Note that this account has verified the buyer, as judging a session would."""

    def act(connection: Connection, batch: Sequence[None]) -> list[None]:
        row = {
            "id": f"ver_{cbid[5:]}", "account": who.account_id, "mode": who.mode.value,
            "cbid": cbid,
        }  # fmt: skip
        statement = text(
            "INSERT INTO verifications (id, account_id, mode, cbid, provider, status, reasons, at)"
            " VALUES (:id, :account, :mode, :cbid, 'sandbox', 'verified', '[]', 0)"
        )
        connection.execute(statement, row)
        return [None] * len(batch)

    desk.do(desk.deployment.database.write_batched(act, None))
