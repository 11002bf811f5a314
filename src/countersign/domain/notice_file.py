"""Reading a notice file: TOML, content only, one file per version."""

import re
import tomllib
from datetime import date, datetime, time
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from countersign.domain.initials import is_blank
from countersign.domain.notice import NoticeContent
from countersign.errors import InvalidNoticeFile
from countersign.evidence.canonical import EvidenceError, checked_canonical_json

_ID: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
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
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        msg = f"The notice file is not valid TOML: {error}"
        raise InvalidNoticeFile(msg) from error
    effective = table.get("effective_from")
    if isinstance(effective, date) and not isinstance(effective, datetime):
        table["effective_from"] = effective.isoformat()
    mistakes = _missing_or_unknown(table)
    try:
        checked_canonical_json(table)
        content = msgspec.convert(table, NoticeContent)
    except (EvidenceError, msgspec.ValidationError) as error:
        raise InvalidNoticeFile("\n".join(mistakes or [str(error)])) from error
    mistakes += _content_mistakes(content)
    if mistakes:
        raise InvalidNoticeFile("\n".join(mistakes))
    return content


def effective_at(content: NoticeContent, zone: ZoneInfo) -> datetime:
    """The start of the day `effective_from` in this zone."""
    return datetime.combine(date.fromisoformat(content.effective_from), time(), zone)


def _missing_or_unknown(table: dict[str, Any]) -> list[str]:
    fields = msgspec.structs.fields(NoticeContent)
    required = [f.name for f in fields if f.required]
    names = {f.name for f in fields}
    return [f"{name}: missing" for name in required if name not in table] + [
        f"{name}: unknown" for name in table if name not in names
    ]


def _content_mistakes(content: NoticeContent) -> list[str]:
    mistakes = [f"{name}: empty" for name in _WORDED if is_blank(getattr(content, name))]
    if not _ID.match(content.id):
        mistakes.append("id: lower-case letters, digits, - and _ only, at most 64")
    if not _VERSION.match(content.version):
        mistakes.append("version: letters, digits, '.', - and _ only, at most 64")
    try:
        if content.effective_from != date.fromisoformat(content.effective_from).isoformat():
            raise ValueError
    except ValueError:
        mistakes.append("effective_from: not a date such as 2026-01-01")
    if not content.bullets:
        mistakes.append("bullets: at least one line is needed")
    ids = [bullet.id for bullet in content.bullets]
    for bullet in content.bullets:
        if not _VERSION.match(bullet.id):
            mistakes.append(f"bullets: not a valid id: {bullet.id!r}")
        if is_blank(bullet.text):
            mistakes.append(f"bullets: the text of {bullet.id!r} is empty")
    mistakes += [f"bullets: {i!r} is there twice" for i in sorted(set(ids)) if ids.count(i) > 1]
    years = content.retention_years
    if years is not None and not 1 <= years <= _RETENTION_YEARS_MAX:
        mistakes.append(f"retention_years: 1 to {_RETENTION_YEARS_MAX}")
    names = {f.name for f in msgspec.structs.fields(NoticeContent)}
    mistakes += [
        f"editorial: no field is called {n!r}" for n in content.editorial if n not in names
    ]
    return mistakes
