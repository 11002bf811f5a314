"""The service's interface for the console package: the one module that it imports.

The package names a factory as the entry point `pages` of the group `countersign.console`:

    [project.entry-points."countersign.console"]
    pages = "package.module:factory"

A server whose console is on calls `factory(host)` once, and gets a function that answers each
request below /console. All that the pages show or do they ask of the API, in this process, by
`Host.call`: through the same gates, limits and audit as a request from outside, with the session
of the person as the Bearer token.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hmac import compare_digest
from importlib.metadata import entry_points
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode

from msgspec import to_builtins

from countersign.base.errors import NotFound, OriginNotAllowed
from countersign.base.http.body import BODY_BYTES_MAX, DOOR_BYTES_MAX, Incoming
from countersign.base.values import Mode
from countersign.core.access.audit import AuditAction
from countersign.core.access.key import MACHINE_SCOPES, PEOPLE_SCOPES, Scope
from countersign.core.access.key import STAFF_SCOPES as OF_STAFF
from countersign.core.access.key import VENDOR_SCOPES as OF_VENDORS
from countersign.core.access.role import OF_DEPLOYMENT, ROLES, Role
from countersign.core.events.model import EventType
from countersign.core.gate.route import (
    ACCOUNT,
    MODE,
    NO_STORE,
    REASON,
    Call,
    Header,
    Reply,
    Route,
    grouped,
)
from countersign.core.log.audit_chain import sealed_head
from countersign.core.orders.model import OrderState
from countersign.hosted.pages.cookies import OWN_SITES
from countersign.hosted.toolkit.screens import CONTRAST, address_of, contrast, read_door, read_form
from countersign.operate.bootstrap import Deployment
from countersign.staff.people import by_provider, kept, sign_in, sql
from countersign_evidence.disclosure import b64url

GROUP: Final = "countersign.console"
ENTRY: Final = "pages"
ROOT: Final = "/console"
SESSION: Final = "session"
"""The cookie with the token of a session."""
DOORS: Final = ("sign-in", "link", "provider/return")
"""Pages with forms for people who are not signed in: at most 4 KiB each."""
_JSON: Final = "application/json"

AUDITED: Final = tuple(one.value for one in AuditAction)
"""The acts and looks of the audit."""
ORDER_STATES: Final = tuple(OrderState)
VENDOR_SCOPES: Final = tuple(scope.value for scope in Scope if scope in OF_VENDORS)
"""The scopes of keys that a vendor's server may need."""
STAFF_SCOPES: Final = tuple(
    s.value for s in Scope if s in OF_STAFF - PEOPLE_SCOPES - MACHINE_SCOPES
)
"""Scopes of keys for acts of staff: only a person who has such a scope can grant it."""
READABLE: Final = CONTRAST
"""The contrast that text needs."""
EVENT_TYPES: Final = tuple(one.value for one in EventType)

