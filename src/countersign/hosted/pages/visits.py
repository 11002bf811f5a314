"""A visit of the hosted page: whether the browser may see the session, and its form."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hmac import compare_digest
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlencode

from countersign.base.errors import NotFound, OriginNotAllowed
from countersign.base.values import Mode
from countersign.core.checkout import store
from countersign.core.checkout.brand import Brand
from countersign.core.checkout.model import Collected, Content, Session, seen_by
from countersign.core.gate.route import Call, Reply
from countersign.hosted.pages import buyer
from countersign.hosted.pages.cookies import (
    COPY,
    browser_of,
    form_code,
    is_code,
    lacks_cookie,
    refuse_foreign,
)
from countersign.hosted.pages.room import HostedPages
from countersign.hosted.toolkit.screens import (
    ANOTHER_BROWSER,
    LOCALES,
    NO_COOKIE,
    lead,
    part,
    preferred,
    read_form,
    read_query,
    screen,
)

NOT_ENOUGH: Final = "no"
_NOT_PASSED: Final[Mapping[str, str]] = {
    NOT_ENOUGH: "remembered_not_enough",
    "unknown": "remembered_unknown",
    "refused": "remembered_passkey_failed",
    "copied": "remembered_copied",
    "expired": "remembered_expired",
    "revoked": "remembered_revoked",
}
"""By address parameter, the text for a remembered buyer who did not pass."""


_IDENTITY_PAGE: Final = "identity.html"
_STEPS: Final[Mapping[Collected, Sequence[str]]] = {
    Collected.IDENTITY: (_IDENTITY_PAGE,),
    Collected.ACKNOWLEDGMENT: ("notice.html", "review.html"),
}
_WITH_ORDER: Final = frozenset(
    ("foreseen.html", *(page for pages in _STEPS.values() for page in pages))
)


class BuyerStep(NamedTuple):
    """A step of a session, counted from 1."""

    number: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request of a browser that may see this session."""

    room: HostedPages
    call: Call
    session: Session
    browser: str
    """Identifies one of the browsers with the link; "" for one with only the copy's link."""
    now: datetime
    brand: Brand
    own_locale: str
    """The language without another choice."""
    locale: str
    form: Mapping[str, str]
    is_by_link: bool = False
    """Whether the address has the token still."""

    @property
    def root(self) -> str:
        return f"/c/{self.session.id}"

    def show(
        self,
        template: str,
        status: int = 200,
        alike: tuple[Hashable, ...] | None = None,
        **context: object,
    ) -> Reply:
        """A page about the session; `alike` decides all of it that `context` adds, if there is."""
        root, csrf = self.root, form_code(self.room, self.session, self.browser)
        asked, order = self.session.asked, ""
        if template in _WITH_ORDER and (asked.order is not None or asked.destination is not None):
            shown = {"order": asked.order, "destination": asked.destination}
            order = part("order.html", self.locale, self.brand, **shown)
        common = {
            # The parameter of an address; omitted for the session's own language.
            "lang": "" if self.locale == self.own_locale else f"?lang={self.locale}",
            "by_link": self.is_by_link,
            "progress": self.progress_of(template),
            "test_mode": self.session.mode is Mode.TEST,
            "remembered_no": _NOT_PASSED.get(self.form.get("remembered", "")),
            "remembered_link": self.room.remembered.party is not None
            and not self.session.is_of_known_buyer,
        }
        values: dict[str, Any] = {"here": root, "root": root, "csrf": csrf, "order": order}
        values |= common
        values["framed_by"] = asked.origin or "'none'"
        if alike is not None:
            own = (root, csrf, order) if order else (root, csrf)
            values |= {"alike": (*common.values(), *alike), "own": own}
        return screen(template, self.locale, self.brand, status, **(values | context))

    def progress_of(self, template: str) -> BuyerStep | None:
        """The buyer's step of a page; None: not a step."""
        steps = [
            page
            for kind in (Collected.IDENTITY, Collected.ACKNOWLEDGMENT)
            if kind in self.session.asked.collect
            for page in _STEPS[kind]
        ]
        page = _IDENTITY_PAGE if template.startswith(("identity", "remembered_")) else template
        return BuyerStep(steps.index(page) + 1, len(steps)) if page in steps else None

    def address(self, path: str = "", **said: str) -> str:
        """The address of a page of the session, in this language; `said` are further parameters."""
        own = self.locale == self.own_locale
        query = urlencode(said if own else {"lang": self.locale, **said})
        return f"{self.root}{path}{query and '?'}{query}"

    def go_on(self, **said: str) -> Reply:
        """Lead to the page of the state that the session is in now.

        Every form gets a redirect, valid or not: returning to a form's own response makes a browser
        ask whether to send it again.
        """
        return lead(self.address(**said))


