"""Evaluate a provider session: ask the provider, decide, and write the result, all or nothing.

Nothing is kept between the provider's response and the commit: a process that dies there leaves no
trace, and the same request leads to the same buyer later.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from structlog.contextvars import bound_contextvars

from countersign.access.idempotency import IdempotencyEntry
from countersign.access.secrets import DeploymentSecret
from countersign.buyers.decision import (
    SessionDecision,
    decide,
    final,
    is_withheld,
    refuse_unbound,
    refuse_unusable,
)
from countersign.buyers.model import BuyerStatus
from countersign.buyers.person_sql import SessionKeys
from countersign.buyers.providers import Integration
from countersign.buyers.result import VerifyResult
from countersign.buyers.room import Buyers
from countersign.buyers.session_evidence import Evaluation, Override, SessionRequest
from countersign.buyers.write_evaluation import decision_view, write_evaluation
from countersign.errors import (
    CountersignError,
    InvalidArgument,
    ProviderSessionNotFound,
    VerificationMisconfigured,
)
from countersign.identity.model import ProviderResult
from countersign.instant import from_ns
from countersign.reason import Reason

_WITHHELD: Final = (
    "The identity provider approved the session, but does not show its date of birth to the "
    "credentials of this account."
)


async def evaluate(
    room: Buyers,
    integration: Integration,
    request: SessionRequest,
    entry: Callable[[bytes], IdempotencyEntry] | None = None,
    *,
    give_up: bool = False,
    polled: str | None = None,
) -> VerifyResult:
    """Evaluate a session as the provider reports it now; durable when this returns.

    Args:
        room: what the act works with.
        integration: the account's settings and provider.
        request: what is asked.
        entry: makes the kept response for a repeated request.
        give_up: whether to stop asking about a session that is still not decided.
        polled: the followed session that this is a poll of.

    Raises:
        ProviderSessionNotFound: there is no such session.
        ProviderSessionNotBound: it is about another subject, of the provider's test mode, or of
            another integration.
        ProviderUnavailable: the provider returned no usable response; nothing was written.
        VerificationMisconfigured: it refuses the account's credentials.
        RateLimited: too many ZIP codes tried for one buyer.
    """
    settings = integration.settings
    try:
        provided = await _fetch(room, integration, request.session_id)
        work = await _evaluated(
            room, integration, request, provided, give_up=give_up, polled=polled
        )
        result = await room.database.write(write_evaluation, room, work, entry)
    except CountersignError as error:
        room.watch.failed(settings.provider, error.code)
        raise
    view = result.view
    room.watch.evaluated(settings.account_id, settings.provider, view.status.value, view.reasons)
    return result


async def override(
    room: Buyers,
    integration: Integration,
    request: SessionRequest,
    result: ProviderResult,
    accepted: Override,
) -> VerifyResult:
    """Evaluate what a provider said before, with what an operator accepts; durable on return.

    Raises:
        InvalidArgument: the buyer would not be verified by it; nothing was written.
    """
    work = await _evaluated(room, integration, request, result, override=accepted)
    view = decision_view(work.decision, from_ns(work.time_ns))
    if view.status is not BuyerStatus.VERIFIED:
        why = ", ".join(view.reasons) or view.status.value
        msg = f"This would not make the buyer verified: {why}. Nothing was changed."
        raise InvalidArgument(msg)
    return await room.database.write(write_evaluation, room, work, None)


async def _fetch(room: Buyers, integration: Integration, session_id: str) -> ProviderResult:
    """What the provider says of the session, if that is usable."""
    account_id, provider = integration.settings.account_id, integration.settings.provider
    began = room.clock.monotonic()
    try:
        # Whatever is logged of the response names the account.
        with bound_contextvars(account=account_id):
            result = await integration.provider.retrieve(session_id)
    except ValueError:
        raise ProviderSessionNotFound from None
    seconds = room.clock.monotonic() - began
    room.watch.asked(provider, seconds, result.unknown_fields)
    refuse_unusable(result)
    if is_withheld(result):
        # The buyer can do nothing about it: what is missing is a permission of the credentials.
        room.watch.withheld(account_id, provider)
        raise VerificationMisconfigured(_WITHHELD)
    return result


async def _evaluated(
    room: Buyers,
    integration: Integration,
    request: SessionRequest,
    result: ProviderResult,
    *,
    give_up: bool = False,
    polled: str | None = None,
    override: Override | None = None,
) -> Evaluation:
    """All that is known before it is known who the buyer is."""
    settings, time_ns = integration.settings, room.clock.time_ns()
    decision = decide(
        result,
        integration.rules,
        shipping_zip=request.shipping_zip,
        subject_reference=request.subject_reference,
        now=from_ns(time_ns),
    )
    if Reason.TEST_SESSION in decision.reasons:
        room.watch.not_live(settings.account_id, settings.provider)
    refuse_unbound(decision, result)
    if give_up:
        decision = final(decision)
    return Evaluation(
        integration=integration,
        request=request,
        result=result,
        decision=decision,
        keys=_keys(room.secret, integration, request, result, decision),
        data_key=await room.vault.data_key(settings.account_id, time_ns),
        time_ns=time_ns,
        polled=polled,
        override=override,
    )


def session_index(secret: DeploymentSecret, integration: Integration, session_id: str) -> bytes:
    """The keyed hash of a session: the same for every account that uses the provider."""
    return secret.blind_index(integration.namespace, "provider_session", session_id)


def _keys(
    secret: DeploymentSecret,
    integration: Integration,
    request: SessionRequest,
    result: ProviderResult,
    decision: SessionDecision,
) -> SessionKeys:
    asked, named = request.subject_reference, result.subject_reference
    hashed = partial(secret.blind_index, integration.namespace)
    both = None if asked is None else f"{request.session_id}\x00{asked}"
    return SessionKeys(
        session=session_index(secret, integration, request.session_id),
        reference=None if asked is None else hashed("subject_reference", asked),
        with_reference=None if both is None else hashed("provider_session_and_reference", both),
        provider_reference=None if named is None else hashed("subject_reference", named),
        fingerprint=result.document_fingerprint,
        verifies=decision.status is BuyerStatus.VERIFIED,
    )
