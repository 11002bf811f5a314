"""The states of a buyer: every state against every attempt, and who may rely on them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.values import Mode, Reason, from_ms, to_ms
from countersign.core.buyers.model import (
    PROOFS_MAX,
    VALIDITY,
    Buyer,
    BuyerStatus,
    ProvedSession,
    VerificationAttempt,
    after_attempt,
    after_revocation,
    best_proof,
    reinstated,
    status_at,
    status_view,
)
from countersign.core.buyers.rules import PROOFS, DocumentExpiry, Facts, VerificationRules
from countersign.identity.model import FactSource, Tri
from tests.support.every import every

S = BuyerStatus
START = datetime(2026, 11, 20, 21, 31, tzinfo=UTC)
TICK = timedelta(milliseconds=1)
DAY = timedelta(days=1)
PLAIN = VerificationRules()

# `expired` is not among them: it is a matter of time, not of an attempt.
OUTCOMES = [S.PENDING, S.REQUIRES_INPUT, S.FAILED, S.VERIFIED, S.REVOKED]
STORED = [S.PENDING, S.REQUIRES_INPUT, S.FAILED, S.VERIFIED, S.REVOKED]
REASONS = {
    S.REQUIRES_INPUT: (Reason.IDENTITY_REQUIRES_INPUT,),
    S.FAILED: (Reason.AGE_BELOW_MINIMUM, Reason.ZIP_MISMATCH),
}


def attempt(status: BuyerStatus, at: datetime = START + DAY) -> VerificationAttempt:
    """An attempt that came to this."""
    proved = proof(f"{at}", at=at) if status is S.VERIFIED else None
    return VerificationAttempt(status=status, reasons=REASONS.get(status, ()), proof=proved)


def after(known: Buyer, outcome: BuyerStatus, at: datetime = START + DAY) -> Buyer:
    """The buyer after an attempt that came to this, or an operator's revocation."""
    if outcome is S.REVOKED:
        return after_revocation(known)
    return after_attempt(known, attempt(outcome, at))


def buyer(
    status: BuyerStatus,
    *,
    was_verified: bool = False,
    simulated: bool = True,
    ends: bool = True,
) -> Buyer:
    """A buyer in this state since START; An `expired` buyer was verified long before."""
    expired = status is S.EXPIRED
    verified = status in {S.VERIFIED, S.EXPIRED} or was_verified
    verified_at = START - 2 * VALIDITY if expired else START
    return Buyer(
        cbid="cbid_test_x",
        account_id="acct_own",
        mode=Mode.TEST,
        status=S.VERIFIED if expired else status,
        reasons=REASONS.get(status, ()),
        verified_at=verified_at if verified else None,
        expires_at=verified_at + VALIDITY if verified and ends else None,
        simulated=simulated,
    )


# Row: the buyer's state when the attempt is made. Column: the result of the attempt. The cell is
# the state at the time of the attempt, by DESIGN: any state but `revoked` moves by a new
# verification, and a failed attempt never takes `verified` away.
MOVES = {
    S.PENDING: [S.PENDING, S.REQUIRES_INPUT, S.FAILED, S.VERIFIED, S.REVOKED],
    S.REQUIRES_INPUT: [S.PENDING, S.REQUIRES_INPUT, S.FAILED, S.VERIFIED, S.REVOKED],
    S.FAILED: [S.PENDING, S.REQUIRES_INPUT, S.FAILED, S.VERIFIED, S.REVOKED],
    S.VERIFIED: [S.VERIFIED, S.VERIFIED, S.VERIFIED, S.VERIFIED, S.REVOKED],
    S.EXPIRED: [S.EXPIRED, S.EXPIRED, S.EXPIRED, S.VERIFIED, S.REVOKED],
    S.REVOKED: [S.REVOKED, S.REVOKED, S.REVOKED, S.REVOKED, S.REVOKED],
}


def test_the_table_of_moves_has_every_state_and_outcome() -> None:
    """A new state has to be thought through against every outcome."""
    assert set(MOVES) == set(S)
    assert set(OUTCOMES) == set(S) - {S.EXPIRED}
    assert all(len(row) == len(OUTCOMES) for row in MOVES.values())


