"""A clearance is granted if and only if the rules, stated once more, agree.

Histories are made at random: shops, notices, buyers, acknowledgments, orders, erasures and a clock
that moves. After every question, the decision and all its reasons are compared with the rules in
`restated`.
"""

from __future__ import annotations

import dataclasses
import itertools
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import UNSET

from countersign.base.errors import (
    Erased,
    FulfilmentContradicted,
    OrderNotRefused,
    OverrideNotAllowed,
    RateLimited,
)
from countersign.base.values import Mode
from countersign.core.access.key import Principal
from countersign.core.clearances.model import ClearanceRules
from countersign.core.clearances.schemas import ClearanceDecision
from countersign.core.dossiers.orders_sql import Within, find_order
from tests.clearances.desk import Desk, order
from tests.clearances.overriding import Shop as Overriding
from tests.clearances.restated import Asked, Initialed, Person, Refused, Shop, Text, World
from tests.http.backstage import notice_file
from tests.support.depth import drawn

pytestmark = pytest.mark.long

_numbers = itertools.count(1)
LONG_AGO = datetime(2020, 1, 1, 8, tzinfo=UTC)
ZONE = ZoneInfo("America/Los_Angeles")
YEAR = timedelta(days=365)

ZIPS = ["94110", "94111", "94112", "94113", "94114", "94115", "94110-1234", "00501"]
SESSIONS = ["cs_1", "cs_2"]
GOODS = [None, None, "accessory", "manufacturing_machine", "barrel", "firearm_accessory"]
PARTS = ["pending", "requires_input", "failed", "expired", "revoked"]
STEPS = [
    timedelta(seconds=1),
    timedelta(hours=1),
    timedelta(hours=23),
    timedelta(hours=25),
    timedelta(days=3),
    timedelta(days=8),
    timedelta(days=200),
]

zips = st.sampled_from(ZIPS)
sessions = st.sampled_from(SESSIONS)
indexes = st.integers(0, 6)
shop_numbers = st.integers(0, 1)


