"""Every field of a Persona inquiry and of the verifications that count, and what it is to us.

As in Persona's OpenAPI description, version 2025-12-08. `*` stands for one name or more. Included
resources are named by their type; `included.other` is every type that proves nothing to us.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Final

from countersign.identity.fields import Use
from countersign.identity.persona_verifications import (
    AAMVA,
    DATABASE,
    GOVERNMENT_ID,
    MDOC,
    NFC,
    PROOFS,
    STANDARD_DATABASE,
)

# Members that every verification has.
_OF_ALL: Final[Mapping[str, Use]] = {
    "type": Use.CHECKED,
    "id": Use.CHECKED,
    "relationships.inquiry.data.id": Use.CHECKED,
    # Templates, accounts and the like: how it came about, not what came of it.
    "relationships.*": Use.IGNORED,
    "attributes.status": Use.CHECKED,
    "attributes.redacted-at": Use.CHECKED,
    "attributes.checks.name": Use.CHECKED,
    "attributes.checks.status": Use.CHECKED,
    "attributes.checks.requirement": Use.OPTIONAL,
    # Where a database says how well each attribute matched.
    "attributes.checks.metadata": Use.CHECKED,
    # Explanations for people; which check failed says enough.
    "attributes.checks.reasons": Use.IGNORED,
    "attributes.completed-at": Use.OPTIONAL,
    "attributes.country-code": Use.REQUIRED,
    # Earlier times, the same times as numbers, and the vendor's own labels.
    "attributes.created-at": Use.IGNORED,
    "attributes.created-at-ts": Use.IGNORED,
    "attributes.submitted-at": Use.IGNORED,
    "attributes.submitted-at-ts": Use.IGNORED,
    "attributes.completed-at-ts": Use.IGNORED,
    "attributes.tags": Use.IGNORED,
}
_GOVERNMENT_ID: Final[Mapping[str, Use]] = {
    "birthdate": Use.REQUIRED,
    "address-postal-code": Use.REQUIRED,
    "address-street-1": Use.OPTIONAL,
    "address-street-2": Use.OPTIONAL,
    "address-city": Use.OPTIONAL,
    "address-subdivision": Use.OPTIONAL,
    "name-first": Use.OPTIONAL,
    "name-last": Use.OPTIONAL,
    "id-class": Use.OPTIONAL,
    "issuing-subdivision": Use.OPTIONAL,
    "expiration-date": Use.OPTIONAL,
    # Goes into the fingerprint, and no further.
    "identification-number": Use.OPTIONAL,
    # Not the licence's or the passport's: of the card, where it has one of its own.
    "document-number": Use.IGNORED,
    # Pictures, with addresses that carry access tokens: never asked for.
    "front-photo-url": Use.IGNORED,
    "back-photo-url": Use.IGNORED,
    "photo-urls.*": Use.IGNORED,
    "selfie-photo.*": Use.IGNORED,
    "selfie-photo-url": Use.IGNORED,
    "video-url": Use.IGNORED,
    # What else is printed on a document: neither age nor address is in it.
    "name-middle": Use.IGNORED,
    "name-suffix": Use.IGNORED,
    "native-name-first": Use.IGNORED,
    "native-name-middle": Use.IGNORED,
    "native-name-last": Use.IGNORED,
    "native-name-title": Use.IGNORED,
    "issuing-authority": Use.IGNORED,
    "nationality": Use.IGNORED,
    "visa-status": Use.IGNORED,
    "issue-date": Use.IGNORED,
    "designations": Use.IGNORED,
    "birthplace": Use.IGNORED,
    "endorsements": Use.IGNORED,
    "height": Use.IGNORED,
    "sex": Use.IGNORED,
    "restrictions": Use.IGNORED,
    "vehicle-class": Use.IGNORED,
    # How it was captured, and how sure Persona is; its decision is the status.
    "capture-method": Use.IGNORED,
    "entity-confidence-reasons": Use.IGNORED,
    "entity-confidence-score": Use.IGNORED,
    "from-reusable-persona": Use.IGNORED,
}
_NFC: Final[Mapping[str, Use]] = {
    **{
        name: _GOVERNMENT_ID[name]
        for name in (
            "birthdate",
            "address-postal-code",
            "address-street-1",
            "address-street-2",
            "address-city",
            "address-subdivision",
            "name-first",
            "name-last",
            "id-class",
            "expiration-date",
            "identification-number",
            "selfie-photo.*",
            "selfie-photo-url",
            "sex",
        )
    },
}
_MDOC: Final[Mapping[str, Use]] = {
    "birthdate": Use.REQUIRED,
    "address-postal-code": Use.REQUIRED,
    "address-country-code": Use.REQUIRED,
    "address-street": Use.OPTIONAL,
    "address-city": Use.OPTIONAL,
    "address-state": Use.OPTIONAL,
    "name-first": Use.OPTIONAL,
    "name-last": Use.OPTIONAL,
    "issuing-country": Use.OPTIONAL,
    "issuing-jurisdiction": Use.OPTIONAL,
    "expiration-date": Use.OPTIONAL,
    # Goes into the fingerprint, and no further.
    "identification-number": Use.OPTIONAL,
    # The birth date says it better.
    "age-in-years": Use.IGNORED,
    "meets-minimum-age": Use.IGNORED,
    # Who keeps the document for its holder, and what else is in it.
    "validated-issuer-key": Use.IGNORED,
    "issuing-authority": Use.IGNORED,
    "nationality": Use.IGNORED,
    "portrait-photo.*": Use.IGNORED,
}
_AAMVA: Final[Mapping[str, Use]] = {
    "birthdate": Use.REQUIRED,
    "address-postal-code": Use.REQUIRED,
    "name-first": Use.OPTIONAL,
    "name-last": Use.OPTIONAL,
    "issuing-authority": Use.OPTIONAL,
    "expiration-date": Use.OPTIONAL,
    "identification-number": Use.OPTIONAL,
    "issue-date": Use.IGNORED,
}
_STANDARD_DATABASE: Final[Mapping[str, Use]] = {
    "birthdate": Use.REQUIRED,
    "normalized-address-postal-code": Use.REQUIRED,
    "address-postal-code": Use.REQUIRED,
    "normalized-address-street-1": Use.OPTIONAL,
    "normalized-address-street-2": Use.OPTIONAL,
    "normalized-address-city": Use.OPTIONAL,
    "normalized-address-subdivision": Use.OPTIONAL,
    "name-first": Use.OPTIONAL,
    "name-last": Use.OPTIONAL,
    # The address as it was typed; the normalized one is the one that was looked up.
    "address-street-1": Use.IGNORED,
    "address-street-2": Use.IGNORED,
    "address-city": Use.IGNORED,
    "address-subdivision": Use.IGNORED,
    "name-middle": Use.IGNORED,
    "phone-number": Use.IGNORED,
    "email-address": Use.IGNORED,
}
_DATABASE: Final[Mapping[str, Use]] = {
    **_STANDARD_DATABASE,
    # Typed too, and of a document that nobody has seen.
    "identification-number": Use.IGNORED,
    "document-number": Use.IGNORED,
    "document-issuing-date": Use.IGNORED,
    "document-expiry-date": Use.IGNORED,
    "document-issuing-subdivision": Use.IGNORED,
}
_INQUIRY: Final[Mapping[str, Use]] = {
    "data.type": Use.CHECKED,
    "data.id": Use.CHECKED,
    "data.attributes.status": Use.CHECKED,
    "data.attributes.redacted-at": Use.CHECKED,
    "data.attributes.reference-id": Use.OPTIONAL,
    "data.attributes.decisioned-at": Use.OPTIONAL,
    "data.attributes.completed-at": Use.OPTIONAL,
    # Which verifications belong to it: an included one that it does not name is not believed.
    "data.relationships.verifications.data.id": Use.CHECKED,
    "data.relationships.verifications.data.type": Use.CHECKED,
    # Typed by the buyer, or filled in beforehand by the vendor: proves nothing.
    "data.attributes.fields.*": Use.IGNORED,
    # Notes, labels and risk signals of the vendor and its reviewers.
    "data.attributes.note": Use.IGNORED,
    "data.attributes.behaviors": Use.IGNORED,
    "data.attributes.tags": Use.IGNORED,
    "data.attributes.creator": Use.IGNORED,
    "data.attributes.reviewer-comment": Use.IGNORED,
    # The times of what the status tells, and where in the flow the buyer is.
    "data.attributes.created-at": Use.IGNORED,
    "data.attributes.updated-at": Use.IGNORED,
    "data.attributes.started-at": Use.IGNORED,
    "data.attributes.expires-at": Use.IGNORED,
    "data.attributes.failed-at": Use.IGNORED,
    "data.attributes.marked-for-review-at": Use.IGNORED,
    "data.attributes.expired-at": Use.IGNORED,
    "data.attributes.previous-step-name": Use.IGNORED,
    "data.attributes.next-step-name": Use.IGNORED,
    # Who decided stands in `reviewer`, and stays in the evidence; the others were not asked for.
    "data.relationships.*": Use.IGNORED,
    # Selfies, of which only the name of a failed check is taken, telephones, bills, reports,
    # accounts: none of them says who somebody is.
    "included.other": Use.IGNORED,
}
_OF_KIND: Final[Mapping[str, Mapping[str, Use]]] = {
    GOVERNMENT_ID: _GOVERNMENT_ID,
    NFC: _NFC,
    MDOC: _MDOC,
    AAMVA: _AAMVA,
    DATABASE: _DATABASE,
    STANDARD_DATABASE: _STANDARD_DATABASE,
}

FIELDS: Final[Mapping[str, Use]] = {
    **_INQUIRY,
    **{
        f"included.{kind}.{path}": use
        for kind, own in _OF_KIND.items()
        for path, use in chain(
            _OF_ALL.items(), ((f"attributes.{name}", use) for name, use in own.items())
        )
    },
}

_EVERY_KIND: Final = ("status", "checks", "redacted-at", "completed-at", "country-code")


def _wanted(own: Mapping[str, Use]) -> str:
    """The attributes of a kind that are of any use, as the parameter `fields` wants them."""
    used = (name for name, use in own.items() if use is not Use.IGNORED)
    return ",".join((*_EVERY_KIND, *used))


QUERY: Final = (
    ("include", "verifications"),
    ("fields[inquiry]", "status,reference-id,redacted-at,completed-at,decisioned-at"),
    *((f"fields[{kind}]", _wanted(_OF_KIND[kind])) for kind in PROOFS),
    # Their pictures and files are addresses with access tokens, which must not be kept.
    ("fields[verification/selfie]", "status,checks"),
    ("fields[verification/document]", "status"),
)
"""Asks for the verifications, and of each thing only what is used (sparse fields)."""
