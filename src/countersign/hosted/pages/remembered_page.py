"""The pages that offer to remember a buyer, and ask a remembered one for consent.

They are never shown inside another page: a click there would not be consent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from hmac import compare_digest
from typing import Any, Final

from countersign.base.errors import CheckoutSessionClosed, RateLimited
from countersign.base.passkeys import assertion_options, creation_options
from countersign.base.values import Mode, digits, from_ms, from_ns, to_ms
from countersign.core.access.account import origin_of
from countersign.core.buyers.model import BuyerStatus
from countersign.core.checkout import store
from countersign.core.checkout.model import Collected, Session, Status, require_open
from countersign.core.checkout.sessions import return_url
from countersign.core.gate.route import Call, Reply
from countersign.hosted.pages import identity
from countersign.hosted.pages.cookies import (
    PASSKEY,
    REMEMBERED,
    cookie,
    cookie_header,
    removed_cookies,
)
from countersign.hosted.pages.visits import NOT_ENOUGH, Visit
from countersign.hosted.remembered import (
    COOKIE_KEPT,
    PASSKEY_KEPT,
    KnownBy,
    NotKnown,
    assert_passkey,
    by_cookie,
    forget_cookie,
    handle_of,
    inform,
    register,
    remember_cookie,
    use_cookie,
)
from countersign.hosted.toolkit.screens import lead, words_of
from countersign_evidence.disclosure import b64url
from countersign_evidence.process import Binding

CHECK: Final = "check"
"""The value of `step` that opens the identity check itself."""
SCRIPT: Final = "remembered.js"
OFFERED: Final = timedelta(minutes=15)
"""How long after the end, and after the browser was led back: later, somebody else may have it."""
MEANT_AFTER: Final = timedelta(milliseconds=1200)
"""Minimum time from serving a page until a press on it counts: an earlier press, such as the second
of a double click, was meant for the previous page."""
_WHY: Final = {BuyerStatus.EXPIRED, BuyerStatus.REVOKED}
"""Statuses with a message of their own for a remembered buyer; `visits` has the words."""
_TOO_SOON: Final = "too_soon"
_FRAMES: Final = frozenset({b"iframe", b"frame", b"embed", b"object", b"fencedframe"})


async def asked_first(visit: Visit) -> Reply | None:
    """The page for a remembered buyer; None if no buyer is known."""
    content = visit.session.asked
    has_begun = any(one.browser == visit.browser for one in content.checks)
    if content.identity or has_begun or visit.form.get("step") == CHECK or not _may_ask(visit):
        return None
    known = await known_by_cookie(visit)
    return _arrived(visit, known) if known or _has_passkey(visit) else None


async def ask(visit: Visit) -> Reply:
    """The same page for a buyer who says to have a passkey."""
    require_open(visit.session, visit.now, Collected.IDENTITY)
    if not _may_ask(visit):
        return lead(_check_page(visit))
    return _arrived(visit, await known_by_cookie(visit))


async def consent(visit: Visit) -> Reply:
    """Apply a remembered buyer's decision, from the page served to this browser."""
    room, session, form = visit.room, visit.session, visit.form
    require_open(session, visit.now, Collected.IDENTITY)
    mode, how = session.mode, form.get("how")
    if how == "forget":
        await forget_cookie(room.remembered, cookie(room, visit.call, REMEMBERED, mode))
        return lead(_check_page(visit), *removed_cookies(room, mode))
    if session.is_of_known_buyer:
        return lead(_check_page(visit))
    asked = asked_ms(form)
    challenge = _asking(visit, asked)
    if not _is_served(visit, challenge):
        return visit.go_on()
    if how != Binding.PASSKEY and not _was_meant(visit, asked):
        return _lead_on(visit, _TOO_SOON)
    known: KnownBy | NotKnown | None
    if how == Binding.PASSKEY:
        response, asked_at = form.get("credential", ""), from_ms(asked)
        known = await assert_passkey(room.remembered, mode, challenge, response, asked_at)
    else:
        sent = cookie(room, visit.call, REMEMBERED, mode)
        known = await use_cookie(room.remembered, mode, sent)
    if known is None:
        known = NotKnown.UNKNOWN
    if isinstance(known, NotKnown):
        return _after(visit, session, known.value)
    return _after(visit, *await _informed(visit, known))


async def arrive(visit: Visit) -> Reply:
    """The consent page, for a buyer who pressed "Continue" on the page before it."""
    require_open(visit.session, visit.now, Collected.IDENTITY)
    if not _may_ask(visit):
        return lead(_check_page(visit))
    asked = asked_ms(visit.form)
    if not _is_served(visit, _arriving(visit, asked)):
        return visit.go_on()
    if not _was_meant(visit, asked):
        return lead(visit.address("/remembered", first=_TOO_SOON))
    return _lead_on(visit)


