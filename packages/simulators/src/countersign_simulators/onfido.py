"""A simulated Onfido: applicants and workflow runs are created, the runs played on their link.

Then runs, their tasks and reports are retrieved, API v3.6. Written from the published description
(onfido-openapi-spec). The words of the errors are those of the documentation; that a deleted
applicant's run returns 410 is an assumption.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Final
from uuid import uuid4

from countersign_simulators.base import (
    JSON_TYPE,
    Clock,
    Headers,
    Reply,
    Request,
    SimulatedProvider,
    Webhook,
    failing,
    hmac_hex,
    json_reply,
    merged,
    timestamp,
    with_headers,
)
from countersign_simulators.hosted import Created, Hosted, State, unguessable
from countersign_simulators.onfido_created import (
    ABANDONED,
    APPLICANT,
    RUN,
    WORKFLOW,
    mistakes,
    run_of,
)
from countersign_simulators.onfido_sessions import Check, Run, runs
from countersign_simulators.shapes import json_body

TOKENS: Final[Mapping[str, str]] = {
    "live": "api_live_us.S1mulatedT0k.en-of-nobody-at-all",
    "sandbox": "api_sandbox_us.S1mulatedT0k.en-of-nobody-at-all",
}
WEBHOOK_TOKEN: Final = "S1mulatedWebh00kTokenOfNobody"  # noqa: S105 - made up, of this simulator
_APPLICANT: Final = "a9911ca0-0000-4000-8000-000000000001"
_LIMITS: Final[Mapping[str | None, Headers]] = {
    "limited_once": (),
    "limited_long": (("Retry-After", "30"),),
}
"""Headers of a first request that is one too many."""
_NONE: Final[Mapping[str, Sequence[str]]] = {}
_PAGES: Final = "/l/"
_PREFIX: Final = "/v3.6/"
_OTHER_TASKS: Final = ("profile_data", "document_photo", "face_photo", "face_check")


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

    def __init__(self, now: Clock) -> None:
        super().__init__(now)
        self._applicants: dict[str, str] = {}
        self._run_numbers = count(90001)
        self._hosted = Hosted("Onfido", now, back=_back, changed=self._changed)

    def answer(self, request: Request) -> Reply:
        """An applicant, a run, its tasks, one of them, a report, or a page for a buyer."""
        page = self._hosted.answer(request)
        if page is None and request.path.startswith(_PAGES):
            page = self._hosted.missing()
        return self._answer(request) if page is None else page

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
        created = (run_of(each, self._now()) for each in self._hosted.all())
        own = [run for run in (*self._current(), *created) if run.environment == environment]
        return self._routed(path.split("/"), {run.session_id: run for run in own})

    def webhook(self, session_id: str) -> Webhook:
        """A `workflow_run.completed` event."""
        run = self._run(self._known(session_id))
        return signed(
            {
                "payload": {
                    "resource_type": "workflow_run",
                    "action": "workflow_run.completed",
                    "object": {
                        "id": session_id,
                        "status": run["status"],
                        "completed_at_iso8601": timestamp(self._now()),
                        "href": f"https://api.us.onfido.com/v3.6/workflow_runs/{session_id}",
                    },
                    "resource": {"id": session_id, "applicant_id": run["applicant_id"]},
                }
            }
        )

    def _create_applicant(self, request: Request, environment: str) -> Reply:
        body = json_body(request)
        wrong = mistakes(body, APPLICANT)
        if wrong:
            return self._invalid(wrong)
        applicant = str(uuid4())
        self._applicants[applicant] = environment
        made = {
            "id": applicant,
            "created_at": timestamp(self._now()),
            "href": f"{_PREFIX}applicants/{applicant}",
            "sandbox": environment == "sandbox",
        }
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
        page = _PAGES + unguessable(24)
        made = {
            **body,
            "link": {**body.get("link", {}), "url": request.origin + page},
            "sdk_token": unguessable(60),
            "number": next(self._run_numbers),
            "environment": environment,
        }
        created = self._hosted.create(
            str(uuid4()), page, reference=body.get("customer_user_id"), made=made
        )
        run = self._run(run_of(created, self._now()))
        return json_reply(201, run, self._headers())

    def _created(self, session_id: str) -> Run | None:
        created = self._hosted.find(session_id)
        return None if created is None else run_of(created, self._now())

    def _changed(self, created: Created) -> None:
        """Only a run that has come to its end is announced."""
        if created.state is State.ENDED:
            self._announce(created.session_id)

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
        if run.failure in _LIMITS and self._is_first_request(run.session_id):
            limited = self._error(429, "rate_limit", "Rate limit reached. Please retry later.")
            return with_headers(limited, *_LIMITS[run.failure])
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
                    head = {
                        "id": report_id,
                        "created_at": timestamp(self._between(run)[1]),
                        "href": f"/v3.6/reports/{report_id}",
                        "name": "document",
                        "documents": [],
                    }
                    return self._ok(head | _report(check))
        return self._not_found()

    def _run(self, run: Run) -> dict[str, Any]:
        approved = {
            "id": run.session_id,
            "applicant_id": _APPLICANT,
            "workflow_id": WORKFLOW,
            "workflow_version_id": 7,
            "status": "approved",
            "dashboard_url": f"https://dashboard.onfido.example/results/{run.session_id}",
            "output": {},
            "reasons": [],
            "tags": [],
            "customer_user_id": run.subject_reference,
            "created_at": timestamp(run.between[0] if run.between else self._started - 600),
            "updated_at": timestamp(run.between[1] if run.between else self._started - 300),
        }
        return merged(approved, run.changes)

    def _tasks(self, run: Run) -> list[dict[str, Any]]:
        """In the list they have no inputs and outputs."""
        begun, changed = self._between(run)
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
                "created_at": timestamp(begun + later),
                "updated_at": timestamp(changed + later),
            }
            for task_id, definition, later in (*others, *documents)
        ]

    def _between(self, run: Run) -> tuple[float, float]:
        return run.between or (self._started - 500, self._started - 400)

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

    def _sessions(self) -> Sequence[Run]:
        return runs(self._now())


def _back(created: Created) -> str | None:
    """Where the link leads in the end; Onfido adds nothing to the address."""
    left = created.outcome in ABANDONED
    address = created.made["link"].get("expired_redirect_url" if left else "completed_redirect_url")
    return None if address is None else str(address)


def signed(event: Mapping[str, Any]) -> Webhook:
    """Any event, signed with the token of the webhook."""
    body = json.dumps(event).encode()
    signature = ("X-SHA2-Signature", hmac_hex(WEBHOOK_TOKEN, body))
    return Webhook(headers=(JSON_TYPE, signature), body=body)


def _report(check: Check) -> dict[str, Any]:
    """A document report, as the output of a task has it, without its identifier."""
    person = check.person
    clear = {"result": "clear", "breakdown": {}}
    report = {
        "status": "complete",
        "result": "clear",
        "sub_result": "clear",
        "properties": {
            "date_of_birth": person.born,
            "date_of_expiry": person.expires.isoformat() if person.expires else "2199-12-31",
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
