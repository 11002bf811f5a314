"""Expiry: it is reported once, soon, and to the accounts that it concerns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest
from sqlalchemy import Connection, text

from countersign.base.values import Mode
from countersign.core.buyers import expiry
from countersign.core.buyers.expiry import write_expiries
from countersign.core.buyers.model import REMINDED_BEFORE, VALIDITY, BuyerStatus
from countersign.core.buyers.sql import buyers_by_cbid, write_buyer, write_status_event
from countersign.operate.bootstrap import open_deployment
from tests.clearances.desk import Desk
from tests.webhooks.telling import ZIP, events_of, of_buyers, sweep, verified_by


def test_an_account_that_knows_a_person_by_another_identifier_gets_that_one(desk: Desk) -> None:
    """Two identifiers turned out to be one person: no vendor learns the other's."""
    one, other = desk.account(Mode.LIVE), desk.account(Mode.LIVE)
    older, newer = desk.live_buyer(one, ZIP), desk.live_buyer(other, ZIP)
    verified_by(desk, one, older)
    _join(desk, newer, older)
    desk.revoke(newer)
    assert of_buyers(desk, one) == [("buyer.revoked", {"cbid": older})]
    assert of_buyers(desk, other) == [("buyer.revoked", {"cbid": newer})]
    desk.reinstate(older)
    desk.clock.advance(VALIDITY + timedelta(days=1))
    sweep(desk)
    assert of_buyers(desk, one)[-1] == ("buyer.expired", {"cbid": older})
    assert of_buyers(desk, other)[-1] == ("buyer.expired", {"cbid": newer})
    assert sweep(desk) == 0


def test_the_sweep_reports_an_expiry_once_and_not_before(desk: Desk) -> None:
    """To the second, and again only after a new verification."""
    sweep(desk)
    who = desk.account()
    cbid = desk.sandbox_buyer(who, "sess_a", ZIP)
    verified, *over = [
        (f"buyer.{what}", {"cbid": cbid}) for what in ("verified", "expiring", "expired")
    ]
    desk.clock.advance(VALIDITY - timedelta(seconds=1))
    sweep(desk)
    assert events_of(desk, who) == [verified, over[0]]
    desk.clock.advance(timedelta(seconds=1))
    assert sweep(desk) >= 1
    assert sweep(desk) == 0
    assert events_of(desk, who) == [verified, *over]
    _verify_again(desk, cbid)
    assert events_of(desk, who) == [verified, *over, verified]
    desk.clock.advance(VALIDITY)
    sweep(desk)
    assert events_of(desk, who) == [verified, *over, verified, *over]


def _join(desk: Desk, newer: str, older: str) -> None:
    def act(connection: Connection, batch: Sequence[None]) -> list[None]:
        statement = text("UPDATE buyers SET same_as = :older WHERE cbid = :newer")
        connection.execute(statement, {"older": older, "newer": newer})
        return [None] * len(batch)

    desk.do(desk.deployment.database.write_batched(act, None))


def _verify_again(desk: Desk, cbid: str, validity: timedelta = VALIDITY) -> None:
    def act(connection: Connection, batch: Sequence[None]) -> list[None]:
        before = buyers_by_cbid(connection, [cbid])[cbid]
        now = desk.clock.now
        after = msgspec.structs.replace(
            before, status=BuyerStatus.VERIFIED, verified_at=now, expires_at=now + validity
        )
        write_buyer(connection, before, after)
        write_status_event(connection, after, now)
        return [None] * len(batch)

    desk.do(desk.deployment.database.write_batched(act, None))


