"""Onfido (Entrust): workflow runs of Studio with their document reports, and the webhooks.

A run does its document report in a task `document_check…`, whose output is the report; where its
properties are missing, `GET /reports/{uuid}` has them. A run's `output` is what the customer mapped
in the workflow editor: it counts only where the credentials declare what a member is and what
proves it. Source: onfido-openapi-spec.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Final, Literal

import msgspec

from countersign.errors import WebhookRefused
from countersign.identity import json_reader as read
from countersign.identity.base import Adapter, Credentials, Response, outcome_of_status
from countersign.identity.budget import Budget
from countersign.identity.fields import Fields, listed
from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import (
    Address,
    Check,
    Document,
    FactSource,
    Finding,
    ProviderResult,
    Tri,
    WebhookHint,
)
from countersign.identity.types import RETRY_AFTER_SECONDS, ProviderReply, ProviderRequest
from countersign.identity.webhook_signature import is_signed

API_VERSION: Final = "v3.6"
SESSION_ID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII)
TASKS_MAX: Final = 3
"""Document checks that are read, the newest first: a person may have needed another attempt."""
_TOKEN: Final = re.compile(r"api_(live|sandbox)(?:_([a-z]{2}))?\.[\x21-\x7e]{4,200}")
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""A reason that the workflow's author chose; a sentence stays in the evidence."""
_DOCUMENT_TASK: Final = "document_check"
"""How the definition of a task with a document report begins, in each of its variants."""
_TASK_ID: Final = re.compile(r"[0-9a-z_-]{1,128}")
_CLEAR: Final = "clear"
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
_OUTCOMES: Final[Mapping[str, Finding]] = {
    "approved": Finding.VERIFIED,
    "processing": Finding.PENDING,
    "review": Finding.PENDING,
    "awaiting_input": Finding.REQUIRES_INPUT,
    "awaiting_client_input": Finding.REQUIRES_INPUT,
    "declined": Finding.FAILED,
    "abandoned": Finding.CANCELED,
    # The workflow broke: there is no decision yet.
    "error": Finding.PROVIDER_UNAVAILABLE,
}
_RESULTS: Final = {"clear": Tri.PASS, "consider": Tri.FAIL, "unidentified": Tri.UNKNOWN}
_BREAKDOWN: Final = listed("""
    age_validation compromised_document data_comparison data_consistency data_validation
    image_integrity issuing_authority police_record visual_authenticity
    """)
RUN_FIELDS: Final = Fields(
    # Only declared members of the output are read.
    "id status customer_user_id created_at reasons error(type) output",
    # Ignored: free text, the time of any later change, links and labels.
    "error(message) updated_at applicant_id workflow_id workflow_version_id tags link",
    "dashboard_url sdk_token",
)
_REPORT: Final = (
    "(status result sub_result breakdown properties(date_of_birth date_of_expiry first_name",
    "address_lines(postal_code country_code country street_address city state) last_name",
    "document_numbers(type value) document_type issuing_country issuing_state",
    # Ignored: the same facts as the barcode, the chip or the reader has them (whether they agree is
    # in the breakdown), and what else a document says of a life, or of itself.
    "barcode nfc extracted_data document_classification personal_number middle_name gender",
    "nationality issuing_date valid_from categorisation mrz_line1 mrz_line2 mrz_line3 address",
    "place_of_birth spouse_name widow_name alias_name issuing_authority remarks civil_state",
    "expatriation father_name mother_name religion type_of_permit version_number document_subtype",
    "profession security_document_number tax_number nist_identity_evidence_strength",
    "has_issuance_confirmation real_id_compliance security_tier)",
    "uuid id name check_id created_at documents href)",
)
TASK_FIELDS: Final = Fields(
    f"id workflow_run_id task_def_id created_at updated_at output{' '.join(_REPORT)}",
    # Ignored: what went into the check.
    "task_def_version input",
)
REPORT_FIELDS: Final = Fields(" ".join(_REPORT)[1:-1])


