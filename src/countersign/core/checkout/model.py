"""A checkout session and each step through it: states in, states out.

The identity comes first, so that the initials belong to a check. It ends when all is collected.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from countersign.base.errors import CheckoutSessionClosed, NoticeVersionMismatch
from countersign.base.values import Mode, Reason
from countersign.core.access.reach import AccountReach
from countersign.core.acknowledgments.model import INITIALS_LENGTH_MAX, Client
from countersign.core.buyers.identity_check import WRONG_SET_UP, CheckState, IdentityCheck, Trouble
from countersign.core.buyers.model import BuyerStatus
from countersign.core.checkout.order import (
    BrowserClaim,
    ClaimedEvent,
    LineSeen,
    Order,
    Press,
    Reading,
)
from countersign.core.clearances.schemas import ClearanceDecision
from countersign.core.notices.rule import Exemption
from countersign_evidence.process import Binding, Surface, Viewport

LIFETIME: Final = timedelta(minutes=30)
LIFETIME_MAX: Final = timedelta(hours=24)
UNDECIDED_MAX: Final = timedelta(days=15)
"""How long a session waits for the provider's decision: a day longer than it is polled."""
KEPT: Final = timedelta(days=30)
"""How long an ended session can be read, and how long the buyer's own copy can be opened."""
CLAIMS_MAX: Final = 200
TYPED_LENGTH_MAX: Final = 4 * INITIALS_LENGTH_MAX
"""Maximum characters of rejected input that is shown again; fields accept no more than initials."""
ELSEWHERE_MAX: Final = 12  # readings of other browsers: mail scanners and previews open a link, too
ATTEMPTS_MAX: Final = 5
"""Identity checks that one session may start: each costs the vendor something."""


class Status(StrEnum):
    """Where a session stands; all but `open` are ends."""

    OPEN = "open"
    COMPLETED = "completed"
    DECLINED = "declined"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Collected(StrEnum):
    """What a session collects."""

    ACKNOWLEDGMENT = "acknowledgment"
    IDENTITY = "identity"


class Content(Struct, frozen=True, kw_only=True):
    """The request and the buyer's progress: personal, stored sealed."""

    session_id: str
    return_url: str
    collect: tuple[Collected, ...]
    notice_id: str | None
    cbid: str | None
    shipping_zip: str | None
    product_class: str | None
    origin: str | None
    locale: str
    by_browser: bool = False
    """Whether the vendor gave no language, so that each browser uses its own."""
    order: Order | None = None
    destination: str | None = None
    product_classes: tuple[str, ...] | None = None
    exemption: Exemption | None = None
    """The vendor's assertions about the cart."""
    order_reference: str | None = None
    reading: Reading | None = None
    """The reading of the browser that changed the session last, or that views it now."""
    elsewhere: tuple[Reading, ...] = ()
    """The readings of other browsers with the link: initials belong to the browser that they were
    typed in."""
    checks: tuple[IdentityCheck, ...] = ()
    """In the order of their numbers, which begin at 1."""
    identity: IdentityCheck | None = None
    """The outcome that counts: of one of the checks, or of a remembered buyer."""
    trouble: Trouble | None = None
    young: tuple[tuple[str, int], ...] = ()
    """The buyers that checks have found to be not old enough, each with the number of the check."""
    ordinary_end: datetime | None = None
    """When the session would end if the provider did not decide about its identity check."""
    cleared: bool | None = None
    reasons: tuple[str, ...] = ()
    receipt: str | None = None
    """The log's promise to have the record of the acknowledgment."""

    @property
    def is_exempt(self) -> bool:
        """Whether the requirements of the cart waived its notice."""
        return self.exemption is not None and Collected.ACKNOWLEDGMENT not in self.collect

    @property
    def attempts(self) -> int:
        """How many identity checks have a number."""
        return len(self.checks)

    @property
    def reserved(self) -> IdentityCheck | None:
        """The newest check while it is being started."""
        newest = self.checks[-1] if self.checks else None
        return newest if newest and newest.state is CheckState.RESERVED else None

    @property
    def check(self) -> IdentityCheck | None:
        """The newest check that was started."""
        return next((check for check in reversed(self.checks) if check.is_open), None)

    def check_at(self, attempt: int) -> IdentityCheck | None:
        """The check with this number."""
        return self.checks[attempt - 1] if 0 < attempt <= len(self.checks) else None

    def with_check(self, check: IdentityCheck) -> Content:
        """This content, with the check of the same number replaced."""
        at = check.attempt - 1
        checks = (*self.checks[:at], self.checks[at].becoming(check), *self.checks[at + 1 :])
        return replace(self, checks=checks)

    def is_checked_in(self, browser: str) -> bool:
        """Whether this browser showed in this session that it is the verified buyer's.

        It began the check and only it returned from it; or it has a remembered passkey or cookie.
        """
        outcome = self.identity
        if outcome is None or not outcome.verified or not browser:
            return False
        if outcome.binding is not Binding.IDENTITY_SESSION:
            return outcome.browser == browser
        begun = self.check_at(outcome.attempt)
        return begun is not None and begun.browser == browser and begun.is_back is True

    @property
    def is_waiting(self) -> bool:
        """Whether the newest identity check has no outcome yet: its buyer can continue it."""
        check, identity = self.check, self.identity
        return check is not None and (identity is None or identity.attempt < check.attempt)

    @property
    def identity_status(self) -> BuyerStatus | None:
        """Where the identity check stands; None: nothing is known of the newest one yet."""
        known = self.identity
        stands = known and (known.verified or self.is_undecided or not self.is_waiting)
        return known.status if known and stands else None

    @property
    def is_undecided(self) -> bool:
        """Whether a provider decides about an identity check."""
        return self.identity is not None and self.identity.state is CheckState.PENDING

    @property
    def is_too_young(self) -> bool:
        """Whether a second check has found the same document."""
        return len({cbid for cbid, _ in self.young}) < len(self.young)

    @property
    def is_barred(self) -> bool:
        """Whether another check does not help this buyer."""
        known = self.identity
        return self.is_too_young or (known is not None and known.state is CheckState.REVOKED)

    @property
    def stopped_by(self) -> tuple[Reason, ...]:
        """Why the buyer cannot go on, whatever the buyer does: the vendor has to act."""
        if self.is_barred:
            return (Reason.AGE_BELOW_MINIMUM if self.is_too_young else Reason.REVOKED,)
        trouble = self.trouble
        return (Reason(trouble.reason),) if trouble and trouble.reason in WRONG_SET_UP else ()

    def is_decided_for_another(self, browser: str) -> bool:
        """Whether the provider decides about a check that another browser has begun."""
        identity = self.identity
        check = self.check_at(identity.attempt) if identity and self.is_undecided else None
        return check is not None and check.browser != browser


