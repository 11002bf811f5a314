// Written by `make clients` from spec/openapi.json: do not edit.
// Fields are called what they are called on the wire; times are RFC 3339 texts in UTC.

/** One of these words, or one of a later release. */
export type Open<Word extends string> = Word | (string & {});

/** One page of a list; `next_cursor` is null on the last one. */
export interface Page<Item> {
  data: Item[];
  next_cursor: string | null;
}

/** A notice of the registry, as seen by keys of this mode. */
export interface NoticeSummary {
  notice_id: string;
  title: string;
  jurisdiction: string;
  language: string;
  /** The version in force; null: no version is in force. */
  version: string | null;
  /** The number of published versions. */
  versions: number;
}

/** A notice to show. Show every bullet in full; the buyer initials each one separately. */
export interface Notice {
  notice_id: string;
  version: string;
  title: string;
  heading: string;
  /** The lines to initial; send one element of initials for each. */
  bullets: string[];
  /** What the law calls each of the bullets: show it with it, such as (A). */
  bullet_ids: string[];
  attestation_text: string;
  source_law: string;
  source_bill: string;
}

/** A published version and its status for keys of this mode. */
export interface NoticeVersion {
  notice_id: string;
  version: string;
  status: NoticeStatus;
  /** Hex SHA-256 of the published bytes. */
  digest: string;
  /** The number of bullets to initial. */
  lines: number;
  effective_from: string;
  published_at: string;
  reviewed_at: string | null;
  /** The official text that the version was compared with; null: not reviewed. */
  reviewed_against: string | null;
  source_url: string;
  /** Fields that are the operator's wording, not the law's. */
  editorial: string[];
  /** Known gaps in the text. */
  text_gaps: string[];
}

/** The status of a version in one mode at one time. */
export type NoticeStatus = Open<
  | "enjoined"
  | "in_force"
  | "not_reviewed"
  | "scheduled"
  | "superseded"
  | "withdrawn"
>;

/** What is sold, and to where, as far as rules depend on it. */
export interface Cart {
  /** The class of each product. One that no rule names is unknown. */
  product_classes: string[];
  ship_to: Destination;
  /** The state in which the buyer lives; left out: not known. */
  residence_state?: string | null | undefined;
  exemption?: Exemption | null | undefined;
}

/** Where an order is delivered. */
export interface Destination {
  /** Two-letter USPS code. One that is not in use is unknown. */
  state: string;
  /**
   * ZIP or ZIP+4. A parcel goes where it says: one of a state that a rule names counts as delivered
   * there, any other one that is not in `state` makes the state unknown.
   */
  zip?: string | null | undefined;
}

/** Why no notice would be needed, as you assert it. It changes nothing in the response. */
export interface Exemption {
  /** In your words. */
  reason: string;
  /** Where you keep the evidence. */
  evidence_reference?: string | null | undefined;
}

/** What an order needs, by the rules of the notices. */
export interface Requirements {
  /** Whether any notice is needed. */
  decision: Requirement;
  notices: NoticeRequirement[];
  identity: IdentityRequirement;
  /** The duties of a clearance for the order, each with a `type`. */
  obligations: Array<Record<string, unknown>>;
  warnings: RequirementWarning[];
  /** As you asserted it; it changed nothing. */
  exemption: Exemption | null;
  livemode: boolean;
}

/** Whether something is needed. Treat `unknown` like `required`. */
export type Requirement = Open<
  | "not_required"
  | "required"
  | "unknown"
>;

/** Whether an order needs a notice. */
export interface NoticeRequirement {
  notice_id: string;
  /** The version in force; null: none, so do not sell. */
  version: string | null;
  required: Requirement;
  /** null: the notice has no rule. */
  rule: RuleVersion | null;
  /** Whether the text and the rule were compared with the law. */
  reviewed: boolean;
  reasons: RequirementReason[];
}

/** The rule that an answer rests on. */
export interface RuleVersion {
  /** That of its notice. */
  id: string;
  version: string;
}

