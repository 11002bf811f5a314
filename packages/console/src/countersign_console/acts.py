"""Acts: one page and one form each, declared as data.

What an act needs (a passkey, which is asked for before the form), its fields, its effect, and what
is said after it are declared once; this module draws the form, its errors, and the outcome.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from countersign.server.console_host import PageReply
from countersign_console.view import lead
from countersign_console.visit import GONE, NOT_FOUND, Refused, Visit

_DIGITS_MAX: Final = 15
"""Python limits the digits of a number; the API refuses longer text."""


Choices: TypeAlias = Callable[[Visit], Awaitable[Mapping[str, str]]]
Item: TypeAlias = Mapping[str, Any]


def _always(_: Item) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A form field: a member of the body of a call."""

    name: str
    kind: str = "text"
    """`text` (or one of `options`), `number`, `check`, `day`, `ticks` (of several options), `keys`
    (some of the item's keys), `area` (lines of text).
    """
    required: bool = False
    options: Sequence[Any] = ()
    """The choices; none: any text."""
    own: frozenset[str] = frozenset()
    """Options, scopes, that are shown only to people who have them."""
    is_reason: bool = False
    """Whether it is the reason for the audit, not a member of the body."""
    choices: Choices | None = None
    """Finds the choices when the form is shown: value → label. An optional field without any is
    left out."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the choices that were found."""
    when: Callable[[Mapping[str, Any]], bool] = _always
    """Whether the field is asked for, with this item."""
    title: str = ""
    """Its label; "": that of its name in `words.toml`."""
    length: int = 0
    """The most characters; 0: the API says."""

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

    async def of(self, visit: Visit) -> Field:
        """The same, with the choices that there are now."""
        if self.choices is None:
            return self
        labels = await self.choices(visit)
        return replace(self, options=[*labels], labels=labels)


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
    """Whether it needs a passkey used now, which is asked for before the form."""
    shows: Sequence[str] = ()
    """Members of the response that are shown once, such as a new key."""
    once: str = ""
    """The one of them without which nothing is shown once; "": any."""
    sends: Mapping[str, Any] = field(default_factory=dict)
    """Constant members of the body."""
    when: Callable[[Mapping[str, Any]], bool] = _always
    """Whether this can be done with an item."""
    hidden: bool = False
    """Whether the template has a form of its own for it, and it has no page."""
    effect: Callable[[Visit, Item], Awaitable[Effect]] | None = None
    """Finds what the act would do."""
    run: Callable[[Visit, Item], Awaitable[str]] | None = None
    """Carries it out if it is not one call; returns the address to redirect to."""
    within: str = ""
    """The member of the item with the values that the fields begin with; "": the item itself."""
    carries: tuple[str, ...] = ()
    """Beginnings of the names of fields that come from the form before, unseen."""
    stamps: tuple[str, ...] = ()
    """Members of the item that the form sends along as the person saw them."""
    asks: Callable[[Visit, Item], Awaitable[Sequence[Field]]] | None = None
    """Finds further fields."""
    template: str = "act.html"
    outcome: str = "once.html"
    """The template that shows a kept result."""
    shape: Callable[[dict[str, Any], Mapping[str, str]], dict[str, Any]] = _as_read
    """The body of the call, from the parsed fields and the form."""

    def body(self, form: Mapping[str, str]) -> dict[str, Any]:
        """The body of the call, without empty fields."""
        read = {one.name: one.read(form) for one in self.fields if not one.is_reason}
        return self.shape({n: value for n, value in read.items() if value is not None}, form) | {
            **self.sends
        }

    async def of(self, visit: Visit, item: Item) -> Act:
        """The same, with the fields and choices that this person has with this item."""
        fields = []
        for one in (*self.fields, *(await self.asks(visit, item) if self.asks else ())):
            if not one.when(item):
                continue
            if one.choices is not None:
                found = await one.of(visit)
                fields += [found] if found.options or one.required else []
            elif one.kind == "keys":
                keys = item.get("keys", ())
                fields += [replace(one, options=keys)] if keys else []
            else:
                shown = [o for o in one.options if o not in one.own or visit.may_give(o)]
                fields.append(replace(one, options=shown))
        return replace(self, fields=fields)

    async def check(self, visit: Visit, item: Item) -> None:
        """Raise Refused, which names each field that is missing."""
        asked = (*self.fields, *(await self.asks(visit, item) if self.asks else ()))
        wrong = {
            one.name: visit.words["field_missing"].format(label=one.title or visit.label(one.name))
            for one in asked
            if one.required and one.when(item) and one.read(visit.form) is None
        }
        if self.danger and not visit.form.get("sure"):
            wrong["sure"] = visit.words["tick_sure"]
        if wrong:
            raise Refused(422, "incomplete", "", wrong)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What an act would do, in sentences with numbers."""

    sentences: Sequence[str]
    is_possible: bool = True
    shown: Mapping[str, Any] = field(default_factory=dict)
    """Further values for the template of the act."""


class Page:
    """The handler of one page of the menu, of its items, and of its acts' pages."""

    name: str = ""
    looks: frozenset[str] = frozenset()
    """Forms that only look: they lead to a page that carries them out."""
    new: Sequence[Act] = ()
    """Acts of the page itself."""
    acts: Sequence[Act] = ()
    """Acts of an item; the first one that is possible is the primary one."""

    async def show(self, visit: Visit) -> PageReply:
        """The page itself."""
        raise NotImplementedError

    async def show_item(self, visit: Visit) -> PageReply:
        """The page of the item that the address names."""
        return await self.show(visit)

    async def item(self, visit: Visit) -> Item:  # noqa: ARG002 - of one page
        """The item that the address names, or that the form carries."""
        return {}

    async def about(self, visit: Visit, item: Item) -> str:  # noqa: ARG002 - of one page
        """What the page of an act is about, as people name it; "": nothing."""
        return ""

    def act(self, action: str, *, of_item: bool) -> Act | None:
        """The act whose page, or form, has this action."""
        return next((a for a in (self.acts if of_item else self.new) if a.name == action), None)

    def offered(self, visit: Visit, item: Item | None = None) -> list[tuple[str, str]]:
        """The acts that this person may do, with the item or the page: address and name."""
        return [
            (visit.at(f"{self.name}/{visit.parameter or '-'}/{act.name}"), act.name)
            for act in (self.new if item is None else self.acts)
            if visit.may_do(act.scope) and not act.hidden and (item is None or act.when(item))
        ]

    async def show_act(self, visit: Visit, act: Act) -> PageReply:
        """The page of an act: its effect, then its form; or what came of it."""
        title, back = visit.words[f"act_{act.name}"], visit.back()
        if visit.kept.result is not None:
            once = visit.kept.result
            return visit.show(act.outcome, title, act=act.name, once=once, back=back)
        may_do = visit.may_do(act.scope)
        if not may_do and not (act.effect and visit.may(act.scope)):
            raise Refused(403, "forbidden", visit.words["problem_forbidden"])
        if act.fresh and may_do and visit.passkey:
            return lead(visit.passkey)
        item = await self.item(visit)
        if not act.when(item):
            return lead(visit.back(said=GONE) if visit.kept.action == GONE else back)
        effect = await act.effect(visit, item) if act.effect else Effect(sentences=())
        shown, form = await act.of(visit, item), visit.form
        begun = item.get(act.within, item)
        return visit.show(
            act.template,
            title,
            act=shown,
            about=await self.about(visit, item),
            effect=effect,
            may_do=may_do and effect.is_possible,
            form={**begun, **form},
            carried=[
                *(one for one in form.items() if one[0].startswith(act.carries)),
                *((name, item[name]) for name in act.stamps),
            ],
            to=visit.at(visit.spot),
            back=back,
            **effect.shown,
        )

    async def do(self, visit: Visit, action: str) -> str:
        """Carry out a form; returns the address to redirect to."""
        act = self.act(action, of_item=bool(visit.parameter))
        if act is None or not visit.may_do(act.scope):
            return visit.back()
        try:
            item = await self.item(visit)
        except Refused as refused:
            if act.run or refused.status != NOT_FOUND:
                raise
            item = {}  # a form that is sent twice: the API repeats its first response
        # For the same reason `when` is not asked here: the first sending has changed the item. What
        # cannot be done, the API refuses.
        await act.check(visit, item)
        if act.run is not None:
            return await act.run(visit, item)
        made = await carry_out(visit, act)
        once = {name: made[name] for name in act.shows if made.get(name) is not None}
        if act.once in once if act.once else once:
            is_last = f"result_{action}" not in visit.words
            of = {"about": about} if (about := await self.about(visit, item)) else {}
            return await visit.keep(action, result=of | once, is_last=is_last)
        stays = visit.parameter and not act.danger
        facts = {**item, **visit.form, **(made or {})}
        return await visit.tell(act.name, visit.here if stays else self.name, facts)


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


async def matters(visit: Visit) -> Mapping[str, str]:
    """The open matters by their identifiers."""
    found = await visit.all_of("/v1/matters")
    return {one["matter_id"]: one["name"] for one in found if not one["closed_at"]}
