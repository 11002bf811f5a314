"""One page request: the person, account and mode, and calls of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlencode

from countersign.server.console_host import ROOT, Host, PageReply, PageRequest
from countersign_console.menu import DEPLOYMENT, Place, Scopes, Signed, menu
from countersign_console.problems import in_words
from countersign_console.view import WORDS, lead, render

_ERRORS_FROM: Final = 400
_PAGE_LIMIT: Final = "50"
_PAGE_MAX: Final = "100"
_PASSKEY: Final = "passkey_required"
_RUNNING: Final = "idempotency_in_progress"
_LOOKS: Final = 100
_LOOK_SECONDS: Final = 0.1
_BOTH_MODES: Final = ("/v1/accounts", "/v1/members")
"""Addresses that change an account: always in live mode, whichever mode the page shows."""
_SEES_PERSONAL_DATA: Final = frozenset({"compliance", "auditor"})


class Refused(Exception):
    """The API refused a call; `message` is the page's text."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
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
    parameter: str = ""
    """The item in the address, such as an order."""

    @property
    def words(self) -> Mapping[str, str]:
        return WORDS[self.locale]

    @property
    def form(self) -> Mapping[str, str]:
        return self.request.form

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

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        reason: str | None = None,
        is_look: bool = False,
    ) -> Any:  # noqa: ANN401 - JSON
        """The API's response to this call, made as this person.

        A call made by a form has the key of the form, so that a form sent again gets the first
        response; `is_look`: a POST that changes nothing, and needs no key.

        Raises Refused if it refuses.
        """
        is_act = self.request.method == "POST" and method != "GET" and not is_look
        key = self.host.form_key(self.form.get("code", "")) if is_act else None
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
            raise Refused(answer.status, answer.code, message)
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

    def show(
        self,
        template: str,
        title: str,
        *,
        status: int = 200,
        script: str = "",
        verifier: str = "",
        reach: str = "'self'",
        **values: object,
    ) -> PageReply:
        """A page for this person; see `render`."""
        said = self.request.query.get("said", "")
        return render(
            template,
            self.locale,
            status,
            script,
            verifier=verifier,
            reach=reach,
            title=title,
            person=self.person,
            place=self.place,
            menu=menu(self.person, self.place, self.words, self.request.path, self.pages),
            pages=self.pages,
            base=ROOT,
            path=f"{ROOT}/{self.request.path}",
            code=FormCode(self.host, self.session),
            said=self.words.get(f"said_{said}", "") if said else "",
            **{"problem": "", "form": {}, **values},
        )

    def failed(self, status: int, problem: str) -> PageReply:
        """An error page with the menu."""
        return self.show("failed.html", self.words["failed"], status=status, problem=problem)

    def first(self) -> PageReply:
        """The start page of a person: the first account's day, or the state of the service."""
        for account_id in self.person.accounts:
            return lead(Place(account_id=account_id).at("today"))
        return lead(f"{ROOT}/{DEPLOYMENT}/state")

    @property
    def sees_personal_data(self) -> bool:
        """True if a role of the person here sees personal data, for a reason."""
        roles = self.person.roles
        return bool(_SEES_PERSONAL_DATA & {roles.get(self.place.account_id), roles.get("")})

    def to_passkey(self, page: str) -> str:
        """The address that asks for the passkey first and then redirects here."""
        back = self.at(page).removeprefix(f"{ROOT}/")
        return f"{ROOT}/passkey?{urlencode({'back': back})}"

    def passkey_for(self, page: str) -> str:
        """The same; "": the passkey was used just now."""
        return "" if self.person.is_fresh else self.to_passkey(page)

    def lead_to_passkey(self, page: str) -> PageReply:
        """To the page that asks for the passkey, and then here."""
        return lead(self.to_passkey(page))

    def lead(self, page: str, said: str = "") -> PageReply:
        """Redirect to another page, which confirms the act."""
        return lead(self.at(page, said=said) if said else self.at(page))

    def of(self, place: Place) -> Visit:
        """This visit, about another account or mode."""
        return replace(self, place=place)