/** Why a notice is needed, or not, or why that is not known. */
export type RequirementReason = Open<
  | "delivered_to_state"
  | "no_rule"
  | "no_version_in_force"
  | "not_in_effect_yet"
  | "not_reviewed"
  | "product_class_not_named"
  | "product_class_unknown"
  | "residence_unknown"
  | "resident_of_state"
  | "state_not_named"
  | "state_unknown"
  | "zip_contradicts_state"
  | "zip_in_several_states"
>;

/** Whether the buyer has to be verified, and what has to be proved. */
export interface IdentityRequirement {
  required: Requirement;
  checks: RequiredCheck[];
  minimum_age: number | null;
  rules: RuleVersion[];
}

/** What of the buyer has to be proved. */
export type RequiredCheck = Open<
  | "address"
  | "age"
>;

/**
 * `not_sufficient`: the notice does not suffice for this class of products.
 *
 * `zip_contradicts_state`: the ZIP code of `ship_to` is not in its state, so the address is wrong.
 */
export interface RequirementWarning {
  type: WarningType;
  /** Of `not_sufficient`; else null. */
  notice_id: string | null;
  /** Of `not_sufficient`; else null. */
  product_class: string | null;
}

/** What else to know of an order. */
export type WarningType = Open<
  | "not_sufficient"
  | "zip_contradicts_state"
>;

/** The buyer's initials on every line of a notice. */
export interface AcknowledgmentRequest {
  /** One element per bullet of the notice, in order; none may be blank. */
  initials_per_line: string[];
  /** Your checkout session: random, not an order number. */
  session_id?: string | null | undefined;
  /** The buyer identifier. */
  cbid?: string | null | undefined;
  /**
   * What you call the order, such as its number: no name and no e-mail address. At most 64
   * characters, which are composed (Unicode NFC).
   */
  order_reference?: string | null | undefined;
  /** The buyer's IPv4 or IPv6 address. Left out: taken from the request. */
  ip?: string | null | undefined;
  /** The buyer's browser. Left out: the `User-Agent` of the request. */
  user_agent?: string | null | undefined;
  /** The version that was shown; refused unless it is in force now. */
  notice_version?: string | null | undefined;
}

/** The stored acknowledgment's identifier, and what was acknowledged. */
export interface AcknowledgmentReceipt {
  ack_id: string;
  notice_id: string;
  notice_version: string;
  /**
   * A signed promise: the record whose SHA-256 it names will be in the log by the time that it
   * states. Keep it: if the record is not there then, it proves so. Null if none of the log's keys
   * can be used at the moment.
   */
  receipt: string | null;
}

/** A stored acknowledgment. A field that is null was not given, or was erased. */
export interface Acknowledgment {
  ack_id: string;
  livemode: boolean;
  notice_id: string;
  notice_version: string;
  notice_version_source: VersionSource;
  notice_digest: string;
  initials_per_line: string[] | null;
  session_id: string | null;
  cbid: string | null;
  order_reference: string | null;
  ip: string | null;
  ip_source: Source | null;
  /** The IP address of the connection. */
  peer_ip: string | null;
  user_agent: string | null;
  user_agent_source: Source | null;
  /** Whether a longer header was shortened to 1,024 characters. */
  user_agent_truncated: boolean | null;
  capture: Capture;
  /** How it was made; null with `vendor_api`. */
  process: Process | null;
  accepted_at: string;
  /** The account's test clock; present only if it was ahead. */
  test_clock?: string;
  /** The newest clearance granted with this acknowledgment. */
  clearance_id: string | null;
  evidence: Evidence;
  erased_at: string | null;
  /**
   * Present and true only in a list: what is stored of the personal fields is damaged, and they are
   * null here. Reading this one alone is refused as `evidence_damaged`.
   */
  unreadable?: boolean;
}

/** Whether the caller named the version that was shown, or the version in force was assumed. */
export type VersionSource = Open<
  | "asserted"
  | "assumed"
>;

/** Where a fact was taken from. */
export type Source = Open<
  | "body"
  | "connection"
  | "header"
>;

/**
 * How the initials were captured, which determines what the record can prove.
 *
 * With `vendor_api` the vendor asserts what the buyer did; with `hosted` a client that had the
 * session's token sent the initials directly to this service.
 */
export type Capture = Open<
  | "hosted"
  | "vendor_api"
>;

