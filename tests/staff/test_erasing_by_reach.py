"""An account erases only its own data, in its own mode; others lose and learn nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, delete, event, insert

from countersign.base.db.database import Database
from countersign.base.db.tables import erasure_requests
from countersign.base.values import Mode
from countersign.core.access.account import register
from countersign.core.access.reach import DEPLOYMENT, AccountReach
from countersign.core.access.role import Role
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.core.privacy.requests import (
    ErasureOutcome,
    carry_out_request,
    request_erasure,
    requested,
)
from countersign.operate import bootstrap
from tests.http.calls import acknowledge, verify
from tests.staff.conftest import Desk
from tests.staff.street import Account, Street, erase_as_the_command, noted
from tests.support.acts import done

pytestmark = pytest.mark.both_engines


def test_an_account_erases_its_own_records_and_nothing_of_another(street: Street) -> None:
    """Preview, answer and audit name its own; the other's rows, status and clearances stay."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    assert other.verified(street.played) == cbid
    own, theirs = first.buy(cbid, zip_=street.zip), other.buy(cbid, zip_=street.zip)
    before, status = street.rows(other.id, "live"), other.live.get(f"/v1/buyers/{cbid}/status")
    subject = {"subject": cbid, "with_acknowledgments": True}
    preview = first.ask("/v1/erasures/preview", subject)
    assert not {*theirs} & {*preview["records"]}
    assert {*own} < {*preview["records"]}
    done = first.ask("/v1/erasures", subject)
    assert done["records"] == preview["records"]
    assert street.rows(other.id, "live") == before
    after = other.live.get(f"/v1/buyers/{cbid}/status")
    assert (after.status_code, after.json()) == (200, status.json())
    decided = other.live.get(f"/v1/clearances/{other.buy(cbid, zip_=street.zip)[1]}").json()
    assert decided["cleared"], decided
    assert (
        street.operator.rows("SELECT id FROM verifications WHERE account_id = :own", own=first.id)
        == []
    )
    last = other.ask("/v1/erasures", subject)
    assert {*theirs} < {*last["records"]}
    assert other.live.get(f"/v1/buyers/{cbid}/status").status_code == 404


def test_a_buyer_of_others_alone_looks_like_an_unknown_one(street: Street) -> None:
    """Erasing, its preview, and a hold: 404, in the same words."""
    cbid = street.other.verified(street.played)
    never = "cbid_" + "0" * len(cbid.partition("_")[2])
    body = {"reason": "case 1"}
    for path, more in (("erasures/preview", {}), ("erasures", {}), ("holds", body)):
        said = [
            street.first.ask(f"/v1/{path}", {"subject": one} | more, 404)["error"]["message"]
            for one in (cbid, never)
        ]
        assert said[0].replace(cbid, never) == said[1]


def test_a_test_key_touches_nothing_live(street: Street) -> None:
    """It neither erases live records, nor sees, places or releases a live hold."""
    first, other = street.first, street.other
    cbid = verify(first.test, shipping_zip="94105").json()["cbid"]
    acknowledge(first.test, notice_id="law", cbid=cbid)
    live = [street.naming(one, cbid) for one in (first, other)]
    of_test = other.buy(cbid, "test")
    rows = {
        (one.id, mode): street.rows(one.id, mode)
        for one, mode in ((first, "live"), (other, "live"), (other, "test"))
    }
    done = first.ask("/v1/erasures", {"subject": cbid, "with_acknowledgments": True}, mode="test")
    assert not {*live, *of_test} & {*done["records"]}
    for (account_id, mode), before in rows.items():
        assert street.rows(account_id, mode) == before
    hold = first.ask("/v1/holds", {"subject": first.id, "reason": "case 1"})
    assert first.test.get("/v1/holds").json()["data"] == []
    first.ask(f"/v1/holds/{hold['hold_id']}/release", {}, 404, mode="test")
    first.ask("/v1/erasures", {"subject": live[0]}, 409)
    first.ask("/v1/holds", {"subject": live[0], "reason": "case 2"}, 404, mode="test")
    first.ask("/v1/holds", {"subject": first.id, "reason": "case 3"}, mode="test")
    first.ask(f"/v1/holds/{hold['hold_id']}/release", {})
    first.ask("/v1/erasures", {"subject": live[0]})


