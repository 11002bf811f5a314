"""Commands made from routes: an operator does on the machine what a key does over HTTP.

The handler is called in this process, with a body that is parsed like one from the network. So a
command has the parameters, refusals and results of its operation, and its acts are audited as an
operator's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from inspect import cleandoc
from shlex import quote
from typing import Any, Final

import click

from countersign.base.cli import A_MODE, room_command
from countersign.base.errors import InvalidRequest
from countersign.base.http.body import parse_body
from countersign.base.http.described import schema_components
from countersign.base.http.schemas import LIMIT_MAX
from countersign.base.values import Mode
from countersign.core.access.account import find_account
from countersign.core.access.key import OPERATOR, KeyKind, Principal
from countersign.core.access.room import acting
from countersign.core.gate.route import Call, Command, Route, encode
from countersign_evidence.cli.support import (
    Duration,
    asking,
    field_lines,
    in_words,
    is_given,
    say,
    show,
    show_all,
)

_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_MEMBER: Final = re.compile(r" - at `\$\.(\w+)[^`]*`")
_MARKED: Final = re.compile(r"`(\w+)`")


def command_among(routes: Iterable[Route[Any]], name: str) -> click.Command:
    """The command of this name, from the route that declares it."""
    ((route, declared),) = [(r, c) for r in routes for c in r.commands if c.name == name]
    return command_of(route, declared)


def command_of(route: Route[Any], declared: Command) -> click.Command:
    """The command of an operation: whose it is, its path's parameter, and its body or query."""
    path = _PARAMETER.findall(route.path)
    members = {one.name or "": one for one in _members(route, declared)}

    @room_command(route.room)
    async def run(room: Any, /, **given: Any) -> None:  # noqa: ANN401 - as declared
        sent = {name: _sent(given[name]) for name in members if given[name] not in (None, ())}
        body, parameter = {**declared.sends, **sent}, "".join(given[p] for p in path)
        try:
            found = [
                await _pages(partial(_call, room, route, who, parameter), body, declared)
                for who in await _principals(room, declared, parameter, given)
            ]
        except InvalidRequest as error:
            # A command line has no JSON document with a path.
            message = _MEMBER.sub(lambda at: _spelt(members, at[1]), error.message)
            raise InvalidRequest(message) from None
        if declared.warns is not None:
            await declared.warns(room, found[0])
        _show(declared, found)

    if declared.asks:
        run = asking(declared.asks)(run)
    help_ = cleandoc(declared.help or route.handler.__doc__ or "")
    made = click.command(declared.name.rpartition(" ")[2], help=help_)(run)
    made.params[:0] = [
        *_whose(declared),
        *(click.Argument([parameter]) for parameter in path),
        *members.values(),
    ]
    return made


async def _pages(
    ask: Callable[[bytes], Awaitable[dict[str, Any]]], body: Mapping[str, Any], declared: Command
) -> dict[str, Any]:
    """The response; for a list that is printed in full, all pages as one."""
    most = {"limit": LIMIT_MAX} if declared.whole and "limit" not in body else {}
    page = await ask(encode({**body, **most}))
    while most and page["next_cursor"] is not None:
        more = await ask(encode({**body, **most, "after": page["next_cursor"]}))
        page = more | {"data": [*page["data"], *more["data"]]}
    return page


async def _call(
    room: Any,  # noqa: ANN401 - the route's
    route: Route[Any],
    who: Principal,
    parameter: str,
    body: bytes,
) -> dict[str, Any]:
    # The user of the system acts in the name of this account, or of the deployment.
    audit = room.access.audit.of(room.access.audit.actor, who.reach)
    call = Call(
        method=route.method,
        path=route.path,
        query_string=b"",
        headers={},
        raw_headers=(),
        peer=None,
        parameter=parameter,
        body=body,
        audit=audit,
    )
    call.principal = who
    if route.query is not None:
        call.query = parse_body(body, route.query)
    returned: dict[str, Any] = json.loads((await route.handler(acting(room, audit), call)).body)
    return returned


def _whose(declared: Command) -> Iterator[click.Parameter]:
    """How a command says for which account and mode it acts."""
    if declared.sandbox:
        yield click.Argument(["account"])
    elif declared.owner is None:
        named = "Id or name of the account."
        yield click.Option(["--account"], required=not declared.anywhere, help=named)
        if not declared.live:
            which = "Only of this mode." if declared.either_mode else "test or live."
            mode: dict[str, Any] = {"required": not declared.either_mode, "help": which}
            if declared.anywhere and not declared.either_mode:
                mode |= {"required": False, "default": Mode.LIVE.value, "show_default": True}
            yield click.Option(["--mode"], type=A_MODE, **mode)


async def _principals(
    room: Any,  # noqa: ANN401 - the route's
    declared: Command,
    parameter: str,
    given: Mapping[str, Any],
) -> list[Principal]:
    """The operator in place of a key: for one mode, or for each if neither is given."""
    if declared.owner is not None:
        return [operator(*await declared.owner(room, parameter))]
    mode = Mode.TEST if declared.sandbox else Mode.LIVE if declared.live else given["mode"]
    if given["account"] is None:
        if mode is not None and declared.either_mode:
            raise click.UsageError("--mode is for one --account.")
        return [operator("", Mode(mode or Mode.LIVE))]
    account_id = (await find_account(room.access, given["account"])).id
    return [operator(account_id, Mode(one)) for one in (Mode if mode is None else [mode])]


