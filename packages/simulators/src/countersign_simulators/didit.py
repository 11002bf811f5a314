"""A simulated Didit: `GET /v3/session/{id}/decision/`, deletion, and signed webhooks.

Written from Didit's own pages ("Retrieve session", "API errors", "Rate limiting", "Webhooks").
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from countersign_simulators.base import (
    JSON_TYPE,
    Clock,
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
)
from countersign_simulators.people import Person, birthday, day

API_KEY: Final = "didit-simulated-application-key-0001"
WEBHOOK_SECRET: Final = "didit-simulated-destination-secret-0001"  # noqa: S105 - of a simulator
_PATH: Final = re.compile(r"/v3/session/(?P<id>[^/]+)/(?P<what>decision|delete)(?P<slash>/?)")
_LIMIT: Final = 100
_LIMITED: Final = (("X-RateLimit-Limit", str(_LIMIT)), ("X-RateLimit-Remaining", "0"))
_LIMITS: Final[Mapping[str | None, Headers]] = {
    "limited": (("Retry-After", "120"),),
    "limited_briefly": (("Retry-After", "1"),),
    "limited_once": (),
}
"""Headers of a request that is one too many: the first one, or all of `limited`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session(Session):
    """A session, and how its decision differs from a plain approval."""

    number: int
    person: Person | None
    decision: Mapping[str, Any]
    """Members that replace those of a plain approval."""
    document: Mapping[str, Any]
    """The same for its `id_verifications[0]`."""
    failure: str | None = None


