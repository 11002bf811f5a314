"""The hosted page: a checkout session in the buyer's own browser, by links and forms.

`/c/{token}` sets a cookie and shows the page of `/c/{checkout_session_id}`, whose address its
script takes. Viewing never consumes a link: only forms change the state of a session.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from hmac import compare_digest
from typing import Any, Final

from countersign.base.errors import (
    CheckoutSessionClosed,
    InvalidClientToken,
    InvalidRequest,
    NotFound,
    NoticeNotInForce,
    NoticeNotReviewed,
    NoticeVersionMismatch,
)
from countersign.base.http.body import BODY_BYTES_MAX, FORM_BYTES_MAX, PASSKEY_FORM_BYTES_MAX
from countersign.core.access.key import CLIENT_TOKEN
from countersign.core.acknowledgments.find import find_one
from countersign.core.acknowledgments.model import ALL_FIELDS, INITIALS_LENGTH_MAX
from countersign.core.acknowledgments.schemas import Acknowledgment
from countersign.core.checkout import model, store
from countersign.core.checkout.brand import kind_of_logo, read_logo
from countersign.core.checkout.model import CLAIMS_MAX, Collected, Status, require_open
from countersign.core.checkout.order import ClaimedEvent, Reading
from countersign.core.checkout.sessions import principal_of, return_url, session_of_token
from countersign.core.dossiers.dossier import DossierQuery, dossier, pdf_of
from countersign.core.gate.route import Call, Reply, Route, grouped
from countersign.core.notices.model import NoticeEdition
from countersign.hosted.pages import buyer, identity_page, initials_page, mail_page, remembered_page
from countersign.hosted.pages.cookies import COPY, browser_of, code, new_browser, set_cookie
from countersign.hosted.pages.initials_page import (
    FORM,
    NOT_TAKEN,
    STALE,
    STEP,
    WRONG,
    adopting,
    check_again,
    differing,
    foreseen,
    wrong_in,
)
from countersign.hosted.pages.room import HostedPages
from countersign.hosted.pages.visits import Visit, VisitHandler, begun, visit_of, with_form
from countersign.hosted.toolkit.packed import packed
from countersign.hosted.toolkit.screens import FIELDS_MAX, LOCALES, PRIVATE, browser, words_of
from countersign_evidence.process import Surface, Viewport
from countersign_evidence.record import CBID_FIELD

_FIELD_BYTES_MAX: Final = 512
"""Of the initials of one line, encoded as a browser does it."""
_MISSING: Final = "missing"
"""The address parameter for the boxes."""
_BOXES: Final = ("agreement", "consent")
_CERTIFICATE_SECONDS: Final = 5.0
"""How long a certificate waits for the record to be sealed."""
_SHOWN: Final = DossierQuery(disclose=",".join(f for f in ALL_FIELDS if f != CBID_FIELD))
"""In the buyer's certificate. The buyer identifier can be used by anyone who knows it."""


async def get_page(room: HostedPages, call: Call) -> Reply:
    """A page of a session, for holders of its link, its cookie or the link of its copy."""
    return packed(await _page(room, call), call)


async def _page(room: HostedPages, call: Call) -> Reply:
    name, _, rest = call.parameter.partition("/")
    if name.startswith(f"{CLIENT_TOKEN}_") and not rest:
        return await _enter(room, call, name)
    what, _, key = rest.partition("/")
    if what == "copy" and key:
        key, _, file = key.partition("/")
        return await _handled({"": _copy, **_FILES}, file, await visit_of(room, call, name, key))
    if what == identity_page.RETURN:
        return await identity_page.come_back(room, call, name, key)
    visit = await visit_of(room, call, name)
    if rest in _posts(room) and rest not in _GETS:
        return visit.go_on()
    return await _handled(_GETS, rest, visit)


async def post_form(room: HostedPages, call: Call) -> Reply:
    """A form of a page, from the browser that the page was served to."""
    name, _, what = call.parameter.partition("/")
    visit = await visit_of(room, call, name)
    if what not in _posts(room):
        raise NotFound  # before anything is read
    return await _handled(_posts(room), what, await with_form(visit, _form_bytes(visit, what)))


