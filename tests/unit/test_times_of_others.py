"""The times of a verification as an account sees them that did not make it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from countersign.base.values import Mode, from_ms, to_ms
from countersign.core.buyers.model import (
    Buyer,
    BuyerStatus,
    ProvedSession,
    after_revocation,
    status_view,
)
from countersign.core.buyers.rules import Facts, VerificationRules
from countersign.identity.model import FactSource, Tri

ACCOUNTS: Final = ("acct_a", "acct_b", "acct_c")
START: Final = to_ms(datetime(2026, 11, 20, tzinfo=UTC))
DAY_MS: Final = 24 * 60 * 60 * 1000
FACTS: Final = Facts(
    age_over=30,
    document_checked=True,
    document_unexpired=Tri.PASS,
    zip_sources=(FactSource.DOCUMENT,),
)


@st.composite
def _proofs(draw: st.DrawFn) -> ProvedSession:
    began = START + draw(st.integers(0, 3 * DAY_MS))
    return ProvedSession(
        session="00",
        verified_at=began,
        began_at=began,
        expires_at=began + draw(st.integers(1, 3 * DAY_MS)),
        facts=FACTS,
        zips=(),
        accounts=tuple(draw(st.sets(st.sampled_from(ACCOUNTS), min_size=1))),
    )


def _buyer(proofs: list[ProvedSession]) -> Buyer:
    last = max(proofs, key=lambda proof: proof.expires_at)
    return Buyer(
        cbid="cbid_x",
        account_id=last.accounts[0],
        mode=Mode.LIVE,
        status=BuyerStatus.VERIFIED,
        verified_at=from_ms(last.verified_at),
        expires_at=from_ms(last.expires_at),
        proofs=tuple(proofs),
    )


@given(
    st.lists(_proofs(), min_size=1, max_size=4),
    st.sampled_from((*ACCOUNTS, "acct_never_met")),
    st.integers(-DAY_MS, 7 * DAY_MS),
)
def test_only_an_own_verification_has_a_time_of_day(
    proofs: list[ProvedSession], asking: str, moment: int
) -> None:
    """Whole days of Unix time define a day; the rounded end decides the status."""
    now = START + moment
    seen = []
    for proof in proofs:
        unit = 1 if asking in proof.accounts else DAY_MS
        seen.append((proof.expires_at // unit * unit, proof.verified_at // unit * unit))
    ends = max(end for end, _ in seen)
    view = status_view(_buyer(proofs), asking, VerificationRules(), from_ms(now))
    assert view.expires_at == from_ms(ends)
    assert view.verified_at in {from_ms(began) for end, began in seen if end == ends}
    assert view.status is (BuyerStatus.VERIFIED if now < ends else BuyerStatus.EXPIRED)


@given(st.lists(_proofs(), min_size=1, max_size=4), st.sampled_from((*ACCOUNTS, "acct_never_met")))
def test_times_of_a_revoked_buyer_are_rounded_too(proofs: list[ProvedSession], asking: str) -> None:
    """Neither in the status nor in the response to verify."""
    buyer = after_revocation(_buyer(proofs))
    view = status_view(buyer, asking, VerificationRules(), from_ms(START))
    times = (view.verified_at, view.expires_at)
    if not any(asking in proof.accounts for proof in proofs):
        assert all(at is not None and to_ms(at) % DAY_MS == 0 for at in times)


def test_data_written_by_an_earlier_build_counts_for_the_first_account() -> None:
    """Its proofs name no account."""
    at = datetime(2026, 11, 20, 21, 31, 5, tzinfo=UTC)
    proof = ProvedSession(
        session="00",
        verified_at=to_ms(at),
        began_at=to_ms(at),
        expires_at=to_ms(at + timedelta(days=9)),
        facts=FACTS,
        zips=(),
    )
    buyer = Buyer(
        cbid="cbid_x",
        account_id="acct_a",
        mode=Mode.LIVE,
        status=BuyerStatus.VERIFIED,
        verified_at=at,
        expires_at=at + timedelta(days=9),
        proofs=(proof,),
    )
    seen = {name: status_view(buyer, name, VerificationRules(), at) for name in ACCOUNTS}
    assert seen["acct_a"].verified_at == at
    assert seen["acct_b"].verified_at == at.replace(hour=0, minute=0, second=0)
