"""A simulated Persona: inquiries with their verifications, and signed events.

Written from Persona's OpenAPI description, version 2025-12-08, and its documentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
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
    json_reply,
)
from countersign_simulators.hosted import Created, Outcome, unguessable, with_query
from countersign_simulators.persona_created import TEMPLATE_ID, Invalid, check_link, create
from countersign_simulators.persona_sessions import (
    PersonaSession,
    all_sessions,
    session_id,
    session_of,
    time,
)
from countersign_simulators.provider import SimulatedProvider

API_KEY: Final = "persona_production_simulated_key"
SANDBOX_KEY: Final = "persona_sandbox_simulated_key"
# Made-up values that open nothing.
WEBHOOK_SECRET: Final = "wbhsec_simulated_signing_secret"  # noqa: S105 - see above
OLD_WEBHOOK_SECRET: Final = "wbhsec_simulated_secret_of_before"  # noqa: S105 - see above
ENVIRONMENT_ID: Final = "env_SimProduction00000000000000"
SANDBOX_ID: Final = "env_SimSandbox0000000000000000"
ORGANIZATION_ID: Final = "org_SimOrganization000000000000"
_KEYS: Final[Mapping[str, str]] = {API_KEY: ENVIRONMENT_ID, SANDBOX_KEY: SANDBOX_ID}
"""The environment of each key."""
DECIDED_AFTER_SECONDS: Final = 10.0
"""How long the scenario `decided_later` stays `completed` after it was first requested."""
_VERSIONS: Final = ("2025-10-27", "2025-12-08", "2026-09-29")
_INQUIRIES: Final = "/api/v1/inquiries"
_DECISIONS: Final = {"approve": "approved", "decline": "declined"}
_EVENT_NAMES: Final = {"pending": "started", "needs_review": "marked-for-review"}
"""The events whose names are not the inquiry's status."""
_INFLECTIONS: Final = ("camel", "kebab", "snake")
_FIELDS: Final = re.compile(r"fields\[([a-z0-9/-]+)\]")
_LIMIT: Final = 300
_ENVIRONMENTS: Final[Mapping[str | None, str | None]] = {
    "test_mode": SANDBOX_ID,
    "no_environment": None,
}
"""Of responses from another environment than that of the key."""


