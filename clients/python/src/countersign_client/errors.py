"""What the API refuses, an exception for each code.

Written by `make clients` from spec/openapi.json: do not edit.
"""

from __future__ import annotations

from typing import Final

from countersign_client.failure import CountersignError


class AccountClosed(CountersignError):
    """The account is closed."""

    default_code = "account_closed"


class AccountDisabled(CountersignError):
    """The operator of this service has disabled the account of this key."""

    default_code = "account_disabled"


class AccountExists(CountersignError):
    """An account with this name exists already."""

    default_code = "account_exists"


class AccountNotFound(CountersignError):
    """The account does not exist."""

    default_code = "account_not_found"


class Blocked(CountersignError):
    """Another program holds a lock of the database: nobody can write."""

    default_code = "blocked"


class CheckoutSessionClosed(CountersignError):
    """The checkout session has ended."""

    default_code = "checkout_session_closed"


class ClearanceNotGranted(CountersignError):
    """This order was not cleared, so no fulfilment can be reported for it."""

    default_code = "clearance_not_granted"


class CursorExpired(CountersignError):
    """Events as old as this cursor are no longer kept: some events after it may be deleted."""

    default_code = "cursor_expired"


class Draining(CountersignError):
    """This server is about to stop: it takes what comes, but send no more here."""

    default_code = "draining"


class EmptyInitials(CountersignError):
    """One or more initials are blank."""

    default_code = "empty_initials"


class Erased(CountersignError):
    """The requested personal data was erased."""

    default_code = "erased"


class EvidenceDamaged(CountersignError):
    """The stored data of this acknowledgment fails verification and is not returned."""

    default_code = "evidence_damaged"


class EvidencePending(CountersignError):
    """The evidence is not sealed in the log yet."""

    default_code = "evidence_pending"


class Forbidden(CountersignError):
    """The API key lacks the scope that this operation needs."""

    default_code = "forbidden"


class FulfilmentContradicted(CountersignError):
    """An earlier report says otherwise, or the times are against the order of events."""

    default_code = "fulfilment_contradicted"


class IdempotencyInProgress(CountersignError):
    """A request with this Idempotency-Key is still running."""

    default_code = "idempotency_in_progress"


class IdempotencyKeyReused(CountersignError):
    """This Idempotency-Key was used with a different request body."""

    default_code = "idempotency_key_reused"


class InitialsCountMismatch(CountersignError):
    """The number of initials differs from the number of lines of the notice."""

    default_code = "initials_count_mismatch"


class InternalError(CountersignError):
    """Something went wrong inside the service."""

    default_code = "internal_error"


class InvalidApiKey(CountersignError):
    """The API key is not valid."""

    default_code = "invalid_api_key"


class InvalidClientToken(CountersignError):
    """The client token is not that of a checkout session."""

    default_code = "invalid_client_token"


class InvalidNoticeFile(CountersignError):
    """The notice file is not valid."""

    default_code = "invalid_notice_file"


class InvalidRequest(CountersignError):
    """The request is not well formed."""

    default_code = "invalid_request"


class KeyNotFound(CountersignError):
    """The key does not exist."""

    default_code = "key_not_found"


class KeyNotUsable(CountersignError):
    """The key is revoked or expired."""

    default_code = "key_not_usable"


class KeysRemain(CountersignError):
    """This person has made keys that work: say which of them end."""

    default_code = "keys_remain"


class LinkOnMachine(CountersignError):
    """This link is made on the machine of the service alone."""

    default_code = "link_on_machine"


class MethodNotAllowed(CountersignError):
    """This path does not support that method."""

    default_code = "method_not_allowed"


class ModeMismatch(CountersignError):
    """What the request names is not of the mode of the API key."""

    default_code = "mode_mismatch"


class NotFound(CountersignError):
    """The path or object was not found: it does not exist, or this key may not see it."""

    default_code = "not_found"


class NotGranted(CountersignError):
    """The database role of this server may not do this."""

    default_code = "not_granted"


class NoticeIncomplete(CountersignError):
    """The text of this version is incomplete."""

    default_code = "notice_incomplete"


class NoticeNotFound(CountersignError):
    """The notice was not found."""

    default_code = "notice_not_found"


class NoticeNotInForce(CountersignError):
    """No version of this notice is in force now."""

    default_code = "notice_not_in_force"


class NoticeNotReviewed(CountersignError):
    """The text of this notice has not been reviewed against the official text."""

    default_code = "notice_not_reviewed"


class NoticeVersionConflict(CountersignError):
    """This version is already published with a different text."""

    default_code = "notice_version_conflict"


class NoticeVersionMismatch(CountersignError):
    """The notice_version sent is not the version in force."""

    default_code = "notice_version_mismatch"


class OnHold(CountersignError):
    """A legal hold prevents the erasure."""

    default_code = "on_hold"


class OrderNotRefused(CountersignError):
    """This order is cleared or shipped, so there is no refusal to override."""

    default_code = "order_not_refused"


class OrderReferenceMismatch(CountersignError):
    """The order_reference sent is not that of the session or of the acknowledgment."""

    default_code = "order_reference_mismatch"


class OrderReferenceMissing(CountersignError):
    """Live orders of this account have to be named by order_reference."""

    default_code = "order_reference_missing"


