"""Onfido workflow runs: the results of run and document report, all over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

import httpx2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.values import Reason, from_ns
from countersign.core.buyers.decision import decide
from countersign.core.buyers.rules import DocumentExpiry, VerificationRules
from countersign.identity import onfido
from countersign.identity.model import FactSource, Finding, ProviderResult, Tri
from countersign.identity.onfido import MappedMember, OnfidoOutput
from countersign_simulators import onfido as simulated
from countersign_simulators.base import Reply, Request, Session, merged
from countersign_simulators.server import Served, serve
from tests.identity.asking import JUNK, FixedClock, fingerprint, places, put, single
from tests.support.every import every

SESSION: Final = "6f5e4d3c-2222-4333-8444-555566667777"
REPORT_ID: Final = "95c8cc09-db72-42ff-85ef-ee6c82020a24"
TASK_ID: Final = "document_check_75329"
RUN_PATH: Final = f"/v3.6/workflow_runs/{SESSION}"
RUN: Final[dict[str, Any]] = {
    "id": SESSION,
    "applicant_id": "00000000-0000-4000-8000-000000000001",
    "status": "approved",
    "customer_user_id": "buyer-1",
    "created_at": "2026-11-01T17:00:00Z",
    "updated_at": "2026-11-01T17:09:00Z",
    "output": {"dob": "1951-01-02", "doc": {"postcode": "94612"}, "expiry": "2031-01-01"},
    "reasons": [],
    "error": None,
}
TASKS: Final[list[dict[str, Any]]] = [
    {
        "id": "profile_1eb92",
        "workflow_run_id": SESSION,
        "task_def_id": "profile_data",
        "created_at": "2026-11-01T17:00:00Z",
    },
    {
        "id": TASK_ID,
        "workflow_run_id": SESSION,
        "task_def_id": "document_check",
        "created_at": "2026-11-01T17:01:00Z",
        "updated_at": "2026-11-01T17:04:00Z",
    },
]
REPORT: Final[dict[str, Any]] = {
    "status": "complete",
    "result": "clear",
    "sub_result": "clear",
    "uuid": REPORT_ID,
    "properties": {
        "date_of_birth": "1990-01-01",
        "date_of_expiry": "2031-05-28",
        "document_numbers": [
            {"type": "personal_number", "value": "7"},
            {"type": "document_number", "value": "999999999"},
        ],
        "document_type": "driving_licence",
        "first_name": "Jane",
        "last_name": "Doe",
        "issuing_country": "USA",
        "issuing_state": "CA",
        "address_lines": {
            "street_address": "123 Main St",
            "city": "San Francisco",
            "state": "CA",
            "postal_code": "94111",
            "country": "United States",
            "country_code": "USA",
        },
    },
    "breakdown": {
        "data_validation": {"result": "clear"},
        "police_record": {"result": "consider"},
        "image_integrity": {"result": "Jane Doe"},
    },
}
CREDENTIALS: Final = onfido.OnfidoCredentials(
    api_token=simulated.TOKENS["live"], environment="live", region="us"
)
DECLARED: Final = OnfidoOutput(
    date_of_birth=MappedMember(member="dob", source="database"),
    postal_code=MappedMember(member="doc.postcode", source="proof_of_address"),
    expires_on=MappedMember(member="expiry", source="document"),
)


def task(**output: object) -> dict[str, Any]:
    return TASKS[1] | {"input": {}, "output": merged(REPORT, output)}


def properties(**members: object) -> dict[str, Any]:
    return task(properties=members)


class Scripted(simulated.Onfido):
    """Answers as a test sets it, for answers that the simulator does not play."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        super().__init__(FixedClock().now)
        self.answers = answers

    def answer(self, request: Request) -> Reply:
        body = self.answers.get(request.path, ...)
        if isinstance(body, Reply):
            return body
        raw = (
            body if isinstance(body, bytes) else json.dumps(None if body is ... else body).encode()
        )
        return Reply(status=404 if body is ... else 200, body=raw)


@dataclass(slots=True)
class Desk:
    """One server for all scripted responses, and one connection to it: there are many examples."""

    runner: asyncio.Runner
    scripted: Scripted
    served: Served
    client: httpx2.AsyncClient


DESKS: Final[list[Desk]] = []


@pytest.fixture(scope="module", autouse=True)
def _desk() -> Iterator[None]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        scripted = Scripted({})
        served = runner.run(stack.enter_async_context(serve(scripted)))
        client = runner.run(
            stack.enter_async_context(httpx2.AsyncClient(trust_env=False, verify=False))
        )
        DESKS.append(Desk(runner, scripted, served, client))
        yield
        DESKS.clear()
        runner.run(stack.aclose())