def test_a_failed_attempt_after_an_expiry_does_not_report_it_again(desk: Desk) -> None:
    """An event stays the last one while nothing has changed about it."""
    who = desk.account()
    cbid = desk.sandbox_buyer(who, "sess_a", ZIP)
    desk.clock.advance(VALIDITY)
    sweep(desk)

    def act(connection: Connection, batch: Sequence[None]) -> list[None]:
        before = buyers_by_cbid(connection, [cbid])[cbid]
        write_buyer(connection, before, msgspec.structs.replace(before, same_as=None, proofs=()))
        write_buyer(connection, before, msgspec.structs.replace(before, simulated=False))
        return [None] * len(batch)

    desk.do(desk.deployment.database.write_batched(act, None))
    assert sweep(desk) == 0
    assert events_of(desk, who).count(("buyer.expired", {"cbid": cbid})) == 1


def test_a_revoked_buyer_does_not_expire(desk: Desk) -> None:
    """Time can take nothing away; reinstated late, it is expired at once."""
    who = desk.account()
    cbid = desk.sandbox_buyer(who, "sess_a", ZIP)
    desk.revoke(cbid)
    desk.clock.advance(VALIDITY + timedelta(days=1))
    sweep(desk)
    desk.reinstate(cbid)
    sweep(desk)
    types = ["buyer.verified", "buyer.revoked", "buyer.expired"]
    assert events_of(desk, who) == [(type_, {"cbid": cbid}) for type_ in types]


def test_an_accounts_sandbox_can_be_swept_ahead_of_time(desk: Desk) -> None:
    """By its own clock: only its test buyers; later sweeps find nothing."""
    sweep(desk)
    ahead, other = desk.account(), desk.account()
    cbid = desk.sandbox_buyer(ahead, "sess_a", ZIP)
    others = desk.sandbox_buyer(other, "sess_a", ZIP)

    def act(connection: Connection, batch: Sequence[None]) -> list[int]:
        now = desk.clock.now
        return [
            write_expiries(connection, ahead.account_id, by=now + VALIDITY, at=now, limit=10)
            for _ in batch
        ]

    # The reminder, and the expiry itself.
    assert desk.do(desk.deployment.database.write_batched(act, None)) == 2
    expired = ("buyer.expired", {"cbid": cbid})
    assert events_of(desk, ahead)[-1] == expired
    assert [event[0] for event in events_of(desk, other)] == ["buyer.verified"]
    desk.clock.advance(VALIDITY)
    sweep(desk)
    assert events_of(desk, ahead).count(expired) == 1
    assert events_of(desk, other)[-1] == ("buyer.expired", {"cbid": others})


def test_two_servers_that_sweep_at_once_report_each_expiry_once(desk: Desk) -> None:
    """They take different buyers, or one of them finds nothing left."""
    sweep(desk)
    who = desk.account()
    cbids = {desk.sandbox_buyer(who, f"sess_{n}", ZIP) for n in range(30)}
    desk.clock.advance(VALIDITY)

    async def scenario() -> None:
        deployment = desk.deployment
        async with open_deployment(deployment.settings, clock=desk.clock) as second:
            await asyncio.gather(
                *(expiry.sweep(one.buyers) for one in (deployment, second) for _ in range(3))
            )
            await expiry.sweep(second.buyers)

    desk.do(scenario())
    expired = [data["cbid"] for type_, data in events_of(desk, who) if type_ == "buyer.expired"]
    assert sorted(expired) == sorted(cbids)


def test_a_reminder_comes_once_thirty_days_before_the_end(desk: Desk) -> None:
    """To the second; and once more for the date that a new verification ends on."""
    sweep(desk)
    who = desk.account()
    cbid = desk.sandbox_buyer(who, "sess_a", ZIP)
    verified, expiring = ("buyer.verified", {"cbid": cbid}), ("buyer.expiring", {"cbid": cbid})
    desk.clock.advance(VALIDITY - REMINDED_BEFORE - timedelta(seconds=1))
    sweep(desk)
    assert events_of(desk, who) == [verified]
    desk.clock.advance(timedelta(seconds=1))
    assert sweep(desk) >= 1
    assert sweep(desk) == 0
    assert events_of(desk, who) == [verified, expiring]
    _verify_again(desk, cbid)
    desk.clock.advance(REMINDED_BEFORE)
    sweep(desk)
    assert events_of(desk, who) == [verified, expiring, verified]
    desk.clock.advance(VALIDITY - 2 * REMINDED_BEFORE)
    sweep(desk)
    assert events_of(desk, who) == [verified, expiring, verified, expiring]


