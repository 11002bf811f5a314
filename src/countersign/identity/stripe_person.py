"""Stripe Identity: the person in a verified session, and what vouches for each fact.

`verified_outputs` and the report: Stripe's API reference, version 2026-10-28.endive.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import Address, Check, Document, ProviderResult, Source, Tri
from countersign.identity.reading import instant, mapping, parts_date, text

_VERDICTS: Final[Mapping[str, Tri]] = {"verified": Tri.PASS, "unverified": Tri.FAIL}
_CHECKS: Final = ("document", "id_number", "selfie", "email", "phone")
_WORD: Final = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)


def word(value: object) -> str | None:
    """A status or a code, if it is written as Stripe writes them.

    Anything else is kept nowhere but in the evidence: it could be a sentence with a name in it.
    """
    return value if isinstance(value, str) and _WORD.fullmatch(value) else None


def with_person(
    result: ProviderResult,
    session: Mapping[str, Any],
    report: Mapping[str, Any],
    fingerprint: Fingerprint,
) -> ProviderResult:
    """The result with what a verified session and its report tell of a person."""
    outputs = mapping(session.get("verified_outputs"), "verified_outputs")
    document = mapping(report.get("document"), "document")
    by_document = document.get("status") == "verified"
    address = _address(outputs, by_document=by_document)
    born = parts_date(outputs.get("dob"), "verified_outputs.dob")
    described = _document(document, address) if by_document else None
    return replace(
        result,
        decided_at=instant(report.get("created"), "last_verification_report.created"),
        given_name=text(outputs.get("first_name"), "verified_outputs.first_name"),
        family_name=text(outputs.get("last_name"), "verified_outputs.last_name"),
        date_of_birth=born,
        date_of_birth_source=Source.NONE if born is None else _birth_source(report, by_document),
        addresses=() if address is None else (address,),
        document=described,
        document_fingerprint=_fingerprint(document, described, fingerprint),
        checks=_checks(report),
    )


def _birth_source(report: Mapping[str, Any], by_document: bool) -> Source:  # noqa: FBT001 - a fact found above
    """What vouches for `verified_outputs.dob`, which also a typed one can become."""
    if by_document:
        return Source.DOCUMENT
    matched = mapping(report.get("id_number"), "id_number").get("status") == "verified"
    return Source.DATABASE if matched else Source.USER


def _address(outputs: Mapping[str, Any], *, by_document: bool) -> Address | None:
    """The document's address: only that is in `verified_outputs`, and none for a passport."""
    name = "verified_outputs.address"
    parts = mapping(outputs.get("address"), name)
    if not parts:
        return None
    return Address(
        source=Source.DOCUMENT if by_document else Source.USER,
        line1=text(parts.get("line1"), name),
        line2=text(parts.get("line2"), name),
        city=text(parts.get("city"), name),
        region=text(parts.get("state"), name),
        # One sample of Stripe's says `zip` here; the schema and every SDK say `postal_code`.
        postal_code=text(parts.get("postal_code"), name),
        country=text(parts.get("country"), name),
    )


def _document(document: Mapping[str, Any], address: Address | None) -> Document:
    return Document(
        type=text(document.get("type"), "document.type"),
        issuing_country=text(document.get("issuing_country"), "document.issuing_country"),
        # Stripe does not name the issuing state: a licence is issued where its holder lives.
        issuing_region=None if address is None else address.region,
        expires_on=parts_date(document.get("expiration_date"), "document.expiration_date"),
    )


def _fingerprint(
    document: Mapping[str, Any], described: Document | None, fingerprint: Fingerprint
) -> bytes | None:
    number = text(document.get("number"), "document.number")
    if described is None:
        return None
    return fingerprint(described.issuing_country, described.issuing_region, described.type, number)


def _checks(report: Mapping[str, Any]) -> tuple[Check, ...]:
    checks = []
    for name in _CHECKS:
        raw = word(mapping(report.get(name), name).get("status"))
        if raw is not None:
            checks.append(Check(name=name, verdict=_VERDICTS.get(raw, Tri.UNKNOWN), raw=raw))
    return tuple(checks)
