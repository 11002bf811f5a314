"""A simulated Persona: inquiries with their verifications, and signed events.

Written from Persona's OpenAPI description, version 2025-12-08, and its documentation.
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

from countersign.simulators.persona_objects import time
from countersign.simulators.persona_parts import DECIDED_AFTER_SECONDS, all_parts
from countersign.simulators.persona_sketch import Part, session_id
from countersign.simulators.persona_view import INFLECTIONS, shown
from countersign.simulators.protocol import Reply, Request, Session, Simulator, Webhook

API_KEY: Final = "persona_production_simulated_key"
# Made-up values that open nothing.
WEBHOOK_SECRET: Final = "wbhsec_simulated_signing_secret"  # noqa: S105 - see above
OLD_WEBHOOK_SECRET: Final = "wbhsec_simulated_secret_of_before"  # noqa: S105 - see above
ENVIRONMENT_ID: Final = "env_SimProduction00000000000000"
SANDBOX_ID: Final = "env_SimSandbox0000000000000000"
ORGANIZATION_ID: Final = "org_SimOrganization000000000000"
_VERSIONS: Final = ("2025-10-27", "2025-12-08", "2026-09-29")
_INQUIRIES: Final = "/api/v1/inquiries"
_CHANGES: Final = {"approve": "approved", "decline": "declined"}
_HUGE_BYTES: Final = 50 * 1024 * 1024
_SLOW_SECONDS: Final = 30.0
_LIMIT: Final = 300


class Persona:
    """Persona as it answers a key of its Production environment, on its good days and others."""

    name: Final = "persona"

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._numbers = count(1)
        self._first_asked: dict[str, float] = {}
        self._changed: dict[str, dict[str, Any]] = {}

    @property
    def sessions(self) -> Sequence[Session]:
        """Every inquiry, with dates as of now."""
        return [part.listed for part in all_parts(self._now())]

    @property
    def credentials(self) -> Mapping[str, object]:
        """A production key, and both secrets of a rotation."""
        return {
            "api_key": API_KEY,
            "environment": "live",
            "environment_id": ENVIRONMENT_ID,
            "webhook_secrets": [WEBHOOK_SECRET, OLD_WEBHOOK_SECRET],
        }

    def answer(self, request: Request) -> Reply:
        """The answer to a request, as Persona's API gives it."""
        sent = request.headers.get("authorization", "")
        if not sent.startswith("Bearer "):
            # Without a key there is no environment, no limit and no log entry to name.
            return _unauthenticated("Must be authenticated to access this endpoint")
        if sent.removeprefix("Bearer ") != API_KEY:
            return _unauthenticated("Token is invalid")
        if request.headers.get("persona-version", _VERSIONS[-1]) not in _VERSIONS:
            return self._error(400, "Bad Request", "Persona-Version is not a known version")
        if request.headers.get("key-inflection", "kebab") not in INFLECTIONS:
            return self._error(400, "Bad Request", "Key-Inflection must be camel, kebab or snake")
        return self._routed(request) or self._error(404, "Record not found")

    def webhook(self, session_id: str) -> Webhook:
        """An event about the inquiry's status, signed with both secrets of a rotation."""
        now = self._now()
        part = next(part for part in all_parts(now) if part.listed.session_id == session_id)
        data = self._body(part)["data"]
        attributes = data["attributes"]
        change = "redacted" if attributes["redacted-at"] else attributes["status"]
        event = {
            "data": {
                "type": "event",
                # The time too: another process may count from 1 for the same receiver.
                "id": f"evt_Sim{int(now * 1000):014d}{next(self._numbers):06d}",
                "attributes": {
                    "name": f"inquiry.{_EVENT_WORDS.get(change, change)}",
                    "payload": {"data": data, "included": []},
                    "created-at": time(now),
                },
            }
        }
        payload = json.dumps(event).encode()
        secrets = (WEBHOOK_SECRET, OLD_WEBHOOK_SECRET)
        signed = " ".join(signature_of(payload, secret, int(now)) for secret in secrets)
        headers = (
            ("Content-Type", "application/json"),
            ("Persona-Signature", signed),
            ("Persona-Webhook-Attempts-Made", "0"),
            ("Persona-Webhook-Attempts-Left", "7"),
            ("Persona-Webhook-First-Attempted-At", str(int(now))),
        )
        return Webhook(headers=headers, body=payload)

    def _routed(self, request: Request) -> Reply | None:
        path, _, last = request.path.rpartition("/")
        if path == _INQUIRIES:
            part = self._find(unquote(last))
            if part and request.method == "GET":
                return self._inquiry(part, request)
            if part and request.method == "DELETE":
                return self._change(part, request, {"redacted-at": time(self._now())})
        inquiries, _, inquiry = path.rpartition("/")
        if inquiries == _INQUIRIES and request.method == "POST" and last in _CHANGES:
            part = self._find(unquote(inquiry))
            decided = {"status": _CHANGES[last], "decisioned-at": time(self._now())}
            return self._change(part, request, decided) if part else None
        return None

    def _find(self, session_id: str) -> Part | None:
        parts = all_parts(self._now())
        return next((part for part in parts if part.listed.session_id == session_id), None)

    def _change(self, part: Part, request: Request, attributes: dict[str, Any]) -> Reply:
        own_id = part.listed.session_id
        if self._body(part)["data"]["attributes"]["redacted-at"]:
            return self._error(409, "Conflict", "Inquiry already redacted")
        self._changed.setdefault(own_id, {}).update(attributes)
        return self._reply(200, shown(self._body(part), request.query, "kebab"))

    def _body(self, part: Part) -> dict[str, Any]:
        """The inquiry as it is by now."""
        data, included = dict(part.body["data"]), part.body["included"]
        own_id = part.listed.session_id
        attributes = dict(data["attributes"])
        if part.manner == "DecidedLater":
            waited = self._now() - self._first_asked.get(own_id, self._now())
            if waited < DECIDED_AFTER_SECONDS:
                attributes |= {"status": "completed", "decisioned-at": None}
        attributes |= self._changed.get(own_id, {})
        if attributes["redacted-at"]:
            attributes["fields"] = {
                name: one | {"value": None} for name, one in attributes["fields"].items()
            }
            included = []
        data["attributes"] = attributes
        if part.manner == "WrongId":
            data["id"] = session_id("Verified")
        if part.manner == "ExtraFields":
            data["vibes"] = {"aura": ["teal"]}
        return {"data": data, "included": [] if part.manner == "Withheld" else included}

    def _inquiry(self, part: Part, request: Request) -> Reply:
        """With `Withheld`, the relationships name verifications that the key may not read."""
        own_id = part.listed.session_id
        first = own_id not in self._first_asked
        self._first_asked.setdefault(own_id, self._now())
        inflection = request.headers.get("key-inflection", "kebab")
        reply = self._reply(200, shown(self._body(part), request.query, inflection))
        if part.manner.startswith("Limited") and first:
            return self._limited(part.manner)
        if part.manner == "BadGateway":
            html = b"<html><head><title>502 Bad Gateway</title></head></html>"
            return Reply(status=502, body=html, headers=(("Content-Type", "text/html"),))
        if part.manner == "ServerError":
            return self._error(500, "Internal server error")
        if part.manner == "Huge":
            return replace(reply, body=reply.body + b" " * _HUGE_BYTES)
        others: dict[str, Reply] = {
            "Truncated": replace(reply, body=reply.body[: len(reply.body) // 2]),
            "Slow": replace(reply, delay=_SLOW_SECONDS),
            "Cut": replace(reply, cut_after=len(reply.body) // 2),
            "TestMode": replace(reply, headers=self._headers(environment_id=SANDBOX_ID)),
            "NoEnvironment": replace(reply, headers=self._headers(environment_id=None)),
        }
        return others.get(part.manner, reply)

    def _limited(self, manner: str) -> Reply:
        """RateLimit-Reset tells when it ends; what stands before Persona may not know that."""
        reset = {"LimitedBriefly": 1, "LimitedLong": 42}.get(manner)
        details = f"You have hit your rate limit of {_LIMIT} requests / min."
        errors = {"errors": [{"title": "Rate limit exceeded", "details": details}]}
        return self._reply(429, errors, self._headers(remaining=0, reset=reset))

    def _error(self, status: int, title: str, details: str | None = None) -> Reply:
        error = {"title": title} | ({} if details is None else {"details": details})
        return self._reply(status, {"errors": [error]})

    def _reply(
        self, status: int, body: object, headers: tuple[tuple[str, str], ...] | None = None
    ) -> Reply:
        content = json.dumps(body).encode()
        return Reply(status=status, body=content, headers=headers or self._headers())

    def _headers(
        self,
        *,
        environment_id: str | None = ENVIRONMENT_ID,
        remaining: int = _LIMIT - 1,
        reset: int | None = 42,
    ) -> tuple[tuple[str, str], ...]:
        """Those of every authenticated answer, but for what is None."""
        found = (
            ("Content-Type", "application/json"),
            ("Request-Id", f"req_Sim{next(self._numbers):024d}"),
            ("Persona-Organization-Id", ORGANIZATION_ID),
            ("Persona-Environment-Id", environment_id),
            ("RateLimit-Limit", str(_LIMIT)),
            ("RateLimit-Remaining", str(remaining)),
            ("RateLimit-Reset", None if reset is None else str(reset)),
        )
        return tuple((name, value) for name, value in found if value is not None)


_EVENT_WORDS: Final = {"pending": "started", "needs_review": "marked-for-review"}
"""The events whose names are not the inquiry's status."""


def signature_of(payload: bytes, secret: str, timestamp: int) -> str:
    """One set of the `Persona-Signature` of a message."""
    signed = f"{timestamp}.".encode() + payload
    return f"t={timestamp},v1={hmac.new(secret.encode(), signed, sha256).hexdigest()}"


def make(now: Callable[[], float]) -> Simulator:
    """A simulated Persona with a clock that gives Unix seconds."""
    return Persona(now)


def _unauthenticated(title: str) -> Reply:
    return Reply(status=401, body=json.dumps({"errors": [{"title": title}]}).encode())
