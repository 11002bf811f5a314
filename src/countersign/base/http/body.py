"""The body and the query of a request: bounded, and one verdict for any bytes.

Refused are bad UTF-8, duplicate and unknown keys, wrong types, lone surrogates, U+0000, NaN and
infinities, over-long values and over-deep nesting.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar, get_args
from urllib.parse import parse_qsl

import msgspec

from countersign.base.deadline import TimeLimit
from countersign.base.errors import InvalidRequest, PayloadTooLarge
from countersign.base.generics import T
from countersign.base.http.schemas import Request
from countersign.base.setting_values import expecting
from countersign.base.values import digits, parse_rfc3339

_MISTAKES_MAX: Final = 5
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_AT: Final = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>[A-Za-z0-9_.\[\]]*)`)?\Z", re.DOTALL)
_MEMBER: Final = re.compile(r"Object (contains unknown|missing required) field `(.*)`\Z", re.DOTALL)
_TYPE: Final = re.compile(r"Expected `([a-z0-9 |]+)`, got `([a-z0-9]+)`\Z")
_BOUND: Final = re.compile(r"Expected `(str|array|int|float)`(?: of length)? (>=|<=) (\d+)\Z")
_KINDS: Final = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
TIME_EXPECTED: Final = "Expected a time with a time zone, such as 2026-11-20T21:31:00Z"
_UNITS: Final = {"str": "characters", "array": "elements"}


def mistakes(value: object, schema: type) -> str:
    """One sentence for each mistake, the first five; each ends with the path of the field."""
    found = list(islice(_mistakes(value, schema), _MISTAKES_MAX + 1))
    if len(found) > _MISTAKES_MAX:
        found[_MISTAKES_MAX:] = ["And more."]  # to count thousands would take long
    return " ".join(found)


def path_to(parent: str, key: str) -> str:
    """The JSONPath of a member: `$.name`, or `$["odd name"]`, in printable ASCII."""
    if _PLAIN_KEY.match(key):
        return f"{parent}.{key}"
    return f"{parent}[{json.dumps(key[:64])}]"


def _mistakes(value: object, schema: type) -> Iterator[str]:
    if not isinstance(value, dict):
        yield "Expected an object - at `$`."
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(schema)}
    for name in value:
        if name not in fields:
            yield f"Unknown field - at `{path_to('$', name)}`; {_listed(fields)}."
    for name, field in fields.items():
        if name not in value:
            if field.required:
                yield f"A required field is missing - at `$.{name}`."
            continue
        try:
            msgspec.convert(value[name], field.type)
        except msgspec.ValidationError as error:
            what, path = _in_words(error, f"$.{name}", field.type)
            yield f"{what} - at `{path}`."


def _in_words(
    error: msgspec.ValidationError,
    parent: str,
    kind: Any,  # noqa: ANN401 - any annotation
) -> tuple[str, str]:
    """The validator's message about a field, whose path is `parent`, in our words; and the path."""
    message = str(error)
    found = _AT.match(message)
    what, path = (found["what"], parent + (found["path"] or "")) if found else (message, parent)
    if member := _MEMBER.match(what):
        missing = member[1].startswith("missing")
        what = "A required field is missing" if missing else "Unknown field"
        path = path_to(path, member[2])
    elif wrong := _TYPE.match(what):
        expected = " or ".join(_KINDS.get(k, k) for k in wrong[1].split(" | ") if k != "null")
        what = f"Expected {expected}, got {_KINDS.get(wrong[2], wrong[2])}"
    elif bound := _BOUND.match(what):
        limit = "at least" if bound[2] == ">=" else "at most"
        what = f"Expected {limit} {bound[3]} {_UNITS.get(bound[1], '')}".rstrip()
    elif what.startswith("Invalid enum value"):
        what = f"{what}; {_listed(_choices(kind))}"
    elif "matching regex" in what:
        what = f"Expected {_example(kind, path)}"
    elif "datetime" in what:
        what = TIME_EXPECTED
    return what, path


def _listed(names: Mapping[str, object] | list[str]) -> str:
    return f"allowed: {', '.join(names)}" if names else "none are allowed"


def _choices(kind: Any) -> list[str]:  # noqa: ANN401 - any annotation
    return [str(v) for node in _nodes(msgspec.json.schema(kind)) for v in node.get("enum", ())]


def _example(kind: Any, path: str) -> str:  # noqa: ANN401 - any annotation
    """A value that would be right: of the member that the path ends with, if that is known."""
    schema, name = msgspec.json.schema(kind), path.rpartition(".")[2]
    members = [n["properties"][name] for n in _nodes(schema) if name in n.get("properties", ())]
    nodes = _nodes(members or schema)
    examples = [str(e) for node in nodes for e in node.get("examples", ())]
    return "a value such as " + " or ".join(examples) if examples else "another form"


