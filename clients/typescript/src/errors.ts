// Written by `make clients` from spec/openapi.json: do not edit.

import { CountersignError } from "./failure.js";

/** The account is closed. */
export class AccountClosed extends CountersignError {}

/** The operator of this service has disabled the account of this key. */
export class AccountDisabled extends CountersignError {}

/** An account with this name exists already. */
export class AccountExists extends CountersignError {}

/** The account does not exist. */
export class AccountNotFound extends CountersignError {}

/** Another program holds a lock of the database: nobody can write. */
export class Blocked extends CountersignError {}

/** The checkout session has ended. */
export class CheckoutSessionClosed extends CountersignError {}

/** This order was not cleared, so no fulfilment can be reported for it. */
export class ClearanceNotGranted extends CountersignError {}

/** Events as old as this cursor are no longer kept: some events after it may be deleted. */
export class CursorExpired extends CountersignError {}

/** This server is about to stop: it takes what comes, but send no more here. */
export class Draining extends CountersignError {}

/** One or more initials are blank. */
export class EmptyInitials extends CountersignError {}

/** The requested personal data was erased. */
export class Erased extends CountersignError {}

/** The stored data of this acknowledgment fails verification and is not returned. */
export class EvidenceDamaged extends CountersignError {}

/** The evidence is not sealed in the log yet. */
export class EvidencePending extends CountersignError {}

/** The API key lacks the scope that this operation needs. */
export class Forbidden extends CountersignError {}

/** An earlier report says otherwise, or the times are against the order of events. */
export class FulfilmentContradicted extends CountersignError {}

/** A request with this Idempotency-Key is still running. */
export class IdempotencyInProgress extends CountersignError {}

/** This Idempotency-Key was used with a different request body. */
export class IdempotencyKeyReused extends CountersignError {}

/** The number of initials differs from the number of lines of the notice. */
export class InitialsCountMismatch extends CountersignError {}

/** Something went wrong inside the service. */
export class InternalError extends CountersignError {}

/** The API key is not valid. */
export class InvalidApiKey extends CountersignError {}

/** The client token is not that of a checkout session. */
export class InvalidClientToken extends CountersignError {}

/** The notice file is not valid. */
export class InvalidNoticeFile extends CountersignError {}

/** The request is not well formed. */
export class InvalidRequest extends CountersignError {}

/** The key does not exist. */
export class KeyNotFound extends CountersignError {}

/** The key is revoked or expired. */
export class KeyNotUsable extends CountersignError {}

/** This person has made keys that work: say which of them end. */
export class KeysRemain extends CountersignError {}

/** This link is made on the machine of the service alone. */
export class LinkOnMachine extends CountersignError {}

/** This path does not support that method. */
export class MethodNotAllowed extends CountersignError {}

/** What the request names is not of the mode of the API key. */
export class ModeMismatch extends CountersignError {}

/** The path or object was not found: it does not exist, or this key may not see it. */
export class NotFound extends CountersignError {}

/** The database role of this server may not do this. */
export class NotGranted extends CountersignError {}

/** The text of this version is incomplete. */
export class NoticeIncomplete extends CountersignError {}

/** The notice was not found. */
export class NoticeNotFound extends CountersignError {}

/** No version of this notice is in force now. */
export class NoticeNotInForce extends CountersignError {}

/** The text of this notice has not been reviewed against the official text. */
export class NoticeNotReviewed extends CountersignError {}

/** This version is already published with a different text. */
export class NoticeVersionConflict extends CountersignError {}

/** The notice_version sent is not the version in force. */
export class NoticeVersionMismatch extends CountersignError {}

/** A legal hold prevents the erasure. */
export class OnHold extends CountersignError {}

/** This order is cleared or shipped, so there is no refusal to override. */
export class OrderNotRefused extends CountersignError {}

/** The order_reference sent is not that of the session or of the acknowledgment. */
export class OrderReferenceMismatch extends CountersignError {}

/** Live orders of this account have to be named by order_reference. */
export class OrderReferenceMissing extends CountersignError {}

/** The page that sent this request is not one that may. */
export class OriginNotAllowed extends CountersignError {}

/** The origin is not registered for this account. */
export class OriginNotRegistered extends CountersignError {}

/** The database did not confirm the change: it may have been stored. */
export class OutcomeUnknown extends CountersignError {}

/** The service is overloaded at the moment. */
export class Overloaded extends CountersignError {}

/** Keys of this account have made all manual overrides that they may within 24 hours. */
export class OverrideLimitReached extends CountersignError {}

/** The refusal of this order cannot be overridden. */
export class OverrideNotAllowed extends CountersignError {}

/** A passkey must have been used in the last five minutes for this operation. */
export class PasskeyRequired extends CountersignError {}

/** The request body is larger than this path accepts. */
export class PayloadTooLarge extends CountersignError {}

/** This change of the people who may use the console is not allowed. */
export class PeopleRefused extends CountersignError {}

