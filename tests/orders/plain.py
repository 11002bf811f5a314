"""Orders of two vendors once more, in lists and plain rules, written from the documents alone.

What an order is, and where it stands: docs/clearances.md. What a hold keeps and an erasure takes:
docs/personal-data.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from tests.verification.inside import MovingClock

ENDED: Final = {"completed", "declined", "cancelled", "expired"}
YEAR: Final = timedelta(days=366)


@dataclass(eq=False)
class Part:
    """A link, acknowledgment, check, decision or report."""

    id: str
    kind: str
    at: datetime
    buyer: str | None = None
    """The cbid that it names."""
    reference: str | None = None
    binds: tuple[str | None, str | None] = (None, None)
    """Of a link, an acknowledgment or a refused decision: session and reference of the vendor."""
    ack_id: str | None = None
    """Of a decision: the acknowledgment, if it is one of the order. Of a link: what came of it."""
    erased: bool = False
    cleared: bool = False
    until: datetime | None = None
    """The end of a link, or of a granted decision."""
    asked_at: datetime | None = None
    """Of a decision, when it was last given; of a link, when it last changed."""
    status: str | None = None
    """Of a link or a check."""
    facts: dict[str, object] = field(default_factory=dict)
    """Of a report, as `clearance` and `corrects`."""
    clearance: str = ""
    corrects: str = ""
    clients: int = 1
    """Of a hosted acknowledgment: from how many clients initials and agreement came."""

    is_known: bool = False
    """Of a check whose evidence alone is gone: it still names its buyer, who stays verified."""

    @property
    def names(self) -> str | None:
        return self.buyer if self.is_known or not self.erased else None

    @property
    def is_record(self) -> bool:
        return self.kind != "checkout_session"

    def was_deleted(self, before: datetime) -> bool:
        """Whether it is a link that ended before this time."""
        if self.kind != "checkout_session":
            return False
        ended = self.until if self.status == "open" else self.asked_at
        return ended is not None and ended < before

    def status_at(self, now: datetime) -> str | None:
        """A link whose data was erased before its end has expired."""
        if self.kind != "checkout_session":
            return self.status
        is_over = self.erased or (self.until is not None and self.until <= now)
        return "expired" if self.status == "open" and is_over else self.status


@dataclass(eq=False)
class Order:
    """One order."""

    party: Party
    opened_at: datetime
    session: str | None
    reference: str | None
    """What opened it: the reference only if there was no session."""
    parts: list[Part] = field(default_factory=list)
    id: str = ""
    """As the service gave it first."""

    def of(self, kind: str) -> list[Part]:
        return [part for part in self.parts if part.kind == kind]

    def get(self, id_: str | None) -> Part | None:
        return next((part for part in self.parts if part.id == id_), None)

    @property
    def reports(self) -> list[Part]:
        """Those that no later one corrects."""
        every = self.of("fulfilment")
        wrong = {one.corrects for one in every}
        return [one for one in every if one.id not in wrong]

    @property
    def sent(self) -> list[Part]:
        """The reports of a shipment that count."""
        return [one for one in self.reports if one.facts.keys() - {"paid_at"}]

    @property
    def decision(self) -> Part | None:
        """That of the shipment, else the newest."""
        arriving = [one for one in self.sent if arrived(one.facts)]
        for report in (arriving or self.sent)[:1]:
            return self.get(report.clearance)
        return max(self.of("clearance"), key=lambda one: one.asked_at or one.at, default=None)

    @property
    def cleared(self) -> bool:
        return self.decision is not None and self.decision.cleared

    def in_dossier(self, ack: Part) -> tuple[list[Part], list[Part]]:
        """The reports, and all parts, in the file of an acknowledgment, checks apart.

        One decision: that of the shipment, else the newest.
        """
        of_it = [p for p in self.parts if p.ack_id == ack.id]
        reports = [p for p in of_it if p.kind == "fulfilment"]
        sent = {p.clearance for p in reports if "paid_at" not in p.facts}
        decisions = [p for p in of_it if p.kind == "clearance"]
        decisions.sort(key=lambda p: (p.id in sent, p.at))
        shown = [p for p in reports if p.clearance in {one.id for one in decisions[-1:]}][-32:]
        return shown, [ack, *decisions[-1:], *shown]

    @property
    def ack_id(self) -> str | None:
        """The one that counts, else the newest."""
        acks = [one.id for one in self.of("acknowledgment")]
        if self.decision and self.decision.ack_id in acks:
            return self.decision.ack_id
        return acks[-1] if acks else None

    def state(self, now: datetime) -> str:
        """By the table of docs/clearances.md."""
        said = [arrived(one.facts) for one in self.sent]
        if said:
            return "delivered" if any(said) else "shipped"
        stands: list[tuple[datetime, int, str]] = []
        for place, part in enumerate(self.parts):
            at = part.asked_at or part.at
            if part.kind == "acknowledgment":
                stands.append((at, place, "acknowledged"))
            elif part.kind == "clearance":
                is_valid = part.until is not None and now < part.until
                if is_valid:
                    later = [one for one in self.of("clearance") if (one.asked_at or one.at) > at]
                    if not later:
                        return "cleared"
                    # The newest decision counts, also against a yes that is still valid.
                stands.append((at, place, "acknowledged" if part.cleared else "refused"))
            elif part.status_at(now) == "open" and not self.was_cleared(part.at):
                stands.append((at, place, "waiting_for_buyer"))
        if stands:
            return max(stands)[2]
        links = self.of("checkout_session")
        return "closed" if links and links[-1].status_at(now) != "completed" else "open"

    def was_cleared(self, at: datetime) -> bool:
        """Whether a link made then asked for nothing: the order was cleared."""
        before = [one for one in self.of("clearance") if one.at < at]
        return bool(before) and before[-1].until is not None and before[-1].until > at

    def missing(self) -> set[str]:
        """What a complete order has; seals and checks are not told here."""
        lacks = set() if self.of("acknowledgment") else {"acknowledgment"}
        if not self.cleared:
            lacks.add("clearance" if self.decision is None else "granted_clearance")
        if not self.sent:
            lacks.add("fulfilment")
        elif not any("delivered_at" in one.facts for one in self.sent):
            lacks.add("delivery")
        if self.sent and not any(one.facts.get("adult_signature_obtained") for one in self.sent):
            lacks.add("adult_signature")
        return lacks | (
            {"personal_data"} if any(p.erased for p in self.parts if p.is_record) else set()
        )


def arrived(facts: dict[str, object]) -> bool:
    return "delivered_at" in facts or facts.get("adult_signature_obtained") is True


@dataclass(eq=False)
class Party:
    """An account in one mode."""

    account_id: str
    mode: str
    token: str
    orders: list[Order] = field(default_factory=list)
    checks: list[Part] = field(default_factory=list)

    def order_of(self, id_: str) -> Order | None:
        return next((one for one in self.orders if one.get(id_)), None)

    def place(self, now: datetime, session: str | None, reference: str | None) -> Order:
        """The order of a session, else that to which the reference is bound, else a new one.

        An act that names a session alone asks for no reference that came with it before
        (docs/decisions/privacy.md, "An order is the acts on it").
        """
        for one in self.orders:
            if session is not None and one.session == session:
                return one
        bound = [
            (part.at, number, one)
            for one in self.orders
            for number, part in enumerate(one.parts)
            if reference is not None and part.reference == reference and not part.erased
        ]
        if bound:
            return min(bound, key=lambda found: found[:2])[2]
        # Its first name leads to an order for good, also when all was erased.
        for one in self.orders:
            if session is None and reference is not None and one.reference == reference:
                return one
        self.orders.append(Order(self, now, session, None if session else reference))
        return self.orders[-1]

    def has_another(self, session: str | None, reference: str | None) -> bool:
        """Whether what named a session was all for another reference."""
        pairs = [p.binds for one in self.orders for p in one.parts if not p.erased]
        known = {of for name, of in pairs if name is not None and name == session} - {None}
        return reference is not None and bool(known) and reference not in known

    def rests_on(self, cbid: str) -> Part | None:
        """The account's newest check that verified the buyer, else its newest."""
        own = [one for one in self.checks if one.names == cbid]
        return max(own, key=lambda one: (one.status == "verified", one.at), default=None)


