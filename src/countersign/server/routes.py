"""The route table: routing, keys and scopes, schemas and the OpenAPI document come from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

from countersign.access.key import Scope
from countersign.acknowledgments import evidence_routes as evidence
from countersign.acknowledgments import routes as acknowledgments
from countersign.acknowledgments.model import NO_FIELD, OPAQUE_LENGTH_MAX, PERSONAL_FIELDS
from countersign.bootstrap import Deployment
from countersign.buyers import routes as buyers
from countersign.clearances import routes as clearances
from countersign.errors import (
    ClearanceClosed,
    ClearanceNotGranted,
    CursorExpired,
    EmptyInitials,
    Erased,
    EvidenceDamaged,
    EvidencePending,
    Forbidden,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InitialsCountMismatch,
    InternalError,
    InvalidApiKey,
    InvalidRequest,
    MethodNotAllowed,
    ModeMismatch,
    NotFound,
    NoticeNotFound,
    NoticeNotInForce,
    NoticeNotReviewed,
    NoticeVersionMismatch,
    Overloaded,
    PayloadTooLarge,
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    ProviderUnavailable,
    RateLimited,
    Refusal,
    StorageUnavailable,
    TooManyWebhookEndpoints,
    Unauthorized,
    UnsupportedMediaType,
    VerificationMisconfigured,
    VerificationNotConfigured,
    WebhookEndpointDisabled,
)
from countersign.events import routes as events
from countersign.events import schemas as event_schemas
from countersign.events.model import EventType
from countersign.http import examples, schemas
from countersign.http.paging import LIMIT_DEFAULT, LIMIT_MAX
from countersign.http.reply import Call, Reply
from countersign.ids import ACKNOWLEDGMENT, CLEARANCE, EVENT, WEBHOOK_ENDPOINT, id_pattern
from countersign.log import routes as log
from countersign.mode import Mode
from countersign.notices import routes as notices
from countersign.operations import routes as operations
from countersign.sandbox import routes as test_helpers
from countersign.sandbox import schemas as sandbox_schemas
from countersign.webhooks import routes as webhooks
from countersign.webhooks import schemas as webhook_schemas
from countersign.webhooks.model import DeliveryStatus

Handler: TypeAlias = Callable[[Deployment, Call], Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter in the path or the query, for the OpenAPI document."""

    name: str
    description: str
    schema: Mapping[str, Any]
    example: str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation.

    A path has at most one `{parameter}`, a whole segment of it, or ends in `{path*}`, which matches
    all paths below it.
    """

    method: str
    path: str
    handler: Handler
    operation: str = ""
    summary: str = ""
    tag: str = ""
    scope: Scope | None = None
    """The scope that the key must have; None: no key is needed."""
    parameter: Parameter | None = None
    query: tuple[Parameter, ...] = ()
    request: type | None = None
    raw_body_max: int = 0
    """Maximum size in bytes of a raw body that a third party sends and signs, without a key."""
    judged_anew: Callable[[bytes], bool] | None = None
    """Whether a stored response is not replayed, so that the request is decided again."""
    answer: Any = None
    media_type: str = "application/json"
    """Media type of the response; `answer` describes only JSON."""
    refusals: tuple[type[Refusal], ...] = ()
    request_examples: Mapping[str, Any] = field(default_factory=dict)
    answer_examples: Mapping[str, Any] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Links of a response: operation → parameter → member of the response, a JSON pointer."""

    @property
    def errors(self) -> tuple[type[Refusal], ...]:
        """Every refusal that this operation can return."""
        found: list[type[Refusal]] = [MethodNotAllowed]
        if self.scope is not None:
            found += [InvalidRequest, Unauthorized, InvalidApiKey, Forbidden]
            found += [RateLimited, Overloaded, StorageUnavailable]
        if self.request is not None:
            found += [
                PayloadTooLarge,
                UnsupportedMediaType,
                IdempotencyKeyReused,
                IdempotencyInProgress,
            ]
        found += [*self.refusals, InternalError]
        return tuple(dict.fromkeys(found))