def _nodes(schema: object) -> Iterator[dict[str, Any]]:
    """Every object in a JSON Schema."""
    todo: list[Any] = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            yield node
            todo += node.values()
        elif isinstance(node, list):
            todo += node


Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
"""Returns the next message about a request, as ASGI has it."""

BODY_BYTES_MAX: Final = 64 * 1024
_DRAINED_BYTES_MAX: Final = 1024 * 1024
DOOR_BYTES_MAX: Final = 4 * 1024
"""For sign-in forms: a passkey's response is allowed a quarter of it."""
FORM_BYTES_MAX: Final = 8 * 1024
"""Limit of a form with a few short fields."""
PASSKEY_FORM_BYTES_MAX: Final = 32 * 1024
"""Limit of a form with a passkey's signature."""
_BODY_SECONDS_MAX: Final = 20
_DRAIN_SECONDS_MAX: Final = 1


class Incoming(msgspec.Struct, eq=False):
    """The body of a request. It is read at most once, within a time limit."""

    receive: Receive
    is_more: bool = True

    async def read(
        self,
        declared: bytes,
        most: int = BODY_BYTES_MAX,
        take: Callable[[int], None] | None = None,
        seconds: float = _BODY_SECONDS_MAX,
    ) -> bytes:
        """The whole body; `declared` is its Content-Length, `take` counts what arrives.

        It has so many seconds to arrive.

        Raises:
            PayloadTooLarge: it is larger than `most` bytes.
            InvalidRequest: the connection, or the time for it, ended before it did.
        """
        too_large = f"The request body is larger than {most} bytes."
        if declared.isdigit() and int(declared[:20]) > most:
            self.is_more = int(declared[:20]) <= _DRAINED_BYTES_MAX
            raise PayloadTooLarge(too_large)
        parts: list[bytes] = []
        size = 0
        try:
            with TimeLimit(seconds):
                while self.is_more:
                    part = await self._next()
                    size += len(part)
                    if size > most:
                        raise PayloadTooLarge(too_large)
                    if take is not None:
                        take(len(part))
                    parts.append(part)
        except TimeoutError:
            self.is_more = False
            raise InvalidRequest(f"The body did not arrive within {seconds} seconds.") from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def drain(self) -> None:
        """Read and drop the rest of the body, up to a bound.

        A client that is still sending reads the response only when it has finished, and a
        connection with an unread body cannot be reused.
        """
        left = _DRAINED_BYTES_MAX
        with suppress(InvalidRequest, TimeoutError), TimeLimit(_DRAIN_SECONDS_MAX):
            while self.is_more and left > 0:
                left -= len(await self._next())

    async def _next(self) -> bytes:
        message = await self.receive()
        if message["type"] == "http.disconnect":
            self.is_more = False
            raise InvalidRequest("The request ended before its body was complete.")
        self.is_more = bool(message.get("more_body"))
        part: bytes = message.get("body", b"")
        return part


_NAMES: Final[dict[type, tuple[int, tuple[bytes, ...]]]] = {}
"""How many objects a schema describes, and the names of their fields, quoted as in JSON."""


def parse_body(body: bytes, schema: type[T]) -> T:
    """The body as this type.

    Raises:
        InvalidRequest: naming the field, as in `$.initials_per_line[2]`.
    """
    try:
        text = body.decode("utf-8")
        if _is_plain(body, schema):
            try:
                return msgspec.json.decode(body, type=schema)
            except msgspec.MsgspecError:
                pass  # the strict parser names the error
        value = _decoder.decode(text)
        if "\\u" in text:
            # Only an escape can contain characters that strict UTF-8 and JSON forbid.
            _refuse_unstorable(value)
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"The body is not valid UTF-8: see byte {error.start}.") from None
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"The body is not valid JSON: {error.msg} at character {error.pos}."
        ) from None
    except RecursionError:
        raise InvalidRequest("The body is nested too deeply.") from None
    except ValueError:
        raise InvalidRequest("The body contains a number that is too long.") from None
    try:
        return msgspec.convert(value, schema)
    except msgspec.ValidationError as error:
        raise InvalidRequest(mistakes(value, schema) or f"{error}.") from None


def in_utc(instant: datetime, path: str) -> datetime:
    """A time of a body in UTC.

    Raises:
        InvalidRequest: the time cannot be expressed in UTC; `path` is where it was sent.
    """
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise InvalidRequest(f"This time does not exist in UTC - at `{path}`.") from None


