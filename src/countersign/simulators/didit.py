"""A simulated Didit: `GET /v3/session/{id}/decision/`, deletion, and signed webhooks.

Written from Didit's own pages ("Retrieve session", "API errors", "Rate limiting", "Webhooks").
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from countersign.simulators.didit_sessions import Part, parts
from countersign.simulators.document_people import Person, merged
from countersign.simulators.protocol import Reply, Request, Session, Simulator, Webhook

API_KEY: Final = "didit-simulated-application-key-0001"
WEBHOOK_SECRET: Final = "didit-simulated-destination-secret-0001"  # noqa: S105 - of a simulator
_PATH: Final = re.compile(r"/v3/session/(?P<id>[^/]+)/(?P<what>decision|delete)(?P<slash>/?)")
_HUGE_BYTES: Final = 50 * 1024 * 1024
_SLOW_SECONDS: Final = 30.0
_LIMIT: Final = 100
_STUMBLES: Final[Mapping[int, str | None]] = {9: "1", 10: None}
"""The parts whose first request is one too many, and the `Retry-After` of it."""


class DiditSimulator:
    """One application of Didit."""

    name: Final = "didit"

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._asked: set[str] = set()
        self._deleted: set[str] = set()
        self._answered = 0

    @property
    def sessions(self) -> Sequence[Session]:
        return tuple(
            Session(
                session_id=part.session_id,
                plays=part.plays,
                shipping_zip=part.shipping_zip,
                subject_reference=part.subject,
                personal=(*(part.person.personal if part.person else ()), *part.personal),
            )
            for part in parts(self._now)
        )

    @property
    def credentials(self) -> Mapping[str, object]:
        return {"api_key": API_KEY, "webhook_secrets": [WEBHOOK_SECRET]}

    def answer(self, request: Request) -> Reply:
        """The answer to a request; any request whatever has one."""
        path = _PATH.fullmatch(request.path)
        if path is not None and not path["slash"]:
            # Clients follow it without the key.
            return _detail(301, "", ("Location", request.path + "/"))
        refusal = _refusal(request.headers.get("x-api-key"))
        if refusal is not None:
            return refusal
        part = self._find(path["id"]) if path else None
        if path is None or part is None:
            return _detail(404, "Not found.")
        if request.method != ("DELETE" if path["what"] == "delete" else "GET"):
            return _detail(405, f'Method "{request.method}" not allowed.')
        return self._delete(part) if path["what"] == "delete" else self._decide(part)

    def webhook(self, session_id: str) -> Webhook:
        """A `status.updated` message, signed in Didit's three ways."""
        part = next(p for p in parts(self._now) if p.session_id == session_id)
        now = int(self._now())
        decision = self._decision(part)
        message = {
            "event_id": f"evt-{part.number:04d}-{now}",
            "webhook_type": "status.updated",
            "timestamp": now,
            "created_at": now - 600,
            "session_id": part.session_id,
            "session_kind": "user",
            "status": decision["status"],
            "environment": decision["environment"],
            "vendor_data": part.subject,
            "workflow_id": decision["workflow_id"],
            "decision": decision,
        }
        body = json.dumps(message).encode()
        simple = f"{now}:{part.session_id}:{decision['status']}:status.updated"
        return Webhook(
            headers=(
                ("Content-Type", "application/json"),
                ("User-Agent", "DiditWebhook/2.0 +https://didit.me"),
                ("X-Timestamp", str(now)),
                ("X-Signature", _sign(body)),
                ("X-Signature-V2", _sign(_canonical(message))),
                ("X-Signature-Simple", _sign(simple.encode())),
            ),
            body=body,
        )

    def _find(self, session_id: str) -> Part | None:
        if session_id in self._deleted:
            return None
        known = (part for part in parts(self._now) if part.plays != "redacted")
        return next((part for part in known if part.session_id == session_id), None)

    def _delete(self, part: Part) -> Reply:
        self._deleted.add(part.session_id)
        return Reply(status=204, headers=())

    def _decide(self, part: Part) -> Reply:
        first = part.session_id not in self._asked
        self._asked.add(part.session_id)
        self._answered += 1
        match part.plays:
            case "error_500":
                return _detail(500, "A server error occurred.")
            case "html_502":
                page = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
                return Reply(status=502, body=page, headers=(("Content-Type", "text/html"),))
            case "rate_limited":
                return _rate_limited("120")
            case _ if first and part.number in _STUMBLES:
                return _rate_limited(_STUMBLES[part.number])
            case _:
                return self._shown(part, first=first)

    def _shown(self, part: Part, *, first: bool) -> Reply:
        decision = self._decision(part)
        if first and part.plays == "decided_later":
            decision |= {"status": "In Progress", "id_verifications": None}
        body = json.dumps(decision, ensure_ascii=False).encode()
        if part.plays == "huge":
            body += b" " * _HUGE_BYTES
        if part.plays == "truncated":
            body = body[: len(body) // 2]
        return Reply(
            status=200,
            body=body,
            headers=(
                ("Content-Type", "application/json"),
                ("X-RateLimit-Limit", str(_LIMIT)),
                ("X-RateLimit-Remaining", str(max(_LIMIT - self._answered, 1))),
                ("X-RateLimit-Reset", "60"),
            ),
            delay=_SLOW_SECONDS if part.plays == "slow" else 0.0,
            cut_after=len(body) // 2 if part.plays == "cut" else None,
        )

    def _decision(self, part: Part) -> dict[str, Any]:
        made = datetime.fromtimestamp(int(self._now()) - 600, UTC).isoformat()
        documents = [merged(_document(part.person), part.document)] if part.person else []
        passed: dict[str, Any] = {"status": "Approved", "score": 97.0, "warnings": []}
        plain: dict[str, Any] = {
            "session_id": part.session_id,
            "session_kind": "user",
            "session_number": 43000 + part.number,
            "status": "Approved",
            "environment": "live",
            "workflow_id": "d1d17000-f10e-4000-8000-000000000000",
            "features": ["ID_VERIFICATION", "LIVENESS", "FACE_MATCH"],
            "vendor_data": part.subject,
            "metadata": {},
            "expected_details": {},
            "id_verifications": documents,
            "liveness_checks": [{**passed, "age_estimation": 24.5}],
            "face_matches": [passed],
            "poa_verifications": None,
            "database_validations": [],
            "ip_analyses": [],
            "created_at": made,
        }
        return merged(plain, part.decision)


def make(now: Callable[[], float]) -> Simulator:
    """A simulated Didit; `now` gives Unix seconds."""
    return DiditSimulator(now)


def _document(person: Person) -> dict[str, Any]:
    line = f"{person.street}, {person.city}, {person.state} {person.postcode}"
    return {
        "status": "Approved",
        "document_type": "Driver's License",
        "document_number": person.number,
        "date_of_birth": person.born,
        "age": 41,
        "expiration_date": "2199-01-15",
        "date_of_issue": "2024-01-15",
        "issuing_state": "USA",
        "issuing_state_name": "United States",
        "first_name": person.first,
        "last_name": person.last,
        "full_name": f"{person.first} {person.last}",
        "address": line,
        "formatted_address": line,
        "parsed_address": {
            "street_1": person.street,
            "street_2": None,
            "city": person.city,
            "region": person.state,
            "country": person.country,
            "postal_code": person.postcode,
            "is_verified": True,
        },
        "warnings": [],
    }


def _refusal(key: str | None) -> Reply | None:
    """What is wrong with the key, if anything."""
    if key is None:
        return _detail(403, "You do not have permission to perform this action.")
    return None if key == API_KEY else _detail(401, "Invalid or expired API key.")


def _rate_limited(retry_after: str | None) -> Reply:
    limits = (("X-RateLimit-Limit", str(_LIMIT)), ("X-RateLimit-Remaining", "0"))
    after = () if retry_after is None else (("Retry-After", retry_after),)
    return _detail(429, "Request was throttled.", *limits, *after)


def _detail(status: int, text: str, *headers: tuple[str, str]) -> Reply:
    body = json.dumps({"detail": text}).encode()
    return Reply(status=status, body=body, headers=(("Content-Type", "application/json"), *headers))


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


def _sign(message: bytes) -> str:
    return hmac.new(WEBHOOK_SECRET.encode(), message, sha256).hexdigest()
