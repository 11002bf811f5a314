// Written by `make clients` from spec/openapi.json: do not edit.
// Fields are called what they are called on the wire; times are RFC 3339 texts in UTC.

/** One of these words, or one of a later release. */
export type Open<Word extends string> = Word | (string & {});

/** One page of a list; `next_cursor` is null on the last one. */
export interface Page<Item> {
  data: Item[];
  next_cursor: string | null;
}

/** Test or live: the API key decides. */
export type Mode = Open<
  | "live"
  | "test"
>;

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

/**
 * Why no notice would be needed, as you assert it; nobody checks it with an authority.
 *
 * It changes the response only if the rule of a notice has an exemption of its `kind`.
 */
export interface Exemption {
  /** In your words. */
  reason: string;
  /** Where you keep the evidence. */
  evidence_reference?: string | null | undefined;
  /** As the rule of the notice calls it. */
  kind?: string | null | undefined;
  /** Of the licence. */
  number?: string | null | undefined;
  /** The last day of the licence, which ends at 24:00 UTC. */
  expires_on?: string | null | undefined;
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
  /** As you asserted it. It changed only what `exemption` of a notice says. */
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
  /** The one of the rule that the order qualifies for, by what you asserted; null: none. */
  exemption: ExemptionRule | null;
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
  | "exempt"
  | "exemption_expired"
  | "exemption_facts_missing"
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

/** Orders that the law exempts; it waives what it names and nothing else. */
export interface ExemptionRule {
  kind: string;
  /** The facts without which it does not apply. */
  needs: Array<Open<"evidence_reference" | "expires_on" | "number">>;
  /** All else that the notice and its rule ask stays. */
  waives: Array<Open<"address" | "age" | "notice">>;
  /** Where the operator found the exception. */
  source: string;
}

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
   * Present and true only in a list: the stored personal fields are damaged, and they are null
   * here. Reading this one alone is refused as `evidence_damaged`.
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
  surface: Open<"page" | "component">;
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
  /** What tied the person to the session. */
  binding: Open<"none" | "link" | "cookie" | "passkey" | "identity_session">;
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
  method?: Open<"typed" | "adopted">;
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
  | "verification_withdrawn"
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
  /** The account whose attempt it was. */
  account_id: string;
  attempted_at: string;
  /** The checkout session in which the attempt was made; null for any other attempt. */
  reference: string | null;
  /** The reasons against it; present only if there is a reason. */
  reasons?: Reason[];
  /**
   * Present only where two people decide, and one has: a second one has to decide the same, with
   * the same ZIP code.
   */
  proposal?: ReviewProposal;
}

/** What the first of two people has decided on a buyer. */
export interface ReviewProposal {
  decision: string;
  reason: string;
  document: string | null;
  /** The person (`per_…`): another person has to decide the same. */
  by: string;
  at: string;
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

/** A buyer after a decision; the same as of a verification if the decision is final. */
export interface ReviewedBuyer {
  cbid: string;
  status: BuyerStatus;
  expires_at: string | null;
  message: string;
  /** The reasons against it; present only if there is a reason. */
  reasons?: Reason[];
  /**
   * Present and true if nothing was decided yet: two people decide on the buyers of this account,
   * and someone else has to decide the same.
   */
  proposed?: boolean;
}

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
  /**
   * At most 1,024 bytes of what the endpoint returned with the last attempt, if it refused.
   *
   * For seven days, and until the account, or staff, erases any buyer.
   */
  response: string | null;
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
  /**
   * The class of the product: `accessory`, `manufacturing_machine`, `barrel`, or another class that
   * a published notice names. Any other is refused with 400, which lists the known ones. The
   * account may require it for live orders.
   */
  product_class?: string | null | undefined;
  /**
   * The classes of an order with several, in the place of `product_class`: the notice has to
   * suffice for each.
   */
  product_classes?: string[] | null | undefined;
  /** The acknowledgment of the notice. Required without an exemption. */
  ack_id?: string | null | undefined;
  /** The buyer identifier. */
  cbid: string;
  /** The order's destination: ZIP or ZIP+4. */
  shipping_zip: string;
  /** Your checkout session, the same as in the acknowledgment. */
  session_id: string;
  /**
   * What you call the order, such as its number: no name and no e-mail address. At most 64
   * characters, which are composed (Unicode NFC). Left out: the order is judged by its session
   * alone. The account may require it for live orders.
   */
  order_reference?: string | null | undefined;
  /** Must contain the ZIP code; the rest is not compared. */
  shipping_address?: ShippingAddress | null | undefined;
  /** Without `ack_id`: judged by the rules of the notices. With it: stored and shown. */
  exemption?: Exemption | null | undefined;
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
  /**
   * Whether the request named the order by `order_reference`; false: it was judged by its session
   * alone.
   */
  order_named: boolean;
  /** All reasons against the order, in a stable order; empty if it is cleared. */
  reasons: Array<Open<"acknowledgment_already_used" | "acknowledgment_erased" | "acknowledgment_not_found" | "acknowledgment_too_old" | "address_mismatch" | "address_not_proved" | "age_below_minimum" | "age_not_proved" | "age_unknown" | "buyer_expired" | "buyer_mismatch" | "buyer_not_found" | "buyer_not_verified" | "buyer_requires_input" | "buyer_revoked" | "consent_declined" | "contact_unverified" | "details_mismatch" | "device_unsupported" | "document_expired" | "document_expiry_unknown" | "document_not_accepted" | "document_unreadable" | "document_unsupported" | "exemption_expired" | "exemption_facts_missing" | "exemption_not_named" | "identity_failed" | "identity_not_proved" | "identity_requires_input" | "notice_not_in_force" | "notice_not_sufficient" | "order_already_fulfilled" | "product_class_missing" | "provider_session_not_found" | "refused_by_vendor" | "revoked" | "selfie_mismatch" | "selfie_not_accepted" | "session_canceled" | "session_expired" | "session_mismatch" | "session_not_bound" | "session_redacted" | "session_undecided" | "simulated_elsewhere" | "test_session" | "verification_misconfigured" | "verification_not_configured" | "verification_withdrawn" | "zip_mismatch" | "zip_unknown">>;
  /** The duties for the order, each with a `type`. */
  obligations: Array<Record<string, unknown>>;
  expires_at: string | null;
  /** A JWS (EdDSA) that a warehouse can check offline; null: not cleared, or shipped before. */
  token: string | null;
  /**
   * True: this order was reported as shipped, under this clearance. Nothing was decided anew, and
   * nothing more may leave on it.
   */
  already_shipped: boolean;
  /**
   * Present and true: it is refused still, and has a manual override. The reasons here are all
   * reasons of that refusal, `clearance_id` is its own, and `obligations` are the duties.
   */
  overridden?: boolean;
  /** Present with `overridden`. */
  override_id?: string;
}