@every("outcome", OUTCOMES)
@every("state", S)
def test_every_state_moves_as_the_table_says(state: BuyerStatus, outcome: BuyerStatus) -> None:
    """All states by all outcomes."""
    before, now = buyer(state), START + DAY
    assert status_at(before, now) is state
    assert status_at(after(before, outcome), now) is MOVES[state][OUTCOMES.index(outcome)]


@every("outcome", OUTCOMES)
@every("state", S)
def test_an_attempt_changes_neither_identifier_nor_owner(
    state: BuyerStatus, outcome: BuyerStatus
) -> None:
    """A cbid stays one buyer of one account and mode."""
    before, later = buyer(state), after(buyer(state), outcome)
    assert (later.cbid, later.account_id, later.mode) == (
        before.cbid,
        before.account_id,
        before.mode,
    )
    assert later.simulated == before.simulated


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_first_attempt_makes_a_buyer_in_its_resulting_state(outcome: BuyerStatus) -> None:
    """There is no state before the first attempt."""
    blank = Buyer(cbid="c", account_id="a", mode=Mode.TEST, simulated=True)
    made = after(blank, outcome)
    assert made.status is outcome
    assert made.reasons == REASONS.get(outcome, ())
    assert (made.verified_at is not None) == (outcome is S.VERIFIED)


@pytest.mark.parametrize("outcome", [S.PENDING, S.REQUIRES_INPUT, S.FAILED])
@pytest.mark.parametrize("state", [S.VERIFIED, S.EXPIRED])
def test_an_attempt_that_does_not_succeed_leaves_a_verification_untouched(
    state: BuyerStatus, outcome: BuyerStatus
) -> None:
    """Status, times and reasons stay: the response to *verify* is about the attempt."""
    assert after_attempt(buyer(state), attempt(outcome)) == buyer(state)


def test_a_new_success_renews_the_times_and_drops_the_reasons() -> None:
    """A refreshed verification counts from the new attempt."""
    at = START + DAY
    for state in (S.PENDING, S.REQUIRES_INPUT, S.FAILED, S.VERIFIED, S.EXPIRED):
        renewed = after(buyer(state), S.VERIFIED, at)
        assert (renewed.verified_at, renewed.expires_at) == (at, at + VALIDITY)
        assert renewed.reasons == ()


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_revoked_sticks(outcome: BuyerStatus) -> None:
    """No attempt leads out of `revoked`, and none changes the stored data of the buyer."""
    revoked = after(buyer(S.VERIFIED), S.REVOKED)
    assert after(revoked, outcome) == revoked


def test_a_revocation_keeps_the_earlier_verification() -> None:
    """Status shows when the buyer had been verified, although it no longer counts."""
    revoked = after(buyer(S.VERIFIED), S.REVOKED)
    assert (revoked.verified_at, revoked.expires_at) == (START, START + VALIDITY)


@given(st.lists(st.sampled_from(OUTCOMES), max_size=12), st.timedeltas(timedelta(0), 3 * VALIDITY))
def test_only_time_or_revocation_takes_verified_away(
    outcomes: list[BuyerStatus], later: timedelta
) -> None:
    """Any history of attempts: only the latest success and the latest revocation count."""
    known = buyer(S.PENDING)
    at = START
    for number, outcome in enumerate(outcomes):
        at = START + number * DAY
        known = after(known, outcome, at)
    now = at + later
    successes = [START + n * DAY for n, o in enumerate(outcomes) if o is S.VERIFIED]
    if S.REVOKED in outcomes:
        expected = S.REVOKED
    elif successes:
        expected = S.VERIFIED if now < successes[-1] + VALIDITY else S.EXPIRED
    else:
        expected = ([S.PENDING, *outcomes])[-1]
    assert status_at(known, now) is expected


def test_verified_expires_in_the_very_moment_of_expires_at() -> None:
    """The last valid moment is the one before."""
    known = buyer(S.VERIFIED)
    end = START + VALIDITY
    assert status_at(known, end - TICK) is S.VERIFIED
    assert status_at(known, end) is S.EXPIRED
    assert status_at(known, end + TICK) is S.EXPIRED