def ask_scripted(
    answers: Mapping[str, object],
    credentials: onfido.OnfidoCredentials,
    *,
    total_seconds: float | None = None,
) -> tuple[ProviderResult, list[str]]:
    """The result of these responses by path, and the requested paths."""
    (desk,) = DESKS
    clock = FixedClock()
    desk.scripted.answers = answers
    desk.served.requests.clear()
    provider = onfido.Onfido(
        credentials, base_url=desk.served.url, fingerprint=fingerprint, clock=clock
    )
    provider._http = single(desk.served.url, clock, read_seconds=0.5, total_seconds=total_seconds)
    provider._http._client = desk.client
    result = desk.runner.run(provider.retrieve(SESSION))
    return result, [seen.path for seen in desk.served.requests]


def read(
    run: object = RUN,
    shown: object = ...,
    *,
    tasks: object = TASKS,
    report: object = ...,
    output: OnfidoOutput | None = None,
) -> ProviderResult:
    """The result of these answers; `shown` is that to the task of the document report."""
    answers = {
        RUN_PATH: run,
        f"{RUN_PATH}/tasks": tasks,
        f"{RUN_PATH}/tasks/{TASK_ID}": task() if shown is ... else shown,
        f"/v3.6/reports/{REPORT_ID}": report,
    }
    credentials = msgspec.structs.replace(CREDENTIALS, output=output or OnfidoOutput())
    return ask_scripted(answers, credentials)[0]


def changed(**members: object) -> dict[str, Any]:
    return merged(RUN, members)


def test_an_approved_run_gives_the_facts_of_its_document_report() -> None:
    """Everything comes from the report, nothing from the undeclared output."""
    result = read()
    assert (result.outcome, result.live, result.subject_reference) == (
        Finding.VERIFIED,
        True,
        "buyer-1",
    )
    assert (result.date_of_birth, result.date_of_birth_source) == (
        date(1990, 1, 1),
        FactSource.DOCUMENT,
    )
    (address,) = result.addresses
    assert (address.postal_code, address.country, address.source) == (
        "94111",
        "USA",
        FactSource.DOCUMENT,
    )
    assert result.document is not None
    assert (result.document.type, result.document.issuing_region) == ("driving_licence", "CA")
    assert result.document.expires_on == date(2031, 5, 28)
    assert result.document_fingerprint == fingerprint("US", "CA", "dl", "999999999")
    assert result.decided_at == datetime(2026, 11, 1, 17, 4, tzinfo=UTC)
    assert {check.name: (check.verdict, check.raw) for check in result.checks} == {
        "document": (Tri.PASS, "clear"),
        "document.data_validation": (Tri.PASS, "clear"),
        "document.police_record": (Tri.FAIL, "consider"),
    }


def test_every_answer_is_kept_as_evidence() -> None:
    """The run's, the list of tasks and the report's, each with its request."""
    result = read()
    assert result.evidence is not None
    assert result.evidence.request_target == f"GET {RUN_PATH}"
    assert [further.request_target for further in result.evidence.further] == [
        f"GET {RUN_PATH}/tasks",
        f"GET {RUN_PATH}/tasks/{TASK_ID}",
    ]
    assert json.loads(result.evidence.further[1].raw_body) == task()


@every(
    ("run", "outcome", "reason"),
    [
        (changed(status="processing"), Finding.PENDING, None),
        (changed(status="review"), Finding.PENDING, None),
        (changed(status="awaiting_input"), Finding.REQUIRES_INPUT, None),
        (changed(status="awaiting_client_input"), Finding.REQUIRES_INPUT, None),
        (changed(status="declined", reasons=["FRAUD"]), Finding.FAILED, "FRAUD"),
        (changed(status="declined", reasons=["Jane Doe, 12"]), Finding.FAILED, None),
        (changed(status="abandoned"), Finding.CANCELED, None),
        (
            changed(status="error", error={"type": "timeout", "message": "Jane Doe"}),
            Finding.PROVIDER_UNAVAILABLE,
            "timeout",
        ),
        (changed(status="Approved"), Finding.INVALID_RESPONSE, "unknown_status"),
        (changed(status=...), Finding.INVALID_RESPONSE, "unknown_status"),
        (changed(status=["approved"]), Finding.INVALID_RESPONSE, "unreadable"),
        (changed(id=REPORT_ID), Finding.INVALID_RESPONSE, "other_session"),
        (changed(id=SESSION.upper()), Finding.INVALID_RESPONSE, "other_session"),
        (b"[]", Finding.INVALID_RESPONSE, "unreadable"),
        (b'{"id":"a","id":"b"}', Finding.INVALID_RESPONSE, "unreadable"),
        (json.dumps(RUN).encode()[:-30], Finding.INVALID_RESPONSE, "unreadable"),
    ],
)
def test_every_status_of_a_run_has_its_outcome(
    run: object, outcome: Finding, reason: str | None
) -> None:
    """One outcome each, without a report."""
    result = read(run)
    assert (result.outcome, result.reason_code) == (outcome, reason)
    assert (result.date_of_birth, result.addresses) == (None, ())


