"""The identity step of the hosted page: to a provider's own page, back from it, and its decision.

Parameters that a browser brings back from a provider are ignored: only the provider's own response
counts. Viewing a page starts no check and queries no provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from typing import Final

from countersign.base.errors import (
    CheckoutSessionClosed,
    InvalidRequest,
    NotFound,
    ProviderUnavailable,
    Refusal,
    VerificationMisconfigured,
    VerificationNotConfigured,
)
from countersign.base.values import Reason, digits
from countersign.core.access.account import origin_of
from countersign.core.buyers.identity_check import FOLLOWED, IdentityCheck
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.sandbox import PROVIDER as PLAYED
from countersign.core.checkout import store
from countersign.core.checkout.model import (
    ATTEMPTS_MAX,
    Collected,
    Content,
    Session,
    Status,
    require_open,
    seen_by,
)
from countersign.core.checkout.sessions import return_url
from countersign.core.gate.route import Call, Header, Reply
from countersign.hosted.pages import identity
from countersign.hosted.pages.room import ADDRESS_LENGTH_MAX, HostedPages, qr_code
from countersign.hosted.pages.visits import Visit, VisitHandler, count, visit_of
from countersign.hosted.toolkit.screens import PRIVATE, lead, preferred, screen, words_of

RETURN: Final = "return"
"""Part of the URL to which a provider redirects the buyer back."""
_NOTICED: Final = "checked"
_DEVICE: Final = "device"
_DOWN: Final = "down"
_UNBUFFERED: Final[Header] = (b"x-accel-buffering", b"no")
"""For nginx, which otherwise buffers responses."""
_GENERAL: Final = frozenset({Reason.IDENTITY_FAILED, Reason.IDENTITY_REQUIRES_INPUT})
_ADDRESS_HELP: Final = {
    "didit": "identity_zip_proof",
    "persona": "identity_zip_database",
    "plaid": "identity_zip_database",
}
"""Advice for a buyer whose address has another ZIP code, by provider: docs/verification.md."""
_NOT_STARTED: Final = (ProviderUnavailable, VerificationMisconfigured, VerificationNotConfigured)


class Stage(StrEnum):
    """The state of the identity step."""

    BEGIN = "begin"
    WAITING = "waiting"
    """A check was started, and its buyer has not finished it."""
    BACK = "back"
    """The buyer has returned, and the provider's decision is not applied yet."""
    WRONG = "wrong"
    """The decision cannot be applied until the vendor fixes a problem."""
    BARRED = "barred"
    """Another check does not help this buyer."""
    DECIDING = "deciding"
    FAILED = "failed"
    USED_UP = "used_up"


def stage_of(visit: Visit) -> Stage:
    """The stage of a session that is at the identity."""
    content = visit.session.asked
    check, known = content.check, content.identity
    is_used_up = content.attempts >= ATTEMPTS_MAX
    if (stopped := _stopped(content)) is not None:
        return stopped
    if check is not None and content.is_waiting:
        if check.expires_at is None or visit.now < check.expires_at:
            return Stage.WAITING
        return Stage.USED_UP if is_used_up else Stage.FAILED
    if known is not None and known.status is BuyerStatus.PENDING:
        return Stage.DECIDING
    if is_used_up:
        return Stage.USED_UP
    return Stage.BEGIN if known is None else Stage.FAILED


def _stopped(content: Content) -> Stage | None:
    """The stage if the buyer has nothing to do at the provider, else None."""
    if content.stopped_by:
        return Stage.BARRED if content.is_barred else Stage.WRONG
    is_back = content.trouble is not None and content.trouble.is_back
    return Stage.BACK if is_back and not content.is_undecided else None


_REFUSED: Final = frozenset({Stage.FAILED, Stage.USED_UP, Stage.BARRED})


async def up_to_date(visit: Visit) -> Visit:
    """The same visit, updated with an identity result found without the buyer."""
    session = visit.session
    is_open = session.status_at(visit.now) is Status.OPEN
    if not is_open or session.step is not Collected.IDENTITY or visit.call.method == "HEAD":
        return visit
    found = await visit.room.looks.join(
        (session.id, "identity"), lambda: identity.take_over(visit.room, session)
    )
    return replace(visit, session=seen_by(found, visit.browser))