class Persona(SimulatedProvider[PersonaSession]):
    """Persona's responses to a key of its Production environment, on good days and on others.

    A key of the Sandbox sees only the inquiries that it has created.
    """

    name: Final = "persona"
    credentials: Final[Mapping[str, object]] = {
        "api_key": API_KEY,
        "environment": "live",
        "environment_id": ENVIRONMENT_ID,
        "inquiry_template_id": TEMPLATE_ID,
        "webhook_secrets": [WEBHOOK_SECRET, OLD_WEBHOOK_SECRET],
    }
    test_credentials: Final[Mapping[str, object]] = {
        **credentials,
        "api_key": SANDBOX_KEY,
        "environment": "sandbox",
        "environment_id": SANDBOX_ID,
    }

    title = "Persona"
    # A buyer who only leaves may come back: for Persona the inquiry is pending.
    again = frozenset({Outcome.CANCELLED})
    limits: ClassVar[Mapping[str, Headers]] = {
        "limited_once": (),
        "limited_briefly": (("RateLimit-Reset", "1"),),
        "limited_long": (("RateLimit-Reset", "42"),),
    }

    def __init__(self, now: Clock) -> None:
        super().__init__(now)
        self._first_requested: dict[str, float] = {}
        self._changed: dict[str, dict[str, Any]] = {}
        self._environment = ENVIRONMENT_ID
        self._kept: dict[str, tuple[tuple[str, bytes], Reply]] = {}

    def _answer(self, request: Request) -> Reply:
        refused = self._refused(request)
        if refused is not None:
            return refused
        try:
            found = self._once(request) if request.method == "POST" else self._routed(request)
        except Invalid as invalid:
            return self._error(400, "Bad Request", str(invalid))
        return found or self._error(404, "Record not found")

    def _refused(self, request: Request) -> Reply | None:
        """The error in the headers; None: the environment of the key is used."""
        sent = request.headers.get("authorization", "")
        if not sent.startswith("Bearer "):
            # Without a key there is no environment, no limit and no log entry to name.
            return _unauthenticated("Must be authenticated to access this endpoint")
        environment = _KEYS.get(sent.removeprefix("Bearer "))
        if environment is None:
            return _unauthenticated("Token is invalid")
        self._environment = environment
        if request.headers.get("persona-version", _VERSIONS[-1]) not in _VERSIONS:
            return self._error(400, "Bad Request", "Persona-Version is not a known version")
        if request.headers.get("key-inflection", "kebab") not in _INFLECTIONS:
            return self._error(400, "Bad Request", "Key-Inflection must be camel, kebab or snake")
        return None

    def webhook(self, session_id: str) -> Webhook:
        """An event about the inquiry's status, signed with both secrets of a rotation."""
        now = self._now()
        data = self._body(self._known(session_id))["data"]
        attributes = data["attributes"]
        change = "redacted" if attributes["redacted-at"] else attributes["status"]
        event = {
            "data": {
                "type": "event",
                # The time too: another process may count from 1 for the same receiver.
                "id": f"evt_Sim{int(now * 1000):014d}{next(self._numbers):06d}",
                "attributes": {
                    "name": f"inquiry.{_EVENT_NAMES.get(change, change)}",
                    "payload": {"data": data, "included": []},
                    "created-at": time(now),
                },
            }
        }
        payload = json.dumps(event).encode()
        secrets = (WEBHOOK_SECRET, OLD_WEBHOOK_SECRET)
        signed = " ".join(signature_of(payload, secret, int(now)) for secret in secrets)
        headers = (
            JSON_TYPE,
            ("Persona-Signature", signed),
            ("Persona-Webhook-Attempts-Made", "0"),
            ("Persona-Webhook-Attempts-Left", "7"),
            ("Persona-Webhook-First-Attempted-At", str(int(now))),
        )
        return Webhook(headers=headers, body=payload)

    def _routed(self, request: Request) -> Reply | None:
        path, _, last = request.path.rpartition("/")
        if path == _INQUIRIES:
            session = self._seen(unquote(last))
            if session and request.method == "GET":
                return self._inquiry(session, request)
            if session and request.method == "DELETE":
                return self._change(session, request, {"redacted-at": time(self._now())})
        return None

    def _once(self, request: Request) -> Reply | None:
        """The response to a POST: with an `Idempotency-Key`, the same for equal requests."""
        key, asked = request.headers.get("idempotency-key"), (request.path, request.body)
        known = None if key is None else self._kept.get(f"{self._environment} {key}")
        if known is not None and known[0] != asked:
            return self._error(409, "Conflict", "Idempotency-Key was used for another request")
        reply = self._posted(request) if known is None else known[1]
        if key is not None and reply is not None:
            self._kept[f"{self._environment} {key}"] = asked, reply
        return reply

    def _posted(self, request: Request) -> Reply | None:
        if request.path == _INQUIRIES:
            made = create(self._hosted, request, self._environment)
            meta: dict[str, str | None] = dict.fromkeys(
                ("session-token", "one-time-link", "one-time-link-short")
            )
            if made.made["session"]:
                meta["session-token"] = unguessable(40)
            if made.made["link"]:
                made, meta = self._linked(made, request, meta)
            return self._with_meta(201, made, meta, request)
        path, _, last = request.path.rpartition("/")
        inquiries, _, inquiry = path.rpartition("/")
        session = self._seen(unquote(inquiry)) if inquiries == _INQUIRIES else None
        if session is not None and last in _DECISIONS:
            decided = {"status": _DECISIONS[last], "decisioned-at": time(self._now())}
            return self._change(session, request, decided)
        created = None if session is None else self._hosted.find(session.session_id)
        if session is None or created is None:
            return None
        if last == "expire":
            expired = self._session_of(self._hosted.end(created, Outcome.EXPIRED))
            return self._reply(200, self._inflected(expired, request))
        if last == "generate-one-time-link":
            check_link(request)
            return self._with_meta(200, *self._linked(created, request, {}), request)
        return None

    def _linked(
        self, created: Created, request: Request, meta: Mapping[str, str | None]
    ) -> tuple[Created, dict[str, str | None]]:
        """Another address of the page; the short one is the same, as it needs another host."""
        changed = self._hosted.change(created, page=f"/verify?code=us1-{unguessable(32)}")
        link = request.origin + changed.page
        return changed, {**meta, "one-time-link": link, "one-time-link-short": link}

    def _with_meta(
        self, status: int, created: Created, meta: Mapping[str, str | None], request: Request
    ) -> Reply:
        shown = self._inflected(self._session_of(created), request)
        inflection = request.headers.get("key-inflection", "kebab")
        return self._reply(status, shown | {"meta": _inflected(dict(meta), inflection)})

    def _session_of(self, created: Created) -> PersonaSession:
        return session_of(created, self._now())

    def _back(self, created: Created) -> str | None:
        """The redirect URI with what became of the inquiry, once it is completed or failed.

        From "Redirecting After Inquiry" in Persona's documentation.
        """
        session = session_of(created, created.changed_at)
        attributes = session.data["attributes"]
        if created.return_url is None or not (
            attributes["completed-at"] or attributes["failed-at"]
        ):
            return None
        reference = attributes["reference-id"]
        return with_query(
            created.return_url,
            ("inquiry-id", created.session_id),
            *(() if reference is None else (("reference-id", reference),)),
            ("status", "failed" if attributes["failed-at"] else "completed"),
            ("fields", json.dumps(attributes["fields"])),
        )

    def _seen(self, session_id: str) -> PersonaSession | None:
        """The inquiry, if it is in the environment of the key."""
        created = self._hosted.find(session_id)
        environment = ENVIRONMENT_ID if created is None else created.made["environment"]
        return self._find(session_id) if environment == self._environment else None

    def _inflected(self, session: PersonaSession, request: Request) -> dict[str, Any]:
        inflection = request.headers.get("key-inflection", "kebab")
        return _shown(self._body(session), request.query, inflection)

    def _change(
        self, session: PersonaSession, request: Request, attributes: dict[str, Any]
    ) -> Reply:
        if self._body(session)["data"]["attributes"]["redacted-at"]:
            return self._error(409, "Conflict", "Inquiry already redacted")
        self._changed.setdefault(session.session_id, {}).update(attributes)
        if self._hosted.find(session.session_id) is not None:
            self._announce(session.session_id)
        return self._reply(200, _shown(self._body(session), request.query, "kebab"))

    def _body(self, session: PersonaSession) -> dict[str, Any]:
        """The inquiry as it is by now."""
        data, included = dict(session.data), session.included
        attributes = dict(data["attributes"])
        if session.failure == "decided_later":
            first = self._first_requested.get(session.session_id, self._now())
            if self._now() - first < DECIDED_AFTER_SECONDS:
                attributes |= {"status": "completed", "decisioned-at": None}
        attributes |= self._changed.get(session.session_id, {})
        if attributes["redacted-at"]:
            attributes["fields"] = {
                name: one | {"value": None} for name, one in attributes["fields"].items()
            }
            included = []
        data["attributes"] = attributes
        if session.failure == "wrong_id":
            data["id"] = session_id("Verified")
        if session.failure == "extra_fields":
            data["vibes"] = {"aura": ["teal"]}
        return {"data": data, "included": [] if session.failure == "withheld" else included}

    def _inquiry(self, session: PersonaSession, request: Request) -> Reply:
        self._first_requested.setdefault(session.session_id, self._now())
        first = self._is_first_request(session.session_id)
        limited = self._limit(session, first=first)
        if limited is not None:
            return self._limited(limited)
        if session.failure == "server_error":
            return self._error(500, "Internal server error")
        environment = _ENVIRONMENTS.get(session.failure, self._environment)
        headers = self._headers(environment_id=environment)
        body = self._inflected(session, request)
        self._hosted.retrieved(session.session_id)
        return failing(self._reply(200, body, headers), session.failure)

    def _limited(self, reset: Headers) -> Reply:
        """One request too many; a server in front may not know when the limit is reset."""
        details = f"You have hit your rate limit of {_LIMIT} requests / min."
        errors = {"errors": [{"title": "Rate limit exceeded", "details": details}]}
        headers = self._headers(environment_id=self._environment, remaining=0, reset=reset)
        return self._reply(429, errors, headers)

    def _error(self, status: int, title: str, details: str | None = None) -> Reply:
        error = {"title": title} | ({} if details is None else {"details": details})
        return self._reply(status, {"errors": [error]})

    def _reply(self, status: int, body: object, headers: Headers | None = None) -> Reply:
        return json_reply(status, body, headers or self._headers(environment_id=self._environment))

    def _headers(
        self,
        *,
        environment_id: str | None,
        remaining: int = _LIMIT - 1,
        reset: Headers = (("RateLimit-Reset", "42"),),
    ) -> Headers:
        """Those of every authenticated response, without None values."""
        found = (
            JSON_TYPE,
            ("Request-Id", f"req_Sim{next(self._numbers):024d}"),
            ("Persona-Organization-Id", ORGANIZATION_ID),
            ("Persona-Environment-Id", environment_id),
            ("RateLimit-Limit", str(_LIMIT)),
            ("RateLimit-Remaining", str(remaining)),
            *reset,
        )
        return tuple((name, value) for name, value in found if value is not None)

    def _sessions(self) -> Sequence[PersonaSession]:
        return all_sessions(self._now())


