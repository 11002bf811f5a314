"""The declaration of a route (keys and scopes, validation, OpenAPI), and routing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from countersign.base.errors import (
    Forbidden,
    InternalError,
    InvalidApiKey,
    InvalidClientToken,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    Refusal,
    Retryable,
    Unauthorized,
)
from countersign.base.http.schemas import ErrorBody, ErrorDetail, Request
from countersign.base.values import Mode
from countersign.core.access.audit import Audit
from countersign.core.access.idempotency import KEY_LENGTH_MAX, KeyedRequest
from countersign.core.access.key import BRAND, Principal, Scope
from countersign.core.access.reach import AccountReach, DeploymentReach

_KEY: Final = re.compile(rb"[!-~]{1,%d}" % KEY_LENGTH_MAX)
ACCOUNT: Final = b"countersign-account"
MODE: Final = b"countersign-mode"
REASON: Final = b"countersign-reason"
"""Headers of a person's call that a key implies or does not need."""
REASON_LENGTH_MIN: Final = 3
REASON_LENGTH_MAX: Final = 200
_UTF8_BYTES_MAX: Final = 4
"""Of a character."""
_ONCE: Final = (*b"host authorization content-type idempotency-key".split(), ACCOUNT, MODE, REASON)


def refuse_repeated(call: Call) -> None:
    """A proxy may have used the first of two; this server would use the last."""
    names = [name for name, _ in call.raw_headers]
    for name in _ONCE:
        if names.count(name) > 1:
            raise InvalidRequest(f"The header {name.decode()} was sent twice.")


def bearer(call: Call) -> bytes:
    """The token of `Authorization: Bearer …`; the scheme in any letter case (RFC 6750 §2.1)."""
    scheme, _, token = call.headers.get(b"authorization", b"").strip().partition(b" ")
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


def is_plain_json(call: Call) -> bool:
    """Whether the body is declared as JSON in UTF-8, without compression."""
    said = call.headers.get(b"content-type", b"")
    if said == b"application/json" and b"content-encoding" not in call.headers:
        return True  # as almost all say it
    media_type, _, parameters = said.partition(b";")
    if media_type.strip().lower() != b"application/json":
        return False
    for parameter in parameters.split(b";"):
        name, _, value = parameter.strip().lower().partition(b"=")
        if name == b"charset" and value.strip(b'"') not in {b"utf-8", b"utf8"}:
            return False
    return call.headers.get(b"content-encoding", b"identity").strip().lower() == b"identity"


def idempotency_key(call: Call) -> str | None:
    """The key, bare or as a structured-field string (draft-ietf-httpapi-idempotency-key-header).

    Raises:
        InvalidRequest: it is longer, or has other characters, than a key may.
    """
    value = call.headers.get(b"idempotency-key")
    if value is None:
        return None
    key = value.strip()
    if len(key) > 1 and key[:1] == key[-1:] == b'"':
        key = key[1:-1]
    if _KEY.fullmatch(key) is None:
        raise InvalidRequest(
            f"An Idempotency-Key must have 1 to {KEY_LENGTH_MAX} visible ASCII characters."
        )
    return key.decode("ascii")


def place(call: Call) -> tuple[str, Mode]:
    """The account and the mode that a person's call is about; no account: it is about none.

    Raises:
        InvalidRequest: the mode is missing although an account is named, or is no mode.
    """
    account = call.headers.get(ACCOUNT, b"").decode("latin-1").strip()
    said = call.headers.get(MODE, b"" if account else Mode.LIVE.value.encode())
    try:
        return account, Mode(said.decode("latin-1").strip())
    except ValueError:
        raise InvalidRequest("The header Countersign-Mode must be test or live.") from None


