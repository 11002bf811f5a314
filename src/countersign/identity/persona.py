"""Persona: inquiries with their verifications, and the webhooks about them.

An inquiry's `fields` are input of the buyer or of the vendor. The proofs are in its included
verifications. Sources: Persona's API reference and OpenAPI description, version 2025-12-08;
"Idempotence", "One-time links", "Internationalization"; "Webhooks", "Checking signatures".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar, Final, Literal

from countersign.identity import json_reader as read
from countersign.identity.base import (
    Credentials,
    IdentityProvider,
    Response,
    checks,
    document_of,
    holder,
)
from countersign.identity.json_reader import words_of
from countersign.identity.model import (
    Address,
    Document,
    FactSource,
    Finding,
    ProviderResult,
    StartedSession,
    StartRequest,
    Tri,
    WebhookHint,
)
from countersign.identity.same_person import Holder
from countersign.identity.starting import ADDRESS, Refused, check_form, post
from countersign.identity.transport import Budget, ProviderReply, ProviderRequest
from countersign.identity.webhook_signature import check_timestamped

SESSION_ID: Final = re.compile(r"inq_[A-Za-z0-9]{16,64}", re.ASCII)
_ENVIRONMENT: Final = "persona-environment-id"
_ENVIRONMENT_ID: Final = re.compile(r"env_[A-Za-z0-9]{8,64}", re.ASCII)
_TEMPLATE_ID: Final = re.compile(r"itmpl_[A-Za-z0-9]{8,64}", re.ASCII)
_SECRET: Final = re.compile(r"[!-~]{16,250}", re.ASCII)
_EVENT_ID: Final = re.compile(r"evt_[A-Za-z0-9]{1,64}", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,96}", re.ASCII)
"""The name of a check or its status; a sentence could contain a name."""
_LANGUAGES: Final = {"en": "en-US", "es": "es-MX"}
MDOC: Final = "verification/mdoc"
AAMVA: Final = "verification/aamva"
SELFIE: Final = "verification/selfie"
DOCUMENTS: Final = ("verification/government-id", "verification/government-id-nfc", MDOC)
"""Seen, with its chip read, and on a telephone (ISO 18013-5)."""
_DATABASES: Final = ("verification/database", "verification/database-standard")
PROOFS: Final = (*DOCUMENTS, AAMVA, *_DATABASES)
"""The kinds that can prove a person's identity, best first. A selfie or a telephone cannot; nor can
a bill (`verification/document`), which is described without name or address."""
_WORDS: Final = words_of(__file__)
_LISTS: Final = _WORDS.lists
QUERY: Final = (
    ("include", "verifications"),
    ("fields[inquiry]", ",".join(_LISTS["inquiry"])),
    *((f"fields[{kind}]", ",".join((*_LISTS["verification"], *_LISTS[kind]))) for kind in PROOFS),
    (f"fields[{SELFIE}]", "status,checks"),
    ("fields[verification/document]", "status"),
)


class PersonaCredentials(Credentials, frozen=True, kw_only=True):
    """The credentials file of an account that uses Persona."""

    origin: ClassVar[str] = "https://api.withpersona.com"

    api_key: str
    """A key with the permissions `inquiry.read` and `verification.read`; to start inquiries, also
    `inquiry.write`."""
    environment: Literal["live", "sandbox"]
    """The environment of the key: Persona calls the live one Production."""
    environment_id: str
    """`env_…`; Persona names it in every response, and only responses from it are live."""
    webhook_secrets: tuple[str, ...] = ()
    """Each as Persona shows it; two during a replacement. Without any, webhooks are refused."""
    accept_completed: bool = False
    """Whether `completed` is final after a passed verification: only for templates that no person
    and no workflow approves or declines."""
    inquiry_template_id: str | None = None
    """`itmpl_…`, of a template that asks for a government ID and a selfie; to start inquiries."""

    def check(self) -> None:
        if not _SECRET.fullmatch(self.api_key):
            raise ValueError("api_key: give the key exactly as Persona shows it.")
        other = "sandbox" if self.environment == "live" else "production"
        if self.api_key.startswith(f"persona_{other}_"):
            raise ValueError(
                f"api_key: this is a {other} key, but environment says {self.environment}."
            )
        check_form("environment_id", self.environment_id, _ENVIRONMENT_ID, "env_Ab1…")
        if not all(map(_SECRET.fullmatch, self.webhook_secrets)):
            raise ValueError("webhook_secrets: give each secret exactly as Persona shows it.")
        check_form("inquiry_template_id", self.inquiry_template_id, _TEMPLATE_ID, "itmpl_Ab1…")


class Persona(IdentityProvider[PersonaCredentials]):
    """Persona with the credentials of one account."""

    name = "persona"
    credentials_type = PersonaCredentials
    session_id = SESSION_ID
    probe_session_id = "inq_0000000000000000000000000000"
    api_version = "2025-12-08"
    request_id_header = "request-id"
    words = _WORDS
    pages = ("withpersona.com",)

    def _request(self, session_id: str) -> ProviderRequest:
        return ProviderRequest(
            path=f"/api/v1/inquiries/{session_id}", query=QUERY, headers=self._headers
        )

    @property
    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._credentials.api_key}",
            "Accept": "application/json",
            "Key-Inflection": "kebab",
            "Persona-Version": self.api_version,
        }

    async def _start(self, wanted: StartRequest, budget: Budget) -> StartedSession:
        attributes = {
            "inquiry-template-id": self._needed("inquiry_template_id"),
            "reference-id": wanted.reference,
            "redirect-uri": wanted.return_url,
        }
        headers = {**self._headers, "Idempotency-Key": wanted.key}
        # Otherwise each reference, which is one checkout's, becomes a person in Persona's list of
        # accounts. A link that comes with the inquiry would be the same in a repetition, and spent.
        body = {"data": {"attributes": attributes}, "meta": {"auto-create-account": False}}
        making = post("/api/v1/inquiries", body, headers, repeatable=True)
        made = await self._make(making, budget)
        inquiry = self._started(*made, wanted.reference)
        session_id = read.matching(inquiry, "id", SESSION_ID)
        # No idempotency key: each link works once, and a further one does not end the others.
        path = f"/api/v1/inquiries/{session_id}/generate-one-time-link"
        linking = post(path, {}, self._headers, repeatable=True)
        reply, linked = await self._make(linking, budget)
        if self._started(reply, linked, wanted.reference).get("id") != session_id:
            raise read.Unreadable("data.id")
        link = read.matching(linked, "meta.one-time-link", ADDRESS)
        language = f"language={_LANGUAGES[wanted.locale]}"
        return StartedSession(
            session_id=session_id,
            url=f"{link}{'&' if '?' in link else '?'}{language}",
            expires_at=read.instant(inquiry, "attributes.expires-at"),
            opens_once=True,
        )

    def _started(self, reply: ProviderReply, body: read.Object, reference: str) -> read.Object:
        """The inquiry of a response, of our environment and with our reference."""
        environment = self._credentials.environment_id
        if reply.headers.get(_ENVIRONMENT, environment) != environment:
            result = self._unusable("environment_mismatch")
            raise Refused(replace(result, outcome=Finding.PROVIDER_REJECTED))
        inquiry = read.mapping(body, "data")
        if inquiry.get("type") != "inquiry":
            raise read.Unreadable("data.type")
        if read.text(inquiry, "attributes.reference-id") != reference:
            raise read.Unreadable("data.attributes.reference-id")
        return inquiry

    async def _read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        header, secrets = headers.get("persona-signature", ""), self._credentials.webhook_secrets
        check_timestamped(header, body, secrets, self._now(), sets_max=4)
        event = read.mapping(read.parse(body), "data")
        attributes = read.mapping(event, "attributes")
        kind = attributes.get("name")
        if event.get("type") != "event" or not isinstance(kind, str):
            raise read.Unreadable("data.type")
        if kind not in _LISTS["webhooks"]:
            return None
        session_id = read.matching(attributes, "payload.data.id", SESSION_ID)
        return WebhookHint(session_id=session_id, event_key=read.matching(event, "id", _EVENT_ID))

    def _error(self, response: Response, body: read.Object | None) -> ProviderResult:
        """Persona's errors have titles."""
        errors = read.objects(body or {}, "errors")
        genuine = bool(errors) and all(read.text(error, "title") for error in errors)
        result = response.error(genuine=genuine)
        ours = self._credentials.environment_id
        theirs = response.reply.headers.get(_ENVIRONMENT, ours)
        if result.outcome is Finding.NOT_FOUND and theirs != ours:
            # The environment of the response is not that of the settings.
            return response.refused(Finding.PROVIDER_REJECTED, "environment_mismatch")
        return result

    def _session(self, response: Response, body: read.Object) -> ProviderResult:
        data = read.mapping(body, "data")
        if data.get("type") != "inquiry" or data.get("id") != response.session_id:
            raise read.Unreadable("data.id")
        attributes = read.mapping(data, "attributes")
        status, subject = read.text(attributes, "status"), read.text(attributes, "reference-id")
        links = "relationships.verifications.data"
        linked = {str(one.get("id")): str(one.get("type")) for one in read.objects(data, links)}
        named = None if read.value(data, links) is None else linked
        verifications = _verifications(body, response.session_id, named)
        ours, theirs = self._credentials, response.reply.headers.get(_ENVIRONMENT)
        live = ours.environment == "live" and theirs == ours.environment_id
        result = self._decided(
            response, status, live=None if theirs is None else live, subject=subject
        )
        # Before the status: a redacted inquiry is still `approved`.
        if read.text(attributes, "redacted-at") is not None:
            return replace(result, outcome=Finding.REDACTED, reason_code=None)
        if result.outcome is Finding.INVALID_RESPONSE:
            return result
        passed = [each for each in verifications if each.passed]
        if status == "completed" and self._credentials.accept_completed and passed:
            result = replace(result, outcome=Finding.VERIFIED)
        if result.outcome is not Finding.VERIFIED:
            failed = _failed_check(verifications)
            return replace(result, reason_code=failed, reason=_WORDS.reasons.get(failed or ""))
        if not passed:
            return _unproved(result, verifications, linked)
        with read.facts_unknown() as unread:
            result = self._with_person(result, passed)
            times = [read.instant(attributes, f"{act}-at") for act in ("decisioned", "completed")]
        complete = not any(proof.is_withheld for proof in passed)
        evidence = replace(response.evidence, sensitive_complete=complete)
        decided_at = times[0] or times[1]
        return replace(result, decided_at=decided_at, unread=tuple(unread), evidence=evidence)

    def _with_person(
        self, result: ProviderResult, passed: Sequence[_Verification]
    ) -> ProviderResult:
        """The result with the facts that the verifications prove of one person."""
        # Documents before authorities before databases; of one kind the newest.
        best = sorted(passed, key=lambda proof: PROOFS.index(proof.kind))
        # Those of the person with a proved birth date; an inquiry can contain several people.
        dated = (
            p for p in best if p.holder.date_of_birth and _proves_birth(p) is not FactSource.USER
        )
        chosen = next(dated, best[0])
        theirs = [proof for proof in best if proof.is_of_same(chosen)]
        births = [(on, _proves_birth(p)) for p in theirs if (on := p.holder.date_of_birth)]
        proved = [each for each in births if each[1] is not FactSource.USER]
        # The first that is proved, else any.
        born, source = next(iter((*proved, *reversed(births))), (None, FactSource.NONE))
        judged = [(made["name"], made["status"]) for proof in best for made in proof.checks]
        result = replace(result, checks=checks(judged, _WORDS.verdicts, Tri.UNKNOWN))
        shown = next((proof for proof in theirs if proof.kind in {*DOCUMENTS, AAMVA}), None)
        return self._of_person(
            result,
            born,
            map(_address, theirs),
            born_by=source,
            document=_document(shown) if shown else None,
            # The licence's or passport's (Persona's changes of 2021-02-21), unlike
            # `document-number`.
            number=shown.value("identification-number") if shown else None,
        )


