"""When an order may ship: the rules once more, written from the design and sharing no code.

All history is stored as plain text; each rule is one obvious line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

DAY = timedelta(days=1)
USUAL_GOODS = {
    "accessory",
    "manufacturing_machine",
    "firearm_accessory",
    "firearm_manufacturing_machine",
}


@dataclass(eq=False)
class Shop:
    """An account, with its operator's settings."""

    name: str
    acknowledgment_max_age: timedelta = timedelta(days=7)
    lifetime: timedelta = timedelta(hours=24)
    minimum_age: int = 18
    class_required: bool = True


@dataclass
class Text:
    """A version of the one notice."""

    version: str
    begins: datetime
    number: int
    """The number of the publication."""
    reviewed: bool
    withdrawn: bool = False
    suffices_for: set[str] = field(default_factory=lambda: set(USUAL_GOODS))
    needs_adult_signature: bool = False


@dataclass
class Person:
    """A buyer."""

    cbid: str
    mode: str
    sandbox_of: Shop | None
    """Who simulated it; None: a real verification."""
    part: str = "verified"
    """Its role in the sandbox, or `verified`."""
    verified_until: datetime | None = None
    verified_by: Shop | None = None
    """The account that sees the time of day; None: only the account that simulated it is asked."""
    age: int = 18
    zips: set[str] = field(default_factory=set)
    revoked: bool = False
    forgotten: bool = False


@dataclass
class Initialed:
    """An acknowledgment."""

    ack_id: str
    shop: Shop
    mode: str
    at: datetime
    text: Text
    session: str | None
    named: str | None
    """The cbid that came with it."""
    erased: bool = False
    bound: str | None = None
    """The cbid of the first clearance."""
    order: object = None
    """The order that it was cleared for."""
    closed: bool = False
    clearance_id: str = ""
    valid_until: datetime = datetime(1, 1, 1, tzinfo=UTC)
    shipped_under: str = ""
    """The clearance of the first report."""
    sent: set[str] = field(default_factory=set)
    """The clearances with reports."""
    told: str = ""
    """The decision that its dossier shows; after an override, no later refusal."""
    is_overridden: bool = False
    """Whether that one was overridden."""
    signed: bool = False
    """Whether an adult signature was reported."""

    def decided(self, clearance_id: str, *, cleared: bool) -> None:
        if cleared or not self.is_overridden:
            self.told, self.is_overridden = clearance_id, False

    def forget_use(self) -> None:
        """It stays used, for a buyer and an order that no one can name any more."""
        if self.bound is not None:
            self.bound = "erased"
        if self.order is not None:
            self.order = object()


@dataclass(frozen=True)
class Asked:
    """A question."""

    shop: Shop
    mode: str
    ack_id: str
    cbid: str
    session: str
    zip: str
    goods: str | None
    address_zip: str | None

    @property
    def order(self) -> object:
        return (self.session, self.zip[:5], self.goods, self.address_zip)

    def same_as(self, other: Asked) -> bool:
        """Whether both are about one order of one buyer; an identifier that is none counts not."""
        names = [(one.shop, one.mode, one.ack_id, one.cbid, one.order) for one in (self, other)]
        return names[0] == names[1]


@dataclass(eq=False)
class Refused:
    """A refusal, which may have been overridden."""

    clearance_id: str
    asked: Asked
    reasons: list[str]
    erased: bool = False
    override_id: str = ""
    at: datetime = datetime(1, 1, 1, tzinfo=UTC)
    """When it was overridden."""
    obligations: tuple[object, ...] = ()

    @property
    def is_never_overridden(self) -> bool:
        """By the goods, or since the acknowledgment is another order's."""
        never = {"product_class_missing", "notice_not_sufficient", "acknowledgment_already_used"}
        return self.asked.goods in {None, "barrel"} or not never.isdisjoint(self.reasons)


