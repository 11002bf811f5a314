"""Pages that are a list, its items, and what can be done with them: declared, not written.

A list page shows what one operation of the API returns, a line an item. An item has a page with all
its members and a form for each act. Names of columns, fields and acts are words of `words.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from countersign.console_host import PageReply
from countersign_console.visit import Refused, Visit

_NOT_FOUND: Final = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """What a form asks for: a member of the body of a call."""

    name: str
    kind: str = "text"
    """`text`, `number` or `check`."""
    required: bool = False
    options: Sequence[str] = ()
    """What there is to choose from; none: any text."""

    def read(self, form: Mapping[str, str]) -> object:
        """The member as the API takes it; None: left out."""
        value = form.get(self.name, "").strip()
        match self.kind:
            case "check":
                return True if value else None
            case "number":
                return int(value) if value.isascii() and value.isdecimal() else value or None
            case _:
                return value or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A form, and the call that it leads to."""

    name: str
    path: str
    """Of the API; `{id}` stands for the item's identifier."""
    scope: str
    """What the person must be able to do with it."""
    method: str = "POST"
    fields: Sequence[Field] = ()
    danger: bool = False
    """Whether it cannot be undone: it says so, and is confirmed by a tick."""
    fresh: bool = False
    """Whether it needs a passkey used now, which is asked for before the form is filled."""
    shows: Sequence[str] = ()
    """Members of the response that are shown once, such as a new key."""

    def body(self, form: Mapping[str, str]) -> dict[str, Any]:
        """The body of the call; what is left empty is left out."""
        read = {one.name: one.read(form) for one in self.fields}
        return {name: value for name, value in read.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """A list of the API as a page."""

    name: str
    path: str
    identifier: str
    """The member by which an item is named."""
    columns: Sequence[str]
    item_path: str = ""
    """By which one item is read, with `{id}`; "": the list has all of it."""
    new: Sequence[Act] = ()
    acts: Sequence[Act] = ()
    filters: Sequence[Field] = ()
    """They stand in the address of the list: none may be of a buyer."""
    machine: str = ""
    """The line to type for what the machine alone does, with `{account}`."""
    item_machine: str = ""
    """The same about an item, with `{account}` and `{id}`."""

    async def show(self, visit: Visit, problem: str = "", status: int = 200) -> PageReply:
        """The list, and forms for what is new."""
        wanted = {one.name: visit.request.query.get(one.name, "") for one in self.filters}
        query = {
            "limit": "50",
            **{name: text for name, text in wanted.items() if text},
        }
        if after := visit.request.query.get("after"):
            query["after"] = after
        found = await visit.call("GET", self.path, query=query)
        return visit.show(
            "list.html",
            visit.words[f"page_{self.name}"],
            status=status,
            problem=problem,
            page=self,
            wanted=wanted,
            rows=found["data"],
            more=found.get("next_cursor"),
            acts=[act for act in self.new if visit.may_do(act.scope)],
            form=visit.form,
            machine=self._line(self.machine, visit),
            passkey=self._passkey(visit),
        )

    async def show_item(self, visit: Visit, problem: str = "", status: int = 200) -> PageReply:
        """One item with all its members, and what can be done with it."""
        item = await self._item(visit)
        return visit.show(
            "item.html",
            visit.words[f"item_{self.name}"],
            status=status,
            problem=problem,
            page=self,
            item=item,
            acts=[act for act in self.acts if visit.may_do(act.scope)],
            form=visit.form,
            machine=self._line(self.item_machine, visit),
            passkey=self._passkey(visit),
        )

    async def do(self, visit: Visit, action: str) -> PageReply:
        """What a form of the list or of an item asks for."""
        acts = self.acts if visit.parameter else self.new
        act = next((one for one in acts if one.name == action and visit.may_do(one.scope)), None)
        show = self.show_item if visit.parameter else self.show
        if act is None:
            return await show(visit)
        if act.danger and not visit.form.get("sure"):
            return await show(visit, visit.words["tick_sure"], 422)
        try:
            made = await _carry_out(visit, act)
        except Refused as refused:
            if refused.needs_passkey:
                return visit.lead_to_passkey(self._here(visit))
            return await show(visit, refused.message, refused.status)
        once = {name: made[name] for name in act.shows if made.get(name)}
        if once:
            return visit.show("once.html", visit.words[f"act_{act.name}"], page=self, once=once)
        return visit.lead(self.name, said=act.name)

    def _here(self, visit: Visit) -> str:
        return f"{self.name}/{visit.parameter}".rstrip("/")

    def _passkey(self, visit: Visit) -> str:
        """Where the passkey is asked for; "": it was used just now."""
        return "" if visit.person.is_fresh else visit.to_passkey(self._here(visit))

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


async def _carry_out(visit: Visit, act: Act) -> Any:  # noqa: ANN401 - JSON
    """What the API returns to an act. What is gone already has been deleted by the same form."""
    path = act.path.replace("{id}", visit.parameter)
    try:
        return await visit.call(act.method, path, body=act.body(visit.form))
    except Refused as refused:
        if act.method == "DELETE" and refused.status == _NOT_FOUND:
            return {}
        raise
