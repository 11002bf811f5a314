"""The place of a page, account and mode or whole deployment, and the menu of a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote, urlencode

from countersign.server.console_host import ROOT

DEPLOYMENT: Final = "all"
"""Stands for account and mode in an address."""

_PAGE: Final = 4
"""Position of the page's name in an account page's address."""

Scopes: TypeAlias = Mapping[tuple[bool, str], str]
"""(is it of the deployment?, page) → scope for reading it, in the order of the menu."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """The person who is signed in."""

    id: str = ""
    name: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Account ("" for the deployment) → role."""
    scopes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Account ("" for the deployment) → the person's scopes there."""
    acts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The same, without scopes that only read."""
    accounts: Mapping[str, str] = field(default_factory=dict)
    """The accounts that the menu names: identifier → name."""
    is_fresh: bool = False
    """Whether the passkey was used in the last minutes."""

    def may(self, account_id: str, scope: str) -> bool:
        """Whether a role allows this there: the role in the account, or that of staff."""
        return _allowed(self.scopes, account_id, scope)

    def may_do(self, account_id: str, scope: str) -> bool:
        """Whether a role allows acts there, and not only looks."""
        return _allowed(self.acts, account_id, scope)

    def role_at(self, account_id: str) -> str:
        return self.roles.get(account_id) or self.roles.get("", "")


def _allowed(scopes: Mapping[str, frozenset[str]], account_id: str, scope: str) -> bool:
    none = frozenset[str]()
    return scope in scopes.get(account_id, none) | scopes.get("", none)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place that a page shows."""

    account_id: str = ""
    """Of one account; "": of the whole deployment."""
    name: str = ""
    mode: str = "live"

    @property
    def is_test(self) -> bool:
        return self.mode == "test"

    @property
    def is_deployment(self) -> bool:
        return not self.account_id

    def at(self, page: str, **query: str) -> str:
        """The address of a page here."""
        here = f"{self.account_id}/{self.mode}" if self.account_id else DEPLOYMENT
        return f"{ROOT}/{here}/{quote(page)}" + (f"?{urlencode(query)}" if query else "")

    def other_mode(self, path: str, pages: Scopes) -> str:
        """The address of this path's page in the other mode."""
        page = next((one for one in path.split("/")[_PAGE:][:1] if (False, one) in pages), "orders")
        return replace(self, mode="live" if self.is_test else "test").at(page)


class Entry(NamedTuple):
    """A line of the menu."""

    href: str
    label: str
    current: bool


class Group(NamedTuple):
    """Lines of the menu that are about the same."""

    title: str
    entries: Sequence[Entry]


def menu(
    person: Signed, place: Place, words: Mapping[str, str], path: str, pages: Scopes
) -> Sequence[Group]:
    """The pages that this person may read, here and of the deployment; the others' accounts."""

    def entries(where: Place) -> list[Entry]:
        found = []
        for (is_all, page), scope in pages.items():
            href = where.at(page)
            current = f"{path}/".startswith(f"{href.removeprefix(ROOT + '/')}/")
            if is_all == where.is_deployment and person.may(where.account_id, scope):
                found.append(Entry(href, words[f"page_{page}"], current))
        return found

    groups = []
    if not place.is_deployment:
        groups.append(Group(place.name, entries(place)))
    others = [
        Entry(Place(account_id=account, mode=place.mode).at("orders"), name, current=False)
        for account, name in person.accounts.items()
        if account != place.account_id
    ]
    groups.append(Group(words["accounts_others" if groups else "accounts_yours"], others))
    if "" in person.roles:
        groups.append(Group(words["deployment"], entries(Place())))
    return [group for group in groups if group.entries]
