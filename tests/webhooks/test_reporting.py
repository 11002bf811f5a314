"""Each act writes its events, in its own transaction, to the accounts it concerns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

import countersign
from countersign.base.db.engine import Purpose, database_url, open_engine
from countersign.base.errors import CountersignError
from countersign.base.values import Mode
from countersign.core.buyers.model import VALIDITY, BuyerStatus
from countersign.core.checkout.model import Status
from countersign.core.events.model import EventType
from countersign.operate.bootstrap import Deployment
from tests.clearances.desk import Desk, order
from tests.webhooks.telling import (
    NOTICE,
    SIGNED_FOR,
    ZIP,
    events_of,
    in_mode,
    of_buyers,
    sweep,
    verified_by,
)


@pytest.mark.parametrize(
    ("session", "type_", "reason"),
    [
        ("sess_a", "buyer.verified", None),
        ("test_requires_input", "buyer.requires_input", "identity_requires_input"),
        ("test_failed", "buyer.failed", "identity_failed"),
        ("test_underage", "buyer.failed", "age_below_minimum"),
        ("test_expired", "buyer.expired", None),
        ("test_revoked", "buyer.revoked", None),
        ("test_pending", None, None),
    ],
)
def test_a_verification_reports_its_resulting_status(
    desk: Desk, session: str, type_: str | None, reason: str | None
) -> None:
    """Once, however often it is repeated; that nothing is decided yet is no news."""
    who = desk.account()
    cbid = desk.sandbox_buyer(who, session, ZIP)
    assert desk.sandbox_buyer(who, session, ZIP) == cbid
    sweep(desk)
    data = {"cbid": cbid} | ({"reasons": [reason]} if reason else {})
    assert events_of(desk, who) == ([] if type_ is None else [(type_, data)])


def test_revoking_and_reinstating_are_reported(desk: Desk) -> None:
    """By an operator, once each: revoking again makes no event."""
    who = desk.account()
    cbid = desk.sandbox_buyer(who, "sess_a", ZIP)
    desk.revoke(cbid)
    desk.revoke(cbid)
    desk.reinstate(cbid)
    types = ["buyer.verified", "buyer.revoked", "buyer.verified"]
    assert events_of(desk, who) == [(type_, {"cbid": cbid}) for type_ in types]


def test_an_acknowledgment_is_reported_when_created_sealed_and_erased(desk: Desk) -> None:
    """In this order, once each, also with an erasure that covers other records too."""
    who = desk.account()
    cbid = desk.sandbox_buyer(who, "sess_a", ZIP)
    ack_id = desk.acknowledge(who, NOTICE, "order 1", cbid)
    clearance = desk.clear(who, order(ack_id, cbid, "order 1", ZIP))
    assert clearance.cleared
    data = {"ack_id": ack_id}
    created, sealed = ("acknowledgment.created", data), ("acknowledgment.sealed", data)
    cleared = ("clearance.created", {"clearance_id": clearance.clearance_id})
    found = [event for event in events_of(desk, who) if not event[0].startswith("buyer.")]
    # On PostgreSQL sealing comes a moment after the act, on the embedded database with it.
    assert sorted(found) == sorted([created, sealed, cleared])
    assert found.index(created) < found.index(sealed)
    desk.erase(ack_id)
    assert events_of(desk, who)[-1] == ("acknowledgment.erased", data)
    assert events_of(desk, who).count(("acknowledgment.erased", data)) == 1


def test_erasing_a_buyer_reports_to_each_account_its_own_acknowledgments(desk: Desk) -> None:
    """No one learns the identifiers of another vendor's."""
    one, other = desk.account(Mode.LIVE), desk.account(Mode.LIVE)
    cbid = desk.live_buyer(one, ZIP)
    desk.publish(SIGNED_FOR.format(version="2026-01-01"))
    for who in (one, other):
        own = {
            ("acknowledgment.erased", desk.acknowledge(who, "of-this-test", "s", cbid))
            for _ in range(2)
        }
        before = {(type_, data.get("ack_id", "")) for type_, data in events_of(desk, who)}
        assert not own & before
    desk.erase(cbid, with_acknowledgments=True)
    for who in (one, other):
        created = [d["ack_id"] for t, d in events_of(desk, who) if t == "acknowledgment.created"]
        erased = [d["ack_id"] for t, d in events_of(desk, who) if t == "acknowledgment.erased"]
        assert sorted(created) == sorted(erased)
        assert len(created) == 2