@every(
    ("shown", "outcome", "reason"),
    [
        (task(result="consider"), Finding.UNPROVED, "no_clear_document_report"),
        (task(result="unidentified"), Finding.UNPROVED, "no_clear_document_report"),
        (task(result="Clear"), Finding.UNPROVED, "no_clear_document_report"),
        (task(result=...), Finding.UNPROVED, "no_clear_document_report"),
        (task(sub_result="caution"), Finding.UNPROVED, "no_clear_document_report"),
        (task(status="awaiting_data"), Finding.UNPROVED, "no_clear_document_report"),
        (TASKS[1] | {"output": None}, Finding.UNPROVED, "no_clear_document_report"),
        (TASKS[1] | {"output": []}, Finding.INVALID_RESPONSE, "unreadable_report"),
        (task() | {"id": "another"}, Finding.INVALID_RESPONSE, "unreadable_report"),
        (task() | {"workflow_run_id": REPORT_ID}, Finding.INVALID_RESPONSE, "unreadable_report"),
        (task(uuid="../../x"), Finding.INVALID_RESPONSE, "unreadable_report"),
        (b"<html>", Finding.INVALID_RESPONSE, "unreadable_report"),
        (Reply(status=404, body=b"{}"), Finding.INVALID_RESPONSE, "report_http_404"),
        (Reply(status=403, body=b"{}"), Finding.PROVIDER_REJECTED, "report_http_403"),
        (Reply(status=429, body=b"{}"), Finding.PROVIDER_UNAVAILABLE, "report_http_429"),
        (Reply(status=500, body=b"{}"), Finding.PROVIDER_UNAVAILABLE, "report_http_500"),
        (Reply(status=200, body=b"{}" * 9, cut_after=3), Finding.PROVIDER_UNAVAILABLE, None),
    ],
)
def test_an_approved_run_without_a_clear_report_verifies_no_one(
    shown: object, outcome: Finding, reason: str | None
) -> None:
    """`approved` is the workflow's word: the proof is a document report that is clear."""
    result = read(shown=shown)
    assert result.outcome is outcome
    assert reason is None or result.reason_code == reason
    assert (result.date_of_birth, result.addresses) == (None, ())
    assert (result.document, result.document_fingerprint) == (None, None)


@pytest.mark.parametrize(
    ("shown", "member", "reasons"),
    [
        (properties(date_of_birth="01.01.1990"), "date_of_birth", ["age_unknown"]),
        (properties(date_of_birth="1990"), "date_of_birth", ["age_unknown"]),
        (properties(date_of_expiry="2031-02-30"), "date_of_expiry", ["document_expiry_unknown"]),
        (properties(address_lines="94111"), "address_lines", ["zip_unknown"]),
        (
            properties(document_numbers=[{"type": "document_number", "value": "\ud800"}]),
            "document_numbers.value",
            [],
        ),
    ],
)
def test_a_fact_that_cannot_be_read_is_unknown(
    shown: object, member: str, reasons: list[str]
) -> None:
    """One misread member does not make the run unusable for good, and is named for the log."""
    result = read(shown=shown)
    decision = decide(
        result,
        VerificationRules(document_expiry=DocumentExpiry.UNEXPIRED),
        shipping_zip="94111",
        subject_reference=None,
        now=from_ns(FixedClock().time_ns()),
    )
    assert result.unread == (member,)
    assert list(decision.reasons) == reasons


