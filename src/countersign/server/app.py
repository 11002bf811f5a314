"""The ASGI application: every request goes through the same gates, in the same order.

Route, method, authentication, scope, rate limit, size, media type, idempotency, and then the
handler of the route. It is written against ASGI itself rather than a framework: see
docs/decisions/0002.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any, Final, TypeAlias

import structlog

from countersign.access.idempotency import KEY_LENGTH_MAX
from countersign.access.key import BRAND
from countersign.bootstrap import Deployment
from countersign.errors import (
    DatabasePermissionDenied,
    Forbidden,
    InternalError,
    InvalidRequest,
    MethodNotAllowed,
    OperatorError,
    PayloadTooLarge,
    RateLimited,
    Refusal,
    StorageUnavailable,
    Unauthorized,
    UnsupportedMediaType,
)
from countersign.http.errors import error_reply
from countersign.http.query import read_query
from countersign.http.reply import PERSONAL, REPLAYED, Call, Header, Reply
from countersign.http.route import Route
from countersign.http.router import Router
from countersign.ids import base32
from countersign.loops import without_values
from countersign.mode import Mode
from countersign.server.documents import document_routes
from countersign.server.extension import Around
from countersign.server.limits import Held, RateLimiter
from countersign.server.metrics import Metrics
from countersign.server.routes import ROUTES

AsgiScope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BODY_BYTES_MAX: Final = 64 * 1024
_UNAUTHENTICATED_BYTES_MAX: Final = 16 * 1024 * 1024
_UNAUTHENTICATED_BYTES_EACH: Final = 1024 * 1024
"""Of bodies held in memory before their signature is checked: in all, and for each account."""
_DRAINED_BYTES_MAX: Final = 1024 * 1024
_LOG_SECONDS: Final = 1.0
_BODY_SECONDS_MAX: Final = 20
_DRAIN_SECONDS_MAX: Final = 1
_DENIED_RETRY_SECONDS: Final = 30
"""An operator has to grant the missing right first."""
_KEY: Final = re.compile(rb"[!-~]{1,%d}" % KEY_LENGTH_MAX)
_ONCE: Final = (b"authorization", b"content-type", b"idempotency-key")
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD"})
_NOSNIFF: Final[Header] = (b"x-content-type-options", b"nosniff")

_log = structlog.get_logger("countersign.http")


def route_table() -> tuple[Route[Any], ...]:
    """Every route that is served."""
    return (*ROUTES, *document_routes(ROUTES))


class App:
    """The application over an open deployment."""

    def __init__(self, deployment: Deployment, around_test_mode: Around | None = None) -> None:
        self._deployment = deployment
        self._around_test_mode = around_test_mode
        routes = route_table()
        self._router = Router(routes)
        self._rooms = {route.address: deployment.room(route.room) for route in routes}
        rate = deployment.settings.rate_limit
        self._limiter = RateLimiter(rate, deployment.clock) if rate else None
        self._unauthenticated = Held(_UNAUTHENTICATED_BYTES_MAX, _UNAUTHENTICATED_BYTES_EACH)
        self._help = f"{deployment.settings.public_url}/docs/errors"
        self._logged: dict[str, tuple[float, int]] = {}
        self.metrics = Metrics(
            deployment.database.batches,
            deployment.log.seal,
            deployment.webhooks.activity,
            deployment.buyers.watch,
            deployment.clock,
        )

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Handle one request (ASGI 3, `http`); other protocols are refused."""
        if scope["type"] != "http":
            await _turn_away(scope, receive, send)
            return
        # Random: a number in it would show everyone how many requests there are.
        request_id = f"req_{base32(int.from_bytes(self._deployment.entropy(16), 'big'))}"
        route: Route[Any] | None = None
        extra: list[Header] = []
        incoming = _Incoming(receive)
        try:
            route, parameter = self._router.match(scope["method"], scope["path"])
            call = _call(scope, parameter)
            reply = await self._answer(route, call, incoming, extra)
        except Refusal as refusal:
            reply = self._refused(refusal, request_id, scope)
            if isinstance(refusal, MethodNotAllowed):
                extra.append((b"allow", self._router.allowed(scope["path"])))
            if scope["method"] not in _WITHOUT_BODY:
                await incoming.drain()
        except OperatorError as error:  # what exactly is wrong is not the caller's to know
            shown: Refusal = InternalError()
            if isinstance(error, DatabasePermissionDenied):
                shown = StorageUnavailable(retry_after=_DENIED_RETRY_SECONDS)
            reply = error_reply(shown, self._help)
            self._log_refusal(error.code, request_id, scope["method"], reply.status)
        except Exception as error:  # noqa: BLE001 - the last resort: never a bare failure
            _log.error("unexpected_error", request_id=request_id, exc_info=without_values(error))
            reply = error_reply(InternalError(), self._help)
        self.metrics.count(route.operation if route else "", reply.status)
        await _send(send, scope["method"], reply, extra, request_id)

    async def _answer(
        self, route: Route[Any], call: Call, incoming: _Incoming, extra: list[Header]
    ) -> Reply:
        """Pass the gates; `extra` gets the headers that also a refusal carries."""
        if route.scope is None:
            return await self._public(route, call, incoming)
        principal = call.principal = await self._deployment.access.authenticate(_bearer(call))
        if self._around_test_mode is None or principal.mode is Mode.LIVE:
            return await self._admit(route, call, incoming, extra)
        return await self._around_test_mode(
            route, call, lambda changed: self._admit(changed, call, incoming, extra)
        )

    async def _admit(
        self, route: Route[Any], call: Call, incoming: _Incoming, extra: list[Header]
    ) -> Reply:
        """Pass the gates behind authentication."""
        principal, scope = call.principal, route.scope
        if scope is not None and scope not in principal.scopes:
            raise Forbidden(scope=scope)
        if self._limiter:
            wait, headers = self._limiter.admit(principal.key_id)
            extra += headers
            if wait:
                raise RateLimited(retry_after=wait)
        call.query = read_query(call.query_string, route.query)
        if route.request is not None:
            call.body = await incoming.read(call.headers.get(b"content-length", b""))
            if not _is_json(call.headers.get(b"content-type", b"")) or _is_encoded(call):
                raise UnsupportedMediaType
            key = call.headers.get(b"idempotency-key")
            if key is not None:
                return await self._once(route, call, _idempotency_key(key))
        return await route.handler(self._rooms[route.address], call)

    async def _public(self, route: Route[Any], call: Call, incoming: _Incoming) -> Reply:
        if route.query is not None:
            call.query = read_query(call.query_string, route.query)
        if not route.raw_body_max:
            return await route.handler(self._rooms[route.address], call)
        length = call.headers.get(b"content-length", b"")
        with self._unauthenticated.share(call.parameter) as take:
            call.read_body = partial(incoming.read, length, route.raw_body_max, take)
            return await route.handler(self._rooms[route.address], call)

    async def _once(self, route: Route[Any], call: Call, key: str) -> Reply:
        idempotency = self._deployment.access.idempotency
        slot = idempotency.slot(call.principal, call.method, call.path, key, call.body)
        with idempotency.running(slot):
            kept = await idempotency.kept(slot)
            if kept is not None:
                if route.decide_again is not None and route.decide_again(kept):
                    reply = await route.handler(self._rooms[route.address], call)
                    if reply.body != kept:
                        return reply
                return Reply(kept, (*PERSONAL, REPLAYED))
            call.entry = partial(idempotency.entry, slot)
            return await route.handler(self._rooms[route.address], call)

    def _refused(self, refusal: Refusal, request_id: str, scope: AsgiScope) -> Reply:
        reply = error_reply(refusal, self._help)
        if reply.status in {401, 403} or reply.status >= 500:
            self._log_refusal(refusal.code, request_id, scope["method"], reply.status)
        return reply

    def _log_refusal(self, code: str, request_id: str, method: str, status: int) -> None:
        """A line a second for each code, and how many there were since the last one.

        Otherwise anybody could fill the disk, without a key.
        """
        now = self._deployment.clock.monotonic()
        last, unsaid = self._logged.get(code, (float("-inf"), 0))
        if now - last < _LOG_SECONDS:
            self._logged[code] = (last, unsaid + 1)
            return
        self._logged[code] = (now, 0)
        _log.warning(
            "refused", request_id=request_id, code=code, status=status, method=method, unsaid=unsaid
        )


