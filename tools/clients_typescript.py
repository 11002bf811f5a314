"""The generated modules of clients/typescript."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tools.clients import (
    RESOURCES,
    Document,
    Operation,
    class_of,
    description_of,
    name_of,
    without_null,
)

_PACKAGE: Final = "clients/typescript/src"
_WIDTH: Final = 100
_PLAIN: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
}
_NOTE: Final = "// Written by `make clients` from spec/openapi.json: do not edit."


def files(document: Document) -> dict[str, str]:
    """The modules by path."""
    return {
        f"{_PACKAGE}/types.ts": _types(document),
        f"{_PACKAGE}/errors.ts": _errors(document),
        f"{_PACKAGE}/resources.ts": _resources(document),
    }


def _errors(document: Document) -> str:
    errors = document.errors()
    classes = "\n\n".join(
        f"{_doc(text, 0)}export class {class_of(code)} extends CountersignError {{}}"
        for code, text in errors.items()
    )
    table = "\n".join(f"  {code}: {class_of(code)}," for code in errors)
    return f"""{_NOTE}

import {{ CountersignError }} from "./failure.js";

{classes}

/** The class of each code. */
export const BY_CODE: Record<string, typeof CountersignError> = {{
{table}
}};
"""


def _types(document: Document) -> str:
    roots = {one.body for one in document.operations if one.body}
    roots |= {one.item or one.returns for one in document.operations} & set(document.schemas)
    queries = [schema for one in document.operations for schema in one.query.values()]
    roots |= {name_of(schema) for schema in queries if "$ref" in schema}
    bodies = document.reachable({one.body for one in document.operations if one.body})
    parts = [
        _words(name, schema) if "enum" in schema else _interface(document, name, name in bodies)
        for name in document.reachable(roots)
        for schema in [document.schemas[name]]
    ]
    body = "\n\n".join(parts)
    return f"""{_NOTE}
// Fields are called what they are called on the wire; times are RFC 3339 texts in UTC.

/** One of these words, or one of a later release. */
export type Open<Word extends string> = Word | (string & {{}});

/** One page of a list; `next_cursor` is null on the last one. */
export interface Page<Item> {{
  data: Item[];
  next_cursor: string | null;
}}

{body}
"""


def _words(name: str, schema: Mapping[str, Any]) -> str:
    words = "".join(f"\n  | {_quoted(word)}" for word in schema["enum"])
    return f"{_doc(schema.get('description', ''), 0)}export type {name} = Open<{words}\n>;"


def _interface(document: Document, name: str, is_body: bool) -> str:  # noqa: FBT001 - of two kinds
    schema = document.schemas[name]
    lines = []
    for field, definition in schema.get("properties", {}).items():
        optional = field not in schema.get("required", [])
        kind = _kind(definition)
        # An optional member may also be undefined, so callers need no condition.
        kind += " | undefined" if optional and is_body else ""
        lines.append(
            f"{_doc(description_of(definition), 2)}  {field}{'?' if optional else ''}: {kind};"
        )
    body = "\n".join(lines)
    described = _doc(schema["description"], 0)
    return (
        f"{described}export interface {name} {{\n{body}\n}}"
        if body
        else (f"{described}export type {name} = Record<string, never>;")
    )


def _kind(schema: Mapping[str, Any], place: str = "") -> str:
    """The type of a value; `place` is where a module finds the types."""
    inner, nullable = without_null(schema)
    if "$ref" in inner:
        kind = place + name_of(inner)
    elif "anyOf" in inner and "type" not in inner:
        kind = " | ".join(_kind(one, place) for one in inner["anyOf"])
    elif "enum" in inner:
        kind = f"{place}Open<{' | '.join(map(_quoted, inner['enum']))}>"
    elif "type" not in inner:
        kind = "unknown"  # any JSON: its keys are data
    elif inner["type"] == "array":
        item = _kind(inner["items"], place)
        kind = f"Array<{item}>" if " " in item else f"{item}[]"
    elif inner["type"] == "object":
        more = inner.get("additionalProperties")
        kind = f"Record<string, {_kind(more, place) if more else 'unknown'}>"
    else:
        kind = _PLAIN[inner["type"]]
    return f"{kind} | null" if nullable else kind


def _resources(document: Document) -> str:
    classes = "\n\n".join(_resource(document, name) for name in RESOURCES)
    holders = "\n".join(
        f"{_doc(said, 2)}  readonly {_camel(name)}: {class_of(name)};"
        for name, said in RESOURCES.items()
    )
    made = "\n".join(
        f"    this.{_camel(name)} = new {class_of(name)}(sender);" for name in RESOURCES
    )
    return f"""{_NOTE}

