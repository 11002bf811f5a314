"""A simulated Onfido: applicants and workflow runs are created, the runs played on their link.

Then runs, their tasks and reports are retrieved, API v3.6. Written from the published description
(onfido-openapi-spec) and the guide "Document report: suggested client actions". The words of the
errors are those of the documentation; two assumptions: a deleted applicant's run returns 410, and a
run whose link is closed, declined or expired is abandoned. A workflow decides the reasons of a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final
from uuid import uuid4

from countersign_simulators.base import (
    JSON_TYPE,
    Clock,
    Headers,
    Reply,
    Request,
    Webhook,
    failing,
    hmac_hex,
    json_reply,
    merged,
    timestamp,
    with_headers,
)
from countersign_simulators.hosted import Created, State, unguessable
from countersign_simulators.onfido_created import APPLICANT, RUN, WORKFLOW, mistakes
from countersign_simulators.people import Person
from countersign_simulators.provider import SimulatedProvider
from countersign_simulators.shapes import json_body
from countersign_simulators.table import Played, Table

TOKENS: Final[Mapping[str, str]] = {
    "live": "api_live_us.S1mulatedT0k.en-of-nobody-at-all",
    "sandbox": "api_sandbox_us.S1mulatedT0k.en-of-nobody-at-all",
}
WEBHOOK_TOKEN: Final = "S1mulatedWebh00kTokenOfNobody"  # noqa: S105 - made up, of this simulator
_APPLICANT: Final = "a9911ca0-0000-4000-8000-000000000001"
_PREFIX: Final = "/v3.6/"
_OTHER_TASKS: Final = ("profile_data", "document_photo", "face_photo", "face_check")


_REPEATED: Final = ("applicant_id", "workflow_id", "tags", "link", "sdk_token")
"""The members of a creation that the run has too."""
_TABLE: Final = Table("onfido")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A document check, and how its report differs from a clear one."""

    person: Person
    changes: Mapping[str, Any] = field(default_factory=dict)
    only_in_report: bool = False
    """The output of the task has no properties: they are at `/reports/{uuid}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Played):
    """A workflow run, and how it differs from a plain approval."""

    checks: Sequence[Check]
    """In the order of creation."""
    changes: Mapping[str, Any]
    """Members that replace those of a plain approval."""

    def task_id(self, index: int) -> str:
        return f"document_check_{self.number:03d}{index}"

    def report_id(self, index: int) -> str:
        return f"0f1d4e90-000{index}-4000-8000-{self.number:012d}"


class Onfido(SimulatedProvider[Run]):
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
        "workflow_id": WORKFLOW,
    }
    test_credentials: Final[Mapping[str, object]] = {
        **credentials,
        "api_token": TOKENS["sandbox"],
        "environment": "sandbox",
    }

    title = "Onfido"
    pages = "/l/"
    silent = frozenset({State.CREATED, State.BEGUN, State.PENDING})
    limits: ClassVar[Mapping[str, Headers]] = {
        "limited_once": (),
        "limited_long": (("Retry-After", "30"),),
    }

    def __init__(self, now: Clock) -> None:
        super().__init__(now)
        self._applicants: dict[str, str] = {}

    def _answer(self, request: Request) -> Reply:
        token = request.headers.get("authorization", "").removeprefix("Token token=")
        environment = next((name for name, known in TOKENS.items() if known == token), None)
        if environment is None:
            message = "Authorization error: please re-check your credentials"
            return self._error(401, "authorization_error", message)
        path = request.path.removeprefix(_PREFIX)
        if path == request.path:
            return self._not_found()
        if request.method == "POST" and path == "applicants":
            return self._create_applicant(request, environment)
        if request.method == "POST" and path == "workflow_runs":
            return self._create_run(request, environment)
        if request.method != "GET":
            return self._not_found()
        known = (*self._current(), *self._created())
        own = [run for run in known if run.environment == environment]
        return self._routed(path.split("/"), {run.session_id: run for run in own})

    def webhook(self, session_id: str) -> Webhook:
        """A `workflow_run.completed` event."""
        run = self._run(self._known(session_id))
        event = _TABLE.body(
            "event",
            session_id=session_id,
            status=run["status"],
            completed_at=timestamp(self._now()),
            applicant_id=run["applicant_id"],
        )
        return signed(event)

    def _create_applicant(self, request: Request, environment: str) -> Reply:
        body = json_body(request)
        wrong = mistakes(body, APPLICANT)
        if wrong:
            return self._invalid(wrong)
        applicant = str(uuid4())
        self._applicants[applicant] = environment
        made = _TABLE.body(
            "applicant",
            applicant_id=applicant,
            created_at=timestamp(self._now()),
            sandbox=environment == "sandbox",
        )
        given = {name: value for name, value in body.items() if name != "consents"}
        return json_reply(201, made | given, self._headers())

    def _create_run(self, request: Request, environment: str) -> Reply:
        body = json_body(request)
        wrong = mistakes(body, RUN)
        if not wrong and self._applicants.get(body["applicant_id"]) != environment:
            wrong = {"applicant_id": ["is not that of an applicant"]}
        if not wrong and body["workflow_id"] != WORKFLOW:
            wrong = {"workflow_id": ["is not that of an active workflow"]}
        if wrong:
            return self._invalid(wrong)
        page = f"{self.pages}{unguessable(24)}"
        made = {
            **body,
            "link": {**body.get("link", {}), "url": request.origin + page},
            "sdk_token": unguessable(60),
            "number": next(self._created_numbers),
            "environment": environment,
        }
        created = self._hosted.create(
            str(uuid4()), page, reference=body.get("customer_user_id"), made=made
        )
        return json_reply(201, self._run(self._session_of(created)), self._headers())

    def _session_of(self, created: Created) -> Run:
        made, row = created.made, _TABLE.row_of(created, self._now())
        changes = {
            **{name: made[name] for name in _REPEATED if name in made},
            **row.pop("changes"),
            "customer_user_id": ... if created.reference is None else created.reference,
        }
        person = replace(row["person"], country="USA")
        return Run(changes=changes, checks=_checks(row.pop("checks"), person), **row)

    def _sessions(self) -> Sequence[Run]:
        rows = _TABLE.rows(self._now())
        return [Run(checks=_checks(row.pop("checks"), row["person"]), **row) for row in rows]

    def _back(self, created: Created) -> str | None:
        """The final redirect of the link; Onfido adds nothing to the address."""
        left = self._session_of(created).changes.get("status") == "abandoned"
        which = "expired_redirect_url" if left else "completed_redirect_url"
        address = created.made["link"].get(which)
        return None if address is None else str(address)

    def _routed(self, path: Sequence[str], runs: Mapping[str, Run]) -> Reply:
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

    def _answer_run(self, run: Run) -> Reply:
        limited = self._limit(run, first=self._is_first_request(run.session_id))
        if limited is not None:
            refused = self._error(429, "rate_limit", "Rate limit reached. Please retry later.")
            return with_headers(refused, *limited)
        if run.failure == "deleted":
            return self._error(410, "gone", "The resource has been deleted.")
        if run.failure == "server_error":
            return self._error(500, "internal_server_error", "Something went wrong.")
        reply = failing(self._ok(self._run(run)), run.failure)
        self._hosted.retrieved(run.session_id)
        return reply

    def _answer_tasks(self, run: Run) -> Reply:
        if run.failure == "report_server_error":
            return self._error(500, "internal_server_error", "Something went wrong.")
        return self._ok(self._tasks(run))

    def _answer_task(self, run: Run, task_id: str) -> Reply:
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

    def _answer_report(self, runs: Iterable[Run], report_id: str) -> Reply:
        for run in runs:
            for index, check in enumerate(run.checks):
                if report_id == run.report_id(index):
                    created_at = timestamp(self._between(run)[1])
                    head = _TABLE.body("report_head", report_id=report_id, created_at=created_at)
                    return self._ok(head | _report(check))
        return self._not_found()

    def _run(self, run: Run) -> dict[str, Any]:
        begun, changed = run.created_at, run.changed_at
        approved = _TABLE.body(
            "run",
            session_id=run.session_id,
            applicant_id=_APPLICANT,
            workflow_id=WORKFLOW,
            customer_user_id=run.subject_reference,
            created_at=timestamp(self._started - 600 if begun is None else begun),
            updated_at=timestamp(self._started - 300 if changed is None else changed),
        )
        return merged(approved, run.changes)

    def _tasks(self, run: Run) -> list[dict[str, Any]]:
        """In the list they have no inputs and outputs."""
        begun, changed = self._between(run)
        others = [(f"{name}_{number}", name, 0) for number, name in enumerate(_OTHER_TASKS, 10)]
        documents = [
            (run.task_id(index), "document_check", index) for index in range(len(run.checks))
        ]
        return [
            _TABLE.body(
                "task",
                task_id=task_id,
                run_id=_APPLICANT if run.failure == "wrong_task" else run.session_id,
                definition=definition,
                created_at=timestamp(begun + later),
                updated_at=timestamp(changed + later),
            )
            for task_id, definition, later in (*others, *documents)
        ]

    def _between(self, run: Run) -> tuple[float, float]:
        """When it was created and last changed, in Unix seconds."""
        if run.created_at is None or run.changed_at is None:
            return self._started - 500, self._started - 400
        return run.created_at, run.changed_at

    def _invalid(self, fields: Mapping[str, Sequence[str]]) -> Reply:
        message = "There was a validation error on this request"
        return self._error(422, "validation_error", message, fields)

    def _not_found(self) -> Reply:
        message = "Could not find the requested resource"
        return self._error(404, "resource_not_found", message)

    def _ok(self, body: object) -> Reply:
        return json_reply(200, body, self._headers())

    def _error(
        self,
        status: int,
        kind: str,
        message: str,
        fields: Mapping[str, Sequence[str]] | None = None,
    ) -> Reply:
        error = {"error": {"type": kind, "message": message, "fields": fields or {}}}
        return json_reply(status, error, self._headers())

    def _headers(self) -> tuple[tuple[str, str], ...]:
        return (JSON_TYPE, ("X-Request-Id", f"0f1d4e9a-0000-4000-8000-{next(self._numbers):012d}"))


def signed(event: Mapping[str, Any]) -> Webhook:
    """Any event, signed with the token of the webhook."""
    body = json.dumps(event).encode()
    signature = ("X-SHA2-Signature", hmac_hex(WEBHOOK_TOKEN, body))
    return Webhook(headers=(JSON_TYPE, signature), body=body)


def _checks(rows: Sequence[Mapping[str, Any]], person: Person) -> tuple[Check, ...]:
    """The document checks of a row; where it names no other, of the session's person."""
    checks = []
    for each in rows:
        named = {"person": _TABLE.person(each["person"], {})} if "person" in each else {}
        checks.append(Check(**{"person": person, **each, **named}))
    return tuple(checks)


def _report(check: Check) -> dict[str, Any]:
    """A document report, as the output of a task has it, without its identifier."""
    expires = check.person.expires
    valid_until = "2199-12-31" if expires is None else expires.isoformat()
    return merged(_TABLE.body("report", check.person, valid_until=valid_until), check.changes)