def _form_bytes(visit: Visit, what: str) -> int:
    """How large a form can be: initials have a field for each line."""
    if what in {"remembered", "remember"}:
        return PASSKEY_FORM_BYTES_MAX
    reading = visit.session.asked.reading
    lines = 0 if reading is None else len(reading.lines)
    return min(FORM_BYTES_MAX + lines * _FIELD_BYTES_MAX, BODY_BYTES_MAX)


async def get_logo(room: HostedPages, call: Call) -> Reply:
    """The logo with this digest: public, and never another one."""
    picture = await room.access.database.read(read_logo, call.parameter)
    kind = None if picture is None else kind_of_logo(picture)
    if picture is None or kind is None:
        raise NotFound
    kept = (b"cache-control", b"public, max-age=604800, immutable")
    return Reply(picture, ((b"content-type", kind), kept))


async def _handled(handlers: Mapping[str, VisitHandler], what: str, visit: Visit) -> Reply:
    handler = handlers.get(what)
    if handler is None:
        raise NotFound
    try:
        return await handler(visit)
    except CheckoutSessionClosed:
        # It ended or continued in another tab: show the page of its current state.
        return visit.go_on()
    except (NoticeNotInForce, NoticeNotReviewed) as refusal:
        if visit.call.method == "POST":
            return visit.go_on()
        words = words_of(visit.locale, visit.brand.name)
        return visit.show(
            "failed.html",
            refusal.status,
            title=words["stopped_title"],
            intro=words["stopped_intro"],
            return_url=return_url(visit.session),
        )


async def _enter(room: HostedPages, call: Call, token: str) -> Reply:
    """The page, and the cookie that it goes on with in the place of the token."""
    try:
        session = await session_of_token(room, token.encode())
    except InvalidClientToken:
        raise NotFound from None
    now = await store.clock_of(room, session)
    known = browser_of(room, session, call)
    over = session.status_at(now) is not Status.OPEN and not known
    if over or now >= session.expires_at:
        # Links remain in mails and chats: without the session's cookie, an ended session shows its
        # outcome and nothing about the buyer.
        visit = await visit_of(room, call, session.id, code(room, session, COPY))
        return await _ended(visit, with_copy=False)
    browser = known or new_browser(room)
    visit = await begun(room, call, session, browser, is_by_link=True)
    reply = await _handled(_GETS, "", visit)
    return reply._replace(headers=(*reply.headers, set_cookie(room, session, now, browser)))


async def _state(visit: Visit) -> Reply:
    """The page of the state that the session is in."""
    visit = await identity_page.up_to_date(visit)
    session = visit.session
    if session.status_at(visit.now) is not Status.OPEN:
        return await _ended(visit)
    if session.step is Collected.IDENTITY:
        if (asked := await remembered_page.asked_first(visit)) is not None:
            return asked
        return await identity_page.show(visit)
    notice, reading = await buyer.notice_of(visit.room, session), session.asked.reading
    if visit.form.get(STEP) == FORM:
        return await _notice(visit, notice)
    if reading is None or reading.initials is None or reading.notice_digest != notice.digest:
        return await foreseen(visit, notice) or await _notice(visit, notice)
    reply = _review(visit, notice, reading)
    if visit.call.method != "HEAD":
        await buyer.review(visit.room, session, visit.locale)
    return reply


async def _notice(visit: Visit, notice: NoticeEdition) -> Reply:
    """The notice with a field for each line, and the errors in them.

    Initials for another text are dropped, and the page says so.
    """
    session, content = visit.session, notice.content
    reading, words = session.asked.reading, words_of(visit.locale)
    stale = visit.form.get(STALE)
    changed = (reading is not None and reading.notice_digest != notice.digest) or (
        stale is not None and await _was_in_force(visit, notice, stale)
    )
    if stale is not None or changed:
        reading = None
    typed = (reading.typed or reading.known) if reading else ("",) * len(content.bullets)
    wrong = visit.form.get(WRONG, "")
    is_bare = not any(typed) and not wrong
    reply = visit.show(
        "notice.html",
        200,
        (notice.digest, changed) if is_bare else None,
        here=f"{visit.root}?step=form",
        notice=content,
        digest=notice.digest,
        typed=typed,
        errors=wrong_in(typed, wrong, words),
        not_taken=wrong == NOT_TAKEN,
        adopting=adopting(visit, reading),
        changed=changed,
        length_max=INITIALS_LENGTH_MAX,
    )
    if visit.call.method != "HEAD":
        digest = sha256(reply.body).hexdigest()
        await buyer.show(visit.room, session, notice, Surface.PAGE, digest, visit.locale)
    return reply