/**
 * How a hosted acknowledgment was made.
 *
 * `script`, `viewport` and `claimed` are claims of the client, and so are `surface`, `origin` and
 * `rendered_digest` unless `surface` is `page`; the service observed the rest.
 */
export interface Process {
  /** The checkout session. */
  checkout_session: string;
  /** `page`: served by this service. `component`: an element in your page, as the client claims. */
  surface: string;
  /** The origin of the page around the component, as the client claims. */
  origin: string | null;
  /** Hex SHA-256 of the page as it was served, or of the component's file, as the client claims. */
  rendered_digest: string | null;
  /** The language of the interface. */
  locale: string;
  /** When the notice was first served. */
  opened_at: string;
  /** One for each line of the notice, in its order. */
  lines: Line[];
  /** When the review step was served; null: it was not. */
  reviewed_at: string | null;
  /** The sentence that was agreed to. */
  agreement: string;
  /** The sentence of consent to the electronic form. */
  consent: string;
  /** Whether JavaScript ran, as the client claims. */
  script: boolean | null;
  viewport: Viewport | null;
  /**
   * What tied the person to the session: `none`, `link`, `cookie`, `passkey`, `identity_session`.
   */
  binding: string;
  /** The record of the identity check it belongs to. */
  verification: string | null;
  /** What the client claims; the service did not observe it. */
  claimed: Claim[];
}

/** When the service served a line, and received initials for it. */
export interface Line {
  /** The last time before the initials. */
  shown_at: string;
  /** The first initials. */
  initialed_at: string;
  /** When others were last received, if they were. */
  changed_at: string | null;
  /** How often others were received. */
  changes: number;
  /**
   * `typed`: a request had the initials for this line. `adopted`: a request named this line, and
   * the service took the initials that it had for the first line. Left out by releases that took
   * typed ones alone.
   */
  method?: string;
}

/** The size of the window in CSS pixels, as the client claims. */
export interface Viewport {
  width: number;
  height: number;
}

/** An event that the client claims, with the time when the service received the claim. */
export interface Claim {
  /** Counted from 1. */
  line: number | null;
  /** Such as `shown` or `initialed`. */
  event: string;
  at: string;
}

/** The position of the record in the transparency log. */
export interface Evidence {
  /** `pending` until the log contains the record, usually within a second. */
  status: Open<"pending" | "sealed">;
  /** Origin of the log. */
  log: string | null;
  /** The number of the entry, counted from 0. */
  index: number | null;
}

/** A finished session at an identity provider, to be checked. */
export interface BuyerVerificationRequest {
  /** The session at the identity provider. Required with a live key. */
  provider_identity_session_id?: string | null | undefined;
  /** The order's destination: ZIP or ZIP+4. Required with a live key. */
  shipping_zip?: string | null | undefined;
  /** Must be true with a test key, and absent or false with a live key. */
  test_mode?: boolean | null | undefined;
  /** Your reference for the buyer; must equal the reference in the session. */
  subject_reference?: string | null | undefined;
}

/** The result of this verification. Only `status: verified` is positive. */
export interface BuyerVerification {
  cbid: string;
  status: BuyerStatus;
  expires_at: string | null;
  message: string;
  /** The reasons against it; present only if there is a reason. */
  reasons?: Reason[];
}

/** The verification status of a buyer. */
export type BuyerStatus = Open<
  | "expired"
  | "failed"
  | "pending"
  | "requires_input"
  | "revoked"
  | "verified"
>;

/** Why a verification does not count; docs/verification.md says what to do about each reason. */
export type Reason = Open<
  | "address_not_proved"
  | "age_below_minimum"
  | "age_not_proved"
  | "age_unknown"
  | "consent_declined"
  | "contact_unverified"
  | "details_mismatch"
  | "device_unsupported"
  | "document_expired"
  | "document_expiry_unknown"
  | "document_not_accepted"
  | "document_unreadable"
  | "document_unsupported"
  | "identity_failed"
  | "identity_not_proved"
  | "identity_requires_input"
  | "provider_session_not_found"
  | "revoked"
  | "selfie_mismatch"
  | "selfie_not_accepted"
  | "session_canceled"
  | "session_expired"
  | "session_not_bound"
  | "session_redacted"
  | "session_undecided"
  | "simulated_elsewhere"
  | "test_session"
  | "verification_misconfigured"
  | "verification_not_configured"
  | "zip_mismatch"
  | "zip_unknown"