/** A stored clearance. A field that is null was not given, or was erased. */
export interface Clearance {
  clearance_id: string;
  livemode: boolean;
  /** null: none was sent, or no valid identifier. */
  ack_id: string | null;
  cbid: string | null;
  session_id: string | null;
  order_reference: string | null;
  shipping_zip: string | null;
  shipping_address: Record<string, string> | null;
  /** null also for several classes. */
  product_class: string | null;
  /** All classes of the order. */
  product_classes: string[];
  /** As you asserted it. */
  exemption: Exemption | null;
  /**
   * The notices that it did not need, and why. Present only if it was cleared without an
   * acknowledgment.
   */
  exempt_from?: NoticeRequirement[];
  cleared: boolean;
  /** null: decided by a release that did not note it. */
  order_named: boolean | null;
  reasons: Array<Open<"acknowledgment_already_used" | "acknowledgment_erased" | "acknowledgment_not_found" | "acknowledgment_too_old" | "address_mismatch" | "address_not_proved" | "age_below_minimum" | "age_not_proved" | "age_unknown" | "buyer_expired" | "buyer_mismatch" | "buyer_not_found" | "buyer_not_verified" | "buyer_requires_input" | "buyer_revoked" | "consent_declined" | "contact_unverified" | "details_mismatch" | "device_unsupported" | "document_expired" | "document_expiry_unknown" | "document_not_accepted" | "document_unreadable" | "document_unsupported" | "exemption_expired" | "exemption_facts_missing" | "exemption_not_named" | "identity_failed" | "identity_not_proved" | "identity_requires_input" | "notice_not_in_force" | "notice_not_sufficient" | "order_already_fulfilled" | "product_class_missing" | "provider_session_not_found" | "refused_by_vendor" | "revoked" | "selfie_mismatch" | "selfie_not_accepted" | "session_canceled" | "session_expired" | "session_mismatch" | "session_not_bound" | "session_redacted" | "session_undecided" | "simulated_elsewhere" | "test_session" | "verification_misconfigured" | "verification_not_configured" | "verification_withdrawn" | "zip_mismatch" | "zip_unknown">>;
  /** The duties for the order, each with a `type`. */
  obligations: Array<Record<string, unknown>>;
  created_at: string;
  expires_at: string | null;
  /** The account's test clock; present only if it was ahead. `expires_at` refers to this clock. */
  test_clock?: string;
  /**
   * The payment that kept the acknowledgment; present only if it would be too old otherwise, or its
   * notice was not in force any more.
   */
  paid_at?: string;
  /** null: not cleared, or no longer valid. */
  token: string | null;
  /**
   * Present if the refusal has a manual override: `override_id` and `created_at`; `by`, with
   * `actor` (a person, or a key) and `reason` of each, and `claimed_user`, until they are erased.
   */
  override?: Record<string, unknown>;
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
  /**
   * Present and true if the report contradicts the order of events, and the vendor confirmed it.
   */
  order_of_events_confirmed?: boolean;
  /** Present only in the report of a payment. */
  paid_at?: string;
  /** Present if the report stands in the place of that earlier one. */
  corrects?: string;
}

/** The fulfilment of an order; at least one fact is required. */
export interface FulfilmentRequest {
  carrier?: string | null | undefined;
  tracking_number?: string | null | undefined;
  shipped_at?: string | null | undefined;
  delivered_at?: string | null | undefined;
  adult_signature_obtained?: boolean | null | undefined;
  /**
   * Time of payment, in a report of its own while a clearance is valid. It keeps the acknowledgment
   * for later decisions about the order.
   */
  paid_at?: string | null | undefined;
  /** Your order: another one than the clearance's is refused. */
  order_reference?: string | null | undefined;
  /**
   * True if this report is right, although the order was shipped before it was cleared, delivered
   * before it was shipped, or delivered without the signature that it requires. The evidence shows
   * that you confirmed it, and readers name it as odd.
   */
  confirm_order_of_events?: boolean | null | undefined;
  /**
   * The earlier report of the order that was wrong. This one stands in its place: state again what
   * was right in it.
   */
  corrects?: string | null | undefined;
}