class Orders(RuleBasedStateMachine):
    """A generated history of two shops in one mode, and of one of them in the other."""

    desk: Desk

    @initialize(mode=st.sampled_from(["test", "live"]))
    def begin(self, mode: str) -> None:
        self.mode, self.other_mode = mode, "live" if mode == "test" else "test"
        self.world = World(now=self.desk.clock.now)
        self.notice_id = f"n-{next(_numbers)}"
        self.principals = [self.desk.account(Mode(mode)) for _ in range(2)]
        self.shops = [Shop(principal.account_id) for principal in self.principals]
        self.publications = itertools.count(1)
        self.granted: list[tuple[str, Initialed, Asked]] = []
        self.last: Asked | None = None
        self._publish({}, date(2020, 1, 1), reviewed=True)

    # --- what happens ---------------------------------------------------------------------------

    @rule(step=st.sampled_from(STEPS))
    def time_passes(self, step: timedelta) -> None:
        self._move(step)

    @rule(
        days=st.integers(-3, 3),
        reviewed=st.booleans(),
        barrels=st.booleans(),
        adult=st.booleans(),
    )
    def publish(self, *, days: int, reviewed: bool, barrels: bool, adult: bool) -> None:
        day = (self.desk.clock.now.astimezone(ZONE) + timedelta(days=days)).date()
        obligations: dict[str, Any] = {"adult": adult}
        if barrels:
            obligations["goods"] = ["barrel"]
        self._publish(obligations, day, reviewed=reviewed)

    @rule(number=indexes)
    def withdraw(self, number: int) -> None:
        text = self.world.texts[number % len(self.world.texts)]
        if not text.withdrawn:
            self.desk.withdraw(self.notice_id, text.version)
            text.withdrawn = True
            self._move(timedelta(seconds=1))

    @rule(
        shop=shop_numbers,
        age=st.sampled_from([timedelta(minutes=10), timedelta(days=7), timedelta(days=30)]),
        lifetime=st.sampled_from([timedelta(minutes=30), timedelta(hours=24), timedelta(days=7)]),
        required=st.booleans(),
    )
    def settle(self, shop: int, age: timedelta, lifetime: timedelta, *, required: bool) -> None:
        rules = ClearanceRules(
            acknowledgment_max_age=age, lifetime=lifetime, product_class_required=required
        )
        self.desk.rules(self.principals[shop], rules)
        self.shops[shop].acknowledgment_max_age = age
        self.shops[shop].lifetime = lifetime
        self.shops[shop].class_required = required

    @precondition(lambda self: self.mode == "live")
    @rule(shop=shop_numbers, age=st.sampled_from([18, 21]))
    def ask_for_an_age(self, shop: int, age: int) -> None:
        self.desk.verification_rules(self.principals[shop], minimum_age=age)
        self.shops[shop].minimum_age = age

    @rule(shop=shop_numbers, code=zips, age=st.sampled_from([18, 21]), days=st.integers(1, 365))
    def verify(self, shop: int, code: str, age: int, days: int) -> None:
        who, own = self.principals[shop], self.shops[shop]
        if self.mode == "live":
            lasts = timedelta(days=days)
            cbid = self.desk.live_buyer(who, code, age=age, lasts=lasts)
            end = self.world.now + lasts
            person = Person(cbid, "live", None, verified_until=end, verified_by=own, age=age)
        else:
            cbid = self.desk.sandbox_buyer(who, f"vs_{next(_numbers)}", code)
            person = Person(cbid, "test", own, verified_until=self.world.now + YEAR)
            self.world.guesses[own.name, cbid, False] = {code[:5]: self.world.now}
        person.zips.add(code[:5])
        self.world.people[cbid] = person

    @precondition(lambda self: self.mode == "test")
    @rule(shop=shop_numbers, part=st.sampled_from(PARTS))
    def play(self, shop: int, part: str) -> None:
        who, own = self.principals[shop], self.shops[shop]
        cbid = self.desk.sandbox_buyer(who, f"test_{part}", "94110")
        # A sandbox buyer that was erased comes back by the same call.
        known = self.world.people.get(cbid)
        if known is None or known.forgotten:
            person = Person(cbid, "test", own, part=part, zips={"94110"})
            person.revoked = part == "revoked"
            if part in {"expired", "revoked"}:
                # It was verified before, and its present state is simulated.
                person.verified_until = self.world.now
            self.world.people[cbid] = person
            self.world.guesses[own.name, cbid, False] = {"94110": self.world.now}

    @precondition(lambda self: self.mode == "test")
    @rule(shop=shop_numbers)
    def verify_without_a_zip(self, shop: int) -> None:
        who, own = self.principals[shop], self.shops[shop]
        cbid = self.desk.sandbox_buyer(who, f"vs_{next(_numbers)}", None)
        self.world.people[cbid] = Person(cbid, "test", own, verified_until=self.world.now + YEAR)

    @rule(number=indexes)
    def revoke(self, number: int) -> None:
        person = self._person(number)
        if person and not person.forgotten and not person.revoked:
            self.desk.revoke(person.cbid)
            person.revoked = True

    @rule(number=indexes)
    def reinstate(self, number: int) -> None:
        person = self._person(number)
        if person and person.revoked and person.part == "verified":
            self.desk.reinstate(person.cbid)
            person.revoked = False

    @rule(number=indexes)
    def forget(self, number: int) -> None:
        person = self._person(number)
        if person and not person.forgotten and not person.revoked:
            self.desk.erase(person.cbid)
            person.forgotten = True
            for ack in self.world.initialed.values():
                if ack.bound == person.cbid:
                    ack.forget_use()

    @rule(
        shop=shop_numbers,
        session=st.one_of(st.none(), sessions),
        buyer=st.one_of(st.none(), indexes),
        crossed=st.booleans(),
    )
    def acknowledge(
        self, shop: int, session: str | None, buyer: int | None, *, crossed: bool
    ) -> None:
        """Now and then in the other mode of the same shop."""
        mode = self.other_mode if crossed and session == SESSIONS[1] else self.mode
        text = self.world.in_force(mode)
        if text is None:
            return
        person = None if buyer is None else self._person(buyer)
        named = person.cbid if person else None
        who = _in_mode(self.principals[shop], mode)
        ack_id = self.desk.acknowledge(who, self.notice_id, session, named)
        self.world.initialed[ack_id] = Initialed(
            ack_id, self.shops[shop], mode, self.world.now, text, session, named
        )

    @rule(number=indexes)
    def erase(self, number: int) -> None:
        ack = self._ack(number)
        if ack and not ack.erased:
            self.desk.erase(ack.ack_id)
            ack.erased, ack.named = True, None
            ack.forget_use()
            for one in self.world.refused:
                one.erased |= self.world.acknowledgment(one.asked) is ack

    # --- what is asked --------------------------------------------------------------------------

    @rule(
        stranger=st.sampled_from([False, False, False, True]),
        ack=indexes,
        buyer=indexes,
        session=st.one_of(st.none(), sessions),
        code=st.one_of(st.none(), zips),
        goods=st.sampled_from(GOODS),
        address=st.one_of(st.none(), st.none(), zips),
    )
    def ask(
        self,
        *,
        stranger: bool,
        ack: int,
        buyer: int,
        session: str | None,
        code: str | None,
        goods: str | None,
        address: str | None,
    ) -> None:
        """Often what fits: the session of the acknowledgment, the ZIP code of the buyer."""
        initialed, person = self._ack(ack), self._person(buyer)
        shop = self.shops.index(initialed.shop) if initialed else 0
        if stranger:
            shop = 1 - shop
        if initialed and session is None:
            session = initialed.session
        if person and code is None:
            code = next(iter(person.zips), None)
        asked = Asked(
            shop=self.shops[shop],
            mode=self.mode,
            ack_id=initialed.ack_id if initialed else "ack_unheard_of",
            cbid=person.cbid if person else "cbid_unheard_of",
            session=session or SESSIONS[0],
            zip=code or ZIPS[0],
            goods=goods,
            address_zip=address,
        )
        self._compare(asked)

    @rule(
        shop=shop_numbers,
        verified_at=shop_numbers,
        age=st.sampled_from([18, 21]),
        days=st.sampled_from([1, 5, 300]),
        code=zips,
        goods=st.sampled_from(GOODS[:4]),
        named=st.booleans(),
        by_hand=st.sampled_from(["", "", "overridden", "reinstated"]),
    )
    def buy(
        self,
        *,
        shop: int,
        verified_at: int,
        age: int,
        days: int,
        code: str,
        goods: str | None,
        named: bool,
        by_hand: str,
    ) -> None:
        """The acts of a careful vendor, from beginning to end; maybe the buyer was revoked."""
        self.verify(shop=verified_at, code=code, age=age, days=days)
        cbid = [*self.world.people][-1]
        text = self.world.in_force(self.mode)
        if text is None:
            return
        who = self.principals[shop]
        ack_id = self.desk.acknowledge(who, self.notice_id, "cs_1", cbid if named else None)
        self.world.initialed[ack_id] = Initialed(
            ack_id,
            self.shops[shop],
            self.mode,
            self.world.now,
            text,
            "cs_1",
            cbid if named else None,
        )
        own = self.shops[shop]
        asked = Asked(own, self.mode, ack_id, cbid, "cs_1", code, goods, None)
        before = len(self.world.refused)
        if by_hand:
            self.revoke(number=0)
        self._compare(asked)
        if by_hand and len(self.world.refused) > before:
            self.override(number=0, again=True)
        if by_hand == "reinstated":
            self.reinstate(number=0)
            self._compare(dataclasses.replace(asked, zip=ZIPS[-1]))
            self._compare(asked)

    @precondition(lambda self: self.last is not None)
    @rule()
    def ask_again(self) -> None:
        assert self.last
        self._compare(self.last)

    @precondition(lambda self: self.last is not None)
    @rule(codes=st.lists(zips, min_size=2, max_size=8, unique=True))
    def guess(self, codes: list[str]) -> None:
        assert self.last
        for code in codes:
            self._compare(dataclasses.replace(self.last, zip=code))

    @precondition(lambda self: self.granted)
    @rule(number=indexes, signed=st.booleans())
    def fulfil(self, number: int, *, signed: bool) -> None:
        clearance_id, ack, asked = self.granted[-1 - number % len(self.granted)]
        who = self.principals[self.shops.index(ack.shop)]
        given: dict[str, Any] = {"adult_signature_obtained": signed}
        if ack.erased:
            with pytest.raises(Erased):
                self.desk.fulfil(who, clearance_id, carrier="UPS", **given)
        else:
            given["carrier"] = "UPS"
        if ack.signed and not signed:
            with pytest.raises(FulfilmentContradicted):
                self.desk.fulfil(who, clearance_id, **given)
            return
        receipt = self.desk.fulfil(who, clearance_id, **given)
        ack.shipped_under = ack.shipped_under or clearance_id
        ack.sent.add(clearance_id)
        ack.signed = ack.signed or signed
        ack.closed = ack.signed or not ack.text.needs_adult_signature
        assert (receipt.closed_at is not None) == ack.closed
        self._compare(asked)

    @precondition(lambda self: self.world.refused)
    @rule(number=indexes, again=st.booleans())
    def override(self, number: int, *, again: bool) -> None:
        """A person overrides a refusal, which may have been long ago; most ask again at once."""
        one = self.world.refused[-1 - number % len(self.world.refused)]
        who = self.principals[self.shops.index(one.asked.shop)]
        shop = Overriding(self.desk, who, one.clearance_id, None)
        expected: type[Exception] | None = None
        if one.erased:
            expected = Erased
        elif one.is_never_overridden:
            expected = OverrideNotAllowed
        elif not one.override_id and shop.shown().state in {"cleared", "shipped", "delivered"}:
            expected = OrderNotRefused
        elif not one.override_id and not {*self.world.reasons(one.asked)} <= {*one.reasons}:
            expected = OverrideNotAllowed  # as it would be refused now
        if expected is not None:
            with pytest.raises(expected):
                shop.override(shop.person())
            return
        made = shop.override(shop.person())
        assert (made.cleared, [*made.reasons]) == (False, one.reasons)
        assert made.override_id == (one.override_id or made.override_id)
        if not one.override_id:
            one.override_id, one.at = str(made.override_id), self.world.now
            one.obligations = made.obligations
            self.world.overridden(one)
        ack = self.world.acknowledgment(one.asked)
        types = [obligation["type"] for obligation in made.obligations]
        if ack:
            assert types == ["adult_signature"] * ack.text.needs_adult_signature + ["compared"]
        assert (types[-1], made.obligations) == ("compared", one.obligations)
        self._move(timedelta(seconds=1))
        if again:
            self._compare(one.asked)

    def _compare(self, asked: Asked) -> None:
        self.last = asked
        self._move(timedelta(milliseconds=1))  # within one, no decision is the newest
        who = self.principals[self.shops.index(asked.shop)]
        address = None if asked.address_zip is None else {"postal_code": asked.address_zip}
        sent = order(
            asked.ack_id,
            asked.cbid,
            asked.session,
            asked.zip,
            product_class=asked.goods,
            shipping_address=address,
        )
        if not self.world.shipped(asked) and self.world.too_many_guesses(asked):
            with pytest.raises(RateLimited):
                self.desk.clear(who, sent)
            return
        expected = self.world.reasons(asked)
        answer = self.desk.clear(who, sent)
        assert [*answer.reasons] == expected
        assert answer.cleared == (expected == [])
        self.world.after(asked, expected)
        if not answer.cleared:
            assert (answer.token, answer.expires_at) == (None, None)
            self._compare_refused(asked, answer)
            return
        ack = self.world.initialed[asked.ack_id]
        assert answer.already_shipped == self.world.shipped(asked)
        if answer.already_shipped:
            assert (answer.clearance_id, answer.token) == (ack.shipped_under, None)
            return
        if ack.order is not None and self.world.now < ack.valid_until:
            assert answer.clearance_id == ack.clearance_id
        else:
            assert answer.clearance_id != ack.clearance_id
            ack.valid_until = self.world.valid_until(asked)
            ack.order, ack.clearance_id = asked.order, answer.clearance_id
            ack.decided(answer.clearance_id, cleared=True)
            self.granted.append((answer.clearance_id, ack, asked))
        assert answer.expires_at == ack.valid_until
        assert answer.token
        types = [obligation["type"] for obligation in answer.obligations]
        assert types == ["adult_signature"] * ack.text.needs_adult_signature + ["compared"]

    def _compare_refused(self, asked: Asked, answer: ClearanceDecision) -> None:
        made = self.world.override_of(asked, [*answer.reasons])
        if made is not None:
            assert (answer.overridden, answer.override_id) == (True, made.override_id)
            assert (answer.clearance_id, answer.obligations) == (
                made.clearance_id,
                made.obligations,
            )
            return
        assert (answer.overridden, answer.obligations) == (UNSET, ())
        self.world.refused.append(Refused(answer.clearance_id, asked, [*answer.reasons]))
        ack = self.world.acknowledgment(asked)
        if ack is not None:
            ack.decided(answer.clearance_id, cleared=False)

    @invariant()
    def the_dossier_tells_the_override(self) -> None:
        """Of each acknowledgment: one decision, that of the shipment if there is one."""
        for ack in [*self.world.initialed.values()][-2:] if self.world.refused else []:
            who = _in_mode(self.principals[self.shops.index(ack.shop)], ack.mode)
            read = self.desk.deployment.database.read
            found = self.desk.do(read(find_order, Within(who), ack.ack_id))
            shown = max(ack.sent, default=ack.told)
            of_it = [one.override_id for one in self.world.refused if one.clearance_id == shown]
            expected = {shown, *of_it} - {""}
            assert {one.id for one in found if one.type in {"clearance", "override"}} == expected

    # --- the rest -------------------------------------------------------------------------------

    def _publish(self, obligations: dict[str, Any], day: date, *, reviewed: bool) -> None:
        number = next(self.publications)
        file = notice_file(self.notice_id, str(number), effective_from=day.isoformat())
        goods = obligations.get("goods")
        if goods is not None:
            file += f'[[obligations]]\ntype = "product_classes"\nsufficient_for = {goods}\n'
        if obligations.get("adult"):
            file += '[[obligations]]\ntype = "adult_signature"\n'
        self.desk.publish(file, reviewed=reviewed)
        begins = datetime(day.year, day.month, day.day, tzinfo=ZONE)
        text = Text(str(number), begins, number, reviewed)
        if goods is not None:
            text.suffices_for = set(goods)
        text.needs_adult_signature = bool(obligations.get("adult"))
        self.world.texts.append(text)
        self._move(timedelta(seconds=1))

    def _move(self, step: timedelta) -> None:
        self.desk.clock.advance(step)
        self.world.now = self.desk.clock.now

    def _person(self, number: int) -> Person | None:
        people = [*self.world.people.values()]
        return people[-1 - number % len(people)] if people else None

    def _ack(self, number: int) -> Initialed | None:
        acks = [*self.world.initialed.values()]
        return acks[-1 - number % len(acks)] if acks else None


def _in_mode(principal: Principal, mode: str) -> Principal:
    return Principal(
        key_id=principal.key_id,
        account_id=principal.account_id,
        mode=Mode(mode),
        scopes=principal.scopes,
        credential=principal.credential,
    )


@pytest.mark.timeout(300)
def test_an_order_is_cleared_if_and_only_if_the_restated_rules_agree(desk: Desk) -> None:
    """All reasons are the same too, in the same order, over generated histories."""

    class OnThisDesk(Orders):
        pass

    OnThisDesk.desk = desk
    run_state_machine_as_test(
        OnThisDesk,
        settings=settings(
            max_examples=drawn(40),
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[*HealthCheck],
        ),
    )