async def show(visit: Visit) -> Reply:
    """The page of the identity step.

    The address may name a provider that did not respond; without a name, or with an unknown one, it
    is the provider of the newest check, or the account's first.
    """
    content, stage = visit.session.asked, stage_of(visit)
    down, is_unavailable = visit.form.get(_DOWN), _DOWN in visit.form
    try:
        names = await identity.providers(visit.room, visit.session)
    except VerificationNotConfigured:
        names, is_unavailable = (), True
    is_played = names == (PLAYED,)
    at_provider = {Stage.WAITING, Stage.BACK}
    going_on = {*at_provider, Stage.DECIDING, Stage.WRONG}
    # Only the browser that began the check is redirected to its page.
    is_own = content.check is not None and content.check.browser == visit.browser
    is_stopped = stage in {Stage.WRONG, Stage.BARRED}
    if content.is_undecided and not is_stopped and not (stage is Stage.WAITING and is_own):
        # Perhaps of an older check: another browser's check does not count here.
        stage = Stage.DECIDING
    may_begin = content.attempts < ATTEMPTS_MAX
    # Perhaps the account has had the test mode of a provider since.
    is_replaced = not is_played and content.check and content.check.played and stage in going_on
    if is_replaced or (stage in at_provider and (is_played or not is_own)):
        stage = Stage.BEGIN if is_played or may_begin else Stage.USED_UP
    provider = names[0] if names else ""
    if content.check and stage in going_on:
        provider = content.check.provider
    check = content.check if stage in at_provider else None
    if stage is Stage.WRONG:
        # Another provider may have nothing wrong.
        names = tuple(name for name in names if name != provider)
    url = _address(check)
    # An address that opens the page once is fetched when the buyer wants to go there.
    is_fetched = check is not None and check.opens_once
    is_for_device = visit.form.get(_DEVICE) == "yes"
    qr = None
    if url is not None and (is_for_device or not is_fetched):
        qr = await qr_code(visit.room.looks, url, words_of(visit.locale)["identity_qr"])
    zip_help = _zip_help(content, names, words_of(visit.locale))
    is_alike = stage is Stage.BEGIN and not zip_help
    return visit.show(
        "identity.html",
        alike=(names, provider, down, is_unavailable) if is_alike else None,
        stage=stage.value,
        attempts=content.attempts,
        may_begin=may_begin,
        left=ATTEMPTS_MAX - content.attempts,
        of_another=not is_played and content.is_decided_for_another(visit.browser),
        providers={name: _title(name) for name in names},
        provider=_title(provider),
        down=None if is_played or not names else _title(down if down in names else provider),
        outcomes=[*identity.OUTCOMES] if is_played else [],
        reasons=_reasons(content) if stage in _REFUSED else (),
        unavailable=is_unavailable,
        unfinished=stage is Stage.WAITING and visit.form.get(_NOTICED) == "yes",
        url=url,
        chosen=check and check.provider,
        fetched=is_fetched,
        leads_back=check is None or check.leads_back,
        device=is_for_device,
        qr=qr,
        codeless=url is not None and len(url) > ADDRESS_LENGTH_MAX,
        alone=content.collect == (Collected.IDENTITY,),
        until=visit.session.expires_at,
        zip_help=zip_help,
        revision=visit.session.revision,
        return_url=return_url(visit.session),
    )


async def start(visit: Visit) -> Reply:
    """Start a check at the chosen provider, or continue the open one."""
    form, content = visit.form, visit.session.asked
    # The second press of a button refers to a check that is already abandoned.
    again = form.get("again") == str(content.attempts)
    provider = form.get("provider") or None
    if content.is_waiting and not visit.room.asking.may(visit.session.id):
        return visit.go_on(**{_DOWN: "yes"})
    try:
        session = await identity.begin(
            visit.room, visit.session, provider, browser=visit.browser, again=again
        )
    except _NOT_STARTED:
        return visit.go_on(**{_DOWN: provider or "yes"})
    begun = session.content
    if begun is None:
        return visit.go_on()
    if form.get(_DEVICE) == "yes":
        return visit.go_on(**{_DEVICE: "yes"})
    # If the provider does not redirect back, this page stays open in its own window.
    check = begun.check
    stays = check is None or check.played or not check.leads_back
    return lead(visit.address("" if stays else "/continue"))


async def go_to_provider(visit: Visit) -> Reply:
    """Lead on to the provider's page, from a page of ours.

    Browsers apply a form's policy to redirects of its response too, and our policy names no other
    site.
    """
    require_open(visit.session, visit.now, Collected.IDENTITY)
    check = visit.session.asked.check
    url = _address(check)
    is_there = stage_of(visit) in {Stage.WAITING, Stage.BACK}
    is_own = check is not None and check.browser == visit.browser
    if check is None or check.played or url is None or not (is_there and is_own):
        return visit.go_on()
    return visit.show(
        "identity_continue.html",
        here=f"{visit.root}/continue",
        url=url,
        provider=_title(check.provider),
    )


async def check_now(visit: Visit) -> Reply:
    """Ask the provider, as the buyer says to be done there."""
    if not visit.room.asking.may(visit.session.id):
        return visit.go_on(**{_DOWN: "yes"})
    try:
        session, is_answered = await identity.look(visit.room, visit.session)
    except (CheckoutSessionClosed, NotFound):
        return visit.go_on()
    if not is_answered and not session.asked.stopped_by:
        return visit.go_on(**{_DOWN: "yes"})
    if is_answered and session.content is not None and session.content.is_waiting:
        return visit.go_on(**{_NOTICED: "yes"})
    return visit.go_on()