def signature_of(payload: bytes, secret: str, timestamp: int) -> str:
    """One set of the `Persona-Signature` of a message."""
    return f"t={timestamp},v1={hmac_hex(secret, f'{timestamp}.'.encode() + payload)}"


def _unauthenticated(title: str) -> Reply:
    return json_reply(401, {"errors": [{"title": title}]})


def _shown(
    body: Mapping[str, Any], query: Sequence[tuple[str, str]], inflection: str
) -> dict[str, Any]:
    """The inquiry by the rules of "Response Body" and "Key inflection" in Persona's documentation.

    Nothing is included unless requested (since version 2025-10-27).
    """
    include = next((value.split(",") for name, value in query if name == "include"), [])
    sparse = {
        found[1]: value.split(",") for name, value in query if (found := _FIELDS.fullmatch(name))
    }
    shown: dict[str, Any] = {"data": _sparse(body["data"], sparse)}
    if "verifications" in include:
        shown["included"] = [_sparse(one, sparse) for one in body["included"]]
    return dict(_inflected(shown, inflection))


def _sparse(resource: Mapping[str, Any], sparse: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The resource with only the requested attributes, if any were named."""
    kind = str(resource["type"])
    wanted = sparse.get(kind, sparse.get(kind.partition("/")[0]))
    if wanted is None:
        return dict(resource)
    attributes = {name: value for name, value in resource["attributes"].items() if name in wanted}
    fields = resource["attributes"].get("fields", {})
    names = [path.removeprefix("fields.") for path in wanted if path.startswith("fields.")]
    chosen = {name: fields[name] for name in names if name in fields}
    if chosen:
        attributes["fields"] = chosen
    return dict(resource) | {"attributes": attributes}


def _inflected(value: Any, inflection: str) -> Any:  # noqa: ANN401 - any JSON
    """The value with its keys in another style; those inside `fields` stay as they are."""
    if isinstance(value, dict):
        return {
            _key(name, inflection): member if name == "fields" else _inflected(member, inflection)
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [_inflected(member, inflection) for member in value]
    return value


def _key(name: str, inflection: str) -> str:
    if inflection == "snake":
        return name.replace("-", "_")
    if inflection == "camel":
        first, *others = name.split("-")
        return first + "".join(word.capitalize() for word in others)
    return name
