"""An act is a typed function with a declaration; its route and its handler are made of both.

    HOLDS = Acts("Staff: holds", Privacy, scope=Scope.HOLDS_MANAGE, console=True)

    @HOLDS.act("POST /v1/holds", "Place a legal hold", refusals=(UnknownSubject,))
    def place_hold(
        connection: Connection, privacy: Privacy, reach: Reach, wanted: HoldRequest
    ) -> HoldView:

The type of a parameter determines its value: the room, the caller's reach or the `Principal`
itself, the whole `Call`, the body or (for a GET) the query, for a `str` the parameter of the path,
and for `Audit | None` the audit of an act that is not a vendor's. An act with a `Connection` runs
in one transaction, which stores the response for an Idempotency-Key. An act without one opens its
own: the response is stored in the transaction of its `Writing`, by the act itself with its
`KeyedRequest | None`, or else after the last of them. A GET of a file returns its `Reply`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from inspect import isawaitable
from typing import Any, Final, Generic, TypeAlias, get_type_hints

from sqlalchemy import Connection

from countersign.base.db.database import Act, Database
from countersign.base.generics import F, P, R
from countersign.base.http.body import parse_body
from countersign.base.http.schemas import Request
from countersign.core.access.audit import Audit
from countersign.core.access.idempotency import KeyedRequest, Remember, keep_answers, keeping
from countersign.core.access.key import Principal
from countersign.core.access.reach import Reach
from countersign.core.gate.route import Call, Handler, Reply, Route, encode

_Take: TypeAlias = Callable[[Any, Call], Any]
"""Finds the value of a parameter for a room and a call; may be async."""


def _keep(_: Any, call: Call) -> KeyedRequest | None:  # noqa: ANN401 - unused
    return call.entry


@dataclass(frozen=True, slots=True)
class Writing:
    """The one transaction of an act that also has work before or after it.

    The act in it returns the response, which is stored with it; None: it runs again.
    """

    database: Database
    remember: Remember[Any] = None

    async def __call__(self, act: Act[P, R], /, *args: P.args, **named: P.kwargs) -> R:
        """Do `act(connection, …)`; see `Database.write`."""
        run = keeping(lambda connection: act(connection, *args, **named), self.remember)
        return await self.database.write(run)


def _writing(room: Any, call: Call) -> Writing:  # noqa: ANN401 - that of the act
    database, entry = room.access.database, call.entry
    if entry is None:
        return Writing(database)
    return Writing(database, lambda outcome: entry(encode(outcome)))


_KNOWN: Final[Mapping[Any, _Take]] = {
    Call: lambda _, call: call,
    Audit | None: lambda _, call: call.audit,
    KeyedRequest | None: _keep,
    Writing: _writing,
    Principal: lambda _, call: call.principal,
    Reach: lambda _, call: call.principal.reach,
    str: lambda _, call: call.parameter,
}


class NoWords(Request, frozen=True, kw_only=True):
    """Nothing is to be said."""


class Acts(Generic[R]):
    """The acts over one room; `shared` are members of `Route` that all of them have.

    `gives` finds the value for parameters of the room's own types.
    """

    def __init__(
        self,
        tag: str,
        room: type[R],
        gives: Mapping[Any, _Take] | None = None,
        **shared: Any,  # noqa: ANN401 - of Route
    ) -> None:
        self._known = {room: lambda room, _: room, **_KNOWN, **(gives or {})}
        self._shared = {"tag": tag, "room": room, **shared}
        self._routes: list[Route[R]] = []

    @property
    def routes(self) -> tuple[Route[R], ...]:
        """In the order of their declaration."""
        return tuple(self._routes)

    def act(
        self,
        address: str,
        summary: str,
        *,
        reads: bool = False,
        **declared: Any,  # noqa: ANN401 - of Route
    ) -> Callable[[F], F]:
        """Declare an act of the API. The function itself stays as it is, and can be called.

        A POST that only `reads` writes nothing, not even its response: a retry runs it again.
        """

        def declare(function: F) -> F:
            hints = get_type_hints(function, include_extras=True)
            response, sent = hints.pop("return"), None
            is_query = address.startswith("GET ")
            takes: dict[str, _Take] = {}
            for name, kind in hints.items():
                if kind in self._known:
                    takes[name] = self._known[kind]
                elif kind is not Connection:
                    sent, takes[name] = kind, _query if is_query else partial(_body, kind)
            about = self._shared | declared | {"query" if is_query else "request": sent}
            if sent is None and address.startswith("POST "):
                takes[""] = partial(_body, NoWords)
                about |= {"request": NoWords, "request_examples": {"nothing to say": {}}}
            first, *rest = function.__name__.split("_")
            about.setdefault("operation", "".join([first, *map(str.capitalize, rest)]))
            route: Route[R] = Route(
                address=address,
                summary=summary,
                handler=_handler(
                    function,
                    takes,
                    reads=is_query or reads,
                    opens=Connection not in hints.values(),
                ),
                response=None if response is Reply else response,
                **about,
            )
            self._routes.append(route)
            return function

        return declare


def _query(_: Any, call: Call) -> Any:  # noqa: ANN401 - as the gate has read it
    return call.query


def _body(kind: type[Request], _: Any, call: Call) -> Request:  # noqa: ANN401 - unused
    return parse_body(call.body, kind)


def _handler(
    function: Callable[..., Any], takes: Mapping[str, _Take], *, reads: bool, opens: bool
) -> Handler[Any]:
    """The handler for the gate: `takes` finds the arguments, by parameter."""
    keeps = not reads and {_keep, _writing}.isdisjoint(takes.values())

    @wraps(function)
    async def handle(room: Any, call: Call) -> Reply:  # noqa: ANN401 - that of the act
        given: dict[str, Any] = {}
        for name, take in takes.items():
            found = take(room, call)
            given[name] = await found if isawaitable(found) else found
        given.pop("", None)
        act = partial(function, **given)
        if opens:
            done = await act()
            if isinstance(done, Reply):
                return done
            body = encode(done)
            if keeps and call.entry is not None:
                await room.access.database.write(keep_answers, [call.entry(body)])
            return Reply(body)
        if reads:
            return Reply(encode(await room.access.database.scan(act)))
        return Reply(encode(await _writing(room, call)(act)))

    return handle
