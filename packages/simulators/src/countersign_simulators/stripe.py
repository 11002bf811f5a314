"""A simulated Stripe Identity: VerificationSessions, reports and signed events.

Written from Stripe's API reference, version 2026-10-28.endive, and from "Access verification
results" for the rights of each kind of key.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar, Final
from urllib.parse import unquote

from countersign_simulators.base import (
    JSON_TYPE,
    Clock,
    Headers,
    Reply,
    Request,
    Webhook,
    failing,
    hmac_hex,
)
from countersign_simulators.hosted import Created, Outcome, State
from countersign_simulators.provider import SimulatedProvider
from countersign_simulators.stripe_created import VERIFICATION_FLOW, Idempotency, Refused, create
from countersign_simulators.stripe_sessions import (
    OUTPUTS,
    REPORT,
    StripeSession,
    all_sessions,
    event,
    session_of,
)

API_VERSION: Final = "2026-10-28.endive"

# A sensitive key, one with an address on an allow-list, one without the permission, and others.
SENSITIVE_KEY: Final = "rk_live_simulated_sensitive"
ALLOW_LISTED_KEY: Final = "rk_live_simulated_allow_listed"
PLAIN_RESTRICTED_KEY: Final = "rk_live_simulated_plain"
SECRET_KEY: Final = "sk_live_simulated_secret"  # noqa: S105 - made up, opens nothing
TEST_KEY: Final = "rk_test_simulated_sensitive"
_SENSITIVE_KEYS: Final = frozenset((SENSITIVE_KEY, ALLOW_LISTED_KEY, TEST_KEY))
_KEYS: Final = _SENSITIVE_KEYS | {PLAIN_RESTRICTED_KEY, SECRET_KEY}
WEBHOOK_SECRET: Final = "whsec_simulated_signing_secret"  # noqa: S105 - made up
_LIST_PARAMETERS: Final = frozenset({"limit", "starting_after", "status", "client_reference_id"})
_RECENT_HOURS: Final = 48.0

_SENSITIVE_REFUSED: Final = (
    "To access sensitive verification results, configure a restricted API key with appropriate "
    "permissions. Learn more here: "
    "https://stripe.com/docs/identity/access-verification-results."
)
_SESSIONS: Final = "/v1/identity/verification_sessions"
_REPORTS: Final = "/v1/identity/verification_reports"
_KIND: Final = "VerificationSession"

_SENSITIVE_OUTPUTS: Final = ("dob", "id_number", "sex", "unparsed_place_of_birth", "unparsed_sex")
_SENSITIVE_DOCUMENT: Final = (
    *("dob", "expiration_date", "number"),
    *("sex", "unparsed_place_of_birth", "unparsed_sex"),
)
_SENSITIVE: Final = frozenset(
    (
        *(f"{OUTPUTS}.{name}" for name in _SENSITIVE_OUTPUTS),
        *(f"{REPORT}.document.{name}" for name in _SENSITIVE_DOCUMENT),
        f"{REPORT}.id_number.dob",
        f"{REPORT}.id_number.id_number",
    )
)
_EXPANDABLE: Final = _SENSITIVE | {OUTPUTS, REPORT, "last_error", "options", "redaction"}


class Stripe(SimulatedProvider[StripeSession]):
    """Stripe's responses to a restricted key, on good days and on others."""

    name: Final = "stripe"
    credentials: Final[Mapping[str, object]] = {
        "api_key": SENSITIVE_KEY,
        "webhook_secrets": [WEBHOOK_SECRET],
        "verification_flow": VERIFICATION_FLOW,
    }
    test_credentials: Final[Mapping[str, object]] = {**credentials, "api_key": TEST_KEY}

    title = "Stripe Identity"
    # After these the session is `requires_input`: the buyer may submit another time.
    again = frozenset(
        {
            *(Outcome.DOCUMENT_EXPIRED, Outcome.PHOTO_BLURRED, Outcome.CONSENT_DECLINED),
            *(Outcome.FAILED, Outcome.EXPIRED),
        }
    )
    # Stripe sends nothing when the buyer opens the page: the status stays.
    silent = frozenset({State.BEGUN})
    # Stripe itself sends no Retry-After; a server in front of it may.
    limits: ClassVar[Mapping[str, Headers]] = {
        "limited_once": (),
        "limited_briefly": (("Retry-After", "1"),),
        "limited_long": (("Retry-After", "30"),),
        "limited_always": (("Stripe-Should-Retry", "false"),),
    }
    always_limited = "limited_always"

    def __init__(self, now: Clock) -> None:
        super().__init__(now)
        self._changed: dict[str, dict[str, Any]] = {}
        self._idempotency = Idempotency()

    def _answer(self, request: Request) -> Reply:
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not key:
            return self._error(401, "You did not provide an API key.")
        if key not in _KEYS:
            return self._error(401, f"Invalid API Key provided: {key[:7]}****")
        return self._routed(request, key) or self._error(
            404, f"Unrecognized request URL ({request.method}: {request.path})."
        )

    def webhook(self, session_id: str) -> Webhook:
        """An event about the session's status, signed now; the session in it is not expanded."""
        now = self._now()
        body = self._body(self._known(session_id))
        change = "redacted" if body["redaction"] else body["status"]
        sent = event(
            # The time too: another process may count from 1 for the same receiver.
            event_id=f"evt_1Sim{int(now * 1000):014d}{next(self._numbers):06d}",
            api_version=API_VERSION,
            created=int(now),
            session=_shown(body, (), sensitive=False),
            livemode=body["livemode"],
            kind=f"identity.verification_session.{change}",
        )
        payload = json.dumps(sent, indent=2).encode()
        signature = signature_of(payload, WEBHOOK_SECRET, int(now))
        headers = (("Content-Type", "application/json; charset=utf-8"),)
        return Webhook(headers=(*headers, ("Stripe-Signature", signature)), body=payload)

    def _routed(self, request: Request, key: str) -> Reply | None:
        path, _, last = request.path.rpartition("/")
        if request.method == "POST":
            if last in {"cancel", "redact"}:
                return self._change(unquote(path.removeprefix(f"{_SESSIONS}/")), last, key)
            return self._create(request, key) if request.path == _SESSIONS else None
        return self._shown(request, key) if request.method == "GET" else None

    def _shown(self, request: Request, key: str) -> Reply | None:
        path, _, last = request.path.rpartition("/")
        if request.path == _SESSIONS:
            known = (*self._created(), *self._current())
            visible = [session for session in known if _is_visible(session, key)]
            return self._list([self._body(session) for session in visible], request.query)
        if path == _SESSIONS:
            return self._session(request, unquote(last), key)
        if path == _REPORTS:
            return self._report(request, unquote(last), key)
        return None

    def _create(self, request: Request, key: str) -> Reply:
        """A new session, in the mode of the key; once for each idempotency key."""
        mode = "test" if key == TEST_KEY else "live"
        sent = request.headers.get("idempotency-key")
        try:
            known = self._idempotency.find((mode, sent), request.body)
            if known is not None:
                return known
            made = create(self._hosted, request, live=mode == "live")
        except Refused as refused:
            return self._error(
                400, str(refused), code=refused.code, kind=refused.kind, param=refused.param
            )
        session = self._session_of(made)
        reply = self._reply(200, _shown(session.body, _expand(made.made["form"]), sensitive=False))
        self._idempotency.keep((mode, sent), request.body, reply)
        return reply

    def _session_of(self, created: Created) -> StripeSession:
        return session_of(created, self._now())

    def _back(self, created: Created) -> str | None:
        """The `return_url` exactly as it was given; an expired link leads nowhere."""
        return None if created.outcome is Outcome.EXPIRED else created.return_url

    def _visible(self, session_id: str, key: str) -> StripeSession | None:
        session = self._find(session_id)
        return session if session is not None and _is_visible(session, key) else None

    def _body(self, session: StripeSession) -> dict[str, Any]:
        return dict(session.body) | self._changed.get(session.session_id, {})

    def _session(self, request: Request, session_id: str, key: str) -> Reply:
        session = self._visible(session_id, key)
        if session is None:
            return self._missing(_KIND, session_id)
        expand = _expand(request.query)
        if not _SENSITIVE.isdisjoint(expand) and key not in _SENSITIVE_KEYS:
            return self._error(403, _SENSITIVE_REFUSED)
        unknown = next((path for path in expand if path not in _EXPANDABLE), None)
        if unknown is not None:
            return self._error(400, f"This property cannot be expanded ({unknown}).")
        body = _shown(self._body(session), expand, sensitive=_is_recent(session, key))
        self._hosted.retrieved(session_id)
        return self._failed(session) or failing(self._reply(200, body), session.failure)

    def _report(self, request: Request, report_id: str, key: str) -> Reply:
        session = self._visible(f"vs_{report_id.removeprefix('vr_')}", key)
        if session is None or not session.body[REPORT]:
            return self._missing("VerificationReport", report_id)
        expand = tuple(f"{REPORT}.{path}" for path in _expand(request.query))
        if not _SENSITIVE.isdisjoint(expand) and key not in _SENSITIVE_KEYS:
            return self._error(403, _SENSITIVE_REFUSED)
        recent = _is_recent(session, key)
        body = _shown(self._body(session), (REPORT, *expand), sensitive=recent)
        return self._reply(200, body[REPORT])

    def _change(self, session_id: str, what: str, key: str) -> Reply:
        session = self._visible(session_id, key)
        if session is None:
            return self._missing(_KIND, session_id)
        status = self._body(session)["status"]
        if status not in {"requires_input", "verified"} or (what, status) == ("cancel", "verified"):
            return self._error(400, f"A VerificationSession that is {status} cannot be {what}ed.")
        changed, created = self._changed.setdefault(session_id, {}), self._hosted.find(session_id)
        if what == "redact":
            changed["redaction"] = {"status": "processing"}
        if status == "requires_input":
            changed["status"] = "canceled"
        if created is not None and status == "requires_input":
            self._hosted.end(created, Outcome.CANCELLED)
        elif created is not None:
            self._announce(session_id)
        return self._reply(200, _shown(self._body(session), (), sensitive=False))

    def _failed(self, session: StripeSession) -> Reply | None:
        """The error that this session gets now, if any."""
        failure, first = session.failure, self._is_first_request(session.session_id)
        if failure == "server_error":
            return self._error(500, "An unknown error occurred.", kind="api_error")
        if failure == "locked_once" and first:
            message = "This object cannot be accessed right now because another API request..."
            again = (("Stripe-Should-Retry", "true"),)
            return self._error(409, message, code="lock_timeout", headers=again)
        limited = self._limit(session, first=first)
        if limited is None:
            return None
        headers = (("Stripe-Rate-Limited-Reason", "endpoint-rate"), *limited)
        return self._error(429, "Too many requests.", code="rate_limit", headers=headers)

    def _missing(self, kind: str, object_id: str) -> Reply:
        message = f"No such {kind}: '{object_id}'"
        if self._find(object_id) is not None:
            message += (
                "; a similar object exists in test mode, but a live mode key was used to make "
                "this request."
            )
        return self._error(404, message, code="resource_missing")

    def _list(self, bodies: Sequence[Mapping[str, Any]], query: Sequence[tuple[str, str]]) -> Reply:
        """A page; a filter that is not simulated is refused rather than ignored."""
        asked = dict(query)
        unknown = next((name for name in asked if name not in _LIST_PARAMETERS), None)
        if unknown is not None:
            message = f"Received unknown parameter: {unknown}"
            return self._error(400, message, code="parameter_unknown")
        filters = [name for name in ("status", "client_reference_id") if name in asked]
        found = [body for body in bodies if all(body[name] == asked[name] for name in filters)]
        after = [body["id"] for body in found].index
        limit = asked.get("limit", "10")
        try:
            start = after(asked["starting_after"]) + 1 if "starting_after" in asked else 0
        except ValueError:
            return self._missing(_KIND, asked["starting_after"])
        if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:4]) <= 100):
            return self._error(400, "Invalid limit", code="parameter_invalid_integer")
        end = start + int(limit)
        data = [_shown(body, (), sensitive=False) for body in found[start:end]]
        more = end < len(found)
        page = {"object": "list", "url": _SESSIONS, "has_more": more, "data": data}
        return self._reply(200, page)

    def _error(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        kind: str = "invalid_request_error",
        param: str | None = None,
        headers: Headers = (),
    ) -> Reply:
        more = {"code": code, "param": param}
        error = {"message": message, "type": kind} | {k: v for k, v in more.items() if v}
        return self._reply(status, {"error": error}, headers)

    def _reply(self, status: int, body: object, headers: Headers = ()) -> Reply:
        usual = (
            JSON_TYPE,
            ("Request-Id", f"req_Sim{next(self._numbers):011d}"),
            ("Stripe-Version", API_VERSION),
        )
        return Reply(
            status=status, body=json.dumps(body, indent=2).encode(), headers=usual + headers
        )

    def _sessions(self) -> Sequence[StripeSession]:
        return all_sessions(self._now())