def operator(account_id: str, mode: Mode) -> Principal:
    """The principal of a command, for one account and mode; an empty account: the deployment."""
    return Principal(
        key_id=OPERATOR,
        account_id=account_id,
        mode=mode,
        scopes=frozenset(),
        credential=KeyKind.SECRET.credential,
    )


def _members(route: Route[Any], declared: Command) -> Iterator[click.Parameter]:
    """A command's parameters from the members of the body or query: arguments before options."""
    kind = route.request or route.query
    if kind is None:
        return
    (top,), components = schema_components([kind])
    body = components[top["$ref"].rpartition("/")[2]]
    flat = {name: _flat(schema, components) for name, schema in body["properties"].items()}
    for name in declared.arguments:
        yield click.Argument([name], type=_type(name, flat[name]), metavar=name.upper())
    spelt = {name: f"--{_option(name, schema, declared)}" for name, schema in flat.items()}
    for name, schema in flat.items():
        wanted = declared.takes is None or name in declared.takes
        if wanted and name not in declared.arguments and schema.get("type") != "object":
            default = declared.sends.get(name, schema.get("default"))
            default = None if declared.whole and name == "limit" else default
            flag, many = (schema.get("type") == kind for kind in ("boolean", "array"))
            described = [schema.get("description"), "May be repeated." if many else None]
            if choices := schema.get("items", {}).get("enum"):
                described.append(f"One of {', '.join(choices)}.")
            # An option with a value must not be given `is_flag` or `flag_value` at all: click would
            # make its value optional, and read a value that begins with a dash as other options.
            kind_of: dict[str, Any] = (
                {"is_flag": True, "flag_value": True}
                if flag
                else {"type": _type(name, schema.get("items", schema))}
            )
            if name in body.get("required", ()) and name not in declared.sends:
                kind_of["required"] = True  # to click, a default of None is a value
            else:
                kind_of |= {"default": default, "show_default": default is not None}
            yield click.Option(
                [spelt[name], name],
                **kind_of,
                metavar=name.removesuffix("s").upper() if choices else None,
                multiple=many,
                help=_MARKED.sub(
                    lambda at: f"`{spelt.get(at[1], at[1])}`", " ".join(filter(None, described))
                ),
            )


def _flat(schema: Mapping[str, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    """A member's schema without null, with its references resolved."""
    flat = dict(schema)
    for either in flat.pop("anyOf", ()):
        if either != {"type": "null"}:
            flat = either | flat
    if "$ref" in flat:
        flat = components[flat.pop("$ref").rpartition("/")[2]] | flat
    if "items" in flat:
        flat["items"] = _flat(flat["items"], components)
    return flat


def _option(name: str, schema: Mapping[str, Any], declared: Command) -> str:
    """How a member is called on the command line."""
    short = name.removesuffix("_seconds").removesuffix("_id")
    if schema.get("type") == "array":
        short = short.removesuffix("s")
    return declared.names.get(name, short).replace("_", "-")


def _type(name: str, schema: Mapping[str, Any]) -> click.ParamType[Any]:
    if "enum" in schema:
        return click.Choice([value for value in schema["enum"] if value is not None])
    if schema.get("type") != "integer":
        return click.STRING
    if name.endswith("seconds"):
        return Duration(or_none=not schema.get("minimum"))
    return click.IntRange(schema.get("minimum"), schema.get("maximum"))


def _sent(value: object) -> object:
    return int(value.total_seconds()) if isinstance(value, timedelta) else value


def _spelt(members: Mapping[str, click.Parameter], name: str) -> str:
    """How the user of a command types this member."""
    unit = " seconds" if name.endswith("_seconds") else ""
    return f"{unit} ({members[name].opts[0] if name in members else name})"


def _show(declared: Command, found: list[dict[str, Any]]) -> None:
    """Print the response: a list as one line per item, anything else as one line per member."""
    (first, *_) = found
    if "next_cursor" in first:
        items = [item for page in found for item in page["data"]]
        lines = ["  ".join(in_words(_at(item, name)) for name in declared.shows) for item in items]
        if items and not is_given("as_json"):
            say("  ".join(declared.shows))
        show_all(items, lines, declared.none)
        for page in found:
            if page["next_cursor"] is not None:
                one = f" --mode {_mode(page)}" if len(found) > 1 else ""
                say(f"There are more:{one} --after {quote(page['next_cursor'])}")
        return
    says = declared.says if isinstance(declared.says, str) else declared.says(first)
    if says:
        say(says.format_map(first))
    shown = (_at(first, name) for name in declared.shows)
    lines = [
        in_words(one) for all_ in shown for one in (all_ if isinstance(all_, list) else [all_])
    ]
    show(first, "\n".join(lines) if declared.shows else field_lines(first))


def _mode(page: Mapping[str, Any]) -> Mode:
    """The mode of a page that is not empty."""
    return Mode.LIVE if page["data"][0]["livemode"] else Mode.TEST


def _at(value: Any, path: str) -> Any:  # noqa: ANN401 - any JSON
    """The value at a path such as `event.id`; for a list, that of each item."""
    name, _, rest = path.partition(".")
    if isinstance(value, list):
        return [_at(item, path) for item in value]
    return _at(value[name], rest) if rest else value.get(name)
