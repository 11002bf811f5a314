"""Tell the buyer what will block the order before asking for initials.

Only in a browser known to be the buyer's: the vendor and others with the link see nothing of it,
and the session does not change.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from countersign.base.errors import CheckoutSessionClosed, InvalidRequest, RateLimited
from countersign.core.checkout.model import Collected, require_open
from countersign.core.checkout.sessions import clearance_request, principal_of, return_url
from countersign.core.clearances.foresee import foresee
from countersign.core.clearances.schemas import ClearanceReason
from countersign.core.gate.route import Reply
from countersign.core.notices.model import NoticeEdition
from countersign.hosted.pages import identity
from countersign.hosted.pages.remembered_page import known_by_cookie
from countersign.hosted.pages.visits import Visit

_A_PAGE: Final = b"document"
_CHECK_HELPS: Final = frozenset(
    {
        ClearanceReason.BUYER_NOT_VERIFIED,
        ClearanceReason.BUYER_REQUIRES_INPUT,
        ClearanceReason.BUYER_EXPIRED,
    }
)


async def foreseen(visit: Visit, notice: NoticeEdition) -> Reply | None:
    """The page that says it; None: nothing is known, or not of this browser."""
    room, call, session = visit.room, visit.call, visit.session
    # A page of the same site could measure what it fetches or frames.
    is_seen = call.method == "GET" and call.headers.get(b"sec-fetch-dest", _A_PAGE) == _A_PAGE
    order = clearance_request(session)
    known = await _known(visit) if is_seen and order else None
    if order is None or known is None:
        return None
    try:
        reasons = await foresee(room.clearances, principal_of(session), order, notice, known)
    except (RateLimited, InvalidRequest):
        return None
    if not reasons:
        return None
    is_checked = session.asked.identity is not None
    return visit.show(
        "foreseen.html",
        framed_by="'none'",
        reasons=reasons,
        can_check_again=is_checked and not _CHECK_HELPS.isdisjoint(reasons),
        return_url=return_url(session),
    )


async def _known(visit: Visit) -> str | None:
    """The buyer of this browser, if known."""
    session = visit.session
    if session.asked.is_checked_in(visit.browser):
        return session.cbid
    known = await known_by_cookie(visit)
    return None if known is None else known.cbid


async def check_again(visit: Visit) -> Reply:
    """Open the identity step again for a buyer who wants that, and is not verified any more."""
    require_open(visit.session, visit.now, Collected.ACKNOWLEDGMENT)
    with suppress(CheckoutSessionClosed):
        await identity.require_verified(visit.room, visit.session)
    return visit.go_on()
