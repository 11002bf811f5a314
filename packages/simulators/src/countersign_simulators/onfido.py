"""A simulated Onfido: workflow runs, their tasks and reports, API v3.6.

Written from the published description (onfido-openapi-spec). The words of the errors are those of
the documentation; that a deleted applicant's run returns 410 is an assumption.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from countersign_simulators.base import (
    JSON_TYPE,
    Headers,
    Reply,
    Request,
    Session,
    SimulatedProvider,
    Webhook,
    failing,
    hmac_hex,
    json_reply,
    merged,
    timestamp,
    with_headers,
)
from countersign_simulators.people import Person, birthday

TOKENS: Final[Mapping[str, str]] = {
    "live": "api_live_us.S1mulatedT0k.en-of-nobody-at-all",
    "sandbox": "api_sandbox_us.S1mulatedT0k.en-of-nobody-at-all",
}
WEBHOOK_TOKEN: Final = "S1mulatedWebh00kTokenOfNobody"  # noqa: S105 - made up, of this simulator
_APPLICANT: Final = "a9911ca0-0000-4000-8000-000000000001"
_WORKFLOW: Final = "f10f10f1-0000-4000-8000-000000000001"
_LIMITS: Final[Mapping[str | None, Headers]] = {
    "limited_once": (),
    "limited_long": (("Retry-After", "30"),),
}
"""Headers of a first request that is one too many."""
_PREFIX: Final = "/v3.6/"
_OTHER_TASKS: Final = ("profile_data", "document_photo", "face_photo", "face_check")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """A document check, and how its report differs from a clear one."""

    person: Person
    changes: Mapping[str, Any] = field(default_factory=dict)
    only_in_report: bool = False
    """The output of the task has no properties: they are at `/reports/{uuid}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run(Session):
    """A workflow run, and how it differs from a plain approval."""

    number: int
    checks: Sequence[_Check]
    """In the order in which they were made."""
    changes: Mapping[str, Any]
    """Members that replace those of a plain approval."""
    failure: str | None = None
    environment: str = "live"

    def task_id(self, index: int) -> str:
        return f"document_check_{self.number:03d}{index}"

    def report_id(self, index: int) -> str:
        return f"0f1d4e90-000{index}-4000-8000-{self.number:012d}"


class Onfido(SimulatedProvider[_Run]):
    """A region of Onfido, with a live and a sandbox environment."""

    name: Final = "onfido"
    credentials: Final[Mapping[str, object]] = {
        "api_token": TOKENS["live"],
        "environment": "live",
        "region": "us",
        "webhook_secrets": [WEBHOOK_TOKEN],
        "output": {
            "postal_code": {"member": "checked_address.postcode", "source": "database"},
            "country": {"member": "checked_address.country", "source": "database"},
        },
    }

    def answer(self, request: Request) -> Reply:
        """A run, its tasks, one of them, or a report."""
        token = request.headers.get("authorization", "").removeprefix("Token token=")
        environment = next((name for name, known in TOKENS.items() if known == token), None)
        if environment is None:
            message = "Authorization error: please re-check your credentials"
            return self._error(401, "authorization_error", message)
        path = request.path.removeprefix(_PREFIX)
        if request.method != "GET" or path == request.path:
            return self._not_found()
        runs = [run for run in self._sessions() if run.environment == environment]
        return self._routed(path.split("/"), {run.session_id: run for run in runs})

    def webhook(self, session_id: str) -> Webhook:
        """A `workflow_run.completed` event."""
        status = self._run(self._known(session_id))["status"]
        return signed(
            {
                "payload": {
                    "resource_type": "workflow_run",
                    "action": "workflow_run.completed",
                    "object": {
                        "id": session_id,
                        "status": status,
                        "completed_at_iso8601": timestamp(self._now()),
                        "href": f"https://api.us.onfido.com/v3.6/workflow_runs/{session_id}",
                    },
                    "resource": {"id": session_id, "applicant_id": _APPLICANT},
                }
            }
        )

    def _routed(self, path: Sequence[str], runs: Mapping[str, _Run]) -> Reply:
        match path:
            case ["workflow_runs", run_id] if run_id in runs:
                return self._answer_run(runs[run_id])
            case ["workflow_runs", run_id, "tasks"] if run_id in runs:
                return self._answer_tasks(runs[run_id])
            case ["workflow_runs", run_id, "tasks", task_id] if run_id in runs:
                return self._answer_task(runs[run_id], task_id)
            case ["reports", report_id]:
                return self._answer_report(runs.values(), report_id)
            case _:
                return self._not_found()

    def _answer_run(self, run: _Run) -> Reply:
        if run.failure in _LIMITS and self._is_first_request(run.session_id):
            limited = self._error(429, "rate_limit", "Rate limit reached. Please retry later.")
            return with_headers(limited, *_LIMITS[run.failure])
        if run.failure == "deleted":
            return self._error(410, "gone", "The resource has been deleted.")
        if run.failure == "server_error":
            return self._error(500, "internal_server_error", "Something went wrong.")
        return failing(self._ok(self._run(run)), run.failure)

    def _answer_tasks(self, run: _Run) -> Reply:
        if run.failure == "report_server_error":
            return self._error(500, "internal_server_error", "Something went wrong.")
        return self._ok(self._tasks(run))

    def _answer_task(self, run: _Run, task_id: str) -> Reply:
        task = next((task for task in self._tasks(run) if task["id"] == task_id), None)
        if task is None:
            return self._not_found()
        output: Any = None
        for index, check in enumerate(run.checks):
            if task_id == run.task_id(index):
                output = {**_report(check), "uuid": run.report_id(index)}
                if check.only_in_report:
                    del output["properties"]
        # The identifier of another run is only in the list.
        own = {"workflow_run_id": run.session_id}
        return self._ok({**task, **own, "input": {}, "output": output})

    def _answer_report(self, runs: Iterable[_Run], report_id: str) -> Reply:
        for run in runs:
            for index, check in enumerate(run.checks):
                if report_id == run.report_id(index):
                    head = {
                        "id": report_id,
                        "created_at": timestamp(self._started - 400),
                        "href": f"/v3.6/reports/{report_id}",
                        "name": "document",
                        "documents": [],
                    }
                    return self._ok(head | _report(check))
        return self._not_found()

    def _run(self, run: _Run) -> dict[str, Any]:
        approved = {
            "id": run.session_id,
            "applicant_id": _APPLICANT,
            "workflow_id": _WORKFLOW,
            "workflow_version_id": 7,
            "status": "approved",
            "dashboard_url": f"https://dashboard.onfido.example/results/{run.session_id}",
            "output": {},
            "reasons": [],
            "tags": [],
            "customer_user_id": run.subject_reference,
            "created_at": timestamp(self._started - 600),
            "updated_at": timestamp(self._started - 300),
        }
        return merged(approved, run.changes)

    def _tasks(self, run: _Run) -> list[dict[str, Any]]:
        """In the list they have no inputs and outputs."""
        others = [(f"{name}_{number}", name, 0) for number, name in enumerate(_OTHER_TASKS, 10)]
        documents = [
            (run.task_id(index), "document_check", index) for index in range(len(run.checks))
        ]
        return [
            {
                "id": task_id,
                "workflow_run_id": _APPLICANT if run.failure == "wrong_task" else run.session_id,
                "task_def_id": definition,
                "task_def_version": None,
                "created_at": timestamp(self._started + later - 500),
                "updated_at": timestamp(self._started + later - 400),
            }
            for task_id, definition, later in (*others, *documents)
        ]

    def _not_found(self) -> Reply:
        message = "Could not find the requested resource"
        return self._error(404, "resource_not_found", message)

    def _ok(self, body: object) -> Reply:
        return json_reply(200, body, self._headers())

    def _error(self, status: int, kind: str, message: str) -> Reply:
        error = {"error": {"type": kind, "message": message, "fields": {}}}
        return json_reply(status, error, self._headers())

    def _headers(self) -> tuple[tuple[str, str], ...]:
        return (JSON_TYPE, ("X-Request-Id", f"0f1d4e9a-0000-4000-8000-{next(self._numbers):012d}"))

    def _sessions(self) -> Sequence[_Run]:
        now = self._now()
        return (*_verified(now), *_undecided(), *_unproved(now), *_failing())


def signed(event: Mapping[str, Any]) -> Webhook:
    """Any event, signed with the token of the webhook."""
    body = json.dumps(event).encode()
    signature = ("X-SHA2-Signature", hmac_hex(WEBHOOK_TOKEN, body))
    return Webhook(headers=(JSON_TYPE, signature), body=body)


def _report(check: _Check) -> dict[str, Any]:
    """A document report, as the output of a task has it, without its identifier."""
    person = check.person
    clear = {"result": "clear", "breakdown": {}}
    report = {
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
    return merged(report, check.changes)


# --- the runs; every person in them is invented -------------------------------------------------


def _buyer(number: int, first: str, last: str, **other: Any) -> Person:  # noqa: ANN401 - of Person
    """A person with an address and a licence of their own."""
    usual = {
        "born": f"19{62 + number}-1{number % 3}-{10 + number % 18}",
        "number": f"OFX{number:06d}K",
        "street": f"{5200 + number} Bellwether Sprocket Row",
        "city": "Eureka",
        "postcode": "95501",
        "country": "USA",
    }
    return Person(first=first, last=last, **(usual | other))


_CALLIOPE: Final = _buyer(1, "Callioperine", "Mudlarkson")
_WENDOLYN: Final = _buyer(2, "Wendolynda", "Thrumblecastle", postcode="90660", city="Pico Rivera")


def _session(
    number: int,
    scenario: str,
    person: Person,
    changes: Mapping[str, Any] | None = None,
    properties: Mapping[str, Any] | None = None,
    *,
    checks: Sequence[_Check] | None = None,
    more_personal: tuple[str, ...] = (),
    **other: Any,  # noqa: ANN401 - the fields of _Run
) -> _Run:
    """A run in which one document was shown, with changes to the run and to what was read."""
    if checks is None:
        checks = [_Check(person=person, changes={"properties": properties or {}})]
    fields = ("first", "last", "born", "number", "street")
    personal = [text for check in checks for text in check.person.texts(*fields)]
    return _Run(
        **{"shipping_zip": person.postcode[:5]} | other,
        session_id=f"0f1d0000-0000-4000-8000-{number:012d}",
        number=number,
        scenario=scenario,
        subject_reference=f"buyer-onfido-{number:04d}",
        personal=tuple(dict.fromkeys((*personal, *more_personal))),
        checks=checks,
        changes=changes or {},
    )


def _verified(now: float) -> Sequence[_Run]:
    plus_four = _buyer(3, "Ferdinandria", "Oxpecker", postcode="94102-4301")
    nine_digits = _buyer(4, "Silvanthea", "Crumpetfield", postcode="921010987")
    zero = _buyer(5, "Humphriette", "Plumworth", postcode="07030", state="NJ", city="Hoboken")
    twice = _buyer(6, "Archibaldine", "Netherwick")
    blurred = _Check(
        person=_buyer(7, "Jocastabel", "Ramsbottomley"),
        changes={"result": "consider", "sub_result": "rejected"},
    )
    apart = _buyer(8, "Quentinella", "Hobgrove")
    passport = _buyer(9, "Tobiasina", "Larchwhistle", state="")
    no_address = {"address": ..., "address_lines": ..., "issuing_state": ...}
    typed = _buyer(10, "Eglantina", "Bumblethorpe")
    young = "2011-11-11"
    form = {"output": {"dob": young, "postcode": "10001", "profile": {"dob": young}}}
    eighteen = _buyer(11, "Persimmony", "Goosegate", born=birthday(now, 18))
    extra = _buyer(12, "Dorotheon", "Wimblecroft")
    unknown_members = {
        "an_addition": {"of": ["next", "year"]},
        "link": {"url": "https://id.onfido.example"},
    }
    return (
        _session(1, "verified", _CALLIOPE),
        _session(2, "verified", _WENDOLYN),
        # The same licence as the first: the same buyer.
        _session(3, "verified", _CALLIOPE),
        _session(4, "verified", plus_four),
        _session(5, "verified", nine_digits),
        _session(6, "verified", zero),
        # The first attempt was not clear, and of somebody else.
        _session(7, "verified", twice, checks=[blurred, _Check(person=twice)]),
        _session(8, "verified", apart, checks=[_Check(person=apart, only_in_report=True)]),
        # A passport has no address: a database check has put one into the declared output.
        _session(
            9,
            "verified",
            passport,
            {"output": {"checked_address": {"postcode": "95540", "country": "USA"}}},
            {**no_address, "document_type": "passport"},
            shipping_zip="95540",
        ),
        # What the workflow puts out of the person's own form is not declared, so it is not read.
        _session(10, "verified", typed, form, more_personal=(young,)),
        _session(11, "verified", eighteen),
        _session(12, "verified", extra, unknown_members),
        _session(13, "verified", extra, failure="limited_once"),
    )


def _undecided() -> Sequence[_Run]:
    def without_check(number: int, scenario: str, status: str, **other: object) -> _Run:
        return _session(number, scenario, _CALLIOPE, {"status": status, **other}, checks=[])

    error = {"type": "workflow_error", "message": "A task of the workflow could not be run."}
    declined = {"status": "declined", "reasons": ["DOCUMENT_FRAUD"]}
    return (
        without_check(21, "pending", "processing"),
        _session(22, "review", _WENDOLYN, {"status": "review"}),
        without_check(23, "requires_input", "awaiting_input"),
        without_check(24, "requires_client_input", "awaiting_client_input"),
        _session(25, "failed", _WENDOLYN, declined),
        without_check(26, "canceled", "abandoned"),
        without_check(27, "workflow_error", "error", error=error),
        without_check(28, "unknown_status", "under_observation"),
    )


def _unproved(now: float) -> Sequence[_Run]:
    under_age = _buyer(13, "Mirabellon", "Foxtrotter", born=birthday(now, 17))
    tomorrow = _buyer(14, "Anselmina", "Puddifoot", born=birthday(now, 18, days_later=1))
    abroad = _buyer(15, "Gwendolith", "Sprucemoor", country="CAN", state="BC", postcode="V6B 1A1")
    consider = _Check(person=_WENDOLYN, changes={"result": "consider", "sub_result": "caution"})
    other_subject = {"customer_user_id": "buyer-of-another"}
    undeclared = {"output": {"postcode": "95501"}}
    return (
        _session(31, "underage", under_age),
        _session(32, "underage_until_tomorrow", tomorrow),
        _session(33, "expired_document", _CALLIOPE, properties={"date_of_expiry": "2021-03-04"}),
        _session(34, "age_unknown", _CALLIOPE, properties={"date_of_birth": ...}),
        _session(35, "zip_unknown", _CALLIOPE, properties={"address_lines": ...}),
        _session(36, "foreign_address", abroad, shipping_zip="95501"),
        _session(37, "zip_mismatch", _WENDOLYN, shipping_zip="95501"),
        # Approved by the workflow, but the document report is not clear.
        _session(38, "document_not_clear", _WENDOLYN, checks=[consider]),
        # A workflow that checks no document at all.
        _session(39, "no_document", _CALLIOPE, checks=[]),
        # The ZIP code differs too, for vendors that send no reference to the buyer.
        _session(40, "other_subject", _CALLIOPE, other_subject, shipping_zip="95502"),
        _session(41, "undeclared_output_zip", _WENDOLYN, undeclared, shipping_zip="95501"),
        _session(42, "other_environment", _CALLIOPE, environment="sandbox"),
    )


def _failing() -> Sequence[_Run]:
    other = "0f1d0000-0000-4000-8000-000000000001"
    return (
        _session(51, "wrong_id", _CALLIOPE, {"id": other}),
        _session(52, "wrong_task", _CALLIOPE, failure="wrong_task"),
        _session(53, "truncated", _CALLIOPE, failure="truncated"),
        _session(54, "oversized", _CALLIOPE, failure="huge"),
        _session(55, "rate_limited", _CALLIOPE, failure="limited_long"),
        _session(56, "server_error", _CALLIOPE, failure="server_error"),
        _session(57, "bad_gateway", _CALLIOPE, failure="bad_gateway"),
        _session(58, "slow", _CALLIOPE, failure="slow"),
        _session(59, "cut", _CALLIOPE, failure="cut"),
        _session(60, "deleted", _CALLIOPE, failure="deleted"),
        _session(61, "report_server_error", _CALLIOPE, failure="report_server_error"),
    )
