"""A simulated Didit: sessions are created, played on its own page, and their decisions retrieved.

`POST /v3/session/`, `GET /v3/session/{id}/decision/`, deletion, and signed webhooks. Written from
Didit's own pages ("Create Session", "Retrieve session", "API errors", "Rate limiting", "Webhooks",
"Web redirect").
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
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
)
from countersign_simulators.didit_created import WORKFLOW, mistakes
from countersign_simulators.hosted import Created, State, unguessable, with_query
from countersign_simulators.provider import SimulatedProvider
from countersign_simulators.shapes import json_body
from countersign_simulators.table import Played, Table

API_KEY: Final = "didit-simulated-application-key-0001"
SANDBOX_API_KEY: Final = "didit-simulated-sandbox-application-key-0001"
_ENVIRONMENTS: Final[Mapping[str, str]] = {API_KEY: "live", SANDBOX_API_KEY: "sandbox"}
"""Of an application's key."""
WEBHOOK_SECRET: Final = "didit-simulated-destination-secret-0001"  # noqa: S105 - of a simulator
_SESSIONS: Final = "/v3/session/"
_PATH: Final = re.compile(r"/v3/session/(?P<id>[^/]+)/(?P<what>decision|delete)(?P<slash>/?)")
_LIMIT: Final = 100
_LIMITED: Final = (("X-RateLimit-Limit", str(_LIMIT)), ("X-RateLimit-Remaining", "0"))
_TABLE: Final = Table("didit")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiditSession(Played):
    """A session, and how its decision differs from a plain approval."""

    decision: Mapping[str, Any]
    """Members that replace those of a plain approval."""
    document: Mapping[str, Any]
    """The same for its `id_verifications[0]`."""


