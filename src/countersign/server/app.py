"""The application: every request goes through the same gates, in the same order.

Route, method, authentication, scope, rate limit, query, size, media type, idempotency, and then the
handler of the route. It is written against ASGI itself: a framework would cost half of the ceiling,
and RSGI drops header values outside of ASCII. See docs/decisions/interface.md.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import structlog

from countersign.base.deadline import DEADLINE, DEADLINE_SECONDS, TimeLeft
from countersign.base.errors import (
    CountersignError,
    DatabasePermissionDenied,
    InternalError,
    InvalidArgument,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    NotGranted,
    OutcomeUnknown,
    Overloaded,
    RateLimited,
    Refusal,
    StorageUnavailable,
    UnsupportedMediaType,
)
from countersign.base.http.body import (
    BODY_BYTES_MAX,
    DOOR_BYTES_MAX,
    Incoming,
    Receive,
    left_out,
    read_query,
)
from countersign.base.loops import Throttle, without_values
from countersign.base.values import ALPHABET, LENGTH, Entropy, Mode
from countersign.core.access.key import PERSON_SESSION, Principal
from countersign.core.access.room import acting
from countersign.core.gate.route import (
    PERSONAL,
    REPLAYED,
    UNKNOWN_PATH,
    Call,
    Handler,
    Header,
    Reply,
    Route,
    Router,
    bearer,
    error_reply,
    idempotency_key,
    is_plain_json,
    place,
    refuse_repeated,
)
from countersign.hosted.toolkit.screens import failed
from countersign.operate.bootstrap import Deployment
from countersign.operate.doctor.promises import PromiseWatch
from countersign.server.console_host import ConsoleHost
from countersign.server.extension import Around
from countersign.server.limits import Arrivals, Held, Visits
from countersign.server.metrics import Metrics
from countersign.server.persons import by_person, judge
from countersign.server.request_log import RequestLog
from countersign.server.routes import PAGES, ROUTES
from countersign.server.shares import Limiters
from countersign.server.streams import Send, Streams

QUERY_BYTES_MAX: Final = 8192
_HELD_BYTES_MAX: Final = 64 * BODY_BYTES_MAX
"""Bytes of request bodies without a key in memory at once, per route."""
_HELD_EACH_MAX: Final = (4, 8)
"""At most, for one session (or for the messages of providers for one account), and for all of one
account.
"""
_AT_A_DOOR_MAX: Final = 3
"""Concurrent sign-in forms from one address: each counts whole."""
_STRANGERS_SECONDS_MAX: Final = 10
"""Deadline after which a slow sender loses its place."""
_DENIED_RETRY_SECONDS: Final = 30
"""An operator has to grant the missing right first."""
_OF_A_PERSON: Final = f"{PERSON_SESSION}_".encode()
_WITHOUT_BODY: Final = frozenset({"GET", "HEAD"})
_WITHOUT_HOST: Final = frozenset({"1", "1.0"})
"""Versions of HTTP; Granian writes the first, ASGI the second."""
_NOSNIFF: Final[Header] = (b"x-content-type-options", b"nosniff")
_NO_PAGE: Final[Header] = (
    b"content-security-policy",
    b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
)
"""The default content security policy: a browser that shows the response as a page runs no script,
and no page may frame it.
"""
_LETTERS: Final = (ALPHABET * 8).encode()
"""For each byte a character: all are equally likely."""

_log = structlog.get_logger("countersign.http")


def route_table() -> tuple[Route[Any], ...]:
    """Every route that is served."""
    return (*ROUTES, *PAGES)


class App:
    """The application over an open deployment."""

    def __init__(
        self,
        deployment: Deployment,
        around_test_mode: Around | None = None,
        arrivals: Arrivals | None = None,
        visits: Arrivals | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        """`deadline_seconds`: how long a request waits for the database, in sum."""
        self._deadline_seconds = deadline_seconds
        deployment.database.limit_waiting(deadline_seconds)
        self._around_test_mode = around_test_mode
        settings = deployment.settings
        self._has_console = settings.console
        self._console_host = urlsplit(settings.console_url or "").netloc.lower()
        routes = [route for route in route_table() if settings.console or not route.console]
        self._router = Router(routes)
        self._console = ConsoleHost(deployment, self.handle)
        self.requests = RequestLog(deployment.clock)
        own: dict[type, object] = {ConsoleHost: self._console, RequestLog: self.requests}
        self._rooms = {
            route.address: own.get(route.room) or deployment.room(route.room) for route in routes
        }
        self._access = deployment.access
        rate, visits = deployment.settings.rate_limit, visits or Arrivals()
        limiter = Limiters(deployment.settings, deployment.database, deployment.clock)
        self._limiter = limiter(arrivals, "key", rate) if rate else None
        self._visits = Visits(rate, partial(limiter, visits)) if rate else None
        self._held = {route.address: _held(route) for route in routes if _is_from_strangers(route)}
        self._help = f"{deployment.settings.public_url}/docs/errors"
        self._request_ids = _request_ids(deployment.access.entropy)
        self._monotonic = deployment.clock.monotonic
        self._draining = deployment.operations.draining
        self._throttle = Throttle(deployment.clock.monotonic)
        self.streams = Streams()
        self.watch = PromiseWatch(deployment.clock)
        self.metrics = Metrics(
            deployment.operations,
            deployment.webhooks.activity,
            deployment.checkout,
            limiter.leases,
            self.watch,
        )

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle one request (ASGI 3, `http`); other protocols are refused."""
        if scope["type"] != "http":
            raise NotImplementedError  # neither lifespan nor WebSockets, as ASGI allows
        client, raw_headers = scope.get("client"), list(scope["headers"])
        path, raw_path = scope["path"], scope.get("raw_path", b"")
        if b"%" in raw_path and b"%2f" in raw_path.lower():
            # Not a separator (RFC 3986 §2.2): a proxy that filters by path saw none.
            path = raw_path.decode("latin-1")
        call = Call(
            method=scope["method"],
            path=path,
            query_string=scope["query_string"],
            headers=dict(raw_headers),
            raw_headers=raw_headers,
            peer=client[0] if client else None,
        )
        if not call.headers.get(b"host"):  # Granian makes an empty one
            call.needs_host = scope["http_version"] not in _WITHOUT_HOST
        reply = await self.handle(call, Incoming(receive))
        start = {"type": "http.response.start", "status": reply.status, "headers": reply.headers}
        await send(start)
        if reply.pieces is None:
            await send({"type": "http.response.body", "body": reply.body})
        else:
            await self.streams.send(reply.body, reply.pieces, receive, send)

    async def handle(self, call: Call, incoming: Incoming) -> Reply:  # noqa: C901 - a call less
        """The complete response to a request, whatever happens."""
        request_id = next(self._request_ids)
        DEADLINE.set(TimeLeft(self._deadline_seconds))
        operation, address, asker, begun = "", "", None, self._monotonic()
        try:
            if len(call.headers) != len(call.raw_headers):
                refuse_repeated(call)
            route = self._find(call)
            operation, address = route.operation, route.address
            if route.scope is not None:
                known = self._access.authenticate.known(call.headers.get(b"authorization", b""))
                asker = call.principal = known or await self._who(bearer(call), call)
            around = self._around_test_mode
            if around is None or route.scope is None or call.principal.mode is Mode.LIVE:
                reply = await self._admit(call, incoming, route)
            else:
                reply = await around(route, call, partial(self._admit, call, incoming))
        except Exception as error:  # noqa: BLE001 - the last resort: never a bare failure
            reply = self._failure(error, request_id, call)
            if isinstance(error, Refusal) and call.method not in _WITHOUT_BODY:
                await incoming.drain()
        body, own, status, pieces = reply
        ended = self._monotonic()
        self.metrics.count(operation, status, ended - begun)
        if asker is not None and asker.person is None:  # else: of no account, or in the audit
            asked = (asker, ended, status, call.code, request_id, address)
            self.requests.new[asker.account_id, asker.mode].append(asked)
        complete = [*own, *call.also, _NOSNIFF, (b"x-request-id", request_id.encode())]
        if self._draining.is_set():
            complete.append((b"connection", b"close"))
        if _NO_PAGE[0] not in dict(own):
            complete.append(_NO_PAGE)
        if pieces is not None:
            return Reply(body, complete, status, pieces)
        # A handler need not make a body for a look (RFC 9110 §8.6).
        if status != 304 and (body or call.method != "HEAD"):
            complete.append((b"content-length", b"%d" % len(body)))
        return Reply(b"" if call.method == "HEAD" else body, complete, status)

    def _find(self, call: Call) -> Route[Any]:
        """The route, with its parameter; console routes only at the console's own host, if set.

        Raises NotFound or MethodNotAllowed, or InvalidRequest without the host that it needs, or
        with a body of two lengths: Granian shows one, and then ends the connection (RFC 9112 §6.3).
        """
        if call.needs_host:
            raise InvalidRequest("The header host is missing.")
        if b"transfer-encoding" in call.headers and b"content-length" in call.headers:
            raise InvalidRequest("The body was sent with two lengths.")
        if len(call.query_string) > QUERY_BYTES_MAX:
            raise InvalidRequest(f"The query has more than {QUERY_BYTES_MAX} bytes.")
        route, call.parameter = self._router.match(call.method, call.path)
        call.query = route.query and left_out(route.query)
        if route.console and self._console_host and not call.is_within:
            host = call.headers.get(b"host", b"").decode("latin-1").lower()
            if host != self._console_host:
                raise NotFound(UNKNOWN_PATH)
        return route

    async def _who(self, token: bytes, call: Call) -> Principal:
        if not (self._has_console and token.startswith(_OF_A_PERSON)):
            return await self._access.authenticate(token)
        who = await self._access.sessions(token, *place(call))
        call.audit = self._access.audit.of(who.person_id, who.reach)
        return who

    async def _admit(self, call: Call, incoming: Incoming, route: Route[Any]) -> Reply:
        """Pass the gates behind authentication, and the handler."""
        if route.scope is None:
            return await self._admit_stranger(call, incoming, route)
        room, who = self._rooms[route.address], call.principal
        # For a key at an operation of vendors the scope is all: a call less on the hot path.
        if route.console or who.person is not None or route.scope not in who.scopes:
            judge(route, route.scope, call)
        if (route.console or route.audited) and who.person is None:
            # Entries about a key's act name the key.
            call.audit = self._access.audit.of(who.actor, who.reach)
            room = acting(room, call.audit)
        if self._limiter:
            wait, left, seconds = await self._limiter.count(who.key_id)
            quota = f'"default";r={left};t={seconds}'.encode()
            call.also = (self._limiter.policy, (b"ratelimit", quota))
            if wait:
                raise RateLimited(retry_after=wait)
        if call.query_string:
            call.query = read_query(call.query_string, route.query)
        act: Handler[Any] = (
            route.handler if route.request is None else partial(self._with_body, incoming, route)
        )
        if who.person is not None:
            return await by_person(call, route, act, room)
        reply = await act(room, call)
        if route.personal and who.made_by is not None:
            self._access.key_reads(who.key_id)
        return reply

    async def _with_body(
        self,
        incoming: Incoming,
        route: Route[Any],
        room: Any,  # noqa: ANN401 - that of the route
        call: Call,
    ) -> Reply:
        """Read the body, and have the handler called at most once for an Idempotency-Key."""
        call.body = await incoming.read(call.headers.get(b"content-length", b""))
        if not is_plain_json(call):
            raise UnsupportedMediaType
        key = idempotency_key(call)
        if key is None:
            return await route.handler(room, call)
        return await self._once(route, room, call, key)

    async def _admit_stranger(self, call: Call, incoming: Incoming, route: Route[Any]) -> Reply:
        """Let the handler name the quotas of an unauthenticated request before its body is read."""
        if call.query_string and (route.client_token or route.query):
            call.query = read_query(call.query_string, route.query)
        if self._visits:
            call.count_visit = self._visits.count
        held, room = self._held.get(route.address), self._rooms[route.address]
        if held is None:
            return await route.handler(room, call)
        with ExitStack() as until_done:

            async def read_body(most: int, owners: Sequence[str]) -> bytes:
                """It counts against its owners' quotas until the reply is made."""
                take = until_done.enter_context(held.share(owners))
                if most == DOOR_BYTES_MAX:
                    take(most)
                declared = call.headers.get(b"content-length", b"")
                counted = None if most == DOOR_BYTES_MAX else take
                return await incoming.read(declared, most, counted, _STRANGERS_SECONDS_MAX)

            call.read_body = read_body
            reply = await route.handler(room, call)
            await incoming.drain()  # body bytes that the handler did not read
            return reply

    async def _once(
        self,
        route: Route[Any],
        room: Any,  # noqa: ANN401 - that of the route
        call: Call,
        key: str,
    ) -> Reply:
        """Repeat the response that is kept for this key, or act and have it kept."""
        idempotency = self._access.idempotency
        asked = (call.principal, call.method, call.path, key, call.body)
        keep = idempotency.keyed(*asked, is_secret=route.secret)
        idempotency.begin(keep)
        try:
            kept = None if route.slot_decides else await idempotency.kept(keep)
            if kept is None:
                call.entry = keep
                try:
                    return await route.handler(room, call)
                except Exception as failure:
                    # The refusal may be the result of another server having just done it.
                    if route.slot_decides or isinstance(failure, CountersignError):
                        kept = await idempotency.kept_instead(keep, failure)
                    if kept is None:
                        raise
            if route.decide_again is not None and route.decide_again(kept):
                call.entry = None  # the slot keeps its content
                reply = await route.handler(room, call)
                if reply.body != kept:
                    return reply
            return Reply(kept, (*PERSONAL, REPLAYED))
        finally:
            idempotency.end(keep)

    def _failure(self, error: Exception, request_id: str, call: Call) -> Reply:
        """The response to an exception; callers learn nothing about internal errors."""
        if not isinstance(error, CountersignError):
            _log.error("unexpected_error", request_id=request_id, exc_info=without_values(error))
            return self._refused(InternalError(), call)
        if isinstance(error, InvalidArgument):
            error = InvalidRequest(error.message)
        if isinstance(error, Overloaded):  # by too many callers, or does nobody get through?
            error = self._access.database.trouble or error
        if isinstance(error, MethodNotAllowed):
            call.also = ((b"allow", error.allowed),)
        shown = error if isinstance(error, Refusal) else InternalError()
        if isinstance(error, DatabasePermissionDenied):
            shown = StorageUnavailable(retry_after=_DENIED_RETRY_SECONDS)
            if call.audit is not None:  # a staff operation that the database role was not granted
                shown = NotGranted()
        if isinstance(error, OutcomeUnknown) and call.method in _WITHOUT_BODY:
            # A read may write on the way; its caller is not concerned.
            shown = StorageUnavailable(retry_after=error.retry_after)
        reply = self._refused(shown, call)
        if reply.status in {401, 403} or reply.status >= 500:
            # A line a second for each code, and how many there were since the last one.
            said = {"code": error.code, "status": reply.status, "method": call.method}
            if (unsaid := self._throttle(error.code)) is not None:
                _log.warning("refused", request_id=request_id, **said, unsaid=unsaid)
        return reply

    def _refused(self, refusal: Refusal, call: Call) -> Reply:
        call.code = refusal.code
        if f"{call.path}/".startswith(("/c/", "/buyer/")):
            accepted, is_form = call.headers.get(b"accept-language", b""), call.method == "POST"
            return failed(refusal, accepted, call.locale, call.path, is_form=is_form)
        if isinstance(refusal, NotFound) and b"text/html" in call.headers.get(b"accept", b""):
            from countersign.server.documents import missing  # noqa: PLC0415 - slow to load

            return missing()
        return error_reply(refusal, self._help)


def _is_from_strangers(route: Route[Any]) -> bool:
    """True if its body comes from a caller without a key."""
    return route.scope is None and (route.raw_body_max > 0 or route.request is not None)


def _held(route: Route[Any]) -> Held:
    """The body quota of a route: routes do not share places."""
    size = route.raw_body_max or BODY_BYTES_MAX
    each = (_AT_A_DOOR_MAX,) if size == DOOR_BYTES_MAX else _HELD_EACH_MAX
    return Held(_HELD_BYTES_MAX, *(size * number for number in each))


def _request_ids(entropy: Entropy) -> Iterator[str]:
    """Random, because a number would reveal how many requests there are.

    Many are made at once: asking the system for a few bytes releases the interpreter each time.
    """
    while True:
        letters = entropy(256 * LENGTH).translate(_LETTERS).decode("ascii")
        for start in range(0, len(letters), LENGTH):
            yield f"req_{letters[start : start + LENGTH]}"