def test_a_verification_without_an_end_counts_as_expired() -> None:
    """Unknown is never a pass."""
    assert status_at(buyer(S.VERIFIED, ends=False), START) is S.EXPIRED


@pytest.mark.parametrize("state", [s for s in STORED if s is not S.VERIFIED])
def test_time_changes_no_other_state(state: BuyerStatus) -> None:
    """Only `verified` wears off."""
    for was_verified in (False, True):
        known = buyer(state, was_verified=was_verified)
        assert status_at(known, START + 10 * VALIDITY) is state


@pytest.mark.parametrize("state", S)
def test_a_simulated_verification_never_counts_outside_its_account(state: BuyerStatus) -> None:
    """Others learn that the buyer has to verify, the reason, and nothing else."""
    answer = status_view(buyer(state), "acct_other", PLAIN, START)
    assert answer.status is S.REQUIRES_INPUT
    assert answer.reasons == (Reason.SIMULATED_ELSEWHERE,)
    assert (answer.verified_at, answer.expires_at) == (None, None)


@pytest.mark.parametrize("state", S)
def test_the_own_account_learns_how_the_buyer_stands(state: BuyerStatus) -> None:
    """Status by time, and the times as stored."""
    known = buyer(state)
    answer = status_view(known, "acct_own", PLAIN, START)
    assert answer.status is state
    assert (answer.verified_at, answer.expires_at) == (known.verified_at, known.expires_at)


@pytest.mark.parametrize("state", S)
def test_a_real_verification_is_shown_to_every_account(state: BuyerStatus) -> None:
    """Status is the one thing that crosses accounts."""
    known = buyer(state, simulated=False)
    assert status_view(known, "acct_other", PLAIN, START) == status_view(
        known, "acct_own", PLAIN, START
    )


def test_a_verification_lasts_at_most_twelve_months() -> None:
    """No statute was found that sets the time; twelve months is the bound by choice."""
    assert timedelta(0) < VALIDITY <= timedelta(days=366)


def test_stable_codes_never_change() -> None:
    """Programs compare with them."""
    assert [s.value for s in S] == [
        "pending",
        "requires_input",
        "failed",
        "verified",
        "expired",
        "revoked",
    ]
    assert [r.value for r in Reason] == [
        "identity_failed",
        "identity_not_proved",
        "identity_requires_input",
        "session_canceled",
        "session_expired",
        "session_redacted",
        "session_undecided",
        "document_unreadable",
        "document_unsupported",
        "document_not_accepted",
        "selfie_mismatch",
        "selfie_not_accepted",
        "details_mismatch",
        "contact_unverified",
        "consent_declined",
        "device_unsupported",
        "verification_misconfigured",
        "verification_not_configured",
        "provider_session_not_found",
        "session_not_bound",
        "test_session",
        "verification_withdrawn",
        "revoked",
        "age_unknown",
        "age_below_minimum",
        "zip_unknown",
        "zip_mismatch",
        "document_expired",
        "document_expiry_unknown",
        "age_not_proved",
        "address_not_proved",
        "simulated_elsewhere",
    ]


# --- what real verifications prove ---------------------------------------------------------------


def proof(
    session: str = "s1",
    *,
    at: datetime = START,
    began: datetime | None = None,
    age_over: int = 30,
    unexpired: Tri = Tri.PASS,
    sources: tuple[FactSource, ...] = (FactSource.DOCUMENT,),
    days: int = 365,
    zips: tuple[str, ...] = ("z1",),
    document: date | None = None,
) -> ProvedSession:
    """A verification that succeeded."""
    began = began or at
    return ProvedSession(
        session=session,
        verified_at=to_ms(at),
        began_at=to_ms(began),
        expires_at=to_ms(began + timedelta(days=days)),
        facts=Facts(
            age_over=age_over,
            document_checked=True,
            document_unexpired=unexpired,
            zip_sources=sources,
        ),
        zips=zips,
        document_expires_on=document,
    )


def succeeded(proved: ProvedSession) -> VerificationAttempt:
    """The attempt that proved this."""
    return VerificationAttempt(status=S.VERIFIED, session=proved.session, proof=proved)