def reason(call: Call) -> str:
    """Why a person looks at personal data, in UTF-8.

    Raises:
        InvalidRequest: missing, too short, too long or not printable.
    """
    given = call.headers.get(REASON, b"")
    try:
        # Composing takes quadratic time: it sees no more bytes than a reason can have.
        text = given.decode() if len(given) <= _UTF8_BYTES_MAX * REASON_LENGTH_MAX else ""
        text = unicodedata.normalize("NFC", text).strip()
    except UnicodeDecodeError:
        text = ""
    if REASON_LENGTH_MIN <= len(text) <= REASON_LENGTH_MAX and text.isprintable():
        return text
    raise InvalidRequest(
        f"Personal data is shown for a reason: send {REASON_LENGTH_MIN} to {REASON_LENGTH_MAX} "
        "printable characters in the header Countersign-Reason."
    )


Header: TypeAlias = tuple[bytes, bytes]

JSON: Final[Header] = (b"content-type", b"application/json; charset=utf-8")
NO_STORE: Final[Header] = (b"cache-control", b"no-store")
PERSONAL: Final = (JSON, NO_STORE)
REPLAYED: Final[Header] = (b"idempotent-replayed", b"true")
LIVE_WOULD_REFUSE: Final = b"countersign-live-would-refuse"
"""The header that names, in test mode, the reasons that only a live key would get."""

ReadBody: TypeAlias = Callable[[int, Sequence[str]], Awaitable[bytes]]
"""Reads at most `most` bytes, which count against the quotas of these owners, the narrowest
first."""

encode: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode


class Reply(NamedTuple):
    """A response."""

    body: bytes
    headers: Sequence[Header] = PERSONAL
    status: int = 200
    pieces: AsyncGenerator[bytes, None] | None = None
    """A stream after `body`, without a known length, until its reader leaves."""


class Call(msgspec.Struct, eq=False, kw_only=True):
    """A request on its way to a handler, with the results of each gate."""

    method: str
    path: str
    query_string: bytes
    headers: dict[bytes, bytes]
    raw_headers: Sequence[Header]
    peer: str | None
    is_within: bool = False
    """Whether it comes from this process itself: of the console's pages."""
    needs_host: bool = False
    """Whether it names no host and has to: from HTTP/1.1 on (RFC 9112 §3.2)."""
    parameter: str = ""
    principal: Principal = msgspec.UNSET  # type: ignore[assignment]
    """The caller; set only on a route that needs a key."""
    also: Sequence[Header] = ()
    """Headers of the response, also of a refusal."""
    body: bytes = b""
    read_body: ReadBody | None = None
    """Reads a body for a handler, which first checks whom it is for."""
    count_visit: Callable[[str, str], Awaitable[None]] | None = None
    """Counts a request of a caller without a key: for this session, and for its account.

    Raises RateLimited where there were too many.
    """
    locale: str = ""
    """The language for the caller, as soon as something more specific than Accept-Language is
    known."""
    entry: KeyedRequest | None = None
    """Makes the kept response from its body; None without an Idempotency-Key."""
    audit: Audit | None = None
    """Where an act notes itself: of operators and staff; None: a vendor's key acts."""
    query: Any = None
    """The parameters of the query, as the `query` of the route."""
    code: str = ""
    """Of the error in the response."""


def etag_of(body: bytes) -> bytes:
    """The strong entity tag of these bytes (RFC 9110 §8.8.3)."""
    return f'"sha256-{sha256(body).hexdigest()}"'.encode()


def tagged(call: Call, body: bytes, etag: bytes, media_type: Header, *headers: Header) -> Reply:
    """A response with an entity tag; 304 without a body where the caller has it already."""
    rest = (*headers, (b"etag", etag))
    wanted = call.headers.get(b"if-none-match")
    if wanted is not None and _matches(wanted, etag):
        return Reply(b"", rest, 304)
    return Reply(body, (media_type, *rest))


def _matches(if_none_match: bytes, etag: bytes) -> bool:
    """RFC 9110 §13.1.2: `*`, or one of the listed tags by weak comparison."""
    if if_none_match.strip() == b"*":
        return True
    return any(tag.strip().removeprefix(b"W/") == etag for tag in if_none_match.split(b","))


_REALM: Final = 'Bearer realm="countersign"'