@pytest.mark.parametrize(
    ("tasks", "outcome"),
    [
        ([], Finding.UNPROVED),
        (TASKS[:1], Finding.UNPROVED),
        (b"", Finding.INVALID_RESPONSE),
        ({}, Finding.INVALID_RESPONSE),
        ([7], Finding.INVALID_RESPONSE),
        ([TASKS[1] | {"workflow_run_id": REPORT_ID}], Finding.INVALID_RESPONSE),
        ([TASKS[1] | {"id": "../../reports"}], Finding.INVALID_RESPONSE),
        ([TASKS[1] | {"id": None}], Finding.INVALID_RESPONSE),
        ([TASKS[1] | {"created_at": "yesterday"}], Finding.INVALID_RESPONSE),
    ],
)
def test_a_list_of_tasks_without_a_document_check_verifies_no_one(
    tasks: object, outcome: Finding
) -> None:
    """The same for one that is no list of tasks of this run."""
    assert read(tasks=tasks).outcome is outcome


def test_the_newest_clear_report_counts_and_few_are_requested() -> None:
    """A buyer who had to try again is not judged by the first attempt, or by a dozen of them."""
    tasks = [
        TASKS[1] | {"id": f"document_check_{n}", "created_at": f"2026-11-01T17:0{n}:00Z"}
        for n in (3, 1, 4, 2, 5)
    ]
    answers: dict[str, object] = {RUN_PATH: RUN, f"{RUN_PATH}/tasks": tasks}
    for n in range(1, 6):
        output = merged(REPORT, {"properties": {"date_of_birth": f"199{n}-01-01"}})
        output["result"] = "clear" if n in {1, 3, 4} else "consider"
        answers[f"{RUN_PATH}/tasks/document_check_{n}"] = {
            **TASKS[1], "id": f"document_check_{n}", "output": output
        }  # fmt: skip
    result, asked = ask_scripted(answers, CREDENTIALS)
    assert result.date_of_birth == date(1994, 1, 1)
    assert [path.rpartition("_")[2] for path in asked[2:]] == ["5", "4"]
    answers[f"{RUN_PATH}/tasks/document_check_4"] = answers[f"{RUN_PATH}/tasks/document_check_5"]
    for n in (3, 4):
        consider = merged(REPORT, {"result": "consider"})
        answers[f"{RUN_PATH}/tasks/document_check_{n}"] = {
            **TASKS[1], "id": f"document_check_{n}", "output": consider
        }  # fmt: skip
    result, asked = ask_scripted(answers, CREDENTIALS)
    assert result.outcome is Finding.UNPROVED
    assert len(asked) == 5


def declined(part: str, name: str, result: str = "consider", **changes: object) -> Any:  # noqa: ANN401
    """A task with a report that is not clear because of this part."""
    found = {"result": "consider", "breakdown": {name: {"result": result, "properties": {}}}}
    return task(result="consider", sub_result="caution", breakdown={part: found}, **changes)


# Suspicions of fraud are not shown to the buyer.
SUSPECTED: Final = merged(
    declined("image_integrity", "image_quality"), {"output": {"sub_result": "suspected"}}
)


@every(
    ("shown", "reason"),
    [
        (declined("data_validation", "document_expiration"), Reason.DOCUMENT_EXPIRED),
        (declined("image_integrity", "image_quality", "unidentified"), Reason.DOCUMENT_UNREADABLE),
        (declined("image_integrity", "conclusive_document_quality"), Reason.DOCUMENT_UNREADABLE),
        (declined("image_integrity", "supported_document"), Reason.DOCUMENT_UNSUPPORTED),
        (declined("age_validation", "minimum_accepted_age"), Reason.AGE_BELOW_MINIMUM),
        (declined("image_integrity", "image_quality", "clear"), None),
        (declined("image_integrity", "image_quality", "Jane Doe"), None),
        (declined("data_comparison", "first_name"), None),
        (declined("visual_authenticity", "fonts"), None),
        (SUSPECTED, None),
        (task(), None),
        (task(breakdown=7, result="consider"), None),
        (task(breakdown=..., result="consider"), None),
        (b"{", None),
        (Reply(status=500, body=b""), None),
        ([], None),
    ],
)  # fmt: skip
def test_a_declined_run_says_what_its_buyer_can_correct(
    shown: object, reason: Reason | None
) -> None:
    """By its document report; without a usable one it is declined all the same."""
    result = read(changed(status="declined", reasons=["IMAGE_QUALITY"]), shown)
    assert (result.outcome, result.reason) == (Finding.FAILED, reason)
    assert result.reason_code == "IMAGE_QUALITY"
    assert (result.date_of_birth, result.addresses, result.document) == (None, (), None)
    assert result.evidence is not None
    assert result.evidence.further != ()


