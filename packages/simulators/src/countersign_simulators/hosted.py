"""The interactive part of a simulator: created sessions and their pages.

A simulator that creates sessions over its API keeps them in one `Hosted`, next to its fixed
sessions, and lets `Hosted.answer` respond first, before it requires a key. The simulator itself
decides the provider's words for a session, and where the buyer goes in the end. One event loop
serves a simulator: nothing here is locked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from secrets import choice
from string import ascii_letters, digits
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit
from zlib import crc32

from countersign_simulators.base import Clock, Reply, Request
from countersign_simulators.hosted_page import ended_page, missing_page, step_page
from countersign_simulators.people import Person, birthday, day

DEFAULT_ZIP: Final = "94110"
_OTHER_ZIP: Final = "90210"
_ZIP_DIGITS: Final = 5
STEPS: Final = ("consent", "document", "address", "selfie", "result")


class Outcome(StrEnum):
    """Outcomes that the buyer can choose; the values of the form's field `outcome`."""

    VERIFIED = "verified"
    UNDERAGE = "underage"
    """Everything is genuine, and the person is 16."""
    WRONG_ZIP = "wrong_zip"
    """Everything is genuine, and the person's own ZIP code differs from that of the form."""
    DOCUMENT_EXPIRED = "document_expired"
    PHOTO_BLURRED = "photo_blurred"
    CONSENT_DECLINED = "consent_declined"
    FAILED = "failed"
    LATER = "later"
    """As `verified`, decided after the session has been retrieved once."""
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    NEVER = "never"
    """As `verified`, and the page does not lead back."""


class Who(StrEnum):
    """The person at the page; the values of the form's field `who`."""

    ANOTHER = "another"
    """Somebody new, with a document of their own."""
    SAME = "same"
    """The person checked last, with the same document."""


class State(Enum):
    """How far a created session is."""

    CREATED = "created"
    BEGUN = "begun"
    """The buyer has agreed, and has submitted nothing yet."""
    PENDING = "pending"
    """Submitted, and not decided."""
    ENDED = "ended"
    """With an outcome other than `later`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """One session that was created over the API."""

    session_id: str
    page: str
    """Path and query of its page, as in `/start/abc` or `/verify?code=abc`; unguessable."""
    return_url: str | None = None
    reference: str | None = None
    """The buyer's reference, from the creation."""
    made: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else the simulator wants to remember of the creation."""
    created_at: float
    """Unix seconds."""
    changed_at: float
    """Unix seconds; when the state last changed."""
    state: State = State.CREATED
    step: int = 0
    """The index in `STEPS` of the page that is shown next."""
    zip: str = DEFAULT_ZIP
    who: Who = Who.ANOTHER
    outcome: Outcome | None = None
    """Set when it is pending or has ended."""
    document: str = ""
    """Set with the outcome: the seed of the document's number."""


Back: TypeAlias = Callable[[Created], str | None]
"""The address that the provider leads the buyer to in the end; None: the page stays."""


