"""Every error that Countersign raises, in one tree.

    CountersignError
    ├── Refusal                 a request cannot be served; each has a stable code
    │   ├── InvalidRequest, Unauthorized, InvalidApiKey, Forbidden, ModeMismatch, …
    │   └── InternalError
    └── OperatorError           the person at the command line has to fix something

An error has a stable `code`, a message for people, and the remedy that the error page shows. It has
no HTTP status: `http/errors.py` has the one table that maps codes to statuses.
"""

from typing import ClassVar


class CountersignError(Exception):
    """The root. `code` is stable; the first line of the docstring is the default message."""

    code: ClassVar[str] = "internal_error"
    remedy: ClassVar[str] = ""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").partition("\n")[0])

    @property
    def message(self) -> str:
        """The text to show to the caller."""
        return str(self.args[0])


class Refusal(CountersignError):
    """The request was refused."""


class Retryable(Refusal):
    """A temporary refusal: the same request may succeed later.

    `retry_after` is in whole seconds, at least 1.
    """

    def __init__(self, message: str | None = None, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


# --- the request itself -------------------------------------------------------------------------


class InvalidRequest(Refusal):
    """The request is not well formed."""

    code = "invalid_request"
    remedy = (
        "The message names the field, for example `$.initials_per_line[2]`. Correct it and send "
        "the request again. Unknown and repeated fields are refused so that a typo cannot "
        "silently lose evidence."
    )


class PayloadTooLarge(Refusal):
    """The request body is larger than this path accepts."""

    code = "payload_too_large"
    remedy = (
        "Send a body of at most 64 KiB. Only messages from identity providers may have up to "
        "256 KiB."
    )


class UnsupportedMediaType(Refusal):
    """The request body must be sent with Content-Type: application/json."""

    code = "unsupported_media_type"
    remedy = "Send `Content-Type: application/json` with the JSON body."


class MethodNotAllowed(Refusal):
    """This path does not support that method."""

    code = "method_not_allowed"
    remedy = "Use one of the methods in the `Allow` header of the response."


class NotFound(Refusal):
    """The path or object was not found: it does not exist, or this key may not see it."""

    code = "not_found"
    remedy = (
        "Check the path and the identifier. Objects of another account or of the other mode "
        "(test, live) get the same response as objects that do not exist."
    )


# --- authentication -----------------------------------------------------------------------------


class Unauthorized(Refusal):
    """No API key was sent."""

    code = "unauthorized"
    remedy = "Send `Authorization: Bearer <API_KEY>`."


class InvalidApiKey(Refusal):
    """The API key is not valid."""

    code = "invalid_api_key"
    remedy = (
        "The key is mistyped, unknown, expired or revoked. Ask the operator for a new one: "
        "`countersign keys create --account ACCOUNT --mode test|live`."
    )


class Forbidden(Refusal):
    """The API key lacks the scope that this operation needs."""

    code = "forbidden"
    remedy = (
        "The `WWW-Authenticate` header names the missing scope. Use a key that has it, or make "
        "one: `countersign keys create --account ACCOUNT --mode MODE --scope SCOPE`."
    )

    def __init__(self, message: str | None = None, *, scope: str) -> None:
        super().__init__(message or f"The API key lacks the scope {scope}.")
        self.scope = scope


class ModeMismatch(Refusal):
    """The field test_mode does not match the mode of the API key."""

    code = "mode_mismatch"
    remedy = (
        "Send `test_mode: true` with a test key, and leave it out (or false) with a live key. "
        "This keeps a checkout from mistaking a sandbox result for a real one."
    )


class RateLimited(Retryable):
    """Too many requests."""

    code = "rate_limited"
    remedy = "Wait for the number of seconds in `Retry-After`, then send the request again."


# --- retrying -----------------------------------------------------------------------------------


class IdempotencyKeyReused(Refusal):
    """This Idempotency-Key was used with a different request body."""

    code = "idempotency_key_reused"
    remedy = (
        "Use a new key for every new request; send a key again only with exactly the same body. "
        "Make the key of a verification from its identity session, not from the order."
    )


class IdempotencyInProgress(Retryable):
    """A request with this Idempotency-Key is still running."""

    code = "idempotency_in_progress"
    remedy = "Wait for the number of seconds in `Retry-After`, then send the same request again."


# --- notices and acknowledgments ----------------------------------------------------------------


class NoticeNotFound(Refusal):
    """The notice was not found."""

    code = "notice_not_found"
    remedy = "`GET /v1/notices` lists the notices, `GET /v1/notices/{notice_id}/versions` versions."


class NoticeNotReviewed(Refusal):
    """The text of this notice has not been reviewed against the official text."""

    code = "notice_not_reviewed"
    remedy = (
        "Live keys only get reviewed texts. The operator completes the text, publishes it and "
        "marks it as reviewed: `countersign notices review ID --version V --by WHO --against "
        "URL`."
    )


class NoticeNotInForce(Refusal):
    """No version of this notice is in force now."""

    code = "notice_not_in_force"
    remedy = (
        "Every version is withdrawn or not yet in effect, or an injunction stops the notice: "
        "`GET /v1/notices/{notice_id}/versions` shows which. Stop selling the products that "
        "need the notice. The operator publishes a new version or, after an injunction, "
        "reinstates one."
    )


class NoticeVersionMismatch(Refusal):
    """The notice_version sent is not the version in force."""

    code = "notice_version_mismatch"
    remedy = (
        "The text changed after you showed it. Fetch the notice again, show the new text, and "
        "collect the initials again."
    )


class InitialsCountMismatch(Refusal):
    """The number of initials differs from the number of lines of the notice."""

    code = "initials_count_mismatch"
    remedy = "Send one element per element of the notice's `bullets`, in the same order."


class EmptyInitials(Refusal):
    """One or more initials are blank."""

    code = "empty_initials"
    remedy = (
        "The message names the lines (counted from 1). Ask the buyer for initials on each of "
        "them. Spaces, invisible characters and lone combining marks count as blank."
    )


# --- evidence -----------------------------------------------------------------------------------


class EvidencePending(Retryable):
    """The evidence is not sealed in the log yet."""

    code = "evidence_pending"
    remedy = (
        "Sealing takes about a second. Send the request again after `Retry-After` seconds, or "
        "send `Prefer: wait=5` to wait for up to 5 seconds. If the evidence stays pending, the "
        "operator finds the reason with `countersign log status`. Nothing is lost."
    )


class EvidenceDamaged(Refusal):
    """The stored data of this acknowledgment fails verification and is not returned."""

    code = "evidence_damaged"
    remedy = (
        "Send the value of `X-Request-Id` to the operator. The log entry with that id says what "
        "is damaged; `countersign log check` checks everything. Proofs and bundles that you "
        "already have stay valid."
    )


class Erased(Refusal):
    """The requested personal data was erased."""

    code = "erased"
    remedy = (
        "The record and its proof remain: request them without `disclose`. Erased data cannot "
        "be restored."
    )


# --- buyers -------------------------------------------------------------------------------------


class ProviderSessionNotFound(Refusal):
    """The identity provider has no such session."""

    code = "provider_session_not_found"
    remedy = (
        "Send the identifier of a session at the provider that this account is configured for. "
        "Nothing was written."
    )


class ProviderUnavailable(Retryable):
    """The identity provider returned no usable response."""

    code = "provider_unavailable"
    remedy = "Nothing was written. Send the same request again after `Retry-After` seconds."


class ProviderSessionNotBound(Refusal):
    """The session belongs to someone else, to another integration, or to the test mode."""

    code = "provider_session_not_bound"
    remedy = (
        "Send the `subject_reference` that your server used to create the session at the "
        "identity provider. Create sessions with the provider's live credentials."
    )


class VerificationMisconfigured(Refusal):
    """The identity provider refuses the credentials of this account."""

    code = "verification_misconfigured"
    remedy = (
        "The operator has to check the credentials and their permissions, and set corrected "
        "ones: `countersign accounts verification set ACCOUNT --provider NAME "
        "--credentials-file FILE --check`. The command does not change the account's rules."
    )


class WebhookRefused(Refusal):
    """The identity provider's message could not be authenticated."""

    code = "invalid_webhook"
    remedy = (
        "Only the identity provider sends messages to this path, and it signs them. Compare the "
        "webhook secret in the account's credentials with the one at the provider."
    )


class VerificationNotConfigured(Refusal):
    """This account has no identity provider configured for live verification."""

    code = "verification_not_configured"
    remedy = (
        "Live verification needs an identity provider. The operator sets it up: `countersign "
        "accounts verification set ACCOUNT --provider NAME --credentials-file FILE --check`. A "
        "test key with `test_mode: true` can simulate every outcome without one."
    )


class ClearanceNotGranted(Refusal):
    """This order was not cleared, so no fulfilment can be reported for it."""

    code = "clearance_not_granted"
    remedy = (
        "`GET /v1/clearances/{clearance_id}` returns the reasons. Request a new clearance when "
        "they no longer apply, and report the fulfilment with its identifier."
    )


class ClearanceClosed(Refusal):
    """Everything that this order requires was already reported."""

    code = "clearance_closed"
    remedy = (
        "`GET /v1/clearances/{clearance_id}` shows what was reported, and when the clearance "
        "was closed."
    )


# --- events and webhooks ------------------------------------------------------------------------


class CursorExpired(Refusal):
    """Events as old as this cursor are no longer kept: some events after it may be deleted."""

    code = "cursor_expired"
    remedy = (
        "Start again without `after`, and compare with the events that you have: events are "
        "kept for 90 days."
    )


class TooManyWebhookEndpoints(Refusal):
    """This account has the maximum number of webhook endpoints."""

    code = "too_many_webhook_endpoints"
    remedy = "At most 16 are allowed per account and mode: delete one that is no longer needed."


class WebhookEndpointDisabled(Refusal):
    """The webhook endpoint is disabled, so nothing is sent to it."""

    code = "webhook_endpoint_disabled"
    remedy = (
        'Enable it first: `PATCH /v1/webhook_endpoints/{endpoint_id}` with `"disabled": false`.'
    )


# --- the service --------------------------------------------------------------------------------


class Overloaded(Retryable):
    """The service is overloaded at the moment."""

    code = "overloaded"
    remedy = "Nothing was written. Send the same request again after `Retry-After` seconds."


class StorageUnavailable(Retryable):
    """The database did not respond."""

    code = "storage_unavailable"
    remedy = (
        "Send the same request again after `Retry-After` seconds, with the same "
        "`Idempotency-Key`: the first one may have been stored."
    )


class InternalError(Refusal):
    """Something went wrong inside the service."""

    code = "internal_error"
    remedy = (
        "Send the value of `X-Request-Id` to the operator, who finds the details in the log "
        "with it. A retry with the same `Idempotency-Key` is safe."
    )


# --- the command line ---------------------------------------------------------------------------


class OperatorError(CountersignError):
    """The command failed."""

    code = "operator_error"


class InvalidConfiguration(OperatorError):
    """The configuration is not valid."""

    code = "invalid_configuration"


class NotInitialised(OperatorError):
    """This deployment is not initialised: run `countersign init` first."""

    code = "not_initialised"


class WrongSecretKey(OperatorError):
    """The secret key file is not the one this database was initialised with."""

    code = "wrong_secret_key"


class WrongKeyEncryptionKey(OperatorError):
    """The key-encryption key is not the one that encrypted the stored data."""

    code = "wrong_key_encryption_key"


class DamagedValue(WrongKeyEncryptionKey):
    """A stored value cannot be decrypted, although the key-encryption key is available."""

    code = "damaged_value"


class KeyRotationFailed(OperatorError):
    """The key-encryption key was not replaced."""

    code = "key_rotation_failed"


class SchemaMismatch(OperatorError):
    """The database schema does not fit this release: run `countersign init` to upgrade it."""

    code = "schema_mismatch"


class DatabasePermissionDenied(OperatorError):
    """The role of COUNTERSIGN_DATABASE_URL may not do this."""

    code = "database_permission_denied"


class SealingSuspended(OperatorError):
    """Records are not sealed at the moment."""

    code = "sealing_suspended"


class EvidenceRefused(OperatorError):
    """This operation is not allowed on the evidence."""

    code = "evidence_refused"


class AnchoringFailed(OperatorError):
    """A witness or time-stamp authority did not sign the checkpoint."""

    code = "anchoring_failed"


class BackupFailed(OperatorError):
    """The backup could not be made or restored."""

    code = "backup_failed"


class UnknownSubject(OperatorError):
    """The acknowledgment, buyer, account or hold does not exist."""

    code = "unknown_subject"


class OnHold(OperatorError):
    """A legal hold prevents the erasure."""

    code = "on_hold"


class HeadUnavailable(OperatorError):
    """The file of the last published checkpoint cannot be used."""

    code = "head_unavailable"


class DataDirectoryLocked(OperatorError):
    """Another Countersign server is running on this data directory."""

    code = "data_directory_locked"


class AddressInUse(OperatorError):
    """The address to listen on is already in use."""

    code = "address_in_use"


class UnsupportedSqlite(OperatorError):
    """The SQLite version is too old."""

    code = "unsupported_sqlite"


class InvalidNoticeFile(OperatorError):
    """The notice file is not valid."""

    code = "invalid_notice_file"


class NoticeVersionConflict(OperatorError):
    """This version is already published with a different text."""

    code = "notice_version_conflict"


class NoticeIncomplete(OperatorError):
    """The text of this version is incomplete."""

    code = "notice_incomplete"


class NoticeFileChanged(OperatorError):
    """The file of a published notice version has changed."""

    code = "notice_file_changed"


class UnknownNotice(OperatorError):
    """The notice version does not exist."""

    code = "notice_not_found"


class UnknownAccount(OperatorError):
    """The account does not exist."""

    code = "account_not_found"


class AccountExists(OperatorError):
    """An account with this name exists already."""

    code = "account_exists"


class UnknownKey(OperatorError):
    """The key does not exist."""

    code = "key_not_found"


class KeyNotUsable(OperatorError):
    """The key is revoked or expired."""

    code = "key_not_usable"


class InvalidArgument(OperatorError):
    """An argument is not valid."""

    code = "invalid_argument"