VisitHandler: TypeAlias = Callable[[Visit], Awaitable[Reply]]


async def visit_of(room: HostedPages, call: Call, session_id: str, key: str | None = None) -> Visit:
    """The visit of a browser that has the cookie of this session, or the key of its copy.

    Raises:
        NotFound: no session, not a visitor of it, or its data is erased.
    """
    if key is None and lacks_cookie(room, session_id, call):
        raise NotFound(NO_COOKIE)  # whether there is such a session or not
    session = await store.find_by_id(room, session_id)
    if session is None:
        raise NotFound
    browser = browser_of(room, session, call) if key is None else ""
    if not (browser if key is None else is_code(room, session, COPY, key)):
        raise NotFound
    return await begun(room, call, session, browser)


async def begun(
    room: HostedPages, call: Call, session: Session, browser: str, *, is_by_link: bool = False
) -> Visit:
    """The visit of a browser that may see the session, counted.

    Raises:
        NotFound: the data of the session is erased.
        RateLimited: there were too many visits.
    """
    if session.content is None:
        raise NotFound
    call.locale = own_locale = locale_of(session.content, call)
    await count(call, session)
    form = read_query(call)
    return Visit(
        room=room,
        call=call,
        session=seen_by(session, browser),
        browser=browser,
        is_by_link=is_by_link,
        now=await store.clock_of(room, session),
        brand=await buyer.brand(room, session),
        own_locale=own_locale,
        locale=chosen_locale(own_locale, form),
        form=form,
    )


async def count(call: Call, session: Session) -> None:
    """Count a request with this session's link or token.

    Only such requests: strangers who make up identifiers do not use the buyer's quota.

    Raises:
        RateLimited: there were too many.
    """
    if call.count_visit is not None:
        await call.count_visit(*owners_of(session))


def owners_of(session: Session) -> tuple[str, str]:
    """The quotas of a request about a session: the session, and its account and mode."""
    return (session.id, f"{session.account_id} {session.mode}")


def locale_of(content: Content, call: Call) -> str:
    """The language that the vendor has given, or else the browser's."""
    if not content.by_browser:
        return content.locale
    return preferred(call.headers.get(b"accept-language", b""))


def chosen_locale(known: str, values: Mapping[str, str]) -> str:
    """The language that the parameters choose, or else the known one."""
    wanted = values.get("lang")
    return wanted if wanted in LOCALES else known


async def with_form(visit: Visit, most: int) -> Visit:
    """The same visit with its form, checked to be ours and limited to `most` bytes.

    Raises:
        OriginNotAllowed: another site sends it, or it lacks the code of our forms.
    """
    refuse_foreign(visit.room, visit.call)
    form = await read_form(visit.call, most, owners_of(visit.session))
    served = form_code(visit.room, visit.session, visit.browser)
    if not compare_digest(served.encode(), form.get("csrf", "").encode()):
        raise OriginNotAllowed(ANOTHER_BROWSER)
    return replace(visit, form=form, locale=chosen_locale(visit.locale, form))
