"""The declaration of a route (keys and scopes, validation, OpenAPI), and routing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeAlias, TypeVar

from countersign.base.errors import MethodNotAllowed, NotFound, Refusal
from countersign.base.http.schemas import Request
from countersign.base.values import Mode
from countersign.core.access.key import AccountReach, DeploymentReach, Scope
from countersign.core.gate.reply import Call, Reply

ON_LOOP_MAX: Final = 300
UNKNOWN_PATH: Final = "The path was not found."
R_contra = TypeVar("R_contra", contravariant=True)
"""The room of a handler."""

Handler: TypeAlias = Callable[[R_contra, Call], Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The command of an operation, for operators: what cannot be read off its types.

    Options are the members of the body or the query, without `_id` and, as lengths of time such
    as 24h, without `_seconds`. Standard output has the response: whole with `--json`.
    """

    name: str
    """With the names of its groups, as in `webhooks add`."""
    help: str = ""
    """Left out: as the handler says."""
    owner: Callable[[Any, str], Awaitable[tuple[str, Mode]]] | None = None
    """Finds account and mode by the path's parameter; None: they are asked for."""
    sandbox: bool = False
    """Whether it acts in the sandbox of an account, its first argument."""
    live: bool = False
    """Whether it is about what both modes of an account share, and asks for no mode."""
    either_mode: bool = False
    """Whether a list without `--mode` has the items of both modes."""
    anywhere: bool = False
    """Whether a list without `--account` has the items of all accounts, of live mode or with
    `either_mode` of both."""
    whole: bool = False
    """Whether a list without `--limit` has all its pages: it is short, or acted on."""
    arguments: tuple[str, ...] = ()
    """The members that need no name on the command line."""
    takes: tuple[str, ...] | None = None
    """The members that it takes as options; None: all that are no objects."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of options that are called otherwise than the rule has it."""
    sends: Mapping[str, Any] = field(default_factory=dict)
    """What the members are unless an option says otherwise; a length of time as it is typed."""
    asks: str = ""
    """The question before an act that cannot be undone; it may name arguments in braces."""
    says: str | Callable[[Mapping[str, Any]], str] = ""
    """A message on standard error, with members of the response in braces."""
    shows: tuple[str, ...] = ()
    """The members that are printed, of a list as columns; none: all, each with its name."""
    none: str = "Nothing was found."
    """The message for an empty list."""
    warns: Callable[[Any, Mapping[str, Any]], Awaitable[None]] | None = None
    """Says what is wrong with what was returned, with a look at the room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route(Generic[R_contra]):
    """One operation of the API, or, without the name of an operation, another address.

    A path has at most one `{parameter}`, a whole segment of it, or ends in `{path*}`, which matches
    all paths below it.
    """

    address: str
    """Method and path, as in `GET /v1/notices/{notice_id}`."""
    handler: Handler[R_contra]
    room: type[Any] = object
    """The room of the handler."""
    operation: str = ""
    summary: str = ""
    tag: str = ""
    scope: Scope | None = None
    """The scope that the key must have; None: no key is needed."""
    console: bool = False
    """Whether it answers only where the console is on, and at the host of the console if it has one
    of its own; elsewhere it is an unknown path."""
    audited: bool = False
    """Whether an operation of vendors writes to the audit, which then names the key; those of the
    console do."""
    reach: type[AccountReach | DeploymentReach] | None = None
    """Whether it is about one account and mode, or about the whole deployment; None: either."""
    fresh: bool = False
    """Whether a person needs to have used a passkey in the last minutes: it destroys something,
    decides on someone, or outlives the session.
    """
    personal: bool = False
    """Whether it discloses personal data: of people only to the roles that may see them, for a
    reason that the audit keeps."""
    secret: bool = False
    """Whether its response has a secret, which is repeated for an Idempotency-Key to no one but the
    key or person that it was given to."""
    client_token: bool = False
    """Whether it takes, in the place of a key, the token of one checkout session."""
    query: type[Request] | None = None
    request: type | None = None
    raw_body_max: int = 0
    """Maximum size in bytes of a raw body that a third party sends and signs, without a key."""
    price: int = 200
    """Upper bound of its worst request's cost on the event loop, in thread time of a `GET
    …/status`.

    Measured by `tests/http/test_price.py`, also that it grows at most linearly with the body: what
    would be above `ON_LOOP_MAX` has a thread, and places for each account.
    """
    decide_again: Callable[[bytes], bool] | None = None
    """Whether the request is decided again instead of replaying this stored response."""
    slot_decides: bool = False
    """Whether a request with an Idempotency-Key that was done before is found by its own act.

    Otherwise it is looked up before. Such an act has no effect but its one transaction: see
    `slot_taken`.
    """
    response: Any = None
    media_type: str = "application/json"
    """Media type of the response; `response` describes only JSON."""
    refusals: tuple[type[Refusal], ...] = ()
    """Refusals of this operation, besides those of the gates before its handler."""
    request_examples: Mapping[str, Any] = field(default_factory=dict)
    """Examples of particular requests; otherwise composed of the members' examples."""
    response_examples: Mapping[str, Mapping[str, Any] | str] = field(default_factory=dict)
    """Examples of particular responses: the members that differ from their examples."""
    request_headers: Mapping[str, str] = field(default_factory=dict)
    """Optional headers of the request: name → description."""
    response_headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of every successful response; with an `ETag`, the response can also be a 304."""
    optional_response_headers: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Links of a response: operation → parameter → member of the response, a JSON pointer."""
    commands: tuple[Command, ...] = ()
    """By which operators call it; `make docs` adds them to the table of commands."""

    @property
    def method(self) -> str:
        return self.address.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.address.partition(" ")[2]


def grouped(
    tag: str, room: type[R_contra], *routes: Route[R_contra]
) -> tuple[Route[R_contra], ...]:
    """These routes, in one group of the OpenAPI document and over one room."""
    return tuple(replace(route, tag=tag, room=room) for route in routes)


class Router(Generic[R_contra]):
    """Looks a path up segment by segment; a literal segment wins over a parameter."""

    def __init__(self, routes: Iterable[Route[R_contra]]) -> None:
        self._exact: dict[str, dict[str, Route[R_contra]]] = {}
        self._around: dict[tuple[str, ...], dict[str, Route[R_contra]]] = {}
        self._below: dict[str, dict[str, Route[R_contra]]] = {}
        for route in routes:
            before, brace, rest = route.path.partition("{")
            if rest == "path*}":
                known = self._below.setdefault(before, {})
            elif brace:
                _, *fixed = before.removesuffix("/").split("/")
                _, *after = rest.split("/", 1)
                known = self._around.setdefault((*fixed, *after), {})
            else:
                known = self._exact.setdefault(route.path, {})
            known[route.method] = route
            if route.method == "GET":
                known["HEAD"] = route

    def match(self, method: str, path: str) -> tuple[Route[R_contra], str]:
        """The route and the value of its path parameter ("" without one).

        Raises:
            NotFound: there is no such path.
            MethodNotAllowed: the path does not take this method.
        """
        methods, parameter = self._find(path)
        route = methods.get(method)
        if route is None:
            raise MethodNotAllowed
        return route, parameter

    def allowed(self, path: str) -> bytes:
        """The value of the `Allow` header for a path that exists."""
        return ", ".join(sorted(self._find(path)[0])).encode()

    def _find(self, path: str) -> tuple[dict[str, Route[R_contra]], str]:
        exact = self._exact.get(path)
        if exact is not None:
            return exact, ""
        # A parameter is the third segment, /v1/{collection}/{parameter}[/{action}], or the fourth.
        parts = path.split("/")
        for at in (4, 3):
            if len(parts) > at and parts[at]:
                action = ["/".join(parts[at + 1 :])] if len(parts) > at + 1 else []
                found = self._around.get((*parts[1:at], *action))
                if found is not None:
                    return found, parts[at]
        for before, found in self._below.items():
            if path.startswith(before):
                return found, path[len(before) :]
        raise NotFound(UNKNOWN_PATH)
