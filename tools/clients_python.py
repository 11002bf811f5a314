"""The generated modules of clients/python."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tools.clients import (
    RESOURCES,
    ROOT,
    Document,
    Operation,
    class_of,
    description_of,
    name_of,
    without_null,
)

_PACKAGE: Final = "clients/python/src/countersign_client"
_WIDTH: Final = 100
_PLAIN: Final = {"string": "str", "integer": "int", "boolean": "bool", "number": "float"}
_NOTE: Final = "Written by `make clients` from spec/openapi.json: do not edit."


def files(document: Document) -> dict[str, str]:
    """The modules by path."""
    made = {
        f"{_PACKAGE}/types.py": _types(document),
        f"{_PACKAGE}/errors.py": _errors(document),
        f"{_PACKAGE}/resources.py": _resources(document),
    }
    return {path: _formatted(path, text) for path, text in made.items()}


def _formatted(path: str, text: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    command = [str(ruff), "format", "--stdin-filename", path, "-"]
    done = subprocess.run(  # noqa: S603 - our own formatter
        command, input=text, capture_output=True, text=True, check=True, cwd=ROOT
    )
    return done.stdout


def _errors(document: Document) -> str:
    errors = document.errors()
    parts = [
        f'"""What the API refuses, an exception for each code.\n\n{_NOTE}\n"""',
        "from __future__ import annotations",
        "from typing import Final",
        "from countersign_client.failure import CountersignError",
        *(
            f"class {class_of(code)}(CountersignError):\n{_doc(text, 4)}\n"
            f'    default_code = "{code}"'
            for code, text in errors.items()
        ),
        f"_ALL: Final = ({', '.join(map(class_of, errors))},)",
        "BY_CODE: Final[dict[str, type[CountersignError]]] = {e.default_code: e for e in _ALL}",
    ]
    return "\n\n".join(parts)


def _types(document: Document) -> str:
    body = "\n\n".join([*_words(document), *_inputs(document), *_results(document)])
    return f'''"""What operations take and return.

{_NOTE}

Times are in UTC. A set of words, such as `BuyerStatus`, may grow: results have them as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from countersign_client.call import Result