def signature_of(payload: bytes, secret: str, timestamp: int) -> str:
    """The `Stripe-Signature` of a message, with a signature of the old scheme next to it."""
    made = hmac_hex(secret, f"{timestamp}.".encode() + payload)
    return f"t={timestamp},v1={made},v0={sha256(payload).hexdigest()}"


def _is_visible(session: StripeSession, key: str) -> bool:
    """Whether it is in the mode of the key."""
    return session.live is (key != TEST_KEY)


def _is_recent(session: StripeSession, key: str) -> bool:
    """Whether the key may read sensitive results of this age."""
    return session.hours_ago < _RECENT_HOURS or key == ALLOW_LISTED_KEY


def _expand(query: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The paths to expand: `expand[]=…` as one writes it, `expand[0]=…` as the SDK does."""
    return tuple(
        value
        for name, value in query
        if name == "expand[]" or (name.startswith("expand[") and name[7:-1].isdigit())
    )


def _shown(body: Mapping[str, Any], expand: Collection[str], *, sensitive: bool) -> dict[str, Any]:
    """The session in the response to these expansions.

    `sensitive` false omits requested sensitive members, as for results that are too old for the
    key.
    """
    wanted = set(expand) if sensitive else set(expand) - _SENSITIVE
    seen = dict(body)
    outputs = seen.pop(OUTPUTS, None)
    if any(path.startswith(OUTPUTS) for path in expand):
        seen[OUTPUTS] = outputs and _without(outputs, _SENSITIVE_OUTPUTS, OUTPUTS, wanted)
    report = seen.get(REPORT)
    if isinstance(report, Mapping):
        seen[REPORT] = _shown_report(report, expand, wanted)
    return seen


def _shown_report(
    report: Mapping[str, Any], expand: Collection[str], wanted: Collection[str]
) -> object:
    if not any(path.startswith(REPORT) for path in expand):
        return report["id"]
    document = report.get("document")
    if document is None:
        return dict(report)
    path = f"{REPORT}.document"
    return dict(report) | {"document": _without(document, _SENSITIVE_DOCUMENT, path, wanted)}


def _without(
    members: Mapping[str, Any], names: Collection[str], path: str, wanted: Collection[str]
) -> dict[str, Any]:
    """Remove members with these names, unless requested by their path."""
    return {
        name: value
        for name, value in members.items()
        if name not in names or f"{path}.{name}" in wanted
    }
