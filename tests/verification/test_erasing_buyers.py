"""Erasing a verified buyer: everything about the person goes, but not that it was revoked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest

from countersign.base.errors import OnHold
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.operate import bootstrap
from countersign_simulators.base import Reply, Request, Session
from tests.support.holding import place_hold, release_hold
from tests.verification.conftest import MakeVendor
from tests.verification.live import LiveVendor, reinstate, revoke

ABOUT = ("buyers", "verifications", "buyer_documents", "provider_sessions", "pending_sessions")


def erase(vendor: LiveVendor, subject: str) -> None:
    """Erase it, as `countersign erase` does."""

    async def work(opened: bootstrap.Deployment) -> None:
        plan = await plan_erasure(opened.privacy, subject, DEPLOYMENT, with_acknowledgments=True)
        await erase_planned(opened.privacy, plan, ErasureReason.REQUEST)

    vendor.operator.act(work)


def rows_about(vendor: LiveVendor, *cbids: str) -> dict[str, int]:
    """How many rows there are of a buyer, by table."""
    return {
        table: sum(
            len(vendor.operator.rows(f"SELECT 1 FROM {table} WHERE cbid = :cbid", cbid=cbid))  # noqa: S608 - our own names
            for cbid in cbids
        )
        for table in ABOUT
    }


def shred_keys_of(vendor: LiveVendor, ids: list[str]) -> list[str]:
    """Those of these that still have a key."""
    query = "SELECT record_id FROM shred_keys WHERE record_id = :id"
    return [id_ for id_ in ids if vendor.operator.rows(query, id=id_)]


def test_an_erased_buyer_leaves_no_row_and_no_evidence(vendor: LiveVendor) -> None:
    """Nor a key for a copy of the evidence; its records stay."""
    cbid = vendor.verified(vendor.part("verified"))
    verifications = [row["id"] for row in vendor.rows("verifications")]
    assert len(vendor.rows("verification_evidence")) == len(verifications) == 1
    assert shred_keys_of(vendor, verifications) == verifications
    erase(vendor, cbid)
    assert set(rows_about(vendor, cbid).values()) == {0}
    assert not vendor.rows("verification_evidence")
    assert shred_keys_of(vendor, verifications) == []
    answer = vendor.live.get(f"/v1/buyers/{cbid}/status")
    assert answer.status_code == 404
    assert vendor.operator.rows("SELECT 1 FROM records WHERE id = :id", id=verifications[0])


def test_an_erased_buyer_may_verify_again_as_somebody_new(vendor: LiveVendor) -> None:
    """Nothing is left that identifies the person."""
    session = vendor.part("verified")
    first = vendor.verified(session)
    erase(vendor, first)
    assert vendor.verified(session) != first


def test_an_undecided_session_is_erased_with_its_buyer(vendor: LiveVendor) -> None:
    """The poller has nothing left to ask about, and no key to read it with."""
    cbid = vendor.verify(vendor.part("pending")).json()["cbid"]
    kept = [row["id"] for row in vendor.rows("pending_sessions")]
    assert shred_keys_of(vendor, kept) == kept != []
    erase(vendor, cbid)
    assert not vendor.rows("pending_sessions")
    assert shred_keys_of(vendor, kept) == []


def test_a_revoked_buyer_stays_revoked_when_it_is_erased(vendor: LiveVendor) -> None:
    """Erasing is no way around a revocation; all else about it goes."""
    session = vendor.part("verified")
    erase(vendor, vendor.verified(session))  # whatever others left of this person
    cbid = vendor.verified(session)
    revoke(vendor.operator, cbid)
    try:
        erase(vendor, cbid)
        left = rows_about(vendor, cbid)
        [row] = vendor.operator.rows("SELECT * FROM buyers WHERE cbid = :cbid", cbid=cbid)
        again = vendor.verify(session).json()
    finally:
        reinstate(vendor.operator, cbid)
    assert left == {
        "buyers": 1,
        "verifications": 0,
        "buyer_documents": 1,
        "provider_sessions": 1,
        "pending_sessions": 0,
    }
    assert (row["proofs"], row["verified_at"], row["expires_at"]) == ("[]", None, None)
    assert (again["cbid"], again["status"]) == (cbid, "revoked")


def test_the_evidence_of_one_verification_can_be_erased_alone(vendor: LiveVendor) -> None:
    """The buyer stays verified by the earlier proof."""
    cbid = vendor.verified(vendor.part("verified"))
    [verification] = [row["id"] for row in vendor.rows("verifications")]
    erase(vendor, verification)
    assert not vendor.rows("verification_evidence")
    assert shred_keys_of(vendor, [verification]) == []
    assert vendor.status(cbid)["status"] == "verified"


@pytest.mark.parametrize("by", ["first", "later"])
def test_every_identifier_of_a_person_is_erased_with_any_of_them(
    vendor_with: MakeVendor, by: str
) -> None:
    """Two identifiers that turned out to be one person: a hold on either keeps both."""
    vendor = vendor_with("stripe")
    older, newer = joined(vendor)
    subject = older if by == "first" else newer

    async def held(opened: bootstrap.Deployment) -> str:
        return (await place_hold(opened.privacy, newer if by == "first" else older, "case 7")).id

    hold = vendor.operator.act(held)
    with pytest.raises(OnHold):
        erase(vendor, subject)

    async def release(opened: bootstrap.Deployment) -> None:
        await release_hold(opened.privacy, hold)

    vendor.operator.act(release)
    erase(vendor, subject)
    assert set(rows_about(vendor, older, newer).values()) == {0}


def joined(vendor: LiveVendor) -> tuple[str, str]:
    """The identifier of a session with an unknown document, and that of the document."""
    one, other = same_document(vendor.playing.simulator.sessions)
    undecided = vendor.part("pending")

    def not_yet(request: Request, _reply: Reply) -> Reply:
        path = request.path.replace(other.session_id, undecided.session_id)
        reply = vendor.playing.simulator.simulator.answer(replace(request, path=path))
        ids = undecided.session_id.encode(), other.session_id.encode()
        return replace(reply, body=reply.body.replace(*ids))

    with vendor.playing.mood(not_yet):
        first = vendor.verify(other, subject_reference=undecided.subject_reference).json()
    assert first.get("status") == "pending", first
    known = vendor.verified(one)
    assert vendor.verified(other) == known != first["cbid"]
    assert vendor.status(first["cbid"])["status"] == "verified"
    return first["cbid"], known


def same_document(sessions: Sequence[Session]) -> tuple[Session, Session]:
    """Two sessions of one person."""
    verified = [session for session in sessions if session.scenario == "verified"]
    return next((a, b) for a, b in combinations(verified, 2) if a.personal == b.personal)