async def play(visit: Visit) -> Reply:
    """Play the outcome that was chosen on the page of the pretended provider."""
    try:
        await identity.play(visit.room, visit.session, visit.form.get("outcome", ""), visit.browser)
    except ProviderUnavailable:
        return visit.go_on(**{_DOWN: "yes"})
    return visit.go_on()


async def come_back(room: HostedPages, call: Call, session_id: str, key: str) -> Reply:
    """The return address for providers. Its query is not read: anybody could write it.

    A browser without the cookie is another device, or a stranger: it is not redirected. `key`
    identifies the check, and decides only whether the buyer may be remembered there.
    """
    call.query_string = b""
    is_seen = call.method != "HEAD" and not _is_prefetched(call)
    try:
        visit = await visit_of(room, call, session_id)
    except NotFound:
        session = await store.find_by_id(room, session_id) if is_seen else None
        if session is not None and session.content is not None:
            attempt = identity.returned_from(room, session, key)
            if attempt:
                await count(call, session)
            await identity.came_back(room, session, attempt, "")
        locale = preferred(call.headers.get(b"accept-language", b""))
        words = words_of(locale)
        return screen(
            "failed.html",
            locale,
            None,
            title=words["elsewhere_title"],
            intro=words["elsewhere_intro"],
            return_url=None,
        )
    session = visit.session
    attempt = identity.returned_from(room, session, key)
    if is_seen and _may_ask(session):
        came_from = session.asked.check_at(attempt)
        is_back = came_from is not None and came_from.browser == visit.browser
        # The page has a button to retry, and the provider's decision arrives anyway.
        with suppress(CheckoutSessionClosed, NotFound):
            if room.asking.may(session_id):
                session, _ = await identity.look(room, session, attempt, is_back=is_back)
            elif is_back:
                session = await identity.not_asked(room, session, attempt)
    if is_seen:
        with suppress(Refusal):  # erased meanwhile
            await identity.came_back(room, session, attempt, visit.browser)
    return visit.go_on()


async def updates(visit: Visit) -> Reply:
    """The events of the session, for a page that shows it at the revision in the query."""
    headers = ((b"content-type", b"text/event-stream"), *PRIVATE, _UNBUFFERED)
    shown = digits(visit.form.get("revision", ""), 9)
    if shown is None:
        raise InvalidRequest("Expected the revision that the page shows.")
    if visit.call.method == "HEAD":
        return Reply(b"", headers)
    session = visit.session
    owner = (session.account_id, session.mode)
    pieces = visit.room.updates.after(session.id, shown, owner)
    return Reply(await anext(pieces), headers, 200, pieces)


def _may_ask(session: Session) -> bool:
    """Whether the provider may say something new."""
    content = session.content
    if content is None or session.status is not Status.OPEN:
        return False
    known = content.identity
    return content.is_waiting or (known is not None and known.state in FOLLOWED)


def _is_prefetched(call: Call) -> bool:
    """Whether a browser loads this before anybody wants to see it."""
    said = (call.headers.get(name, b"") for name in (b"sec-purpose", b"purpose", b"x-moz"))
    return any(b"prefetch" in value.lower() for value in said)


def _reasons(content: Content) -> tuple[str, ...]:
    known = content.identity
    if content.is_barred:
        return content.stopped_by
    if content.is_waiting:
        return (Reason.SESSION_EXPIRED,)
    if known is None:
        return ()
    # The provider's reason says more than its decision.
    specific = tuple(one for one in known.reasons if one not in _GENERAL)
    return specific or known.reasons or ("other",)


def _zip_help(content: Content, names: Sequence[str], words: Mapping[str, str]) -> list[str]:
    """The buyer's options if the ZIP code differs, at this provider and at another."""
    check, known = content.check, content.identity
    if check is None or known is None or Reason.ZIP_MISMATCH not in known.reasons:
        return []
    own = _ADDRESS_HELP.get(check.provider, "identity_zip_document")
    said = [words[own].replace("{provider}", _title(check.provider))]
    others = sorted({*names} & _ADDRESS_HELP.keys() - {check.provider})
    if own == "identity_zip_document" and others:
        said.append(words["identity_zip_elsewhere"].replace("{provider}", _title(others[0])))
    return said


def _address(check: IdentityCheck | None) -> str | None:
    """The address of a check's page: a browser could take any other kind of text for a script."""
    return check.url if check is not None and origin_of(check.url) is not None else None


def _title(provider: str) -> str:
    return provider.capitalize()


GETS: Final[Mapping[str, VisitHandler]] = {"continue": go_to_provider, "updates": updates}
POSTS: Final[Mapping[str, VisitHandler]] = {"start": start, "check": check_now, "identity": play}