_NOTICE_ID: Final = Parameter(
    name="notice_id",
    description="Identifier of the notice.",
    schema={"type": "string"},
    example="ab1263",
)
_CLEARANCE_ID: Final = Parameter(
    name="clearance_id",
    description="Identifier of the clearance.",
    schema={"type": "string"},
    example=examples.CLEARANCE_ID,
)
_MODE: Final = Parameter(
    name="mode",
    description="The mode of the evidence. Left out: `live`.",
    schema={"type": "string", "enum": [mode.value for mode in Mode]},
    example="test",
)
_CBID: Final = Parameter(
    name="cbid",
    description="The buyer identifier.",
    schema={"type": "string"},
    example=examples.CBID,
)
_ACK_ID: Final = Parameter(
    name="ack_id",
    description="Identifier of the acknowledgment.",
    schema={"type": "string"},
    example=examples.ACK_ID,
)
_ONE_FIELD: Final = f"({'|'.join(PERSONAL_FIELDS)})"
_SOME_FIELDS: Final = f"^({NO_FIELD}|{_ONE_FIELD}(,{_ONE_FIELD})*)$"
_DISCLOSE: Final = Parameter(
    name="disclose",
    description=(
        "The personal fields to show, separated by commas: "
        + ", ".join(f"`{name}`" for name in PERSONAL_FIELDS)
        + ", or `none`. Left out: all of them."
    ),
    schema={"type": "string", "pattern": _SOME_FIELDS},
    example="initials_per_line,session_id",
)
_EVENT_ID: Final = Parameter(
    name="event_id",
    description="Identifier of the event.",
    schema={"type": "string"},
    example=examples.EVENT_ID,
)
_ENDPOINT_ID: Final = Parameter(
    name="endpoint_id",
    description="Identifier of the webhook endpoint.",
    schema={"type": "string"},
    example=examples.ENDPOINT_ID,
)
_LIMIT: Final = Parameter(
    name="limit",
    description="The maximum number of items.",
    schema={"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
    example=LIMIT_DEFAULT,
)


def _after(what: str, example: str, pattern: str = schemas.NO_NUL) -> Parameter:
    return Parameter(
        name="after",
        description=f"The `next_cursor` of the previous page: {what}.",
        schema={"type": "string", "pattern": pattern},
        example=example,
    )


def _opaque(name: str, description: str, example: str) -> Parameter:
    schema = {"type": "string", "maxLength": OPAQUE_LENGTH_MAX, "pattern": schemas.NO_NUL}
    return Parameter(name=name, description=description, schema=schema, example=example)


def _instant(name: str, description: str) -> Parameter:
    schema = {"type": "string", "format": "date-time"}
    example = "2026-11-20T00:00:00Z"
    return Parameter(name=name, description=description, schema=schema, example=example)


def _choice(name: str, description: str, values: type[StrEnum]) -> Parameter:
    schema = {"type": "string", "enum": [value.value for value in values]}
    return Parameter(name=name, description=description, schema=schema, example=next(iter(values)))


API_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        method="GET",
        path="/v1/notices",
        handler=notices.list_notices,
        operation="listNotices",
        summary="List the notices",
        tag="Notices",
        scope=Scope.NOTICES_READ,
        query=(_LIMIT, _after("the id of that page's last notice", "ab1263")),
        answer=schemas.Page[schemas.NoticeSummary],
        answer_examples={"one notice": examples.NOTICES},
    ),
    Route(
        method="GET",
        path="/v1/notices/{notice_id}",
        handler=notices.get_notice,
        operation="getNotice",
        summary="Get the notice to show",
        tag="Notices",
        scope=Scope.NOTICES_READ,
        parameter=_NOTICE_ID,
        query=(
            Parameter(
                name="version",
                description="An older version. Left out: the version in force for the key's mode.",
                schema={"type": "string", "pattern": schemas.NO_NUL},
                example="2026-01-01-incomplete",
            ),
        ),
        answer=schemas.Notice,
        refusals=(NoticeNotFound, NoticeNotReviewed, NoticeNotInForce),
        answer_examples={"AB 1263": examples.NOTICE},
        links={
            "acknowledgeNotice": {"notice_id": "/notice_id"},
            "listNoticeVersions": {"notice_id": "/notice_id"},
        },
    ),
    Route(
        method="GET",
        path="/v1/notices/{notice_id}/versions",
        handler=notices.list_versions,
        operation="listNoticeVersions",
        summary="List the versions of a notice, newest first",
        tag="Notices",
        scope=Scope.NOTICES_READ,
        parameter=_NOTICE_ID,
        query=(_LIMIT, _after("that page's last version", "2026-01-01-incomplete")),
        answer=schemas.Page[schemas.NoticeVersion],
        refusals=(NoticeNotFound,),
        answer_examples={"one version": examples.VERSIONS},
    ),
    Route(
        method="POST",
        path="/v1/notices/{notice_id}/acknowledge",
        handler=acknowledgments.acknowledge,
        operation="acknowledgeNotice",
        summary="Store a buyer's initials on every line",
        tag="Acknowledgments",
        scope=Scope.ACKS_CREATE,
        parameter=_NOTICE_ID,
        request=schemas.AcknowledgmentRequest,
        answer=schemas.AcknowledgmentReceipt,
        refusals=(
            NoticeNotFound,
            NoticeNotReviewed,
            NoticeNotInForce,
            NoticeVersionMismatch,
            InitialsCountMismatch,
            EmptyInitials,
        ),
        request_examples={"all fields": examples.ACKNOWLEDGE, "shortest": examples.ACKNOWLEDGE_MIN},
        answer_examples={"stored": examples.RECEIPT},
        links={"getAcknowledgment": {"ack_id": "/ack_id"}},
    ),
    Route(
        method="GET",
        path="/v1/acknowledgments",
        handler=acknowledgments.list_acknowledgments,
        operation="listAcknowledgments",
        summary="Find acknowledgments, newest first",
        tag="Acknowledgments",
        scope=Scope.ACKS_READ,
        query=(
            _opaque("session_id", "Only items with this checkout session.", "cs_8f14e45f"),
            _opaque("cbid", "Only items with this buyer identifier.", examples.CBID),
            _opaque("notice_id", "Only acknowledgments of this notice.", "ab1263"),
            _instant("accepted_after", "Only acknowledgments accepted at or after this time."),
            _instant("accepted_before", "Only acknowledgments accepted before this time."),
            _LIMIT,
            _after(
                "the id of that page's last acknowledgment",
                examples.ACK_ID,
                id_pattern(ACKNOWLEDGMENT),
            ),
        ),
        answer=schemas.Page[schemas.Acknowledgment],
        refusals=(EvidenceDamaged,),
        answer_examples={"last page": examples.ACKNOWLEDGMENTS},
    ),
    Route(
        method="GET",
        path="/v1/acknowledgments/{ack_id}",
        handler=acknowledgments.get_acknowledgment,
        operation="getAcknowledgment",
        summary="Get one acknowledgment",
        tag="Acknowledgments",
        scope=Scope.ACKS_READ,
        parameter=_ACK_ID,
        answer=schemas.Acknowledgment,
        refusals=(NotFound, EvidenceDamaged),
        answer_examples={"stored": examples.ACKNOWLEDGMENT},
    ),
    Route(
        method="GET",
        path="/v1/acknowledgments/{ack_id}/proof",
        handler=evidence.get_proof,
        operation="getAcknowledgmentProof",
        summary="Get the proof that the log contains the record",
        tag="Evidence",
        scope=Scope.EVIDENCE_READ,
        parameter=_ACK_ID,
        media_type="text/plain; charset=utf-8",
        answer_examples={"a proof": examples.PROOF},
        refusals=(NotFound, EvidencePending, EvidenceDamaged),
    ),
    Route(
        method="GET",
        path="/v1/acknowledgments/{ack_id}/certificate",
        handler=evidence.get_certificate,
        operation="getAcknowledgmentCertificate",
        summary="Get a certificate for people, as a PDF",
        tag="Evidence",
        scope=Scope.EVIDENCE_READ,
        parameter=_ACK_ID,
        query=(_DISCLOSE,),
        media_type="application/pdf",
        refusals=(NotFound, EvidencePending, EvidenceDamaged, Erased),
    ),
    Route(
        method="GET",
        path="/v1/acknowledgments/{ack_id}/bundle",
        handler=evidence.get_bundle,
        operation="getAcknowledgmentBundle",
        summary="Get everything needed to verify an acknowledgment, as a ZIP file",
        tag="Evidence",
        scope=Scope.EVIDENCE_READ,
        parameter=_ACK_ID,
        query=(_DISCLOSE,),
        media_type="application/zip",
        refusals=(NotFound, EvidencePending, EvidenceDamaged, Erased),
    ),
    Route(
        method="GET",
        path="/v1/log/policy",
        handler=log.get_policy,
        operation="getLogPolicy",
        summary="Get the policy to verify evidence against",
        tag="Evidence",
        query=(_MODE,),
        media_type="text/plain; charset=utf-8",
        answer_examples={"of a test log": examples.POLICY},
        refusals=(InvalidRequest, Overloaded, StorageUnavailable),
    ),
    Route(
        method="POST",
        path="/v1/buyers/verify",
        handler=buyers.verify,
        operation="verifyBuyer",
        summary="Check an identity session, and issue or refresh a cbid",
        tag="Buyers",
        scope=Scope.BUYERS_VERIFY,
        request=schemas.BuyerVerificationRequest,
        answer=schemas.BuyerVerification,
        refusals=(
            ModeMismatch,
            VerificationNotConfigured,
            VerificationMisconfigured,
            ProviderSessionNotFound,
            ProviderSessionNotBound,
            ProviderUnavailable,
        ),
        request_examples={"sandbox": examples.VERIFY},
        answer_examples={"verified": examples.VERIFIED, "too young": examples.UNDERAGE},
        links={"getBuyerStatus": {"cbid": "/cbid"}},
    ),
    Route(
        method="GET",
        path="/v1/buyers/{cbid}/status",
        handler=buyers.get_status,
        operation="getBuyerStatus",
        summary="Get the status of a buyer",
        tag="Buyers",
        scope=Scope.BUYERS_READ,
        parameter=_CBID,
        answer=schemas.BuyerStatusAnswer,
        refusals=(NotFound,),
        answer_examples={"verified": examples.STATUS},
    ),
    Route(
        method="GET",
        path="/v1/events",
        handler=events.list_events,
        operation="listEvents",
        summary="List events, oldest first",
        tag="Events",
        scope=Scope.EVENTS_READ,
        query=(
            _choice("type", "Only events of this type.", EventType),
            _instant("since", "Only events at or after this time."),
            _LIMIT,
            _after("the id of its last event", examples.EVENT_ID, id_pattern(EVENT)),
        ),
        answer=schemas.Page[event_schemas.Event],
        refusals=(CursorExpired,),
        answer_examples={"the latest": examples.EVENTS},
    ),
    Route(
        method="GET",
        path="/v1/events/{event_id}",
        handler=events.get_event,
        operation="getEvent",
        summary="Get one event",
        tag="Events",
        scope=Scope.EVENTS_READ,
        parameter=_EVENT_ID,
        answer=event_schemas.Event,
        refusals=(NotFound,),
        answer_examples={"stored": examples.EVENT},
    ),
    Route(
        method="POST",
        path="/v1/webhook_endpoints",
        handler=webhooks.create,
        operation="createWebhookEndpoint",
        summary="Create a webhook endpoint",
        tag="Webhooks",
        scope=Scope.WEBHOOKS_MANAGE,
        request=webhook_schemas.WebhookEndpointRequest,
        answer=webhook_schemas.NewWebhookEndpoint,
        refusals=(TooManyWebhookEndpoints,),
        request_examples={"some types": examples.NEW_ENDPOINT},
        answer_examples={"made": examples.ENDPOINT_MADE},
        links={"getWebhookEndpoint": {"endpoint_id": "/endpoint_id"}},
    ),
    Route(
        method="GET",
        path="/v1/webhook_endpoints",
        handler=webhooks.list_endpoints,
        operation="listWebhookEndpoints",
        summary="List the webhook endpoints, oldest first",
        tag="Webhooks",
        scope=Scope.WEBHOOKS_MANAGE,
        query=(
            _LIMIT,
            _after(
                "the id of that page's last endpoint",
                examples.ENDPOINT_ID,
                id_pattern(WEBHOOK_ENDPOINT),
            ),
        ),
        answer=schemas.Page[webhook_schemas.WebhookEndpoint],
        answer_examples={"one": examples.ENDPOINTS},
    ),
    Route(
        method="GET",
        path="/v1/webhook_endpoints/{endpoint_id}",
        handler=webhooks.get_endpoint,
        operation="getWebhookEndpoint",
        summary="Get one webhook endpoint",
        tag="Webhooks",
        scope=Scope.WEBHOOKS_MANAGE,
        parameter=_ENDPOINT_ID,
        answer=webhook_schemas.WebhookEndpoint,
        refusals=(NotFound,),
        answer_examples={"stored": examples.ENDPOINT},
    ),
    Route(
        method="PATCH",
        path="/v1/webhook_endpoints/{endpoint_id}",
        handler=webhooks.change,
        operation="changeWebhookEndpoint",
        summary="Change, disable or enable a webhook endpoint",
        tag="Webhooks",
        scope=Scope.WEBHOOKS_MANAGE,
        parameter=_ENDPOINT_ID,
        request=webhook_schemas.WebhookEndpointChange,
        answer=webhook_schemas.WebhookEndpoint,
        refusals=(NotFound,),
        request_examples={"disable": {"disabled": True}},
        answer_examples={"changed": examples.ENDPOINT},
    ),
    Route(
        method="DELETE",
        path="/v1/webhook_endpoints/{endpoint_id}",
        handler=webhooks.delete,
        operation="deleteWebhookEndpoint",
        summary="Delete a webhook endpoint",
        tag="Webhooks",
        scope=Scope.WEBHOOKS_MANAGE,
        parameter=_ENDPOINT_ID,
        answer=webhook_schemas.DeletedWebhookEndpoint,
        refusals=(NotFound,),
        answer_examples={
            "deleted": {"endpoint_id": examples.ENDPOINT_ID, "deleted": True},
        },
    ),
    Route(
        method="POST",
        path="/v1/webhook_endpoints/{endpoint_id}/rotate_secret",
        handler=webhooks.rotate_secret,
        operation="rotateWebhookSecret",
        summary="Give a webhook endpoint a new secret",
        tag="Webhooks",
        scope=Scope.WEBHOOKS_MANAGE,
        parameter=_ENDPOINT_ID,
        request=webhook_schemas.SecretRotation,
        answer=webhook_schemas.NewWebhookEndpoint,
        refusals=(NotFound,),
        request_examples={"a day of overlap": {"overlap_seconds": 86400}},
        answer_examples={"rotated": examples.ENDPOINT_MADE},
    ),
    Route(
        method="GET",
        path="/v1/webhook_endpoints/{endpoint_id}/deliveries",
        handler=webhooks.list_deliveries,
        operation="listWebhookDeliveries",
        summary="List deliveries and their attempts, newest first",
        tag="Webhooks",
        scope=Scope.WEBHOOKS_MANAGE,
        parameter=_ENDPOINT_ID,
        query=(
            _choice("status", "Only deliveries with this status.", DeliveryStatus),
            _LIMIT,
            _after("the id of its last event", examples.EVENT_ID, id_pattern(EVENT)),
        ),
        answer=schemas.Page[webhook_schemas.WebhookDelivery],
        refusals=(NotFound,),
        answer_examples={"delivered": examples.DELIVERIES},
    ),
    Route(
        method="POST",
        path="/v1/webhook_endpoints/{endpoint_id}/resend",
        handler=webhooks.resend,
        operation="resendEvent",
        summary="Deliver an event again",
        tag="Webhooks",
        scope=Scope.WEBHOOKS_MANAGE,
        parameter=_ENDPOINT_ID,
        request=webhook_schemas.Resending,
        answer=event_schemas.Event,
        refusals=(NotFound, WebhookEndpointDisabled),
        request_examples={"an event": {"event_id": examples.EVENT_ID}},
        answer_examples={"on its way": examples.EVENT},
    ),
    Route(
        method="POST",
        path="/v1/webhook_endpoints/{endpoint_id}/recover",
        handler=webhooks.recover,
        operation="recoverWebhooks",
        summary="Deliver missed events since a time again",
        tag="Webhooks",
        scope=Scope.WEBHOOKS_MANAGE,
        parameter=_ENDPOINT_ID,
        request=webhook_schemas.Recovery,
        answer=webhook_schemas.WebhookEndpoint,
        refusals=(NotFound, WebhookEndpointDisabled),
        request_examples={"since yesterday": {"since": "2026-11-19T21:31:00Z"}},
        answer_examples={"on their way": examples.ENDPOINT},
    ),
    Route(
        method="POST",
        path="/v1/webhook_endpoints/{endpoint_id}/send_example",
        handler=webhooks.send_example,
        operation="sendWebhookExample",
        summary="Send a signed example immediately",
        tag="Webhooks",
        scope=Scope.WEBHOOKS_MANAGE,
        parameter=_ENDPOINT_ID,
        request=webhook_schemas.ExampleRequest,
        answer=webhook_schemas.WebhookAttempt,
        refusals=(NotFound,),
        request_examples={"an acknowledgment": {"type": "acknowledgment.created"}},
        answer_examples={"received": examples.ATTEMPT},
    ),
    Route(
        method="POST",
        path="/v1/clearances",
        handler=clearances.clear,
        operation="clearOrder",
        judged_anew=clearances.is_granted,
        summary="Decide whether an order may ship",
        tag="Clearances",
        scope=Scope.CLEARANCES_CREATE,
        request=schemas.ClearanceRequest,
        answer=schemas.ClearanceDecision,
        request_examples={"an order": examples.CLEAR, "shortest": examples.CLEAR_MIN},
        answer_examples={"cleared": examples.CLEARED, "not cleared": examples.NOT_CLEARED},
        links={"getClearance": {"clearance_id": "/clearance_id"}},
    ),
    Route(
        method="GET",
        path="/v1/clearances",
        handler=clearances.list_clearances,
        operation="listClearances",
        summary="Find clearances, newest first",
        tag="Clearances",
        scope=Scope.CLEARANCES_READ,
        query=(
            _opaque(
                "ack_id", "Only clearances requested with this acknowledgment.", examples.ACK_ID
            ),
            _opaque("session_id", "Only items with this checkout session.", "cs_8f14e45f"),
            _opaque("cbid", "Only items with this buyer identifier.", examples.CBID),
            _LIMIT,
            _after(
                "the id of that page's last clearance", examples.CLEARANCE_ID, id_pattern(CLEARANCE)
            ),
        ),
        answer=schemas.Page[schemas.Clearance],
        answer_examples={"last page": examples.CLEARANCES},
    ),
    Route(
        method="GET",
        path="/v1/clearances/{clearance_id}",
        handler=clearances.get_clearance,
        operation="getClearance",
        summary="Get one clearance, with the reports of its fulfilment",
        tag="Clearances",
        scope=Scope.CLEARANCES_READ,
        parameter=_CLEARANCE_ID,
        answer=schemas.Clearance,
        refusals=(NotFound,),
        answer_examples={"closed": examples.CLEARANCE},
    ),
    Route(
        method="POST",
        path="/v1/clearances/{clearance_id}/fulfilment",
        handler=clearances.fulfil,
        operation="fulfilOrder",
        summary="Report the fulfilment of an order, and close it",
        tag="Clearances",
        scope=Scope.CLEARANCES_CREATE,
        parameter=_CLEARANCE_ID,
        request=schemas.FulfilmentRequest,
        answer=schemas.FulfilmentReceipt,
        refusals=(NotFound, ClearanceNotGranted, ClearanceClosed),
        request_examples={"shipped": examples.FULFIL},
        answer_examples={"closed": examples.FULFILLED},
    ),
    Route(
        method="GET",
        path="/v1/test/clock",
        handler=test_helpers.get_clock,
        operation="getTestClock",
        summary="Get the test clock",
        tag="Test helpers",
        scope=Scope.SANDBOX_MANAGE,
        answer=sandbox_schemas.TestClock,
        refusals=(ModeMismatch,),
        answer_examples={"real time": examples.TEST_CLOCK},
    ),
    Route(
        method="POST",
        path="/v1/test/clock/advance",
        handler=test_helpers.advance_clock,
        operation="advanceTestClock",
        summary="Advance the test clock",
        tag="Test helpers",
        scope=Scope.SANDBOX_MANAGE,
        request=sandbox_schemas.ClockAdvance,
        answer=sandbox_schemas.TestClock,
        refusals=(ModeMismatch,),
        request_examples={
            "by a day": {"seconds": 86400},
            "to a time": {"to": "2027-01-01T00:00:00Z"},
        },
        answer_examples={"a day ahead": examples.TEST_CLOCK_AHEAD},
    ),
    Route(
        method="DELETE",
        path="/v1/test/clock",
        handler=test_helpers.reset_clock,
        operation="resetTestClock",
        summary="Reset the test clock to real time",
        tag="Test helpers",
        scope=Scope.SANDBOX_MANAGE,
        answer=sandbox_schemas.TestClock,
        refusals=(ModeMismatch,),
        answer_examples={"real time": examples.TEST_CLOCK},
    ),
    Route(
        method="POST",
        path="/v1/test/buyers",
        handler=test_helpers.move_buyer,
        operation="moveTestBuyer",
        summary="Set the status of a sandbox buyer",
        tag="Test helpers",
        scope=Scope.SANDBOX_MANAGE,
        request=sandbox_schemas.BuyerMove,
        answer=schemas.BuyerStatusAnswer,
        refusals=(ModeMismatch, NotFound),
        request_examples={
            "revoked": {"cbid": examples.CBID, "status": "revoked"},
            "failed": {
                "cbid": examples.CBID,
                "status": "failed",
                "reasons": ["age_below_minimum"],
            },
        },
        answer_examples={"failed": examples.MOVED},
    ),
    Route(
        method="POST",
        path="/v1/test/events",
        handler=test_helpers.trigger_event,
        operation="triggerEvent",
        summary="Write an event of any type",
        tag="Test helpers",
        scope=Scope.SANDBOX_MANAGE,
        request=sandbox_schemas.EventTrigger,
        answer=event_schemas.Event,
        refusals=(ModeMismatch,),
        request_examples={"any buyer": {"type": "buyer.revoked"}},
        answer_examples={"written": examples.TRIGGERED},
    ),
    Route(
        method="GET",
        path="/v1/test/fault",
        handler=test_helpers.get_fault,
        operation="getTestFault",
        summary="Get the planned fault",
        tag="Test helpers",
        scope=Scope.SANDBOX_MANAGE,
        answer=sandbox_schemas.PlannedFault,
        refusals=(ModeMismatch,),
        answer_examples={"planned": examples.FAULT, "none": examples.NO_FAULT},
    ),
    Route(
        method="POST",
        path="/v1/test/fault",
        handler=test_helpers.plan_fault,
        operation="planTestFault",
        summary="Let the next verifications fail",
        tag="Test helpers",
        scope=Scope.SANDBOX_MANAGE,
        request=sandbox_schemas.FaultRequest,
        answer=sandbox_schemas.PlannedFault,
        refusals=(ModeMismatch,),
        request_examples={"twice": {"fault": "timeout", "calls": 2}},
        answer_examples={"planned": examples.FAULT},
    ),
    Route(
        method="DELETE",
        path="/v1/test/fault",
        handler=test_helpers.clear_fault,
        operation="clearTestFault",
        summary="Remove the planned fault",
        tag="Test helpers",
        scope=Scope.SANDBOX_MANAGE,
        answer=sandbox_schemas.PlannedFault,
        refusals=(ModeMismatch,),
        answer_examples={"cleared": examples.NO_FAULT},
    ),
    Route(
        method="GET",
        path="/healthz",
        handler=operations.health,
        operation="getHealth",
        summary="Check that the process responds",
        tag="Operations",
        answer=schemas.Health,
        answer_examples={"ok": {"status": "ok"}},
    ),
    Route(
        method="GET",
        path="/readyz",
        handler=operations.readiness,
        operation="getReadiness",
        summary="Check that the process can do its work",
        tag="Operations",
        answer=schemas.Readiness,
        refusals=(StorageUnavailable,),
        answer_examples={
            "ready": {"status": "ready", "checks": {"database": "ok", "sealing": "ok"}}
        },
    ),
)
"""The operations of the OpenAPI document."""

SITE_ROUTES: Final[tuple[Route, ...]] = (
    Route(method="GET", path="/.well-known/security.txt", handler=operations.security_txt),
    Route(
        method="GET",
        path="/.well-known/jwks.json",
        handler=clearances.get_keys,
        query=(_MODE,),
    ),
    Route(method="GET", path="/v1/log/keys", handler=log.get_keys),
    Route(method="GET", path="/v1/log/{path*}", handler=log.get_resource),
    Route(method="GET", path="/verify", handler=evidence.get_verify_page),
    Route(
        method="POST",
        path="/v1/provider_webhooks/{path*}",
        handler=buyers.provider_webhook,
        # Persona sends the whole inquiry with all that belongs to it; the others a few KiB.
        raw_body_max=256 * 1024,
    ),
)
"""Paths other than the API; `documents.py` adds the pages that are made from the table itself."""