def test_a_clearance_is_reported_whether_granted_or_not_and_when_its_order_is_closed(
    desk: Desk,
) -> None:
    """One event for a decision, none for a repeated response, one for closing."""
    who = desk.account()
    cbid = desk.sandbox_buyer(who, "sess_a", ZIP)
    ack_id = desk.acknowledge(who, NOTICE, "order 1", cbid)
    refused = desk.clear(who, order(ack_id, cbid, "another order", ZIP))
    granted = desk.clear(who, order(ack_id, cbid, "order 1", ZIP))
    again = desk.clear(who, order(ack_id, cbid, "order 1", ZIP))
    assert (refused.cleared, granted.cleared, again.clearance_id) == (
        False,
        True,
        granted.clearance_id,
    )
    found = [event for event in events_of(desk, who) if event[0].startswith("clearance.")]
    assert found == [
        ("clearance.created", {"clearance_id": c.clearance_id}) for c in (refused, granted)
    ]
    desk.fulfil(who, granted.clearance_id, carrier="A carrier", adult_signature_obtained=True)
    closed = ("clearance.closed", {"clearance_id": granted.clearance_id})
    assert events_of(desk, who)[-1] == closed
    with suppress(CountersignError):
        desk.fulfil(who, granted.clearance_id, carrier="A carrier")
    assert events_of(desk, who).count(closed) == 1


def test_a_published_notice_is_reported_to_every_account_in_both_modes(desk: Desk) -> None:
    """Once; a review or a withdrawal is not a publication."""
    who = desk.account()
    live = in_mode(who, Mode.LIVE)
    desk.publish(SIGNED_FOR.format(version="2026-02-01"))
    desk.withdraw("of-this-test", "2026-02-01")
    expected = ("notice.published", {"notice_id": "of-this-test", "notice_version": "2026-02-01"})
    assert events_of(desk, who) == [expected]
    assert events_of(desk, live) == [expected]


def test_only_an_account_that_has_cleared_a_buyer_hears_of_it(desk: Desk) -> None:
    """Another vendor verified it, this one granted an order: both learn that it is revoked."""
    verifier, clearer, bystander = (desk.account(Mode.LIVE) for _ in range(3))
    cbid = desk.live_buyer(verifier, ZIP)
    verified_by(desk, verifier, cbid)
    desk.publish(SIGNED_FOR.format(version="2026-03-01"))
    ack_id = desk.acknowledge(clearer, "of-this-test", "order 1", cbid)
    assert desk.clear(clearer, order(ack_id, cbid, "order 1", ZIP)).cleared
    asked = desk.acknowledge(bystander, "of-this-test", "order 1", cbid)
    assert not desk.clear(bystander, order(asked, cbid, "order 1", "10001")).cleared
    desk.revoke(cbid)
    revoked = ("buyer.revoked", {"cbid": cbid})
    assert revoked in events_of(desk, verifier)
    assert revoked in events_of(desk, clearer)
    assert of_buyers(desk, bystander) == []
    assert of_buyers(desk, in_mode(clearer, Mode.TEST)) == []


def test_no_event_contains_personal_data(desk: Desk) -> None:
    """Identifiers made here, and the name of a notice: the only things an event can say."""
    who = desk.account()
    cbid = desk.sandbox_buyer(who, "sess_of_Ann_Example", ZIP)
    ack_id = desk.acknowledge(who, NOTICE, "cart-of-ann@example.com", cbid)
    desk.clear(who, order(ack_id, cbid, "cart-of-ann@example.com", ZIP))
    desk.erase(ack_id)
    for type_, data in events_of(desk, who):
        (value,) = data.values()
        assert value.split("_")[0] in {"cbid", "ack", "clr"}, type_
        assert not {"ann", "JD", ZIP, "203.0.113.7"} & set(value.split("-"))


