"""The figures of a day: exact, for one account and mode, whatever else is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count, product
from typing import Any, Final

import pytest
from sqlalchemy import Connection, Table, event, insert, text, update

from countersign.base.db.tables import accounts, clearances, events, records
from countersign.base.values import Mode, timed_id, to_ms
from countersign.core.access.key import Principal
from countersign.core.access.role import Role
from countersign.staff.acts import today, today_sql
from tests.http.backstage import Vendor
from tests.http.calls import acknowledge, verify
from tests.staff.conftest import Desk, Person
from tests.staff.test_orders import buy

pytestmark = pytest.mark.both_engines
NOW: Final = datetime(2026, 11, 28, 11, 20, 30, tzinfo=UTC)
LONG_AGO: Final = NOW - timedelta(days=400)
MS: Final = timedelta(milliseconds=1)
SPANS: Final = ("hours", "days")
_numbers = count(1)


def principal(account_id: str, mode: Mode = Mode.TEST) -> Principal:
    return Principal(key_id="", account_id=account_id, mode=mode, scopes=frozenset(), credential="")


@contextmanager
def forgotten(desk: Desk, account_id: str) -> Iterator[Connection]:
    """A transaction in which the account is old; it is rolled back."""
    with desk.operator.transaction() as connection, connection.begin_nested() as inside:
        made = update(accounts).where(accounts.c.id == account_id)
        connection.execute(made.values(created_at=LONG_AGO))
        yield connection
        inside.rollback()


def put(connection: Connection, table: Table, who: Principal, at: datetime, **own: Any) -> None:  # noqa: ANN401 - of any column
    """A row of this account and mode at this time."""
    row = {"account_id": who.account_id, "mode": who.mode, "at": at}
    connection.execute(insert(table), row | own)


def happen(connection: Connection, who: Principal, figure: str, at: datetime) -> None:
    """Store what this figure counts."""
    id_ = to_ms(at) * 1_000_000, next(_numbers).to_bytes(8)
    named = {name: type_ for type_, name in today_sql.EVENTS.items()}
    if figure in named:
        put(connection, events, who, at, tx=0, type=named[figure], object_id="x")
        return
    prefix = "ack" if figure == "acknowledgments" else "clr"
    type_ = "acknowledgment" if figure == "acknowledgments" else "clearance"
    record = {"id": timed_id(prefix, *id_), "type": type_, "digest": b"", "body": b"{}"}
    put(connection, records, who, at, **record)
    if prefix == "clr":
        kid = "a key" if figure == "cleared" else None
        put(connection, clearances, who, at, id=record["id"], kid=kid)


def figures_of(one: today.Figures) -> dict[str, int | None]:
    return {name: getattr(one, name) for name in today.Figures.__struct_fields__[1:]}


def test_each_hour_and_day_has_its_own_events(desk: Desk, shop: Vendor) -> None:
    """Including the edges; the other mode, other accounts and simulated events do not count."""
    own, live = principal(shop.account_id), principal(shop.account_id, Mode.LIVE)
    edges = [NOW.replace(minute=0, second=0) - timedelta(hours=back) for back in (0, 1, 11, 23, 24)]
    edges += [edges[2] - timedelta(days=back) for back in (1, 13)]
    times = [*(one + shift for one, shift in product(edges, (-MS, timedelta(0), MS))), NOW]
    names = today.Figures.__struct_fields__[1:]
    truth = [(name, at) for place, at in enumerate(times) for name in names[: place % 8 + 1]]
    with (
        desk.operator.vendor(desk.server) as other,
        forgotten(desk, shop.account_id) as connection,
    ):
        for name, at in truth:
            happen(connection, own, name, at)
        for name in names:
            happen(connection, live, name, NOW)
            happen(connection, principal(other.account_id), name, NOW)
        played = {"type": "buyer.verified", "object_id": "x", "triggered": True}
        put(connection, events, own, NOW, tx=0, **played)
        found = today.today(connection, own, NOW)
    for span, length in zip(SPANS, (timedelta(hours=1), timedelta(days=1)), strict=True):
        for one in getattr(found, span):
            inside = (name for name, at in truth if timedelta(0) <= at - one.begins_at < length)
            assert figures_of(one) == dict.fromkeys(names, 0) | Counter(inside), one.begins_at
    assert [found.hours[-1].begins_at, found.days[-1].begins_at] == [edges[0], edges[2]]
    assert (len(found.hours), len(found.days)) == (today.HOURS, today.DAYS)


def test_reasons_are_those_of_the_refusals(desk: Desk, shop: Vendor) -> None:
    """The most frequent first, of the last hours and of the last days."""
    own = principal(shop.account_id)
    bodies = {
        NOW: '{"reasons":["buyer_expired","zip_mismatch"]}',
        NOW - timedelta(hours=2): '{"reasons":["zip_mismatch"]}',
        NOW - timedelta(days=2): '{"reasons":["zip_mismatch"]}',
        NOW - timedelta(days=20): '{"reasons":["buyer_revoked"]}',
    }
    with forgotten(desk, shop.account_id) as connection:
        for at, body in bodies.items():
            id_ = timed_id("clr", to_ms(at) * 1_000_000, next(_numbers).to_bytes(8))
            record = {"type": "clearance", "digest": b"", "body": body.encode()}
            put(connection, records, own, at, id=id_, **record)
            put(connection, clearances, own, at, id=id_)
        found = today.today(connection, own, NOW)
    shown = [(one.reason, one.last_hours, one.last_days) for one in found.refusals]
    assert shown == [("zip_mismatch", 2, 3), ("buyer_expired", 1, 1)]
    assert found.refusals_since is None


def test_a_figure_is_bounded_and_unknown_ones_are_null(desk: Desk, shop: Vendor) -> None:
    """At the bound it means "at least that many"; the number of cleared ones is then unknown."""
    own = principal(shop.account_id)
    many = (
        "INSERT INTO clearances (id, account_id, mode, at)"
        " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= 10000)"
        " SELECT 'clr_many' || i, :account, 'test', CAST(:at AS BIGINT) FROM n"
    )
    with forgotten(desk, shop.account_id) as connection:
        happen(connection, own, "acknowledgments", NOW)
        connection.execute(text(many), {"account": shop.account_id, "at": to_ms(NOW)})
        found = today.today(connection, own, NOW)
    newest = found.hours[-1]
    assert (newest.refused, found.most) == (10_000, 10_000)
    assert (newest.cleared, newest.acknowledgments) == (None, 1)
    assert (found.hours[0].cleared, found.hours[0].refused) == (0, 0)


def test_nothing_is_counted_before_the_account_existed(desk: Desk, shop: Vendor) -> None:
    """Which is not the same as zero."""
    with desk.person(Role.SUPPORT, shop.account_id, "test") as person:
        shown = person.get("/v1/today")
    assert shown["days"][-1]["acknowledgments"] == 0
    assert shown["days"][0] == dict.fromkeys(shown["days"][0]) | {
        "begins_at": shown["days"][0]["begins_at"]
    }


def in_all(shown: Mapping[str, Any], figure: str) -> list[int]:
    """The sum of a figure over the hours and over the days."""
    return [sum(one[figure] or 0 for one in shown[span]) for span in SPANS]


def test_the_figures_match_acts_done_over_the_api(desk: Desk, shop: Vendor) -> None:
    """For every role, without a personal value; not in the other mode."""
    order = buy(shop, 1)
    acknowledge(shop.test, session_id="cart", order_reference="order of Jane")
    again = {"ack_id": order.ack_id, "cbid": order.cbid, "session_id": "x", "shipping_zip": "94110"}
    assert not shop.test.post("/v1/clearances", json=again).json()["cleared"]
    verify(shop.test, provider_identity_session_id="test_failed")
    link = {"collect": ["identity"], "session_id": "a", "return_url": "https://shop.example/"}
    links = [shop.test.post("/v1/checkout_sessions", json=link).json() for _ in range(3)]
    cancelled = f"/v1/checkout_sessions/{links[0]['checkout_session_id']}/cancel"
    assert shop.test.post(cancelled, json={}).status_code == 200
    for role in Role:
        with desk.person(role, shop.account_id, "test", member=True) as person:
            shown = person.get("/v1/today")
        assert in_all(shown, "acknowledgments") == [2, 2]
        assert in_all(shown, "cleared") == in_all(shown, "refused") == [1, 1]
        assert in_all(shown, "buyers_verified") == in_all(shown, "buyers_failed") == [1, 1]
        assert {one["reason"] for one in shown["refusals"]} >= {"session_mismatch"}
        assert (shown["open_checkout_sessions"], shown["buyers_waiting"]) == (2, 1)
        assert (shown["deliveries_repeated"], shown["endpoints_disabled"]) == (0, 0)
        assert not [value for value in (*order_names(order), "Jane") if value in str(shown)]
    with desk.person(Role.SUPPORT, shop.account_id, "live") as person:
        shown = person.get("/v1/today")
        assert (in_all(shown, "acknowledgments"), shown["open_checkout_sessions"]) == ([0, 0], 0)


def order_names(order: Any) -> tuple[str, ...]:  # noqa: ANN401 - of the neighbour
    return order.session, order.reference, order.cbid, order.ack_id


def test_the_figures_are_for_one_account(desk: Desk, owner: Person) -> None:
    """The deployment has its own state page."""
    assert owner.get("/v1/today", 400)["error"]["code"] == "invalid_request"
    assert owner.get("/v1/deployment")["at"]


def test_each_figure_is_a_range_of_an_index(desk: Desk, shop: Vendor) -> None:
    """With a constant number of statements: no table is scanned, and counting reads no row."""
    asked: list[tuple[str, Any]] = []
    with forgotten(desk, shop.account_id) as connection:
        for name in today.Figures.__struct_fields__[1:]:
            happen(connection, principal(shop.account_id), name, NOW)
        listen = "before_cursor_execute", lambda *given: asked.append((given[2], given[3]))
        event.listen(connection, *listen)
        today.today(connection, principal(shop.account_id), NOW)
        event.remove(connection, *listen)
        assert len(asked) == 9
        if connection.dialect.name == "postgresql":
            # Small tables are read whole otherwise.
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            connection.exec_driver_sql("SET LOCAL enable_bitmapscan = off")
        explain = "EXPLAIN" if connection.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN"
        plans = [
            "\n".join(str(row[-1]) for row in connection.exec_driver_sql(f"{explain} {s}", v))
            for s, v in asked
        ]
    whole = [plan for plan in plans if "Seq Scan" in plan or "SCAN records" in plan]
    assert whole == []
    if connection.dialect.name == "postgresql":
        return  # which of the indexes it takes depends on the statistics of the moment
    counting = [plan for plan in plans if "ix_events_of_day" in plan or "ix_records_" in plan]
    counting += [plan for plan in plans if "ix_clearances_refused" in plan][:1]
    assert len(counting) == 3
    assert all("COVERING INDEX" in plan for plan in counting)
