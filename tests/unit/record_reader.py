"""A reader of evidence, written from spec/evidence-format.md with the standard library alone.

It shares nothing with the service, so that the two can disagree.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any


def findings(
    *, record: bytes, record_sha256_hex: str, disclosures: Sequence[str], notice: bytes
) -> list[str]:
    """Errors in this evidence by section 6 of the format, sorted; empty: []."""
    found = set()
    if sha256(record).hexdigest() != record_sha256_hex:
        found.add("record_digest_mismatch")
    members = json.loads(record)
    if sha256(notice).hexdigest() != members["notice_digest"]:
        found.add("notice_digest_mismatch")
    shown = [
        {"id": bullet["id"], "digest": sha256(bullet["text"].encode()).hexdigest()}
        for bullet in json.loads(notice)["bullets"]
    ]
    if shown != members["bullets"]:
        found.add("bullet_digest_mismatch")
    if any(digest_of(disclosure) not in members["_sd"] for disclosure in disclosures):
        found.add("disclosure_not_bound")
    names = [disclosed(disclosure)[1] for disclosure in disclosures]
    if len(set(names)) != len(names):
        found.add("disclosure_repeated")
    if "disclosure_not_bound" not in found:
        values = {name: value for _, name, value in map(disclosed, disclosures)}
        found |= set(_of_values(values, len(members["bullets"])))
    return sorted(found)


def _of_values(values: dict[str, Any], lines: int) -> Iterator[str]:
    """Errors in disclosed values that the record binds."""
    for text in values.get("initials_per_line", ()):
        if is_blank(text):
            yield "initials_blank"
        if len(text) > 32:
            yield "initials_too_long"
    if "process" in values and not is_process(values["process"]):
        yield "process_malformed"
    elif "process" in values and len(values["process"]["lines"]) != lines:
        yield "process_lines_mismatch"


def is_blank(text: str) -> bool:
    """Whether all code points are in the list that section 6 names."""
    ranges = [[int(end, 16) for end in one.split("-")] for one in BLANK.read_text().split()]
    return all(any(r[0] <= ord(c) <= r[-1] for r in ranges) for c in text)


BLANK = Path(__file__).parents[2] / "spec" / "vectors" / "record" / "blank.txt"


def is_process(value: Any) -> bool:  # noqa: ANN401 - any JSON
    """Whether a value has the form of the table of `process` in section 5."""
    if not _has(value, PROCESS):
        return False
    parts = [(line, LINE) for line in value["lines"]]
    # A member that may be missing.
    parts += [
        (line, METHOD) for line in value["lines"] if isinstance(line, dict) and "method" in line
    ]
    parts += [(claim, CLAIM) for claim in value["claimed"]]
    parts += [] if value["viewport"] is None else [(value["viewport"], VIEWPORT)]
    return all(_has(part, forms) for part, forms in parts)


def _has(value: Any, forms: dict[str, str]) -> bool:  # noqa: ANN401 - any JSON
    return isinstance(value, dict) and all(
        name in value and _form(value[name]) & set(form.split()) for name, form in forms.items()
    )


def _form(value: object) -> set[str]:
    if isinstance(value, str):
        return {"string", "time"} if is_time(value) else {"string"}
    if type(value) is int:
        return {"count"} if value >= 0 else set()
    names = {type(None): "null", bool: "boolean", list: "array", dict: "object"}
    return {names[type(value)]}


def is_time(text: str) -> bool:
    """Whether a text has the form of a time, and a calendar and a clock have it."""
    if re.fullmatch(TIME, text) is None:
        return False
    year, month, day, hour, minute, second = map(int, re.findall("[0-9]+", text)[:6])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = [31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    in_calendar = year >= 1 and 1 <= month <= 12 and 1 <= day <= days[month - 1]
    return in_calendar and hour < 24 and minute < 60 and second < 60


TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"
PROCESS = {
    "checkout_session": "string",
    "surface": "string",
    "origin": "string null",
    "rendered_digest": "string null",
    "locale": "string",
    "opened_at": "time",
    "lines": "array",
    "reviewed_at": "time null",
    "agreement": "string",
    "consent": "string",
    "script": "boolean null",
    "viewport": "object null",
    "binding": "string",
    "verification": "string null",
    "claimed": "array",
}
METHOD = {"method": "string"}
LINE = {"shown_at": "time", "initialed_at": "time", "changed_at": "time null", "changes": "count"}
VIEWPORT = {"width": "count", "height": "count"}
CLAIM = {"line": "count null", "event": "string", "at": "time"}


def digest_of(disclosure: str) -> str:
    """The member of `_sd` that binds this disclosure (RFC 9901 §4.2.3)."""
    return unpadded(sha256(disclosure.encode("ascii")).digest())


def disclosed(disclosure: str) -> list[Any]:
    """Salt, name and value."""
    content: list[Any] = json.loads(urlsafe_b64decode(disclosure + "=" * (-len(disclosure) % 4)))
    return content


def unpadded(data: bytes) -> str:
    """base64url without padding (RFC 4648 §5)."""
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
