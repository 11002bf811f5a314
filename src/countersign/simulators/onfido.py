"""An Onfido that knows a few made-up people: workflow runs, their tasks and reports, API v3.6.

From the published description (onfido-openapi-spec). The words of the errors are those of the
documentation; that a deleted applicant's run answers 410 is an assumption.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from hmac import new
from itertools import count
from typing import Any, Final

from countersign.simulators.onfido_parts import APPLICANT, Part, stamp
from countersign.simulators.onfido_sessions import parts
from countersign.simulators.protocol import Reply, Request, Session, Simulator, Webhook

TOKENS: Final[Mapping[str, str]] = {
    "live": "api_live_us.S1mulatedT0k.en-of-nobody-at-all",
    "sandbox": "api_sandbox_us.S1mulatedT0k.en-of-nobody-at-all",
}
WEBHOOK_TOKEN: Final = "S1mulatedWebh00kTokenOfNobody"  # noqa: S105 - made up, of this simulator
_JSON: Final = ("Content-Type", "application/json")
_PREFIX: Final = "/v3.6/"
_LATER: Final = frozenset({"rate_limited", "rate_limited_30"})


class Onfido:
    """A `Simulator`."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._started = now()
        self._requests = count(1)
        self._limited: set[str] = set()

    @property
    def name(self) -> str:
        return "onfido"

    @property
    def credentials(self) -> Mapping[str, object]:
        return {
            "api_token": TOKENS["live"],
            "environment": "live",
            "region": "us",
            "webhook_secrets": [WEBHOOK_TOKEN],
            "output": {
                "postal_code": {"member": "checked_address.postcode", "source": "database"},
                "country": {"member": "checked_address.country", "source": "database"},
            },
        }

    @property
    def sessions(self) -> Sequence[Session]:
        return [
            Session(
                session_id=part.session_id,
                plays=part.plays,
                shipping_zip=part.shipping_zip,
                subject_reference=part.subject,
                personal=_personal(part),
            )
            for part in parts(self._now())
        ]

    def answer(self, request: Request) -> Reply:
        token = request.headers.get("authorization", "").removeprefix("Token token=")
        environment = next((e for e, t in TOKENS.items() if t == token), None)
        if environment is None:
            message = "Authorization error: please re-check your credentials"
            return self._error(401, "authorization_error", message)
        path = request.path.removeprefix(_PREFIX)
        if request.method != "GET" or path == request.path:
            return self._not_found()
        known = {p.session_id: p for p in parts(self._now()) if p.environment == environment}
        return self._answer(path.split("/"), known)

    def _answer(self, path: Sequence[str], known: Mapping[str, Part]) -> Reply:
        match path:
            case ["workflow_runs", run_id] if run_id in known:
                return self._answer_run(known[run_id])
            case ["workflow_runs", run_id, "tasks"] if run_id in known:
                return self._answer_tasks(known[run_id])
            case ["workflow_runs", run_id, "tasks", task_id] if run_id in known:
                return self._found(known[run_id].task(task_id, self._started))
            case ["reports", report_id]:
                found = [part.report(report_id, self._started) for part in known.values()]
                return self._found(next((report for report in found if report), None))
            case _:
                return self._not_found()

    def webhook(self, session_id: str) -> Webhook:
        status = next(
            (p.run(self._started)["status"] for p in parts(0) if p.session_id == session_id),
            "approved",
        )
        return signed(
            {
                "payload": {
                    "resource_type": "workflow_run",
                    "action": "workflow_run.completed",
                    "object": {
                        "id": session_id,
                        "status": status,
                        "completed_at_iso8601": stamp(self._now()),
                        "href": f"https://api.us.onfido.com/v3.6/workflow_runs/{session_id}",
                    },
                    "resource": {"id": session_id, "applicant_id": APPLICANT},
                }
            }
        )

    def _answer_run(self, part: Part) -> Reply:
        if part.trouble in _LATER and part.session_id not in self._limited:
            self._limited.add(part.session_id)
            wait = (("Retry-After", "30"),) if part.trouble == "rate_limited_30" else ()
            limited = self._error(429, "rate_limit", "Rate limit reached. Please retry later.")
            return replace(limited, headers=(*limited.headers, *wait))
        if part.trouble == "deleted":
            return self._error(410, "gone", "The resource has been deleted.")
        plain = self._ok(part.run(self._started))
        body, half = plain.body, len(plain.body) // 2
        if part.trouble == "oversized":
            return replace(plain, body=body[:-1] + b" " * 50_000_000 + b"}")
        replies: dict[str, Reply] = {
            "truncated": replace(plain, body=body[:half]),
            "slow": replace(plain, delay=30.0),
            "cut": replace(plain, cut_after=half),
            "bad_gateway": Reply(
                status=502,
                body=b"<html><head><title>502 Bad Gateway</title></head></html>",
                headers=(("Content-Type", "text/html"),),
            ),
            "server_error": self._error(500, "internal_server_error", "Something went wrong."),
        }
        return replies.get(part.trouble or "", plain)

    def _answer_tasks(self, part: Part) -> Reply:
        if part.trouble == "report_server_error":
            return self._error(500, "internal_server_error", "Something went wrong.")
        tasks = part.tasks(self._started)
        if part.trouble == "wrong_task":
            tasks = [{**task, "workflow_run_id": APPLICANT} for task in tasks]
        return self._ok(tasks)

    def _found(self, body: Mapping[str, Any] | None) -> Reply:
        return self._not_found() if body is None else self._ok(body)

    def _not_found(self) -> Reply:
        message = "Could not find the requested resource"
        return self._error(404, "resource_not_found", message)

    def _ok(self, body: object) -> Reply:
        return Reply(status=200, body=json.dumps(body).encode(), headers=self._headers())

    def _error(self, status: int, kind: str, message: str) -> Reply:
        error = {"error": {"type": kind, "message": message, "fields": {}}}
        return Reply(status=status, body=json.dumps(error).encode(), headers=self._headers())

    def _headers(self) -> tuple[tuple[str, str], ...]:
        return (_JSON, ("X-Request-Id", f"0f1d4e9a-0000-4000-8000-{next(self._requests):012d}"))


def signed(event: Mapping[str, Any]) -> Webhook:
    """Any event, signed with the token of the webhook."""
    body = json.dumps(event).encode()
    signature = new(WEBHOOK_TOKEN.encode(), body, sha256).hexdigest()
    return Webhook(headers=(_JSON, ("X-SHA2-Signature", signature)), body=body)


def make(now: Callable[[], float]) -> Simulator:
    """An Onfido by this clock, which gives Unix seconds."""
    return Onfido(now)


def _personal(part: Part) -> tuple[str, ...]:
    strings = [text for shown in part.shown for text in shown.person.personal]
    return tuple(dict.fromkeys((*strings, *part.personal)))