@dataclass
class Hold:
    """A legal hold; `owner` None: the deployment's."""

    owner: Party | None
    subject: str


@dataclass
class World:
    """All that has happened."""

    clock: MovingClock
    parties: list[Party]
    holds: dict[str, Hold] = field(default_factory=dict)
    waiting: list[tuple[Party, Part]] = field(default_factory=list)

    @property
    def now(self) -> datetime:
        return self.clock.now

    # Holds.

    def needs(self, order: Order) -> list[Part]:
        """The parts, and the checks of its buyers if none of theirs is a part."""
        checked = {one.buyer for one in order.of("verification") if not one.erased}
        named = {one.buyer for one in order.parts if not one.erased} - checked - {None}
        extra = [one for one in order.party.checks if one.buyer in named and not one.erased]
        return [*order.parts, *extra]

    def on(self, party: Party, ids: Iterable[str | None]) -> set[str]:
        """The holds that bind this party, and are on one of these."""
        wanted = {*ids}
        return {
            id_
            for id_, hold in self.holds.items()
            if hold.owner in {None, party} and hold.subject in wanted
        }

    def held(self, order: Order) -> set[str]:
        """The holds that keep an order."""
        needs = self.needs(order)
        named = [one.names for one in needs]
        return self.on(
            order.party, [order.id, order.party.account_id, *named, *(p.id for p in needs)]
        )

    def kept(self, party: Party, part: Part) -> set[str]:
        """The holds that keep a part, or a check that is none."""
        found = self.on(party, [part.id, party.account_id, part.names])
        for order in party.orders:
            if part in self.needs(order):
                found |= self.held(order)
        return found - {None}

    # Erasures.

    def with_order(self, party: Party, acks: Iterable[str]) -> list[Part]:
        """Acknowledgments with the decisions and reports about them."""
        ids, every = {*acks}, [part for one in party.orders for part in one.parts]
        return [p for p in every if p.is_record and (p.id in ids or p.ack_id in ids)]

    def of_buyer(self, party: Party, cbid: str, *, naming: bool) -> list[Part]:
        """What goes with a buyer here; `naming`: acknowledgments too."""
        every = {id(p): p for one in party.orders for p in one.parts} | {
            id(p): p for p in party.checks
        }
        named = [p for p in every.values() if p.buyer == cbid and not p.erased]
        going = [p for p in named if p.kind in {"verification", "checkout_session"}]
        if naming:
            going += [p for p in named if p.kind in {"acknowledgment", "clearance"}]
            going += self.with_order(party, [p.id for p in named if p.kind == "acknowledgment"])
        return [p for p in {id(p): p for p in going}.values() if not p.erased]

    def erase(self, party: Party, parts: Iterable[Part]) -> None:
        """These go, and what the links of their acknowledgments tell."""
        going = [*parts]
        ids = {p.id for p in going}
        for one in party.orders:
            going += [p for p in one.of("checkout_session") if p.ack_id in ids]
        for part in going:
            part.erased = True
        gone = {id(p) for p in going}
        self.waiting = [(p, w) for p, w in self.waiting if id(w) not in gone]

    def carry_out_waiting(self, within: Party | None) -> None:
        """What waited for a hold in this reach goes, unless another one keeps it."""
        for party, part in [*self.waiting]:
            if within in {None, party} and not self.kept(party, part):
                self.erase(party, [part])

    def erase_buyer(self, parties: Iterable[Party], cbid: str, *, naming: bool) -> set[str]:
        """A buyer's data goes, at all of them at once; gives what holds keep."""
        found = [(who, p) for who in parties for p in self.of_buyer(who, cbid, naming=naming)]
        kept = [(who, p) for who, p in found if self.kept(who, p)]
        stays = {p.id for _, p in kept}
        self.waiting += kept
        for one in (one for who in parties for one in who.checks if one.buyer == cbid):
            one.is_known = False
        for who, part in found:
            if part.id not in stays:
                self.erase(who, [part])
        return stays

    def retain(self, due: Collection[str]) -> None:
        """Orders of which the notice was acknowledged a year ago go, unless they are held.

        `due`: when the evidence of a live check, a refusal, or a buyer without orders need not be
        kept any longer is not told here.
        """
        self.carry_out_waiting(None)
        for party in self.parties:
            acks = [p for one in party.orders for p in one.of("acknowledgment") if not p.erased]
            old = [self.with_order(party, [p.id]) for p in acks if self.now - p.at > YEAR]
            old += [[p] for p in party.checks if p.id in due]
            old += [[p] for o in party.orders for p in o.of("clearance") if p.id in due]
            for one in party.checks:
                one.is_known = one.is_known or one.id in due
            for parts in [some for some in old if not any(self.kept(party, p) for p in some)]:
                self.erase(party, parts)
        for cbid in {p.buyer for one in self.parties for p in one.checks if p.buyer in due}:
            self.erase_buyer(self.parties, str(cbid), naming=False)

    def delete_links(self, after: timedelta) -> None:
        """Links are deleted some time after their end, also under a hold."""
        for party in self.parties:
            for order in party.orders:
                order.parts = [p for p in order.parts if not p.was_deleted(self.now - after)]
            party.orders = [one for one in party.orders if one.parts]