def test_a_test_record_that_names_a_live_buyer_is_no_tie(street: Street) -> None:
    """A test key may name a live buyer, and neither erases nor holds anything of that buyer."""
    first = street.first
    cbid = first.verified(street.played)
    own = {"notice_id": "law", "session_id": "crossing", "cbid": cbid}
    assert acknowledge(first.test, **own).status_code == 200  # type: ignore[arg-type] # no headers
    before = street.rows(first.id, "live")
    first.ask("/v1/erasures", {"subject": cbid, "with_acknowledgments": True}, 404, mode="test")
    first.ask("/v1/erasures/preview", {"subject": cbid}, 404, mode="test")
    first.ask("/v1/holds", {"subject": cbid, "reason": "case 9"}, 404, mode="test")
    assert street.rows(first.id, "live") == before


def test_each_act_of_one_account_leaves_the_other_unchanged(street: Street) -> None:
    """A shared buyer, both modes, holds of both: no act of one changes a row of the other's.

    Nor does an act of a test key change a live row.
    """
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    other.verified(street.played)
    played = verify(first.test, shipping_zip="94105").json()["cbid"]
    orders = {
        (one.id, mode): one.buy(cbid if mode == "live" else played, mode, street.zip)
        for one in (first, other)
        for mode in ("live", "test")
    }
    own_hold = {
        one.id: one.ask("/v1/holds", {"subject": orders[one.id, "live"][0], "reason": "case 1"})
        for one in (first, other)
    }
    matter = {
        "name": "Case 2",
        "orders": [{"subject": orders[first.id, "live"][1], "reason": "in dispute"}],
    }
    opened = first.ask("/v1/matters", matter)["matter_id"]
    theirs, whole = own_hold[other.id]["hold_id"], {"with_acknowledgments": True}
    acts: list[tuple[str, str, dict[str, Any], int]] = [
        ("test", f"holds/{own_hold[first.id]['hold_id']}/release", {}, 404),
        ("test", f"matters/{opened}/release", {}, 404),
        ("test", "holds", {"subject": cbid, "reason": "case 3"}, 404),
        ("test", "erasures", {"subject": orders[first.id, "live"][0]}, 404),
        ("test", "erasures", {"subject": cbid} | whole, 404),
        ("test", "erasures", {"subject": played} | whole, 200),
        ("live", f"holds/{theirs}/release", {}, 404),
        ("live", "erasures", {"subject": orders[other.id, "live"][0]}, 404),
        ("live", "holds", {"subject": orders[other.id, "live"][0], "reason": "no"}, 404),
        ("live", "holds", {"subject": other.id, "reason": "no"}, 404),
        ("live", "erasures", {"subject": orders[first.id, "live"][0]}, 409),
        ("live", "erasures", {"subject": cbid} | whole, 200),
        ("live", f"matters/{opened}/release", {}, 200),
        ("live", f"holds/{own_hold[first.id]['hold_id']}/release", {}, 200),
    ]
    status = other.live.get(f"/v1/buyers/{cbid}/status").json()
    for mode, path, body, expected in acts:
        watched = [(other.id, "live"), (other.id, "test")]
        watched += [(first.id, "live")] if mode == "test" else [(first.id, "test")]
        before = {one: street.rows(*one) for one in watched}
        first.ask(f"/v1/{path}", body, expected, mode=mode)
        assert {one: street.rows(*one) for one in watched} == before, path
        assert other.live.get(f"/v1/buyers/{cbid}/status").json() == status, path
    left = street.rows(first.id, "live")
    assert not left["verifications"]
    assert not [row for row in left["disclosures"] if orders[first.id, "live"][0] in row]
    # The buyer's own wish is not kept from one vendor by the hold of another.
    other.ask("/v1/holds", {"subject": cbid, "reason": "case 4"})
    assert first.verified(street.played) == cbid
    theirs_before = street.rows(other.id, "live")
    outcome = street.operator.act(lambda opened: request_erasure(opened.privacy, cbid))
    assert outcome is ErasureOutcome.ON_HOLD
    assert street.rows(other.id, "live") == theirs_before
    assert not street.rows(first.id, "live")["verifications"]