>;

/** The present status of a buyer. */
export interface BuyerStatusAnswer {
  cbid: string;
  status: BuyerStatus;
  /**
   * When the buyer was verified. Of a verification that this account did not make, the day:
   * `T00:00:00Z`.
   */
  verified_at: string | null;
  /**
   * When the status becomes `expired` for this account; of a verification that this account did not
   * make, `T00:00:00Z` of that day.
   */
  expires_at: string | null;
  /**
   * Why this account may not rely on the verification. Only the account that made an attempt gets
   * the reasons of its failure, even if the result came later.
   */
  reasons?: Reason[];
}

/** A buyer in the review queue, with the last attempt to verify it. */
export interface BuyerReview {
  cbid: string;
  status: BuyerStatus;
  /** The identity provider; `sandbox` for a played attempt. */
  provider: string;
  /** The record of the attempt. */
  verification_id: string;
  attempted_at: string;
  /** The checkout session in which the attempt was made; null for any other attempt. */
  reference: string | null;
  /** The reasons against it; present only if there is a reason. */
  reasons?: Reason[];
}

/** A decision on a buyer in the review queue. */
export interface BuyerReviewRequest {
  decision: ReviewDecision;
  /** Why, such as the number of a case. Kept permanently: nothing personal. */
  reason: string;
  /** With `accept_zip`, required: the ZIP code to accept. */
  zip?: string | null | undefined;
  /**
   * With `accept_zip`, required: the kind of document that you checked, such as a utility bill.
   * Kept permanently: nothing personal.
   */
  document?: string | null | undefined;
}

/** What is decided on a buyer in the queue. */
export type ReviewDecision = Open<
  | "accept_zip"
  | "dismiss"
>;

/** Something that has happened. It names objects; only events about buyers have reasons. */
export interface Event {
  /** The `webhook-id` of its deliveries, and a cursor. */
  id: string;
  type: EventType;
  livemode: boolean;
  created_at: string;
  /**
   * Identifiers: `cbid`, `ack_id`, `clearance_id`, `checkout_session_id`, or those of a notice.
   * `cbid` is null once the buyer is erased. `buyer.failed` and `buyer.requires_input` also have
   * `reasons` for the account that made the attempt, with the codes of the verify response.
   */
  data: Record<string, string | Reason[] | null>;
  /** True: a test key requested the event; nothing has happened. */
  triggered?: boolean;
}

/** What happened. */
export type EventType = Open<
  | "acknowledgment.created"
  | "acknowledgment.erased"
  | "acknowledgment.sealed"
  | "buyer.expired"
  | "buyer.expiring"
  | "buyer.failed"
  | "buyer.requires_input"
  | "buyer.revoked"
  | "buyer.verified"
  | "checkout_session.blocked"
  | "checkout_session.cancelled"
  | "checkout_session.completed"
  | "checkout_session.declined"
  | "checkout_session.expired"
  | "clearance.closed"
  | "clearance.created"
  | "notice.published"
>;

/** A new webhook endpoint. */
export interface WebhookEndpointRequest {
  /** The https URL that gets the events. */
  url: string;
  /** A note for your own use. */
  description?: string | null | undefined;
  /** The event types to send. Left out: all, including types of later releases. */
  event_types?: EventType[] | null | undefined;
}

/** A webhook endpoint and its new secret, which is returned only once. */
export interface NewWebhookEndpoint {
  endpoint_id: string;
  livemode: boolean;
  url: string;
  description: string;
  /** null: all types. */
  event_types: EventType[] | null;
  created_at: string;
  disabled_at: string | null;
  /** `gone`: the endpoint returned 410. */
  disabled_reason: Disabled | null;
  secrets: Secret[];
  /** Verifies the `v1` signatures (HMAC-SHA256): `whsec_` and base64. */
  secret: string;
}

/** Why an endpoint is disabled. */
export type Disabled = Open<
  | "gone"
  | "requested"
>;

/** A secret that signs the messages to an endpoint. The newest one comes first. */
export interface Secret {
  /** Verifies the `v1a` signatures (Ed25519): `whpk_` and base64. */
  public_key: string;
  created_at: string;
  /** The time when the secret stops signing. */
  expires_at: string | null;
}

