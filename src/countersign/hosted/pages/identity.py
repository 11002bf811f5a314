"""The identity step of a session: start a check at a provider, follow it, take its decision over.

A browser's return decides nothing: only the provider's own response counts, about a session that
was started for this checkout session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from hmac import compare_digest
from typing import Final

from msgspec.structs import replace as with_members
from sqlalchemy import Connection, select

from countersign.base.db.tables import verifications
from countersign.base.errors import (
    CheckoutSessionClosed,
    InvalidRequest,
    NotFound,
    ProviderSessionNotBound,
    RateLimited,
    Refusal,
    VerificationNotConfigured,
)
from countersign.base.values import Mode, Reason
from countersign.core.buyers import started
from countersign.core.buyers.identity_check import CheckState, IdentityCheck, Trouble
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.sandbox import PROVIDER as PLAYED
from countersign.core.buyers.sandbox import simulate
from countersign.core.checkout import checks, store
from countersign.core.checkout.model import Collected, Session, Status, require_open
from countersign.hosted.pages.cookies import return_code
from countersign.hosted.pages.room import HostedPages
from countersign.hosted.remembered import Informing
from countersign_evidence.process import Binding

OUTCOMES: Final[Mapping[str, str | None]] = {
    "verified": None,
    "failed": "test_failed",
    "underage": "test_underage",
    "zip_mismatch": "test_zip_mismatch",
    "requires_input": "test_requires_input",
    "later": "test_pending",
    "cancelled": None,
    "expired": None,
    "provider_down": "test_provider_unavailable",
}
"""The outcomes of the simulated provider, each with its sandbox session."""
_GIVEN_UP: Final = {"cancelled": Reason.SESSION_CANCELED, "expired": Reason.SESSION_EXPIRED}
"""Outcomes of checks where the buyer submitted nothing."""


async def providers(room: HostedPages, session: Session) -> tuple[str, ...]:
    """The names of the providers that the buyer may choose from, the account's first one first.

    Without a configured provider the sandbox simulates one. Raises VerificationNotConfigured for a
    live session of an account without a provider.
    """
    return await started.providers_for(room.buyers, session.reach) or played(session.mode)


def played(mode: Mode) -> tuple[str, ...]:
    """The provider that the sandbox plays.

    Raises:
        VerificationNotConfigured: the mode is live.
    """
    if mode is Mode.LIVE:
        raise VerificationNotConfigured
    return (PLAYED,)


async def begin(
    room: HostedPages,
    session: Session,
    provider: str | None = None,
    *,
    browser: str = "",
    again: bool = False,
) -> Session:
    """Start an identity check, or return the one that the buyer can continue.

    The buyer continues at `session.asked.check.url`, a new URL if the provider's URLs work once. A
    new check starts if the last one is decided or abandoned by the provider, if another `provider`
    is chosen, or if the buyer wants to begin `again`. Only the `browser` that began a check gets
    its URL: another browser begins a new check.

    Raises:
        CheckoutSessionClosed: the session has ended, collects something else now, or has used up
            its attempts.
        InvalidRequest: the account has no such provider.
        VerificationNotConfigured: it has none at all.
        VerificationMisconfigured, ProviderUnavailable: no check could be started.
    """
    names = await providers(room, session)
    if provider is not None and provider not in names:
        raise InvalidRequest("There is no such identity provider for this session.")
    reserved = partial(
        checks.reserve,
        provider=provider,
        names=names,
        seen=session.asked.attempts,
        browser=browser,
        again=again,
    )
    session = await store.change(room, session, reserved)
    content = session.asked
    if content.reserved is None:
        return await _go_on(room, session)
    check = await _start(room, session, content.reserved)
    return await store.change(room, session, partial(checks.open_check, check=check))


async def _go_on(room: HostedPages, session: Session) -> Session:
    """The current check, with a URL that opens its page.

    Raises:
        CheckoutSessionClosed: the session was erased meanwhile.
        VerificationNotConfigured, VerificationMisconfigured, ProviderUnavailable: no URL is
            available.
    """
    check = session.asked.check
    if check is None or not check.opens_once or not session.asked.is_waiting:
        return session
    # Some providers open their page even for a buyer who has finished.
    with suppress(Refusal):
        session = await follow(room, session)
    if not session.asked.is_waiting:
        return session
    fresh = await _start(room, session, check)
    return await store.change(room, session, partial(checks.renew, check=fresh))


async def _start(room: HostedPages, session: Session, check: IdentityCheck) -> IdentityCheck:
    """Start a check that is reserved; repeated, it is the same check.

    Raises:
        VerificationNotConfigured, VerificationMisconfigured, ProviderUnavailable: it could not be.
    """
    content, address = session.asked, f"{room.public_url}/c/{session.id}"
    if check.provider == PLAYED:
        named = played_session(session.id)
        return with_members(check, provider_session=named, url=address, played=True)
    return await started.start(
        room.buyers,
        session.reach,
        provider=check.provider,
        reference=session.id,
        attempt=check.attempt,
        return_url=f"{address}/return/{return_code(room, session.id, check.attempt)}",
        locale=content.locale,
        shipping_zip=content.shipping_zip or "",
    )


def played_session(session_id: str) -> str:
    """The id of the pretended provider's session."""
    return f"hosted_{session_id}"