def test_the_breakdown_of_a_declined_run_may_be_in_the_report_alone() -> None:
    whole = declined("data_validation", "document_expiration")["output"]
    shown = task(result="consider", sub_result="caution", breakdown=...)
    run = changed(status="declined")
    named = whole | {"id": REPORT_ID, "name": "document"}
    assert read(run, shown, report=named).reason is Reason.DOCUMENT_EXPIRED
    clear = {"result": "clear", "sub_result": "clear"}
    for other in ({"id": SESSION}, {"name": "facial_similarity_photo"}, clear):
        assert read(run, shown, report=named | other).reason is None


def test_trouble_with_a_report_does_not_undo_a_declined_run() -> None:
    """A checkout would wait for no second opinion."""
    run = Reply(status=200, body=json.dumps(changed(status="declined")).encode())
    tasks = Reply(status=200, body=json.dumps(TASKS).encode(), delay=2)
    answers = {RUN_PATH: run, f"{RUN_PATH}/tasks": tasks}
    result, _ = ask_scripted(answers, CREDENTIALS, total_seconds=0.6)
    assert (result.outcome, result.reason) == (Finding.FAILED, None)


def test_properties_missing_in_the_task_come_from_the_report() -> None:
    """`/reports/{uuid}` is requested then, and must be that report, of a document, and clear."""
    shown = task(properties=...)
    whole = {**REPORT, "id": REPORT_ID, "name": "document"}
    assert read(shown=shown, report=whole).date_of_birth == date(1990, 1, 1)
    for other in ({"id": SESSION}, {"name": "facial_similarity_photo"}, {"properties": 7}):
        assert read(shown=shown, report=whole | other).outcome is Finding.INVALID_RESPONSE
    assert read(shown=shown, report=whole | {"result": "consider"}).outcome is Finding.UNPROVED
    assert read(shown=shown).outcome is Finding.INVALID_RESPONSE


def test_all_requests_of_one_result_share_one_allowance_of_time() -> None:
    """A provider that is slow at each of them does not keep a checkout waiting for their sum."""
    slow = Reply(status=200, body=json.dumps(RUN).encode(), delay=0.35)
    tasks = Reply(status=200, body=json.dumps(TASKS).encode(), delay=0.35)
    answers = {RUN_PATH: slow, f"{RUN_PATH}/tasks": tasks}
    result, _ = ask_scripted(answers, CREDENTIALS, total_seconds=0.6)
    assert (result.outcome, result.reason_code) == (Finding.PROVIDER_UNAVAILABLE, "timeout")


def test_missing_facts_stay_missing() -> None:
    """A passport has no address, and an unreadable birth is none."""
    result = read(shown=properties(date_of_birth=..., address_lines=..., issuing_state=...))
    assert (result.date_of_birth, result.date_of_birth_source) == (None, FactSource.NONE)
    assert result.addresses == ()
    # A licence of any state of the United States is not one document.
    assert result.document_fingerprint is None
    passport = read(shown=properties(document_type="passport", issuing_state=...))
    assert passport.document_fingerprint == fingerprint("US", None, "pp", "999999999")


@pytest.mark.parametrize("missing", ["document_numbers", "issuing_country", "document_type"])
def test_no_fingerprint_without_number_issuer_or_kind(missing: str) -> None:
    """Half a document would be the same document as somebody else's."""
    assert read(shown=properties(**{missing: ...})).document_fingerprint is None


# --- the workflow's output ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "tasks",
    [..., [], {"no": "list"}, Reply(status=403, body=b"{}")],
    ids=["404", "none", "unreadable", "403"],
)
def test_output_declared_for_everything_needs_no_report(tasks: object) -> None:
    """With the source that the account declares."""
    answers: dict[str, object] = {RUN_PATH: RUN}
    if tasks is not ...:
        answers[f"{RUN_PATH}/tasks"] = tasks
    credentials = msgspec.structs.replace(CREDENTIALS, output=DECLARED)
    result, _ = ask_scripted(answers, credentials)
    assert result.outcome is Finding.VERIFIED
    assert (result.date_of_birth, result.date_of_birth_source) == (
        date(1951, 1, 2),
        FactSource.DATABASE,
    )
    assert [(a.postal_code, a.source) for a in result.addresses] == [
        ("94612", FactSource.PROOF_OF_ADDRESS)
    ]
    assert result.document is not None
    assert result.document.expires_on == date(2031, 1, 1)
    assert result.document_fingerprint is None