def error_reply(refusal: Refusal, help_base: str) -> Reply:
    """The response to a refusal; `help_base` is the address of the page of errors."""
    if refusal.status == InternalError.status:
        refusal = InternalError()
    headers: list[Header] = [
        JSON,
        NO_STORE,
        (b"link", f'<{help_base}#{refusal.code}>; rel="help"'.encode()),
    ]
    if isinstance(refusal, Retryable):
        headers.append((b"retry-after", str(refusal.retry_after).encode()))
    if isinstance(refusal, Unauthorized):
        headers.append((b"www-authenticate", _REALM.encode()))
    elif isinstance(refusal, InvalidApiKey | InvalidClientToken):
        headers.append((b"www-authenticate", f'{_REALM}, error="invalid_token"'.encode()))
    elif isinstance(refusal, Forbidden):
        challenge = f'{_REALM}, error="insufficient_scope", scope="{refusal.scope}"'
        headers.append((b"www-authenticate", challenge.encode()))
    body = ErrorBody(error=ErrorDetail(code=refusal.code, message=refusal.message))
    return Reply(encode(body), tuple(headers), refusal.status)


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
    """Finds account and mode by the path's parameter; None: they are options of the command."""
    sandbox: bool = False
    """Whether it acts in the sandbox of an account, its first argument."""
    live: bool = False
    """Whether it concerns both modes of an account together, and asks for no mode."""
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
    """The members that it takes as options; None: all members that are not objects."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of options that are called otherwise than the rule has it."""
    sends: Mapping[str, Any] = field(default_factory=dict)
    """Default values of members; durations as they are typed."""
    asks: str = ""
    """The question before an act that cannot be undone; it may name arguments in braces."""
    says: str | Callable[[Mapping[str, Any]], str] = ""
    """A message on standard error, with members of the response in braces."""
    shows: tuple[str, ...] = ()
    """The members to print, as columns for a list; empty: all, each with its name."""
    none: str = "Nothing was found."
    """The message for an empty list."""
    warns: Callable[[Any, Mapping[str, Any]], Awaitable[None]] | None = None
    """Prints warnings about the response; may query the room."""


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
    """Whether it exists only where the console is on, and at the host of the console if that has
    its own; elsewhere it is an unknown path."""
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
    """Whether its response has a secret, which a retry with the Idempotency-Key returns only to the
    same key or person."""
    client_token: bool = False
    """Whether it accepts, in place of a key, the token of one checkout session."""
    query: type[Request] | None = None
    request: type | None = None
    raw_body_max: int = 0
    """Maximum size in bytes of a raw body that a third party sends and signs, without a key."""
    price: int = 200
    """Upper bound of its worst request's cost on the event loop, in thread time of a `GET
    …/status`.

    Measured by `tests/http/test_price.py`, which also checks that it grows at most linearly with
    the body: an operation above `ON_LOOP_MAX` has a thread, and places for each account.
    """
    decide_again: Callable[[bytes], bool] | None = None
    """Whether the request is decided again instead of replaying this stored response."""
    slot_decides: bool = False
    """Whether the act itself detects a repeated request with an Idempotency-Key.

    Otherwise it is looked up first. Such an act has no effect outside its one transaction: see
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
    """The operators' commands for it; `make docs` adds them to the table of commands."""

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
            MethodNotAllowed: the path takes others, which `allowed` names.
        """
        methods, parameter = self._exact.get(path), ""
        # A parameter is the third segment, /v1/{collection}/{parameter}[/{action}], or the fourth.
        parts = path.split("/") if methods is None else []
        for at in (4, 3):
            if methods is None and len(parts) > at and parts[at]:
                action = ["/".join(parts[at + 1 :])] if len(parts) > at + 1 else []
                methods, parameter = self._around.get((*parts[1:at], *action)), parts[at]
        for before, found in self._below.items() if methods is None else ():
            if path.startswith(before):
                methods, parameter = found, path[len(before) :]
                break
        if methods is None:
            raise NotFound(UNKNOWN_PATH)
        route = methods.get(method)
        if route is None:
            refusal = MethodNotAllowed()
            refusal.allowed = ", ".join(sorted(methods)).encode()
            raise refusal
        return route, parameter
