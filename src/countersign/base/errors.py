"""Every error that Countersign raises, in one tree.

    CountersignError
    ├── Refusal                 a request cannot be served; each has a stable code
    │   ├── InvalidRequest, Unauthorized, InvalidApiKey, Forbidden, ModeMismatch, …
    │   └── InternalError
    └── OperatorError           the person at the command line has to fix something

An error has a stable `code` and a message for people. A refusal also has its HTTP status and the
remedy that the page of errors shows; the remedies are in remedies.toml.
"""

import tomllib
from importlib.resources import files
from typing import ClassVar, Final

# The commands of the evidence raise these too, without the service.
from countersign_evidence.errors import CountersignError as CountersignError  # noqa: PLC0414
from countersign_evidence.errors import InvalidArgument as InvalidArgument  # noqa: PLC0414
from countersign_evidence.errors import OperatorError as OperatorError  # noqa: PLC0414

_REMEDIES: Final = tomllib.loads((files("countersign.base") / "remedies.toml").read_text("utf-8"))


class Refusal(CountersignError):
    """The request was refused."""

    status: ClassVar[int] = 500
    remedy: ClassVar[str] = ""

    def __init_subclass__(cls, code: str = "", status: int = 0) -> None:
        super().__init_subclass__(code)
        if status:
            cls.status = status
            cls.remedy = _REMEDIES[code]


