"""A simulated Veriff: `GET /v1/sessions/{id}/decision`, signed, and both of its webhooks.

Written from Veriff's own pages (API reference "/v1/sessions/{sessionId}/decision", "Decision data",
"HMAC authentication", "Decision webhook", "Verification session status codes").
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from countersign_simulators.base import (
    Headers,
    Reply,
    Request,
    Session,
    SimulatedProvider,
    Webhook,
    failing,
    hmac_hex,
    merged,
    with_headers,
)
from countersign_simulators.people import Person, birthday, day

API_KEY: Final = "5117fab1-a91c-4000-8000-0000000000a1"
SHARED_SECRET: Final = "5117fab1-5ec2-4000-8000-0000000000b2"  # noqa: S105 - of a simulator
INTEGRATION: Final = "5117fab1-0000-4000-8000-00000000000a"
TEST_INTEGRATION: Final = "5117fab1-0000-4000-8000-0000000000ff"
_DECISION: Final = re.compile(r"/v1/sessions/([^/]+)/decision")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LIMITS: Final[Mapping[str | None, Headers]] = {
    "limited": (("Retry-After", "120"),),
    "limited_briefly": (("Retry-After", "1"),),
    "limited_once": (),
}
"""Headers of a request that is one too many: the first one, or all of `limited`."""
_JSON: Final = ("Content-Type", "application/json; charset=utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session(Session):
    """A session, and how its decision differs from a plain approval."""

    number: int
    person: Person | None
    decision: Mapping[str, Any] | None
    """Members that replace those of a plain approval; None: there is no decision."""
    failure: str | None = None
    integration: str | None = None
    """The integration that the response names; Veriff's reference lists no such header."""
    old_headers: bool = False
    """Whether client and signature are in the `vrf-` headers that older pages of Veriff show."""

    @property
    def attempt_id(self) -> str:
        return f"a77e3970-0000-4000-8000-{self.number:012d}"