async def _was_in_force(visit: Visit, notice: NoticeEdition, digest: str) -> bool:
    """Whether this is the digest of another version of this notice."""
    versions = await visit.room.clearances.registry.versions(notice.content.id)
    return digest in {one.digest for one in versions} - {notice.digest}


def _review(visit: Visit, notice: NoticeEdition, reading: Reading) -> Reply:
    words, missing = words_of(visit.locale), visit.form.get(_MISSING, "").split()
    odd = differing(reading.initials or ("",))
    errors = {name: words[f"{name}_missing"] for name in _BOXES if name in missing}
    return visit.show(
        "review.html",
        notice=notice.content,
        initials=reading.initials,
        differing=odd,
        letters=[f"({notice.content.bullets[number - 1].id})" for number in odd],
        reviewed=_shown(visit, reading),
        errors=errors,
    )


async def _ended(visit: Visit, *, with_copy: bool = True) -> Reply:
    """How the session ended, and the way back to the vendor."""
    session, status = visit.session, visit.session.status_at(visit.now)
    words = words_of(visit.locale, visit.brand.name)
    name = "done" if status is Status.COMPLETED else status.value
    alone = session.asked.collect == (Collected.IDENTITY,)
    intro = f"{name}_identity" if alone else f"{name}_intro"
    return visit.show(
        "ended.html",
        title=words[f"{name}_title"],
        intro=words[intro],
        return_url=return_url(session),
        next=status is Status.COMPLETED,
        **(await remembered_page.offer(visit) if with_copy else remembered_page.NO_OFFER),
        **(await _copied(visit) if with_copy else {"ack": None, "mail": None}),
    )


async def _copied(visit: Visit) -> dict[str, Any]:
    """The values for a page with the buyer's copy; empty values if there is none."""
    session, ack = visit.session, await _acknowledgment(visit)
    if ack is None:
        return {"ack": None, "mail": None}
    notice = await visit.room.clearances.registry.version_for(
        ack.notice_id, ack.notice_version, session.mode
    )
    return {
        "ack": ack,
        "receipt": visit.session.asked.receipt,
        "notice": notice.content,
        "key": code(visit.room, session, COPY),
        **await mail_page.offer(visit),
    }


async def _acknowledgment(visit: Visit) -> Acknowledgment | None:
    """The acknowledged text of this session, while the buyer's copy is kept."""
    session = visit.session
    if session.ack_id is None or not session.has_copy_at(visit.now):
        return None
    found = await find_one(visit.room.acknowledgments, principal_of(session), session.ack_id)
    return found if found.initials_per_line is not None else None


async def _copy(visit: Visit) -> Reply:
    """The buyer's copy."""
    copied = await _copied(visit)
    if copied["ack"] is None:
        raise NotFound
    return visit.show("copy.html", here=f"{visit.root}/copy/{copied['key']}", **copied)


async def _certificate(visit: Visit) -> Reply:
    ack = await _acknowledgment(visit)
    if ack is None:
        raise NotFound
    room, who = visit.room.acknowledgments, principal_of(visit.session)
    # A view creates nothing: it may be a mail scanner.
    pdf = b""
    if visit.call.method != "HEAD":
        async with visit.room.copies.turn(visit.session.id):
            # Later decisions and reports are for the vendor to hand out.
            made = await dossier(room, who, ack.ack_id, _SHOWN, _CERTIFICATE_SECONDS, alone=True)
            pdf = pdf_of(made)
    return saved_file(pdf, b"application/pdf", f"{ack.ack_id}.pdf")


async def _receipt(visit: Visit) -> Reply:
    ack, content = await _acknowledgment(visit), visit.session.content
    if ack is None or content is None or content.receipt is None:
        raise NotFound
    receipt = content.receipt.encode()
    return saved_file(receipt, b"text/plain; charset=utf-8", f"{ack.ack_id}.receipt.txt")


