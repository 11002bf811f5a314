"""Onfido (Entrust): workflow runs of Studio with their document reports, and the webhooks.

A run does its document report in a task `document_check…`, whose output is the report; where its
properties or its breakdown are missing, `GET /reports/{uuid}` has them. A run's `output` is mapped
by the customer in the workflow editor: it counts only if the credentials declare the meaning and
the proof of a member. A run's `reasons` are the customer's words, too: the report's breakdown has
the reasons that a buyer can correct. Source: onfido-openapi-spec.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Final, Literal

import msgspec

from countersign.base.errors import WebhookRefused
from countersign.base.values import Reason
from countersign.identity import json_reader as read
from countersign.identity.base import (
    UUID,
    Credentials,
    IdentityProvider,
    Response,
    address,
    checks,
    document_of,
)
from countersign.identity.json_reader import words_of
from countersign.identity.model import (
    Address,
    Document,
    FactSource,
    Finding,
    ProviderCheck,
    ProviderEvidence,
    ProviderResult,
    StartedSession,
    StartRequest,
    Tri,
    WebhookHint,
)
from countersign.identity.starting import ADDRESS, Refused, check_form, post
from countersign.identity.transport import (
    RETRY_AFTER_SECONDS,
    Budget,
    ProviderRequest,
    TransportFailure,
)
from countersign.identity.webhook_signature import is_signed

_WORDS: Final = words_of(__file__)
TASKS_MAX: Final = 3
"""Document checks that are read, the newest first: a person may have needed another attempt."""
_TOKEN: Final = re.compile(r"api_(live|sandbox)(?:_([a-z]{2}))?\.[\x21-\x7e]{4,200}")
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""A reason that the workflow's author chose; a sentence stays in the evidence."""
_DOCUMENT_TASK: Final = "document_check"
"""How the definition of a task with a document report begins, in each of its variants."""
_TASK_ID: Final = re.compile(r"[0-9a-z_-]{1,128}")
_LANGUAGES: Final = {"en": "en_US", "es": "es_ES"}
_NO_ONE: Final = {"first_name": "Anonymous", "last_name": "Buyer"}
"""An applicant must have names, and we have none: the workflow must not compare them with those on
the document."""


