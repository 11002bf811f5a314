"""Orders without an acknowledgment: what the rules of the notices say of their exemption."""

from __future__ import annotations

from typing import Final

from countersign.core.clearances.model import NewClearance
from countersign.core.clearances.schemas import ClearanceReason
from countersign.core.notices.registry import KnownNotices
from countersign.core.notices.requirements import NoticeRequirement, requirements_of
from countersign.core.notices.rule import (
    COMPARED_ZIP,
    SOLD_IN_PERSON,
    Cart,
    Destination,
    Following,
    Requirement,
    RequirementReason,
    states_of,
)

_WHY: Final = (ClearanceReason.EXEMPTION_EXPIRED, ClearanceReason.EXEMPTION_FACTS_MISSING)


def without_notice(
    new: NewClearance, notices: KnownNotices
) -> tuple[Following, tuple[NoticeRequirement, ...], ClearanceReason | None]:
    """What stays of the notices for the order, those that are waived, and why it needs one.

    Every notice has to be waived or not needed, and a waived one has to suffice for each class, as
    if it had been acknowledged. Of the place, the ZIP code alone is known.
    """
    order = new.order
    state = min(states_of(order.shipping_zip), default="")
    to = Destination(state=state, zip=order.shipping_zip)
    cart = Cart(product_classes=order.classes, ship_to=to, exemption=order.exemption)
    found = requirements_of(notices, cart, new.mode, new.clock_at)
    duties = tuple(one for one in found.obligations if one != COMPARED_ZIP)
    waived = tuple(one for one in found.notices if RequirementReason.EXEMPT in one.reasons)
    ids = [one.notice_id for one in waived]
    shown = [notices.look_up(id_, new.mode, new.clock_at, remember=False) for id_ in ids]
    suffices = frozenset[str]().union(*(one.following.classes for one in shown))
    lacking = SOLD_IN_PERSON.union(one.product_class or "" for one in found.warnings)
    stays = Following(suffices - lacking, duties)
    if waived and found.decision is Requirement.NOT_REQUIRED:
        return stays, waived, None
    said = {str(reason) for one in found.notices for reason in one.reasons}
    why = next((one for one in _WHY if one in said), ClearanceReason.EXEMPTION_NOT_NAMED)
    return stays, (), why