class OriginNotAllowed(CountersignError):
    """The page that sent this request is not one that may."""

    default_code = "origin_not_allowed"


class OriginNotRegistered(CountersignError):
    """The origin is not registered for this account."""

    default_code = "origin_not_registered"


class OutcomeUnknown(CountersignError):
    """The database did not confirm the change: it may have been stored."""

    default_code = "outcome_unknown"


class Overloaded(CountersignError):
    """The service is overloaded at the moment."""

    default_code = "overloaded"


class OverrideLimitReached(CountersignError):
    """Keys of this account have made all manual overrides that they may within 24 hours."""

    default_code = "override_limit_reached"


class OverrideNotAllowed(CountersignError):
    """The refusal of this order cannot be overridden."""

    default_code = "override_not_allowed"


class PasskeyRequired(CountersignError):
    """A passkey must have been used in the last five minutes for this operation."""

    default_code = "passkey_required"


class PayloadTooLarge(CountersignError):
    """The request body is larger than this path accepts."""

    default_code = "payload_too_large"


class PeopleRefused(CountersignError):
    """This change of the people who may use the console is not allowed."""

    default_code = "people_refused"


class PersonNotFound(CountersignError):
    """No such person has a role there."""

    default_code = "person_not_found"


class ProviderSessionNotBound(CountersignError):
    """The session belongs to someone else, to another integration, or to the test mode."""

    default_code = "provider_session_not_bound"


class ProviderSessionNotFound(CountersignError):
    """The identity provider has no such session."""

    default_code = "provider_session_not_found"


class ProviderUnavailable(CountersignError):
    """The identity provider returned no usable response."""

    default_code = "provider_unavailable"


class RateLimited(CountersignError):
    """Too many requests."""

    default_code = "rate_limited"


class ReviewRefused(CountersignError):
    """This decision cannot make the buyer verified."""

    default_code = "review_refused"


class SecondPersonRequired(CountersignError):
    """Two people decide on the buyers of this account, and this is not a second one."""

    default_code = "second_person_required"


class SecretNotRepeated(CountersignError):
    """This was done before, and only who did it is given the secret in its response again."""

    default_code = "secret_not_repeated"


class SessionNotFound(CountersignError):
    """The person is not signed in with such a session."""

    default_code = "session_not_found"


class StorageUnavailable(CountersignError):
    """The database did not respond."""

    default_code = "storage_unavailable"


class TooManyWebhookEndpoints(CountersignError):
    """This account has the maximum number of webhook endpoints."""

    default_code = "too_many_webhook_endpoints"


class Unauthorized(CountersignError):
    """No API key was sent."""

    default_code = "unauthorized"


class UnknownSubject(CountersignError):
    """The acknowledgment, buyer, account or hold does not exist."""

    default_code = "unknown_subject"


class UnsupportedMediaType(CountersignError):
    """The request body must be sent with Content-Type: application/json."""

    default_code = "unsupported_media_type"


class VerificationMisconfigured(CountersignError):
    """The identity provider refuses the credentials of this account."""

    default_code = "verification_misconfigured"


class VerificationNotConfigured(CountersignError):
    """This account has no identity provider configured for live verification."""

    default_code = "verification_not_configured"


class WebhookEndpointDisabled(CountersignError):
    """The webhook endpoint is disabled, so nothing is sent to it."""

    default_code = "webhook_endpoint_disabled"


_ALL: Final = (
    AccountClosed,
    AccountDisabled,
    AccountExists,
    AccountNotFound,
    Blocked,
    CheckoutSessionClosed,
    ClearanceNotGranted,
    CursorExpired,
    Draining,
    EmptyInitials,
    Erased,
    EvidenceDamaged,
    EvidencePending,
    Forbidden,
    FulfilmentContradicted,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InitialsCountMismatch,
    InternalError,
    InvalidApiKey,
    InvalidClientToken,
    InvalidNoticeFile,
    InvalidRequest,
    KeyNotFound,
    KeyNotUsable,
    KeysRemain,
    LinkOnMachine,
    MethodNotAllowed,
    ModeMismatch,
    NotFound,
    NotGranted,
    NoticeIncomplete,
    NoticeNotFound,
    NoticeNotInForce,
    NoticeNotReviewed,
    NoticeVersionConflict,
    NoticeVersionMismatch,
    OnHold,
    OrderNotRefused,
    OrderReferenceMismatch,
    OrderReferenceMissing,
    OriginNotAllowed,
    OriginNotRegistered,
    OutcomeUnknown,
    Overloaded,
    OverrideLimitReached,
    OverrideNotAllowed,
    PasskeyRequired,
    PayloadTooLarge,
    PeopleRefused,
    PersonNotFound,
    ProviderSessionNotBound,
    ProviderSessionNotFound,
    ProviderUnavailable,
    RateLimited,
    ReviewRefused,
    SecondPersonRequired,
    SecretNotRepeated,
    SessionNotFound,
    StorageUnavailable,
    TooManyWebhookEndpoints,
    Unauthorized,
    UnknownSubject,
    UnsupportedMediaType,
    VerificationMisconfigured,
    VerificationNotConfigured,
    WebhookEndpointDisabled,
)

BY_CODE: Final[dict[str, type[CountersignError]]] = {e.default_code: e for e in _ALL}