def test_a_restore_takes_an_account_out_of_a_buyer_again(street: Street) -> None:
    """The one that it left since the backup; the buyer stays for the other account, unchanged."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    other.verified(street.played)
    first.ask("/v1/erasures", {"subject": cbid})
    assert first.verified(street.played) == cbid
    before = street.rows(other.id, "live")
    street.restored(first, cbid)
    assert not street.rows(first.id, "live")["verifications"]
    assert street.rows(other.id, "live") == before
    assert other.live.get(f"/v1/buyers/{cbid}/status").json()["status"] == "verified"


@pytest.mark.parametrize("with_session", [True, False])
def test_a_restore_removes_an_account_from_a_buyer_named_only_by_a_session(
    street: Street, with_session: bool
) -> None:
    """With its block, also if the backup is from before the session."""
    first, other = street.first, street.other
    cbid = other.verified(street.played)
    street.operator.act(
        lambda opened: done(register, opened.access, first.id, "https://shop.example")
    )
    asked = {"return_url": "https://shop.example/", "cbid": cbid, "notice_id": "law"}
    asked |= {"order_reference": "7"}

    def make() -> str:
        made = first.ask("/v1/checkout_sessions", asked | {"session_id": "cart-7"})
        return f"/v1/checkout_sessions/{made['checkout_session_id']}"

    make()
    first.ask("/v1/erasures", {"subject": cbid})
    session = make() if with_session else None
    street.block(first, cbid)
    before = street.rows(other.id, "live")
    street.restored(first, cbid)
    assert not street.rows(first.id, "live")["buyer_blocks"]
    assert session is None or first.live.get(session).json()["session_id"] is None
    first.ask("/v1/erasures/preview", {"subject": cbid}, 404)
    assert street.rows(other.id, "live") == before


@pytest.mark.parametrize("again", [True, False])
def test_an_account_that_left_relies_on_the_buyer_again_by_a_later_record(
    street: Street, again: bool
) -> None:
    """Its earlier remaining data keeps no buyer; a later acknowledgment does."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    assert other.verified(street.played) == cbid
    other.buy(cbid, zip_=street.zip)
    other.ask("/v1/erasures", {"subject": cbid})
    if again:
        acknowledge(other.live, notice_id="law", session_id="later", cbid=cbid)
    first.ask("/v1/erasures", {"subject": cbid})
    found = other.live.get(f"/v1/buyers/{cbid}/status").status_code
    assert found == (200 if again else 404)
    if again:
        decided = other.live.get(f"/v1/clearances/{other.buy(cbid, zip_=street.zip)[1]}").json()
        assert decided["cleared"], decided


async def erase_as_retention(opened: bootstrap.Deployment, cbid: str) -> None:
    """As `countersign retention run` erases each record that is due."""
    plan = await plan_erasure(opened.privacy, cbid, DEPLOYMENT, with_acknowledgments=True)
    for id_ in (record.record_id for record in plan.records):
        if not id_.startswith(("ack_", "ver_")):
            continue
        due = await plan_erasure(opened.privacy, id_, DEPLOYMENT)
        await erase_planned(opened.privacy, due, ErasureReason.RETENTION)


@pytest.mark.parametrize("way", ["account", "staff", "command", "retention", "buyer"])
def test_each_account_that_loses_data_has_it_in_its_own_audit(
    desk: Desk, street: Street, way: str
) -> None:
    """Even if others erase it, with the owner of the act; it names no other account."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    assert other.verified(street.played) == cbid
    first.buy(cbid, zip_=street.zip)
    other.buy(cbid, zip_=street.zip)
    whole = {"subject": cbid, "with_acknowledgments": True}
    by, losing = "deployment", [first, other]
    if way == "account":
        first.ask("/v1/erasures", whole)
        by, losing = "account", [first]
    elif way == "staff":
        with desk.person(Role.COMPLIANCE) as person:
            person.post("/v1/erasures", whole)
            mine = person.get(f"/v1/audit?actor={person.id}&action=erased")["data"]
        about = {(one["details"]["account_id"], one["details"]["mode"]) for one in mine}
        assert about == {(first.id, "live"), (other.id, "live")}
    elif way == "command":
        street.operator.act(lambda opened: erase_as_the_command(opened, cbid))
    elif way == "retention":
        street.operator.act(lambda opened: erase_as_retention(opened, cbid))
    else:
        street.operator.act(lambda opened: request_erasure(opened.privacy, cbid))
        by = "buyer"
    for one in (first, other):
        entries = noted(one.live, "erased")
        assert bool(entries) == (one in losing)
        assert {(e["details"]["account_id"], e["details"]["mode"]) for e in entries} <= {
            (one.id, "live")
        }
        assert {e["details"]["by"] for e in entries} <= {by}
        assert noted(one.test, "erased") == []


@pytest.mark.parametrize("held", [False, True])
def test_the_last_account_takes_the_buyer_out_of_every_session(street: Street, held: bool) -> None:
    """Also out of a test session that names the live buyer, unless a hold of test keeps it."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    asked = {"return_url": "https://shop.example/", "cbid": cbid, "notice_id": "law"}
    asked |= {"session_id": "cart-7", "order_reference": f"order-{other.id}"}
    made = other.ask("/v1/checkout_sessions", asked, mode="test")["checkout_session_id"]
    named = {"notice_id": "law", "order_reference": f"order-{other.id}"}
    ack_id = acknowledge(other.test, **named).json()["ack_id"]  # type: ignore[arg-type] # no headers
    hold = {"subject": ack_id, "reason": "case 1"}
    hold_id = other.ask("/v1/holds", hold, mode="test")["hold_id"] if held else ""

    def left() -> bool:
        found = other.test.get(f"/v1/checkout_sessions/{made}").json()
        return bool(found["session_id"])

    first.ask("/v1/erasures", {"subject": cbid})
    assert first.live.get(f"/v1/buyers/{cbid}/status").status_code == 404
    assert left() is held
    if held:
        assert other.ask(f"/v1/holds/{hold_id}/release", {}, mode="test")["erased"] == [made]
        assert not left()


