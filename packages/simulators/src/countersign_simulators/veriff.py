"""A simulated Veriff: sessions are created, played on its own page, and their decisions retrieved.

`POST /v1/sessions`, `GET /v1/sessions/{id}/decision`, signed, and both webhooks. Written from
Veriff's own pages (API reference "/v1/sessions" and "/v1/sessions/{sessionId}/decision", "Decision
data", "HMAC authentication", "General FAQ", "Decision webhook", "Verification session status
codes", "Verification session decision codes", "Redirection Guide"). That a declined consent leaves
a session abandoned is an assumption.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Final
from uuid import uuid4
from zlib import crc32

from countersign_simulators.base import (
    Headers,
    Reply,
    Request,
    Webhook,
    failing,
    hmac_hex,
    merged,
    with_headers,
)
from countersign_simulators.hosted import Created, Outcome, unguessable
from countersign_simulators.people import Person
from countersign_simulators.provider import SimulatedProvider
from countersign_simulators.shapes import json_body
from countersign_simulators.table import Played, Table
from countersign_simulators.veriff_created import refusal

INTEGRATION: Final = "5117fab1-0000-4000-8000-00000000000a"
API_KEY: Final = "5117fab1-a91c-4000-8000-0000000000a1"
SHARED_SECRET: Final = "5117fab1-5ec2-4000-8000-0000000000b2"  # noqa: S105 - of a simulator
_SESSIONS: Final = "/v1/sessions"
_DECISION: Final = re.compile(r"/v1/sessions/([^/]+)/decision")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_JSON: Final = ("Content-Type", "application/json; charset=utf-8")


_TABLE: Final = Table("veriff")


@dataclass(frozen=True, slots=True, kw_only=True)
class VeriffSession(Played):
    """A session, and how its decision differs from a plain approval."""

    decision: Mapping[str, Any] | None
    """Members that replace those of a plain approval; None: there is no decision."""
    integration: str | None = None
    """The integration that the response names; Veriff's reference lists no such header."""
    old_headers: bool = False
    """Whether client and signature are in the `vrf-` headers that older pages of Veriff show."""
    end_user: str | None = None
    submitted: bool = True
    """Whether the buyer has sent in something."""

    @property
    def attempt_id(self) -> str:
        return f"a77e3970-0000-4000-8000-{self.number:012d}"


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

    # The address is the callback as it is, finished or cancelled, without a word about the result.
    title = "Veriff"
    pages = "/v/"
    again = frozenset({Outcome.DOCUMENT_EXPIRED, Outcome.PHOTO_BLURRED})
    limits: ClassVar[Mapping[str, Headers]] = {
        "limited": (("Retry-After", "120"),),
        "limited_briefly": (("Retry-After", "1"),),
        "limited_once": (),
    }
    always_limited = "limited"

    def _answer(self, request: Request) -> Reply:
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
            event = _TABLE.body(
                "event",
                session_id=session_id,
                attempt_id=session.attempt_id,
                code=7002 if session.submitted else 7001,
                action="submitted" if session.submitted else "started",
                vendor_data=session.subject_reference,
            )
            body = _json(event)
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
        # The one POST that needs no signature (General FAQ). If one is sent, it must be right.
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
            f"{self.pages}{token}",
            return_url=wanted.get("callback"),
            reference=wanted.get("vendorData"),
            made=wanted,
        )
        made = _TABLE.body(
            "created",
            session_id=created.session_id,
            url=request.origin + created.page,
            vendor_data=created.reference,
            host=request.origin,
            token=token,
        )
        reply = Reply(status=201, body=_json({"status": "success", "verification": made}))
        return _signed(reply, self._session_of(created))

    def _session_of(self, created: Created) -> VeriffSession:
        row = _TABLE.row_of(created, self._now()) | {"number": crc32(created.session_id.encode())}
        return VeriffSession(end_user=created.made.get("endUserId"), **row)

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
        limited = self._limit(session, first=first)
        if limited is not None:
            return with_headers(_error(429, "1429", "Too many requests"), *limited)
        undecided = session.decision is None or (first and session.scenario == "decided_later")
        body = {
            "status": "success",
            "verification": None if undecided else self._verification(session),
            "technicalData": {"ip": "203.0.113.7"},
        }
        reply = failing(Reply(status=200, body=_json(body)), session.failure)
        return reply if session.failure == "bad_gateway" else _signed(reply, session)

    def _verification(self, session: VeriffSession) -> dict[str, Any]:
        at = self._now() - 90 if session.changed_at is None else session.changed_at
        decided = datetime.fromtimestamp(int(at), UTC)
        person = session.person
        approval = _TABLE.body(
            "approval",
            session_id=session.session_id,
            attempt_id=session.attempt_id,
            vendor_data=session.subject_reference,
            end_user=session.end_user,
            decided=decided.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            person=_TABLE.body("person", person, year=(person.born or "")[:4]) if person else {},
            document=_document(person) if person else {},
        )
        return merged(approval, session.decision or {})

    def _sessions(self) -> Sequence[VeriffSession]:
        return [VeriffSession(**row) for row in _TABLE.rows(self._now())]


def _document(person: Person) -> dict[str, Any]:
    valid_until = person.expires.isoformat() if person.expires else "2199-04-20"
    return _TABLE.body("document", person, valid_until=valid_until)


def _refused(headers: Mapping[str, str]) -> Reply | None:
    """The error in the API key; None if there is none."""
    client = headers.get("x-auth-client")
    if client is None:
        return _error(401, "1101", "Mandatory X-AUTH-CLIENT header containing the API key missing")
    return None if client == API_KEY else _error(401, "1102", "The supplied API key does not exist")


def _unsigned(headers: Mapping[str, str], signed: bytes) -> Reply | None:
    """The error in the signature over the body or the id of a session; None if there is none."""
    signature = headers.get("x-hmac-signature")
    if signature is None:
        return _error(401, "1801", "Mandatory X-HMAC-SIGNATURE header is missing")
    if signature.lower() != hmac_hex(SHARED_SECRET, signed):
        return _error(401, "1802", "The X-HMAC-SIGNATURE does not match")
    return None


def _error(status: int, code: str, message: str) -> Reply:
    # Four digits: only some of Veriff's are published.
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
