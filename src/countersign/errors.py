"""Every refusal Countersign can give, in one tree.

    CountersignError
    ├── Refusal                 something a caller of the API did or met; each has a stable code
    │   ├── InvalidRequest, Unauthorized, InvalidApiKey, Forbidden, ModeMismatch, …
    │   └── InternalError
    └── OperatorError           something the person at the command line has to mend

An error carries a stable `code`, a message for people, and the remedy that the error page shows.
It knows no HTTP status: `http/errors.py` has the one table that maps them.
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
        """What to show to the caller."""
        return str(self.args[0])


class Refusal(CountersignError):
    """The request was refused."""


class Retryable(Refusal):
    """A refusal that the same request may outlive.

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
    """The request body is larger than this path takes."""

    code = "payload_too_large"
    remedy = (
        "Send a body of at most 64 KiB: no request of this API needs more. Only a message of an "
        "identity provider may have 256 KiB."
    )


class UnsupportedMediaType(Refusal):
    """The request body must be sent with Content-Type: application/json."""

    code = "unsupported_media_type"
    remedy = "Send `Content-Type: application/json` with the JSON body."


class MethodNotAllowed(Refusal):
    """This address does not take that method."""

    code = "method_not_allowed"
    remedy = "Use one of the methods in the `Allow` header of the answer."


class NotFound(Refusal):
    """There is nothing at this address, or nothing that this key may see: not found."""

    code = "not_found"
    remedy = (
        "Check the address and the identifier. What belongs to another account or to the other "
        "mode (test, live) is answered in the same way as what does not exist."
    )


# --- who is asking ------------------------------------------------------------------------------


class Unauthorized(Refusal):
    """No API key was sent."""

    code = "unauthorized"
    remedy = "Send `Authorization: Bearer <API_KEY>`."