def test_a_request_erases_the_present_data_of_each_account_once(street: Street) -> None:
    """One vendor holds the buyer, who returns to another vendor; that one keeps its later data."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    other.verified(street.played)
    other.buy(cbid, zip_=street.zip)
    hold = first.ask("/v1/holds", {"subject": cbid, "reason": "case 1"})["hold_id"]
    outcome = street.operator.act(lambda opened: request_erasure(opened.privacy, cbid))
    assert outcome is ErasureOutcome.ON_HOLD
    assert street.ids("verifications", other.id) == []
    assert waiting(other) == []
    assert waiting(first) == [cbid]
    assert other.verified(street.played) == cbid
    ack_id, _ = other.buy(cbid, zip_=street.zip)
    before = street.rows(other.id, "live")
    for _ in range(2):
        assert street.operator.act(lambda opened: carry_out(opened, cbid)) is ErasureOutcome.ON_HOLD
    assert street.rows(other.id, "live") == before
    own = other.ask("/v1/holds", {"subject": ack_id, "reason": "case 2"})["hold_id"]
    assert other.ask(f"/v1/holds/{own}/release", {})["requested"] == []
    released = first.ask(f"/v1/holds/{hold}/release", {})
    assert released["requested"] == [{"cbid": cbid, "outcome": "erased"}]
    assert street.ids("verifications", first.id) == []
    assert street.operator.act(lambda opened: carry_out(opened, cbid)) is ErasureOutcome.ERASED
    assert not street.operator.rows("SELECT 1 FROM erasure_requests WHERE cbid = :c", c=cbid)
    assert len(street.ids("verification_evidence", other.id)) == 1
    assert other.live.get(f"/v1/buyers/{cbid}/status").json()["status"] == "verified"
    for one in (first, other):
        assert [entry["details"]["by"] for entry in noted(one.live, "erased")] == ["buyer"]


def test_a_request_erases_the_data_of_an_account_that_has_the_buyer_again(
    street: Street,
) -> None:
    """When its hold ends, the older check loses its evidence; the later one and the buyer stay."""
    first, other = street.first, street.other
    cbid = first.verified(street.played, 2)
    other.verified(street.played, 2)
    hold = first.ask("/v1/holds", {"subject": cbid, "reason": "case 1"})["hold_id"]
    street.operator.act(lambda opened: request_erasure(opened.privacy, cbid))
    assert first.verified(street.played, 3) == cbid
    old, new = street.ids("verification_evidence", first.id)
    street.operator.act(lambda opened: carry_out(opened, cbid))
    assert street.ids("verification_evidence", first.id) == [old, new]
    released = first.ask(f"/v1/holds/{hold}/release", {})
    assert released["requested"] == [{"cbid": cbid, "outcome": "erased"}]
    assert street.ids("verification_evidence", first.id) == [new]
    assert waiting(first) == []
    [entry] = noted(first.live, "erased")
    assert entry["details"]["by"] == "buyer"
    before = street.rows(first.id, "live")
    assert street.operator.act(lambda opened: carry_out(opened, cbid)) is ErasureOutcome.ERASED
    assert street.rows(first.id, "live") == before
    assert first.live.get(f"/v1/buyers/{cbid}/status").json()["status"] == "verified"
    assert not street.operator.rows("SELECT 1 FROM erasure_requests WHERE cbid = :c", c=cbid)


def test_a_later_request_erases_data_since_the_one_before(street: Street) -> None:
    """The last account's erasure includes the buyer; earlier ones get no second entry."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    other.buy(cbid, zip_=street.zip)
    hold = first.ask("/v1/holds", {"subject": cbid, "reason": "case 1"})["hold_id"]
    for entries in (1, 2):
        street.operator.act(lambda opened: request_erasure(opened.privacy, cbid))
        assert len(noted(other.live, "erased")) == entries
        other.verified(street.played)
    street.operator.act(lambda opened: request_erasure(opened.privacy, cbid))
    assert street.ids("verifications", other.id) == []
    erasures = len(street.rows(other.id, "live")["records"])
    first.ask(f"/v1/holds/{hold}/release", {})
    assert first.live.get(f"/v1/buyers/{cbid}/status").status_code == 404
    assert len(street.rows(other.id, "live")["records"]) == erasures
    assert len(noted(other.live, "erased")) == 3
    assert len(noted(first.live, "erased")) == 1