class Veriff(SimulatedProvider[_Session]):
    """One integration of Veriff."""

    name: Final = "veriff"
    credentials: Final[Mapping[str, object]] = {
        "api_key": API_KEY,
        "shared_secrets": [SHARED_SECRET],
        "integration_id": INTEGRATION,
        "environment": "live",
    }

    def answer(self, request: Request) -> Reply:
        """The decision of a session."""
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
        session = self._find(found[1])
        if session is None or session.scenario == "redacted":
            return _error(404, "1203", "The session was not found")
        return self._decide(session, first=self._is_first_request(session.session_id))

    def webhook(self, session_id: str) -> Webhook:
        """The decision webhook; for a session without a decision, the event webhook."""
        session = self._known(session_id)
        if session.decision is None or session.scenario == "redacted":
            body = _json(
                {
                    "id": session_id,
                    "attemptId": session.attempt_id,
                    "feature": "selfid",
                    "code": 7002,
                    "action": "submitted",
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

    def _decide(self, session: _Session, *, first: bool) -> Reply:
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

    def _verification(self, session: _Session) -> dict[str, Any]:
        decided = datetime.fromtimestamp(int(self._now()) - 90, UTC)
        written = decided.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        approval: dict[str, Any] = {
            "id": session.session_id,
            "attemptId": session.attempt_id,
            "vendorData": session.subject_reference,
            "endUserId": None,
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

    def _sessions(self) -> Sequence[_Session]:
        now = self._now()
        return (*_verified(now), *_undecided(), *_unproved(now), *_failing())


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
        "validUntil": "2199-04-20",
    }


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
    if signature.lower() != hmac_hex(SHARED_SECRET, session_id.encode()):
        return _error(401, "1802", "The X-HMAC-SIGNATURE does not match")
    return None


def _error(status: int, code: str, message: str) -> Reply:
    # Four digits: which ones Veriff uses where is published only in part.
    body = _json({"status": "fail", "code": code, "message": message})
    return Reply(status=status, body=body, headers=(_JSON,))


def _signed(reply: Reply, session: _Session) -> Reply:
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


# --- the sessions; every person in them is invented ---------------------------------------------

_APPROVED: Final[Mapping[str, Any]] = {}
_ANOTHER_ID: Final = "7e51ff00-0000-4000-8000-000000000001"


def _session(
    number: int,
    scenario: str,
    person: Person | None = None,
    decision: Mapping[str, Any] | None = _APPROVED,
    *,
    version: str = "4",
    **other: Any,  # noqa: ANN401 - the fields of _Session
) -> _Session:
    """A session whose id is a UUID of this version that ends in its number."""
    fields = {"shipping_zip": "93701"} | other
    return _Session(
        session_id=f"7e51ff00-0000-{version}000-8000-{number:012d}",
        number=number,
        scenario=scenario,
        person=person,
        personal=person.texts("first", "last", "born", "number", "street") if person else (),
        decision=decision,
        **fields,
    )


def _buyer(number: int, first: str, last: str, **other: Any) -> Person:  # noqa: ANN401 - of Person
    """A person with an address and a document of their own."""
    usual = {
        "born": "1987-03-14",
        "number": f"VQX{number:07d}",
        "street": f"{4100 + number} Crumblequince Terrace",
        "city": "Fresno",
        "state": "California",
        "postcode": "93701",
        "country": "USA",
    }
    return Person(first=first, last=last, **(usual | other))


def _without_data(status: str, code: int, reason: int | None) -> Mapping[str, Any]:
    """The members of a decision that knows nothing of a person."""
    return {
        "status": status,
        "code": code,
        "reasonCode": reason,
        "reason": None if reason is None else "Made up by the simulator",
        "person": {"firstName": None, "lastName": None, "dateOfBirth": None, "addresses": None},
        "document": {"type": None, "number": None, "country": None, "validUntil": None},
    }


def _verified(now: float) -> Sequence[_Session]:
    first = _buyer(1, "PERPETUA", "WIGGLESTONE", street="418 Brindlemoss Terrace")
    at = {"street": "77 Old Quincemarsh Road", "city": "San Francisco", "postcode": "94110-2231"}
    twice = _buyer(2, "BARNABOLD", "FENWHISTLE", born="1979-11-02", **at)
    nine_digits = _buyer(4, "ISOLDINA", "MUMBLETHORPE", postcode="937211234")
    boston = {"city": "Boston", "state": "Massachusetts", "postcode": "02139"}
    leading_zero = _buyer(5, "GUNDRICK", "SPARROWVANE", **boston)
    eighteen = _buyer(6, "LUMINELLE", "OXTROTTER", born=birthday(now, 18))
    unknown_members = {"holographicAura": {"hue": "mauve"}, "futureList": [1, 2.5, None]}
    return (
        _session(1, "verified", first, subject_reference="buyer-veriff-0001"),
        # Two sessions of one document: one buyer. The second has an identifier of version 3.
        _session(2, "verified", twice, shipping_zip="94110"),
        _session(3, "verified", twice, shipping_zip="94110", version="3"),
        _session(4, "verified", nine_digits, shipping_zip="93721"),
        _session(5, "verified", leading_zero, shipping_zip="02139"),
        _session(6, "verified", eighteen),
        _session(7, "verified", _buyer(7, "THADDEUSINE", "PEBBLEWORTH"), unknown_members),
        # Veriff's pages disagree about codes: only the status counts.
        _session(8, "verified", _buyer(8, "ORSOLVINA", "GLIMMERPATCH"), {"code": 9121}),
        # The headers as older pages of Veriff show them.
        _session(
            11,
            "verified",
            _buyer(11, "ZEPHYRINDA", "QUILLHOOTER"),
            integration=INTEGRATION,
            old_headers=True,
        ),
        _session(9, "verified", _buyer(9, "CASPERION", "DUNDERWILLOW"), failure="limited_briefly"),
        _session(10, "verified", _buyer(10, "WILHELMOT", "TANGLEBROOK"), failure="limited_once"),
    )


def _undecided() -> Sequence[_Session]:
    fraud = {"status": "declined", "code": 9102, "reasonCode": 106, "reason": "Fraud"}
    retry = _without_data("resubmission_requested", 9103, 204)
    return (
        _session(20, "pending", decision=None),
        _session(21, "review", decision=_without_data("review", 9121, None)),
        _session(22, "requires_input", decision=retry),
        _session(23, "failed", _buyer(23, "MORDECAINE", "BRISTLECOMB"), fraud),
        _session(24, "canceled", decision=_without_data("abandoned", 9104, None)),
        _session(25, "expired", decision=_without_data("expired", 9104, None)),
        # Deleted at Veriff: the session is gone from the API.
        _session(26, "redacted"),
    )


def _unproved(now: float) -> Sequence[_Session]:
    under_age = _buyer(27, "JUNIPERELLA", "SNICKETWELL", born=birthday(now, 16))
    tomorrow = _buyer(28, "ALDERWYNE", "COPPERNETTLE", born=birthday(now, 18, days_later=1))
    yesterday = day(now, days=-1).isoformat()
    france = {"state": "Île-de-France", "postcode": "75008", "country": "France"}
    at = {"street": "12 Rue du Hérisson Violet", "city": "Paris", **france}
    unparsed = [{"fullAddress": "4132 Crumblequince Terrace, Fresno 93701"}]
    passport = {"person": {"addresses": ...}, "document": {"type": "PASSPORT"}}
    declined = {"status": "declined", "code": 9001, "reasonCode": 102}

    def of(
        number: int,
        scenario: str,
        names: tuple[str, str],
        decision: Mapping[str, Any] = _APPROVED,
        **other: Any,  # noqa: ANN401 - the fields of _Session
    ) -> _Session:
        return _session(number, scenario, _buyer(number, *names), decision, **other)

    return (
        _session(27, "underage", under_age),
        _session(28, "of_age_tomorrow", tomorrow),
        of(
            29,
            "document_expired",
            ("ROSAMUNDIA", "FLINTWICKER"),
            {"document": {"validUntil": yesterday}},
        ),
        # An age guessed from the face is in the decision, and is no proof.
        of(30, "no_birth_date", ("TIBERIOLA", "HUCKLEMARSH"), {"person": {"dateOfBirth": None}}),
        of(31, "no_address", ("ESMERALDINE", "VANTERPOOLE"), passport),
        of(
            32,
            "unparsed_address",
            ("HORATIANNE", "WOBBLECHIME"),
            {"person": {"addresses": unparsed}},
        ),
        _session(
            33,
            "foreign_address",
            _buyer(33, "FRANZISKANE", "LEBERWURZEL", **at),
            {"document": {"country": "FR", "type": "ID_CARD"}},
            shipping_zip="75008",
        ),
        _session(34, "zip_mismatch", _buyer(34, "BALTHAZINE", "THRUMBLETON", postcode="93702")),
        # A check without a document returns what somebody typed.
        of(
            35,
            "user_entered",
            ("QUENTINABEL", "MOSSGROVER"),
            {"document": _without_data("", 0, None)["document"]},
        ),
        of(36, "test_session", ("VALENTIQUE", "GORSEBERRY"), integration=TEST_INTEGRATION),
        # The ZIP code differs too, for vendors that send no reference to the buyer.
        of(
            37,
            "other_subject",
            ("PHILOMENIX", "BUTTERWHIT"),
            {"vendorData": "buyer-of-somebody-else"},
            shipping_zip="93722",
            subject_reference="buyer-veriff-0037",
        ),
        of(
            38,
            "unknown_status",
            ("GWENDOLINUS", "PIDDLECREEK"),
            {"status": "approved_conditionally"},
        ),
        of(39, "other_session", ("ARCHIBELLA", "NUTHATCHER"), {"id": _ANOTHER_ID}),
        # The code says yes, the status says no.
        of(40, "contradicting_code", ("LEOPOLDINE", "SQUIRRELHOPE"), declined),
    )


def _failing() -> Sequence[_Session]:
    later = _buyer(59, "MARIGOLDO", "TWISTLEDOWN")

    def of(number: int, scenario: str, first: str, last: str) -> _Session:
        return _session(number, scenario, _buyer(number, first, last), failure=scenario)

    return (
        of(50, "truncated", "OCTAVIUSA", "DRIZZLEFORD"),
        _session(51, "huge", failure="huge"),
        _session(52, "error_500", failure="server_error"),
        _session(53, "html_502", failure="bad_gateway"),
        of(54, "slow", "SERAPHINO", "CLATTERBECK"),
        of(55, "cut", "EUPHEMIUS", "RUMPLESTANE"),
        of(56, "unsigned", "CLEMENTOR", "WHIFFLETREE"),
        of(57, "wrong_signature", "DULCINETTE", "GRUMBLEFEN"),
        _session(58, "rate_limited", failure="limited"),
        # Undecided when it is requested for the first time, approved after that.
        _session(59, "decided_later", later),
    )
