"""Behaviour shared by every simulated provider; each module has its own parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import count
from typing import ClassVar, Generic, TypeVar

from countersign_simulators.base import Clock, Headers, Reply, Request, Session, Webhook
from countersign_simulators.hosted import Created, Hosted, Outcome, State
from countersign_simulators.table import Played

S = TypeVar("S", bound=Played)


class SimulatedProvider(ABC, Generic[S]):
    """The base of the simulators; `S` is a session with the provider's responses for it."""

    title: ClassVar[str]
    """The provider's name on its pages."""
    pages: ClassVar[str | None] = None
    """How the paths of its pages begin, where no others begin so."""
    again: ClassVar[AbstractSet[Outcome]] = frozenset()
    """The outcomes after which a buyer may repeat the check at the same page."""
    silent: ClassVar[AbstractSet[State]] = frozenset()
    """The states of a created session about which no message is sent."""
    limits: ClassVar[Mapping[str, Headers]]
    """Headers of a response to a first request that is one too many, by the session's failure."""
    always_limited: ClassVar[str] = ""
    """The failure that makes every request exceed the limit."""

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._started = now()
        self._numbers = count(1)
        self._created_numbers = count(90001)
        self._requested: set[str] = set()
        self._messages: list[Webhook] = []
        self._made: tuple[int, Sequence[S]] | None = None
        self._hosted = Hosted(
            self.title, now, back=self._back, changed=self._progressed, again=self.again
        )

    @property
    def sessions(self) -> Sequence[Session]:
        """Every session, with dates as of now."""
        return self._current()

    def answer(self, request: Request) -> Reply:
        """A page for a buyer, or a response of the provider's API."""
        page = self._hosted.answer(request)
        if page is None and self.pages is not None and request.path.startswith(self.pages):
            page = self._hosted.missing()
        return self._answer(request) if page is None else page

    @abstractmethod
    def webhook(self, session_id: str) -> Webhook:
        """A message that this session has changed, signed now."""

    def take_messages(self) -> Sequence[Webhook]:
        """The messages about changes since the last call, in order."""
        taken, self._messages = self._messages, []
        return taken

    @abstractmethod
    def _answer(self, request: Request) -> Reply:
        """The response of the API."""

    @abstractmethod
    def _sessions(self) -> Sequence[S]:
        """The fixed sessions, with dates as of now."""

    @abstractmethod
    def _session_of(self, created: Created) -> S:
        """A created session as the API returns it now."""

    def _back(self, created: Created) -> str | None:
        """See `hosted.Back`: here the address exactly as it was given."""
        return created.return_url

    def _progressed(self, created: Created) -> None:
        if created.state not in self.silent:
            self._announce(created.session_id)

    def _announce(self, session_id: str) -> None:
        """Have a message sent about the session as it is at this moment."""
        self._messages.append(self.webhook(session_id))

    def _current(self) -> Sequence[S]:
        """The fixed sessions of this second: making them takes longer than a request."""
        second = int(self._now())
        if self._made is None or self._made[0] != second:
            self._made = second, self._sessions()
        return self._made[1]

    def _created(self) -> list[S]:
        """The created sessions as they are now, the newest first."""
        return [self._session_of(each) for each in self._hosted.all()]

    def _find(self, session_id: object) -> S | None:
        fixed = next((each for each in self._current() if each.session_id == session_id), None)
        created = self._hosted.find(session_id)
        return fixed if created is None else self._session_of(created)

    def _known(self, session_id: str) -> S:
        """The session; raises LookupError if there is none."""
        found = self._find(session_id)
        if found is None:
            raise LookupError(session_id)
        return found

    def _is_first_request(self, session_id: str) -> bool:
        """Whether this is the first request of its kind."""
        first = session_id not in self._requested
        self._requested.add(session_id)
        return first

    def _limit(self, session: S, *, first: bool) -> Headers | None:
        """The headers of the refusal, if this request for the session is one too many."""
        limited = first or session.failure == self.always_limited
        return self.limits.get(session.failure or "") if limited else None
