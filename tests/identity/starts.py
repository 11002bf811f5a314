"""Starting a session at each provider: requests, and responses as documented by the provider.

The bodies are written from the providers' published descriptions, not from the simulators.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qsl

from countersign.base.errors import Refusal
from countersign.identity.model import StartedSession, StartRequest
from countersign.identity.registry import IdentityProviders
from countersign_simulators.base import Reply, Request
from countersign_simulators.server import serve
from countersign_simulators.stripe import Stripe
from tests.identity.asking import FixedClock, keyed

REFERENCE: Final = "chk_1y4m4zewk7q8akv27gt3z8xc5k"
RETURN: Final = f"https://pay.example.com/c/{REFERENCE}/return"
WANTED: Final = StartRequest(
    reference=REFERENCE, return_url=RETURN, locale="es", key=f"{REFERENCE}.1"
)
UUID: Final = "7f1c2a34-0b5d-4e6f-8a90-1234567890ab"
WORKFLOW: Final = "0a9b8c7d-1234-4321-8765-0123456789ab"
INQUIRY: Final = "inq_Example1234567890AbCdEfGhIjK"
APPLICANT: Final = "11111111-2222-4333-8444-555555555555"
HIDDEN: Final = "S1mulated"
"""A part of every secret, and of every page's address."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One provider: credentials, requests, responses."""

    name: str
    credentials: Mapping[str, Any]
    replies: tuple[tuple[int, dict[str, Any]], ...]
    """Status and body, one for each request of a start."""
    headers: tuple[tuple[str, str], ...] = ()
    """Of every response."""
    asked: tuple[tuple[str, Any], ...]
    """Path and body of each request; a form as pairs."""
    sent: Mapping[str, str] = field(default_factory=dict)
    """Headers of the first request."""
    session_id: str
    url: str
    template: str | None = None
    """The member of the credentials that starts require."""
    own: str
    """A member of the last response that has our reference in it, as a path with dots."""