/** A webhook endpoint. */
export interface WebhookEndpoint {
  endpoint_id: string;
  livemode: boolean;
  url: string;
  description: string;
  /** null: all types. */
  event_types: EventType[] | null;
  created_at: string;
  disabled_at: string | null;
  /** `gone`: the endpoint returned 410. */
  disabled_reason: Disabled | null;
  secrets: Secret[];
}

/** The changes to a webhook endpoint. A field that is left out does not change. */
export interface WebhookEndpointChange {
  /** The https URL that gets the events. */
  url?: string | null | undefined;
  /** A note for your own use. */
  description?: string | null | undefined;
  /** The only event types to send from now on. */
  event_types?: EventType[] | null | undefined;
  /** Send all types again, in the place of `event_types`. */
  every_event_type?: boolean | null | undefined;
  disabled?: boolean | null | undefined;
}

/** The webhook endpoint is deleted. */
export interface DeletedWebhookEndpoint {
  endpoint_id: string;
  deleted: boolean;
}

/** How to rotate a secret. */
export interface SecretRotation {
  /** How long the old secret signs together with the new one. Left out: a day (86400 s). */
  overlap_seconds?: number | null | undefined;
}

/** The delivery of an event to an endpoint. */
export interface WebhookDelivery {
  event: Event;
  status: DeliveryStatus;
  next_attempt_at: string | null;
  attempts: WebhookAttempt[];
}

/** The status of a delivery. */
export type DeliveryStatus = Open<
  | "failed"
  | "pending"
  | "stopped"
  | "succeeded"
>;

/** One attempt to deliver an event. */
export interface WebhookAttempt {
  attempted_at: string;
  duration_ms: number;
  outcome: Outcome;
  http_status: number | null;
}

/** The result of one attempt. */
export type Outcome = Open<
  | "address_refused"
  | "delivered"
  | "refused"
  | "timed_out"
  | "unreachable"
>;

/** Which event to send again. */
export interface Resending {
  event_id: string;
}

/** The events to deliver again. */
export interface Recovery {
  /** Events since this time that were not delivered are sent again. */
  since: string;
}

/** Which example to send. */
export interface ExampleRequest {
  type: EventType;
}

/** An order to decide about. */
export interface ClearanceRequest {
  /** The acknowledgment of the notice. */
  ack_id: string;
  /** The buyer identifier. */
  cbid: string;
  /** The order's destination: ZIP or ZIP+4. */
  shipping_zip: string;
  /** Your checkout session, the same as in the acknowledgment. */
  session_id: string;
  /**
   * What you call the order, such as its number: no name and no e-mail address. At most 64
   * characters, which are composed (Unicode NFC). Left out: the acknowledgment's.
   */
  order_reference?: string | null | undefined;
  /**
   * The class of the product: `accessory`, `manufacturing_machine`, `barrel`, or another class that
   * a notice names. The account may require it for live orders.
   */
  product_class?: string | null | undefined;
  /** Must contain the ZIP code; the rest is not compared. */
  shipping_address?: ShippingAddress | null | undefined;
}

/** The address that the order ships to. */
export interface ShippingAddress {
  postal_code: string;
  line1?: string | null | undefined;
  line2?: string | null | undefined;
  city?: string | null | undefined;
  state?: string | null | undefined;
  country?: string | null | undefined;
}