class Session(Struct, frozen=True, kw_only=True):
    """A checkout session as stored; `content` is None once it is erased."""

    id: str
    account_id: str
    mode: Mode
    revision: int
    token_digest: bytes
    shred_key: bytes | None
    status: Status
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None
    ack_id: str | None
    clearance_id: str | None
    check_revision: int = 0
    """How many decisions about its identity checks are taken over."""
    consents: int = 0
    """How many decisions of visitors about being remembered were counted."""
    content: Content | None
    is_unreadable: bool = False  # its content is damaged, and left out of a list
    browser: str = ""  # which one looks at it, as in a reading; not stored

    def __repr__(self) -> str:
        return f"<Session {self.id}: hidden>"

    @property
    def reach(self) -> AccountReach:
        """The account whose session it is."""
        return AccountReach(self.account_id, self.mode)

    def status_at(self, now: datetime) -> Status:
        """An open session expires by itself, and at once if its content was erased."""
        gone = self.content is None and not self.is_unreadable
        if self.status is Status.OPEN and (gone or now >= self.expires_at):
            return Status.EXPIRED
        return self.status

    @property
    def asked(self) -> Content:
        """The request.

        Raises:
            CheckoutSessionClosed: it was erased.
        """
        if self.content is None:
            raise CheckoutSessionClosed("The content of the checkout session was erased.")
        return self.content

    @property
    def cbid(self) -> str | None:
        """The buyer: as verified by the identity check, else as given."""
        content = self.content
        if content is None:
            return None
        identity = content.identity
        return identity.cbid if identity and identity.verified else content.cbid

    @property
    def subject(self) -> str | None:
        """The buyer whose erasure erases this session: `cbid`, else the unverified one.

        If a session has both, the second is found through its identity checks.
        """
        identity = None if self.content is None else self.content.identity
        return self.cbid or (identity.cbid if identity else None)

    @property
    def is_of_known_buyer(self) -> bool:
        """True if a buyer known to the vendor must do a new identity check.

        Then no other proof suffices: neither a cookie nor a passkey of a remembered buyer.
        """
        return self.asked.cbid is not None

    @property
    def step(self) -> Collected | None:
        """The next part to collect; None: nothing is left."""
        content = self.content or self.asked  # which refuses
        verified = content.identity is not None and content.identity.verified
        if Collected.IDENTITY in content.collect and not verified:
            return Collected.IDENTITY
        if Collected.ACKNOWLEDGMENT in content.collect and self.ack_id is None:
            return Collected.ACKNOWLEDGMENT
        return None

    def has_copy_at(self, now: datetime) -> bool:
        """Whether the buyer's own copy of the acknowledgment can be opened."""
        return self.ack_id is not None and self.ended_at is not None and now < self.ended_at + KEPT

    @property
    def may_clear(self) -> bool:
        """Whether the facts suffice to ask for a clearance, and none was decided yet."""
        content = self.content
        if self.status is not Status.COMPLETED or content is None or content.cleared is not None:
            return False
        acked = self.ack_id is not None or content.is_exempt
        return acked and None not in {self.cbid, content.shipping_zip}


