"""The forms of the hosted page that take initials: of all lines at once, or of some by presses."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from countersign.base.errors import (
    CheckoutSessionClosed,
    InvalidRequest,
    NoticeVersionMismatch,
    RateLimited,
)
from countersign.core.acknowledgments.model import INITIALS_LENGTH_MAX
from countersign.core.checkout import model, store
from countersign.core.checkout.brand import ADOPTED_ALLOWED
from countersign.core.checkout.model import Collected, require_open
from countersign.core.checkout.order import Press, Reading
from countersign.core.checkout.sessions import clearance_request, principal_of, return_url
from countersign.core.clearances.clear import foresee
from countersign.core.clearances.schemas import ClearanceReason
from countersign.core.gate.route import Reply
from countersign.core.notices.model import NoticeEdition, is_blank
from countersign.hosted.pages import buyer, identity
from countersign.hosted.pages.cookies import code, is_code
from countersign.hosted.pages.remembered_page import known_by_cookie
from countersign.hosted.pages.visits import Visit
from countersign.hosted.toolkit.screens import browser, lead

# Tell the buyer what will block the order before asking for initials.
#
# Only in a browser known to be the buyer's: the vendor and others with the link see nothing of it,
# and the session does not change.

_A_PAGE: Final = b"document"
_CHECK_HELPS: Final = frozenset(
    {
        ClearanceReason.BUYER_NOT_VERIFIED,
        ClearanceReason.BUYER_REQUIRES_INPUT,
        ClearanceReason.BUYER_EXPIRED,
    }
)


async def foreseen(visit: Visit, notice: NoticeEdition) -> Reply | None:
    """The page with the reasons; None: no reasons, or not this buyer's browser."""
    room, call, session = visit.room, visit.call, visit.session
    # Fetched or framed by a page of the same site, its size could be measured.
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
    """Open the identity step again, at the buyer's request, if the buyer is no longer verified."""
    require_open(visit.session, visit.now, Collected.ACKNOWLEDGMENT)
    with suppress(CheckoutSessionClosed):
        await identity.require_verified(visit.room, visit.session)
    return visit.go_on()


STEP: Final = "step"
FORM: Final = "form"
WRONG: Final = "wrong"
STALE: Final = "stale"
"""The parameters of an address: the wanted step, and the mistake in the form that led there."""
_ALL: Final = "yes"
_SOME: Final = "some"
NOT_TAKEN: Final = "press"
"""The kind of error: in any line, in the first or a long one, or in the press of a button."""


async def take(visit: Visit) -> Reply:
    """Accept the initials of all lines and go to the review, or show the errors."""
    room, session = visit.room, visit.session
    require_open(session, visit.now, Collected.ACKNOWLEDGMENT)
    notice = await buyer.notice_of(room, session)
    if visit.form.get("notice_digest") != notice.digest:
        return _of_another_text(visit)
    typed = _typed(visit, notice)
    if any(_wrong_with(text) for text in typed):
        await store.change(room, session, partial(model.typed, digest=notice.digest, texts=typed))
        return visit.go_on(**{STEP: FORM, WRONG: _ALL})
    try:
        await buyer.initial(room, session, notice.digest, typed, browser(room, visit.call).client)
    except NoticeVersionMismatch:
        return _of_another_text(visit)
    return visit.go_on()


async def press(visit: Visit) -> Reply:
    """Store the typed initials, and copy the first line's to the line of the pressed button.

    Fields that are blank leave their lines as they are. A press is ignored if the account no longer
    allows presses; typed initials are kept.
    """
    room, session = visit.room, visit.session
    before = require_open(session, visit.now, Collected.ACKNOWLEDGMENT).reading
    notice = await buyer.notice_of(room, session)
    sent_for = visit.form.get("notice_digest")
    if before is None or not sent_for == before.notice_digest == notice.digest:
        return _of_another_text(visit)
    typed = ["" if is_blank(text) else text for text in _typed(visit, notice)]
    if any(_wrong_with(text) for text in typed if text):
        drafts = [new or old for new, old in zip(typed, before.known, strict=True)]
        await store.change(room, session, partial(model.typed, digest=notice.digest, texts=drafts))
        return visit.go_on(**{STEP: FORM, WRONG: _SOME})
    pressed, client = _press_of(visit, before), browser(room, visit.call).client
    kept = partial(model.initialed, client=client, press=pressed)
    kept = partial(kept, digest=notice.digest, initials=typed)
    try:
        session = await store.change(room, session, kept)
    except NoticeVersionMismatch:
        return _of_another_text(visit)
    return _after_press(visit, pressed, before, session.asked.reading or before)


