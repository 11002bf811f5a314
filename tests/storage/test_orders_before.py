"""Acts of earlier releases: an upgrade joins them to their orders."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import URL, MetaData

from countersign.base.db import schema
from countersign.base.db.engine import Purpose
from countersign.base.values import Mode
from countersign.core.access.reach import AccountReach
from countersign.core.orders.model import JoinedOrder, OrderState
from countersign.core.orders.sql import orders_of
from tests.storage import items

pytestmark = pytest.mark.both_engines

OWN: dict[str, object] = {"account_id": "acct_1", "mode": "live"}
REACH = AccountReach("acct_1", Mode.LIVE)
LATER = 10_000


def test_an_upgrade_joins_the_acts_of_before_to_their_orders(empty_url: URL) -> None:
    """By session, acknowledgment or link; an erased acknowledgment keeps its reports."""
    ack, again, erased = (items.identifier("ack") for _ in range(3))
    cleared, refused, alone = (items.identifier("clr") for _ in range(3))
    shipped, link, left, check = (items.identifier(kind) for kind in ("ful", "chk", "chk", "ver"))
    with schema.connected(empty_url, Purpose.WRITE) as connection, connection.begin():
        schema.migrate(connection, "0024_named_orders")
        tables = MetaData()
        tables.reflect(connection)

        def write(table: str, **row: object) -> None:
            connection.execute(tables.tables[table].insert(), OWN | row)

        def record(id_: str, type_: str, at: int, body: bytes = b"{}", **index: Any) -> None:  # noqa: ANN401
            write("records", id=id_, type=type_, at=at, digest=b"d", body=body)
            if index:
                write("disclosures", record_id=id_, payload=b"p", **index)

        account = {"id": "acct_1", "name": "vendor", "created_at": 0, "reviewers": 1}
        connection.execute(tables.tables["accounts"].insert(), account)
        record(ack, "acknowledgment", 2, session_index=b"s" * 16)
        record(again, "acknowledgment", 3, session_index=b"s" * 16)
        record(erased, "acknowledgment", 4)
        for id_, of, ends, at in (
            (cleared, ack, LATER, 5),
            (refused, erased, None, 6),
            (alone, "ack_of_another_account", None, 7),
        ):
            record(id_, "clearance", at, session_index=b"t" * 16 if id_ == alone else None)
            write("clearances", id=id_, ack_id=of, at=at, expires_at=ends)
        record(shipped, "fulfilment", 8, b'{"delivered_at":"2026-01-01T00:00:00Z"}')
        report = {"clearance_id": cleared, "ack_id": ack, "adult_signature": False}
        write("fulfilments", id=shipped, closes=True, at=8, **report)
        of_links = {"revision": 1, "check_revision": 0, "consents": 0, "expires_at": LATER}
        for id_, status, of_link in (
            (link, "completed", {"ack_id": ack, "clearance_id": cleared}),
            (left, "open", {}),
        ):
            hashes = {"token_digest": id_.encode(), "session_index": b"x" * 16}
            write(
                "checkout_sessions",
                **{"id": id_, "status": status, "created_at": 1, **of_links, **hashes, **of_link},
            )
        started = {"reference": link, "attempt": 1, "provider": "p", "session_index": b"y" * 16}
        started |= {"zip_index": b"z" * 16, "revision": 1, "started_at": 1, "changed_at": 2}
        write("started_checks", verification_id=check, status="verified", **started)
    schema.upgrade(empty_url)

    with schema.connected(empty_url, Purpose.READ) as connection:

        def order_of(member: str) -> JoinedOrder:
            [found] = orders_of(connection, REACH, [member])
            return found

        def standing(member: str) -> tuple[frozenset[str], OrderState]:
            found = order_of(member)
            return found.members, found.decisive(9).state_at(9)

        whole = frozenset({ack, again, cleared, shipped, link, check})
        for member in whole:
            assert standing(member) == (whole, OrderState.DELIVERED)
        for member in (erased, refused):
            assert standing(member) == (frozenset({erased, refused}), OrderState.REFUSED)
        assert standing(alone) == (frozenset({alone}), OrderState.REFUSED)
        assert standing(left) == (frozenset({left}), OrderState.WAITING_FOR_BUYER)
        assert order_of(left).decisive(LATER).state_at(LATER) is OrderState.CLOSED
