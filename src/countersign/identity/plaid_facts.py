"""Reads the parts of Plaid's answer: the steps, the document that counts, and who the person is.

`user` is "either collected from the user or provided via API", so it counts only where `kyc_check`
says that a data source has exactly that. `documents[].extracted_data` is read from the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import Address, Check, Document, Source, Tri
from countersign.identity.reading import (
    Unreadable,
    flag,
    iso_date,
    mapping,
    sequence,
    text,
)

STEPS: Final[Mapping[str, Tri]] = {
    "success": Tri.PASS,
    "manually_approved": Tri.PASS,
    "failed": Tri.FAIL,
    "manually_rejected": Tri.FAIL,
    "active": Tri.UNKNOWN,
    "waiting_for_prerequisite": Tri.UNKNOWN,
    "not_applicable": Tri.UNKNOWN,
    "skipped": Tri.UNKNOWN,
    "expired": Tri.UNKNOWN,
    "canceled": Tri.UNKNOWN,
    "pending_review": Tri.UNKNOWN,
}
"""What a step can be."""
ACCEPTED: Final = frozenset({"success", "manually_approved"})
"""A step or a document that Plaid, or the account's own reviewer at Plaid, lets pass."""
ABSENT: Final = frozenset({"not_applicable", "skipped"})
"""A step that this verification did not take."""
_STEP_NAMES: Final = (
    "accept_tos",
    "verify_sms",
    "kyc_check",
    "documentary_verification",
    "selfie_check",
    "watchlist_screening",
    "risk_check",
)
_MATCHES: Final[Mapping[str, Tri]] = {
    "match": Tri.PASS,
    "no_match": Tri.FAIL,
    "partial_match": Tri.UNKNOWN,
    "no_data": Tri.UNKNOWN,
    "no_input": Tri.UNKNOWN,
}
_SUMMARIES: Final = ("name", "date_of_birth", "address", "id_number", "phone_number")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Person:
    """Who the person is, by a document, a data source, or both. Its repr shows nothing."""

    given_name: str | None = None
    family_name: str | None = None
    date_of_birth: date | None = None
    date_of_birth_source: Source = Source.NONE
    addresses: tuple[Address, ...] = ()
    document: Document | None = None
    document_fingerprint: bytes | None = None


def steps_of(body: Mapping[str, Any]) -> Mapping[str, str]:
    """The status of each step; one that is missing or not published is `unknown`."""
    given = mapping(body.get("steps"), "steps")
    found = {name: text(given.get(name), "steps") or "" for name in _STEP_NAMES}
    return {name: status if status in STEPS else "unknown" for name, status in found.items()}


