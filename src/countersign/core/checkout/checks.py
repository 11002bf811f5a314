"""The identity checks of a session: states in, states out, without a clock or a database.

`buyers.identity_check` defines a check and its states.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from countersign.base.errors import CheckoutSessionClosed
from countersign.base.values import Reason
from countersign.core.buyers.identity_check import IdentityCheck, Trouble
from countersign.core.checkout.model import (
    ATTEMPTS_MAX,
    Collected,
    Content,
    Session,
    Status,
    ended,
    require_open,
    with_content,
    with_end,
)


def reserve(
    session: Session,
    now: datetime,
    provider: str | None,
    names: Sequence[str],
    *,
    seen: int,
    browser: str,
    again: bool,
) -> Session:
    """Reserve the number of a new identity check; unchanged if a check can continue.

    `provider` is the requested one; without it, the last one if it is still among the account's
    `names`, or else the first of these. `again`: give up the check that the buyer has `seen`, by
    its number. Of two concurrent requests the second continues the first one's check, if they come
    from the same `browser`: another browser begins a new check, since the URL of a check lets its
    visitor act as the buyer.

    Raises:
        CheckoutSessionClosed: the session has ended, is at another step, has used up its
            attempts, or another check does not help.
    """
    content = require_open(session, now, Collected.IDENTITY)
    if content.is_barred:
        raise CheckoutSessionClosed("Another identity check does not help this buyer.")
    reserved, check, another = content.reserved, content.check, again and content.attempts <= seen
    newest = reserved or check
    last = newest.provider if newest else None
    name = provider or (last if last in names else None) or names[0]
    if reserved and (reserved.provider, reserved.browser) == (name, browser) and not another:
        return session
    same = check if check is not None and check.provider == name and not another else None
    if same is not None and _is_usable(content, same, browser, now):
        if reserved is None:
            return session
        return replace(session, content=content.with_check(replace(reserved, provider="")))
    if content.attempts >= ATTEMPTS_MAX:
        raise CheckoutSessionClosed("The checkout session has used up its identity checks.")
    new = IdentityCheck(attempt=content.attempts + 1, provider=name, browser=browser)
    return with_content(session, content, checks=(*content.checks, new), trouble=None)


def _is_usable(content: Content, check: IdentityCheck, browser: str, now: datetime) -> bool:
    """Whether this browser can go on with the newest check, or waits for its decision."""
    if content.is_waiting:
        is_own = check.browser == browser
        return is_own and (check.expires_at is None or now < check.expires_at)
    return content.is_undecided and (check.played or not content.is_decided_for_another(browser))


def open_check(session: Session, now: datetime, check: IdentityCheck) -> Session:
    """An identity check was started; unchanged if another one has replaced it."""
    content, reserved = require_open(session, now, Collected.IDENTITY), session.asked.reserved
    if reserved is None or (reserved.provider, reserved.attempt) != (check.provider, check.attempt):
        return session
    check = replace(check, browser=reserved.browser)
    return replace(session, content=replace(content.with_check(check), reasons=()))


def renew(session: Session, now: datetime, check: IdentityCheck) -> Session:
    """The page of the newest check has this address now; unchanged if that is another check."""
    content = require_open(session, now, Collected.IDENTITY)
    before = content.check
    own = check.attempt, check.provider_session
    if before is None or (before.attempt, before.provider_session) != own:
        return session
    if before.url == check.url:
        return session
    return replace(session, content=content.with_check(replace(before, url=check.url)))


def come_back(session: Session, now: datetime, attempt: int, browser: str) -> Session:
    """A provider led this browser back from a check; "" is one without the link.

    If two browsers return from one check, neither is known to be the buyer's, even if one of them
    began it. A browser that returns before there is a decision, or after a negative one, may return
    again.
    """
    content = session.content
    if content is None:
        return session
    before, identity = content.check_at(attempt), content.identity
    if before is None:
        return session
    after = before
    judged = identity if identity is not None and identity.attempt == attempt else None
    if not browser or before.browser != browser:
        after = replace(before, is_back=False)
    elif before.is_back is not False and judged and judged.cbid and judged.counts:
        after = replace(before, is_back=True, back_at=now)
    return session if after == before else replace(session, content=content.with_check(after))


def identify(session: Session, now: datetime, check: IdentityCheck) -> Session:
    """An identity check has an outcome; the session ends with it if nothing else is left.

    Raises:
        CheckoutSessionClosed: the session has ended, or is at another step.
        ValueError: the check was not started in this session.
    """
    return _judged(session, require_open(session, now, Collected.IDENTITY), check, now)


def take_over(session: Session, now: datetime, check: IdentityCheck | None, seen: int) -> Session:
    """The best of all checks of this session, as found without its buyer; `seen` counts decisions.

    No-op after the end, or if all these decisions are known. A verified outcome stays, unless a new
    decision finds its buyer revoked: a revocation alone is no decision, and is detected before the
    initials are accepted.
    """
    content = _open_content(session, now)
    if content is None or seen <= session.check_revision:
        return session
    known, before = replace(session, check_revision=seen), content.identity
    if check is None or Collected.IDENTITY not in content.collect:
        return known
    if before is not None and not before.gives_way_to(check):
        return known
    return _judged(known, content, check, now)


def lose(
    session: Session, now: datetime, verified: IdentityCheck, now_is: IdentityCheck
) -> Session:
    """The `verified` buyer no longer is; unchanged if the outcome has changed since."""
    content = _open_content(session, now)
    if content is None or content.identity != verified:
        return session
    return with_content(session, content, identity=now_is, reasons=now_is.reasons)


def note_unsubmitted(session: Session, now: datetime, check: IdentityCheck) -> Session:
    """Set the message about the newest check, for which no submission is known.

    Unchanged if it is not the newest check, if it has a submission, or if another is being decided.
    """
    content = _open_content(session, now)
    if content is None or session.step is not Collected.IDENTITY or content.is_undecided:
        return session
    is_newest = content.is_waiting and check.attempt == content.attempts
    return _judged(session, content, check, now) if is_newest else session


def note_trouble(session: Session, now: datetime, trouble: Trouble) -> Session:
    """The decision about a check could not be applied; unchanged if it is not the newest.

    Once the buyer has returned from this check, that stays stored.
    """
    content = _open_content(session, now)
    if content is None or session.step is not Collected.IDENTITY:
        return session
    if trouble.attempt != content.attempts:
        return session
    before = content.trouble
    if before is not None and before.attempt == trouble.attempt and before.is_back:
        trouble = replace(trouble, is_back=True)
    if trouble == before:
        return session
    return with_content(session, content, trouble=trouble, reasons=(trouble.reason,))


def forget_trouble(session: Session, now: datetime, attempt: int) -> Session:
    """The provider responded about this check; unchanged if there was no trouble with it."""
    content = _open_content(session, now)
    if content is None or content.trouble is None or content.trouble.attempt != attempt:
        return session
    known = content.identity
    reasons = known.reasons if known is not None and not known.verified else ()
    return with_content(session, content, trouble=None, reasons=reasons)


def _open_content(session: Session, now: datetime) -> Content | None:
    """The requested content; None if the session has ended, or was erased."""
    return session.content if session.status_at(now) is Status.OPEN else None


def _judged(session: Session, content: Content, check: IdentityCheck, now: datetime) -> Session:
    if check.attempt > content.attempts:
        raise ValueError("the identity check was not started in this session")
    young = content.young
    if check.cbid is not None and Reason.AGE_BELOW_MINIMUM in check.reasons:
        young = tuple(dict.fromkeys((*young, (check.cbid, check.attempt))))
    if check.verified:
        young = ()  # an erasure finds this session by the verified buyer alone
    content = replace(content, trouble=None, young=young)
    reasons = () if check.verified else check.reasons
    known = content.check_at(check.attempt)
    if known is not None and known.is_back and not check.counts:
        # The buyer who returns from this rejection may not be the one verified later on the same
        # page.
        content = content.with_check(replace(known, is_back=None, back_at=None))
    changed = with_end(with_content(session, content, identity=check, reasons=reasons), now)
    return ended(changed, Status.COMPLETED, now) if changed.step is None else changed