def real(*proofs: ProvedSession) -> Buyer:
    """A buyer after these verifications, one after the other."""
    known = Buyer(cbid="cbid_x", account_id="acct_own", mode=Mode.LIVE)
    for proof in proofs:
        known = after_attempt(known, succeeded(proof))
    return known


@pytest.mark.parametrize(
    ("proved", "rules", "reasons"),
    [
        (proof(age_over=18), VerificationRules(minimum_age=21), (Reason.AGE_NOT_PROVED,)),
        (
            proof(sources=(FactSource.DATABASE,)),
            VerificationRules(zip_sources=(FactSource.DOCUMENT,)),
            (Reason.ADDRESS_NOT_PROVED,),
        ),
        (
            proof(unexpired=Tri.UNKNOWN),
            VerificationRules(document_expiry=DocumentExpiry.UNEXPIRED),
            (Reason.DOCUMENT_EXPIRY_UNKNOWN,),
        ),
    ],
)
def test_an_account_that_requires_more_than_was_proved_learns_that_the_buyer_has_to_verify(
    proved: ProvedSession, rules: VerificationRules, reasons: tuple[Reason, ...]
) -> None:
    """The same buyer is verified for an account that asks for less."""
    known = real(proved)
    answer = status_view(known, "acct_other", rules, START)
    assert (answer.status, answer.reasons) == (S.REQUIRES_INPUT, reasons)
    assert (answer.verified_at, answer.expires_at) == (None, None)
    assert status_view(known, "acct_other", PLAIN, START).status is S.VERIFIED


def test_a_shorter_validity_of_the_asking_account_counts() -> None:
    """From the provider's decision, not from our request."""
    known = real(proof(began=START - 10 * DAY))
    asked = VerificationRules(validity_days=30)
    ends = (START + 20 * DAY).replace(hour=0, minute=0)
    assert status_view(known, "acct_other", asked, START).expires_at == ends
    assert status_view(known, "acct_other", asked, ends - TICK).status is S.VERIFIED
    assert status_view(known, "acct_other", asked, ends).status is S.EXPIRED
    assert status_view(known, "acct_other", PLAIN, ends).status is S.VERIFIED


def test_the_longest_lasting_proof_by_the_askers_rules_is_shown() -> None:
    """An older proof of more facts still counts for accounts that require more."""
    strong, weak = proof("s1", age_over=25), proof("s2", at=START + 9 * DAY, age_over=18)
    known = real(strong, weak)
    asked = VerificationRules(minimum_age=21)
    assert best_proof(known, asked, "acct_own") == strong
    assert best_proof(known, PLAIN, "acct_own") == weak
    assert status_view(known, "acct_own", asked, START).expires_at == START + VALIDITY
    assert status_view(known, "acct_own", PLAIN, START).expires_at == START + 9 * DAY + VALIDITY


def test_the_same_session_again_changes_nothing() -> None:
    """It proves nothing new, so the verification does not get younger."""
    known = real(proof())
    again = succeeded(proof(at=START + DAY, began=START))
    assert after_attempt(known, again) == known


def test_the_document_still_expires_if_the_session_is_judged_by_other_rules() -> None:
    """Whichever account judges it first; one with a short validity has no use for the day."""
    short, long = proof(days=9), proof(at=START + DAY, document=START.date() + 40 * DAY)
    for known in (real(short, long), real(long, short)):
        expires_at = status_view(known, "acct_own", PLAIN, START).expires_at
        # Midnight in Los Angeles.
        assert expires_at == datetime(2026, 12, 31, 8, tzinfo=UTC)


def test_a_proof_whose_document_ends_does_not_replace_a_lasting_one() -> None:
    """Neither replaces the other: to some accounts the first is worth less."""
    lasting = proof("lasting")
    ending = (
        proof(f"s{n}", at=START + n * DAY, document=START.date() + 40 * DAY) for n in range(1, 9)
    )
    known = real(lasting, *ending)
    assert lasting in known.proofs
    assert status_view(known, "x", PLAIN, START + 50 * DAY).status is S.VERIFIED


