"""Persona's verifications: the person that they prove, and what vouches for each fact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from countersign.identity.model import Address, Document, Source
from countersign.identity.persona_verifications import (
    AAMVA,
    DATABASE,
    DOCUMENTS,
    MDOC,
    STANDARD_DATABASE,
    Verification,
    best_first,
)

_DATABASES = frozenset({DATABASE, STANDARD_DATABASE})


def of_one_person(proofs: Sequence[Verification]) -> tuple[Verification, ...]:
    """The proofs of the person whose birth date is proved, in their order.

    An inquiry can hold several documents, and a database entry for whatever was typed: what is
    proved of two people must never be put together.
    """
    best = best_first(proofs)
    dated = (p for p in best if p.day("birthdate") and _birth_source(p) is not Source.USER)
    chosen = next(dated, best[0] if best else None)
    return tuple(p for p in proofs if p is chosen or (chosen and p.holder.may_be(chosen.holder)))


def birth(proofs: Sequence[Verification]) -> tuple[date | None, Source]:
    """The date of birth, and what vouches for it: the document's, if it has one."""
    unproved: date | None = None
    for proof in best_first(proofs):
        born = proof.day("birthdate")
        if born is None:
            continue
        source = _birth_source(proof)
        if source is not Source.USER:
            return born, source
        unproved = born
    return unproved, Source.NONE if unproved is None else Source.USER


def addresses(proofs: Sequence[Verification]) -> Iterator[Address]:
    """Every address, with what vouches for each; the document's first."""
    for proof in best_first(proofs):
        # A database shows the address as the post office writes it, beside the one it was given.
        prefix = "normalized-address" if proof.kind in _DATABASES else "address"
        postal_code = proof.value(f"{prefix}-postal-code") or proof.value("address-postal-code")
        mobile = proof.kind == MDOC
        parts = {
            "line1": proof.value("address-street" if mobile else f"{prefix}-street-1"),
            "line2": proof.value(f"{prefix}-street-2"),
            "city": proof.value(f"{prefix}-city"),
            "region": proof.value("address-state" if mobile else f"{prefix}-subdivision"),
            "postal_code": postal_code,
        }
        if any(parts.values()):
            country = proof.value("address-country-code" if mobile else "country-code")
            # The authority of the AAMVA is a state's: its licences are of the United States.
            country = country or ("US" if proof.kind == AAMVA else None)
            yield Address(source=_address_source(proof), country=country, **parts)


def document(proofs: Sequence[Verification]) -> Document | None:
    """The document: one that was seen, or one that a motor-vehicle authority knows."""
    for proof in best_first(proofs):
        if proof.kind == MDOC:
            state = proof.value("issuing-jurisdiction")
            return Document(
                # A state issues mobile licences, with the number of the card; what else there is
                # in telephones (a passport's data, say) is not told apart.
                type="dl" if state else "mdoc",
                issuing_country=proof.value("issuing-country"),
                issuing_region=state,
                expires_on=proof.day("expiration-date"),
            )
        if proof.kind in DOCUMENTS:
            return Document(
                type=proof.value("id-class"),
                issuing_country=proof.value("country-code"),
                issuing_region=proof.value("issuing-subdivision"),
                expires_on=proof.day("expiration-date"),
            )
        if proof.kind == AAMVA:
            return Document(
                # What the authorities of the AAMVA give numbers to.
                type="dl",
                issuing_country="US",
                issuing_region=proof.value("issuing-authority"),
                expires_on=proof.day("expiration-date"),
            )
    return None


def number(proofs: Sequence[Verification]) -> str | None:
    """The number of that document.

    `identification-number` is the licence's and the passport's (Persona's changes of 2021-02-21);
    `document-number` is another one on some of them, such as that of the very card.
    """
    for proof in best_first(proofs):
        if proof.kind in {*DOCUMENTS, AAMVA}:
            return proof.value("identification-number")
    return None


def name(proofs: Sequence[Verification]) -> tuple[str | None, str | None]:
    """Given name and family name."""
    for proof in best_first(proofs):
        given, family = proof.value("name-first"), proof.value("name-last")
        if given or family:
            return given, family
    return None, None


def _birth_source(proof: Verification) -> Source:
    return _source(proof, "birthdate", "birthdate")


def _address_source(proof: Verification) -> Source:
    return _source(proof, "address", "address_postal_code")


def _source(proof: Verification, check: str, attribute: str) -> Source:
    """What vouches for a fact: a document, or a record that has exactly that."""
    if proof.kind in DOCUMENTS:
        return Source.DOCUMENT
    of = "aamva" if proof.kind == AAMVA else "database"
    matched = proof.check_passed(f"{of}_{check}_comparison") or proof.matched_fully(attribute)
    return Source.DATABASE if matched else Source.USER