def seen_by(session: Session, browser: str) -> Session:
    """The session as this browser sees it: with its own reading, and none of another's initials."""
    seen, content = replace(session, browser=browser), session.content
    if content is None or session.browser == browser != "":
        return seen
    readings = [*content.elsewhere, *filter(None, [content.reading])]
    own = next((one for one in readings if one.browser == browser), None)
    # A mere viewer, such as a mail scanner, does not displace anyone's initials.
    others = sorted((one for one in readings if one is not own), key=lambda one: any(one.known))
    return with_content(seen, content, reading=own, elsewhere=(*others[-ELSEWHERE_MAX:],))


def require_open(session: Session, now: datetime, step: Collected | None = None) -> Content:
    """The content of an open session, at this step if one is named.

    Raises:
        CheckoutSessionClosed: it has ended, or this step is over or not reached yet.
    """
    status = session.status_at(now)
    if status is not Status.OPEN:
        raise CheckoutSessionClosed(f"The checkout session is {status}.")
    if step is not None and (due := session.step) is not step:
        raise CheckoutSessionClosed(f"The checkout session collects the {due} now, not the {step}.")
    return session.content or session.asked


def shown(  # noqa: PLR0917 - what is kept of a rendered notice
    session: Session,
    now: datetime,
    notice: tuple[str, str, int],
    surface: Surface,
    rendered_digest: str | None,
    locale: str,
) -> Session:
    """The notice was served: `notice` is its version, digest and number of lines.

    Initials of another text, or on another surface, are dropped: a browser has one. Once
    a line has initials, a view changes neither them nor their times.
    """
    content = require_open(session, now, Collected.ACKNOWLEDGMENT)
    version, digest, lines = notice
    reading = content.reading
    if reading is None or (reading.notice_digest, reading.surface) != (digest, surface):
        reading = Reading(
            browser=session.browser,
            notice_version=version,
            notice_digest=digest,
            surface=surface,
            rendered_digest=rendered_digest,
            locale=locale,
            opened_at=now,
            lines=(LineSeen(shown_at=now),) * lines,
        )
    elif reading.initials is not None:
        return session
    else:
        seen = LineSeen(shown_at=now)
        again = tuple(seen if one.initialed_at is None else one for one in reading.lines)
        reading = replace(reading, rendered_digest=rendered_digest, locale=locale, lines=again)
    return with_content(session, content, reading=reading)


def typed(session: Session, now: datetime, digest: str, texts: Sequence[str]) -> Session:
    """Keep rejected input for correction; no-op if another text was shown last."""
    content = require_open(session, now, Collected.ACKNOWLEDGMENT)
    reading = content.reading
    cut = tuple(text[:TYPED_LENGTH_MAX] for text in texts)
    if reading is None or reading.notice_digest != digest or reading.typed == cut:
        return session
    return with_content(session, content, reading=replace(reading, typed=cut))


def initialed(  # noqa: PLR0917 - what arrives with initials
    session: Session,
    now: datetime,
    digest: str,
    initials: Sequence[str],
    client: Client,
    rendered_digest: str | None = None,
    press: Press | None = None,
) -> Session:
    """Initials arrived, "" for lines that stay as they are; they were checked already.

    `rendered_digest` is the digest of the text that the surface claims to have rendered.

    Raises:
        NoticeVersionMismatch: they are for another text than was shown last.
    """
    content = require_open(session, now, Collected.ACKNOWLEDGMENT)
    reading = content.reading
    if reading is None or reading.notice_digest != digest:
        raise NoticeVersionMismatch("The notice that was initialed is not the one shown last.")
    changed = reading.with_initials(now, initials, client, press)
    if rendered_digest is not None:
        changed = replace(changed, rendered_digest=rendered_digest)
    if changed == reading:
        return session
    changed = replace(changed, reviewed_at=None)
    return with_content(session, content, reading=changed)


