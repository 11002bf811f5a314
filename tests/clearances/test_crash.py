"""Killed between any two statements: an order is cleared and closed whole, or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.clearances.checkout import Checkout
from tests.clearances.victim import SESSION, ZIP
from tests.http.backstage import Operator, another_deployment
from tests.support import forked
from tests.support.engines import ENGINES, engine_server
from tests.support.service import running_server

pytestmark = [pytest.mark.crash, pytest.mark.both_engines, pytest.mark.long]


@pytest.fixture(params=ENGINES)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkout]:
    """Give a checkout on a deployment of this test alone, whose server outlives the victims."""
    own = another_deployment(tmp_path / "data", engine_server(request))
    with (
        running_server(own) as started,
        Operator(own) as operator,
        operator.vendor(started) as vendor,
    ):
        yield Checkout(vendor=vendor, operator=operator, server=started)


def _killed(shop: Checkout, point: int, ack_id: str, cbid: str) -> list[list[str]]:
    """The responses to the victim until it was killed, or ended."""
    arguments = (str(point), shop.vendor.account_id, ack_id, cbid)
    done = forked.run(
        "tests.clearances.victim", *arguments, environment=shop.server.deployment.environment
    )
    assert done.returncode in {0, -9}, done.stderr
    return [line.split() for line in done.stdout.split("\n")[:-1]]


def _rows(shop: Checkout, ack_id: str) -> Mapping[str, Sequence[Mapping[Any, Any]]]:
    """All that is stored of one order."""
    of_order = {
        "clearances": "SELECT * FROM clearances WHERE ack_id = :ack",
        "fulfilments": "SELECT * FROM fulfilments WHERE ack_id = :ack",
        "uses": "SELECT * FROM acknowledgment_uses WHERE ack_id = :ack",
    }
    found = {name: shop.operator.rows(query, ack=ack_id) for name, query in of_order.items()}
    ids = [row["id"] for row in (*found["clearances"], *found["fulfilments"])]
    for name, table, column in (
        ("records", "records", "id"),
        ("disclosures", "disclosures", "record_id"),
        ("shred_keys", "shred_keys", "record_id"),
        ("events", "events", "object_id"),
    ):
        found[name] = [
            row
            for id_ in ids
            for row in shop.operator.rows(
                f"SELECT * FROM {table} WHERE {column} = :id",  # noqa: S608 - our own names
                id=id_,
            )
        ]
    return found


def _whole(shop: Checkout, ack_id: str) -> tuple[list[str], list[str]]:
    """The ids of an order's clearances and reports, after a check that they are complete."""
    rows = _rows(shop, ack_id)
    cleared = [row["id"] for row in rows["clearances"]]
    reports = [row["id"] for row in rows["fulfilments"]]
    for name in ("records", "disclosures", "shred_keys"):
        assert len(rows[name]) == len(cleared) + len(reports), name
    bodies = {row["id"]: json.loads(row["body"]) for row in rows["records"]}
    assert [bodies[id_]["cleared"] for id_ in cleared] == [True] * len(cleared)
    answer = sorted((row["type"], row["object_id"]) for row in rows["events"])
    closed = [("clearance.closed", row["clearance_id"]) for row in rows["fulfilments"]]
    assert answer == sorted([*closed, *(("clearance.created", id_) for id_ in cleared)])
    uses = [(row["clearance_id"], row["closed_at"] is not None) for row in rows["uses"]]
    assert uses == [(id_, bool(reports)) for id_ in cleared]
    return cleared, reports


@pytest.mark.timeout(600)
def test_killed_before_any_statement_an_order_is_cleared_and_closed_whole_or_not_at_all(
    shop: Checkout,
) -> None:
    """Everything acknowledged is there; retries end in one clearance and one report."""
    cbid = shop.buyer()
    states = set()
    for point in count(1):
        ack_id = shop.initialed(session_id=SESSION)
        said = _killed(shop, point, ack_id, cbid)
        if said[-1:] and said[-1][0] == "points":
            break  # it got to its end: there is no further point
        cleared, reports = _whole(shop, ack_id)
        states.add((len(cleared), len(reports)))
        answered = {words[0]: words[1] for words in said}
        assert answered.get("cleared") in {None, *cleared}
        assert answered.get("closed") in {None, *reports}

        order = {"session_id": SESSION, "shipping_zip": ZIP, "product_class": "accessory"}
        again = shop.decision(ack_id, cbid, **order)
        if reports:
            assert again["already_shipped"] is True
            continue
        assert again["cleared"] is True
        assert not cleared or again["clearance_id"] == cleared[0]
        assert shop.fulfil(again["clearance_id"], carrier="UPS").json()["closed_at"] is not None
        assert len(_whole(shop, ack_id)[1]) == 1
    assert {(0, 0), (1, 0)} <= states
    assert point > 15, "statements and commits of two acts"
