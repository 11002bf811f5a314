"""Identity checks that this service starts: one attempt for one reference, bound to it.

The reference, the identifier of a checkout session, is the subject of the provider's session: a
check started for one reference never verifies another.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace
from sqlalchemy import Connection, select
from structlog.contextvars import bound_contextvars

from countersign.base.db.tables import verifications
from countersign.base.errors import (
    CountersignError,
    ProviderSessionNotFound,
    ProviderUnavailable,
    RateLimited,
    VerificationNotConfigured,
)
from countersign.base.values import Reason, from_ns
from countersign.core.access.reach import AccountReach
from countersign.core.buyers import sessions_sql, started_sql
from countersign.core.buyers.evaluate_session import look_again
from countersign.core.buyers.identity_check import CheckState, IdentityCheck
from countersign.core.buyers.model import BuyerStatus, best_proof, status_view
from countersign.core.buyers.providers import Integration
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.session_evidence import (
    SessionRequest,
    asked_index,
    session_index,
    to_follow,
    zip_index,
)
from countersign.core.buyers.sql import StatusQuery, buyers_and_rules
from countersign.core.buyers.started_sql import StartedCheck
from countersign.core.buyers.zips import count_zip, own_zip_subject, proves_zip
from countersign.identity.model import StartRequest

REMEMBERED: Final = "remembered"
"""Stands for the provider if the buyer is known already."""
_RETRY_SECONDS: Final = 5


async def providers_for(room: Buyers, reach: AccountReach) -> tuple[str, ...]:
    """The names of the providers that a buyer may use, the account's first one first.

    Empty: none is configured, and with test keys the sandbox plays.
    """
    found = await room.providers.all_of(reach.account_id, reach.mode)
    return tuple(integration.settings.provider for integration in found)


async def start(
    room: Buyers,
    who: AccountReach,
    *,
    provider: str | None,
    reference: str,
    attempt: int,
    return_url: str,
    locale: str,
    shipping_zip: str,
) -> IdentityCheck:
    """Have a provider make a session for a buyer, and follow it; durable when this returns.

    Repeated with the same reference and attempt, it returns a working session: the same one if the
    provider recognises repetitions. `provider` None: the account's first.

    Raises:
        VerificationNotConfigured: the account has no such provider.
        VerificationMisconfigured: the provider refuses the account's credentials, or they lack what
            a new session needs.
        ProviderUnavailable: the provider returned no usable response.
    """
    found = await _integrations(room, who, provider)
    integration, account_id = found[0], who.account_id
    name = integration.settings.provider
    wanted = StartRequest(
        reference=reference, return_url=return_url, locale=locale, key=f"{reference}.{attempt}"
    )
    # Before the request to the provider: afterwards one transaction is enough.
    time_ns = room.access.clock.time_ns()
    data_key = await room.vault.data_key(account_id, time_ns)
    try:
        # Whatever is logged of the response names the account.
        with bound_contextvars(account=account_id):
            made = await integration.provider.start(wanted)
    except CountersignError as error:
        room.watch.started[name, error.code] += 1
        room.watch.failed(name, error.code)
        raise
    room.watch.started[name, "started"] += 1
    check = IdentityCheck(
        attempt=attempt,
        provider=name,
        provider_session=made.session_id,
        url=made.url,
        expires_at=made.expires_at,
        opens_once=made.opens_once,
        leads_back=made.leads_back,
    )
    request = SessionRequest(
        session_id=made.session_id, shipping_zip=shipping_zip, subject_reference=reference
    )
    asked = asked_index(room, integration, made.session_id, reference)
    pending = to_follow(room, data_key, integration, request, asked, None, time_ns)
    zip_ = zip_index(room, account_id, shipping_zip)
    new = StartedCheck(reference, pending.session_index, zip_, check)

    def put(connection: Connection) -> CountersignError | None:
        if started_sql.is_erased(connection, new.reference):
            return None  # meanwhile; it must not bring the buyer's data back
        if started_sql.add(connection, new, pending.reach, pending.created_at):
            sessions_sql.follow(connection, pending)
            return None
        known = started_sql.of_session(connection, pending.reach, new.session_index)
        if known is None or known.reference != new.reference:
            # The provider gives a session of somebody else.
            return ProviderUnavailable(retry_after=_RETRY_SECONDS)
        return None

    await room.access.database.write(put)
    return check


async def ask(
    room: Buyers,
    who: AccountReach,
    *,
    provider: str,
    session_id: str,
    reference: str,
    shipping_zip: str,
) -> IdentityCheck:
    """Ask the provider about a started session, decide, and write; durable when this returns.

    Nothing is written about a buyer who has submitted nothing: then `cbid` is None, and the status
    `requires_input`, or `pending` if the provider does not say whether anything was submitted.

    Raises:
        VerificationNotConfigured: the account no longer has the provider.
        ProviderSessionNotFound: this session was not started for this reference, or is gone.
        Others as `evaluate` does.
    """
    # An account has at most one integration of a name in a mode.
    [integration] = await _integrations(room, who, provider)
    known = await room.access.database.read(_started, room, integration, session_id)
    if known is None or known.reference != reference:
        raise ProviderSessionNotFound
    request = SessionRequest(
        session_id=session_id, shipping_zip=shipping_zip, subject_reference=reference
    )
    result, decision = await look_again(room, integration, request)
    if result is None:
        return replace(known.check, status=decision.status, reasons=decision.reasons)
    after = await room.access.database.read(_started, room, integration, session_id)
    return replace(
        (after or known).check,
        cbid=result.cbid,
        status=result.view.status,
        reasons=result.view.reasons,
    )


async def started_at(
    room: Buyers, integrations: Sequence[Integration], session_id: str
) -> tuple[Integration, str] | None:
    """The integration that started this session, and its reference; None: none has."""
    for integration in integrations:
        known = await room.access.database.read(_started, room, integration, session_id)
        if known is not None:
            return integration, known.reference
    return None


def check_of(connection: Connection, reference: str) -> tuple[IdentityCheck | None, int]:
    """The best of all that was started for a reference, and how many decisions there were.

    A verified check takes precedence over a pending one, and that over the newest. None: no
    decision.
    """
    found = started_sql.of_reference(connection, reference)
    checks = [one.check for one in reversed(found) if one.check.status is not None]
    # The newest first: of equals, `max` gives the first.
    best = max(checks, key=lambda one: (one.state is CheckState.VERIFIED, one.counts), default=None)
    return best, sum(stored.revision for stored in found)


async def judge_known(
    room: Buyers, who: AccountReach, cbid: str, shipping_zip: str | None
) -> IdentityCheck:
    """Whether a known buyer is verified for this account now, by its own rules.

    With a ZIP code, also whether that is proved, as in a clearance: it counts as one of the ZIP
    codes that the buyer lets the account compare. A buyer that is not known has to verify.

    Raises RateLimited if too many ZIP codes were tried for the buyer.
    """
    clock = await room.access.test_clocks.of(who.account_id, who.mode)
    at = from_ns(room.access.clock.time_ns())
    query = StatusQuery(who.account_id, who.mode, cbid)
    # Without a ZIP code nothing is counted or written.
    database = room.access.database
    run = database.read if shipping_zip is None else database.write
    return await run(judge, room, query, shipping_zip, at, clock.at(at))


async def _integrations(
    room: Buyers, who: AccountReach, provider: str | None
) -> tuple[Integration, ...]:
    found = await room.providers.all_of(who.account_id, who.mode)
    if provider is not None:
        found = tuple(one for one in found if one.settings.provider == provider)
    if not found:
        raise VerificationNotConfigured
    return found


def _started(
    connection: Connection, room: Buyers, integration: Integration, session_id: str
) -> StartedCheck | None:
    index = session_index(room, integration, session_id)
    return started_sql.of_session(connection, integration.reach, index)


def judge(  # noqa: PLR0917 - see `Database.write`
    connection: Connection,
    room: Buyers,
    query: StatusQuery,
    shipping_zip: str | None,
    at: datetime,
    now: datetime,
) -> IdentityCheck | RateLimited:
    """The act of `judge_known`: `at` is real time, `now` that of the test clock."""
    [known] = buyers_and_rules(connection, [query])
    if known is None:
        return _known(None, BuyerStatus.REQUIRES_INPUT, Reason.IDENTITY_REQUIRES_INPUT)
    buyer, own = known
    floor = room.providers.floor
    rules = own.at_least(floor) if own else floor
    view = status_view(buyer, query.account_id, rules, now)
    if view.status is not BuyerStatus.VERIFIED or shipping_zip is None:
        return _known(buyer.cbid, view.status, *view.reasons)
    account_id, cbid, secret = query.account_id, buyer.cbid, room.access.secret
    asked = zip_index(room, account_id, shipping_zip)
    subject = own_zip_subject(secret, account_id, query.mode, cbid)
    if refusal := count_zip(connection, subject, asked, at):
        return refusal
    proof = best_proof(buyer, rules, account_id)
    if buyer.proofs:
        proved = proof and proves_zip(secret, account_id, cbid, proof, rules, shipping_zip, now)
    else:
        # A simulated buyer has the ZIP codes of its simulated verifications.
        played = select(verifications.c.zip_index).where(verifications.c.cbid == cbid)
        proved = asked in connection.execute(played).scalars().all()
    if not proved:
        return _known(cbid, BuyerStatus.FAILED, Reason.ZIP_MISMATCH)
    return _known(cbid, BuyerStatus.VERIFIED)


def _known(cbid: str | None, status: BuyerStatus, *reasons: Reason) -> IdentityCheck:
    return IdentityCheck(attempt=0, provider=REMEMBERED, cbid=cbid, status=status, reasons=reasons)