/** The stored report, and whether the order is closed. */
export interface FulfilmentReceipt {
  fulfilment_id: string;
  clearance_id: string;
  /** null: not every obligation is reported yet. */
  closed_at: string | null;
}

/** Why a refusal is manually overridden. */
export interface OverrideRequest {
  /** Why. The audit keeps it permanently: nothing personal. */
  reason: string;
  /** With a key, required: your user who decided. It is kept as your claim. */
  claimed_user?: string | null | undefined;
  /** Your order: another one than the clearance's is refused. */
  order_reference?: string | null | undefined;
}

/** A refused order with a manual override. It is not cleared, and has no token. */
export interface Overridden {
  clearance_id: string;
  /** Always false. */
  cleared?: boolean;
  /** False: it is the proposal of the first of two people. */
  overridden: boolean;
  /** null: it is a proposal. */
  override_id: string | null;
  /** Those of the refusal. */
  reasons: Array<Open<"acknowledgment_already_used" | "acknowledgment_erased" | "acknowledgment_not_found" | "acknowledgment_too_old" | "address_mismatch" | "address_not_proved" | "age_below_minimum" | "age_not_proved" | "age_unknown" | "buyer_expired" | "buyer_mismatch" | "buyer_not_found" | "buyer_not_verified" | "buyer_requires_input" | "buyer_revoked" | "consent_declined" | "contact_unverified" | "details_mismatch" | "device_unsupported" | "document_expired" | "document_expiry_unknown" | "document_not_accepted" | "document_unreadable" | "document_unsupported" | "exemption_expired" | "exemption_facts_missing" | "exemption_not_named" | "identity_failed" | "identity_not_proved" | "identity_requires_input" | "notice_not_in_force" | "notice_not_sufficient" | "order_already_fulfilled" | "product_class_missing" | "provider_session_not_found" | "refused_by_vendor" | "revoked" | "selfie_mismatch" | "selfie_not_accepted" | "session_canceled" | "session_expired" | "session_mismatch" | "session_not_bound" | "session_redacted" | "session_undecided" | "simulated_elsewhere" | "test_session" | "verification_misconfigured" | "verification_not_configured" | "verification_withdrawn" | "zip_mismatch" | "zip_unknown">>;
  /** The duties for the order, each with a `type`. */
  obligations: Array<Record<string, unknown>>;
}

