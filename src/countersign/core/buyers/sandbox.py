"""The sandbox: verification outcomes by session id, deterministic and simulated.

A session id listed in SCRIPT has its scripted outcome; any other, or none, is verified.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import replace
from sqlalchemy import Connection, delete, select, update

from countersign.base.db.tables import test_faults
from countersign.base.errors import CountersignError, ProviderSessionNotBound
from countersign.base.values import SANDBOX_BUYER, Mode, Reason, base32, from_ns
from countersign.core.access.idempotency import Remember
from countersign.core.buyers.decision import refuse_unusable
from countersign.core.buyers.model import (
    VALIDITY,
    Buyer,
    BuyerStatus,
    after_revocation,
    status_at,
    status_view,
)
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.rules import zip5
from countersign.core.buyers.schemas import VerifyResult, answered
from countersign.core.buyers.session_evidence import (
    VerificationAct,
    write_verification,
)
from countersign.core.buyers.sql import (
    buyers_by_cbid,
    write_buyer,
    write_status_event,
)
from countersign.core.buyers.zips import ZipSubject, count_zip
from countersign.identity.model import Finding, ProviderResult
from countersign_evidence.canonical import canonical_json

CALLS_MAX: Final = 1000
DELAY_SECONDS_MAX: Final = 15
"""The longest that a planned fault takes: longer than any live call to a provider may."""


class Fault(StrEnum):
    """A failure of an identity provider, or of the access to it."""

    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    UNINTELLIGIBLE = "unintelligible"
    SESSION_NOT_FOUND = "session_not_found"
    SESSION_NOT_BOUND = "session_not_bound"
    MISCONFIGURED = "misconfigured"


OUTCOMES: Final = {
    Fault.TIMEOUT: Finding.PROVIDER_UNAVAILABLE,
    Fault.RATE_LIMITED: Finding.PROVIDER_UNAVAILABLE,
    Fault.SERVER_ERROR: Finding.PROVIDER_UNAVAILABLE,
    Fault.UNINTELLIGIBLE: Finding.INVALID_RESPONSE,
    Fault.SESSION_NOT_FOUND: Finding.NOT_FOUND,
    Fault.MISCONFIGURED: Finding.PROVIDER_REJECTED,
}
"""The finding of an adapter for each fault; an unbound session is detected later."""
_PROVIDER_RETRY_SECONDS: Final = {Fault.RATE_LIMITED: 30}
"""Retry-After of a provider with this fault; the others send none."""


class PlannedFault(Struct, frozen=True, kw_only=True):
    """The fault that verifications in the sandbox get; all null: no fault."""

    fault: Annotated[Fault | None, Meta(examples=[Fault.TIMEOUT])]
    calls: Annotated[int | None, Meta(examples=[2])]
    """The number of remaining calls. null: no limit."""
    delay_seconds: Annotated[int | None, Meta(examples=[0])]


NO_FAULT: Final = PlannedFault(fault=None, calls=None, delay_seconds=None)


def planned_fault(
    connection: Connection, account_id: str, *, to_change: bool = False
) -> PlannedFault:
    """The fault for the next verification of an account."""
    query = select(test_faults).where(test_faults.c.account_id == account_id)
    row = connection.execute(query.with_for_update() if to_change else query).one_or_none()
    if row is None:
        return NO_FAULT
    return PlannedFault(
        fault=Fault(row.fault), calls=row.calls_left, delay_seconds=row.delay_ms // 1000
    )


def clear_fault(connection: Connection, account_id: str) -> PlannedFault:
    """Remove the planned fault."""
    connection.execute(delete(test_faults).where(test_faults.c.account_id == account_id))
    return NO_FAULT


async def meet_fault(room: Buyers, account_id: str) -> None:
    """Fail as planned; nothing happens if nothing is planned. Raises as `fail` does."""
    if not await room.access.test_clocks.is_failing(account_id):
        return
    plan = await room.access.database.write(_take, account_id)
    if plan.fault is not None:
        await asyncio.sleep(plan.delay_seconds or 0)
        fail(plan.fault)


def fail(fault: Fault) -> None:
    """Fail as a live verification would that met this fault.

    Raises:
        ProviderUnavailable, ProviderSessionNotFound, ProviderSessionNotBound,
        VerificationMisconfigured: as the fault is.
    """
    outcome, seconds = OUTCOMES.get(fault), _PROVIDER_RETRY_SECONDS.get(fault)
    if outcome is None:
        raise ProviderSessionNotBound
    refuse_unusable(
        ProviderResult(provider="sandbox", session_id="", outcome=outcome, retry_after=seconds)
    )


def _take(connection: Connection, account_id: str) -> PlannedFault:
    """Return the fault for this call, and count it."""
    plan = planned_fault(connection, account_id, to_change=True)
    if plan.calls == 1:
        clear_fault(connection, account_id)
    elif plan.calls is not None:
        of_account = test_faults.c.account_id == account_id
        connection.execute(update(test_faults).where(of_account).values(calls_left=plan.calls - 1))
    return plan


PROVIDER: Final = "sandbox"
"""The provider's name in a simulated verification."""
_SINCE_EXPIRED: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, repr=False)
class SimulatedAct(VerificationAct):
    """A change of a sandbox buyer, and its time."""

    cbid: str