def _unproved(
    result: ProviderResult, verifications: Sequence[_Verification], linked: Mapping[str, str]
) -> ProviderResult:
    if any(each.is_redacted for each in verifications):
        return replace(result, outcome=Finding.REDACTED)
    included = any(each.kind in PROOFS for each in verifications)
    if not included and not set(PROOFS).isdisjoint(linked.values()):
        # The key may read inquiries, but not verifications.
        reason = "verifications_withheld"
        return replace(result, outcome=Finding.PROVIDER_REJECTED, reason_code=reason)
    reason = _failed_check(verifications) or "no_passed_verification"
    return replace(result, outcome=Finding.UNPROVED, reason_code=reason)


def _failed_check(verifications: Sequence[_Verification]) -> str | None:
    """The name of a failed check of the newest verification that has one; rather a required one."""
    failed = [made for each in verifications for made in each.checks if made["status"] == "failed"]
    required = [made for made in failed if made.get("requirement") == "required"]
    return next((str(made["name"]) for made in (*required, *failed)), None)


@dataclass(frozen=True, slots=True, repr=False)
class _Verification:
    """One verification of an inquiry: of a kind that can be proof, or a selfie."""

    kind: str
    attributes: read.Object
    checks: Sequence[read.Object]
    decided_at: datetime

    @property
    def passed(self) -> bool:
        passed = self.kind in PROOFS and self.attributes.get("status") == "passed"
        return passed and not self.is_redacted

    @property
    def is_redacted(self) -> bool:
        return read.text(self.attributes, "redacted-at") is not None

    @property
    def is_withheld(self) -> bool:
        """Whether the key's blocklist removed a member that documents always have, even if null."""
        always = {"birthdate", "expiration-date"}
        return self.kind in DOCUMENTS and not always <= self.attributes.keys()

    def value(self, name: str) -> str | None:
        return read.text(self.attributes, name)

    @property
    def holder(self) -> Holder:
        return holder(self.attributes, "name-first", "name-last", "birthdate")

    def is_of_same(self, other: _Verification) -> bool:
        """Whether it is, or may be, of the same person."""
        documents = {self.kind, other.kind} <= {*DOCUMENTS}
        return self is other or self.holder.may_be(other.holder, documents=documents)

    def source_of(self, check: str, attribute: str) -> FactSource:
        """The proof of a fact: a document, or a record with exactly that value."""
        if self.kind in DOCUMENTS:
            return FactSource.DOCUMENT
        name = f"{'aamva' if self.kind == AAMVA else 'database'}_{check}_comparison"
        # A check can pass although the match is only partial.
        made = next(self._passed_checks(name), None)
        matched = made is not None and made.get("match-result") in (None, "full")
        matched = matched or self._matched_fully(attribute)
        return FactSource.DATABASE if matched else FactSource.USER

    def _matched_fully(self, attribute: str) -> bool:
        """Whether a record has exactly this value: a verification also passes if it is similar."""
        for metadata in self._passed_checks(*_LISTS["comparisons"]):
            for required in read.objects(metadata, "check-requirements"):
                if required.get("name") == attribute:
                    full = required.get("match-result") == "full"
                    return full and required.get("status") == "passed"
        return False

    def _passed_checks(self, *names: str) -> Iterator[read.Object]:
        """The metadata of the passed ones among these checks."""
        for made in self.checks:
            if made["name"] in names and made["status"] == "passed":
                yield read.mapping(made, "metadata")


