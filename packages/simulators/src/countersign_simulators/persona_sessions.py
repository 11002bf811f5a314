"""The inquiries of the simulated Persona; every person in them is invented.

Written from Persona's OpenAPI description, version 2025-12-08.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final
from zlib import crc32

from countersign_simulators.base import Session, timestamp
from countersign_simulators.people import Person, birthday, day

_FENWICK: Final = Person(
    first="FENWICKA",
    last="BRAMBLETHORPE",
    street="8801 PERIWINKLE GASKET RD",
    city="SAN FRANCISCO",
    postcode="94110",
    number="B8801447",
    born="1991-07-22",
    kind="dl",
)
_TALLULAH: Final = Person(
    first="TALLULAHINE",
    last="GRIMBLEFORD",
    street="16 COPPER DANDELION MEWS",
    city="SACRAMENTO",
    number="I16004242",
    postcode="95814",
    kind="id",
    born="1963-11-05",
)
_PERCIVALD: Final = Person(
    first="PERCIVALD",
    last="OOZLEWICK",
    street="52 TIN NIGHTINGALE PL",
    city="CAMBRIDGE",
    number="S52730009",
    state="MA",
    postcode="02139",
    born="1988-02-29",
    kind="dl",
)
_ANOTHER: Final = replace(_PERCIVALD, number="S52738888")
"""Whose licence is in an inquiry next to the buyer's own document."""
_PERSONAL: Final = ("first", "last", "street", "number", "email", "born")


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaSession(Session):
    """An inquiry, and how Persona behaves when it is asked for it."""

    data: Mapping[str, Any]
    included: Sequence[Mapping[str, Any]]
    failure: str | None = None


def session_id(name: str) -> str:
    """The identifier of the inquiry with this CamelCase name."""
    return f"inq_{f'Sim{name}'.ljust(28, '0')}"


def all_sessions(now: float) -> Sequence[PersonaSession]:
    """Every inquiry, with dates as of this Unix time."""
    return (*_verified(now), *_unproved(now), *_states(now), *_failing(now))


def time(now: float, *, minutes_ago: float = 0) -> str:
    """A time as Persona writes it."""
    return timestamp(now - 60 * minutes_ago).replace("Z", ".000Z")


# --- the objects of Persona ---------------------------------------------------------------------


