"""Requests of an account under a conformance run: observed, and provoked if it is their turn.

No response says that it was provoked, because an integration could then treat it differently; the
report lists the times.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from countersign.base.errors import (
    NotFound,
    NoticeVersionMismatch,
    OutcomeUnknown,
    ProviderUnavailable,
    Refusal,
)
from countersign.core.buyers.model import BuyerStatus
from countersign.core.buyers.routes import buyer_status
from countersign.core.clearances.routes import clear
from countersign.core.gate.route import REPLAYED, Call, Reply, Route, error_reply
from countersign.operate.bootstrap import Deployment
from countersign.server.extension import Admit
from countersign_conformance.model import (
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
from countersign_conformance.watch import WatchVendors

_decode: Final = msgspec.json.Decoder().decode


class Interceptor:
    """Wraps the authenticated requests of test mode; see `countersign.server.extension`."""

    def __init__(self, deployment: Deployment, watch: WatchVendors) -> None:
        self._deployment = deployment
        self._watch = watch

    async def __call__(self, route: Route[Any], call: Call, admit: Admit) -> Reply:
        """Observe and provoke a request of an account under a run; pass any other one on.

        Raises:
            Refusal: that of the request, or the provoked one.
        """
        run = await self._watch.run_of(call.principal.account_id)
        if run is None:
            return await admit(route)
        return await self._observed(
            _Request(self._deployment, self._watch, run, route, call), admit
        )

    async def _observed(self, request: _Request, admit: Admit) -> Reply:
        run, route = request.run, request.route
        try:
            # A retry must not trigger the provocation armed for a first request.
            reply = await admit(replace(route, handler=request.handler, slot_decides=False))
        except Refusal as refusal:
            status = error_reply(refusal, "").status
            seen = request.seen(Reply(b"", (), status), refusal.code)
            await self._watch.note(run, seen)
            raise
        # Before the response is sent, so the vendor's reactions are observed after it.
        await self._watch.note(run, request.seen(reply))
        if request.provocation is Provocation.ANSWER_WITHHELD:
            # The final response says that the request may have been stored.
            await asyncio.sleep(run.hold.total_seconds())
            raise OutcomeUnknown
        return reply


class _Request:
    """One request under a run; all steps before its handler are the usual ones."""

    def __init__(
        self, deployment: Deployment, watch: WatchVendors, run: Run, route: Route[Any], call: Call
    ) -> None:
        self._deployment = deployment
        self.run = run
        self.route = route
        self.provocation: Provocation | None = None
        self._watch = watch
        self._call = call
        self._arrived = watch.now()

    async def handler(self, room: Any, call: Call) -> Reply:  # noqa: ANN401 - that of the route
        """Replace the handler of the route."""
        armed, handler = self.run.armed, self.route.handler
        if armed is None or MEETS[armed] != self.route.operation:
            return await handler(room, call)
        match armed:
            case Provocation.ACKNOWLEDGMENT_REFUSED:
                if await self._take(armed):
                    raise NoticeVersionMismatch
            case Provocation.PROVIDER_UNAVAILABLE:
                if await self._take(armed):
                    raise ProviderUnavailable(retry_after=RETRY_AFTER_SECONDS)
            case Provocation.ANSWER_WITHHELD:
                reply = await handler(room, call)
                await self._take(armed)
                return reply
            case Provocation.ORDER_NOT_CLEARED:
                cbid = _text(_object(call.body).get("cbid")) or ""
                if await _is_verified(self._deployment, call, cbid) and await self._take(armed):
                    # A real decision, which can be read back; the buyer stays unchanged.
                    return await clear(room, call, input_required=True)
        return await handler(room, call)

    def seen(self, reply: Reply, code: str | None = None) -> Observation:
        """An observation of this request and its response; `code` is the refusal's."""

        def mark(field: str, value: object) -> str | None:
            text = _text(value)
            return None if text is None else self._watch.mark(self.run.account_id, field, text)

        call, operation = self._call, self.route.operation
        asked = _object(call.body)
        returned = _object(reply.body) if operation in MEETS.values() else {}
        key = call.headers.get(b"idempotency-key")
        initials, reasons = asked.get("initials_per_line"), returned.get("reasons")
        clearance = call.parameter if operation == FULFIL else returned.get("clearance_id")
        is_decision = operation == CLEAR and reply.status == 200
        return Observation(
            operation=operation,
            at=self._arrived,
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
            buyer=mark("cbid", returned.get("cbid") or asked.get("cbid")),
            clearance=mark("clearance", clearance),
            lines=len(initials) if isinstance(initials, list) else None,
            version_sent=_text(asked.get("notice_version")) is not None,
            cleared=bool(returned.get("cleared")) if is_decision else None,
            reasons=tuple(map(str, reasons)) if isinstance(reasons, list) else (),
            shipped_at=_time(asked.get("shipped_at")) if operation == FULFIL else None,
        )

    async def _take(self, armed: Provocation) -> bool:
        taken = await self._watch.take(self.run, armed)
        if taken:
            self.provocation = armed
        return taken


async def _is_verified(deployment: Deployment, call: Call, cbid: str) -> bool:
    try:
        view = await buyer_status(deployment.buyers, call.principal, cbid)
    except NotFound:
        return False
    return view.status is BuyerStatus.VERIFIED


def _object(data: bytes) -> dict[str, Any]:
    """A JSON object; empty for other content, which the handler refuses."""
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