def _verifications(
    body: read.Object, inquiry_id: str, linked: Mapping[str, str] | None
) -> list[_Verification]:
    """The proofs and selfies that the inquiry includes and names, the newest first."""
    found = []
    for resource in read.objects(body, "included"):
        if resource.get("type") in (*PROOFS, SELFIE):
            each = _verification(resource, inquiry_id)
            if linked is None or linked.get(read.text(resource, "id") or "") == each.kind:
                found.append(each)
    return sorted(found, key=lambda each: each.decided_at)[::-1]


def _verification(resource: read.Object, inquiry_id: str) -> _Verification:
    attributes = read.mapping(resource, "attributes")
    named = read.mapping(resource, "relationships.inquiry.data")
    if named and named.get("id") != inquiry_id:
        raise read.Unreadable("relationships.inquiry")
    with read.facts_unknown():
        decided_at = read.instant(attributes, "completed-at")
        checks = read.objects(attributes, "checks")
    # An unreadable check counts as not made: only a passed one proves anything.
    checks = [
        made
        for made in checks
        if all(read.word(made.get(name), _WORD) for name in ("name", "status"))
    ]
    return _Verification(str(resource["type"]), attributes, checks, decided_at or read.EARLIEST)


def _proves_birth(proof: _Verification) -> FactSource:
    return proof.source_of("birthdate", "birthdate")