async def simulate(
    room: Buyers,
    account_id: str,
    session_id: str | None,
    shipping_zip: str | None,
    entry: Remember[bytes] = None,
) -> VerifyResult:
    """Verify a buyer in the sandbox of an account; durable when this returns.

    The first call decides about a sandbox buyer: a session is evaluated once.

    Raises:
        ProviderUnavailable, ProviderSessionNotFound, ProviderSessionNotBound,
        VerificationMisconfigured: as scripted or planned.
        RateLimited: too many ZIP codes tried in one session.
    """
    await meet_fault(room, account_id)
    scripted = SCRIPT.get(session_id or "")
    if isinstance(scripted, Fault):
        fail(scripted)
    act = await sandbox_act(room, account_id, sandbox_cbid(account_id, session_id, shipping_zip))

    def simulated(connection: Connection) -> VerifyResult | CountersignError:
        index, at = room.access.secret.blind_index, from_ns(act.time_ns)
        subject_index = session_id and index(act.account_id, "provider_session", session_id)
        zip_index = shipping_zip and index(act.account_id, "zip", zip5(shipping_zip))
        if subject_index and zip_index:
            subject = ZipSubject(act.account_id, Mode.TEST, subject_index)
            if refusal := count_zip(connection, subject, zip_index, at):
                return refusal
        buyer = buyers_by_cbid(connection, [act.cbid]).get(act.cbid)
        if buyer is None:
            buyer = _scripted(act, session_id)
            write_simulated(
                connection,
                room,
                act,
                (None, buyer),
                (buyer.status, buyer.reasons),
                session_id=session_id,
                subject_index=subject_index or None,
                zip_index=zip_index or None,
            )
        shown = status_view(buyer, act.account_id, room.providers.floor, act.now)
        return answered(connection, entry, buyer.cbid, shown)

    return await room.access.database.write(simulated)


async def sandbox_act(room: Buyers, account_id: str, cbid: str) -> SimulatedAct:
    """An act of now, by the account's test clock."""
    clock = await room.access.test_clocks.of(account_id, Mode.TEST)
    time_ns = room.access.clock.time_ns()
    data_key = await room.vault.data_key(account_id, time_ns)
    return SimulatedAct(account_id, Mode.TEST, clock, time_ns, data_key, cbid)