class Retryable(Refusal):
    """A temporary refusal: the same request may succeed later.

    `retry_after` is in whole seconds, at least 1.
    """

    def __init__(self, message: str | None = None, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


# --- the request itself -------------------------------------------------------------------------


class InvalidRequest(Refusal, code="invalid_request", status=400):
    """The request is not well formed."""


class PayloadTooLarge(Refusal, code="payload_too_large", status=413):
    """The request body is larger than this path accepts."""


class UnsupportedMediaType(Refusal, code="unsupported_media_type", status=415):
    """The request body must be sent with Content-Type: application/json."""


class MethodNotAllowed(Refusal, code="method_not_allowed", status=405):
    """This path does not support that method."""

    allowed: bytes = b""
    """The value of the header `Allow`."""


class NotFound(Refusal, code="not_found", status=404):
    """The path or object was not found: it does not exist, or this key may not see it."""


# --- authentication -----------------------------------------------------------------------------


class Unauthorized(Refusal, code="unauthorized", status=401):
    """No API key was sent."""


class InvalidApiKey(Refusal, code="invalid_api_key", status=401):
    """The API key is not valid."""


class Forbidden(Refusal, code="forbidden", status=403):
    """The API key lacks the scope that this operation needs."""

    def __init__(self, message: str | None = None, *, scope: str) -> None:
        super().__init__(message or f"The API key lacks the scope {scope}.")
        self.scope = scope


class PasskeyRequired(Refusal, code="passkey_required", status=403):
    """A passkey must have been used in the last five minutes for this operation."""


class AccountDisabled(Refusal, code="account_disabled", status=403):
    """The operator of this service has disabled the account of this key."""


class ModeMismatch(Refusal, code="mode_mismatch", status=403):
    """What the request names is not of the mode of the API key."""


class InvalidClientToken(Refusal, code="invalid_client_token", status=401):
    """The client token is not that of a checkout session."""


class OriginNotAllowed(Refusal, code="origin_not_allowed", status=403):
    """The page that sent this request is not one that may."""


class RateLimited(Retryable, code="rate_limited", status=429):
    """Too many requests."""


# --- retrying -----------------------------------------------------------------------------------


class IdempotencyKeyReused(Refusal, code="idempotency_key_reused", status=422):
    """This Idempotency-Key was used with a different request body."""


class SecretNotRepeated(Refusal, code="secret_not_repeated", status=409):
    """This was done before, and only who did it is given the secret in its response again."""


class IdempotencyInProgress(Retryable, code="idempotency_in_progress", status=409):
    """A request with this Idempotency-Key is still running."""

    kept: object = None
    """What the act has found under the key, if it had ended: see `Idempotency.kept_instead`."""


# --- notices and acknowledgments ----------------------------------------------------------------


class NoticeNotFound(Refusal, code="notice_not_found", status=404):
    """The notice was not found."""


class NoticeNotReviewed(Refusal, code="notice_not_reviewed", status=409):
    """The text of this notice has not been reviewed against the official text."""


class NoticeNotInForce(Refusal, code="notice_not_in_force", status=409):
    """No version of this notice is in force now."""


class NoticeVersionMismatch(Refusal, code="notice_version_mismatch", status=409):
    """The notice_version sent is not the version in force."""


class OrderReferenceMismatch(Refusal, code="order_reference_mismatch", status=409):
    """The order_reference sent is not that of the session or of the acknowledgment."""


class OrderReferenceMissing(Refusal, code="order_reference_missing", status=422):
    """Live orders of this account have to be named by order_reference."""


class InitialsCountMismatch(Refusal, code="initials_count_mismatch", status=422):
    """The number of initials differs from the number of lines of the notice."""


class EmptyInitials(Refusal, code="empty_initials", status=422):
    """One or more initials are blank."""


# --- evidence -----------------------------------------------------------------------------------


class EvidencePending(Retryable, code="evidence_pending", status=409):
    """The evidence is not sealed in the log yet."""


class EvidenceDamaged(Refusal, code="evidence_damaged", status=409):
    """The stored data of this acknowledgment fails verification and is not returned."""


class Erased(Refusal, code="erased", status=410):
    """The requested personal data was erased."""


# --- buyers -------------------------------------------------------------------------------------


class ProviderSessionNotFound(Refusal, code="provider_session_not_found", status=422):
    """The identity provider has no such session."""


class ProviderUnavailable(Retryable, code="provider_unavailable", status=503):
    """The identity provider returned no usable response."""


class ProviderSessionNotBound(Refusal, code="provider_session_not_bound", status=422):
    """The session belongs to someone else, to another integration, or to the test mode."""


class VerificationMisconfigured(Refusal, code="verification_misconfigured", status=409):
    """The identity provider refuses the credentials of this account."""


class WebhookRefused(Refusal, code="invalid_webhook", status=400):
    """The identity provider's message could not be authenticated."""


class VerificationNotConfigured(Refusal, code="verification_not_configured", status=409):
    """This account has no identity provider configured for live verification."""


class ReviewRefused(Refusal, code="review_refused", status=409):
    """This decision cannot make the buyer verified."""


class SecondPersonRequired(Refusal, code="second_person_required", status=409):
    """Two people decide on the buyers of this account, and this is not a second one."""


class ClearanceNotGranted(Refusal, code="clearance_not_granted", status=409):
    """This order was not cleared, so no fulfilment can be reported for it."""


class OrderNotRefused(Refusal, code="order_not_refused", status=409):
    """This order is cleared or shipped, so there is no refusal to override."""


class OverrideNotAllowed(Refusal, code="override_not_allowed", status=409):
    """The refusal of this order cannot be overridden."""


class OverrideLimitReached(Refusal, code="override_limit_reached", status=409):
    """Keys of this account have made all manual overrides that they may within 24 hours."""


class FulfilmentContradicted(Refusal, code="fulfilment_contradicted", status=409):
    """An earlier report says otherwise, or the times are against the order of events."""


class CheckoutSessionClosed(Refusal, code="checkout_session_closed", status=409):
    """The checkout session has ended."""


class OriginNotRegistered(Refusal, code="origin_not_registered", status=409):
    """The origin is not registered for this account."""


# --- people ------------------------------------------------------------------------------------


class PeopleRefused(Refusal, code="people_refused", status=409):
    """This change of the people who may use the console is not allowed."""


class KeysRemain(Refusal, code="keys_remain", status=409):
    """This person has made keys that work: say which of them end."""


class LinkOnMachine(Refusal, code="link_on_machine", status=409):
    """This link is made on the machine of the service alone."""


class UnknownPerson(Refusal, code="person_not_found", status=404):
    """No such person has a role there."""


class UnknownSession(Refusal, code="session_not_found", status=404):
    """The person is not signed in with such a session."""


# --- events and webhooks ------------------------------------------------------------------------


class CursorExpired(Refusal, code="cursor_expired", status=410):
    """Events as old as this cursor are no longer kept: some events after it may be deleted."""


class TooManyWebhookEndpoints(Refusal, code="too_many_webhook_endpoints", status=409):
    """This account has the maximum number of webhook endpoints."""


class WebhookEndpointDisabled(Refusal, code="webhook_endpoint_disabled", status=409):
    """The webhook endpoint is disabled, so nothing is sent to it."""


# --- what staff do ------------------------------------------------------------------------------


class AccountExists(Refusal, code="account_exists", status=409):
    """An account with this name exists already."""


class AccountClosed(Refusal, code="account_closed", status=409):
    """The account is closed."""


class UnknownAccount(Refusal, code="account_not_found", status=404):
    """The account does not exist."""


class UnknownKey(Refusal, code="key_not_found", status=404):
    """The key does not exist."""


class KeyNotUsable(Refusal, code="key_not_usable", status=409):
    """The key is revoked or expired."""


class UnknownSubject(Refusal, code="unknown_subject", status=404):
    """The acknowledgment, buyer, account or hold does not exist."""


class NotGranted(Refusal, code="not_granted", status=409):
    """The database role of this server may not do this."""


class OnHold(Refusal, code="on_hold", status=409):
    """A legal hold prevents the erasure."""


class NoticeIncomplete(Refusal, code="notice_incomplete", status=409):
    """The text of this version is incomplete."""


class NoticeVersionConflict(Refusal, code="notice_version_conflict", status=409):
    """This version is already published with a different text."""


class InvalidNoticeFile(Refusal, code="invalid_notice_file", status=422):
    """The notice file is not valid."""


# --- the service --------------------------------------------------------------------------------


class Overloaded(Retryable, code="overloaded", status=503):
    """The service is overloaded at the moment."""


class Blocked(Retryable, code="blocked", status=503):
    """Another program holds a lock of the database: nobody can write."""


class Draining(Retryable, code="draining", status=503):
    """This server is about to stop: it takes what comes, but send no more here."""


class StorageUnavailable(Retryable, code="storage_unavailable", status=503):
    """The database did not respond."""


class OutcomeUnknown(Retryable, code="outcome_unknown", status=503):
    """The database did not confirm the change: it may have been stored."""


class InternalError(Refusal, code="internal_error", status=500):
    """Something went wrong inside the service."""


REFUSALS: Final = tuple(
    kind
    for kind in (*Refusal.__subclasses__(), *Retryable.__subclasses__())
    if kind is not Retryable
)
"""Every refusal there is: the catalogue of error codes."""


# --- the command line ---------------------------------------------------------------------------


class InvalidConfiguration(OperatorError, code="invalid_configuration"):
    """The configuration is not valid."""


class NotInitialised(OperatorError, code="not_initialised"):
    """No deployment is here. Is its disk mounted? Only to found a new one: `countersign init`."""


class DeploymentIncomplete(OperatorError, code="deployment_incomplete"):
    """Parts of a deployment are here, and others are missing: no new one is founded over it."""


class WrongSecretKey(OperatorError, code="wrong_secret_key"):
    """The secret key file is not the one this database was initialised with."""


class WrongKeyEncryptionKey(OperatorError, code="wrong_key_encryption_key"):
    """The key-encryption key is not the one that encrypted the stored data."""


class DamagedValue(WrongKeyEncryptionKey, code="damaged_value"):
    """A stored value cannot be decrypted, although the key-encryption key is available."""


class KeyRotationFailed(OperatorError, code="key_rotation_failed"):
    """The key-encryption key was not replaced."""


class SchemaMismatch(OperatorError, code="schema_mismatch"):
    """The database schema does not fit this release: run `countersign init` to upgrade it."""


class DatabasePermissionDenied(OperatorError, code="database_permission_denied"):
    """The role of COUNTERSIGN_DATABASE_URL may not do this."""


class SealingSuspended(OperatorError, code="sealing_suspended"):
    """Records are not sealed at the moment."""


class EvidenceRefused(OperatorError, code="evidence_refused"):
    """This operation is not allowed on the evidence."""


class AnchoringFailed(OperatorError, code="anchoring_failed"):
    """A witness or time-stamp authority did not sign the checkpoint."""


class BackupFailed(OperatorError, code="backup_failed"):
    """The backup could not be made or restored."""


class MoveFailed(OperatorError, code="move_failed"):
    """The database was not moved."""


class DatabaseMoved(OperatorError, code="database_moved"):
    """The data of this database is in another one, or on its way there."""


class TokenUnavailable(OperatorError, code="token_unavailable"):
    """The PKCS#11 token did not respond, or refused."""


class HeadUnavailable(OperatorError, code="head_unavailable"):
    """The file of the last published checkpoint cannot be used."""


class HeadsOverwritable(HeadUnavailable, code="heads_overwritable"):
    """The object store of the last published checkpoints replaces them without comparing."""


class DataDirectoryLocked(OperatorError, code="data_directory_locked"):
    """A server, or a command that must be alone, is running on this data directory."""


class PackageNotInstalled(OperatorError, code="package_not_installed"):
    """The command is part of a package that is not installed."""


class IdentityProviderRefused(OperatorError, code="identity_provider_refused"):
    """An identity provider of another package cannot be used."""


class AddressInUse(OperatorError, code="address_in_use"):
    """The address to listen on is already in use."""


class UnsupportedSqlite(OperatorError, code="unsupported_sqlite"):
    """The SQLite version is too old."""


class NoticeFileChanged(OperatorError, code="notice_file_changed"):
    """The file of a published notice version has changed."""