def test_a_revoked_buyer_is_not_reminded(desk: Desk) -> None:
    """Unless reinstated before the end; accounts already reminded are not reminded again."""
    revoked, reminded = desk.account(), desk.account()
    first = desk.sandbox_buyer(revoked, "sess_a", ZIP)
    second = desk.sandbox_buyer(reminded, "sess_a", ZIP)
    desk.revoke(first)
    desk.clock.advance(VALIDITY - REMINDED_BEFORE)
    sweep(desk)
    desk.revoke(second)
    desk.reinstate(second)
    assert sweep(desk) == 0
    assert [type_ for type_, _ in events_of(desk, revoked)] == ["buyer.verified", "buyer.revoked"]
    desk.reinstate(first)
    sweep(desk)
    assert events_of(desk, revoked)[-1] == ("buyer.expiring", {"cbid": first})
    types = [type_ for type_, _ in events_of(desk, reminded)]
    assert types == ["buyer.verified", "buyer.expiring", "buyer.revoked", "buyer.verified"]


def test_no_reminder_follows_an_expiry(desk: Desk) -> None:
    """A buyer who is reinstated after the end is expired at once."""
    who = desk.account()
    cbid = desk.sandbox_buyer(who, "sess_a", ZIP)
    desk.revoke(cbid)
    desk.clock.advance(VALIDITY)
    desk.reinstate(cbid)
    sweep(desk)
    assert events_of(desk, who)[-1] == ("buyer.expired", {"cbid": cbid})
    assert not [type_ for type_, _ in events_of(desk, who) if type_ == "buyer.expiring"]


def test_a_short_verification_has_no_reminder(desk: Desk) -> None:
    """It would come with the verification itself."""
    who = desk.account()
    cbid = desk.sandbox_buyer(who, "sess_a", ZIP)
    _verify_again(desk, cbid, REMINDED_BEFORE)
    desk.clock.advance(REMINDED_BEFORE)
    sweep(desk)
    types = [type_ for type_, _ in events_of(desk, who)]
    assert types == ["buyer.verified", "buyer.verified", "buyer.expired"]


def test_a_buyer_that_was_joined_to_another_is_not_reminded(desk: Desk) -> None:
    """The account gets the reminder of the person, under the identifier that it knows."""
    one, other = desk.account(Mode.LIVE), desk.account(Mode.LIVE)
    older, newer = desk.live_buyer(one, ZIP), desk.live_buyer(other, ZIP)
    verified_by(desk, one, older)
    _join(desk, newer, older)
    desk.clock.advance(VALIDITY - timedelta(days=1))
    sweep(desk)
    assert of_buyers(desk, one) == [("buyer.expiring", {"cbid": older})]
    assert of_buyers(desk, other) == [("buyer.expiring", {"cbid": newer})]


def test_both_events_of_a_long_pause_come_in_order(desk: Desk) -> None:
    """Also if more buyers are due than one transaction writes, and two servers write them."""
    sweep(desk)
    who = desk.account()
    cbids = {desk.sandbox_buyer(who, f"sess_{n}", ZIP) for n in range(30)}
    desk.clock.advance(VALIDITY)

    async def scenario() -> None:
        deployment = desk.deployment
        async with open_deployment(deployment.settings, clock=desk.clock) as second:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(expiry, "CHUNK", 7)
                await asyncio.gather(
                    *(expiry.sweep(one.buyers) for one in (deployment, second) for _ in range(3))
                )
            await expiry.sweep(second.buyers)

    desk.do(scenario())
    for cbid in cbids:
        types = [type_ for type_, data in events_of(desk, who) if data["cbid"] == cbid]
        assert types == ["buyer.verified", "buyer.expiring", "buyer.expired"]
