"""The pages that offer to remember a buyer, and ask a remembered one for consent.

They are never shown inside another page: what was clicked there would be no consent.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from hmac import compare_digest
from typing import Any, Final

from countersign.access.origins import origin_of
from countersign.checkout import identity, store
from countersign.checkout.model import Collected, Session, Status, require_open
from countersign.checkout.remembered_cookies import (
    BEGAN,
    PASSKEY,
    REMEMBERED,
    RETURNED,
    cookie,
    cookie_header,
    has_mark,
    mark_header,
)
from countersign.checkout.room import Checkout
from countersign.checkout.screens import lead, words_of
from countersign.checkout.sessions import return_url
from countersign.checkout.visits import Visit
from countersign.errors import CheckoutSessionClosed, RateLimited
from countersign.evidence.process import Binding
from countersign.http.reply import Call, Reply
from countersign.ids import VERIFICATION_SESSION, is_id
from countersign.mode import Mode
from countersign.remembered.cookies import by_cookie, forget_cookie, remember_cookie
from countersign.remembered.inform import inform
from countersign.remembered.model import COOKIE_KEPT, PASSKEY_KEPT, Kind, KnownBy
from countersign.remembered.passkeys import (
    assert_passkey,
    assertion_options,
    register,
    registration_options,
)

CHECK: Final = "check"
"""The value of `step` with which the page of the identity check itself is asked for."""
SCRIPT: Final = "remembered.js"
_FRAMES: Final = frozenset({b"iframe", b"frame", b"embed", b"object", b"fencedframe"})


async def asked_first(visit: Visit) -> Reply | None:
    """The page that asks a remembered buyer; None where no one is known to be remembered."""
    content, call = visit.session.asked, visit.call
    begun = content.identity or has_mark(visit.room, visit.session, BEGAN, content.attempts, call)
    if begun or visit.form.get("step") == CHECK or is_framed(call):
        return None
    known = await _by_cookie(visit)
    has_passkey = bool(cookie(visit.room, visit.call, PASSKEY, visit.session.mode))
    return _consent(visit, with_cookie=known is not None) if known or has_passkey else None


async def ask(visit: Visit) -> Reply:
    """The same page for a buyer who says to have a passkey."""
    require_open(visit.session, visit.now, Collected.IDENTITY)
    if is_framed(visit.call):
        return lead(_check_page(visit))
    return _consent(visit, with_cookie=await _by_cookie(visit) is not None)


async def consent(visit: Visit) -> Reply:
    """Take what a remembered buyer has decided.

    A response counts once: with it the session gets another state, and so other codes.
    """
    room, session, form = visit.room, visit.session, visit.form
    require_open(session, visit.now, Collected.IDENTITY)
    mode, how = session.mode, form.get("how")
    if how == "forget":
        await forget_cookie(room.remembered, cookie(room, visit.call, REMEMBERED, mode))
        gone = cookie_header(room, REMEMBERED, mode, "", COOKIE_KEPT)
        return lead(_check_page(visit), gone)
    challenge = _challenge(visit, "consent")
    if not compare_digest(form.get("served", "").encode(), _text(challenge).encode()):
        return visit.go_on()
    session = await store.change(room, session, _spent(session))
    known: KnownBy | None
    if how == Kind.PASSKEY:
        response = form.get("credential", "")
        known = await assert_passkey(room.remembered, mode, challenge, response)
    else:
        known = await _by_cookie(visit)
    if known is not None:
        session = await _informed(room, session, known)
    if session.step is Collected.IDENTITY:
        # The vendor learns no more of it than that there is no buyer yet.
        return lead(f"{_check_page(visit)}&remembered=no")
    if session.status is Status.COMPLETED:
        return lead(return_url(session))
    return visit.go_on()


async def _informed(room: Checkout, session: Session, known: KnownBy) -> Session:
    """The session after its account was informed of the buyer; the same if nothing was said."""
    try:
        check = await inform(room.remembered, session.account_id, known, session.asked.shipping_zip)
    except RateLimited:
        return session
    if check.verification is None or check.cbid is None:
        return session
    return await identity.remembered(
        room, session, check.cbid, known.kind.binding, check.verification
    )


NO_OFFER: Final[Mapping[str, Any]] = {"remembered": None, "remembered_yes": False}


def offer(visit: Visit) -> Mapping[str, Any]:
    """What the page of an ended session shows: what the buyer can be remembered by, if anything.

    Only to the browser that the provider led back from the identity check: a vendor has the link
    of the session, too, and could otherwise be remembered in the buyer's place.
    """
    if is_framed(visit.call):
        return NO_OFFER
    room, mode = visit.room, visit.session.mode
    if cookie(room, visit.call, REMEMBERED, mode) or cookie(room, visit.call, PASSKEY, mode):
        return {"remembered": None, "remembered_yes": visit.form.get("remembered") == "yes"}
    if not _may_keep(visit):
        return NO_OFFER
    challenge, party, options = _challenge(visit, "keep"), room.remembered.party, None
    if party is not None:
        options = registration_options(
            room.remembered, party, mode, _cbid(visit.session), challenge, _name(visit)
        )
    shown = {"served": _text(challenge), "options": options and json.dumps(options)}
    return {
        "remembered": shown,
        "remembered_yes": False,
        "framed_by": "'none'",
        "scripts": ("page.js", SCRIPT),
    }


async def keep(visit: Visit) -> Reply:
    """Remember the buyer in the way that was chosen."""
    room, session, form = visit.room, visit.session, visit.form
    mode, challenge = session.mode, _challenge(visit, "keep")
    served = compare_digest(form.get("served", "").encode(), _text(challenge).encode())
    if not served or not _may_keep(visit):
        return visit.go_on()
    await store.change(room, session, _spent(session))
    cbid = _cbid(session)
    if form.get("how") == Kind.COOKIE:
        value = await remember_cookie(room.remembered, mode, cbid)
        header = cookie_header(room, REMEMBERED, mode, value, COOKIE_KEPT)
    elif await register(room.remembered, mode, cbid, challenge, form.get("credential", "")):
        header = cookie_header(room, PASSKEY, mode, "1", PASSKEY_KEPT)
    else:
        return visit.go_on()
    return lead(f"{visit.root}?remembered=yes{visit.lang.replace('?', '&')}", header)


async def begun(visit: Visit, reply: Reply) -> Reply:
    """The response to a form that can begin a check: its browser is informed that it has."""
    before = visit.session
    session = await store.find_by_id(visit.room, before.id)
    if session is None or session.content is None or before.status is not Status.OPEN:
        return reply
    attempts = session.content.attempts
    # The first check of a verification session was started with it, and waits for its buyer.
    waits = is_id(VERIFICATION_SESSION, session.id) and before.asked.is_waiting
    if attempts <= before.asked.attempts and not waits:
        return reply
    header = mark_header(visit.room, session, BEGAN, attempts, visit.now)
    return reply._replace(headers=(*reply.headers, header))


def is_framed(call: Call) -> bool:
    """Whether the response would be shown inside another page, as far as the browser says."""
    return call.headers.get(b"sec-fetch-dest", b"document") in _FRAMES


def _consent(visit: Visit, *, with_cookie: bool) -> Reply:
    challenge, party = _challenge(visit, "consent"), visit.room.remembered.party
    back = origin_of(visit.session.asked.return_url)
    return visit.show(
        "remembered_consent.html",
        framed_by="'none'",
        scripts=(SCRIPT,),
        # Browsers ask the policy of a form also about where its response leads.
        form_action=f"'self' {back}" if back else "'self'",
        here=f"{visit.root}/remembered",
        with_cookie=with_cookie,
        cookie_first=with_cookie
        and not cookie(visit.room, visit.call, PASSKEY, visit.session.mode),
        served=_text(challenge),
        options=party and json.dumps(assertion_options(party, challenge)),
    )


async def _by_cookie(visit: Visit) -> KnownBy | None:
    mode = visit.session.mode
    value = cookie(visit.room, visit.call, REMEMBERED, mode)
    return await by_cookie(visit.room.remembered, mode, value) if value else None


def _may_keep(visit: Visit) -> bool:
    session, content = visit.session, visit.session.asked
    check, started = content.identity, content.check
    # In the sandbox the buyer never leaves this page.
    mark = BEGAN if started is not None and started.played else RETURNED
    return (
        session.status is Status.COMPLETED
        and check is not None
        and check.verified
        and check.binding is Binding.IDENTITY_SESSION
        and has_mark(visit.room, session, mark, check.attempt, visit.call)
    )


def _cbid(session: Session) -> str:
    if session.cbid is None:
        raise CheckoutSessionClosed("No one was verified.")
    return session.cbid


def _name(visit: Visit) -> str:
    """What a device shows of a passkey: nothing of the person, who may share it."""
    words = words_of(visit.locale)
    name = words["remembered_passkey_name"]
    return f"{name} ({words['remembered_test']})" if visit.session.mode is Mode.TEST else name


def _challenge(visit: Visit, use: str) -> bytes:
    """Of this session in this state alone."""
    session = visit.session
    use = f"remembered {use} {session.revision}"
    return visit.room.access.secret.page_code(use, session.id, session.token_digest)


def _spent(before: Session) -> Callable[[Session, datetime], Session]:
    def spend(session: Session, _now: datetime) -> Session:
        """The same session in another state, if it is still in that one."""
        if session.revision != before.revision:
            raise CheckoutSessionClosed("It went on in another tab.")
        return replace(session)

    return spend


def _check_page(visit: Visit) -> str:
    return f"{visit.root}?step={CHECK}{visit.lang.replace('?', '&')}"


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
