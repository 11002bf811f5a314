"""Which orders a notice is for: `applies_to` of a notice file, a rule that is data.

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

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, Struct

from countersign.base.http.schemas import Reference, Request, ZipCode, in_full
from countersign.core.notices.obligations import ProductClass
from countersign.core.notices.zip_areas import STATES, states_of

_CLASSES_MAX: Final = 100

UspsState = Annotated[str, Meta(pattern=in_full("^[A-Z]{2}$"), max_length=2, examples=["CA"])]


class RequiredCheck(StrEnum):
    """What of the buyer has to be proved."""

    AGE = "age"
    ADDRESS = "address"


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


class Destination(Request, frozen=True, kw_only=True):
    """Where an order is delivered."""

    state: Annotated[
        UspsState, Meta(description="Two-letter USPS code. One that is not in use is unknown.")
    ]
    zip: Annotated[
        ZipCode | None,
        Meta(
            description="ZIP or ZIP+4. A parcel goes where it says: one of a state that a rule "
            "names counts as delivered there, any other one that is not in `state` makes the "
            "state unknown."
        ),
    ] = None

    @property
    def zip_states(self) -> frozenset[str] | None:
        """The states in which the ZIP code can be; None: it was not given."""
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
    """Why no notice would be needed, as you assert it. It changes nothing in the response."""

    reason: Annotated[Reference, Meta(description="In your words.", examples=["licensed dealer"])]
    evidence_reference: Annotated[
        Reference | None, Meta(description="Where you keep the evidence.", examples=["doc-2931"])
    ] = None


class Cart(Request, frozen=True, kw_only=True):
    """What is sold, and to where, as far as rules depend on it."""

    product_classes: Annotated[
        tuple[ProductClass, ...],
        Meta(
            min_length=1,
            max_length=_CLASSES_MAX,
            description="The class of each product. One that no rule names is unknown.",
        ),
    ]
    ship_to: Destination
    residence_state: Annotated[
        UspsState | None,
        Meta(description="The state in which the buyer lives; left out: not known."),
    ] = None
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


def judge(
    rule: AppliesTo, cart: Cart, known_classes: frozenset[str]
) -> tuple[Requirement, list[RequirementReason]]:
    """The verdict of a rule on an order.

    A notice is not required only if everything is known that the rule asks about.
    """
    classes, to, reason = set(cart.product_classes), cart.ship_to, RequirementReason
    named = not classes.isdisjoint(rule.product_classes)
    places, unclear = [], []
    if not classes <= known_classes.union(rule.product_classes):
        unclear.append(reason.PRODUCT_CLASS_UNKNOWN)
    if to.is_in(rule.delivered_to):
        places.append(reason.DELIVERED_TO_STATE)
    elif rule.delivered_to and to.state not in STATES:
        unclear.append(reason.STATE_UNKNOWN)
    elif rule.delivered_to and to.zip_states and len(to.zip_states) > 1:
        unclear.append(reason.ZIP_IN_SEVERAL_STATES)
    if to.contradicts_itself:
        # Also where the rule does not ask: of an address that is wrong nothing is known.
        unclear.append(reason.ZIP_CONTRADICTS_STATE)
    if cart.residence_state in rule.residents_of:
        places.append(reason.RESIDENT_OF_STATE)
    elif rule.residents_of and cart.residence_state not in STATES:
        unclear.append(reason.RESIDENCE_UNKNOWN)
    if named and places:
        return Requirement.REQUIRED, places
    if unclear:
        return Requirement.UNKNOWN, unclear
    why = [] if named else [reason.PRODUCT_CLASS_NOT_NAMED]
    return Requirement.NOT_REQUIRED, why if places else [*why, reason.STATE_NOT_NAMED]


def any_of(answers: list[Requirement]) -> Requirement:
    """Whether one of several things is needed; of none at all nothing is known."""
    order = (Requirement.REQUIRED, Requirement.UNKNOWN, Requirement.NOT_REQUIRED)
    return next((one for one in order if one in answers), Requirement.UNKNOWN)
