"""Verification sessions: checkout sessions that collect the identity alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace as with_members

from countersign.access.idempotency import IdempotencyEntry
from countersign.access.key import Principal
from countersign.buyers.model import BuyerStatus
from countersign.checkout import identity, store
from countersign.checkout.attempt import StartedCheck
from countersign.checkout.model import Collected, Content, Session, Status
from countersign.checkout.room import Checkout
from countersign.checkout.sessions import (
    Created,
    check_addresses,
    identity_needs,
    link_of,
    prepare,
    write,
)
from countersign.checkout.verification_schemas import (
    VerificationSession,
    VerificationSessionRequest,
    VerificationSessionStatus,
)
from countersign.errors import ProviderUnavailable, VerificationMisconfigured
from countersign.http.reply import encode
from countersign.ids import VERIFICATION_SESSION
from countersign.instant import to_the_second
from countersign.mode import Mode
from countersign.reason import Reason

_ENDS: Final = {
    Status.COMPLETED: VerificationSessionStatus.COMPLETED,
    Status.EXPIRED: VerificationSessionStatus.EXPIRED,
    Status.CANCELLED: VerificationSessionStatus.CANCELLED,
    Status.DECLINED: VerificationSessionStatus.CANCELLED,
}


async def create_verification(
    room: Checkout,
    who: Principal,
    wanted: VerificationSessionRequest,
    entry: Callable[[bytes], IdempotencyEntry] | None = None,
) -> Created:
    """A link by which one buyer is verified, with the provider's session; durable on return.

    The provider's session is started before anything is written here: a process that dies between
    the two leaves nothing that a vendor or a buyer could meet.

    Raises:
        InvalidRequest: an address is not acceptable.
        OriginNotRegistered: with a live key, where it is of an origin that is not registered.
        VerificationNotConfigured: a live account has no identity provider.
        VerificationMisconfigured, ProviderUnavailable: no check could be started.
    """
    await check_addresses(room, who, wanted.return_url)
    providers = await identity_needs(room, who, wanted.shipping_zip)
    content = Content(
        session_id=wanted.session_id,
        return_url=wanted.return_url,
        collect=(Collected.IDENTITY,),
        notice_id=None,
        cbid=wanted.cbid,
        shipping_zip=wanted.shipping_zip,
        product_class=None,
        origin=None,
        locale=wanted.locale or "en",
        attempts=1,
    )
    new = await prepare(room, who, VERIFICATION_SESSION, content, wanted.expires_in_seconds)
    check = await _started(room, new.session, content, providers)
    new = new.holding(with_members(content, check=check))
    body = encode(view(room, new.session, new.session.created_at, new.token))
    await write(room, new, body, entry)
    return Created(new.session, new.token, body)


async def _started(
    room: Checkout, session: Session, content: Content, providers: Sequence[str]
) -> StartedCheck:
    """A check at the account's first provider that can start one.

    Raises:
        VerificationMisconfigured, ProviderUnavailable: the last one could not either.
    """
    *others, last = providers
    start = partial(identity.start, room, session.id, session.account_id, session.mode, content)
    for provider in others:
        with suppress(ProviderUnavailable, VerificationMisconfigured):
            return await start(provider)
    return await start(last)


async def find_verification(room: Checkout, who: Principal, session_id: str) -> Session:
    """A verification session of this account and mode.

    Raises:
        NotFound: there is none.
    """
    return await store.find(room, who.account_id, who.mode, session_id, VERIFICATION_SESSION)


def view(
    room: Checkout, session: Session, now: datetime, token: str | None = None
) -> VerificationSession:
    """A verification session as its account reads it; `token` only when it was just made."""
    content, status = session.content, session.status_at(now)
    check = content.check if content else None
    ended_at = session.expires_at if status is Status.EXPIRED else session.ended_at
    return VerificationSession(
        verification_session_id=session.id,
        livemode=session.mode is Mode.LIVE,
        session_id=content.session_id if content else None,
        provider_identity_session_id=check.provider_session if check else None,
        status=_status(content, status),
        cbid=session.cbid,
        reasons=_reasons(content, status),
        url=link_of(room, token),
        return_url=content.return_url if content else None,
        locale=content.locale if content else None,
        created_at=session.created_at.replace(microsecond=0),
        expires_at=session.expires_at.replace(microsecond=0),
        ended_at=to_the_second(ended_at),
        unreadable=True if session.is_unreadable else UNSET,
    )


def _status(content: Content | None, status: Status) -> VerificationSessionStatus:
    if status in _ENDS:
        return _ENDS[status]
    identity = content.identity if content else None
    if content is None or identity is None:
        return VerificationSessionStatus.OPEN
    if identity.status is BuyerStatus.PENDING:
        return VerificationSessionStatus.PENDING
    if content.is_waiting:
        return VerificationSessionStatus.OPEN
    return VerificationSessionStatus.REQUIRES_INPUT


def _reasons(content: Content | None, status: Status) -> list[str]:
    if status is Status.DECLINED:
        return [Reason.SESSION_CANCELED.value]
    return list(content.reasons) if content else []
