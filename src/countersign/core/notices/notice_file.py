"""A notice's content: its rules, and reading it from its TOML file.

One file per version. The file is for operators: over the API the same members come as JSON, since
`tomllib` needs a time that grows with the square of the dots in a key.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from importlib import resources
from typing import Any, Final

import msgspec

from countersign.base.errors import InvalidNoticeFile
from countersign.core.notices.model import Bullet, NoticeContent, is_blank
from countersign.core.notices.rule import STATES, AppliesTo, RequiredCheck
from countersign_evidence.canonical import checked_canonical_json
from countersign_evidence.errors import EvidenceError

_ID: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
NOTICE_BYTES_MAX: Final = 1024 * 1024
BULLETS_MAX: Final = 200
"""Initials for more lines would not fit into a request."""
_RETENTION_YEARS_MAX: Final = 100
_DOTS_MAX: Final = 500
"""Outside of texts and comments. The dots in keys such as `[applies_to]` are few; a key with 60,000
keeps `tomllib` busy for eleven seconds, one with 500 for two milliseconds."""
_TEXTS: Final = re.compile(
    r'''"""(?:[^\\]|\\.)*?(?:"{3,5}|\\?\Z)|'{3}.*?(?:'{3,5}|\Z)'''
    r"""|"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?|#[^\n]*""",
    re.DOTALL,
)
"""Texts and comments as TOML 1.0 has them. An unterminated text extends to the end of the line or
file, so that nothing is scanned twice."""
_FIELDS: Final = {field.name: field for field in msgspec.structs.fields(NoticeContent)}


def parse_notice_file(data: bytes) -> NoticeContent:
    """The content of a notice file.

    Raises:
        InvalidNoticeFile: with every mistake that was found, one a line.
    """
    try:
        text = data.decode().replace("\r\n", "\n")
        if _TEXTS.sub("", text).count(".") > _DOTS_MAX:
            raise InvalidNoticeFile(f"The notice file has more than {_DOTS_MAX} dots in its keys.")
        table = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise InvalidNoticeFile("The notice file is not UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidNoticeFile(f"The notice file is not valid TOML: {error}") from error
    effective = table.get("effective_from")
    if isinstance(effective, date) and not isinstance(effective, datetime):
        table["effective_from"] = effective.isoformat()
    return content_of(table)


def content_of(table: dict[str, Any]) -> NoticeContent:
    """The content with these members.

    Raises:
        InvalidNoticeFile: with every mistake that was found, one a line.
    """
    values, mistakes = _values(table)
    mistakes += _content_mistakes(values)
    if mistakes:
        raise InvalidNoticeFile("\n".join(mistakes))
    return NoticeContent(**values)


def shipped_notice_files() -> dict[str, bytes]:
    """The notice files of this release by name, in order."""
    folder = resources.files(__package__)
    files = [f for f in folder.iterdir() if f.name.endswith(".toml")]
    return {f.name: f.read_bytes() for f in sorted(files, key=lambda f: f.name)}


def _values(table: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The members of the right type by name, and the errors of the others."""
    values: dict[str, Any] = {}
    mistakes = [
        f"{name}: missing"
        for name, field in _FIELDS.items()
        if field.required and name not in table
    ]
    mistakes += [f"{name}: unknown" for name in table if name not in _FIELDS]
    for name, field in _FIELDS.items():
        if name not in table:
            continue
        given = table[name]
        try:
            checked_canonical_json({name: given})
            values[name] = msgspec.convert(given, field.type)
        except EvidenceError as error:
            mistakes.append(str(error).removeprefix("$."))
        except msgspec.ValidationError as error:
            lines = given if name == "bullets" and isinstance(given, list) else ()
            mistakes += _line_mistakes(lines) or [f"{name}: {error}"]
    return values, mistakes


def _is_day(text: str) -> bool:
    with suppress(ValueError):
        return text == date.fromisoformat(text).isoformat()
    return False


_FORMS: Final[dict[str, tuple[Callable[[str], object], str]]] = {
    "id": (_ID.match, "lower-case letters, digits, - and _ only, at most 64"),
    "version": (_VERSION.match, "letters, digits, '.', - and _ only, at most 64"),
    "effective_from": (_is_day, "not a date such as 2026-01-01"),
}


def _line_mistakes(lines: Iterable[object]) -> list[str]:
    found = []
    for number, line in enumerate(lines, 1):
        try:
            msgspec.convert(line, Bullet)
        except msgspec.ValidationError as error:
            found.append(f"bullets: line {number}: {error}")
    return found


def _content_mistakes(values: Mapping[str, Any]) -> list[str]:
    mistakes = []
    for name, value in values.items():
        is_right, form = _FORMS.get(name, (lambda text: not is_blank(text), "empty"))
        if _FIELDS[name].type is str and not is_right(value):
            mistakes.append(f"{name}: {form}")
    if "bullets" in values:
        mistakes += _bullet_mistakes(values["bullets"])
    years = values.get("retention_years")
    if years is not None and not 1 <= years <= _RETENTION_YEARS_MAX:
        mistakes.append(f"retention_years: 1 to {_RETENTION_YEARS_MAX}")
    if values.get("applies_to") is not None:
        mistakes += _rule_mistakes(values["applies_to"])
    unknown = [name for name in values.get("editorial", ()) if name not in _FIELDS]
    return mistakes + [f"editorial: unknown field {name!r}" for name in unknown]


def _rule_mistakes(rule: AppliesTo) -> list[str]:
    states = sorted({*rule.delivered_to, *rule.residents_of} - STATES)
    mistakes = [f"applies_to: not the code of a state: {state!r}" for state in states]
    if (RequiredCheck.AGE in rule.identity_checks) is (rule.minimum_age is None):
        mistakes.append("applies_to: minimum_age belongs to the identity check 'age'")
    if is_blank(rule.source):
        mistakes.append("applies_to: source is empty")
    kinds = [one.kind for one in rule.exemptions or ()]
    twice = sorted({kind for kind in kinds if kinds.count(kind) > 1})
    mistakes += [f"applies_to: duplicate exemption {kind!r}" for kind in twice]
    bare = [one.kind for one in rule.exemptions or () if is_blank(one.source)]
    mistakes += [f"applies_to: the source of exemption {kind!r} is empty" for kind in bare]
    return mistakes


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
