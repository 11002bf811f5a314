"""List pages: a list, its items and their acts, declared in data.

A list page shows the items of one operation of the API, one a line. An item has a page with all
its members and a form for each act. Names of columns, fields and acts are words of `words.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from countersign.server.console_host import PageReply
from countersign_console.visit import NOT_FOUND, Refused, Visit

_DIGITS_MAX: Final = 15
"""Python limits the digits of a number; the API refuses longer text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A form field: a member of the body of a call."""

    name: str
    kind: str = "text"
    """`text` (or one of `options`), `number`, `check`, `day`, `ticks` (of several options), `keys`
    (some of the item's keys).
    """
    required: bool = False
    options: Sequence[Any] = ()
    """The choices; none: any text."""
    own: frozenset[str] = frozenset()
    """Options, scopes, that are shown only to people who have them."""
    is_reason: bool = False
    """Whether it is the reason for the audit, not a member of the body."""

    def read(self, form: Mapping[str, str]) -> object:
        """The member as the API takes it; None: left out."""
        value = form.get(self.name, "").strip()
        match self.kind:
            case "check":
                return True if value else None
            case "number":
                is_number = value.isascii() and value.isdecimal() and len(value) <= _DIGITS_MAX
                return int(value) if is_number else value or None
            case "ticks":
                return [one for one in self.options if form.get(f"{self.name}.{one}")] or None
            case "keys":
                ticked = [
                    n.removeprefix(f"{self.name}.") for n in form if n.startswith(f"{self.name}.")
                ]
                return ticked if value else None
            case "day":
                return f"{value}T00:00:00Z" if value else None
            case _:
                return value or None


def _as_read(read: dict[str, Any], _form: Mapping[str, str]) -> dict[str, Any]:
    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A form, and the call that it leads to."""

    name: str
    path: str
    """Of the API; `{id}` stands for the item's identifier."""
    scope: str
    """The scope that the person needs."""
    method: str = "POST"
    fields: Sequence[Field] = ()
    danger: bool = False
    """Whether it cannot be undone: it says so, and is confirmed by a tick."""
    fresh: bool = False
    """Whether it needs a passkey used now, requested before the form is filled."""
    shows: Sequence[str] = ()
    """Members of the response that are shown once, such as a new key."""
    sends: Mapping[str, Any] = field(default_factory=dict)
    """Constant members of the body."""
    when: Callable[[Mapping[str, Any]], bool] = bool
    """Whether this can be done with an item."""
    hidden: bool = False
    """Whether the template has a form of its own for it."""
    shape: Callable[[dict[str, Any], Mapping[str, str]], dict[str, Any]] = _as_read
    """The body of the call, from the parsed fields and the form."""

    def body(self, form: Mapping[str, str]) -> dict[str, Any]:
        """The body of the call, without empty fields."""
        read = {one.name: one.read(form) for one in self.fields if not one.is_reason}
        return self.shape({n: value for n, value in read.items() if value is not None}, form) | {
            **self.sends
        }

    def of(self, visit: Visit, item: Mapping[str, Any] | None = None) -> Act:
        """The same, with the options that this person may choose, and the keys of the item."""
        fields = []
        for one in self.fields:
            if one.kind == "keys":
                keys = (item or {}).get("keys", ())
                fields += [replace(one, options=keys)] if keys else []
            else:
                shown = [o for o in one.options if o not in one.own or visit.may_give(o)]
                fields.append(replace(one, options=shown))
        return replace(self, fields=fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
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
    machine: str = ""
    """The command for acts on the machine, with `{account}`."""
    item_machine: str = ""
    """The same about an item, with `{account}` and `{id}`."""
    template: str = "item.html"
    """Of an item."""
    guide: str = ""
    """The page of the service's documentation about it."""
    note: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    """A row of the list, or an item, as the page shows it."""

    looks: ClassVar[frozenset[str]] = frozenset()
    """Forms that only look: they are carried out by the page that they lead to."""

    async def show(self, visit: Visit) -> PageReply:
        """The list, and forms for new items."""
        if visit.kept.result is not None:
            return self._once(visit)
        wanted = {one.name: visit.request.query.get(one.name, "") for one in self.filters}
        read = {one.name: str(one.read(wanted) or "") for one in self.filters}
        after = visit.request.query.get("after", "")
        found = await visit.page_of(self.path, after=after, **read)
        return visit.show(
            "list.html",
            visit.words[f"page_{self.name}"],
            page=self,
            wanted=wanted,
            rows=await _named(visit, [self.note(one) for one in found["data"]]),
            more=_more(visit, self.name, wanted, found["next_cursor"]),
            begun=bool(after),
            acts=[act.of(visit) for act in self.new if visit.may_do(act.scope)],
            machine=self._line(self.machine, visit),
            passkey=visit.passkey,
        )

    async def show_item(self, visit: Visit) -> PageReply:
        """One item with all its members and acts; the list, if it has no pages of items."""
        if visit.kept.result is not None:
            return self._once(visit)
        if not (self.acts or self.item_path):
            return await self.show(visit)
        (item,) = await _named(visit, [self.note(await self._item(visit))])
        extras = await self.extras(visit, item)
        return visit.show(
            self.template,
            visit.words[f"item_{self.name}"],
            page=self,
            item=item,
            acts=[
                act.of(visit, item)
                for act in self.acts
                if visit.may_do(act.scope) and not act.hidden and act.when(item)
            ],
            machine=self._line(self.item_machine, visit),
            passkey=visit.passkey,
            **extras,
        )

    async def extras(self, visit: Visit, item: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002 - a template's own
        """Further values for an item's template."""
        return {}

    async def do(self, visit: Visit, action: str) -> str:
        """Carry out a form of the list or of an item."""
        acts = self.acts if visit.parameter else self.new
        act = next((one for one in acts if one.name == action and visit.may_do(one.scope)), None)
        if act is None:
            return visit.at(visit.here)
        if act.danger and not visit.form.get("sure"):
            raise Refused(422, "not_sure", visit.words["tick_sure"])
        made = await carry_out(visit, act)
        once = {name: made[name] for name in act.shows if made.get(name) is not None}
        if once:
            is_last = f"result_{action}" not in visit.words
            return await visit.keep(action, result=once, is_last=is_last)
        stays = visit.parameter and not act.danger
        return visit.at(visit.here if stays else self.name, said=act.name)

    def _once(self, visit: Visit) -> PageReply:
        act, once = visit.kept.action, visit.kept.result
        title, back = visit.words[f"act_{act}"], visit.at(self.name)
        return visit.show("once.html", title, script="copy.js", act=act, once=once, back=back)

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
    """These items, with the names of the people who made them."""
    makers = [str(one.get("made_by")) for one in items]
    names = await visit.host.names(sorted(by for by in {*makers} if by.startswith("per_")))
    return [
        {**one, "made_by": names[by]} if by in names else one
        for one, by in zip(items, makers, strict=True)
    ]


async def carry_out(visit: Visit, act: Act) -> Any:  # noqa: ANN401 - JSON
    """The API's response to an act. A deleted object was deleted by the same form."""
    path = act.path.replace("{id}", visit.parameter)
    try:
        why = next((one.read(visit.form) for one in act.fields if one.is_reason), None)
        reason = str(why) if why else None
        return await visit.call(act.method, path, body=act.body(visit.form), reason=reason)
    except Refused as refused:
        if act.method == "DELETE" and refused.status == NOT_FOUND:
            return {}
        raise


def _more(visit: Visit, page: str, wanted: Mapping[str, str], after: str | None) -> str:
    """The address of the next page of a list; "": this is the last one."""
    kept = {name: text for name, text in wanted.items() if text}
    return visit.at(page, **kept, after=after) if after else ""