/** A link for one buyer and one order. */
export interface CheckoutSessionRequest {
  /**
   * The class of the product: `accessory`, `manufacturing_machine`, `barrel`, or another class that
   * a published notice names. Any other is refused with 400, which lists the known ones. The
   * account may require it for live orders.
   */
  product_class?: string | null | undefined;
  /**
   * The classes of an order with several, in the place of `product_class`: the notice has to
   * suffice for each.
   */
  product_classes?: string[] | null | undefined;
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
  /**
   * As you asserted it for the cart. It changed something only if `collect` lacks the
   * acknowledgment.
   */
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

/** A request with a key, and its outcome. */
export interface RequestView {
  at: string;
  key_id: string;
  status: number;
  /** Of the error; null: it succeeded. */
  code: string | null;
  /** As the response has it in `X-Request-Id`. */
  request_id: string;
  /** Method and route; identifiers of the path are not kept. */
  operation: string;
}

/** A name for an account. */
export interface NamedAccount {
  /** What staff call the account; buyers see it where no brand has a name. */
  name: string;
}

/** An account. */
export interface AccountView {
  /** The account. */
  account_id: string;
  name: string;
  created_at: string;
  status: Open<"active" | "closed" | "disabled">;
  /** After so many years its evidence ends; null: never. */
  evidence_years: number | null;
  /** How many people decide on a buyer who waits: 1, or 2. */
  reviewers: number;
  /** Within how many days it answers a person's request. */
  request_days: number;
  /** Until when whole responses of its identity providers are kept; null: for the decision. */
  responses_until: string | null;
}

/** An account, how buyers see it, and the pages that live sessions may embed or return to. */
export interface AccountDetails {
  /** The account. */
  account_id: string;
  name: string;
  created_at: string;
  status: Open<"active" | "closed" | "disabled">;
  /** After so many years its evidence ends; null: never. */
  evidence_years: number | null;
  /** How many people decide on a buyer who waits: 1, or 2. */
  reviewers: number;
  /** Within how many days it answers a person's request. */
  request_days: number;
  /** Until when whole responses of its identity providers are kept; null: for the decision. */
  responses_until: string | null;
  brand: BrandView;
  origins: string[];
}

/** How buyers see an account on hosted pages. */
export interface BrandView {
  name: string;
  color: string | null;
  /** Hex SHA-256 of the picture. */
  logo: string | null;
  contact_url: string | null;
  privacy_url: string | null;
  support_email: string | null;
  font: string | null;
  /** What buyers do: `typed` in each line, or `adopted_allowed`: typed once. */
  initials: string;
}

/** Settings of an account. */
export interface AccountChange {
  /** 2: what a first person decides, a second one makes final. */
  reviewers?: number | undefined;
  /** Within how many days it has to answer a person's request. */
  request_days?: number | undefined;
  /** Until when to keep whole responses of identity providers, from now on: only with a reason. */
  responses_until?: string | undefined;
  responses_reason?: string | undefined;
}

/** Nothing is to be said. */
export type NoWords = Record<string, never>;

/** What to change; an empty text removes a part. */
export interface BrandChange {
  name?: string | null | undefined;
  /** As #rrggbb. */
  color?: string | null | undefined;
  /** A PNG, JPEG or WebP picture of at most 6 KiB, in base64. */
  logo?: string | null | undefined;
  contact_url?: string | null | undefined;
  privacy_url?: string | null | undefined;
  support_email?: string | null | undefined;
  /** One of sans, serif, rounded. */
  font?: string | null | undefined;
  /** How they are taken: `typed` or `adopted_allowed`. */
  initials?: string | null | undefined;
}

/** A page's origin. */
export interface OriginOfAccount {
  /** Scheme, host and port. */
  origin: string;
}

/** An origin of an account, as browsers write it. */
export interface AccountOrigin {
  /** The account. */
  account_id: string;
  origin: string;
}

/** An account that is closed, or would be, and what that ends. */
export interface ClosedAccount {
  /** The account. */
  account_id: string;
  name: string;
  created_at: string;
  status: Open<"active" | "closed" | "disabled">;
  /** After so many years its evidence ends; null: never. */
  evidence_years: number | null;
  /** How many people decide on a buyer who waits: 1, or 2. */
  reviewers: number;
  /** Within how many days it answers a person's request. */
  request_days: number;
  /** Until when whole responses of its identity providers are kept; null: for the decision. */
  responses_until: string | null;
  keys: number;
  webhook_endpoints: number;
  origins: number;
  checkout_sessions: number;
  /** What stays for evidence. */
  records: number;
  records_with_personal_data: number;
}

/** What a new key may do, and for how long. */
export interface KeyRequest {
  /**
   * Left out: all that a vendor's server needs. Only a signed-in person with a fresh passkey gives
   * `clearances:override`.
   */
  scopes?: Scope[] | null | undefined;
  /** Left out: it works until it is revoked. */
  lifetime_seconds?: number | null | undefined;
  /** What it is for, such as the server that has it; nothing personal. */
  name?: string | null | undefined;
}

/** What a key may do. */
export type Scope = Open<
  | "accounts:manage"
  | "acks:create"
  | "acks:read"
  | "audit:read"
  | "buyers:read"
  | "buyers:review"
  | "buyers:verify"
  | "checkout_sessions:create"
  | "clearances:create"
  | "clearances:override"
  | "clearances:read"
  | "deployment:read"
  | "erasure:write"
  | "events:read"
  | "evidence:read"
  | "holds:manage"
  | "keys:manage"
  | "notices:manage"
  | "notices:read"
  | "orders:read"
  | "people:manage"
  | "retention:read"
  | "sandbox:manage"
  | "search:read"
  | "sessions:manage"
  | "staff:manage"
  | "webhooks:manage"
>;

/** A key of an account; the key itself is shown only when it is made. */
export interface KeyView {
  key_id: string;
  name: string | null;
  /** The account. */
  account_id: string;
  livemode: boolean;
  /** Its beginning and its end. */
  hint: string;
  scopes: Scope[];
  works: boolean;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  /** To the hour. */
  last_used_at: string | null;
  /** The key of which it is the successor. */
  replaces: string | null;
  /**
   * The person (`per_…`) who made it, or the key with which it was made; `machine`: it was made on
   * the machine.
   */
  made_by: string;
  /** The key itself: present only in the response that makes it. */
  key?: string;
}

/** How long the old key goes on to work. */
export interface KeyRotation {
  overlap_seconds?: number | undefined;
}

/** A published version: where it stands for keys of each mode, and its history. */
export interface NoticeLifecycle {
  notice_id: string;
  version: string;
  title: string;
  /** Hex SHA-256 of the bytes. */
  digest: string;
  lines: number;
  effective_from: string;
  test: NoticeStatus;
  live: NoticeStatus;
  text_gaps: string[];
  /** The versions of its `applies_to`. */
  rules: string[];
  events: LifecycleStep[];
}

/** What happened to a published version. */
export interface LifecycleStep {
  event_id: string;
  type: LifecycleEvent;
  at: string;
  details: Record<string, string>;
}

/** What can happen to a published version. */
export type LifecycleEvent = Open<
  | "enjoined"
  | "published"
  | "reinstated"
  | "reviewed"
  | "rule_published"
  | "withdrawn"
>;

/** What differs between two versions of a notice. */
export interface ComparedNotices {
  notice_id: string;
  old: string;
  new: string;
  differences: NoticeDifference[];
}

/** A part of two versions that is not the same. */
export interface NoticeDifference {
  /** A field, or a line. */
  part: string;
  /** null: it was not there. */
  before: string | null;
  /** null: it is gone. */
  after: string | null;
}

/** A version of a notice, with the members of a notice file. */
export interface NoticeDraft {
  notice: NoticeContent;
  /** Why nothing is missing, where a version with these lines has gaps. */
  gap_closed?: string | null | undefined;
}

/**
 * The content of one version, as the notice file gives it and the published bytes keep it.
 *
 * `effective_from` is a date (`2026-01-01`). A member that the file leaves out is left out of the
 * published bytes, so that members added by later releases change no digest.
 */
export interface NoticeContent {
  id: string;
  version: string;
  title: string;
  heading: string;
  bullets: Bullet[];
  attestation_text: string;
  source_law: string;
  source_bill: string;
  jurisdiction: string;
  language: string;
  effective_from: string;
  source_url: string;
  obligations?: unknown | undefined;
  retention_years?: number | null | undefined;
  editorial?: string[] | undefined;
  text_gaps?: string[] | undefined;
  applies_to?: AppliesTo | null | undefined;
}

/** One line of a notice; the buyer initials each. */
export interface Bullet {
  id: string;
  text: string;
}

/** A rule. What it is about is never left out: an empty list says that there is none. */
export interface AppliesTo {
  version: string;
  source: string;
  product_classes: string[];
  delivered_to: string[];
  residents_of: string[];
  identity_checks: RequiredCheck[];
  minimum_age?: number | null | undefined;
  exemptions?: ExemptionRule[] | undefined;
}

/** A notice that can be published, or the version that was published. */
export interface CheckedNotice {
  notice_id: string;
  version: string;
  /** Hex SHA-256 of the bytes. */
  digest: string;
  text_gaps: string[];
  /** Whether no such version was published before. */
  new: boolean;
  /** The version in force for live keys, or else the newest; null: none. */
  compared_with: string | null;
  differences: NoticeDifference[];
}

/** A comparison with the official text, word for word. */
export interface NoticeReview {
  version: string;
  /** Who compared it. */
  by: string;
  /** URL of the official text. */
  against: string;
  /** The version of `applies_to` that was compared with the law, too. */
  rule?: string | null | undefined;
  /** Why nothing is missing, where a version with these lines has gaps. */
  gap_closed?: string | null | undefined;
}

/** What was recorded of a version. The lifecycle shows what keys get from now on. */
export interface NoticeOutcome {
  event_id: string;
  type: LifecycleEvent;
  at: string;
  details: Record<string, string>;
  notice_id: string;
  version: string;
}

/** The version to take out of force, and why. */
export interface NoticeWithdrawal {
  version: string;
  reason: string;
  /** A court ordered it: the whole notice stops for live keys. */
  enjoined?: boolean | undefined;
}

/** The version that live keys get again, and the comparison with the official text. */
export interface NoticeReinstatement {
  version: string;
  /** Who compared it. */
  by: string;
  /** URL of the official text. */
  against: string;
}

/** A legal hold. */
export interface HoldRequest {
  /**
   * An order (ord_…) or anything of it (ack_…, clr_…, ful_…, ver_…, chk_…), which keeps the whole
   * order; a buyer (cbid_…) or an account (acct_…).
   */
  subject: string;
  /** Why, such as the number of a case. It is kept. */
  reason: string;
  /** The matter it is part of. */
  matter_id?: string | null | undefined;
}

/** A legal hold. */
export interface HoldView {
  hold_id: string;
  subject: string;
  reason: string;
  matter_id: string | null;
  placed_at: string;
  released_at: string | null;
}

/** The holds that ended, and what was to be erased and had waited for that. */
export interface ReleasedHolds {
  hold_ids: string[];
  /** Records and checkout sessions of the caller's own reach. */
  erased: string[];
  requested: WaitedErasure[];
}

/** A buyer who had asked to be erased, and what came of it. */
export interface WaitedErasure {
  cbid: string;
  outcome: Open<"erased" | "kept" | "on_hold" | "requested">;
}

/** A matter, and the orders that it holds from the beginning. */
export interface MatterRequest {
  name: string;
  orders?: HeldOrder[] | undefined;
}

/** What to hold, and why. */
export interface HeldOrder {
  /**
   * An order (ord_…) or anything of it (ack_…, clr_…, ful_…, ver_…, chk_…), which keeps the whole
   * order; a buyer (cbid_…) or an account (acct_…).
   */
  subject: string;
  /** Why, such as the number of a case. It is kept. */
  reason: string;
}

/** A matter; `GET /v1/holds?matter_id=` lists its holds. */
export interface MatterView {
  matter_id: string;
  name: string;
  opened_at: string;
  closed_at: string | null;
  /** How many holds of it last. */
  holds: number;
}

/** What to look for. */
export interface SearchRequest {
  /**
   * An identifier (ord_…, ack_…, chk_…, clr_…, ful_…, ovr_…, ver_…, rec_…, cbid_…), the vendor's
   * session, or an order reference.
   */
  query: string;
}

/** The orders that were found, newest first. */
export interface SearchResult {
  /** `identifier`, `buyer`, or `text`: the vendor's session or an order reference. */
  found_by: string;
  orders: FoundOrder[];
  /** Whether there are more than 50. */
  more: boolean;
}

/** An order: what is known of it, without personal values. */
export interface FoundOrder {
  /** It never changes, and stays after an erasure. */
  order_id: string;
  /** The account. */
  account_id: string;
  livemode: boolean;
  /** When the first act named it. */
  opened_at: string;
  /** Where it stands now. */
  state: OrderState;
  /** Why it was refused: stable codes. */
  reasons: string[];
  /** The one that counts, else the newest. */
  ack_id: string | null;
  cbid: string | null;
  /** That of the shipment, else the newest decision. */
  clearance_id: string | null;
  checkout_session_id: string | null;
  notice_id: string | null;
  notice_version: string | null;
  capture: string | null;
  cleared: boolean;
  /** A legal hold that keeps it. */
  hold_id: string | null;
  /**
   * What a complete order has and this one lacks: `acknowledgment`, `identity_check`, `clearance`,
   * `granted_clearance`, `fulfilment`, `delivery`, `adult_signature`, `seal`, `personal_data`.
   */
  missing: string[];
  /** The newest; `timeline` and `missing` are of these. */
  parts: OrderPart[];
  /** Whether it has more than 100 parts. */
  more_parts: boolean;
  timeline: OrderStep[];
}

/** Where an order stands. */
export type OrderState = Open<
  | "acknowledged"
  | "cleared"
  | "closed"
  | "delivered"
  | "open"
  | "overridden"
  | "refused"
  | "shipped"
  | "waiting_for_buyer"
  | "waiting_for_decision"
>;

/** A part of an order. */
export interface OrderPart {
  id: string;
  type: Open<"acknowledgment" | "checkout_session" | "clearance" | "fulfilment" | "override" | "verification">;
  at: string;
  /** Of a session, a verification or a clearance: how it stands. */
  status: string | null;
  /** Whether the log contains it; null: it is no record. */
  sealed: boolean | null;
  /** When its personal data went. */
  erased_at: string | null;
  /** The legal hold that keeps it. */
  hold_id: string | null;
}

/** What happened, and when. */
export interface OrderStep {
  at: string;
  /**
   * Such as `link_made`, `identity_check_started`, `identity_check_verified`, `identity_check_made`
   * (with a result that was erased), `acknowledged`, `cleared`, `not_cleared`, `overridden` (a
   * manual override), `fulfilment_reported`, `payment_reported`, `order_closed`,
   * `session_completed`, `erased`, `name_used_again` (an acknowledgment of another buyer, or after
   * a shipment).
   */
  what: string;
  id: string;
  /** Stable codes, where it was refused. */
  reasons: string[];
}

/** A buyer who asked at /buyer to be erased, and is not erased yet. */
export interface ErasureRequested {
  cbid: string;
  account_id: string | null;
  requested_at: string;
  /** The deadline, by the days that the account sets. */
  answer_by: string;
  /** What blocks it: the hold in words; null: it waits for retention. */
  prevented_by: string | null;
}

/** What would be erased. */
export interface ErasurePreviewRequest {
  /** An acknowledgment (ack_…), a verification (ver_…) or a buyer (cbid_…). */
  subject: string;
  /** Of a buyer: also the acknowledgments that name the buyer. */
  with_acknowledgments?: boolean | undefined;
}

/** What an erasure would erase now, and what legal holds keep. */
export interface ErasurePreview {
  subject: string;
  /** Whether it is a buyer, with all its identifiers. */
  buyer: boolean;
  /** Whose personal data goes. */
  records: string[];
  /** The same by kind, in words; empty: nothing. */
  erased: string;
  /** It is erased when the holds have been released. */
  kept: KeptRecord[];
  /** The same by kind, in words; empty: nothing. */
  still_kept: string;
  /** Why nothing of it can be erased at the moment: the hold in words. */
  prevented_by: string | null;
  /** The end of the longest retention period, if it is yet to come. */
  retention_ends_at: string | null;
  /** When the buyer asked for it at /buyer; null: not. */
  requested_at: string | null;
}

/** A record, or the checkout session of an order, that a legal hold keeps. */
export interface KeptRecord {
  /** A record, or a checkout session (chk_…). */
  record_id: string;
  hold_id: string;
  /** What the hold is on. */
  subject: string;
}

/** What is to be erased, and why. */
export interface ErasureOrder {
  /** An acknowledgment (ack_…), a verification (ver_…) or a buyer (cbid_…). */
  subject: string;
  /** Of a buyer: also the acknowledgments that name the buyer. */
  with_acknowledgments?: boolean | undefined;
  reason?: ErasureReason | undefined;
}

/** Why something was erased, as its record says. */
export type ErasureReason = Open<
  | "court_order"
  | "other"
  | "request"
  | "retention"
>;

/** What was erased: the facts for a letter. */
export interface ErasureDone {
  subject: string;
  /** Whether it is a buyer, with all its identifiers. */
  buyer: boolean;
  /** Whose personal data goes. */
  records: string[];
  /** The same by kind, in words; empty: nothing. */
  erased: string;
  /** It is erased when the holds have been released. */
  kept: KeptRecord[];
  /** The same by kind, in words; empty: nothing. */
  still_kept: string;
  erased_at: string;
  /**
   * Whether a file of the embedded database still has copies, until a server empties it within
   * minutes. Older backups of the keys always have.
   */
  copies_remain: boolean;
}

/** A record whose retention period has ended, or ends until the time that was asked for. */
export interface DueRecord {
  record_id: string;
  account_id: string;
  retention_ends_at: string;
  /** The hold that keeps it. */
  hold_id: string | null;
}

/** What was done or looked at. A buyer who was erased is not named any more. */
export interface AuditView {
  audit_id: string;
  at: string;
  /** The person (`per_…`), the key (`key_…`), or the user of the system. */
  actor: string;
  action: AuditAction;
  subject: string;
  details: Record<string, unknown>;
}

/** What was done. */
export type AuditAction = Open<
  | "account_closed"
  | "account_created"
  | "account_described"
  | "account_disabled"
  | "account_enabled"
  | "account_renamed"
  | "account_set"
  | "acknowledgment_shown"
  | "acknowledgments_exported"
  | "acknowledgments_listed"
  | "brand_changed"
  | "bundle_written"
  | "buyer_blocked"
  | "buyer_reinstated"
  | "buyer_review_dismissed"
  | "buyer_review_proposed"
  | "buyer_revoked"
  | "buyer_unblocked"
  | "buyer_zip_accepted"
  | "called"
  | "capture_process_stated"
  | "certificate_written"
  | "certification_drafted"
  | "clearance_key_added"
  | "clearance_key_withdrawn"
  | "clearance_overridden"
  | "clearance_override_proposed"
  | "clearance_settings_changed"
  | "dossier_written"
  | "erased"
  | "evidence_end_set"
  | "evidence_ended"
  | "evidence_shown"
  | "hold_placed"
  | "hold_released"
  | "key_created"
  | "key_reads"
  | "key_revoked"
  | "key_rotated"
  | "log_approvers_changed"
  | "log_change_approved"
  | "log_change_proposed"
  | "log_epoch_begun"
  | "log_key_rotated"
  | "log_recovered"
  | "matter_closed"
  | "matter_opened"
  | "notice_enjoined"
  | "notice_published"
  | "notice_reinstated"
  | "notice_reviewed"
  | "notice_withdrawn"
  | "operator_described"
  | "origin_added"
  | "origin_removed"
  | "person_came_in"
  | "person_invited"
  | "person_link_made"
  | "person_removed"
  | "person_sessions_ended"
  | "person_signed_in"
  | "person_signed_out"
  | "personal_data_shown"
  | "reviewers_set"
  | "searched"
  | "subject_exported"
  | "time_stamps_chosen"
  | "vault_rewrapped"
  | "vault_rotated"
  | "verification_provider_added"
  | "verification_provider_dropped"
  | "verification_settings_changed"
  | "verification_settings_removed"
  | "webhook_endpoint_changed"
  | "webhook_endpoint_created"
  | "webhook_endpoint_deleted"
  | "webhook_secret_rotated"
>;

/** The identity checks of a buyer, oldest first, with names, dates of birth and addresses. */
export interface BuyerEvidence {
  cbid: string;
  checks: CheckEvidence[];
}

/** The evidence of one identity check. */
export interface CheckEvidence {
  verification_id: string;
  account_id: string;
  provider: string;
  status: BuyerStatus;
  at: string;
  erased_at: string | null;
  /**
   * All that is known of the person; `answer.text` is the provider's response. null: it was erased.
   */
  content: Record<string, unknown> | null;
}

/** Why. */
export interface BuyerReason {
  /** Such as the number of a case. Kept: nothing personal. */
  reason: string;
}

/** Whether an account refuses the orders of a buyer. */
export interface BuyerBlock {
  cbid: string;
  livemode: boolean;
  blocked: boolean;
}

/** A buyer, as it stands now. */
export interface BuyerStanding {
  cbid: string;
  livemode: boolean;
  status: BuyerStatus;
}

/** How the deployment stands. */
export interface DeploymentStanding {
  /** When this was looked up. */
  at: string;
  version: string;
  public_url: string;
  database: string;
  logs: LogStanding[];
  promises: PromiseStanding[];
  /** Of live keys. */
  open_checkout_sessions: number;
}

/** The newest log of a mode. */
export interface LogStanding {
  livemode: boolean;
  /** Its origin. */
  log: string;
  /** How many entries it has. */
  size: number;
  /** When its newest checkpoint was made. */
  checkpoint_at: string;
  /** Why nothing is sealed; null: sealing goes on. On the machine: `countersign log recover`. */
  suspended: string | null;
}

/** What is owed to somebody, since when, and how long it may be. */
export interface PromiseStanding {
  promise: string;
  /** Tells several of one promise apart, such as the modes of logs. */
  of: string;
  /** Of the oldest; null: nothing is owed. */
  owed_since: string | null;
  severity: Severity;
  /** From then on it is work for today (`warning`). */
  ticket_after_seconds: number;
  /** From then on for now (`broken`); null: never. */
  page_after_seconds: number | null;
}

/** How bad it is; the best first. */
export type Severity = Open<
  | "broken"
  | "fine"
  | "missing"
  | "warning"
>;

/** What `countersign doctor` says of what can be judged inside a server. */
export interface DoctorFindings {
  severity: Severity;
  findings: FoundByDoctor[];
}

/** What a check has found. */
export interface FoundByDoctor {
  check: string;
  code: string;
  severity: Severity;
  found: string;
  /** "": nothing. */
  what_to_do: string;
}

/** Who is invited, and as what. */
export interface Invitation {
  /**
   * What the person is called; from staff also the id of a person (`per_…`) who gets one more role
   * and signs in as before.
   */
  name: string;
  role: Role;
}

/** What a person is there for. */
export type Role = Open<
  | "auditor"
  | "compliance"
  | "developer"
  | "owner"
  | "support"
>;

/** Who was invited, and the link by which the person comes in. */
export interface InvitedPerson {
  person_id: string;
  /** It works once. Give it to this person alone. null: the person signs in as before. */
  link: string | null;
  expires_at: string | null;
  name: string;
  role: Role;
}

/** A person with a role in one place. */
export interface PersonView {
  person_id: string;
  name: string;
  role: Role;
  granted_at: string;
  /** The person (`per_…`), or the user of the system. */
  granted_by: string;
  /** false: the person has not come in yet, or has `has_provider`. */
  has_passkey: boolean;
  /** true: the person signs in at the provider of OpenID Connect. */
  has_provider: boolean;
  /** Until when an unused link of the person works. */
  link_until: string | null;
  /** When the person signed in last, or used the passkey. */
  last_used_at: string | null;
  /** Those that the person made there, and that work. */
  keys: MadeKey[];
}

/** A key that a person made. */
export interface MadeKey {
  key_id: string;
  /** The account. */
  account_id: string;
  livemode: boolean;
  hint: string;
  works: boolean;
}

/** What ends with a person's role. */
export interface Removal {
  /**
   * Which of the keys in `keys` end, by their ids, or `all`; `[]`: none. Left out: it is refused if
   * there are any.
   */
  end_keys?: string[] | Open<"all"> | null | undefined;
}

/** A link by which a person comes in: present only in the response that makes it. */
export interface PersonLink {
  person_id: string;
  /** It works once. Give it to this person alone. null: the person signs in as before. */
  link: string | null;
  expires_at: string | null;
}

/** Sessions that were ended. */
export interface EndedView {
  person_id: string;
  /** How many. */
  sessions: number;
}

/** A browser in which the person is signed in. */
export interface SessionView {
  session_id: string;
  created_at: string;
  last_used_at: string;
  /** If nothing more is done in it. */
  ends_at: string;
  /** Whether this request was made with it. */
  is_this: boolean;
}

/** The alerts by e-mail of a person. */
export interface AlertsView {
  /** Whether the address is; null: there is none, and no alerts. */
  is_proved: boolean | null;
}

/** An address or its code; neither: alerts are turned off. */
export interface AlertsChange {
  /** Gets a code, and replaces the previous address. */
  email?: string | null | undefined;
  /** The code in the mail: turns alerts on. */
  code?: string | null | undefined;
}

/** How an account does in one mode. Nothing in it is personal. */
export interface Today {
  /** The account. */
  account_id: string;
  livemode: boolean;
  /** When this was counted. */
  at: string;
  /** A figure of so many stands for that many or more: nothing is counted further. */
  most: number;
  /** The last 24 hours, oldest first; the last one goes on. */
  hours: Figures[];
  /** The last 14 days, oldest first; the last one goes on. */
  days: Figures[];
  /** The most frequent first. */
  refusals: RefusedFor[];
  /**
   * Reasons are counted of the newest 1000 refusals: since when, if `days` has more. null: of all
   * of them.
   */
  refusals_since: string | null;
  /** Counted up to `most`, which stands for that many or more. */
  open_checkout_sessions: number;
  /** In the review queue. */
  buyers_waiting: number;
  /** Of webhooks: an attempt has failed, another one is to come. */
  deliveries_repeated: number;
  /** Of webhooks. */
  endpoints_disabled: number;
}

/** What happened in an hour or a day, of UTC. */
export interface Figures {
  begins_at: string;
  /**
   * Counted up to `most`, which stands for that many or more; null: it was not measured, as before
   * there was the account.
   */
  acknowledgments: number | null;
  /**
   * Counted up to `most`, which stands for that many or more; null: it was not measured, as before
   * there was the account.
   */
  cleared: number | null;
  /**
   * Counted up to `most`, which stands for that many or more; null: it was not measured, as before
   * there was the account.
   */
  refused: number | null;
  /**
   * Counted up to `most`, which stands for that many or more; null: it was not measured, as before
   * there was the account.
   */
  sessions_completed: number | null;
  /**
   * Counted up to `most`, which stands for that many or more; null: it was not measured, as before
   * there was the account.
   */
  sessions_declined: number | null;
  /**
   * Counted up to `most`, which stands for that many or more; null: it was not measured, as before
   * there was the account.
   */
  sessions_expired: number | null;
  /**
   * Counted up to `most`, which stands for that many or more; null: it was not measured, as before
   * there was the account.
   */
  buyers_verified: number | null;
  /**
   * Counted up to `most`, which stands for that many or more; null: it was not measured, as before
   * there was the account.
   */
  buyers_failed: number | null;
}

/** How often orders were refused for this reason; a decision may have several. */
export interface RefusedFor {
  reason: Open<"acknowledgment_already_used" | "acknowledgment_erased" | "acknowledgment_not_found" | "acknowledgment_too_old" | "address_mismatch" | "address_not_proved" | "age_below_minimum" | "age_not_proved" | "age_unknown" | "buyer_expired" | "buyer_mismatch" | "buyer_not_found" | "buyer_not_verified" | "buyer_requires_input" | "buyer_revoked" | "consent_declined" | "contact_unverified" | "details_mismatch" | "device_unsupported" | "document_expired" | "document_expiry_unknown" | "document_not_accepted" | "document_unreadable" | "document_unsupported" | "exemption_expired" | "exemption_facts_missing" | "exemption_not_named" | "identity_failed" | "identity_not_proved" | "identity_requires_input" | "notice_not_in_force" | "notice_not_sufficient" | "order_already_fulfilled" | "product_class_missing" | "provider_session_not_found" | "refused_by_vendor" | "revoked" | "selfie_mismatch" | "selfie_not_accepted" | "session_canceled" | "session_expired" | "session_mismatch" | "session_not_bound" | "session_redacted" | "session_undecided" | "simulated_elsewhere" | "test_session" | "verification_misconfigured" | "verification_not_configured" | "verification_withdrawn" | "zip_mismatch" | "zip_unknown">;
  /** In the time of `hours`. */
  last_hours: number;
  /** In the time of `days`. */
  last_days: number;
}
