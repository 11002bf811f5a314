"""Made-up people for the simulated Plaid, and the whole answer that a plain success of one is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A made-up person: what the document says, and what they typed."""

    first: str
    last: str
    born: str
    number: str
    """Of the document."""
    street: str
    city: str
    region: str
    postal_code: str
    phone: str
    email: str
    id_number: str
    country: str = "US"

    @property
    def personal(self) -> tuple[str, ...]:
        """Every personal string of them."""
        return (
            self.first,
            self.last,
            self.born,
            self.number,
            self.street,
            self.city,
            self.phone,
            self.email,
            self.id_number,
        )

    @property
    def name(self) -> dict[str, str]:
        """As both the document and the form have it."""
        return {"given_name": self.first, "family_name": self.last}

    @property
    def address(self) -> dict[str, str | None]:
        """As the document has it."""
        return {
            "street": self.street,
            "city": self.city,
            "region": self.region,
            "postal_code": self.postal_code,
            "country": self.country,
        }


def stamp(unix_seconds: float) -> str:
    """A time as Plaid writes it."""
    return datetime.fromtimestamp(int(unix_seconds), UTC).isoformat().replace("+00:00", "Z")


def document(person: Person, attempt: int, status: str, session_id: str) -> dict[str, Any]:
    """One attempt at showing a document."""
    images = ("original_front", "original_back", "cropped_front", "cropped_back", "face")
    match = "match" if status != "failed" else "no_match"
    base = f"https://images.plaid.example/verifications/{session_id}/documents/{attempt}"
    return {
        "status": status,
        "attempt": attempt,
        "images": {name: f"{base}/{name}.jpeg" for name in images},
        "extracted_data": {
            "id_number": person.number,
            "category": "drivers_license",
            "expiration_date": "2199-12-31",
            "issue_date": "2020-05-29",
            "issuing_country": person.country,
            "issuing_region": person.region,
            "date_of_birth": person.born,
            "address": person.address,
            "name": person.name,
        },
        "analysis": {
            "authenticity": match,
            "image_quality": "high",
            "extracted_data": {
                "name": match,
                "date_of_birth": match,
                "expiration_date": "not_expired",
                "issuing_country": match,
            },
            "fraud_analysis_details": None,
            "image_quality_details": None,
            "aamva_verification": None,
        },
        "redacted_at": None,
    }


def success(session_id: str, person: Person, subject: str, started: float) -> dict[str, Any]:
    """A verification that passed: document and selfie shown, and the typed data matched."""
    created, completed = stamp(started - 600), stamp(started - 300)
    return {
        "id": session_id,
        "client_user_id": subject,
        "created_at": created,
        "completed_at": completed,
        "previous_attempt_id": None,
        "shareable_url": None,
        "template": {"id": "idvtmp_SimulatedTemplate", "version": 2},
        "user": {
            "phone_number": person.phone,
            "date_of_birth": person.born,
            "ip_address": None,
            "email_address": person.email,
            "name": person.name,
            "address": {**person.address, "street2": None},
            "id_number": {"value": person.id_number, "type": "us_ssn"},
        },
        "status": "success",
        "steps": steps("success", watchlist_screening="not_applicable"),
        "documentary_verification": {
            "status": "success",
            "documents": [document(person, 1, "success", session_id)],
        },
        "selfie_check": _selfie(session_id),
        "kyc_check": kyc("match"),
        "risk_check": None,
        "verify_sms": None,
        "watchlist_screening_id": None,
        "beacon_user_id": None,
        "user_id": None,
        "redacted_at": None,
        "latest_scored_protect_event": None,
    }


def steps(status: str, **other: str) -> dict[str, str]:
    """The steps, all of one status but for those that are named."""
    names: Sequence[str] = (
        "accept_tos",
        "verify_sms",
        "kyc_check",
        "documentary_verification",
        "selfie_check",
        "watchlist_screening",
        "risk_check",
    )
    return dict.fromkeys(names, status) | other


def kyc(code: str) -> dict[str, Any]:
    """Whether the typed data matched a data source, the same for each part of it."""
    return {
        "status": "success" if code == "match" else "failed",
        "address": {"summary": code, "po_box": "no", "type": "residential", "postal_code": code},
        "name": {"summary": code},
        "date_of_birth": {"summary": code},
        "id_number": {
            "summary": code,
            "ssa_verification": {"match": code, "is_deceased": False},
        },
        "phone_number": {"summary": code, "area_code": code},
    }


def without_results(status: str, step: str) -> Mapping[str, Any]:
    """The members of a verification in which no step has come to a result."""
    return {
        "status": status,
        "completed_at": None,
        "steps": steps(step),
        "documentary_verification": None,
        "selfie_check": None,
        "kyc_check": None,
    }


def _selfie(session_id: str) -> dict[str, Any]:
    base = f"https://images.plaid.example/verifications/{session_id}/selfie"
    return {
        "status": "success",
        "selfies": [
            {
                "status": "success",
                "attempt": 1,
                "capture": {"image_url": f"{base}/liveness.jpeg", "video_url": None},
                "analysis": {
                    "document_comparison": "match",
                    "liveness_check": "success",
                    "facial_analysis": None,
                },
            }
        ],
    }