class InvalidApiKey(Refusal):
    """The API key is not a working key."""

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
    """The field test_mode does not go with the mode of the API key."""

    code = "mode_mismatch"
    remedy = (
        "Send `test_mode: true` with a test key, and leave it out (or false) with a live key. A "
        "checkout can then never mistake a sandbox result for a real one."
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
        "Use a new key for every new request; repeat a key only to repeat the very same body. Make "
        "the key of a verification from its identity session, not from the order."
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
    """No one has reviewed the text of this notice against the official text."""

    code = "notice_not_reviewed"
    remedy = (
        "Live keys get only reviewed texts. The operator completes the text, publishes it and signs"
        " it off: `countersign notices review ID --version V --by WHO --against URL`."
    )


class NoticeNotInForce(Refusal):
    """No version of this notice is in force now."""

    code = "notice_not_in_force"
    remedy = (
        "Every version is withdrawn or not yet effective, or an injunction stops the notice: "
        "`GET /v1/notices/{notice_id}/versions` shows which. Stop selling what needs the notice. "
        "The operator publishes a new version or, after an injunction, reinstates one."
    )


class NoticeVersionMismatch(Refusal):
    """The notice_version sent is not the version in force."""

    code = "notice_version_mismatch"
    remedy = (
        "The text changed between showing and acknowledging. Fetch the notice again, show the "
        "new text, and collect the initials anew."
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
        "Sealing takes about a second. Ask again after `Retry-After` seconds, or send "
        "`Prefer: wait=5` to wait in one request. If it stays pending, the operator is told why: "
        "`countersign log status`. Nothing is lost meanwhile."
    )


class EvidenceDamaged(Refusal):
    """What is stored of this acknowledgment does not verify, so it is not handed out."""

    code = "evidence_damaged"
    remedy = (
        "Send the value of `X-Request-Id` to the operator: the log says under it what does not "
        "hold, and `countersign log check` what else. Nothing that you hold already is touched: "
        "proofs and bundles from before stay valid."
    )


class Erased(Refusal):
    """The personal data asked for was erased."""

    code = "erased"
    remedy = (
        "The record and its proof remain, and can be had without `disclose`. What was erased is "
        "gone for good."
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
    """The identity provider did not give a usable answer."""

    code = "provider_unavailable"
    remedy = "Nothing was written. Send the same request again after `Retry-After` seconds."


class ProviderSessionNotBound(Refusal):
    """The provider session belongs to someone else, or is one of the provider's test mode."""

    code = "provider_session_not_bound"
    remedy = (
        "Send the `subject_reference` with which your server made the session at the identity "
        "provider, and make sessions with the provider's live credentials."
    )


class VerificationMisconfigured(Refusal):
    """The identity provider refuses the credentials of this account."""

    code = "verification_misconfigured"
    remedy = (
        "The operator has to look at the credentials and their permissions, and set the corrected "
        "ones: `countersign accounts verification set ACCOUNT --provider NAME --credentials-file "
        "FILE --check`. The account's rules stay as they are."
    )


class WebhookRefused(Refusal):
    """The identity provider's message could not be authenticated."""

    code = "invalid_webhook"
    remedy = (
        "Only the identity provider sends here, and signs what it sends. Compare the webhook "
        "secret in the account's credentials with the one at the provider."
    )


class VerificationNotConfigured(Refusal):
    """This account has no identity provider configured for live verification."""

    code = "verification_not_configured"
    remedy = (
        "Live verification needs an identity provider. The operator sets it up: `countersign "
        "accounts verification set ACCOUNT --provider NAME --credentials-file FILE --check`. A "
        "test key with `test_mode: true` rehearses every outcome without one."
    )


class ClearanceNotGranted(Refusal):
    """This order was not cleared, so nothing can be reported as done for it."""

    code = "clearance_not_granted"
    remedy = (
        "`GET /v1/clearances/{clearance_id}` has the reasons. Ask for a new clearance when they no "
        "longer hold, and report what was done under its identifier."
    )


class ClearanceClosed(Refusal):
    """All that this order asked for was reported already."""

    code = "clearance_closed"
    remedy = "`GET /v1/clearances/{clearance_id}` shows what was reported, and when it was closed."


# --- events and webhooks ------------------------------------------------------------------------


class CursorExpired(Refusal):
    """Events as old as this cursor are no longer kept: some after it may be gone."""

    code = "cursor_expired"
    remedy = (
        "Start anew without `after`, and compare with what you have: events are kept for 90 days."
    )


class TooManyWebhookEndpoints(Refusal):
    """This account has as many webhook endpoints as it may have."""

    code = "too_many_webhook_endpoints"
    remedy = "There are at most 16 per account and mode: delete one that is no longer needed."


class WebhookEndpointDisabled(Refusal):
    """Nothing is sent to a webhook endpoint that is disabled."""

    code = "webhook_endpoint_disabled"
    remedy = (
        'Enable it first: `PATCH /v1/webhook_endpoints/{endpoint_id}` with `"disabled": false`.'
    )


# --- the service --------------------------------------------------------------------------------


class Overloaded(Retryable):
    """The service has more work than it can take at the moment."""

    code = "overloaded"
    remedy = "Nothing was written. Send the same request again after `Retry-After` seconds."


class StorageUnavailable(Retryable):
    """The database did not answer."""

    code = "storage_unavailable"
    remedy = (
        "Send the same request again after `Retry-After` seconds, with the same "
        "`Idempotency-Key`: whether the first one was stored cannot be told."
    )


class InternalError(Refusal):
    """Something went wrong inside the service."""

    code = "internal_error"
    remedy = (
        "Send the value of `X-Request-Id` to the operator: the log has the details under it. A "
        "retry with the same `Idempotency-Key` is safe."
    )


# --- the command line ---------------------------------------------------------------------------


class OperatorError(CountersignError):
    """The command could not be carried out."""

    code = "operator_error"


class InvalidConfiguration(OperatorError):
    """The configuration has mistakes."""

    code = "invalid_configuration"


class NotInitialised(OperatorError):
    """This deployment is not initialised: run `countersign init` first."""

    code = "not_initialised"


class WrongSecretKey(OperatorError):
    """The secret key file is not the one this database was initialised with."""

    code = "wrong_secret_key"


class WrongKeyEncryptionKey(OperatorError):
    """The key-encryption key is not the one that the stored data was encrypted under."""

    code = "wrong_key_encryption_key"


class DamagedValue(WrongKeyEncryptionKey):
    """A stored value does not open, although the key-encryption key is there."""

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
    """That cannot be done to the evidence."""

    code = "evidence_refused"


class AnchoringFailed(OperatorError):
    """A witness or time-stamp authority did not vouch for the checkpoint."""

    code = "anchoring_failed"


class BackupFailed(OperatorError):
    """The backup could not be made or restored."""

    code = "backup_failed"


class UnknownSubject(OperatorError):
    """There is no such acknowledgment, buyer, account or hold."""

    code = "unknown_subject"


class OnHold(OperatorError):
    """A legal hold keeps it from being erased."""

    code = "on_hold"


class HeadUnavailable(OperatorError):
    """The file of the last published checkpoint cannot be used."""

    code = "head_unavailable"


class DataDirectoryLocked(OperatorError):
    """Another Countersign server is running on this data directory."""

    code = "data_directory_locked"


class AddressInUse(OperatorError):
    """The address to listen on is taken."""

    code = "address_in_use"


class UnsupportedSqlite(OperatorError):
    """No SQLite new enough was found."""

    code = "unsupported_sqlite"


class InvalidNoticeFile(OperatorError):
    """The notice file is not valid."""

    code = "invalid_notice_file"


class NoticeVersionConflict(OperatorError):
    """This version is already published with other words."""

    code = "notice_version_conflict"


class NoticeIncomplete(OperatorError):
    """The text of this version is known to lack something."""

    code = "notice_incomplete"


class NoticeFileChanged(OperatorError):
    """The file of a published notice version has changed."""

    code = "notice_file_changed"


class UnknownNotice(OperatorError):
    """There is no such notice version."""

    code = "notice_not_found"


class UnknownAccount(OperatorError):
    """There is no such account."""

    code = "account_not_found"


class AccountExists(OperatorError):
    """An account with this name exists already."""

    code = "account_exists"


class UnknownKey(OperatorError):
    """There is no such key."""

    code = "key_not_found"


class KeyNotUsable(OperatorError):
    """The key is revoked or expired."""

    code = "key_not_usable"


class InvalidArgument(OperatorError):
    """An argument is not valid."""

    code = "invalid_argument"
