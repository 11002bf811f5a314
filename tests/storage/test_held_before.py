"""Holds that an earlier release has placed have an owner, or go on binding everyone."""

from __future__ import annotations

from typing import Final

import pytest
from sqlalchemy import URL, text

from countersign.base.db import schema
from countersign.base.db.engine import Purpose
from countersign.base.values import Mode
from countersign.core.access.reach import DEPLOYMENT, AccountReach, Reach
from countersign.core.privacy.holds import find_holds

pytestmark = pytest.mark.both_engines

BEFORE: Final = "0019_person_subjects"
OF_A, OF_B = (f"acct_{letter * 26}" for letter in "ab")
PLACED: Final[dict[str, tuple[str, str, Reach]]] = {
    "on a record": ("ack_1", "root", AccountReach(OF_A, Mode.TEST)),
    "on a record, by staff": ("ack_2", "per_1", AccountReach(OF_B, Mode.LIVE)),
    "on an account, by a key": (OF_A, "key_1", AccountReach(OF_A, Mode.LIVE)),
    "on an account, by an operator": (OF_A, "root", DEPLOYMENT),
    "on a buyer, by a key": ("ref_1", "key_1", AccountReach(OF_A, Mode.LIVE)),
    "on a buyer, by a person": ("ref_2", "per_1", DEPLOYMENT),
    "on what is gone": ("ack_gone", "root", DEPLOYMENT),
    # The reason of this one names another hold, which a key has placed too.
    "hold_2": (OF_A, "key_1", AccountReach(OF_A, Mode.LIVE)),
}
"""By reason: the subject, who placed it, and the owner after the upgrade."""
_ACCOUNT: Final = "INSERT INTO accounts (id, name, created_at) VALUES (:id, :id, 0)"
_KEY: Final = (
    "INSERT INTO api_keys (id, account_id, mode, kind, digest, hint, created_at)"
    " VALUES ('key_1', :of, 'live', 'sk', :bytes, '', 0)"
)
_RECORD: Final = (
    "INSERT INTO records (id, account_id, mode, type, at, digest, body)"
    " VALUES (:id, :of, :mode, 'acknowledgment', 0, :bytes, :bytes)"
)
_HOLD: Final = (
    "INSERT INTO legal_holds (id, subject, reason, placed_at) VALUES (:id, :subject, :reason, 0)"
)
_AUDIT: Final = (
    "INSERT INTO audit_log (id, at, actor, action, subject, details)"
    " VALUES (:id, 0, :actor, 'hold_placed', :subject, :details)"
)


def test_an_earlier_hold_belongs_to_the_owner_that_it_names_or_to_everyone(empty_url: URL) -> None:
    """A record's account and mode; else those of the key that placed it; else the deployment."""
    with schema.connected(empty_url, Purpose.WRITE) as connection, connection.begin():
        schema.migrate(connection, BEFORE)
        for of in (OF_A, OF_B):
            connection.execute(text(_ACCOUNT), {"id": of})
        connection.execute(text(_KEY), {"of": OF_A, "bytes": b"k"})
        for id_, of, mode in (("ack_1", OF_A, "test"), ("ack_2", OF_B, "live")):
            record = {"id": id_, "of": of, "mode": mode, "bytes": b"{}"}
            connection.execute(text(_RECORD), record)
        for number, (reason, (subject, actor, _)) in enumerate(PLACED.items()):
            hold, audit = f"hold_{number}", f"aud_{number}"
            own = {"id": hold, "subject": subject, "reason": reason}
            connection.execute(text(_HOLD), own)
            details = f'{{"hold_id":"{hold}","reason":"{reason}"}}'
            noted = {"id": audit, "actor": actor, "subject": subject, "details": details}
            connection.execute(text(_AUDIT), noted)
    schema.upgrade(empty_url)
    with schema.connected(empty_url, Purpose.READ) as connection:
        owners = {hold.reason: hold.owner for hold in find_holds(connection, DEPLOYMENT)}
        of_key = find_holds(connection, AccountReach(OF_A, Mode.LIVE))
        of_test = find_holds(connection, AccountReach(OF_A, Mode.TEST))
    assert owners == {reason: owner for reason, (_, _, owner) in PLACED.items()}
    assert {hold.reason for hold in of_key} == {
        "on an account, by a key",
        "on a buyer, by a key",
        "hold_2",
    }
    assert {hold.reason for hold in of_test} == {"on a record"}
