"""Requirements of an order: notices, proofs about the buyer, and obligations.

Pure: the notices, an order and a time lead to an answer. A room that collects for an order calls
`requirements_of` and `Requirements.to_collect`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import UNSET, Struct, convert, to_builtins

from countersign.base.values import Mode
from countersign.core.notices.model import NoticeEdition
from countersign.core.notices.registry import KnownNotices
from countersign.core.notices.rule import (
    COMPARED_ZIP,
    KNOWN_CLASSES,
    AppliesTo,
    Cart,
    Exemption,
    ExemptionRule,
    RequiredCheck,
    Requirement,
    RequirementReason,
    any_of,
    judge,
)
from countersign.core.notices.schemas import EXAMPLE

_NOT_REQUIRED: Final = Requirement.NOT_REQUIRED


class RuleVersion(Struct, frozen=True, kw_only=True):
    """The rule that an answer rests on."""

    id: str
    """That of its notice."""
    version: str


class NoticeRequirement(Struct, frozen=True, kw_only=True):
    """Whether an order needs a notice."""

    notice_id: str
    version: str | None
    """The version in force; null: none, so do not sell."""
    required: Requirement
    rule: RuleVersion | None
    """null: the notice has no rule."""
    reviewed: bool
    """Whether the text and the rule were compared with the law."""
    reasons: tuple[RequirementReason, ...]
    exemption: ExemptionRule | None
    """The one of the rule that the order qualifies for, by what you asserted; null: none."""


class IdentityRequirement(Struct, frozen=True, kw_only=True):
    """Whether the buyer has to be verified, and what has to be proved."""

    required: Requirement
    checks: tuple[RequiredCheck, ...]
    minimum_age: int | None
    rules: tuple[RuleVersion, ...]


class WarningType(StrEnum):
    """What else to know of an order."""

    NOT_SUFFICIENT = "not_sufficient"
    ZIP_CONTRADICTS_STATE = "zip_contradicts_state"


class RequirementWarning(Struct, frozen=True, kw_only=True):
    """`not_sufficient`: the notice does not suffice for this class of products.

    `zip_contradicts_state`: the ZIP code of `ship_to` is not in its state, so the address is wrong.
    """

    type: WarningType
    notice_id: str | None
    """Of `not_sufficient`; else null."""
    product_class: str | None
    """Of `not_sufficient`; else null."""


class Requirements(Struct, frozen=True, kw_only=True):
    """What an order needs, by the rules of the notices."""

    decision: Requirement
    """Whether any notice is needed."""
    notices: tuple[NoticeRequirement, ...]
    identity: IdentityRequirement
    obligations: tuple[Mapping[str, Any], ...]
    """The duties of a clearance for the order, each with a `type`."""
    warnings: tuple[RequirementWarning, ...]
    exemption: Exemption | None
    """As you asserted it. It changed only what `exemption` of a notice says."""
    livemode: bool

    def to_collect(self) -> tuple[list[str], bool]:
        """The notices that a checkout for this order shows, and whether it verifies the buyer.

        What is unknown is collected.
        """
        notices = [one.notice_id for one in self.notices if one.required is not _NOT_REQUIRED]
        return notices, self.identity.required is not _NOT_REQUIRED


class _Case(NamedTuple):
    """A notice, by the version that an order would have to show."""

    edition: NoticeEdition
    in_force: bool
    started: bool
    """Whether a version of the notice has taken effect, in force or not."""
    rule: AppliesTo | None
    reviewed: bool
    trusted: bool
    """Whether the rule may say that nothing is needed: for live keys only after its review."""


class _Judged(NamedTuple):
    """A notice, and what its rule says of the order."""

    case: _Case
    asked: Requirement
    """Before any exemption."""
    answer: NoticeRequirement

    @property
    def checks(self) -> tuple[RequiredCheck, ...]:
        """The identity checks of the rule that are not waived."""
        met = self.answer.exemption
        checks = self.case.rule.identity_checks if self.case.rule else ()
        return tuple(one for one in checks if met is None or one.value not in met.waives)


def requirements_of(
    known: KnownNotices, cart: Cart, mode: Mode, at: datetime, *, remember: bool = False
) -> Requirements:
    """Requirements of an order at this time, for keys of this mode.

    `remember`: cache the versions in force; not for the time of a test clock.
    """
    cases = [
        _case(versions, known.current(id_, mode, at, remember=remember), mode, at)
        for id_, versions in sorted(known.versions.items())
    ]
    # An unreviewed rule makes no class known to the others.
    named = [case.rule.product_classes for case in cases if case.rule and case.trusted]
    classes = KNOWN_CLASSES.union(*named)
    judged = [_judged(case, cart, classes, at) for case in cases]
    open_ = [one for one in judged if one.asked is not _NOT_REQUIRED]
    identity = _identity(judged)
    duties = [duty for one in open_ for duty in one.case.edition.following.obligations]
    duties += [COMPARED_ZIP] if identity.required is not _NOT_REQUIRED else []
    warnings = [
        RequirementWarning(
            type=WarningType.NOT_SUFFICIENT, notice_id=answer.notice_id, product_class=class_
        )
        for case, _, answer in open_
        for class_ in sorted(set(cart.product_classes))
        if case.rule and class_ in case.rule.product_classes
        if not case.edition.following.covers(class_)
    ]
    if cart.ship_to.contradicts_itself:
        type_ = WarningType.ZIP_CONTRADICTS_STATE
        warnings.append(RequirementWarning(type=type_, notice_id=None, product_class=None))
    return Requirements(
        decision=any_of([one.answer.required for one in judged]),
        notices=tuple(one.answer for one in judged),
        identity=identity,
        obligations=tuple(d for place, d in enumerate(duties) if d not in duties[:place]),
        warnings=tuple(warnings),
        exemption=cart.exemption,
        livemode=mode is Mode.LIVE,
    )


def _case(
    versions: Sequence[NoticeEdition], current: NoticeEdition | None, mode: Mode, at: datetime
) -> _Case:
    started = [version for version in versions if version.effective_at <= at]
    edition = current or max(started or versions, key=lambda version: version.effective_at)
    rule, reviewed = edition.rule_for(mode)
    trusted = rule is not None and (reviewed or mode is Mode.TEST)
    return _Case(edition, current is not None, bool(started), rule, reviewed, trusted)


def _judged(case: _Case, cart: Cart, classes: frozenset[str], at: datetime) -> _Judged:
    rule, content = case.rule, case.edition.content
    required, reasons = Requirement.UNKNOWN, [RequirementReason.NO_RULE]
    if rule is not None:
        required, reasons = judge(rule, cart, classes)
        if required is _NOT_REQUIRED and not case.trusted:
            required, reasons = Requirement.UNKNOWN, [RequirementReason.NOT_REVIEWED]
        elif required is Requirement.REQUIRED and not case.started:
            # Whether a sale before that day is covered is not known.
            required, reasons = Requirement.UNKNOWN, [RequirementReason.NOT_IN_EFFECT_YET]
    if not case.in_force:
        reasons = [*reasons, RequirementReason.NO_VERSION_IN_FORCE]
    asked, met, why = required, None, None
    if asked is not _NOT_REQUIRED:
        met, why = _met(case, cart.exemption, at)
    if met is not None and "notice" in met.waives:
        required, why = _NOT_REQUIRED, RequirementReason.EXEMPT
    if why is not None and why not in reasons:
        reasons = [*reasons, why]
    answer = NoticeRequirement(
        notice_id=content.id,
        version=content.version if case.in_force else None,
        required=required,
        rule=RuleVersion(id=content.id, version=rule.version) if rule else None,
        reviewed=case.reviewed,
        reasons=tuple(reasons),
        exemption=met,
    )
    return _Judged(case, asked, answer)


def _met(
    case: _Case, given: Exemption | None, at: datetime
) -> tuple[ExemptionRule | None, RequirementReason | None]:
    """The exemption that an order meets, or why not; neither if the rule has none of its kind."""
    rules = case.rule.exemptions if case.rule and case.in_force else UNSET
    rule = next((one for one in rules or () if given and one.kind == given.kind), None)
    if rule is None or given is None:
        return None, None
    why = given.failure(rule, at) if case.trusted else RequirementReason.NOT_REVIEWED
    return (None if why else rule), why


def _identity(judged: Sequence[_Judged]) -> IdentityRequirement:
    """The requirements for the buyer; those that an unreviewed rule lacks are unknown."""
    answers, asking = [], []
    for one in judged:
        open_, rule = one.asked is not _NOT_REQUIRED, one.case.rule
        if not open_ or one.checks:
            answers.append(one.asked)
        else:
            answers.append(_NOT_REQUIRED if one.case.trusted else Requirement.UNKNOWN)
        if open_ and one.checks and rule is not None:
            asking.append((one.answer.notice_id, rule, one.checks))
    checks = {check for *_, some in asking for check in some}
    ages = [rule.minimum_age or 0 for _, rule, some in asking if RequiredCheck.AGE in some]
    return IdentityRequirement(
        required=any_of(answers),
        checks=tuple(check for check in RequiredCheck if check in checks),
        minimum_age=max(ages, default=0) or None,
        rules=tuple(RuleVersion(id=id_, version=rule.version) for id_, rule, _ in asking),
    )


CART: Final[dict[str, Any]] = {
    "product_classes": ["accessory", "barrel"],
    "ship_to": {"state": "CA", "zip": "94105"},
    "residence_state": "CA",
}
CART_MIN: Final[dict[str, Any]] = {"product_classes": ["accessory"], "ship_to": {"state": "NV"}}
_KNOWN: Final = KnownNotices(0, {EXAMPLE.content.id: (EXAMPLE,)})
REQUIRED, NOT_KNOWN = (
    to_builtins(requirements_of(_KNOWN, convert(cart, Cart), Mode.TEST, EXAMPLE.published_at))
    for cart in (CART, CART_MIN)
)
