"""A buyer who has moved: an operator accepts another ZIP code, on the record, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

import pytest

from countersign.base.errors import InvalidArgument, UnknownSubject
from countersign.base.values import Reason
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.buyers import admin
from countersign.core.buyers.admin import StoredEvidence
from countersign.core.buyers.model import Buyer, BuyerStatus
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.rules import PROOFS
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from countersign.identity.model import FactSource
from tests.support.acts import done
from tests.verification.conftest import each_engine
from tests.verification.inside import Insider, Stage
from tests.verification.test_settling import undecided

S = BuyerStatus
NEW_ZIP = "10001"
WITH_OPERATOR = (*PROOFS, FactSource.OPERATOR)


def accept(stage: Stage, cbid: str, zip_: str = NEW_ZIP) -> Buyer:
    """Accept a ZIP code, as `buyers accept-zip` does."""
    room, document = stage.opened.buyers, "a utility bill"
    return stage.do(admin.accept_zip(room, cbid, zip_, document=document, reason="case 7"))


def refused(stage: Stage, cbid: str, zip_: str = NEW_ZIP) -> str:
    """Try to accept one that must be refused; returns the message. Nothing is written."""
    tables = ("buyers", "verifications", "records", "audit_log", "events", "zip_attempts")
    before = [stage.rows(f"SELECT * FROM {table}") for table in tables]  # noqa: S608 - our names
    with pytest.raises(InvalidArgument) as caught:
        accept(stage, cbid, zip_)
    assert [stage.rows(f"SELECT * FROM {table}") for table in tables] == before  # noqa: S608
    return caught.value.message


def moved_house(vendor: Insider) -> str:
    """Have a buyer refused for the ZIP code alone; gives the cbid."""
    outcome = vendor.verify(vendor.part("verified"), NEW_ZIP)
    assert outcome.view.reasons == (Reason.ZIP_MISMATCH,)
    return outcome.cbid


@each_engine
def test_a_buyer_who_moved_is_verified_by_an_operators_decision(stage: Stage) -> None:
    """Evidence, audit and proofs name the person whose word it was."""
    vendor = stage.insider(zip_sources=WITH_OPERATOR)
    cbid = moved_house(vendor)
    buyer = accept(stage, cbid)
    assert buyer.cbid == cbid
    assert vendor.standing(cbid).status is S.VERIFIED
    [proof] = buyer.proofs
    assert proof.facts.zip_sources == (FactSource.OPERATOR,)
    [basis, made] = stage.rows("SELECT id FROM verifications ORDER BY status")
    [record] = stage.rows("SELECT body FROM records WHERE id = :id", id=made["id"])
    assert json.loads(bytes(record["body"]))["override"] == "zip"
    [entry] = [
        entry
        for entry in stage.do(admin.audit_log(stage.opened.buyers, cbid))
        if entry.action == "buyer_zip_accepted"
    ]
    assert entry.details == {
        "reason": "case 7",
        "document": "a utility bill",
        "verification": basis["id"],
    }
    owners = "SELECT account_id, mode FROM audit_owners WHERE entry_id = :id"
    [owner] = stage.rows(owners, id=entry.id)
    assert (owner["account_id"], owner["mode"]) == (vendor.account_id, "live")


def test_only_an_account_that_requests_it_relies_on_an_operators_decision(stage: Stage) -> None:
    """Another vendor learns that the address is not proved."""
    vendor, other = stage.insider(zip_sources=WITH_OPERATOR), stage.insider()
    cbid = moved_house(vendor)
    accept(stage, cbid)
    seen = other.standing(cbid)
    assert (seen.status, seen.reasons) == (S.REQUIRES_INPUT, (Reason.ADDRESS_NOT_PROVED,))
    assert "sources of a ZIP code" in refused(stage, moved_house(other))


def test_the_word_of_an_operator_lasts_no_longer_than_the_session(stage: Stage) -> None:
    """Validity runs from the provider's decision, not from the operator's."""
    vendor = stage.insider(zip_sources=WITH_OPERATOR, validity_days=30)
    cbid = moved_house(vendor)
    stage.clock.now += timedelta(days=20)
    accept(stage, cbid)
    stage.clock.now += timedelta(days=11)
    assert vendor.standing(cbid).status is S.EXPIRED
    assert "expired" in refused(stage, cbid)


@pytest.mark.parametrize("plays", ["requires_input", "redacted", "underage", "no_date_of_birth"])
def test_no_other_rule_is_relaxed(stage: Stage, plays: str) -> None:
    """Age, document and the provider's decision are never a matter of an operator's word."""
    vendor = stage.insider(zip_sources=WITH_OPERATOR)
    assert refused(stage, vendor.verify(vendor.part(plays)).cbid)


def test_a_buyer_without_a_providers_approval_stays_unchanged(stage: Stage) -> None:
    """Nor is a revoked or erased buyer accepted, nor an invalid ZIP code."""
    vendor = stage.insider(zip_sources=WITH_OPERATOR)
    _, _, waiting = undecided(vendor)
    assert "No provider has approved" in refused(stage, waiting)
    cbid = moved_house(vendor)
    assert "five digits" in refused(stage, cbid, "1000")
    stage.do(done(admin.revoke, stage.opened.buyers, cbid, "case 8"))
    assert "revoked" in refused(stage, cbid)
    with pytest.raises(UnknownSubject):
        accept(stage, "cbid_" + "0" * 26)


@each_engine
def test_a_buyer_erased_at_that_moment_does_not_come_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence read before brings back neither the buyer nor itself."""
    cbid = moved_house(stage.insider(zip_sources=WITH_OPERATOR))
    privacy, approved = stage.opened.privacy, admin._approved

    async def erased_after(room: Buyers, buyer: Buyer, read: Sequence[StoredEvidence]) -> object:
        found = await approved(room, buyer, read)
        await erase_planned(
            privacy, await plan_erasure(privacy, cbid, DEPLOYMENT), ErasureReason.REQUEST
        )
        return found

    monkeypatch.setattr(admin, "_approved", erased_after)
    with pytest.raises(UnknownSubject):
        accept(stage, cbid)
    assert stage.rows("SELECT cbid FROM buyers") == []
    assert stage.rows("SELECT record_id FROM verification_evidence") == []