@pytest.fixture
def refusing(desk: Desk) -> Iterator[Desk]:
    """Give the desk while its database refuses every event."""
    engine = _engine(desk.deployment)
    postgres_ = engine.dialect.name == "postgresql"
    make = [
        """CREATE FUNCTION no_events() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN RAISE EXCEPTION 'no events'; END $$""",
        """CREATE TRIGGER no_events BEFORE INSERT ON events
           FOR EACH ROW EXECUTE FUNCTION no_events()""",
    ]
    if not postgres_:
        make = [
            """CREATE TRIGGER no_events BEFORE INSERT ON events
               BEGIN SELECT RAISE(ABORT, 'no events'); END"""
        ]
    unmake = ["DROP TRIGGER no_events ON events", "DROP FUNCTION no_events()"]
    _execute(engine, make)
    try:
        yield desk
    finally:
        _execute(engine, unmake if postgres_ else ["DROP TRIGGER no_events"])
        engine.dispose()


def _engine(deployment: Deployment) -> Engine:
    settings = deployment.settings
    return open_engine(database_url(settings.database_url, settings.data_dir), Purpose.WRITE)


def _execute(engine: Engine, statements: Sequence[str]) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def _rows(desk: Desk) -> dict[str, list[Any]]:
    tables = ("records", "buyers", "clearances", "fulfilments", "erasures", "notice_versions")
    engine = _engine(desk.deployment)
    with engine.connect() as connection:
        found = {
            table: sorted(map(repr, connection.exec_driver_sql(f"SELECT * FROM {table}")))  # noqa: S608 - our own names
            for table in tables
        }
    engine.dispose()
    return found


def test_without_its_event_no_act_is_written(desk: Desk, request: pytest.FixtureRequest) -> None:
    """One transaction: if the event cannot be written, neither is the act."""
    who = desk.account()
    cbid = desk.sandbox_buyer(who, "sess_a", ZIP)
    ack_id = desk.acknowledge(who, NOTICE, "order 1", cbid)
    other = desk.acknowledge(who, NOTICE, "order 2", cbid)
    granted = desk.clear(who, order(other, cbid, "order 2", ZIP))
    desk.clock.advance(VALIDITY)
    before, heard = _rows(desk), events_of(desk, who)
    request.getfixturevalue("refusing")
    now = datetime.now(tz=UTC)
    for act in (
        lambda: desk.sandbox_buyer(who, "sess_b", ZIP),
        lambda: desk.acknowledge(who, NOTICE, "order 3", cbid),
        lambda: desk.clear(who, order(ack_id, cbid, "order 1", ZIP)),
        lambda: desk.fulfil(who, granted.clearance_id, adult_signature_obtained=True),
        lambda: desk.erase(ack_id),
        lambda: desk.revoke(cbid),
        lambda: desk.publish(SIGNED_FOR.format(version=f"{now:%Y-%m-%d}"), reviewed=False),
        lambda: sweep(desk),
    ):
        with pytest.raises(Exception, match=r".*"):
            act()
        assert _rows(desk) == before
    assert events_of(desk, who) == heard


def test_every_type_of_event_is_written_by_something() -> None:
    """The list of types promises nothing that does not happen."""
    source = Path(countersign.__file__).parent
    written = "".join(
        path.read_text(encoding="utf-8")
        for path in source.rglob("*.py")
        if path.parent.name != "sandbox" and path != source / "events/model.py"
    )
    of_status = {f"buyer.{one}" for one in BuyerStatus}
    of_status |= {f"checkout_session.{one}" for one in Status}
    others = [one.name for one in EventType if one not in of_status]
    assert [name for name in others if f"EventType.{name}" not in written] == []