def _after(visit: Visit, session: Session, why: str) -> Reply:
    if session.step is Collected.IDENTITY:
        # Only this browser sees why: the vendor just sees that there is no buyer yet.
        return visit.go_on(step=CHECK, remembered=why)
    if session.status is Status.COMPLETED:
        return lead(return_url(session))
    return visit.go_on()


async def _informed(visit: Visit, known: KnownBy) -> tuple[Session, str]:
    """The session after its account was informed of the buyer; the same, and why, if it was not.

    Raises CheckoutSessionClosed if the session has ended meanwhile, or collects something else.
    """
    room, session, binding = visit.room, visit.session, known.kind
    asked = session.asked.shipping_zip
    try:
        informing = await inform(room.remembered, session.account_id, known, asked)
        status = informing.check.status
        why = status.value if status in _WHY else NOT_ENOUGH
        if informing.check.cbid is None:
            why = NotKnown.UNKNOWN.value
        return await identity.remembered(room, session, informing, binding, visit.browser), why
    except RateLimited:
        return session, NOT_ENOUGH
    except CheckoutSessionClosed:
        # The buyer may be no longer verified, or erased: then the session is where it was.
        now = await store.find_by_id(room, session.id)
        if now is None or now.content is None:
            raise
        require_open(now, await store.clock_of(room, now), Collected.IDENTITY)
        return now, NOT_ENOUGH


NO_OFFER: Final[Mapping[str, Any]] = {"remembered": None, "remembered_yes": False}


async def offer(visit: Visit) -> Mapping[str, Any]:
    """The offers of an ended session's page: ways to remember the buyer, if any.

    Only for the one browser that began the identity check and returned from it: the vendor has the
    session's link, too, and could otherwise be remembered in the buyer's place.
    """
    if is_framed(visit.call):
        return NO_OFFER
    room, mode = visit.room, visit.session.mode
    if _has_passkey(visit) or await known_by_cookie(visit) is not None:
        return {"remembered": None, "remembered_yes": visit.form.get("remembered") == "yes"}
    if not _may_keep(visit):
        return NO_OFFER
    challenge, party, options = _keeping(visit), room.remembered.party, None
    if party is not None:
        handle = handle_of(room.remembered, mode, _cbid(visit.session))
        # A label on the device: not personal, since people may share the device.
        words = words_of(visit.locale)
        name = words["remembered_passkey_name"]
        name += f" ({words['remembered_test']})" if mode is Mode.TEST else ""
        options = creation_options(party, user_handle=handle, challenge=challenge, name=name)
    shown = {"served": b64url(challenge), "options": options and json.dumps(options)}
    return {
        "remembered": shown,
        "remembered_yes": False,
        "framed_by": "'none'",
        "scripts": ("page.js", SCRIPT),
    }


async def keep(visit: Visit) -> Reply:
    """Remember the buyer in the way that was chosen."""
    room, session, form = visit.room, visit.session, visit.form
    mode, challenge = session.mode, _keeping(visit)
    if not _is_served(visit, challenge) or not _may_keep(visit):
        return visit.go_on()
    await store.count_consent(room, session)
    cbid = _cbid(session)
    if form.get("how") == Binding.COOKIE:
        value = await remember_cookie(room.remembered, mode, cbid)
        if not value:
            return visit.go_on()
        header = cookie_header(room, REMEMBERED, mode, value, COOKIE_KEPT)
    elif await register(room.remembered, mode, cbid, challenge, form.get("credential", "")):
        header = cookie_header(room, PASSKEY, mode, "1", PASSKEY_KEPT)
    else:
        return visit.go_on()
    return lead(visit.address(remembered="yes"), header)


def is_framed(call: Call) -> bool:
    """Whether the response would be shown inside another page, as far as the browser says."""
    return call.headers.get(b"sec-fetch-dest", b"document") in _FRAMES


def _may_ask(visit: Visit) -> bool:
    """True if a remembered buyer may pass; False if a new check is needed."""
    return not is_framed(visit.call) and not visit.session.is_of_known_buyer


def _has_passkey(visit: Visit) -> bool:
    return bool(cookie(visit.room, visit.call, PASSKEY, visit.session.mode))


def _arrived(visit: Visit, known: KnownBy | None) -> Reply:
    """The page that asks, or another page before it.

    A buyer remembered by a cookie needs one press. A buyer redirected from another site did not ask
    for this page, and may be in the middle of a press.
    """
    is_ours = visit.call.headers.get(b"sec-fetch-site") in {b"same-origin", b"same-site"}
    has_pressed = _same(visit.form.get("arrived", ""), _arrived_by(visit))
    pressed_too_soon = visit.form.get("first") == _TOO_SOON
    if known and not has_pressed and (pressed_too_soon or not is_ours):
        return _first(visit, too_soon=pressed_too_soon)
    return _consent(visit, known, too_soon=visit.form.get("consent") == _TOO_SOON)