def _call(scope: AsgiScope, parameter: str) -> Call:
    client = scope.get("client")
    raw_headers = list(scope["headers"])
    headers = dict(raw_headers)
    if len(headers) != len(raw_headers):
        _refuse_repeated(raw_headers)
    return Call(
        method=scope["method"],
        path=scope["path"],
        parameter=parameter,
        query_string=scope["query_string"],
        headers=headers,
        raw_headers=raw_headers,
        peer=client[0] if client else None,
    )


def _bearer(call: Call) -> bytes:
    """The token of `Authorization: Bearer …`; the scheme in any letter case (RFC 6750 §2.1)."""
    value = call.headers.get(b"authorization", b"")
    scheme, _, token = value.strip().partition(b" ")
    token = token.strip()
    if scheme.lower() == b"bearer" and token:
        return token
    if scheme.startswith(BRAND.encode()):
        msg = "The API key was sent without the word Bearer in front of it."
    elif scheme:
        msg = "The Authorization header does not have the form `Bearer <API_KEY>`."
    else:
        msg = "No API key was sent."
    raise Unauthorized(f"{msg} {Unauthorized.remedy}")


def _too_large(most: int) -> str:
    return f"The request body is larger than {most} bytes."


def _is_json(content_type: bytes) -> bool:
    media_type, _, parameters = content_type.partition(b";")
    if media_type.strip().lower() != b"application/json":
        return False
    for parameter in parameters.split(b";"):
        name, _, value = parameter.strip().lower().partition(b"=")
        if name == b"charset" and value.strip(b'"') not in {b"utf-8", b"utf8"}:
            return False
    return True