def _address(proof: _Verification) -> Address | None:
    # A database has the address as the post office writes it, as well as the input.
    prefix = "normalized-address" if proof.kind in _DATABASES else "address"
    mobile = proof.kind == MDOC
    parts = {
        "region": proof.value("address-state" if mobile else f"{prefix}-subdivision"),
        "postal_code": proof.value(f"{prefix}-postal-code") or proof.value("address-postal-code"),
    }
    if not any(parts.values()):
        return None
    country = proof.value("address-country-code" if mobile else "country-code")
    # An authority of the AAMVA is a state of the US.
    country = country or ("US" if proof.kind == AAMVA else None)
    source = proof.source_of("address", "address_postal_code")
    found = Address(source=source, country=country, **parts)  # type: ignore[arg-type]
    return replace(found, document=_document(proof)) if proof.kind in DOCUMENTS else found


def _document(proof: _Verification) -> Document:
    """A document that was inspected, or that a motor-vehicle authority knows."""
    country, region, kind = "country-code", "issuing-subdivision", proof.value("id-class")
    if proof.kind == MDOC:
        country, region = "issuing-country", "issuing-jurisdiction"
        # A state issues mobile licences, with the number of the card; no others are distinguished.
        kind = "dl" if proof.value(region) else "mdoc"
    elif proof.kind == AAMVA:
        region, kind = "issuing-authority", "dl"
    expiry = read.expiry(proof.attributes, "expiration-date")
    issued_in = "US" if proof.kind == AAMVA else proof.value(country)
    issued = {"issuing_country": issued_in, "issuing_region": proof.value(region)}
    return document_of(expiry, type=kind, **issued)