def test_only_the_newest_verifications_are_kept() -> None:
    """A buyer who verifies forever does not grow forever."""
    known = real(*(proof(f"s{number}", at=START + number * DAY) for number in range(9)))
    assert [one.session for one in known.proofs] == ["s5", "s6", "s7", "s8"]
    assert len(known.proofs) == PROOFS_MAX


@pytest.mark.parametrize("weaker", [proof(age_over=18), proof(sources=(FactSource.DATABASE,))])
def test_many_weaker_verifications_do_not_push_out_a_stronger_one(weaker: ProvedSession) -> None:
    """No one can take `verified` away from an account that asks for more."""
    strong = proof("strong", age_over=30, days=90)
    later = (
        msgspec.structs.replace(weaker, session=f"s{n}", expires_at=strong.expires_at + n)
        for n in range(1, 9)
    )
    known = real(strong, *later)
    assert strong in known.proofs
    assert len(known.proofs) == PROOFS_MAX


def test_an_older_session_never_shortens_a_verification() -> None:
    """Whichever is shown first."""
    new, old = proof("s1"), proof("s2", at=START + DAY, began=START - 300 * DAY)
    assert real(new, old).expires_at == real(old, new).expires_at == START + VALIDITY


_RULES = st.builds(
    VerificationRules,
    minimum_age=st.sampled_from([18, 21, 23]),
    zip_sources=st.sets(st.sampled_from(PROOFS), min_size=1).map(tuple),
    document_expiry=st.sampled_from(DocumentExpiry),
    validity_days=st.sampled_from([30, 365]),
)


def _shown(proved: ProvedSession) -> ProvedSession:
    """With the end of the document shown in this session, if it is stored."""
    last = {"s1": START.date() + 9 * DAY, "s2": START.date() + 99 * DAY}.get(proved.session)
    kept = last and last <= from_ms(proved.expires_at).date()
    return msgspec.structs.replace(proved, document_expires_on=last if kept else None)


_PROOFS = st.builds(
    proof,
    st.sampled_from(["s1", "s2", "s3", "s4"]),
    at=st.sampled_from([START, START + DAY]),
    began=st.sampled_from([START - DAY, START]),
    age_over=st.sampled_from([18, 21, 23]),
    unexpired=st.sampled_from(Tri),
    sources=st.sets(st.sampled_from(PROOFS), min_size=1).map(tuple),
    days=st.sampled_from([30, 365]),
).map(_shown)


@given(st.lists(_PROOFS, min_size=1, max_size=6), _PROOFS, _RULES)
def test_a_further_success_never_takes_verified_away(
    before: list[ProvedSession], new: ProvedSession, rules: VerificationRules
) -> None:
    """Not even under rules other than those of the success."""
    known = real(*before)
    now = START + 2 * DAY
    was = status_view(known, "acct_other", rules, now)
    answer = status_view(after_attempt(known, succeeded(new)), "acct_other", rules, now)
    if was.status is S.VERIFIED:
        assert answer.status is S.VERIFIED
        assert was.expires_at is not None
        assert answer.expires_at is not None
        assert answer.expires_at >= was.expires_at


def test_a_revoked_buyer_is_revoked_for_everybody_until_it_is_reinstated() -> None:
    """Its earlier proofs count again then."""
    known = real(proof())
    revoked = after_revocation(known)
    assert status_view(revoked, "acct_other", PLAIN, START).status is S.REVOKED
    assert after_attempt(revoked, succeeded(proof("s2"))) == revoked
    assert reinstated(revoked) == known


def test_a_reinstated_buyer_who_never_verified_has_to_verify() -> None:
    """There is no earlier state to return to."""
    back = reinstated(after_revocation(buyer(S.PENDING, simulated=False)))
    assert (back.status, back.reasons) == (S.REQUIRES_INPUT, (Reason.IDENTITY_REQUIRES_INPUT,))


# --- a yes lives as long as what it rests on -----------------------------------------------------

ACCOUNTS = ("acct_a", "acct_b")
SESSIONS = ("s1", "s2", "s3", "s4")


class Told(NamedTuple):
    """One word about a person: what happened, in which session, at which account."""

    what: str
    session: str
    account: str
    age: int
    days: int