CASES: Final = {
    case.name: case
    for case in (
        Case(
            name="stripe",
            credentials={"api_key": f"rk_live_{HIDDEN}_key"},
            replies=(
                (
                    200,
                    {
                        "id": "vs_1ExampleAbCdEfGhIjKlMnOp",
                        "object": "identity.verification_session",
                        "client_reference_id": REFERENCE,
                        "client_secret": f"vs_1ExampleAbCdEfGhIjKlMnOp_secret_{HIDDEN}",
                        "created": 1794873600,
                        "last_error": None,
                        "last_verification_report": None,
                        "livemode": True,
                        "metadata": {},
                        "options": {"document": {"require_matching_selfie": True}},
                        "redaction": None,
                        "status": "requires_input",
                        "type": "document",
                        "url": f"https://verify.stripe.com/start/live_{HIDDEN}#fid",
                    },
                ),
            ),
            asked=(
                (
                    "POST /v1/identity/verification_sessions",
                    [
                        ("type", "document"),
                        ("options[document][allowed_types][0]", "driving_license"),
                        ("options[document][allowed_types][1]", "id_card"),
                        ("options[document][require_matching_selfie]", "true"),
                        ("client_reference_id", REFERENCE),
                        ("return_url", RETURN),
                    ],
                ),
            ),
            sent={
                "authorization": f"Bearer rk_live_{HIDDEN}_key",
                "content-type": "application/x-www-form-urlencoded",
                "idempotency-key": WANTED.key,
                "stripe-version": "2026-10-28.endive",
            },
            session_id="vs_1ExampleAbCdEfGhIjKlMnOp",
            url=f"https://verify.stripe.com/start/live_{HIDDEN}#fid",
            own="client_reference_id",
        ),
        Case(
            name="persona",
            credentials={
                "api_key": f"persona_production_{HIDDEN}",
                "environment": "live",
                "environment_id": "env_Example1234",
                "inquiry_template_id": "itmpl_Example1234",
            },
            replies=(
                (
                    201,
                    {
                        "data": {
                            "type": "inquiry",
                            "id": INQUIRY,
                            "attributes": {
                                "status": "created",
                                "reference-id": REFERENCE,
                                "expires-at": "2026-11-18T17:00:00.000Z",
                            },
                        }
                    },
                ),
                (
                    200,
                    {
                        "data": {
                            "type": "inquiry",
                            "id": INQUIRY,
                            "attributes": {"status": "created", "reference-id": REFERENCE},
                        },
                        "meta": {
                            "one-time-link": f"https://withpersona.com/verify?code={HIDDEN}",
                            "one-time-link-short": f"https://perso.na/verify?code={HIDDEN}",
                        },
                    },
                ),
            ),
            headers=(("Persona-Environment-Id", "env_Example1234"),),
            asked=(
                (
                    "POST /api/v1/inquiries",
                    {
                        "data": {
                            "attributes": {
                                "inquiry-template-id": "itmpl_Example1234",
                                "reference-id": REFERENCE,
                                "redirect-uri": RETURN,
                            }
                        },
                        "meta": {"auto-create-account": False},
                    },
                ),
                (
                    f"POST /api/v1/inquiries/{INQUIRY}/generate-one-time-link",
                    {},
                ),
            ),
            sent={
                "authorization": f"Bearer persona_production_{HIDDEN}",
                "content-type": "application/json",
                "idempotency-key": WANTED.key,
                "key-inflection": "kebab",
                "persona-version": "2025-12-08",
            },
            session_id=INQUIRY,
            url=f"https://withpersona.com/verify?code={HIDDEN}&language=es-MX",
            template="inquiry_template_id",
            own="data.attributes.reference-id",
        ),
        Case(
            name="veriff",
            credentials={
                "api_key": "8e4d7ad8-1234-4321-8765-0123456789ab",
                "shared_secrets": [f"{HIDDEN}-shared-secret"],
                "environment": "live",
            },
            replies=(
                (
                    201,
                    {
                        "status": "success",
                        "verification": {
                            "id": UUID,
                            "url": f"https://magic.veriff.me/v/{HIDDEN}",
                            "vendorData": REFERENCE,
                            "host": "https://magic.veriff.me",
                            "status": "created",
                            "sessionToken": HIDDEN,
                        },
                    },
                ),
            ),
            asked=(
                (
                    "POST /v1/sessions",
                    {
                        "verification": {
                            "callback": RETURN,
                            "vendorData": REFERENCE,
                            "lang": "es",
                        }
                    },
                ),
            ),
            sent={
                "x-auth-client": "8e4d7ad8-1234-4321-8765-0123456789ab",
                "content-type": "application/json",
            },
            session_id=UUID,
            url=f"https://magic.veriff.me/v/{HIDDEN}",
            own="verification.vendorData",
        ),
        Case(
            name="plaid",
            credentials={
                "client_id": "client-id-1234",
                "secret": f"{HIDDEN}-secret",
                "environment": "live",
                "template_id": "idvtmp_Example12",
            },
            replies=(
                (
                    200,
                    {
                        "id": "idv_ExampleAbC123",
                        "client_user_id": REFERENCE,
                        "created_at": "2026-11-17T17:00:00Z",
                        "completed_at": None,
                        "previous_attempt_id": None,
                        "shareable_url": f"https://flow.plaid.com/verify/idv_1?key={HIDDEN}",
                        "template": {"id": "idvtmp_Example12", "version": 2},
                        "status": "active",
                        "request_id": "r1",
                    },
                ),
            ),
            asked=(
                (
                    "POST /identity_verification/create",
                    {
                        "template_id": "idvtmp_Example12",
                        "client_user_id": REFERENCE,
                        "is_shareable": True,
                        "gave_consent": False,
                        "is_idempotent": True,
                        "language": "es-US",
                    },
                ),
            ),
            sent={
                "plaid-client-id": "client-id-1234",
                "plaid-secret": f"{HIDDEN}-secret",
                "plaid-version": "2020-09-14",
                "content-type": "application/json",
            },
            session_id="idv_ExampleAbC123",
            url=f"https://flow.plaid.com/verify/idv_1?key={HIDDEN}",
            template="template_id",
            own="client_user_id",
        ),
        Case(
            name="didit",
            credentials={"api_key": f"{HIDDEN}-api-key", "workflow_id": WORKFLOW},
            replies=(
                (
                    201,
                    {
                        "session_id": UUID,
                        "session_number": 43762,
                        "session_token": HIDDEN,
                        "url": f"https://verify.didit.me/session/{HIDDEN}",
                        "vendor_data": REFERENCE,
                        "metadata": None,
                        "status": "Not Started",
                        "callback": RETURN,
                        "workflow_id": WORKFLOW,
                    },
                ),
            ),
            asked=(
                (
                    "POST /v3/session/",
                    {
                        "workflow_id": WORKFLOW,
                        "vendor_data": REFERENCE,
                        "callback": RETURN,
                        "callback_method": "both",
                        "language": "es",
                    },
                ),
            ),
            sent={"x-api-key": f"{HIDDEN}-api-key", "content-type": "application/json"},
            session_id=UUID,
            url=f"https://verify.didit.me/session/{HIDDEN}",
            template="workflow_id",
            own="vendor_data",
        ),
        Case(
            name="onfido",
            credentials={
                "api_token": f"api_live_us.{HIDDEN}",
                "environment": "live",
                "region": "us",
                "workflow_id": WORKFLOW,
            },
            replies=(
                (201, {"id": APPLICANT, "first_name": "Anonymous", "last_name": "Buyer"}),
                (
                    201,
                    {
                        "id": UUID,
                        "applicant_id": APPLICANT,
                        "workflow_id": WORKFLOW,
                        "workflow_version_id": 1,
                        "customer_user_id": REFERENCE,
                        "status": "awaiting_input",
                        "sdk_token": HIDDEN,
                        "link": {
                            "url": f"https://us.onfido.app/l/{HIDDEN}",
                            "completed_redirect_url": RETURN,
                            "expired_redirect_url": RETURN,
                            "expires_at": "2026-11-18T17:00:00Z",
                            "language": "es_ES",
                        },
                    },
                ),
            ),
            asked=(
                ("POST /v3.6/applicants", {"first_name": "Anonymous", "last_name": "Buyer"}),
                (
                    "POST /v3.6/workflow_runs",
                    {
                        "applicant_id": APPLICANT,
                        "workflow_id": WORKFLOW,
                        "customer_user_id": REFERENCE,
                        "link": {
                            "completed_redirect_url": RETURN,
                            "expired_redirect_url": RETURN,
                            "language": "es_ES",
                        },
                    },
                ),
            ),
            sent={
                "authorization": f"Token token=api_live_us.{HIDDEN}",
                "content-type": "application/json",
            },
            session_id=UUID,
            url=f"https://us.onfido.app/l/{HIDDEN}",
            template="workflow_id",
            own="customer_user_id",
        ),
    )
}


