"""Reading a notice file: TOML, content only, one file per version."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from importlib import resources
from typing import Any, Final

import msgspec

from countersign.errors import InvalidNoticeFile
from countersign.evidence.canonical import checked_canonical_json
from countersign.evidence.errors import EvidenceError
from countersign.notices.model import Bullet, NoticeContent
from countersign.notices.visible_text import is_blank

_ID: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
NOTICE_BYTES_MAX: Final = 1024 * 1024
BULLETS_MAX: Final = 200
"""Initials for more lines would not fit into a request."""
_RETENTION_YEARS_MAX: Final = 100
_WORDED: Final = (
    "title",
    "heading",
    "attestation_text",
    "source_law",
    "source_bill",
    "jurisdiction",
    "language",
    "source_url",
)


def parse_notice_file(data: bytes) -> NoticeContent:
    """The content of a notice file.

    Raises:
        InvalidNoticeFile: with every mistake that was found, one a line.
    """
    try:
        table = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        msg = "The notice file is not UTF-8."
        raise InvalidNoticeFile(msg) from error
    except (ValueError, RecursionError) as error:
        msg = f"The notice file is not valid TOML: {error}"
        raise InvalidNoticeFile(msg) from error
    effective = table.get("effective_from")
    if isinstance(effective, date) and not isinstance(effective, datetime):
        table["effective_from"] = effective.isoformat()
    mistakes = _missing_or_unknown(table)
    values = _values(table, mistakes)
    mistakes += _content_mistakes(values)
    if mistakes:
        raise InvalidNoticeFile("\n".join(mistakes))
    return NoticeContent(**values)


def shipped_notice_files() -> dict[str, bytes]:
    """The notice files of this release by name, in order."""
    folder = resources.files(__package__)
    files = [f for f in folder.iterdir() if f.name.endswith(".toml")]
    return {f.name: f.read_bytes() for f in sorted(files, key=lambda f: f.name)}


def _missing_or_unknown(table: dict[str, Any]) -> list[str]:
    fields = msgspec.structs.fields(NoticeContent)
    required = [f.name for f in fields if f.required]
    names = {f.name for f in fields}
    return [f"{name}: missing" for name in required if name not in table] + [
        f"{name}: unknown" for name in table if name not in names
    ]


def _values(table: dict[str, Any], mistakes: list[str]) -> dict[str, Any]:
    """The members of the right type by name; what is wrong with the others goes into `mistakes`."""
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(NoticeContent):
        if field.name not in table:
            continue
        given = table[field.name]
        try:
            checked_canonical_json({field.name: given})
            values[field.name] = msgspec.convert(given, field.type)
        except EvidenceError as error:
            mistakes.append(str(error).removeprefix("$."))
        except msgspec.ValidationError as error:
            lines = given if field.name == "bullets" and isinstance(given, list) else ()
            mistakes += _line_mistakes(lines) or [f"{field.name}: {error}"]
    return values


def _is_day(text: str) -> bool:
    try:
        return text == date.fromisoformat(text).isoformat()
    except ValueError:
        return False


_FORMS: Final[tuple[tuple[str, Callable[[str], object], str], ...]] = (
    ("id", _ID.match, "lower-case letters, digits, - and _ only, at most 64"),
    ("version", _VERSION.match, "letters, digits, '.', - and _ only, at most 64"),
    ("effective_from", _is_day, "not a date such as 2026-01-01"),
)


def _line_mistakes(lines: Iterable[object]) -> list[str]:
    found = []
    for number, line in enumerate(lines, 1):
        try:
            msgspec.convert(line, Bullet)
        except msgspec.ValidationError as error:
            found.append(f"bullets: line {number}: {error}")
    return found


def _content_mistakes(values: Mapping[str, Any]) -> list[str]:
    mistakes = [f"{n}: empty" for n in _WORDED if n in values and is_blank(values[n])]
    mistakes += [
        f"{name}: {form}"
        for name, is_right, form in _FORMS
        if name in values and not is_right(values[name])
    ]
    if "bullets" in values:
        mistakes += _bullet_mistakes(values["bullets"])
    years = values.get("retention_years")
    if years is not None and not 1 <= years <= _RETENTION_YEARS_MAX:
        mistakes.append(f"retention_years: 1 to {_RETENTION_YEARS_MAX}")
    names = {f.name for f in msgspec.structs.fields(NoticeContent)}
    return mistakes + [
        f"editorial: unknown field {n!r}" for n in values.get("editorial", ()) if n not in names
    ]


def _bullet_mistakes(bullets: Sequence[Bullet]) -> list[str]:
    if not 0 < len(bullets) <= BULLETS_MAX:
        return [f"bullets: 1 to {BULLETS_MAX} lines are needed"]
    mistakes = []
    for bullet in bullets:
        if not _VERSION.match(bullet.id):
            mistakes.append(f"bullets: not a valid id: {bullet.id!r}")
        if is_blank(bullet.text):
            mistakes.append(f"bullets: the text of {bullet.id!r} is empty")
    ids = [bullet.id for bullet in bullets]
    return mistakes + [f"bullets: duplicate id {i!r}" for i in sorted(set(ids)) if ids.count(i) > 1]
