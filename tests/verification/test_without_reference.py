"""Every session that a rehearsal lists, asked for with no more than a session and a ZIP code."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from countersign_simulators.base import Session
from countersign_simulators.registry import SIMULATORS
from tests.support.providers import UNANSWERED
from tests.verification.conftest import MakeVendor
from tests.verification.live import VERIFY

AT_ONCE = 6


@pytest.mark.parametrize("provider", SIMULATORS)
def test_a_part_verifies_without_a_reference_if_and_only_if_it_is_listed_as_verified(
    vendor_with: MakeVendor, provider: str
) -> None:
    """As `simulate-provider --list` says about a first live verify with this ZIP code."""
    vendor = vendor_with(provider)

    def verify(session: Session) -> httpx2.Response:
        body = {
            "provider_identity_session_id": session.session_id,
            "shipping_zip": session.shipping_zip,
        }
        return vendor.live.post(VERIFY, json=body)

    sessions = [s for s in vendor.playing.simulator.sessions if s.scenario not in UNANSWERED]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(verify, sessions))
    wrong = [
        (session.scenario, session.session_id, answer.text)
        for session, answer in zip(sessions, answers, strict=True)
        if (answer.json().get("status") == "verified") != (session.scenario == "verified")
    ]
    assert wrong == []
    (other,) = [
        answer.json()
        for session, answer in zip(sessions, answers, strict=True)
        if session.scenario == "other_subject"
    ]
    assert (other["status"], other["reasons"]) == ("failed", ["zip_mismatch"])
