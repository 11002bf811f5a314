"""A simulated Veriff: `GET /v1/sessions/{id}/decision`, signed, and both of its webhooks.

Written from Veriff's own pages (API reference "/v1/sessions/{sessionId}/decision", "Decision data",
"HMAC authentication", "Decision webhook", "Verification session status codes").
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from countersign.simulators.document_people import Person, merged
from countersign.simulators.protocol import Reply, Request, Session, Simulator, Webhook
from countersign.simulators.veriff_sessions import INTEGRATION, Part, parts

API_KEY: Final = "5117fab1-a91c-4000-8000-0000000000a1"
SHARED_SECRET: Final = "5117fab1-5ec2-4000-8000-0000000000b2"  # noqa: S105 - of a simulator
_DECISION: Final = re.compile(r"/v1/sessions/([^/]+)/decision")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HUGE_BYTES: Final = 50 * 1024 * 1024
_SLOW_SECONDS: Final = 30.0
_JSON: Final = ("Content-Type", "application/json; charset=utf-8")


class VeriffSimulator:
    """One integration of Veriff."""

    name: Final = "veriff"

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._asked: set[str] = set()

    @property
    def sessions(self) -> Sequence[Session]:
        return tuple(
            Session(
                session_id=part.session_id,
                plays=part.plays,
                shipping_zip=part.shipping_zip,
                subject_reference=part.subject,
                personal=part.person.personal if part.person else (),
            )
            for part in parts(self._now)
        )

    @property
    def credentials(self) -> Mapping[str, object]:
        return {
            "api_key": API_KEY,
            "shared_secrets": [SHARED_SECRET],
            "integration_id": INTEGRATION,
            "environment": "live",
        }

    def answer(self, request: Request) -> Reply:
        """The answer to a request; any request whatever has one."""
        found = _DECISION.fullmatch(request.path)
        if found is None:
            return _error(404, "1004", "Not found")
        if request.method != "GET":
            return _error(405, "1004", "Method not allowed")
        refusal = _refusal(request.headers, found[1])
        if refusal is not None:
            return refusal
        if _UUID.fullmatch(found[1]) is None:
            return _error(400, "1002", "Query ID must be a valid UUID V4")
        part = next((p for p in parts(self._now) if p.session_id == found[1]), None)
        if part is None or part.plays == "redacted":
            return _error(404, "1203", "The session was not found")
        first = part.session_id not in self._asked
        self._asked.add(part.session_id)
        return self._play(part, first=first)

    def webhook(self, session_id: str) -> Webhook:
        """The decision webhook; for a session without a decision, the event webhook."""
        part = next(p for p in parts(self._now) if p.session_id == session_id)
        if part.verification is None or part.plays == "redacted":
            body = _json(
                {
                    "id": part.session_id,
                    "attemptId": _attempt(part),
                    "feature": "selfid",
                    "code": 7002,
                    "action": "submitted",
                    "vendorData": part.subject,
                }
            )
        else:
            body = _json({"status": "success", "verification": self._verification(part)})
        return Webhook(
            headers=(
                _JSON,
                ("X-AUTH-CLIENT", API_KEY),
                ("X-HMAC-SIGNATURE", _sign(body)),
                ("vrf-integration-id", part.integration or INTEGRATION),
            ),
            body=body,
        )

    def _play(self, part: Part, *, first: bool) -> Reply:
        if part.plays in _WITHOUT_ANSWER:
            return _WITHOUT_ANSWER[part.plays]()
        if first and part.number in _STUMBLES:
            return _rate_limited(_STUMBLES[part.number])
        undecided = part.verification is None or (first and part.plays == "decided_later")
        answer = {
            "status": "success",
            "verification": None if undecided else self._verification(part),
            "technicalData": {"ip": "203.0.113.7"},
        }
        return _signed(_json(answer), part)

    def _verification(self, part: Part) -> dict[str, Any]:
        decided = datetime.fromtimestamp(int(self._now()) - 90, UTC)
        written = decided.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        plain: dict[str, Any] = {
            "id": part.session_id,
            "attemptId": _attempt(part),
            "vendorData": part.subject,
            "endUserId": None,
            "status": "approved",
            "code": 9001,
            "reason": None,
            "reasonCode": None,
            "decisionTime": written,
            "acceptanceTime": written,
            "submissionTime": written,
            "person": _person(part.person) if part.person else {},
            "document": _document(part.person) if part.person else {},
            "additionalVerifiedData": {"estimatedAge": 36},
            "riskLabels": [],
            "comments": [],
        }
        return merged(plain, part.verification or {})


def make(now: Callable[[], float]) -> Simulator:
    """A simulated Veriff; `now` gives Unix seconds."""
    return VeriffSimulator(now)


def _person(person: Person) -> dict[str, Any]:
    street, city, country = person.street, person.city, person.country
    return {
        "firstName": person.first,
        "lastName": person.last,
        "dateOfBirth": person.born,
        "yearOfBirth": person.born[:4],
        "gender": None,
        "idNumber": None,
        "addresses": [
            {
                "fullAddress": f"{street}, {city}, {person.state} {person.postcode} {country}",
                "parsedAddress": {
                    "street": street,
                    "city": city,
                    "state": person.state,
                    "postcode": person.postcode,
                    "country": country,
                },
            }
        ],
    }


def _document(person: Person) -> dict[str, Any]:
    return {
        "type": "DRIVERS_LICENSE",
        "number": person.number,
        "country": "US",
        "validFrom": None,
        "validUntil": "2199-04-20",
    }


def _attempt(part: Part) -> str:
    return f"a77e3970-0000-4000-8000-{part.number:012d}"


def _refusal(headers: Mapping[str, str], session_id: str) -> Reply | None:
    """What is wrong with the authentication, if anything."""
    client = headers.get("x-auth-client")
    signature = headers.get("x-hmac-signature")
    if client is None:
        return _error(401, "1101", "Mandatory X-AUTH-CLIENT header containing the API key missing")
    if client != API_KEY:
        return _error(401, "1102", "The supplied API key does not exist")
    if signature is None:
        return _error(401, "1801", "Mandatory X-HMAC-SIGNATURE header is missing")
    if signature.lower() != _sign(session_id.encode()):
        return _error(401, "1802", "The X-HMAC-SIGNATURE does not match")
    return None


def _rate_limited(retry_after: str | None) -> Reply:
    reply = _error(429, "1429", "Too many requests")
    if retry_after is None:
        return reply
    return Reply(
        status=429, body=reply.body, headers=(*reply.headers, ("Retry-After", retry_after))
    )


def _error(status: int, code: str, message: str) -> Reply:
    # Four digits: which ones Veriff uses where is published only in part.
    body = _json({"status": "fail", "code": code, "message": message})
    return Reply(status=status, body=body, headers=(_JSON,))


def _signed(body: bytes, part: Part) -> Reply:
    """The answer with its signature, and with what this part does to it on the way."""
    delay, cut_after = 0.0, None
    if part.plays == "huge":
        body += b" " * _HUGE_BYTES
    if part.plays == "truncated":
        body = body[: len(body) // 2]
    if part.plays == "slow":
        delay = _SLOW_SECONDS
    if part.plays == "cut":
        cut_after = len(body) // 2
    signed = body + b" " if part.plays == "wrong_signature" else body
    # The reference of this very call says `x-`; older pages say `vrf-`.
    prefix = "vrf" if part.feedback_headers else "x"
    headers = [_JSON, (f"{prefix}-auth-client", API_KEY)]
    if part.integration is not None:
        headers.append(("vrf-integration-id", part.integration))
    if part.plays != "unsigned":
        headers.append((f"{prefix}-hmac-signature", _sign(signed)))
    return Reply(status=200, body=body, headers=tuple(headers), delay=delay, cut_after=cut_after)


def _sign(message: bytes) -> str:
    return hmac.new(SHARED_SECRET.encode(), message, sha256).hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


_WITHOUT_ANSWER: Final[Mapping[str, Callable[[], Reply]]] = {
    "error_500": lambda: _error(500, "1500", "Internal server error"),
    "html_502": lambda: Reply(
        status=502,
        body=b"<html><head><title>502 Bad Gateway</title></head></html>",
        headers=(("Content-Type", "text/html"),),
    ),
    "rate_limited": lambda: _rate_limited("120"),
}
_STUMBLES: Final[Mapping[int, str | None]] = {9: "1", 10: None}
"""The parts whose first request is one too many, and the `Retry-After` of it."""