async def carry_out(opened: bootstrap.Deployment, cbid: str) -> ErasureOutcome:
    """As `countersign retention run` does with each request that waits."""
    return await carry_out_request(opened.privacy, cbid, DEPLOYMENT)


def test_the_number_of_statements_does_not_depend_on_others_data(street: Street) -> None:
    """Neither for each of their holds, nor for each of their buyers who has asked for erasure."""
    first, other = street.first, street.other
    cbid = first.verified(street.played)
    own = AccountReach(other.id, Mode.LIVE)

    async def listed(opened: bootstrap.Deployment) -> int:
        access = opened.access
        with counting(access.database) as seen:
            assert await access.database.scan(requested, access.secret, own) == []
        return len(seen)

    async def erased(opened: bootstrap.Deployment) -> int:
        made = await asyncio.to_thread(verify, other.test, shipping_zip="94105")
        reach = AccountReach(other.id, Mode.TEST)
        plan = await plan_erasure(opened.privacy, made.json()["cbid"], reach)
        with counting(opened.access.database) as seen:
            await erase_planned(opened.privacy, plan, ErasureReason.REQUEST)
        return len(seen)

    before = [street.operator.act(work) for work in (listed, erased)]
    for number in range(20):
        first.ask("/v1/holds", {"subject": cbid, "reason": f"case {number}"})
    now = datetime.now(UTC)
    asked = [{"cbid": f"cbid_{number:026}", "requested_at": now} for number in range(100, 120)]
    with street.operator.transaction() as connection:
        connection.execute(insert(erasure_requests), asked)
    after = [street.operator.act(work) for work in (listed, erased)]
    with street.operator.transaction() as connection:
        gone = [one["cbid"] for one in asked]
        connection.execute(delete(erasure_requests).where(erasure_requests.c.cbid.in_(gone)))
    # The first request of all makes the rest of the listing begin.
    assert after[0] <= before[0] + 10
    assert after[1] == before[1]


@contextmanager
def counting(database: Database) -> Iterator[list[str]]:
    """Give the statements on this database inside this block: others of the process have loops."""
    seen: list[str] = []

    def note(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if connection.engine.url == database.url:
            seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def waiting(account: Account) -> list[str]:
    """The buyers whose request has still to be carried out at an account."""
    found = account.live.get("/v1/erasures/requests").json()["data"]
    return [one["cbid"] for one in found]


def test_a_block_is_erased_with_the_accounts_data_and_with_the_buyer(street: Street) -> None:
    """An account takes its own block along, and not that of another; the buyer takes all."""
    cbid = street.first.verified(street.played)
    street.other.buy(cbid, zip_=street.zip)
    for account in (street.first, street.other):
        street.block(account, cbid)

    def blocked_by() -> list[str]:
        own = "SELECT account_id FROM buyer_blocks WHERE cbid = :cbid"
        return [row["account_id"] for row in street.operator.rows(own, cbid=cbid)]

    assert len(blocked_by()) == 2
    street.first.ask("/v1/erasures", {"subject": cbid, "reason": "request"})
    assert blocked_by() == [street.other.id]
    street.operator.act(lambda opened: request_erasure(opened.privacy, cbid))
    assert blocked_by() == []
