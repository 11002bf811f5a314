"""The maker of an earlier key is read from the audit, through each key in between."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import URL, MetaData, select

from countersign.base.db import schema
from countersign.base.db.engine import Purpose
from countersign.base.db.tables import api_keys
from countersign.base.values import Mode
from tests.storage import items

pytestmark = pytest.mark.both_engines

ACTS = (
    ("key_created", "root", {"key_id": "key_machine"}),
    ("key_created", "per_ada", {"key_id": "key_of_ada"}),
    # The server that wrote this had a slow clock: the requesting key is newer.
    ("key_created", "key_between", {"key_id": "key_of_its_key"}),
    ("key_created", "key_of_ada", {"key_id": "key_between"}),
    ("key_rotated", "per_bob", {"key_id": "key_of_ada", "successor": "key_of_ada_2"}),
    ("key_rotated", "root", {"key_id": "key_machine", "successor": "key_machine_2"}),
    ("key_rotated", "per_bob", {"key_id": "key_machine", "successor": "key_seen_by_bob"}),
    ("key_rotated", "key_of_ada", {"key_id": "key_machine", "successor": "key_seen_by_ada"}),
    ("key_created", "key_machine", {"key_id": "key_of_the_machines"}),
    ("key_rotated", "key_loop", {"key_id": "key_loop", "successor": "key_loop"}),
)
MAKERS = {
    "key_machine": None,
    "key_machine_2": None,
    "key_of_the_machines": None,
    "key_unknown": None,
    "key_loop": None,
    "key_of_ada": "per_ada",
    "key_between": "per_ada",
    "key_of_its_key": "per_ada",
    "key_of_ada_2": "per_ada",
    "key_seen_by_bob": "per_bob",
    "key_seen_by_ada": "per_ada",
}


def test_keys_of_before_have_their_makers(empty_url: URL) -> None:
    """A person through keys and rotations; the machine where the audit names no person."""
    with schema.connected(empty_url, Purpose.WRITE) as connection, connection.begin():
        schema.migrate(connection, "0019_person_subjects")
        tables = MetaData()
        tables.reflect(connection)
        account = {"id": "acct_1", "name": "vendor", "created_at": 0, "reviewers": 1}
        connection.execute(tables.tables["accounts"].insert(), account)
        own = {"account_id": "acct_1", "mode": Mode.LIVE.value, "kind": "sk", "hint": "h"}
        keys = [{"id": id_, "digest": items.some_bytes(), "created_at": 0} | own for id_ in MAKERS]
        connection.execute(tables.tables["api_keys"].insert(), keys)
        noted = [
            {"id": f"aud_{number}", "at": 0, "actor": actor, "action": action}
            | {"subject": "acct_1", "details": json.dumps(details)}
            for number, (action, actor, details) in enumerate(ACTS)
        ]
        connection.execute(tables.tables["audit_log"].insert(), noted)
    schema.upgrade(empty_url)
    with schema.connected(empty_url, Purpose.READ) as connection:
        found = connection.execute(select(api_keys.c.id, api_keys.c.made_by)).all()
    assert dict(map(tuple, found)) == MAKERS