def _check(
    name: str, status: str = "passed", metadata: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """One of the checks of a verification."""
    return {
        "name": name,
        "status": status,
        "reasons": [],
        "requirement": "required",
        "metadata": dict(metadata or {}),
    }


def _common(
    now: float, status: str, country: str, checks: list[dict[str, Any]], minutes_ago: float
) -> dict[str, Any]:
    """The attributes that every verification has."""
    completed = None if status in {"initiated", "submitted"} else time(now, minutes_ago=minutes_ago)
    return {
        "status": status,
        "created-at": time(now, minutes_ago=minutes_ago + 3),
        "created-at-ts": int(now - (minutes_ago + 3) * 60),
        "submitted-at": time(now, minutes_ago=minutes_ago + 1),
        "submitted-at-ts": int(now - (minutes_ago + 1) * 60),
        "completed-at": completed,
        "completed-at-ts": completed and int(now - minutes_ago * 60),
        "redacted-at": None,
        "country-code": country,
        "tags": [],
        "checks": checks,
    }


def government_id_of(
    person: Person, now: float, status: str = "passed", minutes_ago: float = 10
) -> dict[str, Any]:
    """The attributes of a `verification/government-id`."""
    has_address = person.kind != "pp"
    verdict = "passed" if status == "passed" else "failed"
    checks = [
        _check("id_barcode_detection", verdict),
        _check("id_expired_detection", "passed"),
        _check("id_selfie_comparison", "not_applicable"),
    ]
    return _common(now, status, person.country, checks, minutes_ago) | {
        "entity-confidence-reasons": [],
        "entity-confidence-score": 99.0,
        "front-photo-url": "https://files.persona.example/front.jpg?access_token=simulated",
        "back-photo-url": None,
        "photo-urls": [],
        "selfie-photo": None,
        "selfie-photo-url": None,
        "video-url": None,
        "id-class": person.kind,
        "capture-method": "auto",
        "name-first": person.first,
        "name-middle": None,
        "name-last": person.last,
        "name-suffix": None,
        "native-name-first": None,
        "native-name-middle": None,
        "native-name-last": None,
        "native-name-title": None,
        "birthdate": person.born,
        "address-street-1": person.street if has_address else None,
        "address-street-2": None,
        "address-city": person.city if has_address else None,
        "address-subdivision": person.state if has_address else None,
        "address-postal-code": person.postcode if has_address else None,
        "issuing-authority": person.state,
        "issuing-subdivision": person.state,
        "nationality": None,
        "document-number": None,
        "visa-status": None,
        "issue-date": day(now, years=-4).isoformat(),
        "expiration-date": (person.expires or day(now, years=4)).isoformat(),
        "designations": None,
        "birthplace": None,
        "endorsements": None,
        "height": None,
        "sex": None,
        "restrictions": None,
        "vehicle-class": None,
        "identification-number": person.number,
        "from-reusable-persona": False,
    }


def _redacted(attributes: dict[str, Any], now: float) -> dict[str, Any]:
    """It still says `passed`; what it knew of the person is null."""
    kept = {"status", "created-at", "created-at-ts", "checks", "tags", "from-reusable-persona"}
    empty: dict[str, list[str]] = {"entity-confidence-reasons": [], "photo-urls": []}
    gone = {name: value if name in kept else None for name, value in attributes.items()}
    return gone | empty | {"redacted-at": time(now, minutes_ago=1)}


def _aamva(person: Person, now: float, birth: str = "passed") -> dict[str, Any]:
    """The attributes of a `verification/aamva`; `birth` is the check of the birth date."""
    checks = [
        _check("aamva_identification_number_comparison"),
        _check("aamva_birthdate_comparison", birth),
        _check("aamva_address_comparison"),
        _check("aamva_name_comparison"),
    ]
    return _common(now, "passed", person.country, checks, 9) | {
        "name-first": person.first,
        "name-last": person.last,
        "birthdate": person.born,
        "issue-date": day(now, years=-4).isoformat(),
        "expiration-date": day(now, years=4).isoformat(),
        "address-postal-code": person.postcode,
        "issuing-authority": person.state,
        "identification-number": person.number,
    }


def _database(person: Person, now: float, match: str) -> dict[str, Any]:
    """The attributes of a `verification/database`; `match` is how birth date and ZIP matched."""
    requirements = [
        {
            "name": name,
            "match-result": match,
            "status": "passed",
            "comparisons": [
                {"type": kind, "match-level-minimum": "partial", "match-result": match}
            ],
        }
        for name, kind in (
            ("name_last", "string_similarity"),
            ("birthdate", "date_similarity"),
            ("address_postal_code", "string_difference"),
        )
    ]
    compared = _check("database_identity_comparison", metadata={"check-requirements": requirements})
    address = {
        "street-1": person.street,
        "street-2": None,
        "city": person.city,
        "subdivision": person.state,
        "postal-code": person.postcode,
    }
    return (
        _common(now, "passed", person.country, [compared, _check("database_po_box_detection")], 9)
        | {f"address-{name}": value for name, value in address.items()}
        | {f"normalized-address-{name}": value for name, value in address.items()}
        | {
            "birthdate": person.born,
            "name-first": person.first,
            "name-middle": None,
            "name-last": person.last,
            "phone-number": None,
            "email-address": person.email,
            "identification-number": None,
            "document-number": None,
            "document-issuing-date": None,
            "document-expiry-date": None,
            "document-issuing-subdivision": None,
        }
    )


def fields_of(person: Person) -> dict[str, Any]:
    """What the buyer typed, under the names of the inquiry template."""
    typed = {
        "name-first": person.first,
        "name-middle": None,
        "name-last": person.last,
        "address-street-1": person.street,
        "address-street-2": None,
        "address-city": person.city,
        "address-subdivision": person.state,
        "address-postal-code": person.postcode,
        "address-country-code": person.country,
        "birthdate": person.born,
        "email-address": person.email,
        "phone-number": None,
        "identification-number": None,
    }
    return {
        name: {"type": "date" if name == "birthdate" else "string", "value": value}
        for name, value in typed.items()
    }


def attributes_of(status: str, subject: str, fields: object, now: float) -> dict[str, Any]:
    """The attributes of an inquiry."""
    decided = time(now, minutes_ago=5) if status in {"approved", "declined"} else None
    finished = None if status in {"created", "pending", "expired"} else time(now, minutes_ago=8)
    return {
        "status": status,
        "reference-id": subject,
        "note": None,
        "behaviors": {},
        "tags": [],
        "creator": "simulator@persona.example",
        "reviewer-comment": None,
        "created-at": time(now, minutes_ago=30),
        "updated-at": time(now, minutes_ago=5),
        "started-at": time(now, minutes_ago=25),
        "expires-at": None,
        "completed-at": finished,
        "failed-at": time(now, minutes_ago=5) if status == "failed" else None,
        "marked-for-review-at": None,
        "decisioned-at": decided,
        "expired-at": time(now, minutes_ago=5) if status == "expired" else None,
        "redacted-at": None,
        "previous-step-name": "verification_government_id",
        "next-step-name": "success",
        "fields": fields,
    }


def relationships_of(included: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    links = [{"type": one["type"], "id": one["id"]} for one in included]
    return {
        "account": {"data": {"type": "account", "id": "act_SimAccount00000000000000"}},
        "inquiry-template": {"data": {"type": "inquiry-template", "id": "itmpl_SimTemplate"}},
        "reviewer": {"data": {"type": "workflow-run", "id": "wfr_SimDecision"}},
        "reports": {"data": []},
        "verifications": {"data": links},
        "sessions": {"data": []},
        "documents": {"data": []},
        "selfies": {"data": []},
    }


def _proof(variant: str, person: Person, now: float) -> tuple[str, dict[str, Any]]:
    """The type and the attributes of a verification; a document by its status."""
    others = {
        "aamva": ("aamva", _aamva(person, now)),
        "aamva_without_birth": ("aamva", _aamva(person, now, "not_applicable")),
        "partial_match": ("database", _database(person, now, "partial")),
        "selfie": ("selfie", {"status": "passed", "checks": []}),
        "passed_of_another": ("government-id", government_id_of(_ANOTHER, now, minutes_ago=20)),
        "redacted": ("government-id", _redacted(government_id_of(person, now), now)),
    }
    if variant in others:
        return others[variant]
    minutes_ago = 10 if variant == "passed" else 20
    return "government-id", government_id_of(person, now, variant, minutes_ago)


# --- the inquiries ------------------------------------------------------------------------------


def _session(
    now: float,
    name: str,
    scenario: str = "verified",
    person: Person = _FENWICK,
    *,
    status: str = "approved",
    typed: Person | None = None,
    zip_: str | None = None,
    reference: str | None = None,
    proofs: tuple[str, ...] = ("passed",),
    redacted_at: str | None = None,
    own_document: bool = True,
    failure: str | None = None,
) -> PersonaSession:
    """An inquiry about a person.

    Args:
        now: Unix time.
        name: in CamelCase, for its identifier.
        scenario: see `Session`.
        person: who is on the document.
        status: of the inquiry.
        typed: whose data the buyer typed, if not that of the document.
        zip_: the ZIP code to ship to, if not that of the document.
        reference: in the inquiry, if not the one that the buyer's server sends.
        proofs: the verifications, see `_proof`.
        redacted_at: when the inquiry was redacted.
        own_document: False for a document that several inquiries share.
        failure: what goes wrong.
    """
    own_id, subject = session_id(name), f"buyer-{name.lower()}"
    if own_document:
        # So that no two inquiries are the same buyer by accident.
        person = replace(person, number=f"{person.number}{crc32(name.encode()):08X}")
    included: list[dict[str, Any]] = []
    for index, variant in enumerate(proofs):
        kind, attributes = _proof(variant, person, now)
        included.append(
            {
                "type": f"verification/{kind}",
                "id": f"ver_Sim{name}{index}",
                "attributes": attributes,
                "relationships": {"inquiry": {"data": {"type": "inquiry", "id": own_id}}},
            }
        )
    if scenario == "date_of_birth_withheld":
        del included[0]["attributes"]["birthdate"]
    attributes = attributes_of(status, reference or subject, fields_of(typed or person), now)
    others = _ANOTHER.texts(*_PERSONAL) if "passed_of_another" in proofs else ()
    is_gone = redacted_at is not None or "redacted" in proofs
    return PersonaSession(
        session_id=own_id,
        scenario=scenario,
        shipping_zip=zip_ or person.postcode,
        subject_reference=subject,
        personal=() if is_gone else (*person.texts(*_PERSONAL), *others),
        data={
            "type": "inquiry",
            "id": own_id,
            "attributes": attributes | {"redacted-at": redacted_at},
            "relationships": relationships_of([] if redacted_at else included),
        },
        included=included,
        failure=failure,
    )


def _verified(now: float) -> Sequence[PersonaSession]:
    shared = replace(_PERCIVALD, number="S52739999")
    plus_four = replace(_TALLULAH, postcode="95814-4801")
    nine_digits = replace(_TALLULAH, postcode="958144801")
    return [
        _session(now, "Verified"),
        _session(now, "VerifiedOther", person=_TALLULAH),
        _session(now, "SameDocumentOnce", person=shared, own_document=False),
        _session(now, "SameDocumentAgain", person=shared, own_document=False),
        _session(now, "LeadingZeroZip", person=_PERCIVALD),
        _session(now, "ZipPlusFour", person=plus_four, zip_="95814"),
        _session(now, "ZipNineDigits", person=nine_digits, zip_="95814"),
        _session(now, "BirthdayToday", person=_adult(birthday(now, 18))),
        _session(now, "SecondAttempt", proofs=("failed", "passed")),
        _session(now, "ExtraFields", failure="extra_fields"),
        _session(now, "ByLicenceRegister", proofs=("aamva",)),
        _session(now, "TypedOtherwise", typed=_PERCIVALD),
    ]


def _adult(born: str) -> Person:
    return replace(_FENWICK, first="QUORIANNE", last="SLUDGEPINNACLE", number="D1800000", born=born)


def _unproved(now: float) -> Sequence[PersonaSession]:
    """Inquiries that Persona has approved, and that still prove too little."""
    tomorrow = _adult(birthday(now, 18, days_later=1))
    under_age = _adult(birthday(now, 16, days_later=100))
    expired = replace(_TALLULAH, expires=day(now, years=-1) - timedelta(days=1))
    passport = replace(_TALLULAH, kind="pp", number="P16004243", state=None)
    canada = replace(_TALLULAH, city="KELOWNA", state="BC", postcode="V1Y 6N2", country="CA")
    germany = replace(_TALLULAH, city="WEGSCHEID", state="BY", postcode="94110", country="DE")
    full_width = replace(_TALLULAH, postcode="\uff19\uff15\uff18\uff11\uff14")
    return [
        _session(now, "BirthdayTomorrow", "birthday_tomorrow", tomorrow),
        _session(now, "Underage", "underage", under_age),
        _session(now, "ExpiredDocument", "document_expired", expired),
        _session(now, "NoBirth", "no_date_of_birth", replace(_TALLULAH, born=None)),
        # The key may not see this attribute.
        _session(now, "BirthWithheld", "date_of_birth_withheld"),
        _session(now, "Passport", "no_address", passport, zip_="95814"),
        _session(now, "ForeignAddress", "foreign_address", canada, zip_="95814"),
        _session(now, "ForeignSameDigits", "foreign_same_digits", germany),
        _session(now, "ZipMismatch", "zip_mismatch", zip_="90210"),
        _session(now, "ZipFullWidth", "zip_not_ascii", full_width, zip_="95814"),
        _session(
            now,
            "TypedContradicts",
            "user_entered_contradicts",
            _PERCIVALD,
            typed=_FENWICK,
            zip_=_FENWICK.postcode,
        ),
        _session(now, "NearMatch", "database_near_match", proofs=("partial_match",)),
        _session(now, "BirthNotCompared", "birth_not_compared", proofs=("aamva_without_birth",)),
        _session(now, "OnlySelfie", "no_passed_verification", proofs=("selfie",)),
        # The relationships name verifications that the key may not read.
        _session(now, "Withheld", "verifications_withheld", failure="withheld"),
        # The ZIP code differs too, for vendors that send no reference to the buyer.
        _session(
            now, "OtherSubject", "other_subject", zip_="94118", reference="buyer-of-another-vendor"
        ),
        # An adult's passport, and the licence of somebody else.
        _session(
            now,
            "LicenceOfAnother",
            "licence_of_another",
            passport,
            proofs=("passed", "passed_of_another"),
            zip_=_PERCIVALD.postcode,
        ),
        _session(now, "TestMode", "test_mode", failure="test_mode"),
        _session(now, "NoEnvironment", "no_environment", failure="no_environment"),
    ]


def _states(now: float) -> Sequence[PersonaSession]:
    """Inquiries with another status than `approved`, or whose data is gone."""
    return [
        _session(now, "Created", "requires_input", status="created", proofs=()),
        _session(now, "Pending", "begun", status="pending", proofs=("requires_retry",)),
        _session(now, "Completed", "pending", status="completed"),
        _session(now, "DecidedLater", "decided_later", failure="decided_later"),
        _session(now, "NeedsReview", "review", status="needs_review"),
        _session(now, "Declined", "declined", status="declined"),
        _session(now, "Failed", "failed", status="failed", proofs=("failed",)),
        _session(now, "Expired", "expired", status="expired", proofs=()),
        _session(now, "UnknownStatus", "unknown_status", status="approved_provisionally"),
        _session(now, "Redacted", "redacted", redacted_at=time(now, minutes_ago=1)),
        _session(now, "ProofRedacted", "proof_redacted", proofs=("redacted",)),
    ]


def _failing(now: float) -> Sequence[PersonaSession]:
    """Inquiries that are fine, at a provider that is not."""
    return [
        _session(now, "LimitedOnce", failure="limited_once"),
        _session(now, "LimitedBriefly", failure="limited_briefly"),
        _session(now, "LimitedLong", "rate_limited", failure="limited_long"),
        _session(now, "WrongId", "wrong_id", failure="wrong_id"),
        _session(now, "Truncated", "truncated", failure="truncated"),
        _session(now, "Huge", "huge", failure="huge"),
        _session(now, "ServerError", "server_error", failure="server_error"),
        _session(now, "BadGateway", "bad_gateway_html", failure="bad_gateway"),
        _session(now, "Slow", "slow", failure="slow"),
        _session(now, "Cut", "cut", failure="cut"),
    ]