def test_the_report_is_requested_for_its_number_even_if_the_output_has_everything() -> None:
    """Otherwise a revoked buyer would be a new one with every run."""
    result = read(output=DECLARED)
    assert result.document_fingerprint == fingerprint("US", "CA", "dl", "999999999")
    later = read(output=DECLARED, tasks=Reply(status=500, body=b"{}"))
    assert (later.outcome, later.reason_code) == (
        Finding.PROVIDER_UNAVAILABLE,
        "report_http_500",
    )


def test_output_about_somebody_else_than_the_document_proves_nothing() -> None:
    """Its birth date differs: its address is not that of the person on the document."""
    result = read(output=DECLARED)
    assert (result.date_of_birth, result.date_of_birth_source) == (
        date(1990, 1, 1),
        FactSource.DOCUMENT,
    )
    assert [(a.postal_code, a.source) for a in result.addresses] == [("94111", FactSource.DOCUMENT)]


def test_a_later_change_of_the_run_does_not_make_its_decision_younger() -> None:
    """The time is the report's; without one, when the run began."""
    moved = changed(updated_at="2027-10-01T00:00:00Z")
    assert read(moved).decided_at == datetime(2026, 11, 1, 17, 4, tzinfo=UTC)
    unreported = read(moved, tasks=[], output=DECLARED)
    assert unreported.decided_at == datetime(2026, 11, 1, 17, 0, tzinfo=UTC)


def test_declared_data_adds_to_the_report_and_replaces_nothing_in_it() -> None:
    """The document's birth is believed before the output's."""
    run = changed(output={"dob": "1990-01-01"})
    output = OnfidoOutput(
        date_of_birth=MappedMember(member="dob", source="database"),
        postal_code=MappedMember(member="doc.postcode", source="database"),
    )
    result = read(run, output=output)
    assert (result.date_of_birth, result.date_of_birth_source) == (
        date(1990, 1, 1),
        FactSource.DOCUMENT,
    )
    assert [(a.postal_code, a.source) for a in result.addresses] == [
        ("94111", FactSource.DOCUMENT),
        ("94612", FactSource.DATABASE),
    ]
    result = read(shown=properties(date_of_birth=...), output=output)
    assert result.date_of_birth_source is FactSource.DATABASE


@pytest.mark.parametrize(
    ("run", "unread"),
    [
        (changed(output={}), ()),
        (changed(output=None), ()),
        (changed(output={"dob": None, "doc": None}), ()),
        (changed(output={"dob": "1951"}), ("output",)),
        (changed(output={"dob": 7}), ("output",)),
        (changed(output={"doc": "94612"}), ("output",)),
        (changed(output="94612"), ("output",)),
    ],
)
def test_output_of_another_form_than_declared_is_not_guessed(
    run: object, unread: tuple[str, ...]
) -> None:
    """An absent value is unknown; a value of another form is unknown too, and named for the log."""
    result = read(run, tasks=[], output=DECLARED)
    assert (result.outcome, result.unread) == (Finding.VERIFIED, unread)


# --- errors and anything at all -----------------------------------------------------------------