import {{ type CallOptions, Listing, Resource, type Sender, segment }} from "./call.js";
import type * as types from "./types.js";

{classes}

/** All operations, by what they are about. */
export class Resources {{
{holders}

  constructor(sender: Sender) {{
{made}
  }}
}}
"""


def _resource(document: Document, name: str) -> str:
    methods = "\n\n".join(_method(document, one) for one in document.of(name))
    head = f"/** {RESOURCES[name]} */\nexport class {class_of(name)} extends Resource {{"
    return f"{head}\n{methods}\n}}"


def _method(document: Document, one: Operation) -> str:
    arguments = [f"{name}: string" for name in one.path_parameters]
    if one.body:
        optional = not document.schemas[one.body]["required"]
        arguments.append(f"params: types.{one.body}{' = {}' if optional else ''}")
    elif one.query:
        arguments.append(f"query: {_query(one)} = {{}}")
    arguments.append("options: CallOptions = {}")
    kind = {"str": "string", "bytes": "Uint8Array"}.get(one.returns, f"types.{one.returns}")
    call = "\n".join(f"      {part}," for part in _described(one))
    if one.item:
        kind = f"types.{one.item}"
        returned, act = f"Listing<{kind}>", f"new Listing<{kind}>(this.sender, "
    else:
        returned, act = f"Promise<{kind}>", f"this.sender.send<{kind}>("
    return (
        f"{_method_doc(one)}  {_camel(one.name)}(\n"
        + "".join(f"    {argument},\n" for argument in arguments)
        + f"  ): {returned} {{\n    return {act}{{\n{call}\n    }}, options);\n  }}"
    )


def _query(one: Operation) -> str:
    fields = "".join(
        f"{_doc(description_of(schema), 6)}      {field}?: {_kind(schema, 'types.')} | undefined;\n"
        for field, schema in one.query.items()
    )
    return f"{{\n{fields}    }}"


def _described(one: Operation) -> Iterator[str]:
    path = one.path
    for name in one.path_parameters:
        path = path.replace(f"{{{name}}}", f"${{segment({name})}}")
    yield f'method: "{one.method}"'
    yield f"path: `{path}`" if one.path_parameters else f'path: "{path}"'
    if one.body:
        yield "body: params"
    elif one.query:
        yield "query"
    if one.returns in {"str", "bytes"}:
        yield f'returns: "{ {"str": "text", "bytes": "bytes"}[one.returns] }"'
    if one.keyed:
        yield "keyed: true"
    if one.repeatable:
        yield "repeatable: true"
    if one.revalidated:
        yield "revalidated: true"


def _method_doc(one: Operation) -> str:
    said = [f"{one.summary}."]
    paragraphs = one.description.split("\n\n")
    if paragraphs[0].rstrip(".").casefold() != one.summary.casefold():
        said.append(paragraphs[0])
    said += paragraphs[1:]
    if one.waits:
        said.append("With `options.waitSeconds` it waits for sealing, at most 10 seconds.")
    return _doc("\n\n".join(said), 2)


def _doc(text: str, indent: int) -> str:
    """A comment for the next item; empty without text."""
    if not text:
        return ""
    space = " " * indent
    paragraphs = [
        textwrap.fill(
            " ".join(paragraph.split()),
            _WIDTH - indent - 3,
            break_on_hyphens=False,
            break_long_words=False,
        )
        for paragraph in text.replace("*/", "* /").split("\n\n")
    ]
    if len(paragraphs) == 1 and len(paragraphs[0]) <= _WIDTH - indent - 7:
        return f"{space}/** {paragraphs[0]} */\n"
    lines = "\n\n".join(paragraphs).split("\n")
    body = "\n".join(f"{space} * {line}".rstrip() for line in lines)
    return f"{space}/**\n{body}\n{space} */\n"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _quoted(word: str) -> str:
    return f'"{word}"'