class Receiver(Stripe):
    """A server that sends these replies in order, and repeats the last one."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        super().__init__(FixedClock().now)
        self._left = list(replies)

    def answer(self, request: Request) -> Reply:
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]


def replies_of(case: Case) -> list[Reply]:
    """The provider's response, as described."""
    return [replied(case, body, status) for status, body in case.replies]


def replied(case: Case, body: object, status: int = 200) -> Reply:
    """A response of the provider; bytes as they are."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = (("Content-Type", "application/json"), *case.headers)
    return Reply(status=status, body=raw, headers=headers)


@asynccontextmanager
async def receiving(
    case: Case, replies: Sequence[Reply], **credentials: object
) -> AsyncIterator[tuple[Callable[[], Awaitable[StartedSession | Refusal]], list[Request]]]:
    """A provider at a server with these replies: a function that starts, and the requests."""
    content = json.dumps({**case.credentials, **credentials}).encode()
    async with serve(Receiver(replies)) as served:
        provider = IdentityProviders(keyed, FixedClock())(case.name, content, served.url)

        async def begin() -> StartedSession | Refusal:
            try:
                return await provider.start(WANTED)
            except Refusal as error:
                return error

        try:
            yield begin, served.requests
        finally:
            await provider.close()


def start(
    case: Case, replies: Sequence[Reply] | None = None, **credentials: object
) -> tuple[StartedSession | Refusal, list[Request]]:
    """The result of a start at a server with these replies, and the requests it got."""
    given = replies_of(case) if replies is None else replies

    async def once() -> tuple[StartedSession | Refusal, list[Request]]:
        async with receiving(case, given, **credentials) as (begin, requests):
            return await begin(), requests

    return asyncio.run(once())


def asked(request: Request) -> tuple[str, Any]:
    """A request as the cases write it."""
    if request.headers.get("content-type") == "application/x-www-form-urlencoded":
        body: object = parse_qsl(request.body.decode(), strict_parsing=True)
    else:
        body = json.loads(request.body) if request.body else None
    return f"{request.method} {request.path}", body


def with_last(case: Case, body: object, status: int | None = None) -> list[Reply]:
    """The provider's responses, with another last one."""
    replies = replies_of(case)
    last = replied(case, body, replies[-1].status if status is None else status)
    return [*replies[:-1], last]


def without(case: Case, member: str) -> Case:
    """The same with credentials that lack a member."""
    left = {name: value for name, value in case.credentials.items() if name != member}
    return replace(case, credentials=left)