{body}
'''


def _bodies(document: Document) -> set[str]:
    return {one.body for one in document.operations if one.body}


def _words(document: Document) -> Iterator[str]:
    """The sets of words."""
    for name, schema in document.schemas.items():
        if "enum" in schema:
            yield (
                f"{name}: TypeAlias = Literal[{', '.join(map(_quoted, schema['enum']))}]\n"
                + _doc(schema.get("description", ""), 0)
            ).rstrip()


def _inputs(document: Document) -> Iterator[str]:
    """The objects inside of bodies."""
    bodies = _bodies(document)
    nested = {
        found
        for body in bodies
        for schema in document.schemas[body]["properties"].values()
        for found in _objects_in(document, schema)
    }
    for name in document.reachable(nested):
        schema = document.schemas[name]
        if "enum" in schema:
            continue
        fields = []
        for field, definition in schema["properties"].items():
            kind = _taken(document, definition)
            required = field in schema["required"]
            fields.append(
                f"    {field}: {kind if required else f'NotRequired[{kind} | None]'}\n"
                + _doc(description_of(definition), 4)
            )
        yield f"class {name}Input(TypedDict):\n{_doc(schema['description'], 4)}\n" + "\n".join(
            fields
        )


def _objects_in(document: Document, schema: Mapping[str, Any]) -> Iterator[str]:
    inner, _ = without_null(schema)
    inner = inner.get("items", inner)
    if "$ref" in inner and "enum" not in document.schemas[name_of(inner)]:
        yield name_of(inner)


def _results(document: Document) -> Iterator[str]:
    """Types that operations return."""
    roots = {one.item or one.returns for one in document.operations}
    for name in document.reachable(roots & set(document.schemas)):
        schema = document.schemas[name]
        if "enum" in schema:
            continue
        fields = []
        for field, definition in schema.get("properties", {}).items():
            kind = _returned(document, definition)
            if field not in schema.get("required", []) and not kind.endswith(("None", "...]")):
                kind += " | None"
            if field not in schema.get("required", []):
                kind = f"{kind} = ()" if kind.startswith("tuple") else f"{kind} = None"
            words = _words_of(document, definition)
            said = " ".join(filter(None, [description_of(definition), words]))
            fields.append(f"    {field}: {kind}\n" + _doc(said, 4))
        yield (
            f"class {name}(Result, frozen=True, kw_only=True):\n{_doc(schema['description'], 4)}\n"
            + "\n".join(fields)
        )


def _words_of(document: Document, schema: Mapping[str, Any]) -> str:
    inner, _ = without_null(schema)
    inner = inner.get("items", inner)
    if "$ref" in inner and "enum" in document.schemas[name_of(inner)]:
        return f"See `{name_of(inner)}`."
    return f"Such as {', '.join(f'`{word}`' for word in inner['enum'])}." if "enum" in inner else ""


def _returned(document: Document, schema: Mapping[str, Any]) -> str:
    """The type of a field of a result."""
    inner, nullable = without_null(schema)
    if "$ref" in inner:
        name = name_of(inner)
        kind = "str" if "enum" in document.schemas[name] else name
    elif "anyOf" in inner:
        kind = "Any"
    elif inner.get("type") == "array":
        kind = f"tuple[{_returned(document, inner['items'])}, ...]"
    elif inner.get("type") == "object":
        more = inner.get("additionalProperties")
        kind = f"dict[str, {_returned(document, more) if more else 'Any'}]"
    elif "enum" in inner:
        kind = "str"
    else:
        formats = {"date-time": "datetime", "date": "date"}
        kind = formats.get(inner.get("format", ""), _PLAIN[inner["type"]])
    return f"{kind} | None" if nullable else kind


def _taken(document: Document, schema: Mapping[str, Any]) -> str:
    """The type of an argument, without None."""
    inner, _ = without_null(schema)
    if "$ref" in inner:
        name = name_of(inner)
        return name if "enum" in document.schemas[name] else f"{name}Input"
    if "enum" in inner:
        return f"Literal[{', '.join(map(_quoted, inner['enum']))}]"
    if inner.get("type") == "array":
        return f"Sequence[{_taken(document, inner['items'])}]"
    if inner.get("format") == "date-time":
        return "Time"
    return _PLAIN[inner["type"]] if "type" in inner else "Any"  # any JSON: its keys are data


def _resources(document: Document) -> str:
    classes = "\n\n".join(_resource(document, name) for name in RESOURCES)
    holders = "\n".join(
        f"        self.{name}: Final[{kind}[S]] = {kind}(sender)\n{_doc(said, 8)}"
        for name, said in RESOURCES.items()
        for kind in [class_of(name)]
    )
    return f'''"""The operations of the API.

{_NOTE}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, Literal, TypeVar

from countersign_client import types
from countersign_client.call import Call, Page, Time, key_or_new, segment, waiting
from countersign_client.declaring import Resource, listing, operation
from countersign_client.sending import AsyncSender, Sender

S = TypeVar("S", bound=Sender | AsyncSender)


{classes}


class Resources(Generic[S]):
    """All operations, by what they are about."""

    def __init__(self, sender: S) -> None:
{holders}
'''


def _resource(document: Document, name: str) -> str:
    methods = "\n\n".join(_method(document, one) for one in document.of(name))
    return f'class {class_of(name)}(Resource[S]):\n    """{RESOURCES[name]}"""\n\n{methods}\n'


def _method(document: Document, one: Operation) -> str:
    fields, required = one.query, one.required_query
    if one.body:
        schema = document.schemas[one.body]
        fields, required = schema["properties"], set(schema["required"])
    ordered = sorted(fields, key=lambda field: field not in required)
    arguments = ["self", *(f"{name}: str" for name in one.path_parameters)]
    named = [
        f"{field}: {kind}" if field in required else f"{field}: {kind} | None = None"
        for field in ordered
        for kind in [_qualified(_taken(document, fields[field]))]
    ]
    if one.keyed:
        named.append("idempotency_key: str | None = None")
    if one.waits:
        named.append("wait_seconds: int | None = None")
    arguments += ["*", *named] if named else []
    returns = f"Page[types.{one.item}]" if one.item else _qualified(one.returns)
    return textwrap.indent(
        f"@{'listing' if one.item else 'operation'}\n"
        f"def {one.name}({', '.join(arguments)},) -> Call[{returns}]:\n"
        f"{_method_doc(one, fields)}"
        f"    return Call({', '.join(_described(one, fields, returns))},)\n",
        "    ",
    )


def _described(one: Operation, fields: Mapping[str, Any], returns: str) -> Iterator[str]:
    path = one.path
    for name in one.path_parameters:
        path = path.replace(f"{{{name}}}", f"{{segment({name})}}")
    yield f'method="{one.method}"'
    yield f'path={"f" if one.path_parameters else ""}"{path}"'
    yield f"returns={returns}"
    members = ", ".join(f'"{field}": {field}' for field in fields)
    if one.body:
        yield f"body={{{members}}}"
    elif fields:
        yield f"query={{{members}}}"
    if one.keyed:
        yield 'headers={"Idempotency-Key": key_or_new(idempotency_key)}'
    if one.waits:
        yield 'headers={"Prefer": waiting(wait_seconds)}'
    if not one.repeatable:
        yield "repeatable=False"
    if one.revalidated:
        yield "revalidated=True"


def _qualified(kind: str) -> str:
    """A type as `resources` names it."""
    head, bracket, rest = kind.partition("[")
    if bracket:
        inner = rest.removesuffix("]")
        return f"{head}[{inner if head == 'Literal' else _qualified(inner)}]"
    return kind if kind in {"str", "bytes", "int", "bool", "float", "Time"} else f"types.{kind}"


def _method_doc(one: Operation, fields: Mapping[str, Any]) -> str:
    said = [f"{one.summary}."]
    paragraphs = one.description.split("\n\n")
    if paragraphs[0].rstrip(".").casefold() != one.summary.casefold():
        said.append(paragraphs[0])
    said += paragraphs[1:]
    described = {name: description_of(schema) for name, schema in fields.items()}
    if one.waits:
        described["wait_seconds"] = "How long to wait for sealing, at most 10."
    lines = [
        textwrap.fill(
            f"- `{name}`: {' '.join(text.split())}",
            _WIDTH - 8,
            subsequent_indent="  ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        for name, text in described.items()
        if text
    ]
    return _doc("\n\n".join([*said, *(["\n".join(lines)] if lines else [])]), 4, _WIDTH - 4)


def _doc(text: str, indent: int, width: int = _WIDTH) -> str:
    """A docstring of these paragraphs; nothing for no text. Lists are wrapped already."""
    if not text:
        return ""
    space = " " * indent
    paragraphs = [
        paragraph
        if paragraph.startswith("- ")
        else textwrap.fill(
            " ".join(paragraph.split()),
            width - indent - 3,
            break_on_hyphens=False,
            break_long_words=False,
        )
        for paragraph in text.replace("\\", "\\\\").split("\n\n")
    ]
    if (
        len(paragraphs) == 1
        and "\n" not in paragraphs[0]
        and len(paragraphs[0]) <= width - indent - 6
    ):
        return f'{space}"""{paragraphs[0]}"""\n'
    body = textwrap.indent('"""' + "\n\n".join(paragraphs) + '\n"""', space)
    return f"{body}\n"


def _quoted(word: str) -> str:
    return f'"{word}"'
