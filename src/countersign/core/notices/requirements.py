"""Requirements of an order: notices, proofs about the buyer, and obligations.

Pure: the notices, an order and a time lead to an answer. A room that collects for an order calls
`requirements_of` and `Requirements.to_collect`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import Struct, convert, to_builtins

from countersign.base.values import Mode
from countersign.core.notices.model import NoticeEdition
from countersign.core.notices.registry import KnownNotices
from countersign.core.notices.rule import (
    COMPARED_ZIP,
    KNOWN_CLASSES,
    AppliesTo,
    Cart,
    Exemption,
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
    """As you asserted it; it changed nothing."""
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
    judged = [(case, _judged(case, cart, classes)) for case in cases]
    open_ = [(c, answer) for c, answer in judged if answer.required is not _NOT_REQUIRED]
    identity = _identity(judged)
    duties = [duty for case, _ in open_ for duty in case.edition.following.obligations]
    duties += [COMPARED_ZIP] if identity.required is not _NOT_REQUIRED else []
    warnings = [
        RequirementWarning(
            type=WarningType.NOT_SUFFICIENT, notice_id=answer.notice_id, product_class=class_
        )
        for case, answer in open_
        for class_ in sorted(set(cart.product_classes))
        if case.rule and class_ in case.rule.product_classes
        if not case.edition.following.covers(class_)
    ]
    if cart.ship_to.contradicts_itself:
        type_ = WarningType.ZIP_CONTRADICTS_STATE
        warnings.append(RequirementWarning(type=type_, notice_id=None, product_class=None))
    return Requirements(
        decision=any_of([answer.required for _, answer in judged]),
        notices=tuple(answer for _, answer in judged),
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


def _judged(case: _Case, cart: Cart, classes: frozenset[str]) -> NoticeRequirement:
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
    return NoticeRequirement(
        notice_id=content.id,
        version=content.version if case.in_force else None,
        required=required,
        rule=RuleVersion(id=content.id, version=rule.version) if rule else None,
        reviewed=case.reviewed,
        reasons=tuple(reasons),
    )


def _identity(judged: Sequence[tuple[_Case, NoticeRequirement]]) -> IdentityRequirement:
    """The requirements for the buyer; those that an unreviewed rule lacks are unknown."""
    answers, asking = [], []
    for case, notice in judged:
        open_ = notice.required is not _NOT_REQUIRED
        if not open_ or (case.rule and case.rule.identity_checks):
            answers.append(notice.required)
        else:
            answers.append(_NOT_REQUIRED if case.trusted else Requirement.UNKNOWN)
        if open_ and case.rule and case.rule.identity_checks:
            asking.append((notice.notice_id, case.rule))
    checks = {check for _, rule in asking for check in rule.identity_checks}
    return IdentityRequirement(
        required=any_of(answers),
        checks=tuple(check for check in RequiredCheck if check in checks),
        minimum_age=max((rule.minimum_age or 0 for _, rule in asking), default=0) or None,
        rules=tuple(RuleVersion(id=id_, version=rule.version) for id_, rule in asking),
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
