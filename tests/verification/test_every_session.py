"""Every session of every simulated provider, asked for over HTTP: verified only if it may be."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from countersign_simulators.registry import SIMULATORS
from tests.http.test_pages import Page
from tests.support.providers import UNANSWERED
from tests.verification.conftest import MakeVendor
from tests.verification.live import LiveVendor

AT_ONCE = 6
ANSWERS = {
    # Parts whose answer the specification settles, in every simulator.
    "underage": (200, "failed", ["age_below_minimum"]),
    "zip_mismatch": (200, "failed", ["zip_mismatch"]),
    "foreign_address": (200, "failed", ["zip_unknown"]),
    "document_expired": (200, "failed", ["document_expired"]),
    "expired_document": (200, "failed", ["document_expired"]),
    "failed": (200, "failed", ["identity_failed"]),
    "pending": (200, "pending", None),
    "review": (200, "pending", None),
    "requires_input": (200, "requires_input", ["identity_requires_input"]),
    "canceled": (200, "requires_input", ["session_canceled"]),
    "expired": (200, "requires_input", ["session_expired"]),
    "other_subject": (422, "provider_session_not_bound", None),
    "test_session": (422, "provider_session_not_bound", None),
    "unknown_status": (503, "provider_unavailable", None),
    "wrong_id": (503, "provider_unavailable", None),
    "other_session": (503, "provider_unavailable", None),
    "truncated": (503, "provider_unavailable", None),
    "huge": (503, "provider_unavailable", None),
    "oversized": (503, "provider_unavailable", None),
    "cut": (503, "provider_unavailable", None),
    "server_error": (503, "provider_unavailable", None),
    "error_500": (503, "provider_unavailable", None),
    "rate_limited": (503, "provider_unavailable", None),
}


def outcome(answer: httpx2.Response) -> tuple[int, str, list[str] | None]:
    """Status, verdict or code, and reasons."""
    body = answer.json()
    if answer.status_code != 200:
        return answer.status_code, body["error"]["code"], None
    return 200, body["status"], body.get("reasons")


@pytest.mark.parametrize("provider", SIMULATORS)
def test_a_session_verifies_only_if_it_may_and_its_answer_is_not_personal(
    vendor_with: MakeVendor, provider: str
) -> None:
    """All parts: the verdict, the body and the headers, and that every row is whole."""
    vendor = vendor_with(provider)
    sessions = [s for s in vendor.playing.simulator.sessions if s.scenario not in UNANSWERED]
    assert len({s.scenario for s in sessions}) >= 12
    # Some sessions are of one person: the verifying ones go first, for a first verify each.
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(vendor.verify, sessions))
    wrong, leaked = [], []
    for session, answer in zip(sessions, answers, strict=True):
        verdict = outcome(answer)
        verified = verdict == (200, "verified", None)
        if verified != (session.scenario == "verified"):
            wrong.append((session.scenario, verdict))
        # Why the provider decided so may come after the reason of ours.
        status, word, reasons = verdict
        ours = (status, word, reasons[:1] if reasons else reasons)
        if ANSWERS.get(session.scenario, ours) != ours:
            wrong.append((session.scenario, verdict))
        shown = answer.text + str(answer.headers.raw)
        leaked += [f"{word} in the answer" for word in session.personal if word in shown]
        if verdict[:2] == (503, "provider_unavailable"):
            assert int(answer.headers["Retry-After"]) >= 1
    assert wrong == []
    assert leaked == []
    _every_row_is_whole(vendor, answers)


def _every_row_is_whole(vendor: LiveVendor, answers: Iterable[httpx2.Response]) -> None:
    """A buyer for each cbid, and for each verification a record and its evidence."""
    cbids = {a.json()["cbid"] for a in answers if a.status_code == 200}
    buyers = {row["cbid"]: row for row in vendor.rows("buyers")}
    assert set(buyers) == cbids
    ids = {row["id"] for row in vendor.rows("verifications")}
    assert ids == {row["record_id"] for row in vendor.rows("verification_evidence")}
    assert ids <= {row["id"] for row in vendor.rows("records")}
    pending = {row["cbid"] for row in vendor.rows("pending_sessions")}
    undecided = {"pending", "requires_input"}
    assert pending <= {cbid for cbid, row in buyers.items() if row["status"] in undecided}


def test_every_returned_reason_is_named_on_the_page(vendor: LiveVendor) -> None:
    """A refusal of a live verify has its place on the page of errors."""
    answer = vendor.verify(vendor.part("other_subject"))
    assert answer.status_code == 422
    page = Page(vendor.live.get("/docs/errors").text)
    assert answer.json()["error"]["code"] in page.ids
