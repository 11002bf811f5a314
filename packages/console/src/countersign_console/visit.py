"""One page request: the person, account and mode, and calls of the API."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from countersign.server.console_host import ROOT, Host, PageReply, PageRequest
from countersign_console import times
from countersign_console.menu import DEPLOYMENT, Place, Scopes, Signed, menu
from countersign_console.problems import in_words, label, place_in
from countersign_console.view import KEPT_SECONDS, WORDS, ZONE, lead, render

_ERRORS_FROM: Final = 400
_PAGE_LIMIT: Final = "50"
_PAGE_MAX: Final = "100"
_PASSKEY: Final = "passkey_required"
_RUNNING: Final = "idempotency_in_progress"
_LOOKS: Final = 100
_LOOK_SECONDS: Final = 0.1
_BOTH_MODES: Final = ("/v1/accounts", "/v1/members")
"""Addresses that change an account: always in live mode, whichever mode the page shows."""
HOME: Final = "orders"
MODES: Final = frozenset({"test", "live"})
GONE: Final = "gone"
NO_ITEM: Final = "-"
"""Stands for the item in the address of an act without one."""
NOT_FOUND: Final = 404
_FINE: Final = 200
_SEES_PERSONAL_DATA: Final = frozenset({"compliance", "auditor"})
_KEPT: Final = "v"
"""The parameter of an address with the name of what is kept: see `Kept`."""
FOUND: Final = "found"
"""The same, of a search: it gives an order its name."""
_NAME: Final = re.compile("[A-Za-z0-9_-]{16}")
_NEVER_KEPT: Final = frozenset({"code", "credential"})
_OF_NOW: Final = frozenset({"said", "problem", "lang"})
"""Parameters that say what just happened."""
_PROBLEMS: Final = frozenset({"passkey_refused", "link_refused", "old_form"})
_LAST_PLACE: Final = "place"
"""The cookie with the account and mode of the last page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The outcome of a form, shown by the page of its redirect."""

    form: Mapping[str, str]
    action: str = ""
    """Of the form."""
    problem: str = ""
    status: int = 200
    result: Any = None
    """Of an act with a result that is shown."""
    is_last: bool = False
    """It is shown only once, and deleted with that."""
    said: str = ""
    """What an act did, in words."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """What is wrong, by field."""


class _Facts(dict[str, str]):
    """Facts in words; one that is not known is a dash."""

    def __missing__(self, name: str) -> str:
        return "\N{EN DASH}"


class Refused(Exception):
    """The API refused a call; `message` is the page's text, `errors` the texts by field."""

    def __init__(
        self, status: int, code: str, message: str, errors: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.errors = errors or {}
        self.status = status
        self.code = code
        self.message = message

    @property
    def needs_passkey(self) -> bool:
        """Whether the person has to use the passkey first."""
        return self.code == _PASSKEY


def form_id(form: Mapping[str, str]) -> str:
    """An identifier of this form, the same each time that it is sent."""
    return sha256(form.get("code", "").encode()).hexdigest()[:32]


class FormCode:
    """A form's code for this session: a page elsewhere does not know it.

    Each time that a template writes it, it is another: each form has a key of its own.
    """

    def __init__(self, host: Host, session: str) -> None:
        self._host, self._session = host, session

    def __str__(self) -> str:
        return self._host.form_code(self._session)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request of a person who is signed in."""

    host: Host
    request: PageRequest
    session: str
    """The token of the session."""
    person: Signed
    place: Place
    locale: str
    pages: Scopes
    page: str = ""
    parameter: str = ""
    """The item in the address, such as an order."""
    action: str = ""
    """The act whose page or form this is."""
    is_act: bool = False
    """Whether that act has a page of its own."""
    kept: Kept = Kept(form={})

    @property
    def words(self) -> Mapping[str, str]:
        return WORDS[self.locale]

    @property
    def zone(self) -> str:
        """The time zone that the person chose; "": UTC."""
        chosen = self.request.cookies.get(self.host.cookie_name(ZONE), "")
        return chosen if chosen in times.zones() else ""

    @property
    def form(self) -> Mapping[str, str]:
        """The fields of this form, or of the one that redirected here."""
        return self.request.form or self.kept.form

    @property
    def is_own_form(self) -> bool:
        """Whether the form is of a page that was served in this session."""
        return self.host.is_form(self.session, self.form.get("code", ""))

    @property
    def address(self) -> str:
        """The address of the request, without what it says of the moment."""
        asked = {n: text for n, text in self.request.query.items() if n not in _OF_NOW}
        return f"{ROOT}/{self.request.path}" + (f"?{urlencode(asked)}" if asked else "")

    @property
    def here(self) -> str:
        """This page or item, for `at`."""
        return f"{self.page}/{self.parameter}".rstrip("/")

    @property
    def spot(self) -> str:
        """The same, or the page of the act, for `at`."""
        own = f"{self.page}/{self.parameter or NO_ITEM}/{self.action}"
        return own if self.is_act else self.here

    def label(self, name: str) -> str:
        """The label of a field."""
        return label(name, self.words)

    def may(self, scope: str) -> bool:
        """Whether the role of the person allows this here."""
        return self.person.may(self.place.account_id, scope)

    def may_do(self, scope: str) -> bool:
        """Whether the role of the person allows acts with this here, and not only looks."""
        return self.person.may_do(self.place.account_id, scope)

    def may_give(self, scope: str) -> bool:
        """Whether the person may make a key with this scope of what staff do."""
        return self.may_do(scope) or (scope.endswith(":read") and self.may(scope))

    def at(self, page: str, **query: str) -> str:
        """The address of another page of this account and mode."""
        return self.place.at(page, **query)

    @property
    def found(self) -> str:
        """The name of the search that found an order; "": none did."""
        found = self.request.query.get(FOUND, "") or self.form.get(FOUND, "")
        # Nothing else that a form says is in an address.
        return found if _NAME.fullmatch(found) else ""

    def back(self, place: str = "", **query: str) -> str:
        """The address of this page or item, or another place, with the search that found it."""
        found = {FOUND: self.found} if self.found else {}
        return self.at(place or self.here, **found, **query)

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        reason: str | None = None,
        nth: str = "",
    ) -> Any:  # noqa: ANN401 - JSON
        """The API's response to this call, made as this person.

        A call made by a form has the key of the form, so that a form sent again gets the first
        response; `nth` tells several calls of one form apart. Others only look.

        Raises Refused if it refuses.
        """
        is_act = self.request.method == "POST" and method != "GET"
        key = self.host.form_key(self.form.get("code", "")) + nth if is_act else None
        ask = partial(
            self.host.call,
            method,
            path,
            session=self.session,
            account=self.place.account_id,
            mode="live" if path.startswith(_BOTH_MODES) else self.place.mode,
            body=body,
            query=query,
            reason=reason,
            idempotency_key=key,
        )
        answer = await ask()
        for _ in range(_LOOKS):
            if answer.code != _RUNNING:
                break
            await asyncio.sleep(_LOOK_SECONDS)  # the same form is being carried out
            answer = await ask()
        if answer.status >= _ERRORS_FROM:
            message = in_words(answer.code, answer.message, self.words)
            errors = {place: message} if (place := place_in(answer.message)) else {}
            raise Refused(answer.status, answer.code, message, errors)
        return answer.data

    async def page_of(self, path: str, **query: str) -> Mapping[str, Any]:
        """A page of a list: `data` and `next_cursor`; empty query parameters are omitted."""
        asked = {name: text for name, text in query.items() if text}
        page: Mapping[str, Any] = await self.call("GET", path, query={"limit": _PAGE_LIMIT} | asked)
        return page

    async def all_of(
        self, path: str, query: Mapping[str, str] | None = None, at_most: int = 1000
    ) -> Sequence[Any]:
        """All items of a short list, page after page; of a long one, at most a limit."""
        items: list[Any] = []
        after = ""
        while len(items) < at_most:
            page = await self.page_of(path, limit=_PAGE_MAX, after=after, **(query or {}))
            items += page["data"]
            after = page["next_cursor"] or ""
            if not after:
                break
        return items

    async def keep(self, action: str = "", *, to: str = "", **outcome: Any) -> str:  # noqa: ANN401 - of Kept
        """Keep the fields for this person, sealed; returns the address of this page with them.

        `to` is another page that shows them.
        """
        form = {n: text for n, text in self.request.form.items() if n not in _NEVER_KEPT}
        outcome, there = {"form": form, "action": action} | outcome, to or self.spot
        content = json.dumps({"at": self.at(there), "outcome": outcome}).encode()
        place = self.place
        name = await self.host.keep(self.person.id, place.account_id, place.mode, content)
        return self.back(there, **{_KEPT: name})

    async def tell(self, act: str, to: str, facts: Mapping[str, Any]) -> str:
        """The address of this page, which says what the act did: to what, and until when."""
        text = self.words[f"said_{act}"]
        if "{" not in text:
            return self.back(to, said=act)
        known = {name: self._shown(name, value) for name, value in facts.items()}
        return await self.keep(to=to, said=text.format_map(_Facts(known)), form={})

    def _shown(self, name: str, value: Any) -> str:  # noqa: ANN401 - JSON
        if isinstance(value, str) and name.endswith("_at"):
            return times.plain(value, self.locale)
        if isinstance(value, list):
            return ", ".join(map(str, value)) if value else self.words["nothing"]
        text = str(value)
        return self.words.get(f"role_{text}") or self.words.get(f"value_{text}") or text

    async def kept_as(self, name: str, page: str = "") -> Kept | None:
        """What is kept under this name for this person at this page, or another one."""
        found = await self.host.kept(self.person.id, name)
        known: Any = json.loads(found) if found else {"at": ""}
        return Kept(**known["outcome"]) if known["at"] == self.at(page or self.spot) else None

    async def with_kept(self) -> Visit:
        """This visit, with what the address names; what is deleted it says is gone."""
        name = self.request.query.get(_KEPT, "")
        if not name:
            return self
        kept = await self.kept_as(name)
        if kept and kept.is_last:
            await self.host.kept(self.person.id, name, is_last=True)
        return replace(self, kept=kept or Kept(form={}, action=GONE))

    def show(
        self,
        template: str,
        title: str,
        *,
        status: int = 200,
        script: str = "copy.js",
        verifier: str = "",
        reach: str = "'self'",
        **values: object,
    ) -> PageReply:
        """A page for this person; see `render`."""
        query, place, last = self.request.query, self.place, self.host.cookie_name(_LAST_PLACE)
        said = GONE if self.kept.action == GONE else query.get("said", "")
        page = render(
            template,
            self.locale,
            self.kept.status if status == _FINE else status,
            script,
            verifier=verifier,
            reach=reach,
            title=title,
            person=self.person,
            place=place,
            menu=menu(self.person, place, self.words, self.request.path, self.pages),
            pages=self.pages,
            base=ROOT,
            zone=self.zone,
            path=f"{ROOT}/{self.request.path}",
            languages=f"{self.address}{'&' if '?' in self.address else '?'}lang=",
            code=FormCode(self.host, self.session),
            said=self.kept.said or (self.words.get(f"said_{said}", "") if said else ""),
            **{
                "found": self.found,
                "heading": title,
                "problem": self.kept.problem or problem_of(self.request, self.words),
                "errors": self.kept.errors,
                "form": self.form,
                **values,
            },
        )
        here = f"{place.account_id}/{place.mode}"
        if place.is_deployment or self.request.cookies.get(last) == here:
            return page
        kept = self.host.cookie(_LAST_PLACE, here, KEPT_SECONDS)
        return replace(page, headers=[*page.headers, kept])

    def failed(self, status: int, problem: str) -> PageReply:
        """An error page with the menu."""
        return self.show("failed.html", self.words["failed"], status=status, problem=problem)

    async def first(self) -> PageReply:
        """Where the person was last; else the orders of the first account, or the service.

        It begins in test if there was no order yet in live.
        """
        last = self.request.cookies.get(self.host.cookie_name(_LAST_PLACE), "")
        account_id, _, mode = last.partition("/")
        if account_id in self.person.accounts and mode in MODES:
            return lead(Place(account_id=account_id, mode=mode).at(HOME))
        for first in self.person.accounts:
            live = self.of(Place(account_id=first))
            found = await live.page_of("/v1/orders", limit="1")
            return lead(replace(live.place, mode="live" if found["data"] else "test").at(HOME))
        return lead(f"{ROOT}/{DEPLOYMENT}/state")

    @property
    def sees_personal_data(self) -> bool:
        """True if a role of the person here sees personal data, for a reason."""
        roles = self.person.roles
        return bool(_SEES_PERSONAL_DATA & {roles.get(self.place.account_id), roles.get("")})

    def passkey_first(self, address: str = "") -> str:
        """The address that asks for the passkey first and then leads to this address, or here."""
        back = (address or self.address).removeprefix(f"{ROOT}/")
        return way_back("passkey", back=back)

    @property
    def passkey(self) -> str:
        """The same; "": the passkey was used just now."""
        return "" if self.person.is_fresh else self.passkey_first()

    def of(self, place: Place) -> Visit:
        """This visit, about another account or mode."""
        return replace(self, place=place)


def problem_of(request: PageRequest, words: Mapping[str, str]) -> str:
    """Why the form that led to a page about the person was refused; "": it was not."""
    why = request.query.get("problem", "")
    return words[why] if why in _PROBLEMS else ""


def way_back(to: str, /, **query: str) -> str:
    """The address of a page below /console, which may have a query; "": the first page."""
    path, _, asked = to.partition("?")
    given = dict(parse_qsl(asked)) | query
    return f"{ROOT}/{quote(path)}" + (f"?{urlencode(given)}" if given else "")


def to_sign_in(address: str) -> str:
    """The address of the page that signs in, and leads to this address."""
    back = address.removeprefix(f"{ROOT}/")
    return way_back("sign-in", **({"back": back} if back else {}))