def _after_press(visit: Visit, pressed: Press | None, before: Reading, after: Reading) -> Reply:
    """Redirect to the next line without initials, or to the review if there is none."""
    known, line = after.known, 0 if pressed is None else pressed.line
    if not known[0]:
        return visit.go_on(**{STEP: FORM, WRONG: _SOME})
    is_taken = pressed is not None and pressed.initials == known[0] == known[line - 1]
    if "line" in visit.form and not is_taken:
        return visit.go_on(**{STEP: FORM, WRONG: NOT_TAKEN})
    wanted = "" if after.initials is None else known[0]
    left = [n for n, text in enumerate(known, 1) if (text != wanted if wanted else not text)]
    if after.initials is not None and (before.initials is None or not left):
        return visit.go_on()
    number = next((n for n in left if n > line), left[0])
    return lead(f"{visit.address(**{STEP: FORM})}#at-{number}")


def _press_of(visit: Visit, before: Reading) -> Press | None:
    """The press that this form sends, of a button that showed the first line's initials."""
    first, number = before.known[0], visit.form.get("line", "")
    numbers = {str(n): n for n in range(2, len(before.lines) + 1)}
    shown = is_code(visit.room, visit.session, _use(before), visit.form.get("adopting", ""))
    allowed = visit.brand.initials == ADOPTED_ALLOWED
    return Press(numbers[number], first) if allowed and shown and number in numbers else None


def adopting(visit: Visit, reading: Reading | None) -> Mapping[str, Any] | None:
    """The buttons next to the fields if the account allows presses; else None.

    `reading` is of the text that is shown.
    """
    if visit.brand.initials != ADOPTED_ALLOWED:
        return None
    if reading is None or not reading.known[0]:
        return {"first": "", "lines": ()}
    first, *others = reading.known
    return {
        "first": first,
        "lines": tuple(n for n, text in enumerate(others, 2) if text != first),
        "code": code(visit.room, visit.session, _use(reading)),
    }


def _use(reading: Reading) -> str:
    """The content that a button's code covers: this text, and the initials on the button."""
    return "\x00".join(("adopt", reading.notice_digest, reading.known[0]))


def differing(initials: Sequence[str]) -> Sequence[int]:
    """The numbers of lines whose initials differ from the majority, or else from the first ones.

    Case, points and spaces make no difference.
    """
    plain = [_plain(text) for text in initials]
    [(usual, _)] = Counter(plain).most_common(1)
    return [number for number, text in enumerate(plain, 1) if text != usual]


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, folded)) or folded


def wrong_in(typed: Sequence[str], said: str, words: Mapping[str, str]) -> Mapping[str, str]:
    """Errors of the fields by name, as far as the address states them."""
    return {
        f"initials-{number}": words[wrong].replace("{number}", str(number))
        for number, text in enumerate(typed, 1)
        if (wrong := _wrong_with(text))
        and (said == _ALL or (said == _SOME and (text or number == 1)))
    }


def _wrong_with(initials: str) -> str | None:
    if is_blank(initials):
        return "empty_initials"
    return "too_long" if len(initials) > INITIALS_LENGTH_MAX else None


def _typed(visit: Visit, notice: NoticeEdition) -> list[str]:
    numbers = range(1, len(notice.content.bullets) + 1)
    return [visit.form.get(f"initials_{number}", "") for number in numbers]


def _of_another_text(visit: Visit) -> Reply:
    """Lead to the text in force, from a form of another one."""
    return visit.go_on(**{STEP: FORM, STALE: visit.form.get("notice_digest", "")})
