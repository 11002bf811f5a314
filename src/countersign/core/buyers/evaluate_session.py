"""Evaluate a provider session: ask the provider, decide, and write the result, all or nothing.

Nothing is stored between the provider's response and the commit: a process that dies there leaves
no trace, and the same request leads to the same buyer later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from sqlalchemy import Connection
from structlog.contextvars import bound_contextvars

from countersign.base.errors import (
    CountersignError,
    InvalidArgument,
    ProviderSessionNotFound,
    VerificationMisconfigured,
)
from countersign.base.values import Mode, Reason, from_ns
from countersign.core.access.audit import AuditEntry
from countersign.core.access.idempotency import Remember
from countersign.core.buyers.decision import (
    SessionDecision,
    before_submission,
    decide,
    final,
    is_withheld,
    refuse_unbound,
    refuse_unusable,
)
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.providers import Integration
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.schemas import VerifyResult
from countersign.core.buyers.session_evidence import (
    Evaluation,
    SessionRequest,
    asked_index,
    session_index,
)
from countersign.core.buyers.sessions_sql import SessionKeys
from countersign.core.buyers.write_evaluation import decision_view, write_evaluation
from countersign.identity.model import ProviderResult

First: TypeAlias = Callable[[Connection], VerifyResult | CountersignError | None]
"""Keeps a decision that is only the first of two; None: the decision is final."""
_WITHHELD: Final = (
    "The identity provider approved the session, but does not show its date of birth to the "
    "credentials of this account."
)


async def evaluate(
    room: Buyers, integration: Integration, request: SessionRequest, entry: Remember[bytes] = None
) -> VerifyResult:
    """Evaluate a session as the provider reports it now; durable when this returns.

    Raises:
        ProviderSessionNotFound: there is no such session.
        ProviderSessionNotBound: it is about another subject, of the provider's other mode, or of
            another integration.
        ProviderUnavailable: the provider returned no usable response; nothing was written.
        VerificationMisconfigured: it refuses the account's credentials.
        RateLimited: too many ZIP codes tried for one buyer.
    """
    _, result = await _asked(room, integration, request, entry, lambda work: work)
    assert result is not None  # noqa: S101 - a session that is named has a buyer
    return result


async def look_again(
    room: Buyers,
    integration: Integration,
    request: SessionRequest,
    *,
    give_up: bool = False,
    polled: str | None = None,
) -> tuple[VerifyResult | None, SessionDecision]:
    """The same for a session that is followed. Raises as `evaluate` does.

    For a session started here to which nothing was submitted, no buyer is written: None. `polled`
    is the followed session that this is a poll of. With `give_up`, a session that is still
    undecided is not polled again.
    """

    def followed(work: Evaluation) -> Evaluation:
        decision = final(work.decision) if give_up else work.decision
        return replace(work, decision=decision, quiet=True, polled=polled)

    work, result = await _asked(room, integration, request, None, followed)
    return result, work.decision if result else before_submission(work.decision, work.result)


async def _asked(
    room: Buyers,
    integration: Integration,
    request: SessionRequest,
    entry: Remember[bytes],
    meant: Callable[[Evaluation], Evaluation],
) -> tuple[Evaluation, VerifyResult | None]:
    settings = integration.settings
    try:
        provided = await _fetch(room, integration, request.session_id)
        work = meant(await _evaluated(room, integration, request, provided))
        result = await room.access.database.write(write_evaluation, room, work, entry)
    except CountersignError as error:
        room.watch.failed(settings.provider, error.code)
        raise
    if result is not None:
        view = result.view
        room.watch.evaluated(
            settings.account_id, settings.provider, view.status.value, view.reasons
        )
    return work, result


async def override(  # noqa: PLR0917 - all that `_evaluated` takes, and how to keep the response
    room: Buyers,
    integration: Integration,
    request: SessionRequest,
    result: ProviderResult,
    accepted: AuditEntry,
    first: First,
    entry: Remember[bytes] = None,
    *,
    for_account_only: bool = False,
) -> VerifyResult:
    """Evaluate a stored provider result with an operator's values; durable on return.

    If `first` returns a result, in the same transaction, that is returned, and nothing else is
    written.

    `for_account_only`: the accepted values count for the account of the integration alone.

    Raises InvalidArgument if it would not verify the buyer; nothing was written.
    """
    work = await _evaluated(room, integration, request, result)
    work = replace(work, override=accepted, for_account_only=for_account_only)
    view = decision_view(work.decision, work.now)
    if view.status is not BuyerStatus.VERIFIED:
        why = ", ".join(view.reasons) or view.status.value
        msg = f"This would not make the buyer verified: {why}. Nothing was changed."
        raise InvalidArgument(msg)

    def write(connection: Connection) -> VerifyResult | CountersignError | None:
        return first(connection) or write_evaluation(connection, room, work, entry)

    written = await room.access.database.write(write)
    assert written is not None  # noqa: S101 - what an operator accepts is about a buyer
    return written


async def _fetch(room: Buyers, integration: Integration, session_id: str) -> ProviderResult:
    """The provider's result for the session, if usable."""
    account_id, provider = integration.settings.account_id, integration.settings.provider
    began = room.access.clock.monotonic()
    try:
        # Whatever is logged of the response names the account.
        with bound_contextvars(account=account_id):
            result = await integration.provider.retrieve(session_id)
    except ValueError:
        raise ProviderSessionNotFound from None
    room.watch.asked(provider, room.access.clock.monotonic() - began, result.unknown_fields)
    refuse_unusable(result)
    if is_withheld(result, live=integration.wants_live):
        # The buyer cannot help it: the credentials lack a permission. Every one is refused.
        error = VerificationMisconfigured(_WITHHELD)
        room.watch.say("sensitive_results_withheld", account_id, provider, error.code)
        raise error
    return result