async def play(room: HostedPages, session: Session, outcome: str, browser: str = "") -> Session:
    """Simulate one of OUTCOMES in the sandbox.

    The simulated provider redirects the browser back at once.

    Raises:
        CheckoutSessionClosed: the session has ended, or collects something else now.
        InvalidRequest: unknown outcome, or a provider's own test mode is configured.
        VerificationNotConfigured: the session is live.
        ProviderUnavailable: as played.
    """
    require_open(session, await store.clock_of(room, session), Collected.IDENTITY)
    if outcome not in OUTCOMES:
        raise InvalidRequest("There is no such outcome.")
    if await providers(room, session) != played(session.mode):
        raise InvalidRequest("This account has the test mode of an identity provider.")
    session = await begin(room, session, PLAYED, browser=browser)
    attempt = session.asked.check.attempt if session.asked.check else 0
    if outcome in _GIVEN_UP:
        ended, reasons = BuyerStatus.REQUIRES_INPUT, (_GIVEN_UP[outcome],)
        check = IdentityCheck(attempt=attempt, status=ended, reasons=reasons)
        return await store.change(room, session, partial(checks.identify, check=check))
    session = await _play(room, session, OUTCOMES[outcome])
    return await came_back(room, session, attempt, browser)


async def _play(room: HostedPages, session: Session, scripted: str | None) -> Session:
    played = scripted or played_session(session.id)
    zip_ = session.asked.shipping_zip
    result = await simulate(room.buyers, session.account_id, played, zip_)
    newest = (
        select(verifications.c.id)
        .where(verifications.c.cbid == result.cbid)
        .order_by(verifications.c.id.desc())
        .limit(1)
    )
    check = IdentityCheck(
        attempt=session.asked.check.attempt if session.asked.check else 0,
        cbid=result.cbid,
        status=result.view.status,
        reasons=result.view.reasons,
        verification=await room.access.database.read(lambda c: c.execute(newest).scalar()),
    )
    return await store.change(room, session, partial(checks.identify, check=check))


async def follow(room: HostedPages, session: Session, attempt: int = 0) -> Session:
    """Ask the provider about a check now, and take its decision over.

    The newest check, or the earlier one with the number `attempt`.
    No-op if no check was started, or the session has ended or collects something else.

    Raises:
        ProviderUnavailable, VerificationMisconfigured: no usable response from the provider.
        ProviderSessionNotFound, ProviderSessionNotBound: it denies the session that it made.
        RateLimited: too many ZIP codes tried for this buyer.
    """
    content = session.content
    check = None if content is None else content.check_at(attempt) or content.check
    status = session.status_at(await store.clock_of(room, session))
    if check is None or status is not Status.OPEN or session.step is not Collected.IDENTITY:
        return session
    if check.played:
        # The sandbox plays only until the account has the test mode of a provider.
        if session.asked.is_undecided and await providers(room, session) == played(session.mode):
            session = await _play(room, session, None)
        return session
    found = await started.ask(
        room.buyers,
        session.reach,
        provider=check.provider,
        session_id=check.provider_session,
        reference=session.id,
        shipping_zip=session.asked.shipping_zip or "",
    )
    session = await take_over(room, session)
    session = await store.change(
        room, session, partial(checks.forget_trouble, attempt=check.attempt)
    )
    if found.cbid is not None or not _says_something(found):
        return session
    # No submission is known, so nothing was written about a buyer.
    return await store.change(room, session, partial(checks.note_unsubmitted, check=found))


