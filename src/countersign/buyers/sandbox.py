"""The sandbox: verification outcomes by session id, deterministic and simulated.

A session id listed in SCRIPT has its scripted outcome; any other, and none at all, is verified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from sqlalchemy import Connection

from countersign.access.idempotency import IdempotencyEntry, keep_answers
from countersign.access.test_clock import TestClock
from countersign.buyers.model import (
    VALIDITY,
    Buyer,
    BuyerStatus,
    VerificationAttempt,
    after_attempt,
    first_verification,
    simulated_status_view,
)
from countersign.buyers.result import VerifyResult, verify_result
from countersign.buyers.room import Buyers
from countersign.buyers.sandbox_faults import meet_fault
from countersign.buyers.sql import (
    buyers_by_cbid,
    write_buyer,
    write_status_event,
    write_verification,
)
from countersign.buyers.zip_attempts_sql import ZipSubject, count_zip
from countersign.errors import CountersignError, ProviderSessionNotFound, ProviderUnavailable
from countersign.evidence.canonical import Json, canonical_json
from countersign.identity.postal_code import zip5
from countersign.ids import SANDBOX_BUYER, VERIFICATION, base32, timed_id
from countersign.instant import from_ns
from countersign.log.append_record import account_fact
from countersign.log.record import NewRecord, RecordType
from countersign.mode import Mode
from countersign.reason import Reason
from countersign.vault.vault import DataKey

PROVIDER: Final = "sandbox"
"""The provider's name in a simulated verification."""
_RETRY_AFTER_SECONDS: Final = 5
_SINCE_EXPIRED: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedAct:
    """What happens to a sandbox buyer, and when."""

    account_id: str
    cbid: str
    clock: TestClock
    """The account's, by which the sandbox goes."""
    time_ns: int
    """Real time, which the record has."""
    data_key: DataKey

    @property
    def now(self) -> datetime:
        """What the test clock shows."""
        return self.clock.at(from_ns(self.time_ns))


async def simulate(
    room: Buyers,
    account_id: str,
    session_id: str | None,
    shipping_zip: str | None,
    entry: Callable[[bytes], IdempotencyEntry] | None = None,
) -> VerifyResult:
    """Verify a buyer in the sandbox of an account; durable when this returns.

    The first call decides about a sandbox buyer: a session is evaluated once.

    Raises:
        ProviderUnavailable, ProviderSessionNotFound, ProviderSessionNotBound,
        VerificationMisconfigured: as scripted or planned.
        RateLimited: too many ZIP codes tried in one session.
    """
    await meet_fault(room, account_id, session_id)
    act = await sandbox_act(room, account_id, sandbox_cbid(account_id, session_id, shipping_zip))
    attempts = SCRIPT.get(session_id or "", _verified)(act.now)
    return await room.database.write(
        _simulate, room, act, attempts, session_id, shipping_zip, entry
    )


async def sandbox_act(room: Buyers, account_id: str, cbid: str) -> SimulatedAct:
    """An act of now, by the account's test clock."""
    clock = await room.test_clocks.of(account_id, Mode.TEST)
    time_ns = room.clock.time_ns()
    return SimulatedAct(
        account_id=account_id,
        cbid=cbid,
        clock=clock,
        time_ns=time_ns,
        data_key=await room.vault.data_key(account_id, time_ns),
    )


def sandbox_cbid(account_id: str, session_id: str | None, shipping_zip: str | None) -> str:
    """A function of account, session id and ZIP, and of nothing else."""
    seed = canonical_json(["countersign sandbox buyer", account_id, session_id, shipping_zip])
    return f"{SANDBOX_BUYER}_{base32(int.from_bytes(sha256(seed).digest()[:16], 'big'))}"