class Hosted:
    """The created sessions of one simulator, and their pages.

    Args:
        provider: its name on the pages, such as `Stripe Identity`.
        now: gives Unix seconds.
        back: see `Back`; not asked for the outcome `never`.
        changed: called with a session whenever its state has changed, not when it is created.
        again: the outcomes after which the same page starts over, for providers that let a buyer
            repeat a check.
    """

    def __init__(
        self,
        provider: str,
        now: Clock,
        *,
        back: Back,
        changed: Callable[[Created], None],
        again: Collection[Outcome] = (),
    ) -> None:
        self._provider = provider
        self._now = now
        self._back = back
        self._changed = changed
        self._again = frozenset(again)
        self._created: dict[str, Created] = {}
        self._last = ""
        """The document that was shown last."""

    def create(
        self,
        session_id: str,
        page: str,
        *,
        return_url: str | None = None,
        reference: str | None = None,
        made: Mapping[str, Any] | None = None,
    ) -> Created:
        """Store a new session; the arguments are those of `Created`."""
        now = self._now()
        return self._put(
            Created(
                session_id=session_id,
                page=page,
                return_url=return_url,
                reference=reference,
                made=made or {},
                created_at=now,
                changed_at=now,
            )
        )

    def find(self, session_id: object) -> Created | None:
        """The created session as it is now."""
        return self._created.get(session_id) if isinstance(session_id, str) else None

    def all(self) -> tuple[Created, ...]:
        """Every created session, the newest first."""
        return tuple(reversed(self._created.values()))

    def end(self, created: Created, outcome: Outcome) -> Created:
        """End it, as when the buyer chooses this outcome or the API cancels it."""
        state = State.PENDING if outcome is Outcome.LATER else State.ENDED
        before = self._last if created.who is Who.SAME else ""
        self._last = before or created.session_id
        return self._move(created, state=state, outcome=outcome, document=self._last)

    def change(self, created: Created, **changes: Any) -> Created:  # noqa: ANN401 - of Created
        """Give it another page (the former ones redirect to it), or another return address.

        No webhook is sent: the session's history stays as it is.
        """
        return self._put(replace(created, **changes))

    def retrieved(self, session_id: str) -> None:
        """Note that the API has returned the session: a pending one is decided after that."""
        created = self.find(session_id)
        if created is not None and created.state is State.PENDING:
            self._move(created, state=State.ENDED, outcome=Outcome.VERIFIED)

    def answer(self, request: Request) -> Reply | None:
        """The page of a session, or its next one; None if the request is not for a page."""
        path = urlsplit(request.path).path
        asked = frozenset(request.query)
        for created in self._created.values():
            page = urlsplit(created.page)
            if page.path == path and frozenset(parse_qsl(page.query)) <= asked:
                return self._page(created, request)
        return None

    def missing(self) -> Reply:
        """The page for an address that was one, or could be one."""
        return missing_page(self._provider)

    def _page(self, created: Created, request: Request) -> Reply:
        if request.method not in {"GET", "POST"}:
            return replace(self.missing(), status=405)
        if created.state in {State.PENDING, State.ENDED}:
            if created.outcome not in self._again:
                return ended_page(self._provider, self._address(created))
            created = replace(created, state=State.CREATED, step=0, outcome=None)
        if request.method == "GET":
            return self._step(created)
        return self._submitted(created, request)

    def _submitted(self, created: Created, request: Request) -> Reply:
        """The effect of a form: the next step or, with an outcome, the end."""
        form = dict(parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True))
        zip_, chosen = form.get("zip", created.zip).strip(), form.get("outcome", "")
        who = form.get("who", created.who)
        if not _is_zip(zip_) or (chosen and chosen not in _OUTCOMES) or who not in _WHO:
            return self._step(replace(created, zip=zip_), wrong=True)
        created = replace(created, zip=zip_, who=Who(who))
        if chosen:
            ended = self.end(created, Outcome(chosen))
            address = self._address(ended)
            return ended_page(self._provider, None) if address is None else _to(address)
        step = min(created.step + 1, len(STEPS) - 1)
        if created.state is State.CREATED:
            self._move(created, state=State.BEGUN, step=step)
        else:
            self._put(replace(created, step=step))
        return _to(created.page)

    def _step(self, created: Created, *, wrong: bool = False) -> Reply:
        fields = {"zip": created.zip, "who": created.who}
        choices = {"outcome": _OUTCOMES, "who": _WHO}
        return step_page(self._provider, STEPS[created.step], fields, choices, wrong=wrong)

    def _address(self, created: Created) -> str | None:
        return None if created.outcome is Outcome.NEVER else self._back(created)

    def _move(self, created: Created, **changes: Any) -> Created:  # noqa: ANN401 - of Created
        moved = self._put(replace(created, changed_at=self._now(), **changes))
        self._changed(moved)
        return moved

    def _put(self, created: Created) -> Created:
        self._created[created.session_id] = created
        return created


_OUTCOMES: Final[Mapping[str, str]] = {
    Outcome.VERIFIED: "Verified",
    Outcome.UNDERAGE: "The person is 16",
    Outcome.WRONG_ZIP: "The person lives at another ZIP code",
    Outcome.DOCUMENT_EXPIRED: "The document has expired",
    Outcome.PHOTO_BLURRED: "The photo is blurred",
    Outcome.CONSENT_DECLINED: "Consent is declined",
    Outcome.FAILED: "The check fails",
    Outcome.LATER: "Decided later",
    Outcome.CANCELLED: "Cancelled",
    Outcome.EXPIRED: "Expired",
    Outcome.NEVER: "Verified, and this page does not lead back",
}


_WHO: Final[Mapping[str, str]] = {
    Who.ANOTHER: "Another person",
    Who.SAME: "The same person as before, with the same document",
}


def unguessable(length: int) -> str:
    """A random word of letters and digits, for identifiers and pages."""
    return "".join(choice(ascii_letters + digits) for _ in range(length))


def with_query(url: str, *pairs: tuple[str, str]) -> str:
    """The URL with these pairs after its own query, percent-encoded."""
    parts = urlsplit(url)
    query = "&".join(part for part in (parts.query, urlencode(pairs)) if part)
    return urlunsplit(parts._replace(query=query))


def person_of(created: Created, now: float) -> Person:
    """The invented person of the session, by its ZIP code and outcome.

    Every session has a document number of its own, unless its page says that the same person is
    there as before: no two are the same buyer by accident. `now` is in Unix seconds.
    """
    zip_, outcome = created.zip, created.outcome
    if outcome is Outcome.WRONG_ZIP:
        zip_ = DEFAULT_ZIP if zip_ == _OTHER_ZIP else _OTHER_ZIP
    return Person(
        first="Quillabelle",
        last="Rehearsalwick",
        born=birthday(now, 16) if outcome is Outcome.UNDERAGE else "1984-05-17",
        number=f"R{crc32((created.document or created.session_id).encode()):010d}",
        street="2200 Pretendleaf Row",
        city="Sampleton Bay",
        postcode=zip_,
        expires=day(now, years=-1) if outcome is Outcome.DOCUMENT_EXPIRED else None,
    )


def _is_zip(written: str) -> bool:
    return len(written) == _ZIP_DIGITS and written.isascii() and written.isdigit()


def _to(address: str) -> Reply:
    """303 See Other: after a form, so that going back submits nothing twice."""
    location = quote(address, safe="%/:?#[]@!$&'()*+,;=~")
    return Reply(status=303, headers=(("Location", location), ("Cache-Control", "no-store")))