def _is_plain(body: bytes, schema: type) -> bool:
    """Whether the fast parser is certain to accept only what the strict one accepts.

    The fast parser keeps the last of two equal keys: so there may be no more objects than the
    schema describes, and each of its names at most once. And it takes any character: an escape
    could bring in forbidden ones. (A name that is also a value looks like a duplicate key; then the
    strict parser decides.)
    """
    if schema not in _NAMES:
        parts = msgspec.json.schema_components([schema])[1].values()
        objects = [part["properties"] for part in parts if "properties" in part]
        quoted = (f'"{name}"'.encode() for properties in objects for name in properties)
        _NAMES[schema] = len(objects), tuple(quoted)
    objects_max, names = _NAMES[schema]
    if b"\\" in body or body.count(b"{") > objects_max:
        return False
    for name in names:  # noqa: SIM110 - a loop is twice as fast as a generator
        if body.count(name) > 1:
            return False
    return True


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                # Bodies are flat, so far: the path of a key begins at the root.
                raise InvalidRequest(f"Duplicate object key - at `{path_to('$', key)}`.")
            seen.add(key)
    return members


def _no_constant(name: str) -> None:
    raise InvalidRequest(f"The body is not valid JSON: {name} is not a JSON value.")


_decoder: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


def _refuse_unstorable(value: object) -> None:
    steps = _unstorable(value)
    if steps is not None:
        path = "$"
        for step in reversed(steps):
            path = f"{path}[{step}]" if isinstance(step, int) else path_to(path, step)
        raise InvalidRequest(f"U+0000 and lone surrogates are not accepted - at `{path}`.")


def _unstorable(value: object) -> list[str | int] | None:
    """The way to the first text that cannot be stored, its last step first; None: there is none.

    Only a refusal writes a path: one for each item would take quadratic time.
    """
    if isinstance(value, str):
        return [] if _UNSTORABLE.search(value) else None
    if isinstance(value, dict):
        if (bad := next((key for key in value if _unstorable(key) is not None), None)) is not None:
            return [bad]
    elif not isinstance(value, list):
        return None
    for step, item in value.items() if isinstance(value, dict) else enumerate(value):
        if (steps := _unstorable(item)) is not None:
            steps.append(step)
            return steps
    return None


Q = TypeVar("Q", bound=Request)

_PARAMETERS_MAX: Final = 50
_DIGITS_MAX: Final = 16
"""Digits of an integer below 2^53, the largest that JSON keeps exactly."""
_integer: Final = expecting("Expected an integer", lambda text: digits(text, _DIGITS_MAX))
_time: Final = expecting(TIME_EXPECTED, parse_rfc3339)


def read_query(query_string: bytes, kind: type[Q] | None) -> Q | None:
    """The query, which is not empty, as this type; None: no parameters are allowed."""
    if kind is None:
        parse_query(query_string, ())
        return None
    fields = _fields(kind)
    values: dict[str, object] = {}
    for name, text in parse_query(query_string, fields).items():
        read, schema = fields[name]
        try:
            values[name] = msgspec.convert(read(text), schema)
        except ValueError as error:
            what = (
                _in_words(error, "", schema)[0]
                if isinstance(error, msgspec.ValidationError)
                else error
            )
            raise InvalidRequest(f"{what} - at the query parameter {name}.") from None
    return kind(**values)


def parse_query(query_string: bytes, allowed: Collection[str]) -> dict[str, str]:
    """The texts of the query parameters by name.

    Raises:
        InvalidRequest: one is unknown, repeated, or not UTF-8 without U+0000.
    """
    query: dict[str, str] = {}
    for name, value in form_pairs(query_string, _PARAMETERS_MAX, "query string"):
        if name not in allowed:
            known = ", ".join(allowed) or "none"
            raise InvalidRequest(f"Unknown query parameter {name[:64]!a}. Allowed: {known}.")
        if name in query:
            raise InvalidRequest(f"The query parameter {name} was sent twice.")
        if "\x00" in value:
            msg = f"The query parameter {name} contains U+0000, which is not accepted."
            raise InvalidRequest(msg)
        query[name] = value
    return query


def form_pairs(encoded: bytes, most: int, what: str) -> list[tuple[str, str]]:
    """The names and texts of a query or a form; at most so many.

    Raises:
        InvalidRequest: `what` is not well formed.
    """
    try:
        text = encoded.decode("ascii")
        return parse_qsl(
            text, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=most
        )
    except ValueError:
        raise InvalidRequest(f"The {what} is not well formed.") from None


@cache
def left_out(kind: type[Q]) -> Q:
    """The query without parameters."""
    return kind()


@cache
def _fields(kind: type[Request]) -> Mapping[str, tuple[Callable[[str], object], Any]]:
    """By name: how a parameter's text is read, and the type that it must then have."""
    fields = msgspec.structs.fields(kind)
    return {field.name: (_reader(field.type), field.type) for field in fields}


def _reader(kind: Any) -> Callable[[str], object]:  # noqa: ANN401 - any annotation
    # msgspec could read these texts too, but takes others besides: `null`, `2026-11-20 00:00:00Z`.
    if any(one is datetime for one in _within(kind)):
        return _time
    return _integer if any(one is int for one in _within(kind)) else str


def _within(kind: Any) -> Iterator[Any]:  # noqa: ANN401 - any annotation
    yield kind
    for inner in get_args(kind):
        yield from _within(inner)