Handle: TypeAlias = Callable[[Call, Incoming], Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The API's response."""

    status: int
    data: Any
    """The decoded JSON; of another media type the bytes, of an empty body None."""

    @property
    def ok(self) -> bool:
        return self.status < 300

    @property
    def code(self) -> str:
        """The stable code of a refusal; "" if the response is no error."""
        return "" if self.ok else str(self.data["error"]["code"])

    @property
    def message(self) -> str:
        """The message of a refusal; "" if the response is no error."""
        return "" if self.ok else str(self.data["error"]["message"])


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A request of a browser."""

    method: str
    """`GET` or `POST`; the response to a `HEAD` has no body."""
    path: str
    """Below /console, without a slash before it: `orders/ack_…`, or "" for the first page."""
    query: Mapping[str, str]
    """If a parameter is repeated, its last value."""
    form: Mapping[str, str]
    """The fields of a POST; its origin was checked: see `_refuse_foreign`. Without a session, which
    may have ended, bodies are read only at `DOORS`."""
    cookies: Mapping[str, str]
    headers: Mapping[str, str]
    """By their names in lower case."""
    address: str = ""
    """The browser's address as reported by the configured proxies; "": no proxies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReply:
    """The response to a browser, with `Cache-Control: no-store` unless the page sets it."""

    body: bytes = b""
    status: int = 200
    headers: Sequence[tuple[str, str]] = ()


Pages: TypeAlias = Callable[[PageRequest], Awaitable[PageReply]]


def contrasts(color: str) -> dict[str, float]:
    """The contrast of white and of black text on a colour `#rrggbb`, each from 1 to 21."""
    return {name: contrast(color, on) for name, on in (("white", "#fff"), ("black", "#000"))}


class Host:
    """The interface of the service for pages."""

    def __init__(self, deployment: Deployment, handle: Handle) -> None:
        self.url: Final = deployment.people.url
        """The console's address for browsers, without /console."""
        self.public_url: Final = deployment.settings.public_url
        """Where everyone reaches the service: its log, and what evidence is verified against."""
        self.is_secure: Final = self.url.startswith("https:")
        self._people = people = deployment.people
        self._handle = handle
        self._notices = deployment.notices.registry
        self.one_reviews: Final = deployment.notices.reviewers == 1
        """Whether one person may publish and review a notice."""
        self.who: Final = partial(sign_in.signed_in, people)
        """The person signed in with this session; None: no one."""
        self.owner: Final = partial(sign_in.owner, people)
        """The id of the person of a session, also of one that has ended by itself; or None."""
        self.keep: Final = partial(kept.keep, people)
        """Keep the outcome of a form, sealed, for ten minutes; returns its name for an address."""
        self.kept: Final = partial(kept.find, people)
        """The outcome of this name for a person; None: there is none, or no longer."""
        self.link_says: Final = partial(sign_in.link_says, people)
        """The holder of a link; None: the link is unknown, used, replaced or expired.

        The token of a link stands behind the # of its URL (`/console/link#csign_pl_…`), where no
        server sees it: the page sends it by a POST.
        """
        self.use_link: Final = partial(sign_in.use_link, people)
        """Come in by a link with a new passkey, the response as JSON; None: refused.

        It ends the sessions and passkeys that the person had before.
        """
        self.passkey_options: Final = partial(sign_in.sign_in_options, people)
        """The options of `navigator.credentials.get`, and a state to send back with the response.

        With a session: to use the passkey again, see `freshen`. None: browsers allow no passkeys at
        the address of this console.
        """
        self.sign_in: Final = partial(sign_in.sign_in, people)
        """Sign in: a new session, whose token goes into a cookie. None: refused."""
        self.freshen: Final = partial(sign_in.freshen, people)
        """Use the passkey again, where the API answered `passkey_required`."""
        self.go_to_provider: Final = partial(by_provider.begin, people)
        """The redirect for the browser, and the value that it keeps meanwhile: see `ProviderUse`.

        `link` needs the token of a link, `again` that of a session; `is_other` asks for another
        account.
        """
        self.sign_out_of_provider: Final = partial(by_provider.sign_out, people)
        """Where the browser signs out of the provider too; or the reason for a refusal."""
        self.back_from_provider: Final = partial(by_provider.finish, people)
        """A new session; None: the earlier session is fresh now; or the reason for a refusal.

        It takes the parameters with which the browser returned, and its IP address.
        """

    async def call(
        self,
        method: str,
        path: str,
        *,
        session: str,
        account: str = "",
        mode: str = "",
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Answer:
        """Call an operation of the API for the person with this session.

        The call is about `account` and `mode`; without an account it is a staff call about the
        deployment. `reason` is why the person looks at personal data.
        """
        headers = {b"authorization": f"Bearer {session}".encode()}
        said = {ACCOUNT: account, MODE: mode, REASON: reason, b"idempotency-key": idempotency_key}
        said[b"content-type"] = None if body is None else _JSON
        headers |= {name: value.encode() for name, value in said.items() if value}
        sent = b"" if body is None else json.dumps(body).encode()
        call = Call(
            method=method,
            path=path,
            query_string=urlencode(query or {}, quote_via=quote).encode(),
            headers=headers,
            raw_headers=list(headers.items()),
            peer=None,
            is_within=True,
        )

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": sent}

        reply = await self._handle(call, Incoming(receive))
        is_json = dict(reply.headers).get(b"content-type", b"").startswith(_JSON.encode())
        data: Any = json.loads(reply.body) if is_json and reply.body else reply.body or None
        return Answer(status=reply.status, data=data)

    async def sign_out(self, session: str) -> None:
        """End a session, outside the limits of the API, unless it has ended."""
        await self._people.access.database.write(sign_in.sign_out, self._people, session)

    async def notice(self, notice_id: str, version: str) -> dict[str, Any]:
        """The members of a published version, as publishing takes them."""
        one = await self._notices.version_for(notice_id, version, Mode.TEST)
        rule = {"applies_to": one.rules[-1]} if one.rules else {}
        return {**to_builtins(one.content), **to_builtins(rule)}

    def scopes(self, role: str, *, staff: bool, acts: bool = False) -> frozenset[str]:
        """The scopes of a role: of the whole service for `staff`, else of an account.

        `acts`: without read-only scopes.
        """
        never, allowed = frozenset[Scope]() if staff else OF_DEPLOYMENT, ROLES[Role(role)]
        own = allowed.acts if acts else allowed.scopes
        return frozenset(scope.value for scope in own - never)

    async def names(self, person_ids: Sequence[str]) -> Mapping[str, str]:
        """The names of people (`per_…`) in the audit; unknown ids are left out."""
        return await self._people.access.database.read(sql.names_of, person_ids)

    async def people(self, account_id: str) -> Mapping[str, str]:
        """The names of all who ever had a role in an account; "": of all people."""
        return await self._people.access.database.scan(sql.ever_of, account_id)

    async def audit_head(self) -> tuple[str, str]:
        """The head of the audit's chain that the log has, and since when; "", "": none yet."""
        return await self._people.access.database.read(sealed_head)

    @property
    def provider(self) -> str:
        """The host of the provider of OpenID Connect where people sign in; "": not configured."""
        return self._people.provider.host if self._people.provider else ""

    def form_code(self, session: str, key: str = "") -> str:
        """A token for one form of a signed-in person, sent back with the form: see `is_form`.

        It begins with a random key: see `form_key`.
        """
        access = self._people.access
        digest = access.sessions.digest(session.encode()) or b""
        key = key or b64url(access.entropy(16))
        return f"{key}.{b64url(access.secret.page_code('person form', key, digest))}"

    def is_form(self, session: str, sent: str) -> bool:
        """Whether a form is of a page that was served in this session."""
        code = self.form_code(session, self.form_key(sent))
        return compare_digest(code.encode(), sent.encode())

    @staticmethod
    def form_key(sent: str) -> str:
        """The `Idempotency-Key` of a form, from its token: a form sent twice acts once."""
        return sent.partition(".")[0]

    def cookie_name(self, name: str) -> str:
        """The name of a cookie of the console: `__Host-` where browsers reach it by https."""
        return f"{'__Host-' if self.is_secure else ''}csc-{name}"

    def cookie(self, name: str, value: str, seconds: int | None = None) -> tuple[str, str]:
        """The header that sets a cookie for this host alone, out of reach of scripts.

        Without `seconds` it goes with the browser's session; 0 removes it.
        """
        kept = "" if seconds is None else f"; Max-Age={seconds}"
        secure = "; Secure" if self.is_secure else ""
        own = f"{self.cookie_name(name)}={value}{kept}; Path=/; HttpOnly; SameSite=Strict{secure}"
        return "set-cookie", own


@dataclass
class ConsoleHost:
    """The pages of the console for its routes, loaded on first use.

    A disabled console has no routes, so it loads nothing.
    """

    deployment: Deployment
    handle: Handle

    @cached_property
    def host(self) -> Host:
        return Host(self.deployment, self.handle)

    @cached_property
    def pages(self) -> Pages | None:
        """The pages below /console; None: the package is not installed."""
        for entry in entry_points(group=GROUP, name=ENTRY):
            factory: Callable[[Host], Pages] = entry.load()
            return factory(self.host)
        return None


async def show(room: ConsoleHost, call: Call) -> Reply:
    """Have a page of the package shown."""
    pages = room.pages
    if pages is None:
        raise NotFound(
            "The console is on, and its pages are not installed: install countersign-console in "
            "the environment of this server, and start it again."
        )
    text = {name.decode("latin-1"): value.decode("latin-1") for name, value in call.raw_headers}
    lines = b";".join(value for name, value in call.raw_headers if name == b"cookie")
    pairs = (one.strip().partition("=") for one in lines.decode("latin-1").split(";"))
    cookies = {name: value for name, _, value in pairs}
    path, checkout = call.path.removeprefix(ROOT).removeprefix("/"), room.deployment.checkout
    form: Mapping[str, str] = {}
    if call.method == "POST":
        _refuse_foreign(room, call)
        session = cookies.get(room.host.cookie_name(SESSION), "")
        if path in DOORS:
            form = await read_door(checkout, call)
        elif session and await room.host.owner(session) is not None:
            form = await read_form(call, BODY_BYTES_MAX, (session,))
    request = PageRequest(
        method=call.method,
        path=path,
        query=dict(parse_qsl(call.query_string.decode("latin-1"), errors="replace")),
        form=form,
        cookies=cookies,
        headers=text,
        address=address_of(checkout, call),
    )
    reply = await pages(request)
    headers: list[Header] = [(name.encode(), value.encode()) for name, value in reply.headers]
    if all(name != NO_STORE[0] for name, _ in headers):
        headers.append(NO_STORE)
    return Reply(reply.body, headers, reply.status)


def _refuse_foreign(room: ConsoleHost, call: Call) -> None:
    """Refuse a form from another origin, or from a browser that sends no origin.

    The pages have `Referrer-Policy: same-origin`, with which browsers send their origin.

    Raises:
        OriginNotAllowed: it is of another site.
    """
    scheme, _, rest = room.deployment.people.url.partition("://")
    own = {f"{scheme}://{rest.partition('/')[0]}"}
    if room.deployment.settings.console_url is None:
        own.add(f"{scheme}://{call.headers.get(b'host', b'').decode('latin-1')}")
    if (
        call.headers.get(b"origin", b"").decode("latin-1") not in own
        or call.headers.get(b"sec-fetch-site", b"none") not in OWN_SITES
    ):
        raise OriginNotAllowed


ROUTES: Final[tuple[Route[Any], ...]] = grouped(
    "",
    ConsoleHost,
    *(
        Route(
            address=f"{method} {path}",
            handler=show,
            console=True,
            price=300,
            raw_body_max=size if method == "POST" else 0,
        )
        for method in ("GET", "POST")
        for path, size in (
            (ROOT, BODY_BYTES_MAX),
            (f"{ROOT}/{{path*}}", BODY_BYTES_MAX),
            *((f"{ROOT}/{door}", DOOR_BYTES_MAX) for door in DOORS),
        )
    ),
)
