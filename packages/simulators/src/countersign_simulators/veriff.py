"""A simulated Veriff: sessions are created, played on its own page, and their decisions retrieved.

`POST /v1/sessions`, `GET /v1/sessions/{id}/decision`, signed, and both webhooks. Written from
Veriff's own pages (API reference "/v1/sessions" and "/v1/sessions/{sessionId}/decision", "Decision
data", "HMAC authentication", "General FAQ", "Decision webhook", "Verification session status
codes", "Redirection Guide").
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from countersign_simulators.base import (
    Clock,
    Headers,
    Reply,
    Request,
    SimulatedProvider,
    Webhook,
    failing,
    hmac_hex,
    merged,
    with_headers,
)
from countersign_simulators.hosted import Hosted, unguessable
from countersign_simulators.people import Person
from countersign_simulators.shapes import json_body
from countersign_simulators.veriff_created import RETRIED, refusal, session_of
from countersign_simulators.veriff_sessions import INTEGRATION, VeriffSession, sessions

API_KEY: Final = "5117fab1-a91c-4000-8000-0000000000a1"
SHARED_SECRET: Final = "5117fab1-5ec2-4000-8000-0000000000b2"  # noqa: S105 - of a simulator
_SESSIONS: Final = "/v1/sessions"
_PAGES: Final = "/v/"
_DECISION: Final = re.compile(r"/v1/sessions/([^/]+)/decision")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LIMITS: Final[Mapping[str | None, Headers]] = {
    "limited": (("Retry-After", "120"),),
    "limited_briefly": (("Retry-After", "1"),),
    "limited_once": (),
}
"""Headers of a request that is one too many: the first one, or all of `limited`."""
_JSON: Final = ("Content-Type", "application/json; charset=utf-8")


class Veriff(SimulatedProvider[VeriffSession]):
    """One integration of Veriff."""

    name: Final = "veriff"
    credentials: Final[Mapping[str, object]] = {
        "api_key": API_KEY,
        "shared_secrets": [SHARED_SECRET],
        "integration_id": INTEGRATION,
        "environment": "live",
    }
    # Veriff's responses do not say which kind of integration they are from.
    test_credentials: Final[Mapping[str, object]] = {**credentials, "environment": "sandbox"}

    def __init__(self, now: Clock) -> None:
        super().__init__(now)
        self._hosted = Hosted(
            "Veriff",
            now,
            # Finished or cancelled: the callback as it is, without a word about the result.
            back=lambda created: created.return_url,
            changed=lambda created: self._announce(created.session_id),
            again=RETRIED,
        )

    def answer(self, request: Request) -> Reply:
        """A new session, the decision of one, or a page for a buyer."""
        page = self._hosted.answer(request)
        if page is None and request.path.startswith(_PAGES):
            return self._hosted.missing()
        if page is not None:
            return page
        if request.path.removesuffix("/") == _SESSIONS and request.method == "POST":
            return self._create(request)
        found = _DECISION.fullmatch(request.path)
        if found is None:
            return _error(404, "1004", "Not found")
        if request.method != "GET":
            return _error(405, "1004", "Method not allowed")
        return self._answer_decision(request.headers, found[1])

    def webhook(self, session_id: str) -> Webhook:
        """The decision webhook; for a session without a decision, the event webhook."""
        session = self._known(session_id)
        if session.decision is None or session.scenario == "redacted":
            body = _json(
                {
                    "id": session_id,
                    "attemptId": session.attempt_id,
                    "feature": "selfid",
                    "code": 7002 if session.submitted else 7001,
                    "action": "submitted" if session.submitted else "started",
                    "vendorData": session.subject_reference,
                }
            )
        else:
            body = _json({"status": "success", "verification": self._verification(session)})
        return Webhook(
            headers=(
                _JSON,
                ("X-AUTH-CLIENT", API_KEY),
                ("X-HMAC-SIGNATURE", hmac_hex(SHARED_SECRET, body)),
                ("vrf-integration-id", session.integration or INTEGRATION),
            ),
            body=body,
        )

    def _create(self, request: Request) -> Reply:
        # The one POST that needs no signature (General FAQ). One that is sent has to be right.
        signed = "x-hmac-signature" in request.headers
        refused = _refused(request.headers) or (
            _unsigned(request.headers, request.body) if signed else None
        )
        if refused is not None:
            return refused
        body = json_body(request)
        wrong = refusal(body)
        if wrong is not None:
            return _error(400, *wrong)
        wanted, token = body["verification"], unguessable(86)
        created = self._hosted.create(
            str(uuid4()),
            _PAGES + token,
            return_url=wanted.get("callback"),
            reference=wanted.get("vendorData"),
            made=wanted,
        )
        made = {
            "id": created.session_id,
            "url": request.origin + created.page,
            "vendorData": created.reference,
            "host": request.origin,
            "status": "created",
            "sessionToken": token,
        }
        reply = Reply(status=201, body=_json({"status": "success", "verification": made}))
        return _signed(reply, session_of(created, self._now()))

    def _created(self, session_id: str) -> VeriffSession | None:
        created = self._hosted.find(session_id)
        return None if created is None else session_of(created, self._now())

    def _answer_decision(self, headers: Mapping[str, str], session_id: str) -> Reply:
        refused = _refused(headers) or _unsigned(headers, session_id.encode())
        if refused is not None:
            return refused
        if _UUID.fullmatch(session_id) is None:
            return _error(400, "1002", "Query ID must be a valid UUID V4")
        session = self._find(session_id)
        if session is None or session.scenario == "redacted":
            return _error(404, "1203", "The session was not found")
        reply = self._decide(session, first=self._is_first_request(session_id))
        self._hosted.retrieved(session_id)
        return reply

    def _decide(self, session: VeriffSession, *, first: bool) -> Reply:
        if session.failure == "server_error":
            return _error(500, "1500", "Internal server error")
        if session.failure in _LIMITS and (first or session.failure == "limited"):
            limited = _error(429, "1429", "Too many requests")
            return with_headers(limited, *_LIMITS[session.failure])
        undecided = session.decision is None or (first and session.scenario == "decided_later")
        body = {
            "status": "success",
            "verification": None if undecided else self._verification(session),
            "technicalData": {"ip": "203.0.113.7"},
        }
        reply = failing(Reply(status=200, body=_json(body)), session.failure)
        return reply if session.failure == "bad_gateway" else _signed(reply, session)

    def _verification(self, session: VeriffSession) -> dict[str, Any]:
        at = self._now() - 90 if session.decided_at is None else session.decided_at
        decided = datetime.fromtimestamp(int(at), UTC)
        written = decided.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        approval: dict[str, Any] = {
            "id": session.session_id,
            "attemptId": session.attempt_id,
            "vendorData": session.subject_reference,
            "endUserId": session.end_user,
            "status": "approved",
            "code": 9001,
            "reason": None,
            "reasonCode": None,
            "decisionTime": written,
            "acceptanceTime": written,
            "submissionTime": written,
            "person": _person(session.person) if session.person else {},
            "document": _document(session.person) if session.person else {},
            "additionalVerifiedData": {"estimatedAge": 36},
            "riskLabels": [],
            "comments": [],
        }
        return merged(approval, session.decision or {})

    def _sessions(self) -> Sequence[VeriffSession]:
        return sessions(self._now())


def _person(person: Person) -> dict[str, Any]:
    street, city, country = person.street, person.city, person.country
    return {
        "firstName": person.first,
        "lastName": person.last,
        "dateOfBirth": person.born,
        "yearOfBirth": (person.born or "")[:4],
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
        "validUntil": person.expires.isoformat() if person.expires else "2199-04-20",
    }


def _refused(headers: Mapping[str, str]) -> Reply | None:
    """What is wrong with the API key, if anything."""
    client = headers.get("x-auth-client")
    if client is None:
        return _error(401, "1101", "Mandatory X-AUTH-CLIENT header containing the API key missing")
    return None if client == API_KEY else _error(401, "1102", "The supplied API key does not exist")


def _unsigned(headers: Mapping[str, str], signed: bytes) -> Reply | None:
    """What is wrong with the signature, if anything: over the body, or the id of a session."""
    signature = headers.get("x-hmac-signature")
    if signature is None:
        return _error(401, "1801", "Mandatory X-HMAC-SIGNATURE header is missing")
    if signature.lower() != hmac_hex(SHARED_SECRET, signed):
        return _error(401, "1802", "The X-HMAC-SIGNATURE does not match")
    return None


def _error(status: int, code: str, message: str) -> Reply:
    # Four digits: which ones Veriff uses where is published only in part.
    body = _json({"status": "fail", "code": code, "message": message})
    return Reply(status=status, body=body, headers=(_JSON,))


def _signed(reply: Reply, session: VeriffSession) -> Reply:
    signed = reply.body + b" " if session.failure == "wrong_signature" else reply.body
    # The reference of this very call says `x-`; older pages say `vrf-`.
    prefix = "vrf" if session.old_headers else "x"
    headers = [_JSON, (f"{prefix}-auth-client", API_KEY)]
    if session.integration is not None:
        headers.append(("vrf-integration-id", session.integration))
    if session.failure != "unsigned":
        headers.append((f"{prefix}-hmac-signature", hmac_hex(SHARED_SECRET, signed)))
    return replace(reply, headers=tuple(headers))


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