/** Whether an order may ship: only if `cleared` is true. */
export interface ClearanceDecision {
  clearance_id: string;
  cleared: boolean;
  /** All reasons against the order, in a stable order; empty if it is cleared. */
  reasons: Array<Open<"acknowledgment_already_used" | "acknowledgment_erased" | "acknowledgment_not_found" | "acknowledgment_too_old" | "address_mismatch" | "address_not_proved" | "age_below_minimum" | "age_not_proved" | "age_unknown" | "buyer_expired" | "buyer_mismatch" | "buyer_not_found" | "buyer_not_verified" | "buyer_requires_input" | "buyer_revoked" | "consent_declined" | "contact_unverified" | "details_mismatch" | "device_unsupported" | "document_expired" | "document_expiry_unknown" | "document_not_accepted" | "document_unreadable" | "document_unsupported" | "identity_failed" | "identity_not_proved" | "identity_requires_input" | "notice_not_in_force" | "notice_not_sufficient" | "order_already_fulfilled" | "product_class_missing" | "provider_session_not_found" | "revoked" | "selfie_mismatch" | "selfie_not_accepted" | "session_canceled" | "session_expired" | "session_mismatch" | "session_not_bound" | "session_redacted" | "session_undecided" | "simulated_elsewhere" | "test_session" | "verification_misconfigured" | "verification_not_configured" | "zip_mismatch" | "zip_unknown">>;
  /** The duties for the order, each with a `type`. */
  obligations: Array<Record<string, unknown>>;
  expires_at: string | null;
  /** A JWS (EdDSA) that a warehouse can check offline; null: not cleared. */
  token: string | null;
}

/** A stored clearance. A field that is null was not given, or was erased. */
export interface Clearance {
  clearance_id: string;
  livemode: boolean;
  /** null: the value that was sent is not a valid identifier. */
  ack_id: string | null;
  cbid: string | null;
  session_id: string | null;
  order_reference: string | null;
  shipping_zip: string | null;
  shipping_address: Record<string, string> | null;
  product_class: string | null;
  cleared: boolean;
  reasons: Array<Open<"acknowledgment_already_used" | "acknowledgment_erased" | "acknowledgment_not_found" | "acknowledgment_too_old" | "address_mismatch" | "address_not_proved" | "age_below_minimum" | "age_not_proved" | "age_unknown" | "buyer_expired" | "buyer_mismatch" | "buyer_not_found" | "buyer_not_verified" | "buyer_requires_input" | "buyer_revoked" | "consent_declined" | "contact_unverified" | "details_mismatch" | "device_unsupported" | "document_expired" | "document_expiry_unknown" | "document_not_accepted" | "document_unreadable" | "document_unsupported" | "identity_failed" | "identity_not_proved" | "identity_requires_input" | "notice_not_in_force" | "notice_not_sufficient" | "order_already_fulfilled" | "product_class_missing" | "provider_session_not_found" | "revoked" | "selfie_mismatch" | "selfie_not_accepted" | "session_canceled" | "session_expired" | "session_mismatch" | "session_not_bound" | "session_redacted" | "session_undecided" | "simulated_elsewhere" | "test_session" | "verification_misconfigured" | "verification_not_configured" | "zip_mismatch" | "zip_unknown">>;
  /** The duties for the order, each with a `type`. */
  obligations: Array<Record<string, unknown>>;
  created_at: string;
  expires_at: string | null;
  /** The account's test clock; present only if it was ahead. `expires_at` refers to this clock. */
  test_clock?: string;
  /** null: not cleared, or no longer valid. */
  token: string | null;
  /** The reports about the order, oldest first. */
  fulfilments: Fulfilment[];
  closed_at: string | null;
  evidence: Evidence;
  erased_at: string | null;
}

/** A report of fulfilment. */
export interface Fulfilment {
  fulfilment_id: string;
  clearance_id: string;
  reported_at: string;
  carrier: string | null;
  tracking_number: string | null;
  shipped_at: string | null;
  delivered_at: string | null;
  adult_signature_obtained: boolean | null;
}

/** The fulfilment of an order; at least one field is required. */
export interface FulfilmentRequest {
  carrier?: string | null | undefined;
  tracking_number?: string | null | undefined;
  shipped_at?: string | null | undefined;
  delivered_at?: string | null | undefined;
  adult_signature_obtained?: boolean | null | undefined;
}

/** The stored report, and whether the order is closed. */
export interface FulfilmentReceipt {
  fulfilment_id: string;
  clearance_id: string;
  /** null: not every obligation is reported yet. */
  closed_at: string | null;
}