def _is_encoded(call: Call) -> bool:
    return call.headers.get(b"content-encoding", b"identity").strip().lower() != b"identity"


def _refuse_repeated(headers: list[Header]) -> None:
    """A proxy may have used the first of two; this server would use the last.

    Raises:
        InvalidRequest: a header of which there can be only one is there twice.
    """
    names = [name for name, _ in headers]
    for name in _ONCE:
        if names.count(name) > 1:
            msg = f"The header {name.decode()} was sent twice."
            raise InvalidRequest(msg)


def _idempotency_key(value: bytes) -> str:
    """The key, bare or as a structured-field string (draft-ietf-httpapi-idempotency-key-header)."""
    key = value.strip()
    if len(key) > 1 and key[:1] == key[-1:] == b'"':
        key = key[1:-1]
    if _KEY.fullmatch(key) is None:
        msg = f"An Idempotency-Key must have 1 to {KEY_LENGTH_MAX} visible ASCII characters."
        raise InvalidRequest(msg)
    return key.decode("ascii")


class _Incoming:
    """The body of a request. It is read at most once, within a time limit."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._more = True

    async def read(
        self,
        declared: bytes,
        most: int = BODY_BYTES_MAX,
        take: Callable[[int], None] | None = None,
    ) -> bytes:
        """The whole body; `declared` is its Content-Length, `take` counts what arrives.

        Raises:
            PayloadTooLarge: it is larger than `most` bytes.
            InvalidRequest: the connection, or the time for it, ended before it did.
        """
        if declared.isdigit() and int(declared[:20]) > most:
            self._more = int(declared[:20]) <= _DRAINED_BYTES_MAX
            raise PayloadTooLarge(_too_large(most))
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(_BODY_SECONDS_MAX):
                while self._more:
                    part = await self._next()
                    size += len(part)
                    if size > most:
                        raise PayloadTooLarge(_too_large(most))
                    if take is not None:
                        take(len(part))
                    parts.append(part)
        except TimeoutError:
            self._more = False
            msg = f"The body did not arrive within {_BODY_SECONDS_MAX} seconds."
            raise InvalidRequest(msg) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def drain(self) -> None:
        """Read and drop what is left, up to a bound.

        A client that is still sending sees the response only when it has finished, and a connection
        on which a body was left unread cannot be used again.
        """
        left = _DRAINED_BYTES_MAX
        try:
            async with asyncio.timeout(_DRAIN_SECONDS_MAX):
                while self._more and left > 0:
                    left -= len(await self._next())
        except (InvalidRequest, TimeoutError):
            return

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._more = False
            msg = "The request ended before its body was complete."
            raise InvalidRequest(msg)
        self._more = bool(message.get("more_body"))
        part: bytes = message.get("body", b"")
        return part


async def _send(
    send: Send, method: str, reply: Reply, extra: list[Header], request_id: str
) -> None:
    headers = [
        *reply.headers,
        *extra,
        _NOSNIFF,
        (b"x-request-id", request_id.encode()),
    ]
    if reply.status != 304:
        headers.append((b"content-length", str(len(reply.body)).encode()))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    body = b"" if method == "HEAD" else reply.body
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _turn_away(scope: AsgiScope, receive: Receive, send: Send) -> None:
    """Lifespan is acknowledged, for servers that insist on it; WebSockets are closed."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                await send({"type": "lifespan.shutdown.complete"})
                return
    elif scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1000})