def reviewed(session: Session, now: datetime, locale: str) -> Session:
    """The review of the initials was served, with its sentences in this locale."""
    content = require_open(session, now, Collected.ACKNOWLEDGMENT)
    reading = content.reading
    if reading is None or reading.initials is None:
        raise CheckoutSessionClosed("There are no initials to review yet.")
    if reading.reviewed_at is not None and reading.locale == locale:
        return session
    seen = replace(reading, reviewed_at=reading.reviewed_at or now, locale=locale)
    return with_content(session, content, reading=seen)


def claimed(
    session: Session,
    now: datetime,
    events: Sequence[tuple[int | None, ClaimedEvent]],
    viewport: Viewport | None,
) -> Session:
    """The browser claims that these happened; a script that can claim has run."""
    content = require_open(session, now)
    reading = content.reading
    if reading is None:
        return session
    claims = [
        BrowserClaim(line=line, event=event, at=now)
        for line, event in events
        if line is None or 0 < line <= len(reading.lines)
    ]
    changed = replace(
        reading,
        script=True,
        viewport=viewport or reading.viewport,
        claimed=(*reading.claimed, *claims)[:CLAIMS_MAX],
    )
    return session if changed == reading else with_content(session, content, reading=changed)


def acknowledged(session: Session, now: datetime, ack_id: str, receipt: str | None) -> Session:
    """The notice is acknowledged: the last step of a session.

    The component shows its own review; the page's is served here.
    """
    content = require_open(session, now, Collected.ACKNOWLEDGMENT)
    reading = content.reading
    if reading is None or (reading.surface is Surface.PAGE and reading.reviewed_at is None):
        raise CheckoutSessionClosed("The initials were not reviewed yet.")
    found = with_content(replace(session, ack_id=ack_id), content, receipt=receipt)
    return ended(found, Status.COMPLETED, now)


def declined(session: Session, now: datetime) -> Session:
    """The buyer declined; no-op if that was so already."""
    if session.status is Status.DECLINED:
        return session
    require_open(session, now)
    return ended(session, Status.DECLINED, now)


def expired(session: Session, now: datetime) -> Session:
    """The time is over; nothing happens if the session ended otherwise, or has time left."""
    if session.status is not Status.OPEN or now < session.expires_at:
        return session
    return ended(session, Status.EXPIRED, session.expires_at)


def cancelled(session: Session, now: datetime) -> Session:
    """The vendor cancelled."""
    require_open(session, now)
    return ended(session, Status.CANCELLED, now)


def decided(session: Session, decision: ClearanceDecision) -> Session:
    """The decision about the order."""
    reasons = tuple(map(str, decision.reasons))
    content = replace(session.asked, cleared=decision.cleared, reasons=reasons)
    return replace(session, clearance_id=decision.clearance_id, content=content)


def with_content(session: Session, content: Content, **changes: object) -> Session:
    """The session with another content."""
    return replace(session, content=replace(content, **changes))


def with_end(session: Session, now: datetime) -> Session:
    """The session with the end that follows from its identity check.

    It waits until the provider has decided. From then on it lasts for the rest of its time, and at
    least LIFETIME. All waiting together has an end, however often a provider decides.
    """
    content = session.asked
    waits, ordinary = content.is_undecided, content.ordinary_end
    last = session.created_at + LIFETIME_MAX + UNDECIDED_MAX
    if waits and ordinary is None:
        changed = with_content(session, content, ordinary_end=session.expires_at)
        return replace(changed, expires_at=max(session.expires_at, min(now + UNDECIDED_MAX, last)))
    if not waits and ordinary is not None:
        changed = with_content(session, content, ordinary_end=None)
        return replace(changed, expires_at=max(ordinary, min(now, last) + LIFETIME))
    return session


def ended(session: Session, status: Status, now: datetime) -> Session:
    """End the session; initials and browser claims remain only in the record."""
    content = session.content
    if content is not None:
        content = replace(content, reading=None, elsewhere=())
    return replace(session, status=status, ended_at=now, content=content)