/** A link for one buyer and one order. */
export interface CheckoutSessionRequest {
  /**
   * Where the buyer goes afterwards: http or https, with only identifiers added to its query. With
   * live keys its origin must be registered.
   */
  return_url: string;
  /** Your checkout session: random, not an order number. */
  session_id: string;
  /**
   * What you call the order, such as its number: no name and no e-mail address. At most 64
   * characters, which are composed (Unicode NFC).
   */
  order_reference?: string | null | undefined;
  /** What is collected; left out: the acknowledgment. The identity comes first. */
  collect?: Collected[] | null | undefined;
  /** The notice to acknowledge. Required if an acknowledgment is collected. */
  notice_id?: string | null | undefined;
  /**
   * What is ordered, in the place of `collect` and `notice_id`: what the requirements say of it is
   * collected, the identity only if no `cbid` is given.
   */
  cart?: Cart | null | undefined;
  /**
   * The buyer identifier, if known. With the identity to collect, this buyer is asked for a new
   * check.
   */
  cbid?: string | null | undefined;
  /** The order's destination. With it, and a buyer, a clearance is decided. */
  shipping_zip?: string | null | undefined;
  /** The class of the product, such as `accessory`. */
  product_class?: string | null | undefined;
  /**
   * What the buyer's page shows of the order. It is kept encrypted with the session and deleted
   * with it: it is returned by nothing, and in no record or event.
   */
  order?: Order | null | undefined;
  /** Scheme, host and port of the page that embeds the component. */
  origin?: string | null | undefined;
  /** Language of the page; left out: the browser's. */
  locale?: Open<"en" | "es"> | null | undefined;
  /** How long the link works, 24 hours at most; left out: 30 minutes. */
  expires_in_seconds?: number | null | undefined;
}

/** What a session collects. */
export type Collected = Open<
  | "acknowledgment"
  | "identity"
>;

/** The order, as the buyer's page shows it. It is deleted with the session. */
export interface Order {
  lines: OrderLine[];
  /** ISO 4217. */
  currency?: string | null | undefined;
}

/** One line of the order, as the buyer knows it. */
export interface OrderLine {
  /** What is bought, in your words; shown as text. */
  text: string;
  /** What it costs, a decimal number; needs `currency`. */
  amount?: string | null | undefined;
}

/** A checkout session. Decide by `status`, never by where the buyer's browser returns. */
export interface CheckoutSession {
  checkout_session_id: string;
  livemode: boolean;
  status: Status;
  session_id: string | null;
  order_reference: string | null;
  collect: Collected[];
  notice_id: string | null;
  /** The buyer: as the identity check found, else as given. */
  cbid: string | null;
  /** The identity provider's session: of the newest attempt, if several. */
  provider_identity_session_id: string | null;
  /**
   * What came of the identity check: `verified`, `pending` while the provider decides, else why the
   * buyer has to try again; null: nothing yet.
   */
  identity_status: BuyerStatus | null;
  /** The acknowledgment, once there is one. */
  ack_id: string | null;
  /** The log's signed promise to have the record of the acknowledgment. */
  receipt: string | null;
  /** The decision about the order, where the facts sufficed for one. */
  clearance_id: string | null;
  /** That decision; null: none was made. */
  cleared: boolean | null;
  /** Why the order is not cleared, or the identity not verified: codes. */
  reasons: string[];
  /** As you asserted it for the cart; it changed nothing. */
  exemption: Exemption | null;
  return_url: string | null;
  origin: string | null;
  /** As you gave it; null: the browser's. */
  locale: string | null;
  /** The link for the buyer. Only in the response that created it. */
  url: string | null;
  /** For the component. Only in the response that created the session. */
  client_token: string | null;
  created_at: string;
  expires_at: string;
  ended_at: string | null;
  /**
   * Present and true only in a list: what is stored of this session is damaged, and null or empty
   * here.
   */
  unreadable?: boolean;
}

/** Where a session stands; all but `open` are ends. */
export type Status = Open<
  | "cancelled"
  | "completed"
  | "declined"
  | "expired"
  | "open"
>;

/** Nothing: an empty object. */
export type Cancellation = Record<string, never>;

/** A checkout session as the buyer's browser sees it. */
export interface CurrentCheckoutSession {
  checkout_session_id: string;
  livemode: boolean;
  status: Status;
  vendor: string;
  locale: string;
  steps: Collected[];
  /** What comes next; null: nothing. */
  step: Collected | null;
  reasons: string[];
  ack_id: string | null;
  /**
   * The buyer's own copy, for 30 days. Only in the response to the initials: null for others that
   * have the token.
   */
  copy_url: string | null;
  /** Where to go now; null while open. */
  return_url: string | null;
  expires_at: string;
  notice: ShownNotice | null;
  /** Texts of the interface, by their names. */
  words: Record<string, string>;
  /** The sentence that the buyer agrees to. */
  agreement: string | null;
  /** The consent to the electronic form. */
  consent: string | null;
}

