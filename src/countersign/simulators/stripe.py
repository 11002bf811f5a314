"""A simulated Stripe Identity: VerificationSessions, reports and signed events.

Written from Stripe's API reference, version 2026-10-28.endive, and from "Access verification
results" for what each kind of key may read.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import count
from typing import Any, Final
from urllib.parse import unquote

from countersign.simulators.protocol import Reply, Request, Session, Simulator, Webhook
from countersign.simulators.stripe_parts import all_parts
from countersign.simulators.stripe_sketch import Part
from countersign.simulators.stripe_view import NotExpandable, asks_sensitive, shown

API_VERSION: Final = "2026-10-28.endive"

# A sensitive key, one whose address is on an allow-list, one without the permission, and others.
SENSITIVE_KEY: Final = "rk_live_simulated_sensitive"
ALLOW_LISTED_KEY: Final = "rk_live_simulated_allow_listed"
PLAIN_RESTRICTED_KEY: Final = "rk_live_simulated_plain"
SECRET_KEY: Final = "sk_live_simulated_secret"  # noqa: S105 - made up, opens nothing
TEST_KEY: Final = "rk_test_simulated_sensitive"
_KEYS: Final = frozenset(
    (SENSITIVE_KEY, ALLOW_LISTED_KEY, PLAIN_RESTRICTED_KEY, SECRET_KEY, TEST_KEY)
)
_SENSITIVE_KEYS: Final = frozenset((SENSITIVE_KEY, ALLOW_LISTED_KEY, TEST_KEY))
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
_HUGE_BYTES: Final = 50 * 1024 * 1024
_SLOW_SECONDS: Final = 30.0


class Stripe:
    """Stripe as it answers a restricted key, on its good days and on others."""

    name: Final = "stripe"

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._numbers = count(1)
        self._asked_before: set[str] = set()
        self._changed: dict[str, dict[str, Any]] = {}

    @property
    def sessions(self) -> Sequence[Session]:
        """Every session, with dates as of now."""
        return [part.listed for part in all_parts(self._now())]

    @property
    def credentials(self) -> Mapping[str, object]:
        """A restricted key that may read recent sensitive results."""
        return {"api_key": SENSITIVE_KEY, "webhook_secrets": [WEBHOOK_SECRET]}

    def answer(self, request: Request) -> Reply:
        """The answer to a request, as Stripe's API gives it."""
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not key:
            return self._error(401, "You did not provide an API key.")
        if key not in _KEYS:
            return self._error(401, f"Invalid API Key provided: {key[:7]}****")
        return self._routed(request, key) or self._error(
            404, f"Unrecognized request URL ({request.method}: {request.path})."
        )

    def _routed(self, request: Request, key: str) -> Reply | None:
        path, _, last = request.path.rpartition("/")
        if request.method == "POST" and last in {"cancel", "redact"}:
            return self._change(unquote(path.removeprefix(f"{_SESSIONS}/")), last, key)
        if request.method != "GET":
            return None
        if request.path == _SESSIONS:
            return self._list([self._body(part) for part in self._parts(key)], request.query)
        if path == _SESSIONS:
            return self._session(request, unquote(last), key)
        if path == _REPORTS:
            return self._report(request, unquote(last), key)
        return None

    def webhook(self, session_id: str) -> Webhook:
        """An event about the session's status, signed now; the session in it is not expanded."""
        now = self._now()
        part = next(part for part in all_parts(now) if part.listed.session_id == session_id)
        body = self._body(part)
        change = "redacted" if body["redaction"] else body["status"]
        event = {
            # The time too: another process may count from 1 for the same receiver.
            "id": f"evt_1Sim{int(now * 1000):014d}{next(self._numbers):06d}",
            "object": "event",
            "api_version": API_VERSION,
            "created": int(now),
            "data": {"object": shown(body, (), sensitive=False)},
            "livemode": body["livemode"],
            "pending_webhooks": 1,
            "request": {"id": None, "idempotency_key": None},
            "type": f"identity.verification_session.{change}",
        }
        payload = json.dumps(event, indent=2).encode()
        signature = signature_of(payload, WEBHOOK_SECRET, int(now))
        headers = (("Content-Type", "application/json; charset=utf-8"),)
        return Webhook(headers=(*headers, ("Stripe-Signature", signature)), body=payload)

    def _parts(self, key: str) -> list[Part]:
        """What there is in the key's mode."""
        live = key != TEST_KEY
        return [part for part in all_parts(self._now()) if (part.manner != "OtherMode") is live]

    def _find(self, session_id: str, key: str) -> Part | None:
        found = (part for part in self._parts(key) if part.listed.session_id == session_id)
        return next(found, None)

    def _body(self, part: Part) -> dict[str, Any]:
        return dict(part.body) | self._changed.get(part.listed.session_id, {})

    def _session(self, request: Request, session_id: str, key: str) -> Reply:
        part = self._find(session_id, key)
        if part is None:
            return self._missing("VerificationSession", session_id)
        expand = _expand(request.query)
        if asks_sensitive(expand) and key not in _SENSITIVE_KEYS:
            return self._error(403, _SENSITIVE_REFUSED)
        recent = part.hours_ago < _RECENT_HOURS or key == ALLOW_LISTED_KEY
        try:
            body = shown(self._body(part), expand, sensitive=recent)
        except NotExpandable as refused:
            return self._error(400, f"This property cannot be expanded ({refused}).")
        return self._with_manners(part, body)

    def _report(self, request: Request, report_id: str, key: str) -> Reply:
        part = self._find(f"vs_{report_id.removeprefix('vr_')}", key)
        if part is None or not part.body["last_verification_report"]:
            return self._missing("VerificationReport", report_id)
        expand = tuple(f"last_verification_report.{path}" for path in _expand(request.query))
        if asks_sensitive(expand) and key not in _SENSITIVE_KEYS:
            return self._error(403, _SENSITIVE_REFUSED)
        recent = part.hours_ago < _RECENT_HOURS or key == ALLOW_LISTED_KEY
        body = shown(self._body(part), ("last_verification_report", *expand), sensitive=recent)
        return self._reply(200, body["last_verification_report"])

    def _change(self, session_id: str, what: str, key: str) -> Reply:
        part = self._find(session_id, key)
        if part is None:
            return self._missing("VerificationSession", session_id)
        status = self._body(part)["status"]
        if status not in {"requires_input", "verified"} or (what, status) == ("cancel", "verified"):
            return self._error(400, f"A VerificationSession that is {status} cannot be {what}ed.")
        if status == "requires_input":
            self._changed.setdefault(session_id, {})["status"] = "canceled"
        if what == "redact":
            self._changed.setdefault(session_id, {})["redaction"] = {"status": "processing"}
        return self._reply(200, shown(self._body(part), (), sensitive=False))

    def _with_manners(self, part: Part, body: Mapping[str, Any]) -> Reply:
        manner = part.manner
        first = part.listed.session_id not in self._asked_before
        self._asked_before.add(part.listed.session_id)
        reply = self._reply(200, body)
        if manner.startswith("Limited") and (first or manner == "LimitedForGood"):
            return self._limited(manner)
        if manner == "LockedOnce" and first:
            message = "This object cannot be accessed right now because another API request..."
            again = (("Stripe-Should-Retry", "true"),)
            return self._error(409, message, code="lock_timeout", headers=again)
        if manner == "BadGateway":
            html = b"<html><head><title>502 Bad Gateway</title></head></html>"
            return Reply(status=502, body=html, headers=(("Content-Type", "text/html"),))
        if manner == "ServerError":
            return self._error(500, "An unknown error occurred.", kind="api_error")
        changed: dict[str, Reply] = {
            "Truncated": replace(reply, body=reply.body[: len(reply.body) // 2]),
            "Slow": replace(reply, delay=_SLOW_SECONDS),
            "Cut": replace(reply, cut_after=len(reply.body) // 2),
        }
        if manner == "Huge":
            return replace(reply, body=reply.body + b" " * _HUGE_BYTES)
        return changed.get(manner, reply)

    def _limited(self, manner: str) -> Reply:
        """Stripe itself sends no Retry-After; what stands before it may."""
        headers = {
            "LimitedBriefly": (("Retry-After", "1"),),
            "LimitedLong": (("Retry-After", "30"),),
            "LimitedForGood": (("Stripe-Should-Retry", "false"),),
        }.get(manner, ())
        limited = (("Stripe-Rate-Limited-Reason", "endpoint-rate"), *headers)
        return self._error(429, "Too many requests.", code="rate_limit", headers=limited)

    def _missing(self, kind: str, object_id: str) -> Reply:
        message = f"No such {kind}: '{object_id}'"
        if any(part.listed.session_id == object_id for part in all_parts(self._now())):
            message += (
                "; a similar object exists in test mode, but a live mode key was used to make "
                "this request."
            )
        return self._error(404, message, code="resource_missing")

    def _list(self, bodies: Sequence[Mapping[str, Any]], query: Sequence[tuple[str, str]]) -> Reply:
        """A page: a filter that is not played is refused rather than passed over."""
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
            return self._missing("VerificationSession", asked["starting_after"])
        if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:4]) <= 100):
            return self._error(400, "Invalid limit", code="parameter_invalid_integer")
        end = start + int(limit)
        data = [shown(body, (), sensitive=False) for body in found[start:end]]
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
        headers: tuple[tuple[str, str], ...] = (),
    ) -> Reply:
        error = {"message": message, "type": kind} | ({} if code is None else {"code": code})
        return self._reply(status, {"error": error}, headers)

    def _reply(self, status: int, body: object, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
        usual = (
            ("Content-Type", "application/json"),
            ("Request-Id", f"req_Sim{next(self._numbers):011d}"),
            ("Stripe-Version", API_VERSION),
        )
        return Reply(
            status=status, body=json.dumps(body, indent=2).encode(), headers=usual + headers
        )


def signature_of(payload: bytes, secret: str, timestamp: int) -> str:
    """The `Stripe-Signature` of a message, with a signature of the old scheme beside it."""
    signed = f"{timestamp}.".encode() + payload
    made = hmac.new(secret.encode(), signed, sha256).hexdigest()
    return f"t={timestamp},v1={made},v0={sha256(payload).hexdigest()}"


def make(now: Callable[[], float]) -> Simulator:
    """A simulated Stripe with a clock that gives Unix seconds."""
    return Stripe(now)


def _expand(query: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The paths to expand: `expand[]=…` as one writes it, `expand[0]=…` as the SDK does."""
    return tuple(
        value
        for name, value in query
        if name == "expand[]" or (name.startswith("expand[") and name[7:-1].isdigit())
    )