class Didit(SimulatedProvider[DiditSession]):
    """An application of Didit, and a sandbox application, which sees only its own sessions."""

    name: Final = "didit"
    credentials: Final[Mapping[str, object]] = {
        "api_key": API_KEY,
        "webhook_secrets": [WEBHOOK_SECRET],
        "workflow_id": WORKFLOW,
    }
    test_credentials: Final[Mapping[str, object]] = {**credentials, "api_key": SANDBOX_API_KEY}

    title = "Didit"
    pages = "/session/"
    limits: ClassVar[Mapping[str, Headers]] = {
        "limited": (("Retry-After", "120"),),
        "limited_briefly": (("Retry-After", "1"),),
        "limited_once": (),
    }
    always_limited = "limited"

    def __init__(self, now: Clock) -> None:
        super().__init__(now)
        self._deleted = {each.session_id for each in self.sessions if each.scenario == "redacted"}
        self._decided = 0

    def _answer(self, request: Request) -> Reply:
        path = _PATH.fullmatch(request.path)
        if request.path == _SESSIONS[:-1] or (path is not None and not path["slash"]):
            # Clients follow it without the key.
            return _detail(301, "", ("Location", request.path + "/"))
        key = request.headers.get("x-api-key")
        environment = _ENVIRONMENTS.get(key or "")
        if environment is None:
            return _refusal(key)
        if request.path == _SESSIONS and request.method == "POST":
            return self._create(request, environment)
        session = self._find(path["id"]) if path else None
        is_seen = session is not None and session.environment == environment
        if path is None or session is None or not is_seen or session.session_id in self._deleted:
            return _detail(404, "Not found.")
        if request.method != ("DELETE" if path["what"] == "delete" else "GET"):
            return _detail(405, f'Method "{request.method}" not allowed.')
        return self._delete(session) if path["what"] == "delete" else self._retrieve(session)

    def _delete(self, session: DiditSession) -> Reply:
        self._deleted.add(session.session_id)
        return Reply(status=204, headers=())

    def _retrieve(self, session: DiditSession) -> Reply:
        reply = self._decide(session)
        self._hosted.retrieved(session.session_id)
        return reply

    def webhook(self, session_id: str) -> Webhook:
        """A `status.updated` message, signed in Didit's three ways."""
        session = self._known(session_id)
        now = int(self._now())
        decision = self._decision(session)
        message = _TABLE.body(
            "message",
            event_id=f"evt-{session.number:04d}-{now}-{next(self._numbers)}",
            timestamp=now,
            created_at=self._created_at(session),
            session_id=session_id,
            status=decision["status"],
            environment=decision["environment"],
            vendor_data=session.subject_reference,
            workflow_id=decision["workflow_id"],
            decision=decision,
        )
        body = json.dumps(message).encode()
        simple = f"{now}:{session_id}:{decision['status']}:status.updated"
        return Webhook(
            headers=(
                JSON_TYPE,
                ("User-Agent", "DiditWebhook/2.0 +https://didit.me"),
                ("X-Timestamp", str(now)),
                ("X-Signature", hmac_hex(WEBHOOK_SECRET, body)),
                ("X-Signature-V2", hmac_hex(WEBHOOK_SECRET, _canonical(message))),
                ("X-Signature-Simple", hmac_hex(WEBHOOK_SECRET, simple.encode())),
            ),
            body=body,
        )

    def _create(self, request: Request, environment: str) -> Reply:
        body = json_body(request)
        wrong = mistakes(body)
        if wrong:
            return json_reply(400, wrong)
        callback, reference = body.get("callback"), body.get("vendor_data")
        created = self._unfinished(reference, environment)
        if created is None:
            numbered = {"number": next(self._created_numbers), "environment": environment}
            created = self._hosted.create(
                page=f"{self.pages}{unguessable(12)}",
                session_id=str(uuid4()),
                return_url=callback,
                reference=reference,
                made=body | numbered,
            )
        else:
            # The same session once more: only its callback and metadata are new.
            made = {**created.made, "metadata": body.get("metadata")}
            created = self._hosted.change(created, return_url=callback, made=made)
        made = _TABLE.body(
            "created",
            session_id=created.session_id,
            session_number=created.made["number"],
            session_token=created.page.rpartition("/")[2],
            url=request.origin + created.page,
            vendor_data=created.reference,
            metadata=created.made.get("metadata"),
            status=self._session_of(created).decision["status"],
            callback=created.return_url,
            workflow_id=created.made["workflow_id"],
        )
        return json_reply(201, made)

    def _unfinished(self, reference: str | None, environment: str) -> Created | None:
        """The buyer's unfinished session; there is none without a reference."""
        return next(
            (
                created
                for created in self._hosted.all()
                if reference is not None
                and (created.reference, created.made["environment"]) == (reference, environment)
                and created.state in {State.CREATED, State.BEGUN}
                and created.session_id not in self._deleted
            ),
            None,
        )

    def _back(self, created: Created) -> str | None:
        if created.return_url is None:
            return None
        status = str(self._decision(self._session_of(created))["status"])
        said = (("verificationSessionId", created.session_id), ("status", status))
        return with_query(created.return_url, *said)

    def _session_of(self, created: Created) -> DiditSession:
        row = _TABLE.row_of(created, self._now())
        asked = {name: created.made.get(name) or {} for name in ("metadata", "expected_details")}
        decision = {"workflow_id": created.made["workflow_id"], **asked, **row.pop("decision")}
        return DiditSession(decision=decision, **row)

    def _created_at(self, session: DiditSession) -> int:
        """Unix seconds."""
        return int(self._now() - 600 if session.created_at is None else session.created_at)

    def _decide(self, session: DiditSession) -> Reply:
        first = self._is_first_request(session.session_id)
        self._decided += 1
        if session.failure == "server_error":
            return _detail(500, "A server error occurred.")
        limited = self._limit(session, first=first)
        if limited is not None:
            return _detail(429, "Request was throttled.", *_LIMITED, *limited)
        decision = self._decision(session)
        if first and session.scenario == "decided_later":
            decision |= {"status": "In Progress", "id_verifications": None}
        headers = (
            JSON_TYPE,
            ("X-RateLimit-Limit", str(_LIMIT)),
            ("X-RateLimit-Remaining", str(max(_LIMIT - self._decided, 1))),
            ("X-RateLimit-Reset", "60"),
        )
        body = json.dumps(decision, ensure_ascii=False).encode()
        return failing(Reply(status=200, body=body, headers=headers), session.failure)

    def _decision(self, session: DiditSession) -> dict[str, Any]:
        made = datetime.fromtimestamp(self._created_at(session), UTC).isoformat()
        person = session.person
        approval = _TABLE.body(
            "approval",
            session_id=session.session_id,
            session_number=43000 + session.number,
            environment=session.environment,
            workflow_id=WORKFLOW,
            vendor_data=session.subject_reference,
            documents=[merged(_TABLE.body("document", person), session.document)] if person else [],
            created_at=made,
        )
        return merged(approval, session.decision)

    def _sessions(self) -> Sequence[DiditSession]:
        return [DiditSession(**row) for row in _TABLE.rows(self._now())]


def _refusal(key: str | None) -> Reply:
    """The response to a request without a valid key."""
    if key is None:
        return _detail(403, "You do not have permission to perform this action.")
    return _detail(401, "Invalid or expired API key.")


def _detail(status: int, text: str, *headers: tuple[str, str]) -> Reply:
    return json_reply(status, {"detail": text}, (JSON_TYPE, *headers))


def _canonical(value: object) -> bytes:
    """Didit's recipe: sorted, compact, Unicode as it is, whole numbers without a fraction."""

    def whole(part: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(part, dict):
            return {name: whole(member) for name, member in part.items()}
        if isinstance(part, list):
            return [whole(member) for member in part]
        return int(part) if isinstance(part, float) and part.is_integer() else part

    text = json.dumps(whole(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()