def sandbox_cbid(account_id: str, session_id: str | None, shipping_zip: str | None) -> str:
    """A function of account, session id and ZIP, and of nothing else."""
    seed = canonical_json(["countersign sandbox buyer", account_id, session_id, shipping_zip])
    return f"{SANDBOX_BUYER}_{base32(int.from_bytes(sha256(seed).digest()[:16], 'big'))}"


def write_simulated(
    connection: Connection,
    room: Buyers,
    act: SimulatedAct,
    change: tuple[Buyer | None, Buyer],
    result: tuple[BuyerStatus, tuple[Reason, ...]],
    **more: Any,  # noqa: ANN401 - as `write_verification` takes them
) -> None:
    """Write a verification in the sandbox: the buyer before and after it, and the record of it.

    `result` is stated in the record; `more` is as for `write_verification`.
    """
    before, after = change
    write_buyer(connection, before, after)
    own = {"stored": (after.status, after.reasons), **more}
    write_verification(connection, room, act, act.cbid, PROVIDER, result, **own)
    write_status_event(connection, after, act.at, shown=act.now)


def in_state(
    buyer: Buyer, status: BuyerStatus, reasons: tuple[Reason, ...], now: datetime
) -> Buyer:
    """A sandbox buyer in another state, whatever the way there would be; `now` by the test clock.

    Unchanged if it is in that state already, so that a repeated call has no effect; but `verified`
    begins again, as with a new verification. Proofs of a provider no longer count.
    """
    buyer = buyer if status is BuyerStatus.REVOKED else replace(buyer, proofs=())
    verified = partial(replace, buyer, status=BuyerStatus.VERIFIED, reasons=())
    match status:
        case BuyerStatus.VERIFIED:
            return verified(verified_at=now, expires_at=now + VALIDITY)
        case BuyerStatus.EXPIRED:
            if status_at(buyer, now) is status:
                return buyer
            began = now - VALIDITY - _SINCE_EXPIRED
            verified_at = began if buyer.verified_at is None else min(buyer.verified_at, now)
            return verified(verified_at=verified_at, expires_at=now)
        case BuyerStatus.REVOKED:
            return after_revocation(buyer)
        case _:
            return replace(buyer, status=status, reasons=reasons, verified_at=None, expires_at=None)


def _scripted(act: SimulatedAct, session_id: str | None) -> Buyer:
    """The buyer after the first call."""
    scripted = SCRIPT.get(session_id or "")
    status, *reasons = (BuyerStatus.VERIFIED,) if isinstance(scripted, Fault | None) else scripted
    buyer = Buyer(cbid=act.cbid, account_id=act.account_id, mode=Mode.TEST, simulated=True)
    if status is BuyerStatus.EXPIRED:
        return in_state(buyer, BuyerStatus.VERIFIED, (), act.now - VALIDITY - _SINCE_EXPIRED)
    if status is BuyerStatus.REVOKED:
        buyer = in_state(buyer, BuyerStatus.VERIFIED, (), act.now)
    return in_state(buyer, status, tuple(reasons), act.now)


SCRIPT: Final[dict[str, Fault | tuple[BuyerStatus, *tuple[Reason, ...]]]] = {
    "test_pending": (BuyerStatus.PENDING,),
    "test_requires_input": (BuyerStatus.REQUIRES_INPUT, Reason.IDENTITY_REQUIRES_INPUT),
    "test_failed": (BuyerStatus.FAILED, Reason.IDENTITY_FAILED),
    "test_underage": (BuyerStatus.FAILED, Reason.AGE_BELOW_MINIMUM),
    "test_zip_mismatch": (BuyerStatus.FAILED, Reason.ZIP_MISMATCH),
    "test_expired": (BuyerStatus.EXPIRED,),
    "test_revoked": (BuyerStatus.REVOKED,),
    "test_session_not_found": Fault.SESSION_NOT_FOUND,
    "test_provider_unavailable": Fault.SERVER_ERROR,
}
"""The result of each scripted session, by its id: the provider's fault, or status and reasons."""