def accepted_document(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The last attempt that was accepted: a person may try three times."""
    section = mapping(body.get("documentary_verification"), "documentary_verification")
    documents = [mapping(d, "documents") for d in sequence(section.get("documents"), "documents")]
    accepted = [d for d in documents if text(d.get("status"), "documents") in ACCEPTED]
    return max(accepted, key=_attempt, default=None)


def _attempt(document: Mapping[str, Any]) -> int:
    attempt = document.get("attempt")
    if not isinstance(attempt, int) or isinstance(attempt, bool):
        raise Unreadable("documents.attempt")
    return attempt


def checks_of(
    body: Mapping[str, Any], steps: Mapping[str, str], document: Mapping[str, Any] | None
) -> tuple[Check, ...]:
    """The steps, what matched a data source, and what was found of the document."""
    found = [
        Check(name=f"steps.{name}", verdict=STEPS.get(status, Tri.UNKNOWN), raw=status)
        for name, status in steps.items()
    ]
    kyc = mapping(body.get("kyc_check"), "kyc_check")
    analysis = mapping((document or {}).get("analysis"), "analysis")
    codes = {f"kyc_check.{name}": _summary(kyc, name) for name in _SUMMARIES}
    codes["document.authenticity"] = text(analysis.get("authenticity"), "authenticity")
    # A code that is not published is not repeated: it could be anything.
    found += [
        Check(name=name, verdict=_MATCHES[code], raw=code)
        for name, code in codes.items()
        if code is not None and code in _MATCHES
    ]
    aamva = mapping(analysis.get("aamva_verification"), "aamva_verification")
    verified = flag(aamva.get("is_verified"), "is_verified")
    if verified is not None:
        verdict = Tri.PASS if verified else Tri.UNKNOWN
        found.append(Check(name="document.aamva", verdict=verdict, raw=str(verified).lower()))
    return tuple(found)


def person_of(
    body: Mapping[str, Any],
    steps: Mapping[str, str],
    document: Mapping[str, Any] | None,
    fingerprint: Fingerprint,
) -> Person:
    """What is proved of the person, by the document if there is one, else by the data source."""
    read = mapping((document or {}).get("extracted_data"), "extracted_data")
    user = mapping(body.get("user"), "user")
    matched = _matched(body, steps) and (document is None or _same_person(document))
    kyc = mapping(body.get("kyc_check"), "kyc_check") if matched else {}

    name = mapping(read.get("name") if document is not None else user.get("name"), "name")
    born, source = iso_date(read.get("date_of_birth"), "date_of_birth"), Source.DOCUMENT
    if born is None and _summary(kyc, "date_of_birth") == "match":
        born, source = iso_date(user.get("date_of_birth"), "date_of_birth"), Source.DATABASE
    addresses = [
        _address(read.get("address"), Source.DOCUMENT),
        _address(user.get("address"), Source.DATABASE) if _address_matched(kyc) else None,
    ]
    known = document is not None or matched
    return Person(
        given_name=text(name.get("given_name"), "given_name") if known else None,
        family_name=text(name.get("family_name"), "family_name") if known else None,
        date_of_birth=born,
        date_of_birth_source=source if born is not None else Source.NONE,
        addresses=tuple(address for address in addresses if address is not None),
        document=_document(read) if document is not None else None,
        document_fingerprint=_fingerprint(read, fingerprint),
    )


def expired_without_date(document: Mapping[str, Any]) -> bool:
    """Whether Plaid found it expired, but could not read the date; with a date, we compare."""
    analysis = mapping(document.get("analysis"), "analysis")
    judged = mapping(analysis.get("extracted_data"), "analysis.extracted_data")
    read = mapping(document.get("extracted_data"), "extracted_data")
    expired = text(judged.get("expiration_date"), "analysis.expiration_date") == "expired"
    return expired and iso_date(read.get("expiration_date"), "expiration_date") is None


def _matched(body: Mapping[str, Any], steps: Mapping[str, str]) -> bool:
    """Whether a data source knows a person of just the name that was typed, and alive."""
    kyc = mapping(body.get("kyc_check"), "kyc_check")
    ssa = mapping(
        mapping(kyc.get("id_number"), "kyc_check").get("ssa_verification"), "ssa_verification"
    )
    passed = steps["kyc_check"] == "success" and text(kyc.get("status"), "kyc_check") == "success"
    dead = ssa.get("is_deceased") not in (None, False)
    born, name = _summary(kyc, "date_of_birth"), _summary(kyc, "name")
    # A father has his son's name and address, and another birth date.
    other = born not in {None, "match", "no_data", "no_input"}
    return passed and not dead and not other and _named_alike(name, born)


def _same_person(document: Mapping[str, Any]) -> bool:
    """Whether the document is that of the person typed.

    Else one could show one's own licence and type the name and address of somebody else.
    """
    analysis = mapping(document.get("analysis"), "analysis")
    read = mapping(analysis.get("extracted_data"), "analysis.extracted_data")
    born = _code(read.get("date_of_birth"), "analysis.date_of_birth")
    named_alike = _named_alike(_code(read.get("name"), "analysis.name"), born)
    return named_alike and born in {"match", "no_data"}


def _named_alike(name: str | None, born: str | None) -> bool:
    """Whether a name is the same: also in part (Mike, or a middle name), if the birth date is."""
    return name == "match" or (name == "partial_match" and born == "match")


def _address_matched(kyc: Mapping[str, Any]) -> bool:
    """Whether the whole address matched, and the postal code too where that is told apart."""
    postal_code = mapping(kyc.get("address"), "kyc_check.address").get("postal_code")
    matched = _code(postal_code, "kyc_check.address.postal_code") in {None, "match"}
    return matched and _summary(kyc, "address") == "match"


def _summary(kyc: Mapping[str, Any], name: str) -> str | None:
    return _code(mapping(kyc.get(name), f"kyc_check.{name}").get("summary"), f"kyc_check.{name}")


def _code(value: object, name: str) -> str | None:
    """A match code; one that cannot be read is none that matches, and not an absent one."""
    return text(value, name) or (None if value in (None, "") else "unreadable")


def _address(value: object, source: Source) -> Address | None:
    given = mapping(value, "address")
    if not given:
        return None
    return Address(
        source=source,
        line1=text(given.get("street"), "street"),
        line2=text(given.get("street2"), "street2"),
        city=text(given.get("city"), "city"),
        region=text(given.get("region"), "region"),
        postal_code=text(given.get("postal_code"), "postal_code"),
        country=text(given.get("country"), "country"),
    )


def _document(read: Mapping[str, Any]) -> Document:
    return Document(
        type=text(read.get("category"), "category"),
        issuing_country=text(read.get("issuing_country"), "issuing_country"),
        issuing_region=text(read.get("issuing_region"), "issuing_region"),
        expires_on=iso_date(read.get("expiration_date"), "expiration_date"),
    )


def _fingerprint(read: Mapping[str, Any], fingerprint: Fingerprint) -> bytes | None:
    return fingerprint(
        text(read.get("issuing_country"), "issuing_country"),
        text(read.get("issuing_region"), "issuing_region"),
        text(read.get("category"), "category"),
        text(read.get("id_number"), "id_number"),
    )