class MappedMember(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a fact is in `output`, and what proves it."""

    member: str
    """Its name; with dots for one inside another: `doc.properties.date_of_birth`."""
    source: Literal["document", "database", "proof_of_address"]

    def of(self, output: read.Object) -> object:
        """Its value; None if it is not there."""
        found: object = output
        for name in self.member.split("."):
            found = read.as_mapping(found, "output").get(name)
        return found


class OnfidoOutput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which facts the account's workflow writes to `output`."""

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
    """Onfido's responses do not say it; the token's prefix has to agree."""
    region: Literal["eu", "us", "ca"]
    """Selects the host."""
    webhook_secrets: tuple[str, ...] = ()
    """One for each registered webhook; two during a replacement."""
    output: OnfidoOutput = OnfidoOutput()

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


class _FurtherRefused(Exception):
    """The status of a further response is not 200."""

    def __init__(self, reply: ProviderReply) -> None:
        super().__init__()
        self.reply = reply


class Onfido(Adapter[OnfidoCredentials]):
    """Onfido with the credentials of one account."""

    name = "onfido"
    credentials_type = OnfidoCredentials
    session_id = SESSION_ID
    probe_session_id = "00000000-c0de-4000-8000-00000000c0de"
    api_version = API_VERSION
    request_id_header = "x-request-id"
    error_codes = frozenset(
        {"authorization_error", "internal_server_error", "rate_limit", "workflow_error"}
    )

    async def _retrieve(self, session_id: str, budget: Budget) -> ProviderResult:
        response = await self._get(f"/workflow_runs/{session_id}", session_id, budget)
        result = _translate_run(response)
        if result.outcome is not Finding.VERIFIED:
            return result
        further: list[Response[OnfidoCredentials]] = []
        try:
            report = await self._report_if_needed(session_id, further, budget)
            result = _prove(result, response, report)
        except _FurtherRefused as refused:
            result = _without_report(result, refused.reply)
        except read.Unreadable as unread:
            result = replace(_without_report(result, None), unread=(str(unread),))
        kept = tuple(each.evidence for each in further)
        return replace(result, evidence=replace(response.evidence, further=kept))

    async def _read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        # The older `X-Signature` (SHA-1) is ignored. A replay has the same event key: no time is
        # signed.
        signature = headers.get("x-sha2-signature", "")
        if not is_signed(body, self._credentials.webhook_secrets, signature):
            raise WebhookRefused("The message's signature is missing or wrong.")
        return _hint(read.parse(body), sha256(body).hexdigest())

    async def _report_if_needed(
        self, session_id: str, further: list[Response[OnfidoCredentials]], budget: Budget
    ) -> _Report | None:
        """The report; None also if it is unavailable and every fact is in the run's output."""
        optional = self._credentials.output.proves_all
        try:
            return await self._report(session_id, further, budget)
        except _FurtherRefused as refused:
            later = outcome_of_status(refused.reply.status) is Finding.PROVIDER_UNAVAILABLE
            if later or not optional:
                raise
        except read.Unreadable:
            if not optional:
                raise
        return None

    async def _report(
        self, run_id: str, further: list[Response[OnfidoCredentials]], budget: Budget
    ) -> _Report | None:
        """The newest clear document report; the responses go to `further`."""

        async def get(path: str) -> bytes:
            response = await self._get(path, run_id, budget)
            further.append(response)
            if response.reply.status != 200:
                raise _FurtherRefused(response.reply)
            return response.reply.body

        tasks = f"/workflow_runs/{run_id}/tasks"
        for task_id in _document_task_ids(await get(tasks), run_id)[:TASKS_MAX]:
            report = _read_task(await get(f"{tasks}/{task_id}"), run_id, task_id)
            if report.is_clear and not report.properties and report.report_id is not None:
                report = _read_report(await get(f"/reports/{report.report_id}"), report)
            if report.is_clear:
                return report
        return None

    async def _get(self, path: str, run_id: str, budget: Budget) -> Response[OnfidoCredentials]:
        authorization = f"Token token={self._credentials.api_token}"
        request = ProviderRequest(
            path=f"/{API_VERSION}{path}",
            headers={"Accept": "application/json", "Authorization": authorization},
        )
        return await self._ask(run_id, request, budget)


def _hint(message: read.Object, event_key: str) -> WebhookHint | None:
    if read.text(message, "payload.resource_type") != "workflow_run":
        return None
    session_id = read.matching(message, "payload.object.id", SESSION_ID)
    return WebhookHint(session_id=session_id, event_key=event_key)


def _translate_run(response: Response[OnfidoCredentials]) -> ProviderResult:
    """The result of any response of `/workflow_runs/{id}`, without the person."""
    return response.translated(_error, _run, RUN_FIELDS)


def _error(response: Response[OnfidoCredentials]) -> ProviderResult:
    try:
        kind = read.text(read.parse(response.reply.body), "error.type") or ""
    except read.Unreadable:
        kind = ""
    reason = read.word(kind, _WORD)
    if response.reply.status == 410 and kind:
        # The applicant was deleted, and all data about them.
        return response.refused(Finding.REDACTED, reason)
    return response.error(reason, genuine="not_found" in kind)


def _run(response: Response[OnfidoCredentials], body: read.Object) -> ProviderResult:
    status = read.text(body, "status") or ""
    result = replace(
        response.result(_OUTCOMES.get(status, Finding.INVALID_RESPONSE)),
        provider_status=read.word(status, _WORD),
        live=response.credentials.environment == "live",
    )
    if read.text(body, "id") != response.session_id:
        return replace(result, outcome=Finding.INVALID_RESPONSE, reason_code="other_session")
    if status not in _OUTCOMES:
        return replace(result, reason_code="unknown_status")
    reasons = [read.as_text(reason, "reasons") or "" for reason in read.sequence(body, "reasons")]
    kind = read.text(body, "error.type") or ""
    unavailable = result.outcome is Finding.PROVIDER_UNAVAILABLE
    return replace(
        result,
        reason_code=next(filter(_WORD.fullmatch, (kind, *reasons)), None),
        subject_reference=read.text(body, "customer_user_id"),
        retry_after=RETRY_AFTER_SECONDS if unavailable else None,
    )


def _without_report(result: ProviderResult, reply: ProviderReply | None) -> ProviderResult:
    """The result if the document report is unavailable, or (None) unreadable."""
    outcome = Finding.INVALID_RESPONSE if reply is None else outcome_of_status(reply.status)
    if outcome is Finding.NOT_FOUND:
        # The run exists.
        outcome = Finding.INVALID_RESPONSE
    return replace(
        result,
        outcome=outcome,
        reason_code="unreadable_report" if reply is None else f"report_http_{reply.status}",
        retry_after=(reply.retry_after if reply else None) or RETRY_AFTER_SECONDS,
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Report:
    """A document report."""

    report_id: str | None
    is_clear: bool
    properties: read.Object
    checks: tuple[Check, ...]
    unknown_fields: int
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
        found.append((read.instant(task, "created_at") or _EARLIEST, task_id))
    return [task_id for _, task_id in sorted(found, reverse=True)]


def _read_task(body: bytes, run_id: str, task_id: str) -> _Report:
    """The report of a task; one that is not clear if there is none yet."""
    task = read.parse(body)
    if task.get("id") != task_id or task.get("workflow_run_id") != run_id:
        raise read.Unreadable("task")
    output = read.mapping(task, "output")
    report = _report(output, read.text(output, "uuid"), TASK_FIELDS.unknown(task))
    with read.facts_unknown():
        return replace(report, completed_at=read.instant(task, "updated_at"))


def _read_report(body: bytes, task: _Report) -> _Report:
    """The report itself, if its task has it without the properties."""
    report = read.parse(body)
    name = read.text(report, "name") or ""
    if report.get("id") != task.report_id or not name.startswith("document"):
        raise read.Unreadable("report")
    unknown = task.unknown_fields + REPORT_FIELDS.unknown(report)
    return replace(_report(report, task.report_id, unknown), completed_at=task.completed_at)


def _report(report: read.Object, report_id: str | None, unknown_fields: int) -> _Report:
    if report_id is not None and SESSION_ID.fullmatch(report_id) is None:
        raise read.Unreadable("uuid")
    result, status = read.text(report, "result"), read.text(report, "status")
    sub_result = read.text(report, "sub_result")
    found = {"document": result}
    with read.facts_unknown():
        for name in _BREAKDOWN:
            found[f"document.{name}"] = read.text(report, f"breakdown.{name}.result")
    return _Report(
        report_id=report_id,
        is_clear=result == _CLEAR and sub_result in {None, _CLEAR} and status == "complete",
        properties=read.mapping(report, "properties"),
        checks=tuple(
            Check(name=name, verdict=_RESULTS[raw], raw=raw)
            for name, raw in found.items()
            if raw is not None and raw in _RESULTS
        ),
        unknown_fields=unknown_fields,
    )


def _prove(
    result: ProviderResult, response: Response[OnfidoCredentials], report: _Report | None
) -> ProviderResult:
    """The result of an approved run with what is proved of the person."""
    declared = response.credentials.output
    if report is None and not declared.proves_all:
        return replace(result, outcome=Finding.UNPROVED, reason_code="no_clear_document_report")
    run = read.parse(response.reply.body)
    with read.facts_unknown() as unread:
        result = _with_person(result, run, declared, report, response.fingerprint)
    unknown = result.unknown_fields + (report.unknown_fields if report else 0)
    return replace(result, unread=tuple(unread), unknown_fields=unknown)


def _with_person(
    result: ProviderResult,
    run: read.Object,
    declared: OnfidoOutput,
    report: _Report | None,
    fingerprint: Fingerprint,
) -> ProviderResult:
    properties = report.properties if report else {}
    output = read.mapping(run, "output")
    born, source = read.iso_date(properties, "date_of_birth"), FactSource.DOCUMENT
    if declared.date_of_birth is not None:
        stated = read.as_date(declared.date_of_birth.of(output), "output")
        if born is None:
            born, source = stated, FactSource(declared.date_of_birth.source)
        elif stated not in {None, born}:
            # The output is of another person than the document: nothing of it is the buyer's.
            output = {}
    addresses = (_address(properties), _declared_address(output, declared))
    begun = read.instant(run, "created_at")
    document = _document(properties, output, declared)
    return replace(
        result,
        # The beginning of the run rather than its last change, which moves.
        decided_at=(report.completed_at if report else None) or begun,
        given_name=read.text(properties, "first_name"),
        family_name=read.text(properties, "last_name"),
        date_of_birth=born,
        date_of_birth_source=FactSource.NONE if born is None else source,
        addresses=tuple(filter(None, addresses)),
        document=document,
        document_fingerprint=fingerprint(
            read.text(properties, "issuing_country"),
            read.text(properties, "issuing_state"),
            read.text(properties, "document_type"),
            _number(properties),
        ),
        checks=report.checks if report else (),
    )


def _address(properties: read.Object) -> Address | None:
    """The address on the document; `address`, the same in one line, is not taken apart."""
    lines = read.mapping(properties, "address_lines")
    if not lines:
        return None
    names = {"line1": "street_address", "region": "state"}
    return Address(
        source=FactSource.DOCUMENT,
        country=read.text(lines, "country_code") or read.text(lines, "country"),
        **read.texts(lines, "city", "postal_code", **names),
    )


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
    expires_on: date | None = None
    if declared.expires_on is not None:
        expires_on = read.as_date(declared.expires_on.of(output), "output")
        if not properties and declared.expires_on.source != "document":
            return None
    if not properties and expires_on is None:
        return None
    return Document(
        type=read.text(properties, "document_type"),
        issuing_country=read.text(properties, "issuing_country"),
        issuing_region=read.text(properties, "issuing_state"),
        expires_on=read.iso_date(properties, "date_of_expiry") or expires_on,
    )


def _number(properties: read.Object) -> str | None:
    numbers = [
        read.as_text(each.get("value"), "document_numbers.value")
        for each in read.objects(properties, "document_numbers")
        if each.get("type") == "document_number"
    ]
    return next(filter(None, numbers), None)