@every(
    ("status", "body", "outcome", "reason"),
    [
        (404, {"error": {"type": "resource_not_found"}}, Finding.NOT_FOUND, "resource_not_found"),
        (401, {"error": {"type": "authorization_error"}}, Finding.PROVIDER_REJECTED,
         "authorization_error"),
        (403, {"error": {}}, Finding.PROVIDER_REJECTED, "http_403"),
        (410, {"error": {"type": "gone"}}, Finding.REDACTED, "gone"),
        (422, {"error": {"type": "validation_error"}}, Finding.INVALID_RESPONSE,
         "validation_error"),
        (429, {"error": {"type": "rate_limit"}}, Finding.PROVIDER_UNAVAILABLE, "rate_limit"),
        (500, {"error": {"type": "Jane Doe"}}, Finding.PROVIDER_UNAVAILABLE, "http_500"),
        (502, b"<html>", Finding.PROVIDER_UNAVAILABLE, "http_502"),
        (404, b"<html>", Finding.INVALID_RESPONSE, "http_404"),
        (404, {"error": {"type": "invalid_request_error"}}, Finding.INVALID_RESPONSE,
         "invalid_request_error"),
        (404, {"error": {"code": "not_found"}}, Finding.INVALID_RESPONSE, "http_404"),
        (404, {"detail": "Not Found"}, Finding.INVALID_RESPONSE, "http_404"),
        (410, b"<html>", Finding.INVALID_RESPONSE, "http_410"),
        (302, b"", Finding.INVALID_RESPONSE, "http_302"),
    ],
)  # fmt: skip
def test_every_error_has_its_outcome(
    status: int, body: object, outcome: Finding, reason: str
) -> None:
    """The types are Onfido's; its messages go nowhere."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    result = read(Reply(status=status, body=raw))
    assert (result.outcome, result.reason_code) == (outcome, reason)
    assert result.retry_after is not None


@given(place=st.sampled_from(places(RUN)), junk=JUNK | st.just(...))
def test_no_malformed_run_raises(place: tuple[str | int, ...], junk: object) -> None:
    """Whatever stands anywhere, there is a result; only a whole `approved` verifies."""
    run = put(RUN, place, junk)
    result = read(run, output=DECLARED)
    if (run.get("status"), run.get("id")) != ("approved", SESSION):
        assert result.outcome is not Finding.VERIFIED
    if result.outcome is not Finding.VERIFIED:
        assert (result.date_of_birth, result.addresses) == (None, ())


ANSWERS: Final = {"tasks": TASKS, "shown": task()}
INSIDE: Final = [place for place in places(ANSWERS) if len(place) > 1]


@given(place=st.sampled_from(INSIDE), junk=JUNK | st.just(...))
def test_no_malformed_report_raises(place: tuple[str | int, ...], junk: object) -> None:
    """Neither a malformed list nor a malformed report verifies without a clear result."""
    both = put(ANSWERS, place, junk)
    shown = both["shown"]
    result = read(shown=shown, tasks=both["tasks"])
    clear = isinstance(shown, dict) and isinstance(shown.get("output"), dict)
    if not clear or shown["output"].get("result") != "clear":
        assert result.outcome is not Finding.VERIFIED
    if result.outcome is not Finding.VERIFIED:
        assert (result.date_of_birth, result.addresses) == (None, ())


@given(st.binary(max_size=200), st.integers(200, 599))
def test_no_bytes_raise_or_verify(body: bytes, status: int) -> None:
    """Bytes that are no run give an outcome, and no buyer."""
    whole = Reply(status=status, body=b"" if status in {204, 304} else body)
    assert read(whole).outcome is not Finding.VERIFIED


# --- against the simulator ----------------------------------------------------------------------

OUTCOMES: Final = {
    "pending": Finding.PENDING,
    "review": Finding.PENDING,
    "requires_input": Finding.REQUIRES_INPUT,
    "requires_client_input": Finding.REQUIRES_INPUT,
    "failed": Finding.FAILED,
    "canceled": Finding.CANCELED,
    "workflow_error": Finding.PROVIDER_UNAVAILABLE,
    "unknown_status": Finding.INVALID_RESPONSE,
    "document_not_clear": Finding.UNPROVED,
    "no_document": Finding.UNPROVED,
    "other_environment": Finding.NOT_FOUND,
    "wrong_id": Finding.INVALID_RESPONSE,
    "wrong_task": Finding.INVALID_RESPONSE,
    "truncated": Finding.INVALID_RESPONSE,
    "oversized": Finding.INVALID_RESPONSE,
    "rate_limited": Finding.PROVIDER_UNAVAILABLE,
    "deleted": Finding.REDACTED,
    "server_error": Finding.PROVIDER_UNAVAILABLE,
    "bad_gateway": Finding.PROVIDER_UNAVAILABLE,
    "slow": Finding.PROVIDER_UNAVAILABLE,
    "cut": Finding.PROVIDER_UNAVAILABLE,
    "report_server_error": Finding.PROVIDER_UNAVAILABLE,
}
"""Every other part is approved with a clear report, and judged by the decision."""
HOPELESS: Final = {"server_error", "bad_gateway", "slow", "cut", "report_server_error"}
"""Failures that no retry cures: with a shorter time-out, to keep the test fast."""
SIMULATED: Final = msgspec.convert(
    simulated.Onfido(FixedClock().now).credentials, onfido.OnfidoCredentials
)
LIMITED: Final = "0f1d0000-0000-4000-8000-000000000013"
LIMITED_LONGER: Final = "0f1d0000-0000-4000-8000-000000000055"


async def ask(
    *session_ids: str, credentials: onfido.OnfidoCredentials = SIMULATED, patient: bool = True
) -> tuple[list[ProviderResult], list[Request]]:
    """The results, and the requests that arrived."""
    clock = FixedClock()
    async with serve(simulated.Onfido(clock.now)) as served:
        provider = onfido.Onfido(
            credentials, base_url=served.url, fingerprint=fingerprint, clock=clock
        )
        if not patient:
            provider._http = single(served.url, clock, read_seconds=0.5)
        results = [await provider.retrieve(asked) for asked in session_ids]
        await provider.close()
        return results, served.requests


def listed() -> list[Session]:
    return list(simulated.Onfido(FixedClock().now).sessions)


def test_every_simulated_session_has_its_outcome_and_decision() -> None:
    """`verified` is decided exactly for the sessions that simulate it."""
    sessions = [s for s in listed() if s.session_id != LIMITED]
    hopeless = [s for s in sessions if s.scenario in HOPELESS]
    others = [s for s in sessions if s.scenario not in HOPELESS]
    results, _ = asyncio.run(ask(*(s.session_id for s in others)))
    failures, _ = asyncio.run(ask(*(s.session_id for s in hopeless), patient=False))
    rules = VerificationRules(document_expiry=DocumentExpiry.UNEXPIRED)
    for session, result in zip([*others, *hopeless], [*results, *failures], strict=True):
        assert result.outcome is OUTCOMES.get(session.scenario, Finding.VERIFIED), session.scenario
        decision = decide(
            result,
            rules,
            shipping_zip=session.shipping_zip,
            subject_reference=session.subject_reference,
            now=datetime.fromtimestamp(FixedClock().seconds, UTC),
        )
        assert (decision.status == "verified") == (session.scenario == "verified"), session.scenario


def test_a_passing_trouble_is_outlived_by_a_second_attempt() -> None:
    """A 429 without Retry-After does not reach the caller."""
    (result,), requests = asyncio.run(ask(LIMITED))
    assert result.outcome is Finding.VERIFIED
    assert [seen.path.count("/") for seen in requests] == [3, 3, 4, 5]


def test_a_long_wait_is_passed_on_to_the_caller() -> None:
    """No one waits thirty seconds in an open request; the next one succeeds."""
    (first, second), _ = asyncio.run(ask(LIMITED_LONGER, LIMITED_LONGER))
    assert (first.outcome, first.retry_after) == (Finding.PROVIDER_UNAVAILABLE, 30)
    assert second.outcome is Finding.VERIFIED


def test_a_wrong_token_is_rejected_and_the_probe_is_not_found() -> None:
    """Asking for the probe separates working credentials from others."""
    wrong = msgspec.structs.replace(SIMULATED, api_token="api_live_us.of.somebody-else")
    (rejected,), _ = asyncio.run(ask(onfido.Onfido.probe_session_id, credentials=wrong))
    (absent,), _ = asyncio.run(ask(onfido.Onfido.probe_session_id))
    assert rejected.outcome is Finding.PROVIDER_REJECTED
    assert absent.outcome is Finding.NOT_FOUND


def test_a_run_of_the_sandbox_is_not_live() -> None:
    """The credentials state the environment: a live key must refuse the run later."""
    sandbox = msgspec.structs.replace(
        SIMULATED, api_token=simulated.TOKENS["sandbox"], environment="sandbox"
    )
    (result,), _ = asyncio.run(ask("0f1d0000-0000-4000-8000-000000000042", credentials=sandbox))
    assert (result.outcome, result.live) == (Finding.VERIFIED, False)


def test_the_request_matches_onfidos_documentation() -> None:
    """The token goes into the header only; the request id is kept."""
    (result,), requests = asyncio.run(ask(listed()[0].session_id))
    assert {seen.method for seen in requests} == {"GET"}
    assert {seen.headers["authorization"] for seen in requests} == {
        f"Token token={SIMULATED.api_token}"
    }
    evidence = result.evidence
    assert evidence is not None
    assert evidence.request_id is not None
    assert evidence.api_version == "v3.6"
    assert SIMULATED.origin == "https://api.us.onfido.com"


def test_the_same_document_has_one_fingerprint() -> None:
    """Two runs of one licence agree; another's does not."""
    one, other, again = (session.session_id for session in listed()[:3])
    (first, second, third), _ = asyncio.run(ask(one, again, other))
    assert first.document_fingerprint == second.document_fingerprint is not None
    assert third.document_fingerprint not in {None, first.document_fingerprint}


def test_a_result_shows_nothing_of_a_person() -> None:
    """Neither the result nor its parts show a name in a repr."""
    result = read()
    shown = repr((result, result.addresses, result.document, result.evidence))
    assert not any(word in shown for word in ("Jane", "Main St", "94111", "1990"))