@dataclass
class World:
    """All that has happened."""

    now: datetime
    texts: list[Text] = field(default_factory=list)
    people: dict[str, Person] = field(default_factory=dict)
    initialed: dict[str, Initialed] = field(default_factory=dict)
    guesses: dict[tuple[str, str, bool], dict[str, datetime]] = field(default_factory=dict)
    """By account and buyer, and whether it was a stranger then: when a ZIP code was first tried
    within the last day."""
    refused: list[Refused] = field(default_factory=list)

    def in_force(self, mode: str) -> Text | None:
        eligible = [
            text
            for text in self.texts
            if not text.withdrawn and text.begins <= self.now and (text.reviewed or mode == "test")
        ]
        return max(eligible, key=lambda text: (text.begins, text.number), default=None)

    def person(self, asked: Asked) -> Person | None:
        found = self.people.get(asked.cbid)
        if found is None or found.forgotten or found.mode != asked.mode:
            return None
        return found

    def acknowledgment(self, asked: Asked) -> Initialed | None:
        found = self.initialed.get(asked.ack_id)
        if found is None or found.shop is not asked.shop or found.mode != asked.mode:
            return None
        return found

    def standing(self, asked: Asked) -> list[str]:  # noqa: PLR0911 - a line per rule
        """Reasons against the buyer, for the asking account; none: verified."""
        person = self.person(asked)
        if person is None:
            return ["buyer_not_found"]
        if person.sandbox_of not in {None, asked.shop}:
            return ["buyer_requires_input", "simulated_elsewhere"]
        if person.revoked:
            return ["buyer_revoked"]
        if person.part in {"pending", "failed"}:
            return ["buyer_not_verified"]
        if person.part == "requires_input":
            return ["buyer_requires_input", "identity_requires_input"]
        if person.sandbox_of is None and person.age < asked.shop.minimum_age:
            return ["buyer_requires_input", *([] if self.strange(asked) else ["age_not_proved"])]
        end = self.end_of(person, asked.shop)
        if end is None or self.now >= end:
            return ["buyer_expired"]
        return []

    def end_of(self, person: Person, shop: Shop) -> datetime | None:
        """Until when a shop may rely on the check: of another shop's check it sees the day."""
        end = person.verified_until
        if end is None or person.verified_by in {None, shop}:
            return end
        return end.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)

    def zip_is_compared(self, asked: Asked) -> bool:
        """Whether the asking account has an address to compare with."""
        person = self.person(asked)
        if person is None or person.sandbox_of not in {None, asked.shop}:
            return False
        if person.sandbox_of is None and person.age < asked.shop.minimum_age:
            return False
        return person.verified_until is not None

    def strange(self, asked: Asked) -> bool:
        """Whether this account has not met the live buyer: here none has a check of its own."""
        person = self.person(asked)
        cleared = any(
            (ack.shop, ack.mode, ack.bound) == (asked.shop, asked.mode, asked.cbid)
            for ack in self.initialed.values()
            if ack.clearance_id
        )
        return person is not None and person.sandbox_of is None and not cleared

    def too_many_guesses(self, asked: Asked) -> bool:
        """Whether this ZIP code is one too many; if not, and it is a new one, it is noted."""
        if not self.zip_is_compared(asked):
            return False
        ack, strange = self.acknowledgment(asked), self.strange(asked)
        if ack and ack.order and self.now < ack.valid_until and not self.reasons(asked):
            return False  # its clearance is given again
        tried = self.guesses.setdefault((asked.shop.name, asked.cbid, strange), {})
        recent = {code for code, at in tried.items() if self.now - at < DAY}
        if asked.zip[:5] in recent:
            return False
        person = self.person(asked)
        together = [
            at
            for (_, cbid, by_stranger), codes in self.guesses.items()
            for at in codes.values()
            if by_stranger and cbid == asked.cbid and self.now - at < DAY
        ]
        if len(recent) >= 5 or (strange and len(together) >= 10):
            return True
        # Of accounts that have not met the buyer, wrong codes count.
        if not (strange and person is not None and asked.zip[:5] in person.zips):
            tried[asked.zip[:5]] = self.now
        return False

    def reasons(self, asked: Asked) -> list[str]:  # noqa: C901, PLR0912 - a line per rule
        """Everything that speaks against the order."""
        against = []
        ack, person = self.acknowledgment(asked), self.person(asked)
        if ack is None:
            against.append("acknowledgment_not_found")
        if ack and ack.erased:
            against.append("acknowledgment_erased")
        if ack and not ack.erased and ack.session != asked.session:
            against.append("session_mismatch")
        if ack and ack.order is not None and ack.order != asked.order:
            against.append("acknowledgment_already_used")
        if ack and self.now - ack.at > asked.shop.acknowledgment_max_age:
            against.append("acknowledgment_too_old")
        if ack and self.in_force(asked.mode) is not ack.text:
            against.append("notice_not_in_force")
        if asked.mode == "live" and asked.shop.class_required and asked.goods is None:
            against.append("product_class_missing")
        if ack and asked.goods is not None and asked.goods not in ack.text.suffices_for:
            against.append("notice_not_sufficient")
        wrong = self.standing(asked)
        if person is None:
            against += wrong
        if ack and (ack.named or ack.bound) not in {None, asked.cbid}:
            against.append("buyer_mismatch")
        if person is not None:
            against += wrong
        if person is not None and self.zip_is_compared(asked) and asked.zip[:5] not in person.zips:
            against.append("zip_mismatch")
        if asked.address_zip is not None and asked.address_zip[:5] != asked.zip[:5]:
            against.append("address_mismatch")
        return [] if self.shipped(asked) else against

    def shipped(self, asked: Asked) -> bool:
        """Whether this order was reported as shipped: then nothing is decided again."""
        ack = self.acknowledgment(asked)
        if ack is None or ack.erased or not ack.shipped_under:
            return False
        owner = {ack.named or ack.bound}
        return (ack.session, ack.order) == (asked.session, asked.order) and asked.cbid in owner

    def after(self, asked: Asked, against: list[str]) -> None:
        """An acknowledgment belongs to the first verified buyer that it is used for."""
        ack = self.acknowledgment(asked)
        misplaced = {"session_mismatch", "buyer_mismatch", "acknowledgment_erased"}
        if ack and ack.bound is None and not misplaced & {*against} and not self.standing(asked):
            ack.bound = asked.cbid

    def override_of(self, asked: Asked, against: list[str]) -> Refused | None:
        """The newest override of this same order for all these reasons, while it holds."""
        oldest = self.now - asked.shop.acknowledgment_max_age
        same = [
            one
            for one in self.refused
            if one.override_id and not one.erased and one.at > oldest
            if one.asked.same_as(asked) and {*against} <= {*one.reasons}
        ]
        return max(same, key=lambda one: one.override_id, default=None)

    def overridden(self, one: Refused) -> None:
        """The acknowledgment belongs to this order, and to its buyer if to none yet."""
        ack = self.acknowledgment(one.asked)
        if ack and not ack.erased:
            ack.bound = ack.bound or one.asked.cbid
            ack.order = ack.order or one.asked.order
        if ack:
            ack.told, ack.is_overridden = one.clearance_id, True

    def valid_until(self, asked: Asked) -> datetime:
        """Until when a clearance of now is valid."""
        person = self.people[asked.cbid]
        end = self.now + asked.shop.lifetime
        verified_until = self.end_of(person, asked.shop)
        if verified_until is not None:
            end = min(end, verified_until)
        return end.replace(microsecond=0)