class Didit(SimulatedProvider[_Session]):
    """One application of Didit."""

    name: Final = "didit"
    credentials: Final[Mapping[str, object]] = {
        "api_key": API_KEY,
        "webhook_secrets": [WEBHOOK_SECRET],
    }

    def __init__(self, now: Clock) -> None:
        super().__init__(now)
        self._deleted = {each.session_id for each in self.sessions if each.scenario == "redacted"}
        self._decided = 0

    def answer(self, request: Request) -> Reply:
        """The decision of a session, or its deletion."""
        path = _PATH.fullmatch(request.path)
        if path is not None and not path["slash"]:
            # Clients follow it without the key.
            return _detail(301, "", ("Location", request.path + "/"))
        refusal = _refusal(request.headers.get("x-api-key"))
        if refusal is not None:
            return refusal
        session = self._find(path["id"]) if path else None
        if path is None or session is None or session.session_id in self._deleted:
            return _detail(404, "Not found.")
        if request.method != ("DELETE" if path["what"] == "delete" else "GET"):
            return _detail(405, f'Method "{request.method}" not allowed.')
        if path["what"] == "decision":
            return self._decide(session)
        self._deleted.add(session.session_id)
        return Reply(status=204, headers=())

    def webhook(self, session_id: str) -> Webhook:
        """A `status.updated` message, signed in Didit's three ways."""
        session = self._known(session_id)
        now = int(self._now())
        decision = self._decision(session)
        message = {
            "event_id": f"evt-{session.number:04d}-{now}",
            "webhook_type": "status.updated",
            "timestamp": now,
            "created_at": now - 600,
            "session_id": session_id,
            "session_kind": "user",
            "status": decision["status"],
            "environment": decision["environment"],
            "vendor_data": session.subject_reference,
            "workflow_id": decision["workflow_id"],
            "decision": decision,
        }
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

    def _decide(self, session: _Session) -> Reply:
        first = self._is_first_request(session.session_id)
        self._decided += 1
        if session.failure == "server_error":
            return _detail(500, "A server error occurred.")
        if session.failure in _LIMITS and (first or session.failure == "limited"):
            return _detail(429, "Request was throttled.", *_LIMITED, *_LIMITS[session.failure])
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

    def _decision(self, session: _Session) -> dict[str, Any]:
        made = datetime.fromtimestamp(int(self._now()) - 600, UTC).isoformat()
        person = session.person
        documents = [merged(_document(person), session.document)] if person else []
        passed: dict[str, Any] = {"status": "Approved", "score": 97.0, "warnings": []}
        approval: dict[str, Any] = {
            "session_id": session.session_id,
            "session_kind": "user",
            "session_number": 43000 + session.number,
            "status": "Approved",
            "environment": "live",
            "workflow_id": "d1d17000-f10e-4000-8000-000000000000",
            "features": ["ID_VERIFICATION", "LIVENESS", "FACE_MATCH"],
            "vendor_data": session.subject_reference,
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
        return merged(approval, session.decision)

    def _sessions(self) -> Sequence[_Session]:
        now = self._now()
        return (*_verified(now), *_refused(now), *_undecided(), *_failing())


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


# --- the sessions; every person in them is invented ---------------------------------------------


def _session(
    number: int,
    scenario: str,
    person: Person | None = None,
    decision: Mapping[str, Any] | None = None,
    document: Mapping[str, Any] | None = None,
    *,
    more_personal: tuple[str, ...] = (),
    **other: Any,  # noqa: ANN401 - the fields of _Session
) -> _Session:
    """A session whose id is a UUID that ends in its number."""
    personal = person.texts("first", "last", "born", "number", "street") if person else ()
    fields = {"shipping_zip": "95814"} | other
    return _Session(
        session_id=f"d1d17000-0000-4000-8000-{number:012d}",
        number=number,
        scenario=scenario,
        person=person,
        personal=(*personal, *more_personal),
        decision=decision or {},
        document=document or {},
        **fields,
    )


def _buyer(number: int, first: str, last: str, **other: Any) -> Person:  # noqa: ANN401 - of Person
    """A person with an address and a document of their own."""
    usual = {
        "born": "1985-08-26",
        "number": f"WZK{number:07d}",
        "street": f"{8300 + number} Marmaladegate Lane",
        "city": "Sacramento",
        "postcode": "95814",
    }
    return Person(first=first, last=last, **(usual | other))


def _bill(street: str, postcode: str, **other: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The section of a proof of address."""
    address = {"street_1": street, "postal_code": postcode, "country": "US", "is_verified": True}
    bill = {
        "status": "Approved",
        "document_type": "UTILITY_BILL",
        "poa_parsed_address": address,
        "warnings": [],
    }
    return {"poa_verifications": [merged(bill, other)]}


def _verified(now: float) -> Sequence[_Session]:
    twice = _buyer(2, "Thornabel", "Wickersnout", born="1972-12-30", postcode="95811-3046")
    nine_digits = _buyer(4, "Hubertrand", "Plumfeather", postcode="958181234")
    boston = {"city": "Boston", "state": "MA", "postcode": "02116"}
    mover, street = _buyer(8, "Oswinette", "Trundlepike", postcode="95815"), "8308 Nettlewhisk Row"
    new_address = _bill(
        street,
        "95816",
        issue_date="2026-09-01",
        name_match_score_id_verification=98.0,
        poa_parsed_address={"city": "Sacramento", "region": "CA"},
    )
    unknown_members = {"aura_checks": [{"status": "Approved", "hue": 1.0}], "future": None}
    return (
        _session(
            1,
            "verified",
            _buyer(1, "Zinnobelle", "Crackenthorpe"),
            subject_reference="buyer-didit-0001",
        ),
        # Two sessions of one document: one buyer.
        _session(2, "verified", twice, shipping_zip="95811"),
        _session(3, "verified", twice, shipping_zip="95811"),
        _session(4, "verified", nine_digits, shipping_zip="95818"),
        _session(
            5, "verified", _buyer(5, "Marzipanne", "Oldershanks", **boston), shipping_zip="02116"
        ),
        _session(6, "verified", _buyer(6, "Lysandrine", "Puddifoote", born=birthday(now, 18))),
        _session(7, "verified", _buyer(7, "Gideonora", "Swizzlecroft"), unknown_members),
        # The licence shows an old address; a bill proves the new one.
        _session(8, "verified", mover, new_address, shipping_zip="95816", more_personal=(street,)),
        _session(9, "verified", _buyer(9, "Fenwickery", "Dollopstone"), failure="limited_briefly"),
        _session(10, "verified", _buyer(10, "Rowanthia", "Grizzlewick"), failure="limited_once"),
        # The age is wrong, as in Didit's own example: the date of birth counts.
        _session(11, "verified", _buyer(11, "Peregrinda", "Hobblesworth"), document={"age": 12}),
    )


def _refused(now: float) -> Sequence[_Session]:
    tampered = {
        "status": "Declined",
        "warnings": [{"risk": "DOCUMENT_TAMPERED", "feature": "ID_VERIFICATION"}],
    }
    under_age = _buyer(22, "Tuppencia", "Brambleshaw", born=birthday(now, 16))
    tomorrow = _buyer(23, "Wolframina", "Teaspooner", born=birthday(now, 18, days_later=1))
    berlin = {"city": "Berlin", "state": "BE", "postcode": "10115", "country": "DE"}
    foreign = _buyer(27, "Brunhildegund", "Käsekuchen", street="Lila-Igel-Straße 9", **berlin)
    passport = {"document_type": "Passport", "parsed_address": None, "address": None}
    expected = {
        "date_of_birth": "1970-02-03",
        "parsed_address": {"postal_code": "95814", "country": "US"},
    }
    bill_of_another = _bill(
        "9 Nettlewhisk Row",
        "95821",
        name_match_score_id_verification=3.0,
        warnings=[{"risk": "NAME_MISMATCH_ID_VERIFICATION"}],
    )

    def of(
        number: int,
        scenario: str,
        names: tuple[str, str],
        decision: Mapping[str, Any] | None = None,
        document: Mapping[str, Any] | None = None,
        **other: Any,  # noqa: ANN401 - the fields of _Session
    ) -> _Session:
        return _session(number, scenario, _buyer(number, *names), decision, document, **other)

    return (
        of(20, "failed", ("Ambrosina", "Quaggleton"), {"status": "Declined"}, tampered),
        # Deleted at Didit: the session is gone from the API.
        _session(21, "redacted"),
        _session(22, "underage", under_age),
        _session(23, "of_age_tomorrow", tomorrow),
        of(
            24,
            "document_expired",
            ("Cordelion", "Mugglethwait"),
            document={"expiration_date": day(now, days=-1).isoformat()},
        ),
        # An age is in the decision, without the date it was computed from.
        of(
            25,
            "no_birth_date",
            ("Evangelope", "Sockburne"),
            document={"date_of_birth": None, "age": 41},
        ),
        of(26, "no_address", ("Montgomerille", "Fizzlethorn"), document=passport),
        _session(
            27,
            "foreign_address",
            foreign,
            document={"issuing_state": "DEU", "document_type": "Identity Card"},
            shipping_zip="10115",
        ),
        _session(28, "zip_mismatch", _buyer(28, "Isambardine", "Clutterbury", postcode="95822")),
        # The address was not found on the map: it is unknown whose the ZIP code is.
        of(
            29,
            "address_doubted",
            ("Araminthe", "Scrimblewood"),
            document={"parsed_address": {"is_verified": False}},
        ),
        # Approved as a whole by a workflow that does not need the document.
        of(
            30,
            "document_not_approved",
            ("Crispinelle", "Vexworthy"),
            document={"status": "In Review"},
        ),
        # What was entered when the session was created is in the decision too, and proves nothing.
        _session(
            31,
            "user_entered",
            _buyer(31, "Theodosian", "Gabblegrove", postcode="95831"),
            {"expected_details": expected},
            more_personal=("1970-02-03",),
        ),
        of(32, "test_session", ("Leontynet", "Marchbanksy"), {"environment": "sandbox"}),
        # The ZIP code differs too, for vendors that send no reference to the buyer.
        of(
            33,
            "other_subject",
            ("Drusillian", "Peppercombe"),
            {"vendor_data": "buyer-of-somebody-else"},
            shipping_zip="95819",
            subject_reference="buyer-didit-0033",
        ),
        # Approved with the bill of a neighbour, by an account that lets names differ.
        _session(
            37,
            "bill_of_another",
            _buyer(37, "Balthasette", "Grumblewood", postcode="95820"),
            bill_of_another,
            shipping_zip="95821",
            more_personal=("9 Nettlewhisk Row",),
        ),
        of(34, "unknown_status", ("Hyacintholo", "Throgbottom"), {"status": "approved"}),
        of(
            35,
            "other_session",
            ("Sebastienne", "Ruffledown"),
            {"session_id": "d1d17000-0000-4000-8000-000000000001"},
        ),
        of(36, "business", ("Eglantino", "Wobblesmith"), {"session_kind": "business"}),
    )


_WITHOUT_RESULTS: Final[Mapping[str, Any]] = dict.fromkeys(
    ("id_verifications", "liveness_checks", "face_matches", "poa_verifications")
)
_UNDECIDED: Final = {
    "pending": "In Progress",
    "review": "In Review",
    "requires_input": "Not Started",
    "awaiting_user": "Awaiting User",
    "resubmitted": "Resubmitted",
    "canceled": "Abandoned",
    "expired": "Expired",
    "document_check_expired": "Kyc Expired",
}
"""Didit's status in each scenario without a decision."""


def _undecided() -> Sequence[_Session]:
    return tuple(
        _session(number, scenario, decision={**_WITHOUT_RESULTS, "status": status})
        for number, (scenario, status) in enumerate(_UNDECIDED.items(), 40)
    )


def _failing() -> Sequence[_Session]:
    return (
        _session(50, "truncated", _buyer(50, "Octavion", "Drizzlemere"), failure="truncated"),
        _session(51, "huge", failure="huge"),
        _session(52, "error_500", failure="server_error"),
        _session(53, "html_502", failure="bad_gateway"),
        _session(54, "slow", _buyer(54, "Seraphilda", "Clatterpan"), failure="slow"),
        _session(55, "cut", _buyer(55, "Euphemond", "Rumplehurst"), failure="cut"),
        _session(56, "rate_limited", failure="limited"),
        # Undecided when it is requested for the first time, approved after that.
        _session(57, "decided_later", _buyer(57, "Marigolda", "Twistlebury")),
    )