def _simulate(  # noqa: PLR0917 - see `Database.write`
    connection: Connection,
    room: Buyers,
    act: SimulatedAct,
    attempts: tuple[VerificationAttempt, ...],
    session_id: str | None,
    shipping_zip: str | None,
    entry: Callable[[bytes], IdempotencyEntry] | None,
) -> VerifyResult | CountersignError:
    index, at = room.secret.blind_index, from_ns(act.time_ns)
    subject_index = session_id and index(act.account_id, "provider_session", session_id)
    zip_index = shipping_zip and index(act.account_id, "zip", zip5(shipping_zip))
    if subject_index and zip_index:
        subject = ZipSubject(act.account_id, Mode.TEST, subject_index)
        if refusal := count_zip(connection, subject, zip_index, at):
            return refusal
    buyer = buyers_by_cbid(connection, [act.cbid]).get(act.cbid)
    if buyer is None:
        buyer = _played(act, attempts)
        record = simulated_record(room, act, session_id, attempts[-1])
        write_buyer(connection, None, buyer)
        write_verification(
            connection,
            record,
            attempts[-1],
            cbid=act.cbid,
            provider=PROVIDER,
            subject_index=subject_index or None,
            zip_index=zip_index or None,
        )
        write_status_event(connection, buyer, at, shown=act.now)
        room.journal.write(connection, [record])
    result = verify_result(buyer.cbid, simulated_status_view(buyer, act.now))
    if entry is not None:
        keep_answers(connection, [entry(result.body)])
    return result


def simulated_record(
    room: Buyers,
    act: SimulatedAct,
    session_id: str | None,
    attempt: VerificationAttempt,
    **members: Json,
) -> NewRecord:
    """The record of a verification in the sandbox; `members` are said in addition."""
    at = from_ns(act.time_ns)
    result = {
        "status": attempt.status.value,
        "reasons": [reason.value for reason in attempt.reasons],
    }
    return account_fact(
        act.data_key,
        room.entropy,
        RecordType.VERIFICATION,
        record_id=timed_id(VERIFICATION, act.time_ns, room.entropy(8)),
        account_id=act.account_id,
        mode=Mode.TEST,
        time_ns=act.time_ns,
        members={"provider": PROVIDER, "simulated": True, **members, **act.clock.member(at)},
        personal=(
            ("cbid", act.cbid),
            ("provider_identity_session_id", session_id),
            ("result", result),
        ),
        cbid_index=room.secret.blind_index(act.account_id, "cbid", act.cbid),
    )


def _played(act: SimulatedAct, attempts: tuple[VerificationAttempt, ...]) -> Buyer:
    buyer = first_verification(
        cbid=act.cbid,
        account_id=act.account_id,
        mode=Mode.TEST,
        simulated=True,
        attempt=attempts[0],
    )
    for attempt in attempts[1:]:
        buyer = after_attempt(buyer, attempt)
    return buyer


def _verified(now: datetime) -> tuple[VerificationAttempt, ...]:
    return (VerificationAttempt(status=BuyerStatus.VERIFIED, at=now, expires_at=now + VALIDITY),)


def _ends_as(
    status: BuyerStatus, *reasons: Reason
) -> Callable[[datetime], tuple[VerificationAttempt, ...]]:
    return lambda now: (VerificationAttempt(status=status, at=now, reasons=reasons),)


def _expired(now: datetime) -> tuple[VerificationAttempt, ...]:
    return _verified(now - VALIDITY - _SINCE_EXPIRED)


def _revoked(now: datetime) -> tuple[VerificationAttempt, ...]:
    return (*_verified(now), VerificationAttempt(status=BuyerStatus.REVOKED, at=now))


def _not_found(_: datetime) -> tuple[VerificationAttempt, ...]:
    raise ProviderSessionNotFound


def _unavailable(_: datetime) -> tuple[VerificationAttempt, ...]:
    raise ProviderUnavailable(retry_after=_RETRY_AFTER_SECONDS)


SCRIPT: Final[dict[str, Callable[[datetime], tuple[VerificationAttempt, ...]]]] = {
    "test_pending": _ends_as(BuyerStatus.PENDING),
    "test_requires_input": _ends_as(BuyerStatus.REQUIRES_INPUT, Reason.IDENTITY_REQUIRES_INPUT),
    "test_failed": _ends_as(BuyerStatus.FAILED, Reason.IDENTITY_FAILED),
    "test_underage": _ends_as(BuyerStatus.FAILED, Reason.AGE_BELOW_MINIMUM),
    "test_zip_mismatch": _ends_as(BuyerStatus.FAILED, Reason.ZIP_MISMATCH),
    "test_expired": _expired,
    "test_revoked": _revoked,
    "test_session_not_found": _not_found,
    "test_provider_unavailable": _unavailable,
}
"""The attempts of each scripted session, by its id; two where there is a history."""
