"""What a session of the simulated Onfido is made of: a run, its tasks, and their reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from countersign.simulators.document_people import Person, merged

APPLICANT: Final = "a9911ca0-0000-4000-8000-000000000001"
WORKFLOW: Final = "f10f10f1-0000-4000-8000-000000000001"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A document check, and how its report differs from a clear one."""

    person: Person
    changes: Mapping[str, Any] = field(default_factory=dict)
    only_in_report: bool = False
    """The task's output has no properties: they are to be had at `/reports/{uuid}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One run: what it plays, and how its answer differs from a plain approval."""

    number: int
    plays: str
    shipping_zip: str = "95501"
    subject: str
    """What the buyer's server would send as `subject_reference`."""
    shown: Sequence[Shown] = ()
    """Document checks, in the order in which they were made."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Members that replace those of a plain approval."""
    personal: tuple[str, ...] = ()
    """Personal strings that are in the answers besides those of the persons."""
    trouble: str | None = None
    """What goes wrong on the way, see `onfido.py`."""
    environment: str = "live"

    @property
    def session_id(self) -> str:
        """A UUID that ends in the part's number."""
        return f"0f1d0000-0000-4000-8000-{self.number:012d}"

    def run(self, started: float) -> dict[str, Any]:
        """The answer to `/workflow_runs/{id}`."""
        plain = {
            "id": self.session_id,
            "applicant_id": APPLICANT,
            "workflow_id": WORKFLOW,
            "workflow_version_id": 7,
            "status": "approved",
            "dashboard_url": f"https://dashboard.onfido.example/results/{self.session_id}",
            "output": {},
            "reasons": [],
            "tags": [],
            "customer_user_id": self.subject,
            "created_at": stamp(started - 600),
            "updated_at": stamp(started - 300),
        }
        return merged(plain, self.changes)

    def tasks(self, started: float) -> list[dict[str, Any]]:
        """The answer to `/workflow_runs/{id}/tasks`: no inputs and outputs in the list."""
        others = [self._item(f"{name}_{10 + i}", name, started) for i, name in enumerate(_OTHERS)]
        documents = [
            self._item(self.task_id(index), "document_check", started + index)
            for index in range(len(self.shown))
        ]
        return [*others, *documents]

    def task(self, task_id: str, started: float) -> dict[str, Any] | None:
        """The answer to `/workflow_runs/{id}/tasks/{task_id}`."""
        known = {item["id"]: item for item in self.tasks(started)}
        if task_id not in known:
            return None
        output: Any = None
        for index, shown in enumerate(self.shown):
            if task_id == self.task_id(index):
                output = report(shown)
                output["uuid"] = self.report_id(index)
                if shown.only_in_report:
                    del output["properties"]
        return {**known[task_id], "input": {}, "output": output}

    def report(self, report_id: str, started: float) -> dict[str, Any] | None:
        """The answer to `/reports/{id}`."""
        for index, shown in enumerate(self.shown):
            if report_id == self.report_id(index):
                return {
                    "id": report_id,
                    "created_at": stamp(started - 400),
                    "href": f"/v3.6/reports/{report_id}",
                    "name": "document",
                    "documents": [],
                    **report(shown),
                }
        return None

    def task_id(self, index: int) -> str:
        """The identifier of a document check."""
        return f"document_check_{self.number:03d}{index}"

    def report_id(self, index: int) -> str:
        """The identifier of the report of a document check."""
        return f"0f1d4e90-000{index}-4000-8000-{self.number:012d}"

    def _item(self, task_id: str, definition: str, created: float) -> dict[str, Any]:
        return {
            "id": task_id,
            "workflow_run_id": self.session_id,
            "task_def_id": definition,
            "task_def_version": None,
            "created_at": stamp(created - 500),
            "updated_at": stamp(created - 400),
        }


_OTHERS: Final = ("profile_data", "document_photo", "face_photo", "face_check")


def report(shown: Shown) -> dict[str, Any]:
    """A document report, as a task's output has it, without its identifier."""
    person = shown.person
    clear = {"result": "clear", "breakdown": {}}
    plain = {
        "status": "complete",
        "result": "clear",
        "sub_result": "clear",
        "properties": {
            "date_of_birth": person.born,
            "date_of_expiry": "2199-12-31",
            "document_numbers": [{"type": "document_number", "value": person.number}],
            "document_type": "driving_licence",
            "first_name": person.first,
            "last_name": person.last,
            "issuing_country": person.country,
            "issuing_state": person.state,
            "address": f"{person.street}, {person.city} {person.state} {person.postcode}",
            "address_lines": {
                "street_address": person.street,
                "city": person.city,
                "state": person.state,
                "postal_code": person.postcode,
                "country": person.country,
                "country_code": person.country,
            },
        },
        "breakdown": {
            "data_validation": clear,
            "visual_authenticity": clear,
            "compromised_document": clear,
            "data_consistency": clear,
            "image_integrity": clear,
            "police_record": clear,
        },
    }
    return merged(plain, shown.changes)


def stamp(unix_seconds: float) -> str:
    """A time as Onfido writes it."""
    return datetime.fromtimestamp(int(unix_seconds), UTC).isoformat().replace("+00:00", "Z")