/** No such person has a role there. */
export class PersonNotFound extends CountersignError {}

/** The session belongs to someone else, to another integration, or to the test mode. */
export class ProviderSessionNotBound extends CountersignError {}

/** The identity provider has no such session. */
export class ProviderSessionNotFound extends CountersignError {}

/** The identity provider returned no usable response. */
export class ProviderUnavailable extends CountersignError {}

/** Too many requests. */
export class RateLimited extends CountersignError {}

/** This decision cannot make the buyer verified. */
export class ReviewRefused extends CountersignError {}

/** Two people decide on the buyers of this account, and this is not a second one. */
export class SecondPersonRequired extends CountersignError {}

/** This was done before, and only who did it is given the secret in its response again. */
export class SecretNotRepeated extends CountersignError {}

/** The person is not signed in with such a session. */
export class SessionNotFound extends CountersignError {}

/** The database did not respond. */
export class StorageUnavailable extends CountersignError {}

/** This account has the maximum number of webhook endpoints. */
export class TooManyWebhookEndpoints extends CountersignError {}

/** No API key was sent. */
export class Unauthorized extends CountersignError {}

/** The acknowledgment, buyer, account or hold does not exist. */
export class UnknownSubject extends CountersignError {}

/** The request body must be sent with Content-Type: application/json. */
export class UnsupportedMediaType extends CountersignError {}

/** The identity provider refuses the credentials of this account. */
export class VerificationMisconfigured extends CountersignError {}

/** This account has no identity provider configured for live verification. */
export class VerificationNotConfigured extends CountersignError {}

/** The webhook endpoint is disabled, so nothing is sent to it. */
export class WebhookEndpointDisabled extends CountersignError {}

/** The class of each code. */
export const BY_CODE: Record<string, typeof CountersignError> = {
  account_closed: AccountClosed,
  account_disabled: AccountDisabled,
  account_exists: AccountExists,
  account_not_found: AccountNotFound,
  blocked: Blocked,
  checkout_session_closed: CheckoutSessionClosed,
  clearance_not_granted: ClearanceNotGranted,
  cursor_expired: CursorExpired,
  draining: Draining,
  empty_initials: EmptyInitials,
  erased: Erased,
  evidence_damaged: EvidenceDamaged,
  evidence_pending: EvidencePending,
  forbidden: Forbidden,
  fulfilment_contradicted: FulfilmentContradicted,
  idempotency_in_progress: IdempotencyInProgress,
  idempotency_key_reused: IdempotencyKeyReused,
  initials_count_mismatch: InitialsCountMismatch,
  internal_error: InternalError,
  invalid_api_key: InvalidApiKey,
  invalid_client_token: InvalidClientToken,
  invalid_notice_file: InvalidNoticeFile,
  invalid_request: InvalidRequest,
  key_not_found: KeyNotFound,
  key_not_usable: KeyNotUsable,
  keys_remain: KeysRemain,
  link_on_machine: LinkOnMachine,
  method_not_allowed: MethodNotAllowed,
  mode_mismatch: ModeMismatch,
  not_found: NotFound,
  not_granted: NotGranted,
  notice_incomplete: NoticeIncomplete,
  notice_not_found: NoticeNotFound,
  notice_not_in_force: NoticeNotInForce,
  notice_not_reviewed: NoticeNotReviewed,
  notice_version_conflict: NoticeVersionConflict,
  notice_version_mismatch: NoticeVersionMismatch,
  on_hold: OnHold,
  order_not_refused: OrderNotRefused,
  order_reference_mismatch: OrderReferenceMismatch,
  order_reference_missing: OrderReferenceMissing,
  origin_not_allowed: OriginNotAllowed,
  origin_not_registered: OriginNotRegistered,
  outcome_unknown: OutcomeUnknown,
  overloaded: Overloaded,
  override_limit_reached: OverrideLimitReached,
  override_not_allowed: OverrideNotAllowed,
  passkey_required: PasskeyRequired,
  payload_too_large: PayloadTooLarge,
  people_refused: PeopleRefused,
  person_not_found: PersonNotFound,
  provider_session_not_bound: ProviderSessionNotBound,
  provider_session_not_found: ProviderSessionNotFound,
  provider_unavailable: ProviderUnavailable,
  rate_limited: RateLimited,
  review_refused: ReviewRefused,
  second_person_required: SecondPersonRequired,
  secret_not_repeated: SecretNotRepeated,
  session_not_found: SessionNotFound,
  storage_unavailable: StorageUnavailable,
  too_many_webhook_endpoints: TooManyWebhookEndpoints,
  unauthorized: Unauthorized,
  unknown_subject: UnknownSubject,
  unsupported_media_type: UnsupportedMediaType,
  verification_misconfigured: VerificationMisconfigured,
  verification_not_configured: VerificationNotConfigured,
  webhook_endpoint_disabled: WebhookEndpointDisabled,
};
