"""An order without an acknowledgment is cleared if and only if the rules, stated once more, agree.

Two laws are published again and again, each with other classes, goods that its notice suffices for,
and exemptions. Nothing that no rule names is waived, and no barrel is ever cleared.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import UNSET, convert

from countersign.core.clearances.read import get_clearance
from countersign.core.clearances.schemas import ClearanceRequest
from tests.clearances.desk import Desk, MovingClock, open_desk
from tests.clearances.restated import DAY, Asked, Person, Shop, World
from tests.http.backstage import notice_file
from tests.http.calls import SHIPPED_NOTICE
from tests.support.depth import drawn
from tests.support.engines import ENGINES, Once, engine_server

pytestmark = pytest.mark.long

_numbers = itertools.count(1)
CLASSES = ["accessory", "firearm_accessory", "barrel", "digital"]
ALWAYS_KNOWN = {"accessory", "firearm_accessory", "barrel"}
FACTS = ["number", "expires_on", "evidence_reference"]
WAIVED = ["notice", "age", "address"]
KINDS = ["licensed_dealer", "law_enforcement"]
ZIPS = {"94110": "CA", "89101": "NV"}
INVISIBLE = {None, " ", "\u200b"}
PARTS = ["pending", "requires_input", "failed", "expired", "revoked"]

some_classes = st.lists(st.sampled_from(CLASSES), min_size=1, max_size=3, unique=True)
indexes = st.integers(0, 3)
exemptions = st.fixed_dictionaries(
    {
        "kind": st.sampled_from([*KINDS[:1] * 5, KINDS[1], None]),
        "number": st.sampled_from([*["1-23"] * 8, "9-87", *INVISIBLE]),
        "evidence_reference": st.sampled_from([*["doc-1"] * 9, *INVISIBLE]),
        "days": st.sampled_from([None, -1, 0, 0, 1, 30, 30, 30]),
    }
)
some_needs = st.lists(st.sampled_from(FACTS), min_size=1, unique=True)
some_exempts = st.one_of(
    *[st.fixed_dictionaries({KINDS[0]: st.tuples(some_needs, st.just(["notice"]))})] * 3,
    st.dictionaries(
        st.sampled_from(KINDS),
        st.tuples(some_needs, st.sampled_from([["notice"], WAIVED, WAIVED[1:]])),
    ),
)


@dataclass
class Law:
    """The notice in force, and its rule."""

    id: str
    version: str = ""
    names: set[str] = field(default_factory=set)
    state: str = "CA"
    suffices_for: set[str] = field(default_factory=set)
    signature: bool = False
    exempts: dict[str, tuple[set[str], set[str]]] = field(default_factory=dict)
    """By kind: the facts that it needs, and what it waives."""


@dataclass
class Bound:
    """The order that was cleared in a session."""

    order: object
    cbid: str
    clearance_id: str
    valid_until: datetime
    shipped_under: str = ""


class ExemptOrders(RuleBasedStateMachine):
    """A generated history of a vendor who asserts exemptions, under two laws."""

    desk: Desk

    @initialize()
    def begin(self) -> None:
        self.who, self.world = self.desk.account(), World(now=self.desk.clock.now)
        self.shop = Shop(self.who.account_id)
        self.laws = {"a": Law(SHIPPED_NOTICE), "b": Law("another-law")}
        self.sessions: dict[str, Bound] = {}
        self.last: tuple[Any, ...] | None = None
        # A class that a rule named once is no typing error.
        for names in (["digital"], ["accessory"]):
            for law in "ab":
                self.publish(
                    law=law, names=names, suffices=["accessory"], signature=False, state="CA",
                    exempts={KINDS[0]: (["number"], ["notice"])},
                )  # fmt: skip
        self.verify(code="94110")

    @rule(
        law=st.sampled_from("ab"),
        names=some_classes,
        suffices=some_classes,
        signature=st.booleans(),
        state=st.sampled_from(["CA", "CA", "NV"]),
        exempts=some_exempts,
    )
    def publish(
        self,
        *,
        law: str,
        names: list[str],
        suffices: list[str],
        signature: bool,
        state: str,
        exempts: dict[str, tuple[list[str], list[str]]],
    ) -> None:
        version = f"v{next(_numbers)}"
        table = f'[[obligations]]\ntype = "product_classes"\nsufficient_for = {suffices}\n'
        table += '[[obligations]]\ntype = "adult_signature"\n' if signature else ""
        table += (
            f'[applies_to]\nversion = "{version}"\nsource = "a law"\nproduct_classes = {names}\n'
        )
        table += f'delivered_to = ["{state}"]\nresidents_of = []\nidentity_checks = ["address"]\n'
        for kind, (needs, waives) in exempts.items():
            table += f'[[applies_to.exemptions]]\nkind = "{kind}"\nneeds = {needs}\n'
            table += f'waives = {waives}\nsource = "section 2"\n'
        now = self.laws[law]
        self.desk.publish(
            notice_file(now.id, version, effective_from="2030-01-01", applies_to=table),
            reviewed=False,
        )
        self.laws[law] = Law(
            now.id, version, {*names}, state, {*suffices}, signature,
            {kind: ({*needs}, {*waives}) for kind, (needs, waives) in exempts.items()},
        )  # fmt: skip
        self.time_passes(step=timedelta(seconds=1))

    @rule(step=st.sampled_from([timedelta(hours=1), timedelta(hours=25), timedelta(days=3)]))
    def time_passes(self, *, step: timedelta) -> None:
        self.desk.clock.advance(step)
        self.world.now = self.desk.clock.now

    @rule(code=st.sampled_from([*ZIPS]))
    def verify(self, *, code: str) -> None:
        cbid = self.desk.sandbox_buyer(self.who, f"vs_{next(_numbers)}", code)
        until = self.world.now + timedelta(days=365)
        self.world.people[cbid] = Person(cbid, "test", self.shop, verified_until=until, zips={code})

    @rule(part=st.sampled_from(PARTS))
    def play(self, *, part: str) -> None:
        cbid = self.desk.sandbox_buyer(self.who, f"test_{part}", "94110")
        person = Person(cbid, "test", self.shop, part=part, zips={"94110"})
        person.revoked = part == "revoked"
        if part in {"expired", "revoked"}:
            person.verified_until = self.world.now
        self.world.people.setdefault(cbid, person)

    @rule(number=indexes)
    def revoke_or_reinstate(self, *, number: int) -> None:
        person = self._person(number)
        if person.part == "verified":
            (self.desk.reinstate if person.revoked else self.desk.revoke)(person.cbid)
            person.revoked = not person.revoked

    @rule(
        session=st.sampled_from(["cs_1", "cs_2", "cs_3", "new", "new"]),
        number=st.none() | indexes,
        code=st.none() | st.sampled_from([*ZIPS]),
        classes=st.just(["accessory"]) | some_classes,
        exemption=exemptions,
    )
    def ask(
        self,
        *,
        session: str,
        number: int | None,
        code: str | None,
        classes: list[str],
        exemption: dict[str, Any],
    ) -> None:
        """Often what fits: a verified buyer, and the ZIP code of this buyer."""
        session = f"cs_{next(_numbers)}" if session == "new" else session
        person = None if number == 3 else self._person(number or 0)
        code = code or (min(person.zips) if person else "94110")
        given = {name: value for name, value in exemption.items() if name != "days"}
        if exemption["days"] is not None:
            given["expires_on"] = (self.world.now + exemption["days"] * DAY).date().isoformat()
        cbid = person.cbid if person else "cbid_unheard_of"
        self._compare(session, cbid, code, classes, {"reason": "licensed dealer", **given})

    @rule(
        code=st.sampled_from([*ZIPS]),
        classes=st.just(["accessory"]) | some_classes,
        days=st.sampled_from([0, 1, 30]),
    )
    def buy(self, *, code: str, classes: list[str], days: int) -> None:
        """The acts of a careful vendor, from beginning to end."""
        self.verify(code=code)
        facts = {"number": "1-23", "evidence_reference": "doc-1", "days": days}
        self.ask(
            session="new",
            number=0,
            code=code,
            classes=classes,
            exemption={"kind": KINDS[0], **facts},
        )

    @precondition(lambda self: self.last is not None)
    @rule()
    def ask_again(self) -> None:
        assert self.last
        self._compare(*self.last)

    @precondition(lambda self: self.sessions)
    @rule(number=indexes)
    def fulfil(self, *, number: int) -> None:
        bound = [*self.sessions.values()][-1 - number % len(self.sessions)]
        self.desk.fulfil(self.who, bound.clearance_id, carrier="UPS")
        bound.shipped_under = bound.shipped_under or bound.clearance_id

    # --- the rules, once more -------------------------------------------------------------------

    def _asking(self, code: str, classes: list[str]) -> list[Law]:
        """The laws that ask for a notice: it names a class there, or nobody knows one."""
        known = ALWAYS_KNOWN.union(*(law.names for law in self.laws.values()))
        there = [law for law in self.laws.values() if law.state == ZIPS[code]]
        return [law for law in there if law.names & {*classes} or not {*classes} <= known]

    def _why_not_waived(self, law: Law, given: dict[str, Any]) -> str | None:
        if given["kind"] not in law.exempts:
            return "exemption_not_named"
        needs, waives = law.exempts[given["kind"]]
        if any(given.get(fact) in INVISIBLE for fact in needs):
            return "exemption_facts_missing"
        if given.get("expires_on", "9999") < self.world.now.astimezone(UTC).date().isoformat():
            return "exemption_expired"
        return None if "notice" in waives else "exemption_not_named"

    def _needs_one(self, code: str, classes: list[str], given: dict[str, Any]) -> str | None:
        asking = self._asking(code, classes)
        whys = {self._why_not_waived(law, given) for law in asking} or {"exemption_not_named"}
        order = ["exemption_expired", "exemption_facts_missing", "exemption_not_named"]
        return next((why for why in order if why in whys), None)

    def _is_sold(self, code: str, classes: list[str]) -> bool:
        """Whether some notice suffices for each class, and none that names it does not."""
        asking = self._asking(code, classes)
        return all(
            one != "barrel"
            and any(one in law.suffices_for for law in asking)
            and all(one in law.suffices_for for law in asking if one in law.names)
            for one in classes
        )

    def _reasons(
        self, session: str, cbid: str, code: str, classes: list[str], given: dict[str, Any]
    ) -> list[str]:
        against, bound = [], self.sessions.get(session)
        asked = Asked(self.shop, "test", "", cbid, session, code, None, None)
        person, needs_one = self.world.person(asked), self._needs_one(code, classes, given)
        if bound and bound.order != self._order(code, classes, given):
            against.append("acknowledgment_already_used")
        if needs_one is None and not self._is_sold(code, classes):
            against.append("notice_not_sufficient")
        wrong = self.world.standing(asked)
        if person is None:
            against += wrong
        if bound and bound.cbid != cbid:
            against.append("buyer_mismatch")
        if person is not None:
            against += wrong
            if self.world.zip_is_compared(asked) and code not in person.zips:
                against.append("zip_mismatch")
        return against if needs_one is None else [*against, needs_one]

    def _valid_until(self, cbid: str, given: dict[str, Any]) -> datetime:
        ends = [self.world.now + DAY, self.world.people[cbid].verified_until]
        if "expires_on" in given:
            ends.append(datetime.fromisoformat(given["expires_on"]).replace(tzinfo=UTC) + DAY)
        return min(end for end in ends if end).replace(microsecond=0)

    def _order(self, code: str, classes: list[str], given: dict[str, Any]) -> object:
        return code, frozenset(classes), tuple(sorted(given.items(), key=str))

    def _compare(
        self, session: str, cbid: str, code: str, classes: list[str], given: dict[str, Any]
    ) -> None:
        self.last = session, cbid, code, classes, given
        expected = self._reasons(session, cbid, code, classes, given)
        bound, order = self.sessions.get(session), self._order(code, classes, given)
        sent = {"cbid": cbid, "session_id": session, "shipping_zip": code, "exemption": given}
        answer = self.desk.clear(
            self.who, convert(sent | {"product_classes": classes}, ClearanceRequest)
        )
        if bound and bound.shipped_under and (bound.order, bound.cbid) == (order, cbid):
            assert (answer.clearance_id, answer.already_shipped) == (bound.shipped_under, True)
            return
        assert ([*answer.reasons], answer.cleared) == (expected, not expected)
        if not answer.cleared:
            assert (answer.token, answer.obligations) == (None, ())
            return
        if bound and self.world.now < bound.valid_until:
            assert answer.clearance_id == bound.clearance_id
            return
        until, id_ = self._valid_until(cbid, given), answer.clearance_id
        self.sessions[session] = Bound(order, cbid, id_, until)
        assert answer.expires_at == until
        asking = self._asking(code, classes)
        types = [duty["type"] for duty in answer.obligations]
        assert types == ["adult_signature"] * any(law.signature for law in asking) + ["compared"]
        room = self.desk.deployment.clearances
        found = self.desk.do(get_clearance(room, self.who, id_))
        assert found.exempt_from is not UNSET
        assert "barrel" not in found.product_classes
        assert {(one.notice_id, one.version) for one in found.exempt_from} == {
            (law.id, law.version) for law in asking
        }
        for one in found.exempt_from:
            assert one.exemption is not None
            assert one.exemption.kind == given["kind"]
            assert "notice" in one.exemption.waives

    def _person(self, number: int) -> Person:
        people = [*self.world.people.values()]
        return people[-1 - number % len(people)]


@pytest.fixture(scope="module", params=ENGINES)
def desk(
    request: pytest.FixtureRequest, once: Once, tmp_path_factory: pytest.TempPathFactory
) -> Desk:
    """Give a deployment with no notice but these, on each engine."""
    place = tmp_path_factory.mktemp(f"exempt-rules-{request.param}") / "data"
    return once(place, lambda: open_desk(place, MovingClock(), engine_server(request)))


@pytest.mark.timeout(300)
def test_an_exempt_order_is_cleared_if_and_only_if_the_restated_rules_agree(desk: Desk) -> None:
    """All reasons are the same too, and so is what the clearance says was waived."""

    class OnThisDesk(ExemptOrders):
        pass

    OnThisDesk.desk = desk
    run_state_machine_as_test(
        OnThisDesk,
        settings=settings(
            max_examples=drawn(30),
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[*HealthCheck],
        ),
    )
