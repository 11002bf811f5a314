"""Reads Onfido's document report: which tasks hold one, whether it is clear, who the person is.

A workflow run of Studio does its document report in a task `document_check…`, whose output is the
report: `result`, `sub_result`, `uuid`, `properties`, `breakdown`. Where the properties are missing,
`GET /reports/{uuid}` has them. Shapes: onfido-openapi-spec, `task`, `document_report`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import Address, Check, Document, Source, Tri
from countersign.identity.reading import (
    Unreadable,
    facts_unknown,
    instant,
    iso_date,
    mapping,
    read_object,
    sequence,
    text,
)

_DOCUMENT_TASK: Final = "document_check"
"""How the definition of a task with a document report begins, in each of its variants."""
_TASK_ID: Final = re.compile(r"[0-9a-z_-]{1,128}")
_REPORT_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CLEAR: Final = "clear"
_RESULTS: Final[Mapping[str, Tri]] = {
    "clear": Tri.PASS,
    "consider": Tri.FAIL,
    "unidentified": Tri.UNKNOWN,
}
_BREAKDOWN: Final = (
    "age_validation",
    "compromised_document",
    "data_comparison",
    "data_consistency",
    "data_validation",
    "image_integrity",
    "issuing_authority",
    "police_record",
    "visual_authenticity",
)
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report:
    """A document report. Its repr shows nothing."""

    report_id: str | None
    is_clear: bool
    properties: Mapping[str, Any]
    checks: tuple[Check, ...]
    completed_at: datetime | None = None
    """When the task had come to it; a run's `updated_at` moves with every later change."""


def document_task_ids(body: bytes, run_id: str) -> list[str]:
    """The tasks of a run that hold a document report, the newest first.

    Raises:
        Unreadable: this is not a list of tasks of this run.
    """
    # The answer is a list; the reader, which bounds everything, reads objects.
    tasks = read_object(b'{"tasks":' + body + b"}").get("tasks")
    found: list[tuple[datetime, str]] = []
    for item in sequence(tasks, "tasks"):
        task = mapping(item, "task")
        if not (text(task.get("task_def_id"), "task_def_id") or "").startswith(_DOCUMENT_TASK):
            continue
        task_id = text(task.get("id"), "id") or ""
        if _TASK_ID.fullmatch(task_id) is None or task.get("workflow_run_id") != run_id:
            raise Unreadable("task")
        found.append((instant(task.get("created_at"), "created_at") or _EARLIEST, task_id))
    return [task_id for _, task_id in sorted(found, reverse=True)]


def read_task(body: bytes, run_id: str, task_id: str) -> Report:
    """The report that a task made; one that is not clear if the task has made none yet.

    Raises:
        Unreadable: this is not that task.
    """
    task = read_object(body)
    if task.get("id") != task_id or task.get("workflow_run_id") != run_id:
        raise Unreadable("task")
    output = mapping(task.get("output"), "output")
    report = _report(output, text(output.get("uuid"), "uuid"))
    with facts_unknown():
        return replace(report, completed_at=instant(task.get("updated_at"), "updated_at"))


def read_report(body: bytes, report_id: str, task: Report) -> Report:
    """The report itself, of which the task told without its properties.

    Raises:
        Unreadable: this is not that report.
    """
    report = read_object(body)
    name = text(report.get("name"), "name") or ""
    if report.get("id") != report_id or not name.startswith("document"):
        raise Unreadable("report")
    return replace(_report(report, report_id), completed_at=task.completed_at)


def _report(report: Mapping[str, Any], report_id: str | None) -> Report:
    if report_id is not None and _REPORT_ID.fullmatch(report_id) is None:
        raise Unreadable("uuid")
    result = text(report.get("result"), "result")
    sub_result = text(report.get("sub_result"), "sub_result")
    status = text(report.get("status"), "status")
    found = [("document", result)]
    with facts_unknown():
        breakdown = mapping(report.get("breakdown"), "breakdown")
        for name in _BREAKDOWN:
            part = mapping(breakdown.get(name), f"breakdown.{name}")
            found.append((f"document.{name}", text(part.get("result"), f"breakdown.{name}")))
    return Report(
        report_id=report_id,
        is_clear=result == _CLEAR and sub_result in {None, _CLEAR} and status == "complete",
        properties=mapping(report.get("properties"), "properties"),
        checks=tuple(
            Check(name=name, verdict=_RESULTS[raw], raw=raw)
            for name, raw in found
            if raw is not None and raw in _RESULTS
        ),
    )


def document_of(properties: Mapping[str, Any]) -> Document:
    """The document; its country is a code of three letters."""
    return Document(
        type=text(properties.get("document_type"), "document_type"),
        issuing_country=text(properties.get("issuing_country"), "issuing_country"),
        issuing_region=text(properties.get("issuing_state"), "issuing_state"),
        expires_on=iso_date(properties.get("date_of_expiry"), "date_of_expiry"),
    )


def address_of(properties: Mapping[str, Any]) -> Address | None:
    """The address on the document; `address`, the same in one line, is not taken apart here."""
    lines = mapping(properties.get("address_lines"), "address_lines")
    if not lines:
        return None
    country = text(lines.get("country_code"), "country_code")
    return Address(
        source=Source.DOCUMENT,
        line1=text(lines.get("street_address"), "street_address"),
        city=text(lines.get("city"), "city"),
        region=text(lines.get("state"), "state"),
        postal_code=text(lines.get("postal_code"), "postal_code"),
        country=country or text(lines.get("country"), "country"),
    )


def fingerprint_of(properties: Mapping[str, Any], fingerprint: Fingerprint) -> bytes | None:
    """The document's keyed hash; None if what is known of it tells nobody apart."""
    kind = text(properties.get("document_type"), "document_type")
    country = text(properties.get("issuing_country"), "issuing_country")
    region = text(properties.get("issuing_state"), "issuing_state")
    number = None
    for item in sequence(properties.get("document_numbers"), "document_numbers"):
        entry = mapping(item, "document_numbers")
        if text(entry.get("type"), "document_numbers.type") == "document_number":
            number = number or text(entry.get("value"), "document_numbers.value")
    return fingerprint(country, region, kind, number)
