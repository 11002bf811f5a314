"""An act is a typed function with a declaration; its route and its handler are made of both.

    HOLDS = Acts("Staff: holds", Privacy, scope=Scope.HOLDS_MANAGE, console=True)

    @HOLDS.act("POST /v1/holds", "Place a legal hold", refusals=(UnknownSubject,))
    def place_hold(
        connection: Connection, privacy: Privacy, reach: Reach, wanted: HoldRequest
    ) -> HoldView:

The type of a parameter says what it is given: the room, the caller's reach or the `Principal`
itself, the whole `Call`, the body or (of a GET) the query, and for a `str` the parameter of the
path. One with a `Connection` runs in one transaction, which keeps the response for an
Idempotency-Key; one without opens its own, and its response is kept after the last of them, or by
the act itself, with its `Keep | None`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, Final, Generic, TypeAlias, TypeVar, get_type_hints

from sqlalchemy import Connection

from countersign.access.idempotency import Keep, keep_answers, keeping
from countersign.access.key import Principal
from countersign.access.reach import Reach
from countersign.http.body import parse_body
from countersign.http.reply import Call, Reply, encode
from countersign.http.route import Handler, Route
from countersign.http.schemas import Request

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
_Take: TypeAlias = Callable[[Any, Call], Any]
"""Finds what a parameter is given, by the room and the call."""


def _keep(_: Any, call: Call) -> Keep | None:  # noqa: ANN401 - unused
    return call.entry


_KNOWN: Final[Mapping[Any, _Take]] = {
    Call: lambda _, call: call,
    Keep | None: _keep,
    Principal: lambda _, call: call.principal,
    Reach: lambda _, call: call.principal.reach,
    str: lambda _, call: call.parameter,
}


class NoWords(Request, frozen=True, kw_only=True):
    """Nothing is to be said."""


class Acts(Generic[R]):
    """The acts over one room; `shared` are members of `Route` that all of them have."""

    def __init__(self, tag: str, room: type[R], **shared: Any) -> None:  # noqa: ANN401 - of Route
        self._room, self._shared = room, {"tag": tag, "room": room, **shared}
        self._routes: list[Route[R]] = []

    @property
    def routes(self) -> tuple[Route[R], ...]:
        """In the order of their declaration."""
        return tuple(self._routes)

    def act(
        self,
        address: str,
        summary: str,
        **declared: Any,  # noqa: ANN401 - of Route
    ) -> Callable[[F], F]:
        """Declare an act of the API. The function itself stays as it is, and can be called."""

        def declare(function: F) -> F:
            hints = get_type_hints(function, include_extras=True)
            response, sent = hints.pop("return"), None
            is_query = address.startswith("GET ")
            takes: dict[str, _Take] = {}
            for name, kind in hints.items():
                if kind is self._room:
                    takes[name] = _room_itself
                elif kind in _KNOWN:
                    takes[name] = _KNOWN[kind]
                elif kind is not Connection:
                    sent, takes[name] = kind, _query if is_query else partial(_body, kind)
            about = self._shared | declared | {"query" if is_query else "request": sent}
            if sent is None and not is_query:
                takes[""] = partial(_body, NoWords)
                about |= {"request": NoWords, "request_examples": {"nothing to say": {}}}
            first, *rest = function.__name__.split("_")
            about.setdefault("operation", "".join([first, *map(str.capitalize, rest)]))
            route: Route[R] = Route(
                address=address,
                summary=summary,
                handler=_handler(
                    function, takes, is_query=is_query, opens=Connection not in hints.values()
                ),
                response=response,
                **about,
            )
            self._routes.append(route)
            return function

        return declare


def _room_itself(room: Any, _: Call) -> Any:  # noqa: ANN401 - that of the act
    return room


def _query(_: Any, call: Call) -> Any:  # noqa: ANN401 - as the gate has read it
    return call.query


def _body(kind: type[Request], _: Any, call: Call) -> Request:  # noqa: ANN401 - unused
    return parse_body(call.body, kind)


def _handler(
    function: Callable[..., Any], takes: Mapping[str, _Take], *, is_query: bool, opens: bool
) -> Handler[Any]:
    """What the gate calls: `takes` says what the function is given, by parameter."""

    @wraps(function)
    async def handle(room: Any, call: Call) -> Reply:  # noqa: ANN401 - that of the act
        given = {name: take(room, call) for name, take in takes.items()}
        given.pop("", None)
        act, database = partial(function, **given), room.access.database
        if is_query:
            return Reply(encode(await (act() if opens else database.scan(act))))
        if not opens:
            done = await database.write(keeping(act, call.remembering(encode)))
            return Reply(encode(done))
        body = encode(await act())
        if call.entry is not None and _keep not in takes.values():
            await database.write(keep_answers, [call.entry(body)])
        return Reply(body)

    return handle
