"""Accounts and orders of before, when a decision did not have to name its order."""

from __future__ import annotations

import pytest
from sqlalchemy import URL, MetaData, select

from countersign.base.db import schema
from countersign.base.db.engine import Purpose
from countersign.base.db.tables import acknowledgment_uses
from countersign.core.clearances.facts_sql import rules_of
from countersign.core.clearances.model import ClearanceRules
from tests.storage import items

pytestmark = pytest.mark.both_engines

OWN: dict[str, object] = {"account_id": "acct_1", "mode": "live"}


def test_accounts_of_before_need_not_name_their_live_orders(empty_url: URL) -> None:
    """Whether they had rules or the defaults; what was reported keeps its clearance."""
    with schema.connected(empty_url, Purpose.WRITE) as connection, connection.begin():
        schema.migrate(connection, "0023_buyer_blocks")
        tables = MetaData()
        tables.reflect(connection)
        for number in (1, 2):
            account = {"id": f"acct_{number}", "name": f"vendor {number}", "created_at": 0}
            connection.execute(tables.tables["accounts"].insert(), account | {"reviewers": 1})
        rules: dict[str, object] = {
            "account_id": "acct_1",
            "acknowledgment_max_age": 60,
            "lifetime": 120,
        }
        rules |= {"product_class_required": False, "changed_at": 0}
        connection.execute(tables.tables["clearance_settings"].insert(), rules)
        for ack in ("ack_1", "ack_2"):
            use = {"ack_id": ack, "cbid_index": items.some_bytes(), "clearance_id": "clr_9"}
            connection.execute(tables.tables["acknowledgment_uses"].insert(), OWN | use)
        for number in (1, 2):
            report: dict[str, object] = {
                "id": f"ful_{number}",
                "clearance_id": f"clr_{number}",
                "ack_id": "ack_1",
            }
            report |= {"adult_signature": False, "closes": number == 1, "at": number}
            connection.execute(tables.tables["fulfilments"].insert(), OWN | report)
    schema.upgrade(empty_url)
    with schema.connected(empty_url, Purpose.READ) as connection:
        found = rules_of(connection, ["acct_1", "acct_2"])
        c = acknowledgment_uses.c
        shipped = connection.execute(select(c.ack_id, c.shipped_under)).all()
    assert found["acct_2"] == ClearanceRules(order_reference_required=False)
    assert (found["acct_1"].lifetime.seconds, found["acct_1"].product_class_required) == (
        120,
        False,
    )
    assert not found["acct_1"].order_reference_required
    assert dict(map(tuple, shipped)) == {"ack_1": "clr_1", "ack_2": None}