class MappedMember(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a fact is in `output`, and what proves it."""

    member: str
    """Its name; with dots for one inside another: `doc.properties.date_of_birth`."""
    source: Literal["document", "database", "proof_of_address"]

    def of(self, output: read.Object) -> object:
        """Its value; None if absent."""
        found: object = output
        for name in self.member.split("."):
            found = read.as_mapping(found, "output").get(name)
        return found


class OnfidoOutput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The facts that the account's workflow writes to `output`."""

    date_of_birth: MappedMember | None = None
    postal_code: MappedMember | None = None
    country: MappedMember | None = None
    """Of the address with `postal_code`."""
    expires_on: MappedMember | None = None
    """Of the document."""

    def check(self) -> None:
        """Refuse impossible declarations.

        Raises:
            ValueError: the text says why.
        """
        declared = (self.date_of_birth, self.postal_code, self.country, self.expires_on)
        if any("" in mapped.member.split(".") for mapped in declared if mapped is not None):
            raise ValueError("`output` contains an empty name in a `member`")
        if self.country is not None and self.postal_code is None:
            raise ValueError(
                "`output` declares `country` without the `postal_code` that it belongs to"
            )

    @property
    def proves_all(self) -> bool:
        """Whether a decision needs no document report.

        It is requested all the same, and preferred: only it has the number of the document.
        """
        return None not in {self.date_of_birth, self.postal_code, self.expires_on}


class OnfidoCredentials(Credentials, frozen=True, kw_only=True):
    """The credentials file for Onfido."""

    api_token: str
    environment: Literal["live", "sandbox"]
    """Onfido's responses do not give it; the token's prefix must agree."""
    region: Literal["eu", "us", "ca"]
    """Selects the host."""
    webhook_secrets: tuple[str, ...] = ()
    """One for each registered webhook; two during a replacement."""
    output: OnfidoOutput = OnfidoOutput()
    workflow_id: str | None = None
    """Of an active workflow with a document report; to start runs."""

    @property
    def origin(self) -> str:
        return f"https://api.{self.region}.onfido.com"

    def check(self) -> None:
        token = _TOKEN.fullmatch(self.api_token)
        if token is None:
            raise ValueError("`api_token` must begin with `api_live` or `api_sandbox`, then a dot")
        if token[1] != self.environment:
            raise ValueError(
                f"`api_token` belongs to the {token[1]} environment, `environment` names another"
            )
        if token[2] not in {None, self.region}:
            raise ValueError(
                f"`api_token` belongs to the region {token[2]}, `region` names another"
            )
        if any(len(secret) < 8 for secret in self.webhook_secrets):
            raise ValueError(
                "`webhook_secrets` contains a secret that is shorter than 8 characters"
            )
        self.output.check()
        check_form("workflow_id", self.workflow_id, UUID, "a1b2c3d4-…")


class Onfido(IdentityProvider[OnfidoCredentials]):
    """Onfido with the credentials of one account."""

    name = "onfido"
    credentials_type = OnfidoCredentials
    session_id = UUID
    probe_session_id = "00000000-c0de-4000-8000-00000000c0de"
    api_version = "v3.6"
    request_id_header = "x-request-id"
    words = _WORDS
    pages = ("onfido.app", "onfido.com")

    async def _retrieve(self, session_id: str, budget: Budget) -> ProviderResult:
        response = await self._ask(session_id, self._request(session_id), budget)
        result = self.translate(response)
        report, further = None, list[ProviderEvidence]()
        if result.outcome is Finding.FAILED:
            # It stays declined, with or without a report.
            with suppress(TransportFailure, Refused, read.Unreadable):
                report = await self._report(session_id, further, budget, clear=False)
            if report is not None:
                unknown = result.unknown_fields + report.unknown_fields
                result = replace(result, reason=report.reason, unknown_fields=unknown)
            return replace(result, evidence=replace(response.evidence, further=tuple(further)))
        if result.outcome is not Finding.VERIFIED:
            return result
        try:
            report = await self._report(session_id, further, budget, clear=True)
        except (Refused, read.Unreadable) as error:
            missing = response.refused(Finding.INVALID_RESPONSE, "unreadable_report")
            if isinstance(error, Refused):
                missing = error.result
            later = missing.outcome is Finding.PROVIDER_UNAVAILABLE
            if later or not self._credentials.output.proves_all:
                result = replace(
                    result,
                    outcome=missing.outcome,
                    reason_code=missing.reason_code,
                    retry_after=missing.retry_after,
                    unread=(str(error),) if isinstance(error, read.Unreadable) else (),
                )
        if result.outcome is Finding.VERIFIED:
            result = self._proved(result, read.parse(response.reply.body), report)
        return replace(result, evidence=replace(response.evidence, further=tuple(further)))

    def _request(self, session_id: str) -> ProviderRequest:
        return self._get(f"/workflow_runs/{session_id}")

    def _get(self, path: str) -> ProviderRequest:
        headers = {"Accept": "application/json", **self._authorization}
        return ProviderRequest(path=f"/{self.api_version}{path}", headers=headers)

    @property
    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Token token={self._credentials.api_token}"}

    async def _start(self, wanted: StartRequest, budget: Budget) -> StartedSession:
        async def make(path: str, body: Mapping[str, object]) -> read.Object:
            # Onfido knows no repetition.
            path = f"/{self.api_version}{path}"
            making = post(path, body, self._authorization, repeatable=False)
            return (await self._make(making, budget))[1]

        workflow_id = self._needed("workflow_id")
        applicant = await make("/applicants", _NO_ONE)
        run = await make(
            "/workflow_runs",
            {
                "applicant_id": read.matching(applicant, "id", UUID),
                "workflow_id": workflow_id,
                "customer_user_id": wanted.reference,
                "link": {
                    "completed_redirect_url": wanted.return_url,
                    "expired_redirect_url": wanted.return_url,
                    "language": _LANGUAGES[wanted.locale],
                },
            },
        )
        read.expect(run, "workflow_id", workflow_id)
        read.expect(run, "customer_user_id", wanted.reference)
        return StartedSession(
            session_id=read.matching(run, "id", UUID),
            url=read.matching(run, "link.url", ADDRESS),
            expires_at=read.instant(run, "link.expires_at"),
        )

    async def _report(
        self, run_id: str, further: list[ProviderEvidence], budget: Budget, *, clear: bool
    ) -> _Report | None:
        """The newest document report that is clear, or not; the responses go to `further`.

        Raises:
            TransportFailure: there is no response.
            Refused: it is unavailable.
            Unreadable: it is not what Onfido describes.
        """

        async def get(path: str) -> bytes:
            response = await self._ask(run_id, self._get(path), budget)
            further.append(response.evidence)
            if response.reply.status != 200:
                # The run exists, so a 404 is not a "not found" of the provider.
                reason = f"report_http_{response.reply.status}"
                raise Refused(response.error(reason, genuine=False))
            return response.reply.body

        tasks, fields = f"/workflow_runs/{run_id}/tasks", _WORDS.further_fields
        for task_id in _document_task_ids(await get(tasks), run_id)[:TASKS_MAX]:
            task = read.parse(await get(f"{tasks}/{task_id}"))
            if task.get("id") != task_id or task.get("workflow_run_id") != run_id:
                raise read.Unreadable("task")
            report, unknown = read.mapping(task, "output"), fields.unknown(task)
            report_id = read.text(report, "uuid")
            if report_id is not None and UUID.fullmatch(report_id) is None:
                raise read.Unreadable("uuid")
            if _is_clear(report) is not clear:
                continue
            if report_id and not read.mapping(report, "properties" if clear else "breakdown"):
                report = read.parse(await get(f"/reports/{report_id}"))
                name = read.text(report, "name") or ""
                if report.get("id") != report_id or not name.startswith("document"):
                    raise read.Unreadable("report")
                unknown += fields.unknown({"output": report})
            if _is_clear(report) is clear:
                return _as_report(task, report, unknown)
        return None

    async def _read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        # The older `X-Signature` (SHA-1) is ignored. A replay has the same event key: no time is
        # signed.
        signature = headers.get("x-sha2-signature", "")
        if not is_signed(body, self._credentials.webhook_secrets, signature):
            raise WebhookRefused("The message's signature is missing or wrong.")
        message = read.parse(body)
        if read.text(message, "payload.resource_type") != "workflow_run":
            return None
        session_id = read.matching(message, "payload.object.id", UUID)
        return WebhookHint(session_id=session_id, event_key=sha256(body).hexdigest())

    def _error(self, response: Response, body: read.Object | None) -> ProviderResult:
        kind = read.text(body or {}, "error.type") or ""
        reason = read.word(kind, _WORD)
        if response.reply.status == 410 and kind:
            # The applicant was deleted, and all data about them.
            return response.refused(Finding.REDACTED, reason)
        return response.error(reason, genuine="not_found" in kind)

    def _session(self, response: Response, body: read.Object) -> ProviderResult:
        """The run, without the person."""
        if read.text(body, "id") != response.session_id:
            return response.result(Finding.INVALID_RESPONSE, "other_session")
        live = self._credentials.environment == "live"
        status, subject = read.text(body, "status"), read.text(body, "customer_user_id")
        result = self._decided(response, status, live=live, subject=subject)
        if result.outcome is Finding.INVALID_RESPONSE:
            return result
        reasons = [read.as_text(each, "reasons") for each in read.sequence(body, "reasons")]
        words = (read.word(each, _WORD) for each in (read.text(body, "error.type"), *reasons))
        unavailable = result.outcome is Finding.PROVIDER_UNAVAILABLE
        return replace(
            result,
            reason_code=next(filter(None, words), None),
            retry_after=RETRY_AFTER_SECONDS if unavailable else None,
        )

    def _proved(
        self, result: ProviderResult, run: read.Object, report: _Report | None
    ) -> ProviderResult:
        """The result of an approved run with the proved facts of the person."""
        if report is None and not self._credentials.output.proves_all:
            return replace(result, outcome=Finding.UNPROVED, reason_code="no_clear_document_report")
        report = report or _Report(properties={})
        with read.facts_unknown() as unread:
            result = self._with_person(result, run, report)
        unknown = result.unknown_fields + report.unknown_fields
        return replace(result, unread=tuple(unread), unknown_fields=unknown)

    def _with_person(
        self, result: ProviderResult, run: read.Object, report: _Report
    ) -> ProviderResult:
        declared, properties = self._credentials.output, report.properties
        output = read.mapping(run, "output")
        born, source = read.iso_date(properties, "date_of_birth"), FactSource.DOCUMENT
        if declared.date_of_birth is not None:
            stated = read.as_date(declared.date_of_birth.of(output), "output")
            if born is None:
                born, source = stated, FactSource(declared.date_of_birth.source)
            elif stated not in {None, born}:
                # The output is about another person than the document: none of it is the buyer's.
                output = {}
        numbers = (
            read.as_text(each.get("value"), "document_numbers.value")
            for each in read.objects(properties, "document_numbers")
            if each.get("type") == "document_number"
        )
        result = replace(
            result,
            # The beginning of the run rather than its last change, which moves.
            decided_at=report.completed_at or read.instant(run, "created_at"),
            checks=report.checks,
        )
        return self._of_person(
            result,
            born,
            [_address(properties), _declared_address(output, declared)],
            born_by=source,
            document=_document(properties, output, declared),
            number=next(filter(None, numbers), None),
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Report:
    """A document report."""

    properties: read.Object
    reason: Reason | None = None
    """Why it is not clear, if that is something that its buyer can correct."""
    checks: tuple[ProviderCheck, ...] = ()
    unknown_fields: int = 0
    completed_at: datetime | None = None
    """Of its task; a run's `updated_at` moves with every later change."""


def _document_task_ids(body: bytes, run_id: str) -> list[str]:
    """The tasks of a run that hold a document report, the newest first."""
    found: list[tuple[datetime, str]] = []
    for task in read.objects(read.parse(b'{"tasks":' + body + b"}"), "tasks"):
        if not (read.text(task, "task_def_id") or "").startswith(_DOCUMENT_TASK):
            continue
        task_id = read.matching(task, "id", _TASK_ID)
        if task.get("workflow_run_id") != run_id:
            raise read.Unreadable("task")
        found.append((read.instant(task, "created_at") or read.EARLIEST, task_id))
    return [task_id for _, task_id in sorted(found, reverse=True)]


def _is_clear(report: read.Object) -> bool:
    result, status = read.text(report, "result"), read.text(report, "status")
    sub_result = read.text(report, "sub_result")
    return result == "clear" and sub_result in {None, "clear"} and status == "complete"


def _reason(report: read.Object) -> Reason | None:
    """The first reason why a report is not clear; none where it suspects a fraud."""
    if _is_clear(report) or read.text(report, "sub_result") == "suspected":
        return None
    for path, reason in _WORDS.reasons.items():
        part, _, name = path.partition(".")
        verdict = read.text(report, f"breakdown.{part}.breakdown.{name}.result")
        if _WORDS.verdicts.get(verdict or "", Tri.PASS) is not Tri.PASS:
            return reason
    return None


def _as_report(task: read.Object, report: read.Object, unknown_fields: int) -> _Report:
    properties = read.mapping(report, "properties")
    with read.facts_unknown():
        parts = [
            (f"document.{name}", read.text(report, f"breakdown.{name}.result"))
            for name in _WORDS.lists["breakdown"]
        ]
        return _Report(
            properties=properties,
            reason=_reason(report),
            checks=checks([("document", read.text(report, "result")), *parts], _WORDS.verdicts),
            unknown_fields=unknown_fields,
            completed_at=read.instant(task, "updated_at"),
        )


def _address(properties: read.Object) -> Address | None:
    """The address on the document; `address`, the same in one line, is not taken apart."""
    lines = read.mapping(properties, "address_lines")
    country = "country_code" if read.text(lines, "country_code") else "country"
    names = {"region": "state", "country": country}
    return address(lines, FactSource.DOCUMENT, "postal_code", **names)


def _declared_address(output: read.Object, declared: OnfidoOutput) -> Address | None:
    if declared.postal_code is None:
        return None
    postal_code = read.as_text(declared.postal_code.of(output), "output")
    country = read.as_text(declared.country.of(output) if declared.country else None, "output")
    source = FactSource(declared.postal_code.source)
    return Address(source=source, postal_code=postal_code, country=country) if postal_code else None


def _document(
    properties: read.Object, output: read.Object, declared: OnfidoOutput
) -> Document | None:
    """The document, by the report or by a declared date of its expiry."""
    expiry = read.expiry(properties, "date_of_expiry")
    if declared.expires_on is not None:
        stated = read.as_expiry(declared.expires_on.of(output), "output")
        if not properties and declared.expires_on.source != "document":
            return None
        expiry = stated if expiry.on is None and any(stated) else expiry
    if not properties and not any(expiry):
        return None
    names = {"type": "document_type", "issuing_region": "issuing_state"}
    return document_of(expiry, **read.texts(properties, "issuing_country", **names))
