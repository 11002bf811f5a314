"""Persona's verifications: which ones are proof, and of what.

An inquiry's own `fields` were typed by somebody or filled in beforehand. What is proved stands in
the verifications that it includes (Persona API 2025-12-08, "Verifications").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

from countersign.identity.model import Check, Tri
from countersign.identity.reading import (
    Unreadable,
    facts_unknown,
    instant,
    iso_date,
    mapping,
    sequence,
    text,
)
from countersign.identity.same_person import Holder
from countersign.reason import Reason

GOVERNMENT_ID: Final = "verification/government-id"
NFC: Final = "verification/government-id-nfc"
MDOC: Final = "verification/mdoc"
AAMVA: Final = "verification/aamva"
DATABASE: Final = "verification/database"
STANDARD_DATABASE: Final = "verification/database-standard"
SELFIE: Final = "verification/selfie"
DOCUMENTS: Final = (GOVERNMENT_ID, NFC, MDOC)
"""A document that was seen, one whose chip was read, and one on a telephone (ISO 18013-5)."""
PROOFS: Final = (*DOCUMENTS, AAMVA, DATABASE, STANDARD_DATABASE)
"""The kinds that can prove who somebody is. A selfie or a telephone cannot; nor can a bill
(`verification/document`), of which Persona's description has neither name nor address."""

REASONS: Final[Mapping[str, Reason]] = {
    **dict.fromkeys(("id_age_comparison", "mdoc_age_comparison"), Reason.AGE_BELOW_MINIMUM),
    **dict.fromkeys(("id_expired_detection", "id_nfc_expired_detection"), Reason.DOCUMENT_EXPIRED),
    **dict.fromkeys(
        (
            "id_disallowed_country_detection",
            "id_disallowed_type_detection",
            "id_nfc_disallowed_country_detection",
            "id_portrait_detection",
        ),
        Reason.DOCUMENT_UNSUPPORTED,
    ),
    **dict.fromkeys(
        (
            "id_barcode_detection",
            "id_blur_detection",
            "id_corner_detection",
            "id_double_side_detection",
            "id_extracted_properties_detection",
            "id_glare_detection",
            "id_mrz_detection",
            "id_nfc_unprocessable_submission_detection",
            "id_portrait_clarity_detection",
            "id_unprocessable_submission_detection",
            "id_video_quality_detection",
            "mdoc_parseable_detection",
        ),
        Reason.DOCUMENT_UNREADABLE,
    ),
    **dict.fromkeys(
        (
            "id_barcode_inconsistency_detection",
            "id_color_inconsistency_detection",
            "id_compromised_detection",
            "id_damaged_detection",
            "id_electronic_replica_detection",
            "id_entity_detection",
            "id_extraction_inconsistency_detection",
            "id_fabrication_detection",
            "id_handwriting_detection",
            "id_mrz_inconsistency_detection",
            "id_nfc_pki_failure_detection",
            "id_nfc_tamper_detection",
            "id_paper_detection",
            "id_physical_tamper_detection",
            "id_tamper_detection",
            "id_valid_dates_detection",
            "mdoc_digest_match_detection",
            "mdoc_valid_cert_detection",
            "mdoc_valid_device_authentication_detection",
            "mdoc_valid_mso_data_detection",
            "mdoc_valid_mso_signature_detection",
        ),
        Reason.DOCUMENT_NOT_ACCEPTED,
    ),
    **dict.fromkeys(("id_selfie_comparison", "selfie_id_comparison"), Reason.SELFIE_MISMATCH),
    **dict.fromkeys(
        (
            "selfie_face_covering_detection",
            "selfie_glare_detection",
            "selfie_glasses_detection",
            "selfie_image_quality_detection",
            "selfie_liveness_detection",
            "selfie_multiple_faces_detection",
            "selfie_portrait_quality_detection",
            "selfie_pose_detection",
            "selfie_pose_repeat_detection",
            "selfie_suspicious_entity_detection",
            "selfie_video_quality_detection",
        ),
        Reason.SELFIE_NOT_ACCEPTED,
    ),
    **dict.fromkeys(
        (
            "aamva_address_comparison",
            "aamva_birthdate_comparison",
            "aamva_expiration_date_comparison",
            "aamva_identification_number_comparison",
            "aamva_identity_comparison",
            "aamva_issue_date_comparison",
            "aamva_name_comparison",
            "database_address_comparison",
            "database_birthdate_comparison",
            "database_identity_comparison",
            "database_inquiry_comparison",
            "database_standard_identity_comparison",
            "id_account_comparison",
            "id_attribute_comparison",
            "id_inquiry_comparison",
            "id_nfc_attribute_comparison",
        ),
        Reason.DETAILS_MISMATCH,
    ),
}
"""What a failed check says, by Persona's names for them. Checks for fraud say nothing more here."""

