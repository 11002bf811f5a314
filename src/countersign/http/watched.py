"""A request of a vendor under a conformance run: provoked if it is its turn, and written down.

The run itself: `services.conformance`. Nothing in an answer says that it was provoked, or else an
integration could treat it apart; the report tells the times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from countersign.bootstrap import Deployment
from countersign.buyers.model import BuyerStatus
from countersign.clearances.routes import clear
from countersign.domain.conformance import (
    ACKNOWLEDGE,
    CLEAR,
    FULFIL,
    GET_NOTICE,
    MEETS,
    RETRY_AFTER_SECONDS,
    Observation,
    Provocation,
    Run,
)
from countersign.errors import (
    NotFound,
    NoticeVersionMismatch,
    ProviderUnavailable,
    Refusal,
    StorageUnavailable,
)
from countersign.http.reply import REPLAYED, Call, Reply
from countersign.http.route import Route
from countersign.services.conformance_watch import WatchVendors

_decode: Final = msgspec.json.Decoder().decode

Admit = Callable[[Route[Deployment]], Awaitable[Reply]]


async def watched(
    deployment: Deployment, run: Run, route: Route[Deployment], call: Call, admit: Admit
) -> Reply:
    """Answer as ever, or as provoked, and write down what was seen before the answer is sent.

    Raises:
        Refusal: that of the request, or the provoked one.
    """
    watch = deployment.watch_vendors
    met = _Met(run, route)
    arrived = watch.now()
    try:
        reply = await admit(replace(route, handler=met.handler))
    except Refusal as refusal:
        refused = Reply(b"", (), refusal.status)
        await watch.note(run, met.seen(watch, call, arrived, refused, refusal.code))
        raise
    await watch.note(run, met.seen(watch, call, arrived, reply))
    if met.provocation is Provocation.ANSWER_WITHHELD:
        # The final response says that the request may have been stored.
        await asyncio.sleep(run.hold.total_seconds())
        raise StorageUnavailable
    return reply


class _Met:
    """The provocation that a request meets; the gates before the handler are the usual ones."""

    def __init__(self, run: Run, route: Route[Deployment]) -> None:
        self._run = run
        self._route = route
        self.provocation: Provocation | None = None

    async def handler(self, deployment: Deployment, call: Call) -> Reply:
        """Stand in for the handler of the route."""
        armed, handler = self._run.armed, self._route.handler
        if armed is None or MEETS[armed] != self._route.operation:
            return await handler(deployment, call)
        match armed:
            case Provocation.ACKNOWLEDGMENT_REFUSED:
                if await self._take(deployment, armed):
                    raise NoticeVersionMismatch
            case Provocation.PROVIDER_UNAVAILABLE:
                if await self._take(deployment, armed):
                    raise ProviderUnavailable(retry_after=RETRY_AFTER_SECONDS)
            case Provocation.ANSWER_WITHHELD:
                reply = await handler(deployment, call)
                await self._take(deployment, armed)
                return reply
            case Provocation.ORDER_NOT_CLEARED:
                cbid = _text(_object(call.body).get("cbid")) or ""
                if await _is_verified(deployment, call, cbid) and await self._take(
                    deployment, armed
                ):
                    # A real decision, which can be read back; the buyer stays as it is.
                    return await clear(deployment, call, input_required=True)
        return await handler(deployment, call)

    def seen(
        self,
        watch: WatchVendors,
        call: Call,
        arrived: datetime,
        reply: Reply,
        code: str | None = None,
    ) -> Observation:
        """What there was to see of this request; `code` is that of a refusal."""

        def mark(field: str, value: object) -> str | None:
            text = _text(value)
            return None if text is None else watch.mark(self._run.account_id, field, text)

        operation = self._route.operation
        asked = _object(call.body)
        told = _object(reply.body) if operation in MEETS.values() else {}
        key = call.headers.get(b"idempotency-key")
        initials, reasons = asked.get("initials_per_line"), told.get("reasons")
        clearance = call.parameter if operation == FULFIL else told.get("clearance_id")
        is_decision = operation == CLEAR and reply.status == 200
        return Observation(
            operation=operation,
            at=arrived,
            status=reply.status,
            code=code,
            provoked=self.provocation,
            replayed=REPLAYED in reply.headers,
            key=None if key is None else mark("key", key.strip().strip(b'"').decode("latin-1")),
            body=mark("body", f"{call.parameter}\n{call.body.decode('latin-1')}")
            if call.body
            else None,
            notice=mark(
                "notice", call.parameter if operation in {GET_NOTICE, ACKNOWLEDGE} else None
            ),
            session=mark("session", asked.get("session_id")),
            subject=mark("subject", asked.get("provider_identity_session_id")),
            buyer=mark("cbid", told.get("cbid") or asked.get("cbid")),
            clearance=mark("clearance", clearance),
            lines=len(initials) if isinstance(initials, list) else None,
            version_sent=_text(asked.get("notice_version")) is not None,
            cleared=bool(told.get("cleared")) if is_decision else None,
            reasons=tuple(map(str, reasons)) if isinstance(reasons, list) else (),
            shipped_at=_time(asked.get("shipped_at")) if operation == FULFIL else None,
        )

    async def _take(self, deployment: Deployment, armed: Provocation) -> bool:
        taken = await deployment.watch_vendors.take(self._run, armed)
        if taken:
            self.provocation = armed
        return taken


async def _is_verified(deployment: Deployment, call: Call, cbid: str) -> bool:
    try:
        standing = await deployment.buyers.status(call.principal, cbid)
    except NotFound:
        return False
    return standing.status is BuyerStatus.VERIFIED


def _object(data: bytes) -> dict[str, Any]:
    """A JSON object; empty where it is none: the handler has said so, or will."""
    try:
        found = _decode(data) if data else {}
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        return msgspec.convert(value, datetime).astimezone(UTC)
    except (msgspec.ValidationError, OverflowError, ValueError):
        return None