async def look(
    room: HostedPages, session: Session, attempt: int = 0, *, is_back: bool = False
) -> tuple[Session, bool]:
    """Follow for a buyer who has finished, or has returned (`is_back`); and whether it worked.

    If the decision cannot be applied now, the session stores the reason.

    Raises:
        CheckoutSessionClosed, NotFound: the session was erased meanwhile.
    """
    try:
        return await follow(room, session, attempt), True
    except (CheckoutSessionClosed, NotFound):
        raise
    except Refusal as error:
        number = attempt or session.asked.attempts
        is_unbound = isinstance(error, ProviderSessionNotBound)
        reason = Reason.SESSION_NOT_BOUND if is_unbound else error.code
        return await not_asked(room, session, number, reason, is_back=is_back), False


async def not_asked(
    room: HostedPages,
    session: Session,
    attempt: int,
    reason: str = RateLimited.code,
    *,
    is_back: bool = True,
) -> Session:
    """Store why a check is undecided: by default, because the provider was asked too often.

    `is_back`: the buyer has returned from it.
    """
    trouble = Trouble(attempt=attempt, reason=reason, is_back=is_back)
    return await store.change(room, session, partial(checks.note_trouble, trouble=trouble))


def returned_from(room: HostedPages, session: Session, key: str) -> int:
    """The number of the check that has this key in its return address; 0: none."""
    for attempt in range(1, session.asked.attempts + 1):
        if compare_digest(return_code(room, session.id, attempt).encode(), key.encode()):
            return attempt
    return 0


async def came_back(room: HostedPages, session: Session, attempt: int, browser: str) -> Session:
    """A browser arrived at the return address of a check; "" is one without the link."""
    if not attempt:
        return session
    arrived = partial(checks.come_back, attempt=attempt, browser=browser)
    return await store.change(room, session, arrived)


async def take_over(room: HostedPages, session: Session) -> Session:
    """Take over what polls, webhooks and vendors have found of the session's checks."""
    best, seen = await room.access.database.read(started.check_of, session.id)
    outcome = _of_attempt(best) if best is not None and _says_something(best) else None
    return await store.change(room, session, partial(checks.take_over, check=outcome, seen=seen))


async def remembered(
    room: HostedPages, session: Session, informing: Informing, binding: Binding, browser: str = ""
) -> Session:
    """Apply the stored verification of a remembered buyer, in one transaction.

    Only a verified buyer ends the step; otherwise the session learns nothing. `binding` is the
    evidence that it is this buyer, and `browser` the one that presented it.

    Raises:
        CheckoutSessionClosed: the session has ended, or collects something else now; or the buyer
            is not verified any more.
    """
    found = informing.check
    if found.verification is None:
        # The session does not change: an observer with its link cannot see that a buyer was asked.
        require_open(session, await store.clock_of(room, session), Collected.IDENTITY)
        await room.access.database.write(informing.write)
        return session
    check = with_members(found, binding=binding, browser=browser)

    def written(connection: Connection, passed: Sequence[tuple[None, Session]]) -> list[Session]:
        informing.write(connection)
        return [session for _, session in passed]

    passed = await store.change(room, session, partial(checks.identify, check=check), written)
    room.remembered.passes[binding.value] += 1
    return passed


async def require_verified(room: HostedPages, session: Session) -> None:
    """Check again a buyer who was verified in this session; on failure, reopen the step.

    Raises:
        CheckoutSessionClosed: the buyer was revoked, or the account's rules ask for more now.
    """
    check = session.asked.identity
    if check is None or check.cbid is None or not check.verified:
        return
    known = await started.judge_known(room.buyers, session.reach, check.cbid, None)
    if known.status is BuyerStatus.VERIFIED:
        return
    lost = _of_attempt(with_members(check, status=known.status, reasons=known.reasons))
    await store.change(room, session, partial(checks.lose, verified=check, now_is=lost))
    raise CheckoutSessionClosed("The buyer is not verified for this account now.")


def _says_something(check: IdentityCheck) -> bool:
    """True if it says more than "the buyer has not finished at the provider"."""
    return check.cbid is not None or check.reasons != (Reason.IDENTITY_REQUIRES_INPUT,)


def _of_attempt(check: IdentityCheck) -> IdentityCheck:
    """The outcome with a reason that it has no buyer, where the buyer was revoked."""
    is_revoked = check.state is CheckState.REVOKED
    return with_members(check, reasons=(Reason.REVOKED,)) if is_revoked else check