_VERDICTS: Final[Mapping[str, Tri]] = {"passed": Tri.PASS, "failed": Tri.FAIL}
_COMPARISONS: Final = frozenset(
    {
        "aamva_identity_comparison",
        "database_identity_comparison",
        "database_standard_identity_comparison",
    }
)
"""Checks that tell of each attribute how well it matched."""
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,96}", re.ASCII)
"""How a check and its verdict are called; a sentence could hold somebody's name."""
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verification:
    """One verification of an inquiry: of a kind that can be proof, or a selfie."""

    verification_id: str
    kind: str
    attributes: Mapping[str, Any]
    checks: tuple[Mapping[str, Any], ...]
    decided_at: datetime

    def __repr__(self) -> str:
        return "<Verification: hidden>"

    @property
    def passed(self) -> bool:
        """A proof that passed, and its data is still there."""
        if self.kind not in PROOFS:
            return False
        return self.attributes.get("status") == "passed" and not self.redacted

    @property
    def redacted(self) -> bool:
        """Whether it passed once, but what it knew is gone."""
        return text(self.attributes.get("redacted-at"), "redacted-at") is not None

    def value(self, name: str) -> str | None:
        """A text attribute."""
        return text(self.attributes.get(name), name)

    def day(self, name: str) -> date | None:
        """A date attribute."""
        return iso_date(self.attributes.get(name), name)

    @property
    def holder(self) -> Holder:
        """Whom it names."""
        return Holder(
            given_name=self.value("name-first"),
            family_name=self.value("name-last"),
            date_of_birth=self.day("birthdate"),
        )

    def check_passed(self, name: str) -> bool:
        """Whether it made this check and passed it, and does not say that the match is partial."""
        for made in self.checks:
            if made["name"] == name and made["status"] == "passed":
                metadata = mapping(made.get("metadata"), "checks.metadata")
                return metadata.get("match-result") in (None, "full")
        return False

    def matched_fully(self, attribute: str) -> bool:
        """Whether a record has exactly this value: `partial` may be another day or street.

        Persona lets near matches pass, so that a birth date can be a day or a year off in a
        verification that passed.
        """
        for made in self.checks:
            if made["name"] not in _COMPARISONS or made["status"] != "passed":
                continue
            metadata = mapping(made.get("metadata"), "checks.metadata")
            for one in sequence(metadata.get("check-requirements"), "check-requirements"):
                told = mapping(one, "check-requirements")
                if told.get("name") == attribute:
                    return told.get("match-result") == "full" and told.get("status") == "passed"
        return False


def read_verifications(included: object, inquiry_id: str) -> tuple[Verification, ...]:
    """The verifications among the included resources that can be proof, and selfies.

    The newest is the last.

    Raises:
        Unreadable: one is malformed, or of another inquiry.
    """
    found = []
    for one in sequence(included, "included"):
        resource = mapping(one, "included")
        if resource.get("type") in (*PROOFS, SELFIE):
            found.append(_verification(resource, inquiry_id))
    return tuple(sorted(found, key=lambda read: read.decided_at))


def checks(proofs: Sequence[Verification]) -> Iterator[Check]:
    """Every check that was made, the document's first."""
    for proof in best_first(proofs):
        for made in proof.checks:
            raw = made["status"]
            yield Check(name=made["name"], verdict=_VERDICTS.get(raw, Tri.UNKNOWN), raw=raw)


def failed_check(verifications: Sequence[Verification]) -> str | None:
    """The name of the check that failed, a required one if there is any, in the newest."""
    failed = [
        made
        for read in reversed(verifications)
        for made in read.checks
        if made["status"] == "failed"
    ]
    required = [made for made in failed if made.get("requirement") == "required"]
    return next((str(made["name"]) for made in (*required, *failed)), None)


def _verification(resource: Mapping[str, Any], inquiry_id: str) -> Verification:
    attributes = mapping(resource.get("attributes"), "attributes")
    related = mapping(resource.get("relationships"), "relationships")
    inquiry = mapping(mapping(related.get("inquiry"), "inquiry").get("data"), "inquiry.data")
    if inquiry and inquiry.get("id") != inquiry_id:
        raise Unreadable("relationships.inquiry")
    with facts_unknown():
        decided_at = instant(attributes.get("completed-at"), "completed-at")
        checks = [
            mapping(check, "checks") for check in sequence(attributes.get("checks"), "checks")
        ]
    return Verification(
        verification_id=text(resource.get("id"), "id") or "",
        kind=str(resource["type"]),
        attributes=attributes,
        # A check that cannot be read is one that was not made: only a passed one proves anything.
        checks=tuple(
            check
            for check in checks
            if all(_is_word(check.get(member)) for member in ("name", "status"))
        ),
        decided_at=decided_at or _EARLIEST,
    )


def best_first(proofs: Sequence[Verification]) -> list[Verification]:
    """Documents before authorities before databases; of one kind the newest."""
    newest_first = list(reversed(proofs))
    newest_first.sort(key=lambda proof: PROOFS.index(proof.kind))
    return newest_first


def _is_word(value: object) -> bool:
    return isinstance(value, str) and _WORD.fullmatch(value) is not None
