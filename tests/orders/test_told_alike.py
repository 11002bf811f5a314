"""The list, one order, search and the dossier tell the same of each order: what the oracle says.

The console's page of an order shows what search returns, and reads nothing else about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from countersign.base.errors import CheckoutSessionClosed, OnHold, UnknownSubject
from countersign_evidence.verification import dossier_of
from tests.http.backstage import another_deployment
from tests.orders.plain import YEAR, Hold, Order, Part, Party, World
from tests.orders.service import INITIALS, LINKS_KEPT, NOTICE, SHOP, Service, read_time
from tests.support.depth import drawn
from tests.support.engines import ENGINES, engine_server
from tests.support.holding import place_hold, release_hold
from tests.verification.inside import Stage, staged

pytestmark = pytest.mark.long

TWO_CLIENTS: Final = "initials and agreement came from two clients"
FILTERS: Final = [
    *(f"state={name}" for name in ("open", "waiting_for_buyer", "acknowledged", "cleared")),
    *(f"state={name}" for name in ("refused", "shipped", "delivered", "closed")),
    *("held=true", "held=false"),
]
DATED: Final = {"shipped_at", "delivered_at", "paid_at"}
# Most of what happens, happens to one of the four parties. What an act is about is not drawn from
# existing objects: that must not decide how many draws there are.
_party, _which, _person = st.integers(0, 15), st.integers(0, 99), st.integers(0, 1)
_sessions = st.sampled_from(["desk", "phone", "till"])
_session = _sessions | st.none()
_names = st.tuples(_sessions, st.sampled_from([None, None, "R-1", "R-2"]))
_reported = st.sampled_from(["carrier", *sorted(DATED - {"paid_at"}), "adult_signature_obtained"])
_facts = st.dictionaries(_reported, st.booleans(), max_size=3) | st.just({"paid_at": True})
_jumps = st.sampled_from([timedelta(minutes=20), timedelta(hours=25), timedelta(days=8)])
_subjects = st.sampled_from(["part", "part", "order", "buyer", "account"])
_ways = st.tuples(_person, _person, st.booleans())
_link_facts = st.tuples(st.booleans(), st.booleans())
_numbers = count(1)


class Orders(RuleBasedStateMachine):
    """Whatever can happen to orders, in any order; names are few, so orders are copied often."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.service, self.stage = service, service.stage
        self.vendors, parties = service.parties()
        self.world = World(self.stage.clock, parties)
        self.cbids: dict[tuple[int, int], str] = {}
        """Of the persons at each party."""
        self.main, self.turn = 0, 0
        self.told: dict[str, object] = {}
        """By acknowledgment, what its dossier was last found to tell."""

    def teardown(self) -> None:
        for id_ in [*self.world.holds]:
            self._release(id_)
        # The two persons at the provider are the same in each run.
        for cbid in {one.buyer for party in self.world.parties for one in party.checks}:
            self._erase_everywhere(str(cbid), naming=False)

    def index(self, number: int) -> int:
        return number if number < len(self.world.parties) else self.main

    def party(self, number: int) -> Party:
        return self.world.parties[self.index(number)]

    def cbid(self, party: int, person: int) -> str | None:
        """A buyer of this party: this one, or else the other one."""
        of = self.index(party)
        return self.cbids.get((of, person)) or self.cbids.get((of, 1 - person))

    # --- buyers -------------------------------------------------------------------------------

    @initialize(party=st.integers(0, 3))
    def begin(self, party: int) -> None:
        """Most errors need an order."""
        self.main = party
        self.verify(party, 0)
        self.buy(party, ("desk", "R-1"), 0)

    @rule(party=_party, person=_person)
    def verify(self, party: int, person: int) -> None:
        """A check of a person, who is a new one in the sandbox."""
        one, number = self.party(party), self.index(party)
        self.service.tick()
        if one.mode == "test":
            body = {"provider_identity_session_id": f"s{next(_numbers)}", "shipping_zip": "94105"}
            cbid = self.service.post(one, "/v1/buyers/verify", body | {"test_mode": True})["cbid"]
        else:
            cbid = self.service.verify(self.vendors[number // 2], person)
        self.cbids[number, person] = cbid
        self._checked(one, cbid)

    def _checked(self, party: Party, cbid: str) -> None:
        found = self.service.newest_check(party)
        if found is not None and found[0] not in {one.id for one in party.checks}:
            id_, status = found
            made = Part(id_, "verification", self.world.now, cbid, status=status)
            party.checks.append(made)

    @rule(party=_party, person=_person)
    def withdraw(self, party: int, person: int) -> None:
        """The provider takes its approval back: nothing is cleared on it any more."""
        one, cbid = self.party(party), self.cbids.get((self.index(party), person))
        if cbid is None:
            return
        self.service.tick()
        if one.mode == "test":
            self.service.post(one, "/v1/test/buyers", {"cbid": cbid, "status": "failed"})
        else:
            self.service.withdraw(self.vendors[self.index(party) // 2], person)
        self._checked(one, cbid)
        assert self.service.get(one, f"/v1/buyers/{cbid}/status")["status"] != "verified"

    # --- initials, decisions and reports --------------------------------------------------------

    @rule(party=_party, session=_session, names=_names, person=_person, named=st.booleans())
    def initial(
        self,
        party: int,
        session: str | None,
        names: tuple[str, str | None],
        person: int,
        named: bool,
    ) -> None:
        """Initials on a vendor's own page, which may name no session, reference or buyer."""
        cbid = self.cbid(party, person) if named else None
        self._initial(self.party(party), session, names[1], cbid)

    def _initial(
        self, party: Party, session: str | None, reference: str | None, cbid: str | None
    ) -> Part | None:
        body = {"session_id": session, "order_reference": reference, "cbid": cbid}
        path = f"/v1/notices/{NOTICE}/acknowledge"
        body |= {"initials_per_line": INITIALS}  # type: ignore[dict-item]
        made = self.service.post(party, path, body, "order_reference_mismatch")
        assert (made is None) is party.has_another(session, reference)
        if made is None:
            return None
        order = party.place(self.world.now, session, reference)
        part = Part(made["ack_id"], "acknowledgment", self.world.now, cbid, reference)
        part.binds = session, reference
        order.parts.append(part)
        return part

    @rule(party=_party, names=_names, person=_person)
    def buy(self, party: int, names: tuple[str, str | None], person: int) -> None:
        """Initials and a decision, as most orders have them."""
        one, cbid = self.party(party), self.cbid(party, person)
        ack = self._initial(one, *names, cbid) if cbid else None
        if cbid and ack:
            self._decide(one, ack.id, cbid, *names)

    @rule(party=_party, which=_which, names=_names, person=_person, own=st.booleans())
    def decide(
        self, party: int, which: int, names: tuple[str, str | None], person: int, own: bool
    ) -> None:
        """A decision with any acknowledgment: another order's, another vendor's, or none's."""
        one, cbid = self.party(party), self.cbid(party, person)
        owners = [one] if own else self.world.parties
        acks = [p.id for who in owners for o in who.orders for p in o.of("acknowledgment")]
        acks += ["ack_01km9x4v8gen3rr1p6q1s2t3v4"]
        if cbid:
            self._decide(one, acks[which % len(acks)], cbid, *names)

    def _decide(
        self, party: Party, ack_id: str, cbid: str, session: str, reference: str | None
    ) -> None:
        live = self.service.playing.part("verified").shipping_zip
        body = {"ack_id": ack_id, "cbid": cbid, "session_id": session, "product_class": "accessory"}
        body["shipping_zip"] = live if party.mode == "live" else "94105"
        may_be = "order_reference_mismatch", "order_reference_missing"
        made = self.service.post(
            party, "/v1/clearances", body | {"order_reference": reference}, *may_be
        )
        if made is not None:
            self._decided(party, made["clearance_id"], ack_id, cbid, (session, reference))

    def _decided(
        self, party: Party, id_: str, ack_id: str, cbid: str, names: tuple[str, str | None]
    ) -> None:
        """The service decides; which order the decision joins, and with which check, is ours."""
        own = party.order_of(ack_id)
        order = own or party.place(self.world.now, *names)
        part = order.get(id_)
        if part is None:
            read = self.service.get(party, f"/v1/clearances/{id_}")
            part = Part(id_, "clearance", self.world.now, cbid, names[1])
            part.cleared, part.ack_id = read["cleared"], ack_id if own else None
            part.until = read_time(read["expires_at"])
            part.binds = (None if part.cleared else names[0], read["order_reference"])
            order.parts.append(part)
            check = party.rests_on(cbid)
            if check is not None and check not in order.parts:
                order.parts.append(check)
        part.asked_at = self.world.now

    @rule(party=_party, which=_which, facts=_facts, corrects=st.none() | _which)
    def report(self, party: int, which: int, facts: dict[str, bool], corrects: int | None) -> None:
        """A report in any order of events, which may stand in the place of another one."""
        one = self.party(party)
        decided = [p for order in one.orders for p in order.of("clearance") if p.cleared]
        order = one.order_of(decided[which % len(decided)].id) if decided else None
        if order is None:
            return
        decision, earlier = decided[which % len(decided)], order.of("fulfilment")
        said = dict[str, Any](facts)
        for name in said.keys() & DATED:
            at = self.world.now - timedelta(days=not facts[name])
            said[name] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        said |= {"carrier": "UPS"} if "carrier" in said else {}
        wrong = earlier[corrects % len(earlier)].id if corrects is not None and earlier else None
        body = said | ({} if "paid_at" in said else {"confirm_order_of_events": True})
        path, may_be = f"/v1/clearances/{decision.id}/fulfilment", ["fulfilment_contradicted"]
        may_be += ["erased"] if "carrier" in said else []
        may_be += ["invalid_request"] if not said and wrong is None else []
        made = self.service.post(one, path, body | {"corrects": wrong}, *may_be)
        if made is not None and not order.get(made["fulfilment_id"]):
            part = Part(made["fulfilment_id"], "fulfilment", self.world.now, facts=said)
            part.clearance, part.ack_id, part.corrects = decision.id, decision.ack_id, wrong or ""
            order.parts.append(part)

    @rule(jump=_jumps)
    def wait(self, jump: timedelta) -> None:
        self.service.tick(jump)

    # --- links ----------------------------------------------------------------------------------

    @rule(party=_party, names=_names, person=_person, facts=_link_facts, agreed=st.none() | _ways)
    def link(
        self,
        party: int,
        names: tuple[str, str | None],
        person: int,
        facts: tuple[bool, bool],
        agreed: tuple[int, int, bool] | None,
    ) -> None:
        """A link to the notice; with a buyer and a ZIP code it ends with a decision."""
        named, zip_ = facts
        cbid = self.cbid(party, person) if named else None
        asked = {"notice_id": NOTICE, "cbid": cbid, "shipping_zip": "94105" if zip_ else None}
        link = self._link(self.party(party), names, asked)
        if link is not None and agreed is not None:
            self._agree(self.party(party), link, *agreed)

    def _link(
        self, party: Party, names: tuple[str, str | None], asked: dict[str, Any]
    ) -> Part | None:
        named = {"session_id": names[0], "order_reference": names[1], "return_url": SHOP}
        may_be = "order_reference_mismatch", "order_reference_missing"
        made = self.service.post(party, "/v1/checkout_sessions", asked | named, *may_be)
        assert (made is None) is party.has_another(*names) or not names[1]
        if made is None:
            return None
        order, cbid = party.place(self.world.now, *names), asked.get("cbid")
        id_, kind = made["checkout_session_id"], "checkout_session"
        link = Part(id_, kind, self.world.now, cbid, names[1], names, status="open")
        link.until, link.facts = read_time(made["expires_at"]), {"names": names, **asked}
        order.parts.append(link)
        return link

    def _open(self, party: Party, which: int) -> Part | None:
        """A link to the notice that is open, or was."""
        every = [p for o in party.orders for p in o.of("checkout_session")]
        links = [p for p in every if "notice_id" in p.facts]
        return links[which % len(links)] if links else None

    @rule(party=_party, which=_which, way=_ways)
    def agree(self, party: int, which: int, way: tuple[int, int, bool]) -> None:
        link = self._open(self.party(party), which)
        if link is not None:
            self._agree(self.party(party), link, *way)

    def _agree(self, one: Party, link: Part, typed_in: int, agreed_in: int, cookie: bool) -> None:
        """Initials typed in one browser, and the agreement of another, maybe with its cookie."""
        self.service.tick()
        is_open = link.status_at(self.world.now) == "open"
        own = typed_in == agreed_in or cookie
        try:
            session = self.service.agree(link.id, typed_in, agreed_in, cookie=cookie)
        except CheckoutSessionClosed:
            # A buyer who is named must be verified still.
            assert not (is_open and own) or link.buyer is not None
            return
        assert is_open
        assert own
        order = one.order_of(link.id)
        assert order is not None
        link.status, link.asked_at, link.ack_id = "completed", self.world.now, session.ack_id
        ack = Part(str(session.ack_id), "acknowledgment", self.world.now, link.buyer)
        ack.reference, ack.binds = link.reference, link.binds
        ack.clients = len({typed_in, agreed_in})
        order.parts.append(ack)
        if session.clearance_id:
            names: Any = link.facts["names"]
            self._decided(one, session.clearance_id, ack.id, str(link.buyer), names)

    @rule(party=_party, names=_names, passed=st.booleans())
    def identify(self, party: int, names: tuple[str, str | None], passed: bool) -> None:
        """A link for the identity alone, whose check is played in the sandbox."""
        one = self.party(party)
        if one.mode == "live":
            return
        link = self._link(one, names, {"collect": ["identity"]})
        if link is not None:
            self.service.tick()
            link.buyer = self.service.identify(link.id, "verified" if passed else "failed")
            self._checked(one, str(link.buyer))
            if passed:
                link.status, link.asked_at = "completed", self.world.now

    @rule(party=_party, which=_which)
    def cancel(self, party: int, which: int) -> None:
        link = self._open(self.party(party), which)
        if link is not None and link.status_at(self.world.now) == "open":
            self.service.post(self.party(party), f"/v1/checkout_sessions/{link.id}/cancel", {})
            link.status, link.asked_at = "cancelled", self.world.now

    # --- holds and erasures -----------------------------------------------------------------------

    @rule(party=_party, which=_which, of=_subjects, everywhere=st.booleans())
    def hold(self, party: int, which: int, of: str, everywhere: bool) -> None:
        """By an account, or by the deployment; what is erased cannot be held."""
        one = self.party(party)
        subjects = {
            "part": [p.id for o in one.orders for p in o.parts],
            "order": [o.id for o in one.orders],
            "buyer": [id_ for (of_, _), id_ in self.cbids.items() if of_ == self.index(party)],
            "account": [one.account_id],
        }[of]
        if not subjects:
            return
        subject, hold = subjects[which % len(subjects)], None
        order = one.order_of(subject)
        part = order.get(subject) if order else None
        if everywhere:
            self.service.tick()
            with suppress(UnknownSubject):
                hold = self.stage.do(place_hold(self.stage.opened.privacy, subject, "case")).id
        else:
            body = {"subject": subject, "reason": "case"}
            made = self.service.post(one, "/v1/holds", body, "unknown_subject")
            hold = made and made["hold_id"]
        assert (hold is None) is bool(part and part.erased) or of == "buyer"
        if hold is not None:
            self.world.holds[hold] = Hold(None if everywhere else one, subject)

    @rule(which=_which)
    def release(self, which: int) -> None:
        if holds := [*self.world.holds]:
            self._release(holds[which % len(holds)])

    def _release(self, id_: str) -> None:
        hold = self.world.holds.pop(id_)
        self.service.tick()
        if hold.owner is None:
            self.stage.do(release_hold(self.stage.opened.privacy, id_))
            self.service.carry_out_waiting()
        else:
            self.service.post(hold.owner, f"/v1/holds/{id_}/release", {})
        self.world.carry_out_waiting(hold.owner)

    @rule(party=_party, which=_which)
    def erase_an_order(self, party: int, which: int) -> None:
        """By its acknowledgment: all or nothing."""
        one = self.party(party)
        acks = [p for o in one.orders for p in o.of("acknowledgment")]
        if not acks:
            return
        ack = acks[which % len(acks)]
        going = [p for p in self.world.with_order(one, [ack.id]) if not p.erased]
        made = self.service.post(one, "/v1/erasures", {"subject": ack.id}, "on_hold")
        assert (made is None) is any(self.world.kept(one, p) for p in going)
        if made is not None:
            self.world.erase(one, going)

    @rule(party=_party, person=_person, naming=st.booleans())
    def erase_a_buyer(self, party: int, person: int, naming: bool) -> None:
        """By an account: its own part."""
        one, cbid = self.party(party), self.cbid(party, person)
        if cbid is None:
            return
        body = {"subject": cbid, "with_acknowledgments": naming}
        made = self.service.post(one, "/v1/erasures", body, "on_hold")
        assert (made is None) is bool(self.world.on(one, [cbid, one.account_id]))
        if made is not None:
            own, known = self.index(party), self.cbids
            self.cbids = {who: id_ for who, id_ in known.items() if (who[0], id_) != (own, cbid)}
            kept = self.world.erase_buyer([one], cbid, naming=naming)
            assert {found["record_id"] for found in made["kept"]} == kept

    @rule(party=_party, person=_person, naming=st.booleans())
    def erase_a_buyer_everywhere(self, party: int, person: int, naming: bool) -> None:
        cbid = self.cbid(party, person)
        if cbid is not None:
            self._erase_everywhere(cbid, naming=naming)

    def _erase_everywhere(self, cbid: str, *, naming: bool) -> None:
        self.service.tick()
        parties = self.world.parties
        try:
            kept = self.service.erase(cbid, naming=naming)
        except OnHold:
            assert any(self.world.on(one, [cbid, one.account_id]) for one in parties)
            return
        except UnknownSubject:
            return
        assert kept == self.world.erase_buyer(parties, cbid, naming=naming)
        self.cbids = {who: known for who, known in self.cbids.items() if known != cbid}

    @rule(seldom=st.integers(0, 3))
    def retain(self, seldom: int) -> None:
        """A year later, what need not be kept any longer goes, unless a hold keeps it."""
        if seldom:
            return
        self.service.tick(YEAR + timedelta(seconds=1))
        due = self.service.retain()
        self.world.retain(due)
        self.cbids = {who: known for who, known in self.cbids.items() if known not in due}
        self.service.housekeep()
        self.world.delete_links(LINKS_KEPT)

    # --- what must hold -----------------------------------------------------------------------

    @invariant()
    def everyone_tells_the_same(self) -> None:
        self.turn += 1
        self.stage.do(self.stage.opened.log.seal.settle())
        for party in self.world.parties:
            page = self.service.get(party, f"/v1/orders?limit={len(party.orders) or 1}")
            listed = page["data"]
            assert (len(listed), page["next_cursor"]) == (len(party.orders), None)
            known = {frozenset(part["id"] for part in one["parts"]): one for one in listed}
            for order in party.orders:
                told = known[frozenset(part.id for part in order.parts)]
                self._is(told, order)
                # A check can be a part of several orders.
                ids = [order.id, *(p.id for p in order.parts if p.kind != "verification")]
                for id_ in {ids[self.turn % len(ids)], ids[-1]}:
                    assert self.service.get(party, f"/v1/orders/{id_}") == told, id_
                    assert self.service.search(party, id_)["orders"] == [told], id_
            self._filtered(party)

    def _filtered(self, party: Party) -> None:
        """The list by a state, or by whether a hold keeps it; another one after each step."""
        asked = FILTERS[self.turn % len(FILTERS)]
        found = self.service.get(party, f"/v1/orders?limit=100&{asked}")["data"]
        wanted = {
            one.id
            for one in party.orders
            for held in [str(bool(self.world.held(one))).lower()]
            if asked in {f"state={one.state(self.world.now)}", f"held={held}"}
        }
        assert {one["order_id"] for one in found} == wanted, asked

    def _is(self, told: Any, order: Order) -> None:  # noqa: ANN401
        world, now, party = self.world, self.world.now, order.party
        order.id = order.id or told["order_id"]
        assert told["order_id"] == order.id
        assert (told["account_id"], told["livemode"]) == (party.account_id, party.mode == "live")
        assert told["state"] == order.state(now)
        assert (told["hold_id"] is not None) is bool(world.held(order))
        assert told["ack_id"] == order.ack_id
        decision = order.decision
        assert (told["clearance_id"], told["cleared"]) == (decision and decision.id, order.cleared)
        assert {*told["missing"]} - {"seal", "identity_check"} == order.missing()
        parts = {part["id"]: part for part in told["parts"]}
        for part in order.parts:
            said, kept = parts[part.id], world.kept(party, part)
            assert said["type"] == part.kind
            assert said["hold_id"] in kept if kept else said["hold_id"] is None, part.id
            if part.kind == "checkout_session":
                assert said["status"] == part.status_at(now), part.id
            else:
                assert (said["erased_at"] is not None) is part.erased, part.id
        for ack in order.of("acknowledgment"):
            self._dossier(order, ack)

    def _dossier(self, order: Order, ack: Part) -> None:
        """What the file of an acknowledgment tells, if it was something else last time."""
        reports, every = order.in_dossier(ack)
        shown = {p.id: not p.erased for p in every}
        if self.told.get(ack.id) == shown:
            return
        self.told[ack.id] = shown
        status, file = self.service.ask(order.party, "GET", f"/v1/acknowledgments/{ack.id}/dossier")
        assert status == 200, file
        dossier = dossier_of(file)
        kinds = {p.kind for p in every}
        found = {one.id: bool(one.shown) for one in dossier.records if one.type in kinds}
        assert found == shown
        checks = {one.id for one in dossier.of("verification")}
        assert checks <= {one.id for one in order.party.checks}
        if len(every) > 1 and not every[1].erased:
            assert checks <= {one.id for one in order.parts}
        wrong = {one.corrects for one in reports}
        dated = {(f, p.id) for p in reports if p.id not in wrong for f in p.facts.keys() & DATED}
        assert {
            (f["kind"], f["id"]) for f in dossier.order["timeline"] if f["kind"] in DATED
        } == dated
        two = any(TWO_CLIENTS in remark for remark in dossier.remarks)
        assert two is (ack.clients > 1 and not ack.erased)


@pytest.fixture(params=ENGINES)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """Open a deployment of this test alone, on each engine."""
    with staged(another_deployment(tmp_path / "data", engine_server(request))) as made:
        yield made


def test_every_view_of_an_order_tells_the_same(stage: Stage) -> None:
    """Its members, state, holds and erasures, after each step of any history."""
    service = Service(stage)
    run_state_machine_as_test(
        lambda: Orders(service),  # type: ignore[arg-type]  # a factory will do
        settings=settings(
            max_examples=drawn(12),
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[*HealthCheck],
        ),
    )
