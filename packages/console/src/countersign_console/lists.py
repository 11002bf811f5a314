"""List pages: a list, its items and their acts, declared in data.

A list page shows the items of one operation of the API, one a line. An item has a page with all
its members, and links to the pages of its acts. Names of columns are words of `words.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from countersign.server.console_host import PageReply
from countersign_console.acts import Act, Field, Page
from countersign_console.visit import Refused, Visit

_BY: Final = ("made_by", "granted_by")
"""Members that name a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage(Page):
    """A list of the API as a page."""

    name: str
    path: str
    identifier: str
    """The member that names an item."""
    columns: Sequence[str]
    item_path: str = ""
    """The path of one item, with `{id}`; "": the list has all of it."""
    new: Sequence[Act] = ()
    acts: Sequence[Act] = ()
    filters: Sequence[Field] = ()
    """They stand in the address of the list: none may be of a buyer."""
    title: str = ""
    """The member that names an item to people; "": its identifier."""
    machine: str = ""
    """The command for acts on the machine, with `{account}`."""
    item_machine: str = ""
    """The same about an item, with `{account}` and `{id}`."""
    template: str = "item.html"
    """Of an item."""
    guide: str = ""
    """The page of the service's documentation about it."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Columns whose values lead on: what stands before the value in the address."""
    note: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    """A row of the list, or an item, as the page shows it."""

    async def show(self, visit: Visit) -> PageReply:
        """The list, and links to forms for new items."""
        wanted = {one.name: visit.request.query.get(one.name, "") for one in self.filters}
        read = {one.name: str(one.read(wanted) or "") for one in self.filters}
        after = visit.request.query.get("after", "")
        found = await visit.page_of(self.path, after=after, **read)
        return visit.show(
            "list.html",
            visit.words[f"page_{self.name}"],
            page=self,
            filters=[await one.of(visit) for one in self.filters],
            wanted=wanted,
            rows=await _named(visit, [self.note(one) for one in found["data"]]),
            more=_more(visit, self.name, wanted, found["next_cursor"]),
            begun=bool(after),
            acts=self.offered(visit),
            machine=self._line(self.machine, visit),
        )

    async def show_item(self, visit: Visit) -> PageReply:
        """One item with all its members and acts; the list, if it has no pages of items."""
        if not (self.acts or self.item_path):
            return await self.show(visit)
        item = await self.item(visit)
        extras = await self.extras(visit, item)
        return visit.show(
            self.template,
            visit.words[f"item_{self.name}"],
            page=self,
            item=item,
            acts=self.offered(visit, item),
            machine=self._line(self.item_machine, visit),
            **extras,
        )

    async def extras(self, visit: Visit, item: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002 - a template's own
        """Further values for an item's template."""
        return {}

    async def item(self, visit: Visit) -> Mapping[str, Any]:
        """The item that the address names; of the list itself, none."""
        if not visit.parameter:
            return {}
        (item,) = await _named(visit, [self.note(await self._item(visit))])
        return item

    async def about(self, visit: Visit, item: Mapping[str, Any]) -> str:
        """The item's name, else its identifier."""
        named = str(item.get(self.title) or item.get(self.identifier, ""))
        return f"{visit.words[f'item_{self.name}']}: {named}" if named else ""

    def _line(self, line: str, visit: Visit) -> str:
        return line.format(account=visit.place.account_id, id=visit.parameter)

    async def _item(self, visit: Visit) -> Any:  # noqa: ANN401 - JSON
        if self.item_path:
            return await visit.call("GET", self.item_path.replace("{id}", visit.parameter))
        after: str | None = None
        while True:
            query = {"limit": "100"} | ({"after": after} if after else {})
            found = await visit.call("GET", self.path, query=query)
            for item in found["data"]:
                if item[self.identifier] == visit.parameter:
                    return item
            after = found.get("next_cursor")
            if not after:
                raise Refused(404, "not_found", visit.words["no_such"])


async def _named(visit: Visit, items: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """These items, with the names of people and matters in place of their identifiers."""
    named = dict[str, str]()
    people = sorted({str(one[n]) for one in items for n in _BY if n in one})
    named |= await visit.host.names([by for by in people if by.startswith("per_")])
    if any(one.get("matter_id") for one in items) and "closed_at" not in items[0]:
        found = await visit.all_of("/v1/matters")
        named |= {one["matter_id"]: one["name"] for one in found}
    return [
        {**one, **{n: named.get(one[n], one[n]) for n in (*_BY, "matter_id") if n in one}}
        for one in items
    ]


def _more(visit: Visit, page: str, wanted: Mapping[str, str], after: str | None) -> str:
    """The address of the next page of a list; "": this is the last one."""
    kept = {name: text for name, text in wanted.items() if text}
    return visit.at(page, **kept, after=after) if after else ""