def saved_file(body: bytes, kind: bytes, name: str) -> Reply:
    saved = (b"content-disposition", f'attachment; filename="{name}"'.encode())
    return Reply(body, ((b"content-type", kind), saved, *PRIVATE))


_FILES: Final = {"certificate.pdf": _certificate, "receipt.txt": _receipt}
"""The files that a buyer can download."""


async def _ask_to_decline(visit: Visit) -> Reply:
    require_open(visit.session, visit.now)
    return visit.show("decline.html", here=f"{visit.root}/decline", step=visit.session.step)


async def _decline(visit: Visit) -> Reply:
    await store.change(visit.room, visit.session, model.declined)
    return visit.go_on()


async def _accept(visit: Visit) -> Reply:
    """Acknowledge with the reviewed initials, if both boxes are ticked."""
    room, form = visit.room, visit.form
    reading = require_open(visit.session, visit.now, Collected.ACKNOWLEDGMENT).reading
    if reading is None or reading.reviewed_at is None:
        return visit.go_on()
    # The buyer agrees to the sentences of the review that the form came from.
    sent = form.get("reviewed", "").encode()
    served = [replace(visit, locale=locale) for locale in LOCALES]
    found = [one for one in served if compare_digest(_shown(one, reading).encode(), sent)]
    if not found:
        return visit.go_on()
    [visit] = found
    notice = await buyer.notice_of(room, visit.session)
    if notice.digest != reading.notice_digest:
        return visit.go_on()  # to the new text, which says that it is new
    missing = [name for name in _BOXES if form.get(name) != "yes"]
    if missing:
        return visit.go_on(**{_MISSING: " ".join(missing)})
    with suppress(NoticeVersionMismatch):
        session = await buyer.review(room, visit.session, visit.locale)
        await buyer.accept(room, session, browser(room, visit.call))
    return visit.go_on()


async def _claim(visit: Visit) -> Reply:
    """Store the events claimed by the script of the page."""
    form = visit.form
    try:
        events = [
            (int(line) or None, ClaimedEvent(event))
            for line, _, event in (text.partition(":") for text in form["events"].split())
        ]
        viewport = Viewport(width=_size(form["width"]), height=_size(form["height"]))
    except (KeyError, ValueError):
        raise InvalidRequest("These are no claims.") from None
    if len(events) > CLAIMS_MAX or any(not 0 <= (line or 0) <= FIELDS_MAX for line, _ in events):
        raise InvalidRequest("These are no claims.")
    claimed = partial(model.claimed, events=events, viewport=viewport)
    await store.change(visit.room, visit.session, claimed)
    return Reply(b"", PRIVATE, 204)


def _size(text: str) -> int:
    size = int(text)
    if not 0 <= size < 2**31:
        raise ValueError(text)
    return size


def _shown(visit: Visit, reading: Reading) -> str:
    """A digest that only a served review has: of this text, these initials, in this language."""
    parts = (visit.locale, reading.notice_digest, *(reading.initials or ()))
    return code(visit.room, visit.session, "\x00".join(("review", *parts)))


_GETS: Final[Mapping[str, VisitHandler]] = {
    "": _state,
    "decline": _ask_to_decline,
    "copy": _copy,
    **_FILES,
    **identity_page.GETS,
    "remembered": remembered_page.ask,
}
_POSTS: Final[Mapping[str, VisitHandler]] = {
    "initials": initials_page.take,
    "press": initials_page.press,
    "accept": _accept,
    "decline": _decline,
    "events": _claim,
    "check-again": check_again,
    **identity_page.POSTS,
    "remembered": remembered_page.consent,
    "arrive": remembered_page.arrive,
    "remember": remembered_page.keep,
}
_POSTS_WITH_MAIL: Final = {**_POSTS, mail_page.MAIL: mail_page.ask}


def _posts(room: HostedPages) -> Mapping[str, VisitHandler]:
    return _POSTS if room.mails is None else _POSTS_WITH_MAIL


ROUTES: Final = grouped(
    "",
    HostedPages,
    Route(address="GET /c/{path*}", handler=get_page),
    Route(address="POST /c/{path*}", handler=post_form, raw_body_max=BODY_BYTES_MAX),
    Route(address="GET /logos/{path*}", handler=get_logo),
)