class History:
    """What is left of all words, kept without proofs: the oracle."""

    def __init__(self) -> None:
        self.ages: dict[str, int] = {}
        self.ends: dict[str, datetime] = {}
        self.doubts: set[tuple[str, str]] = set()
        self.revoked = False

    def hear(self, one: Told) -> None:
        if one.what in {"revoke", "reinstate"}:
            self.revoked = one.what == "revoke"
        elif one.what == "yes" and not self.revoked:
            ends = START + one.days * DAY
            self.ages[one.session] = max(one.age, self.ages.get(one.session, 0))
            self.ends[one.session] = max(ends, self.ends.get(one.session, ends))
        elif one.what == "no":
            self._forget(one.session)
        elif one.what == "younger":
            for session in [s for s, age in self.ages.items() if age >= one.age]:
                if session == one.session:
                    self._forget(session)
                else:
                    self.doubts.add((session, one.account))

    def _forget(self, session: str) -> None:
        self.ages.pop(session, None)
        self.ends.pop(session, None)
        self.doubts = {pair for pair in self.doubts if pair[0] != session}

    def status(self, account: str, now: datetime) -> BuyerStatus | None:
        """None: the buyer was never verified, or has nothing left."""
        counting = [end for s, end in self.ends.items() if (s, account) not in self.doubts]
        if self.revoked:
            return S.REVOKED
        if not counting:
            return S.REQUIRES_INPUT if self.ends else None
        return S.VERIFIED if now < max(counting) else S.EXPIRED


def heard(known: Buyer, one: Told) -> Buyer:
    """The buyer after this word."""
    match one.what:
        case "revoke":
            return after_revocation(known)
        case "reinstate":
            return reinstated(known) if known.status is S.REVOKED else known
        case "yes":
            new = proof(one.session, age_over=one.age, days=one.days)
            made = succeeded(msgspec.structs.replace(new, accounts=(one.account,)))
        case _:
            made = VerificationAttempt(status=S.FAILED, session=one.session)
    return after_attempt(
        known,
        replace(
            made,
            withdraws=one.what == "no",
            younger_than=one.age if one.what == "younger" else None,
            account_id=one.account,
        ),
    )


@given(
    st.lists(
        st.builds(
            Told,
            st.sampled_from(["yes", "yes", "no", "younger", "failed", "revoke", "reinstate"]),
            st.sampled_from(SESSIONS),
            st.sampled_from(ACCOUNTS),
            st.sampled_from([18, 21, 25]),
            st.sampled_from([3, 9, 27]),
        ),
        max_size=14,
    ),
    st.integers(0, 30),
)
def test_a_buyer_is_verified_exactly_as_far_as_something_is_left_to_rest_on(
    words: list[Told], days: int
) -> None:
    """Any history, two accounts: each sees what is left of it, at any later time."""
    known, history = Buyer(cbid="cbid_x", account_id="acct_a", mode=Mode.LIVE), History()
    for one in words:
        known = heard(known, one)
        history.hear(one)
        for account in ACCOUNTS:
            now = START + days * DAY
            wanted = history.status(account, now)
            seen = status_view(known, account, PLAIN, now)
            assert {p.session for p in known.proofs} == set(history.ages)
            if wanted is not None:
                assert seen.status is wanted, (one, account)
            else:
                assert seen.status not in {S.VERIFIED, S.EXPIRED}
            if seen.status is S.REQUIRES_INPUT and history.ends:
                assert seen.reasons == (Reason.VERIFICATION_WITHDRAWN,)


@given(
    st.lists(
        st.builds(
            Told,
            st.sampled_from(["yes", "no", "younger"]),
            st.sampled_from(SESSIONS),
            st.sampled_from(ACCOUNTS),
            st.sampled_from([18, 25]),
            st.sampled_from([9, 27]),
        ),
        max_size=10,
    )
)
def test_the_same_word_once_more_changes_nothing(words: list[Told]) -> None:
    """Messages and polls repeat."""
    known = Buyer(cbid="cbid_x", account_id="acct_a", mode=Mode.LIVE)
    for one in words:
        known = heard(known, one)
        assert heard(known, one) == known
