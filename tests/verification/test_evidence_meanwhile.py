"""Evidence read before a decision is not used if it is erased meanwhile."""

from __future__ import annotations

import pytest

from countersign.base.errors import InvalidArgument, ReviewRefused
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.buyers import review
from countersign.core.buyers.review import AcceptedZip
from countersign.core.privacy.erase import erase_planned, plan_erasure
from countersign.core.privacy.model import ErasureReason
from tests.verification.conftest import each_engine
from tests.verification.inside import Stage
from tests.verification.test_accepting_zips import NEW_ZIP, WITH_OPERATOR, accept, moved_house


@each_engine
@pytest.mark.parametrize("way", ["command", "review"])
def test_evidence_erased_at_that_moment_does_not_come_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The verification alone is erased: its buyer stays, and the decision on it is refused."""
    vendor = stage.insider(zip_sources=WITH_OPERATOR)
    cbid = moved_house(vendor)
    [basis] = stage.rows("SELECT id FROM verifications")
    privacy, providers = stage.opened.privacy, type(stage.opened.buyers.providers)
    all_of, erased = providers.all_of, list[str]()

    async def meanwhile(*given: object) -> object:
        # The evidence is read; the transaction of the decision is to come.
        if not erased:
            erased.append(basis["id"])
            plan = await plan_erasure(privacy, basis["id"], DEPLOYMENT)
            await erase_planned(privacy, plan, ErasureReason.REQUEST)
        return await all_of(*given)  # type: ignore[arg-type]  # as it is called

    monkeypatch.setattr(providers, "all_of", meanwhile)
    if way == "command":
        with pytest.raises(InvalidArgument, match="evidence of the approval was erased"):
            accept(stage, cbid)
    else:
        bill = AcceptedZip(NEW_ZIP, "a utility bill", "case 7")
        with pytest.raises(ReviewRefused, match="evidence of the approval was erased"):
            stage.do(review.accept(stage.opened.buyers, vendor.principal, cbid, bill))
    assert erased
    assert stage.rows("SELECT id FROM verifications") == [basis]
    assert stage.rows("SELECT record_id FROM verification_evidence") == []
    assert stage.rows("SELECT id FROM audit_log WHERE action = 'buyer_zip_accepted'") == []