/** The notice to show: all of it, exactly as it is. */
export interface ShownNotice {
  notice_id: string;
  version: string;
  /** SHA-256 of the notice bytes, hexadecimal. */
  digest: string;
  title: string;
  heading: string;
  bullets: NoticeLine[];
  attestation_text: string;
  language: string;
  text_gaps: string[];
  source_law: string;
  source_url: string;
}

/** A line to initial. */
export interface NoticeLine {
  id: string;
  text: string;
}

/** Claims of the browser; the record marks them as claims. */
export interface ClaimsRequest {
  events: Claimed[];
  viewport?: Viewport | null | undefined;
}

/** What the browser says that the buyer did. */
export interface Claimed {
  /** Counted from 1. */
  line?: number | null | undefined;
  event: ClaimedEvent;
}

/** What a browser says that the buyer did. */
export type ClaimedEvent = Open<
  | "changed"
  | "initialed"
  | "reviewed"
  | "shown"
>;

/** An empty object. */
export type Nothing = Record<string, never>;

/** The buyer's initials on every line, with what they agree to. */
export interface CurrentAcknowledgmentRequest {
  /** One element per bullet of the notice, in order; none may be blank. */
  initials_per_line: string[];
  /** The version that was shown. */
  notice_version: string;
  /** SHA-256 of the notice bytes that were shown. */
  notice_digest: string;
  /** Must be true: the sentence was agreed to. */
  agreement: boolean;
  /** Must be true: so was the electronic form. */
  consent: boolean;
  /** SHA-256 of the component's file, hexadecimal, if it is known. */
  surface_digest?: string | null | undefined;
}

/** The test clock of an account. */
export interface TestClock {
  /** The time that the clock shows and that the sandbox uses. */
  now: string;
  real_time: string;
  /** How far the clock is ahead; 0: the sandbox uses real time. */
  ahead_seconds: number;
}

/** How to advance a test clock: one of the two. */
export interface ClockAdvance {
  /** How far to advance. The clock cannot go back. */
  seconds?: number | null | undefined;
  /** The time to advance to; must be later than the clock's present time. */
  to?: string | null | undefined;
}

/** The new status of a sandbox buyer. */
export interface BuyerMove {
  /** A buyer in this account's sandbox. */
  cbid: string;
  status: BuyerStatus;
  /** Reasons for `failed` or `requires_input`. Left out: the usual one. */
  reasons?: Reason[] | null | undefined;
}

/** The event to write. */
export interface EventTrigger {
  type: EventType;
  /**
   * The object of the event: a `cbid`, `ack_id`, `clearance_id`, `checkout_session_id` or
   * `notice_id`. Left out: a made-up id.
   */
  object_id?: string | null | undefined;
}

/** The fault that verifications in the sandbox get; all null: no fault. */
export interface PlannedFault {
  fault: Fault | null;
  /** The number of remaining calls. null: no limit. */
  calls: number | null;
  delay_seconds: number | null;
}

/** A failure of an identity provider, or of the access to it. */
export type Fault = Open<
  | "misconfigured"
  | "rate_limited"
  | "server_error"
  | "session_not_bound"
  | "session_not_found"
  | "timeout"
  | "unintelligible"
>;

/** The fault that the next verifications get. */
export interface FaultRequest {
  fault: Fault;
  /** The number of calls. Left out: all calls, until cleared. */
  calls?: number | null | undefined;
  /** The response time of each call, at most 15 seconds. Left out: 0. */
  delay_seconds?: number | null | undefined;
}

/** The process responds. */
export interface Health {
  status: string;
}

/** Whether the process can do its work: the state of each dependency, by name. */
export interface Readiness {
  status: string;
  checks: Record<string, string>;
}

/** Test or live: the API key decides. */
export type Mode = Open<
  | "live"
  | "test"
>;