def _lead_on(visit: Visit, consent: str = "") -> Reply:
    """Redirect to the consent page, after "Continue" or a button of the consent page."""
    said = {"consent": consent} if consent else {}
    return lead(visit.address("/remembered", arrived=b64url(_arrived_by(visit)), **said))


def _first(visit: Visit, *, too_soon: bool = False) -> Reply:
    asked = _now_ms(visit)
    return visit.show(
        "remembered_first.html",
        framed_by="'none'",
        scripts=(SCRIPT,),
        here=f"{visit.root}/remembered",
        too_soon=too_soon,
        wait_ms=MEANT_AFTER // timedelta(milliseconds=1),
        asked=asked,
        served=b64url(_arriving(visit, asked)),
    )


def _consent(visit: Visit, known: KnownBy | None, *, too_soon: bool = False) -> Reply:
    asked = _now_ms(visit)
    challenge, party = _asking(visit, asked), visit.room.remembered.party
    back = origin_of(visit.session.asked.return_url)
    return visit.show(
        "remembered_consent.html",
        framed_by="'none'",
        scripts=(SCRIPT,),
        # Browsers apply a form's policy to the redirect of its response too.
        form_action=f"'self' {back}" if back else "'self'",
        here=f"{visit.root}/remembered",
        with_cookie=known is not None,
        with_hint=known is not None or _has_passkey(visit),
        cookie_first=known is not None and not _has_passkey(visit),
        too_soon=too_soon,
        wait_ms=MEANT_AFTER // timedelta(milliseconds=1),
        asked=asked,
        served=b64url(challenge),
        options=party and json.dumps(assertion_options(party, challenge)),
    )


def _now_ms(visit: Visit) -> int:
    return to_ms(from_ns(visit.room.access.clock.time_ns()))


def _was_meant(visit: Visit, asked_ms: int) -> bool:
    """Whether the page that sends this form was served long enough ago."""
    return from_ms(_now_ms(visit)) >= from_ms(asked_ms) + MEANT_AFTER


async def known_by_cookie(visit: Visit) -> KnownBy | None:
    """The buyer remembered in this browser by a cookie."""
    mode = visit.session.mode
    value = cookie(visit.room, visit.call, REMEMBERED, mode)
    return await by_cookie(visit.room.remembered, mode, value) if value else None


def _may_keep(visit: Visit) -> bool:
    session, check = visit.session, visit.session.asked.identity
    begun = session.asked.check_at(check.attempt) if check else None
    return (
        session.status is Status.COMPLETED
        and session.ended_at is not None
        and visit.now < session.ended_at + OFFERED
        and check is not None
        and check.binding is Binding.IDENTITY_SESSION
        and session.asked.is_checked_in(visit.browser)
        and begun is not None
        and begun.back_at is not None
        and visit.now < begun.back_at + OFFERED
    )


def _cbid(session: Session) -> str:
    if session.cbid is None:
        raise CheckoutSessionClosed("No one was verified.")
    return session.cbid


def _is_served(visit: Visit, code: bytes) -> bool:
    """Whether the form is of a page that was served with this code."""
    return _same(visit.form.get("served", ""), code)


def _same(sent: str, code: bytes) -> bool:
    return compare_digest(sent.encode(), b64url(code).encode())


def asked_ms(form: Mapping[str, str]) -> int:
    """When the page with this form was served, in milliseconds; 0 if the form does not say."""
    return digits(form.get("asked", ""), 14) or 0


def _asking(visit: Visit, asked_ms: int) -> bytes:
    """For a consent: of this session in this state, this browser and this time.

    It contains no counter, which would show another browser with the link that somebody consented.
    """
    return _made(visit, f"consent {asked_ms}")


def _arriving(visit: Visit, asked_ms: int) -> bytes:
    """For "Continue": it is no consent."""
    return _made(visit, f"arrive {asked_ms}")


def _arrived_by(visit: Visit) -> bytes:
    """For the address behind "Continue", valid in this browser only."""
    return _made(visit, "arrived")


def _keeping(visit: Visit) -> bytes:
    """For remembering the buyer: valid once, in this state of the session and this browser."""
    return _made(visit, f"keep {visit.session.consents}")


def _made(visit: Visit, use: str) -> bytes:
    session = visit.session
    use = f"remembered {use} {visit.browser} {session.revision}"
    return visit.room.access.secret.page_code(use, session.id, session.token_digest)


def _check_page(visit: Visit) -> str:
    return visit.address(step=CHECK)