async def _evaluated(
    room: Buyers, integration: Integration, request: SessionRequest, result: ProviderResult
) -> Evaluation:
    """The evaluation before the buyer is identified."""
    account_id, time_ns = integration.settings.account_id, room.access.clock.time_ns()
    clock = await room.access.test_clocks.of(account_id, integration.mode)
    now = clock.at(from_ns(time_ns))
    if result.decided_at is not None:
        # A sandbox uses its own clock, also for the statements of its provider.
        result = replace(result, decided_at=clock.at(result.decided_at))
    asked, named = request.subject_reference, result.subject_reference
    decision = decide(
        result,
        integration.rules,
        shipping_zip=request.shipping_zip,
        subject_reference=asked,
        now=now,
        live=integration.wants_live,
    )
    if Reason.TEST_SESSION in decision.reasons:
        provider = integration.settings.provider
        room.watch.say("session_not_live", account_id, provider, Reason.TEST_SESSION)
    refuse_unbound(decision, result)
    hashed = partial(room.access.secret.blind_index, integration.namespace)
    document = result.document_fingerprint
    if document is not None and integration.mode is Mode.TEST:
        document = hashed("document", document.hex())
    keys = SessionKeys(
        mode=integration.mode,
        session=session_index(room, integration, request.session_id),
        reference=None if asked is None else hashed("subject_reference", asked),
        with_reference=(
            None if asked is None else asked_index(room, integration, request.session_id, asked)
        ),
        provider_reference=None if named is None else hashed("subject_reference", named),
        fingerprint=document,
        verifies=decision.status is BuyerStatus.VERIFIED,
    )
    return Evaluation(
        integration=integration,
        account_id=account_id,
        mode=integration.mode,
        request=request,
        result=result,
        decision=decision,
        keys=keys,
        data_key=await room.vault.data_key(account_id, time_ns),
        time_ns=time_ns,
        clock=clock,
    )
