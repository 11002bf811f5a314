"""What operations take and return.

Written by `make clients` from spec/openapi.json: do not edit.

Times are in UTC. A set of words, such as `BuyerStatus`, may grow: results have them as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from countersign_client.call import Result

Mode: TypeAlias = Literal["live", "test"]
"""Test or live: the API key decides."""

NoticeStatus: TypeAlias = Literal[
    "enjoined", "in_force", "not_reviewed", "scheduled", "superseded", "withdrawn"
]
"""The status of a version in one mode at one time."""

Requirement: TypeAlias = Literal["not_required", "required", "unknown"]
"""Whether something is needed. Treat `unknown` like `required`."""

RequirementReason: TypeAlias = Literal[
    "delivered_to_state",
    "exempt",
    "exemption_expired",
    "exemption_facts_missing",
    "no_rule",
    "no_version_in_force",
    "not_in_effect_yet",
    "not_reviewed",
    "product_class_not_named",
    "product_class_unknown",
    "residence_unknown",
    "resident_of_state",
    "state_not_named",
    "state_unknown",
    "zip_contradicts_state",
    "zip_in_several_states",
]
"""Why a notice is needed, or not, or why that is not known."""

RequiredCheck: TypeAlias = Literal["address", "age"]
"""What of the buyer has to be proved."""

WarningType: TypeAlias = Literal["not_sufficient", "zip_contradicts_state"]
"""What else to know of an order."""

VersionSource: TypeAlias = Literal["asserted", "assumed"]
"""Whether the caller named the version that was shown, or the version in force was assumed."""

Source: TypeAlias = Literal["body", "connection", "header"]
"""Where a fact was taken from."""

Capture: TypeAlias = Literal["hosted", "vendor_api"]
"""How the initials were captured, which determines what the record can prove.

With `vendor_api` the vendor asserts what the buyer did; with `hosted` a client that had the
session's token sent the initials directly to this service.
"""

BuyerStatus: TypeAlias = Literal[
    "expired", "failed", "pending", "requires_input", "revoked", "verified"
]
"""The verification status of a buyer."""

Reason: TypeAlias = Literal[
    "address_not_proved",
    "age_below_minimum",
    "age_not_proved",
    "age_unknown",
    "consent_declined",
    "contact_unverified",
    "details_mismatch",
    "device_unsupported",
    "document_expired",
    "document_expiry_unknown",
    "document_not_accepted",
    "document_unreadable",
    "document_unsupported",
    "identity_failed",
    "identity_not_proved",
    "identity_requires_input",
    "provider_session_not_found",
    "revoked",
    "selfie_mismatch",
    "selfie_not_accepted",
    "session_canceled",
    "session_expired",
    "session_not_bound",
    "session_redacted",
    "session_undecided",
    "simulated_elsewhere",
    "test_session",
    "verification_misconfigured",
    "verification_not_configured",
    "verification_withdrawn",
    "zip_mismatch",
    "zip_unknown",
]
"""Why a verification does not count; docs/verification.md says what to do about each reason."""

ReviewDecision: TypeAlias = Literal["accept_zip", "dismiss"]
"""What is decided on a buyer in the queue."""

EventType: TypeAlias = Literal[
    "acknowledgment.created",
    "acknowledgment.erased",
    "acknowledgment.sealed",
    "buyer.expired",
    "buyer.expiring",
    "buyer.failed",
    "buyer.requires_input",
    "buyer.revoked",
    "buyer.verified",
    "checkout_session.blocked",
    "checkout_session.cancelled",
    "checkout_session.completed",
    "checkout_session.declined",
    "checkout_session.expired",
    "clearance.closed",
    "clearance.created",
    "notice.published",
]
"""What happened."""

Disabled: TypeAlias = Literal["gone", "requested"]
"""Why an endpoint is disabled."""

DeliveryStatus: TypeAlias = Literal["failed", "pending", "stopped", "succeeded"]
"""The status of a delivery."""

Outcome: TypeAlias = Literal["address_refused", "delivered", "refused", "timed_out", "unreachable"]
"""The result of one attempt."""

Collected: TypeAlias = Literal["acknowledgment", "identity"]
"""What a session collects."""

Status: TypeAlias = Literal["cancelled", "completed", "declined", "expired", "open"]
"""Where a session stands; all but `open` are ends."""

ClaimedEvent: TypeAlias = Literal["changed", "initialed", "reviewed", "shown"]
"""What a browser says that the buyer did."""

Fault: TypeAlias = Literal[
    "misconfigured",
    "rate_limited",
    "server_error",
    "session_not_bound",
    "session_not_found",
    "timeout",
    "unintelligible",
]
"""A failure of an identity provider, or of the access to it."""

Scope: TypeAlias = Literal[
    "accounts:manage",
    "acks:create",
    "acks:read",
    "audit:read",
    "buyers:read",
    "buyers:review",
    "buyers:verify",
    "checkout_sessions:create",
    "clearances:create",
    "clearances:override",
    "clearances:read",
    "deployment:read",
    "erasure:write",
    "events:read",
    "evidence:read",
    "holds:manage",
    "keys:manage",
    "notices:manage",
    "notices:read",
    "orders:read",
    "people:manage",
    "retention:read",
    "sandbox:manage",
    "search:read",
    "sessions:manage",
    "staff:manage",
    "webhooks:manage",
]
"""What a key may do."""

LifecycleEvent: TypeAlias = Literal[
    "enjoined", "published", "reinstated", "reviewed", "rule_published", "withdrawn"
]
"""What can happen to a published version."""

OrderState: TypeAlias = Literal[
    "acknowledged",
    "cleared",
    "closed",
    "delivered",
    "open",
    "overridden",
    "refused",
    "shipped",
    "waiting_for_buyer",
    "waiting_for_decision",
]
"""Where an order stands."""

ErasureReason: TypeAlias = Literal["court_order", "other", "request", "retention"]
"""Why something was erased, as its record says."""

AuditAction: TypeAlias = Literal[
    "account_closed",
    "account_created",
    "account_described",
    "account_disabled",
    "account_enabled",
    "account_renamed",
    "account_set",
    "acknowledgment_shown",
    "acknowledgments_exported",
    "acknowledgments_listed",
    "brand_changed",
    "bundle_written",
    "buyer_blocked",
    "buyer_reinstated",
    "buyer_review_dismissed",
    "buyer_review_proposed",
    "buyer_revoked",
    "buyer_unblocked",
    "buyer_zip_accepted",
    "called",
    "capture_process_stated",
    "certificate_written",
    "certification_drafted",
    "clearance_key_added",
    "clearance_key_withdrawn",
    "clearance_overridden",
    "clearance_override_proposed",
    "clearance_settings_changed",
    "dossier_written",
    "erased",
    "evidence_end_set",
    "evidence_ended",
    "evidence_shown",
    "hold_placed",
    "hold_released",
    "key_created",
    "key_reads",
    "key_revoked",
    "key_rotated",
    "log_approvers_changed",
    "log_change_approved",
    "log_change_proposed",
    "log_epoch_begun",
    "log_key_rotated",
    "log_recovered",
    "matter_closed",
    "matter_opened",
    "notice_enjoined",
    "notice_published",
    "notice_reinstated",
    "notice_reviewed",
    "notice_withdrawn",
    "operator_described",
    "origin_added",
    "origin_removed",
    "person_came_in",
    "person_invited",
    "person_link_made",
    "person_removed",
    "person_sessions_ended",
    "person_signed_in",
    "person_signed_out",
    "personal_data_shown",
    "reviewers_set",
    "searched",
    "subject_exported",
    "time_stamps_chosen",
    "vault_rewrapped",
    "vault_rotated",
    "verification_provider_added",
    "verification_provider_dropped",
    "verification_settings_changed",
    "verification_settings_removed",
    "webhook_endpoint_changed",
    "webhook_endpoint_created",
    "webhook_endpoint_deleted",
    "webhook_secret_rotated",
]
"""What was done."""

Severity: TypeAlias = Literal["broken", "fine", "missing", "warning"]
"""How bad it is; the best first."""

Role: TypeAlias = Literal["auditor", "compliance", "developer", "owner", "support"]
"""What a person is there for."""


class CartInput(TypedDict):
    """What is sold, and to where, as far as rules depend on it."""

    product_classes: Sequence[str]
    """The class of each product. One that no rule names is unknown."""

    ship_to: DestinationInput

    residence_state: NotRequired[str | None]
    """The state in which the buyer lives; left out: not known."""

    exemption: NotRequired[ExemptionInput | None]


class DestinationInput(TypedDict):
    """Where an order is delivered."""

    state: str
    """Two-letter USPS code. One that is not in use is unknown."""

    zip: NotRequired[str | None]
    """ZIP or ZIP+4. A parcel goes where it says: one of a state that a rule names counts as
    delivered there, any other one that is not in `state` makes the state unknown.
    """


class ExemptionInput(TypedDict):
    """Why no notice would be needed, as you assert it; nobody checks it with an authority.

    It changes the response only if the rule of a notice has an exemption of its `kind`.
    """

    reason: str
    """In your words."""

    evidence_reference: NotRequired[str | None]
    """Where you keep the evidence."""

    kind: NotRequired[str | None]
    """As the rule of the notice calls it."""

    number: NotRequired[str | None]
    """Of the licence."""

    expires_on: NotRequired[str | None]
    """The last day of the licence, which ends at 24:00 UTC."""


class ExemptionRuleInput(TypedDict):
    """Orders that the law exempts; it waives what it names and nothing else."""

    kind: str

    needs: Sequence[Literal["evidence_reference", "expires_on", "number"]]
    """The facts without which it does not apply."""

    waives: Sequence[Literal["address", "age", "notice"]]
    """All else that the notice and its rule ask stays."""

    source: str
    """Where the operator found the exception."""


class ViewportInput(TypedDict):
    """The size of the window in CSS pixels, as the client claims."""

    width: int

    height: int


class ShippingAddressInput(TypedDict):
    """The address that the order ships to."""

    postal_code: str

    line1: NotRequired[str | None]

    line2: NotRequired[str | None]

    city: NotRequired[str | None]

    state: NotRequired[str | None]

    country: NotRequired[str | None]


class OrderInput(TypedDict):
    """The order, as the buyer's page shows it. It is deleted with the session."""

    lines: Sequence[OrderLineInput]

    currency: NotRequired[str | None]
    """ISO 4217."""


class OrderLineInput(TypedDict):
    """One line of the order, as the buyer knows it."""

    text: str
    """What is bought, in your words; shown as text."""

    amount: NotRequired[str | None]
    """What it costs, a decimal number; needs `currency`."""


class ClaimedInput(TypedDict):
    """What the browser says that the buyer did."""

    line: NotRequired[int | None]
    """Counted from 1."""

    event: ClaimedEvent


class NoticeContentInput(TypedDict):
    """The content of one version, as the notice file gives it and the published bytes keep it.

    `effective_from` is a date (`2026-01-01`). A member that the file leaves out is left out of
    the published bytes, so that members added by later releases change no digest.
    """

    id: str

    version: str

    title: str

    heading: str

    bullets: Sequence[BulletInput]

    attestation_text: str

    source_law: str

    source_bill: str

    jurisdiction: str

    language: str

    effective_from: str

    source_url: str

    obligations: NotRequired[Any | None]

    retention_years: NotRequired[int | None]

    editorial: NotRequired[Sequence[str] | None]

    text_gaps: NotRequired[Sequence[str] | None]

    applies_to: NotRequired[AppliesToInput | None]


class BulletInput(TypedDict):
    """One line of a notice; the buyer initials each."""

    id: str

    text: str


class AppliesToInput(TypedDict):
    """A rule. What it is about is never left out: an empty list says that there is none."""

    version: str

    source: str

    product_classes: Sequence[str]

    delivered_to: Sequence[str]

    residents_of: Sequence[str]

    identity_checks: Sequence[RequiredCheck]

    minimum_age: NotRequired[int | None]

    exemptions: NotRequired[Sequence[ExemptionRuleInput] | None]


class HeldOrderInput(TypedDict):
    """What to hold, and why."""

    subject: str
    """An order (ord_…) or anything of it (ack_…, clr_…, ful_…, ver_…, chk_…), which keeps the whole
    order; a buyer (cbid_…) or an account (acct_…).
    """

    reason: str
    """Why, such as the number of a case. It is kept."""


class NoticeSummary(Result, frozen=True, kw_only=True):
    """A notice of the registry, as seen by keys of this mode."""

    notice_id: str

    title: str

    jurisdiction: str

    language: str

    version: str | None
    """The version in force; null: no version is in force."""

    versions: int
    """The number of published versions."""


class Notice(Result, frozen=True, kw_only=True):
    """A notice to show. Show every bullet in full; the buyer initials each one separately."""

    notice_id: str

    version: str

    title: str

    heading: str

    bullets: tuple[str, ...]
    """The lines to initial; send one element of initials for each."""

    bullet_ids: tuple[str, ...]
    """What the law calls each of the bullets: show it with it, such as (A)."""

    attestation_text: str

    source_law: str

    source_bill: str


class NoticeVersion(Result, frozen=True, kw_only=True):
    """A published version and its status for keys of this mode."""

    notice_id: str

    version: str

    status: str
    """See `NoticeStatus`."""

    digest: str
    """Hex SHA-256 of the published bytes."""

    lines: int
    """The number of bullets to initial."""

    effective_from: date

    published_at: datetime

    reviewed_at: datetime | None

    reviewed_against: str | None
    """The official text that the version was compared with; null: not reviewed."""

    source_url: str

    editorial: tuple[str, ...]
    """Fields that are the operator's wording, not the law's."""

    text_gaps: tuple[str, ...]
    """Known gaps in the text."""


class Exemption(Result, frozen=True, kw_only=True):
    """Why no notice would be needed, as you assert it; nobody checks it with an authority.

    It changes the response only if the rule of a notice has an exemption of its `kind`.
    """

    reason: str
    """In your words."""

    evidence_reference: str | None = None
    """Where you keep the evidence."""

    kind: str | None = None
    """As the rule of the notice calls it."""

    number: str | None = None
    """Of the licence."""

    expires_on: date | None = None
    """The last day of the licence, which ends at 24:00 UTC."""


class Requirements(Result, frozen=True, kw_only=True):
    """What an order needs, by the rules of the notices."""

    decision: str
    """Whether any notice is needed. See `Requirement`."""

    notices: tuple[NoticeRequirement, ...]

    identity: IdentityRequirement

    obligations: tuple[dict[str, Any], ...]
    """The duties of a clearance for the order, each with a `type`."""

    warnings: tuple[RequirementWarning, ...]

    exemption: Exemption | None
    """As you asserted it. It changed only what `exemption` of a notice says."""

    livemode: bool


class NoticeRequirement(Result, frozen=True, kw_only=True):
    """Whether an order needs a notice."""

    notice_id: str

    version: str | None
    """The version in force; null: none, so do not sell."""

    required: str
    """See `Requirement`."""

    rule: RuleVersion | None
    """null: the notice has no rule."""

    reviewed: bool
    """Whether the text and the rule were compared with the law."""

    reasons: tuple[str, ...]
    """See `RequirementReason`."""

    exemption: ExemptionRule | None
    """The one of the rule that the order qualifies for, by what you asserted; null: none."""


class RuleVersion(Result, frozen=True, kw_only=True):
    """The rule that an answer rests on."""

    id: str
    """That of its notice."""

    version: str


class ExemptionRule(Result, frozen=True, kw_only=True):
    """Orders that the law exempts; it waives what it names and nothing else."""

    kind: str

    needs: tuple[str, ...]
    """The facts without which it does not apply. Such as `evidence_reference`, `expires_on`,
    `number`.
    """

    waives: tuple[str, ...]
    """All else that the notice and its rule ask stays. Such as `address`, `age`, `notice`."""

    source: str
    """Where the operator found the exception."""


class IdentityRequirement(Result, frozen=True, kw_only=True):
    """Whether the buyer has to be verified, and what has to be proved."""

    required: str
    """See `Requirement`."""

    checks: tuple[str, ...]
    """See `RequiredCheck`."""

    minimum_age: int | None

    rules: tuple[RuleVersion, ...]


class RequirementWarning(Result, frozen=True, kw_only=True):
    """`not_sufficient`: the notice does not suffice for this class of products.

    `zip_contradicts_state`: the ZIP code of `ship_to` is not in its state, so the address is
    wrong.
    """

    type: str
    """See `WarningType`."""

    notice_id: str | None
    """Of `not_sufficient`; else null."""

    product_class: str | None
    """Of `not_sufficient`; else null."""


class AcknowledgmentReceipt(Result, frozen=True, kw_only=True):
    """The stored acknowledgment's identifier, and what was acknowledged."""

    ack_id: str

    notice_id: str

    notice_version: str

    receipt: str | None
    """A signed promise: the record whose SHA-256 it names will be in the log by the time that it
    states. Keep it: if the record is not there then, it proves so. Null if none of the log's
    keys can be used at the moment.
    """


class Acknowledgment(Result, frozen=True, kw_only=True):
    """A stored acknowledgment. A field that is null was not given, or was erased."""

    ack_id: str

    livemode: bool

    notice_id: str

    notice_version: str

    notice_version_source: str
    """See `VersionSource`."""

    notice_digest: str

    initials_per_line: tuple[str, ...] | None

    session_id: str | None

    cbid: str | None

    order_reference: str | None

    ip: str | None

    ip_source: str | None
    """See `Source`."""

    peer_ip: str | None
    """The IP address of the connection."""

    user_agent: str | None

    user_agent_source: str | None
    """See `Source`."""

    user_agent_truncated: bool | None
    """Whether a longer header was shortened to 1,024 characters."""

    capture: str
    """See `Capture`."""

    process: Process | None
    """How it was made; null with `vendor_api`."""

    accepted_at: datetime

    test_clock: datetime | None = None
    """The account's test clock; present only if it was ahead."""

    clearance_id: str | None
    """The newest clearance granted with this acknowledgment."""

    evidence: Evidence

    erased_at: datetime | None

    unreadable: bool | None = None
    """Present and true only in a list: the stored personal fields are damaged, and they are null
    here. Reading this one alone is refused as `evidence_damaged`.
    """


class Process(Result, frozen=True, kw_only=True):
    """How a hosted acknowledgment was made.

    `script`, `viewport` and `claimed` are claims of the client, and so are `surface`, `origin`
    and `rendered_digest` unless `surface` is `page`; the service observed the rest.
    """

    checkout_session: str
    """The checkout session."""

    surface: str
    """`page`: served by this service. `component`: an element in your page, as the client claims.
    Such as `page`, `component`.
    """

    origin: str | None
    """The origin of the page around the component, as the client claims."""

    rendered_digest: str | None
    """Hex SHA-256 of the page as it was served, or of the component's file, as the client claims.
    """

    locale: str
    """The language of the interface."""

    opened_at: datetime
    """When the notice was first served."""

    lines: tuple[Line, ...]
    """One for each line of the notice, in its order."""

    reviewed_at: datetime | None
    """When the review step was served; null: it was not."""

    agreement: str
    """The sentence that was agreed to."""

    consent: str
    """The sentence of consent to the electronic form."""

    script: bool | None
    """Whether JavaScript ran, as the client claims."""

    viewport: Viewport | None

    binding: str
    """What tied the person to the session. Such as `none`, `link`, `cookie`, `passkey`,
    `identity_session`.
    """

    verification: str | None
    """The record of the identity check it belongs to."""

    claimed: tuple[Claim, ...]
    """What the client claims; the service did not observe it."""


class Line(Result, frozen=True, kw_only=True):
    """When the service served a line, and received initials for it."""

    shown_at: datetime
    """The last time before the initials."""

    initialed_at: datetime
    """The first initials."""

    changed_at: datetime | None
    """When others were last received, if they were."""

    changes: int
    """How often others were received."""

    method: str | None = None
    """`typed`: a request had the initials for this line. `adopted`: a request named this line, and
    the service took the initials that it had for the first line. Left out by releases that took
    typed ones alone. Such as `typed`, `adopted`.
    """


class Viewport(Result, frozen=True, kw_only=True):
    """The size of the window in CSS pixels, as the client claims."""

    width: int

    height: int


class Claim(Result, frozen=True, kw_only=True):
    """An event that the client claims, with the time when the service received the claim."""

    line: int | None
    """Counted from 1."""

    event: str
    """Such as `shown` or `initialed`."""

    at: datetime


class Evidence(Result, frozen=True, kw_only=True):
    """The position of the record in the transparency log."""

    status: str
    """`pending` until the log contains the record, usually within a second. Such as `pending`,
    `sealed`.
    """

    log: str | None
    """Origin of the log."""

    index: int | None
    """The number of the entry, counted from 0."""


class BuyerVerification(Result, frozen=True, kw_only=True):
    """The result of this verification. Only `status: verified` is positive."""

    cbid: str

    status: str
    """See `BuyerStatus`."""

    expires_at: datetime | None

    message: str

    reasons: tuple[str, ...] = ()
    """The reasons against it; present only if there is a reason. See `Reason`."""


class BuyerStatusAnswer(Result, frozen=True, kw_only=True):
    """The present status of a buyer."""

    cbid: str

    status: str
    """See `BuyerStatus`."""

    verified_at: datetime | None
    """When the buyer was verified. Of a verification that this account did not make, the day:
    `T00:00:00Z`.
    """

    expires_at: datetime | None
    """When the status becomes `expired` for this account; of a verification that this account did
    not make, `T00:00:00Z` of that day.
    """

    reasons: tuple[str, ...] = ()
    """Why this account may not rely on the verification. Only the account that made an attempt gets
    the reasons of its failure, even if the result came later. See `Reason`.
    """


class BuyerReview(Result, frozen=True, kw_only=True):
    """A buyer in the review queue, with the last attempt to verify it."""

    cbid: str

    status: str
    """See `BuyerStatus`."""

    provider: str
    """The identity provider; `sandbox` for a played attempt."""

    verification_id: str
    """The record of the attempt."""

    account_id: str
    """The account whose attempt it was."""

    attempted_at: datetime

    reference: str | None
    """The checkout session in which the attempt was made; null for any other attempt."""

    reasons: tuple[str, ...] = ()
    """The reasons against it; present only if there is a reason. See `Reason`."""

    proposal: ReviewProposal | None = None
    """Present only where two people decide, and one has: a second one has to decide the same, with
    the same ZIP code.
    """


class ReviewProposal(Result, frozen=True, kw_only=True):
    """What the first of two people has decided on a buyer."""

    decision: str

    reason: str

    document: str | None

    by: str
    """The person (`per_…`): another person has to decide the same."""

    at: datetime


class ReviewedBuyer(Result, frozen=True, kw_only=True):
    """A buyer after a decision; the same as of a verification if the decision is final."""

    cbid: str

    status: str
    """See `BuyerStatus`."""

    expires_at: datetime | None

    message: str

    reasons: tuple[str, ...] = ()
    """The reasons against it; present only if there is a reason. See `Reason`."""

    proposed: bool | None = None
    """Present and true if nothing was decided yet: two people decide on the buyers of this account,
    and someone else has to decide the same.
    """


class Event(Result, frozen=True, kw_only=True):
    """Something that has happened. It names objects; only events about buyers have reasons."""

    id: str
    """The `webhook-id` of its deliveries, and a cursor."""

    type: str
    """See `EventType`."""

    livemode: bool

    created_at: datetime

    data: dict[str, Any | None]
    """Identifiers: `cbid`, `ack_id`, `clearance_id`, `checkout_session_id`, or those of a notice.
    `cbid` is null once the buyer is erased. `buyer.failed` and `buyer.requires_input` also have
    `reasons` for the account that made the attempt, with the codes of the verify response.
    """

    triggered: bool | None = None
    """True: a test key requested the event; nothing has happened."""


class NewWebhookEndpoint(Result, frozen=True, kw_only=True):
    """A webhook endpoint and its new secret, which is returned only once."""

    endpoint_id: str

    livemode: bool

    url: str

    description: str

    event_types: tuple[str, ...] | None
    """null: all types. See `EventType`."""

    created_at: datetime

    disabled_at: datetime | None

    disabled_reason: str | None
    """`gone`: the endpoint returned 410. See `Disabled`."""

    secrets: tuple[Secret, ...]

    secret: str
    """Verifies the `v1` signatures (HMAC-SHA256): `whsec_` and base64."""


class Secret(Result, frozen=True, kw_only=True):
    """A secret that signs the messages to an endpoint. The newest one comes first."""

    public_key: str
    """Verifies the `v1a` signatures (Ed25519): `whpk_` and base64."""

    created_at: datetime

    expires_at: datetime | None
    """The time when the secret stops signing."""


class WebhookEndpoint(Result, frozen=True, kw_only=True):
    """A webhook endpoint."""

    endpoint_id: str

    livemode: bool

    url: str

    description: str

    event_types: tuple[str, ...] | None
    """null: all types. See `EventType`."""

    created_at: datetime

    disabled_at: datetime | None

    disabled_reason: str | None
    """`gone`: the endpoint returned 410. See `Disabled`."""

    secrets: tuple[Secret, ...]


class DeletedWebhookEndpoint(Result, frozen=True, kw_only=True):
    """The webhook endpoint is deleted."""

    endpoint_id: str

    deleted: bool


class WebhookDelivery(Result, frozen=True, kw_only=True):
    """The delivery of an event to an endpoint."""

    event: Event

    status: str
    """See `DeliveryStatus`."""

    next_attempt_at: datetime | None

    attempts: tuple[WebhookAttempt, ...]

    response: str | None
    """At most 1,024 bytes of what the endpoint returned with the last attempt, if it refused.

    For seven days, and until the account, or staff, erases any buyer.
    """


class WebhookAttempt(Result, frozen=True, kw_only=True):
    """One attempt to deliver an event."""

    attempted_at: datetime

    duration_ms: int

    outcome: str
    """See `Outcome`."""

    http_status: int | None


class ClearanceDecision(Result, frozen=True, kw_only=True):
    """Whether an order may ship: only if `cleared` is true."""

    clearance_id: str

    cleared: bool

    order_named: bool
    """Whether the request named the order by `order_reference`; false: it was judged by its session
    alone.
    """

    reasons: tuple[str, ...]
    """All reasons against the order, in a stable order; empty if it is cleared. Such as
    `acknowledgment_already_used`, `acknowledgment_erased`, `acknowledgment_not_found`,
    `acknowledgment_too_old`, `address_mismatch`, `address_not_proved`, `age_below_minimum`,
    `age_not_proved`, `age_unknown`, `buyer_expired`, `buyer_mismatch`, `buyer_not_found`,
    `buyer_not_verified`, `buyer_requires_input`, `buyer_revoked`, `consent_declined`,
    `contact_unverified`, `details_mismatch`, `device_unsupported`, `document_expired`,
    `document_expiry_unknown`, `document_not_accepted`, `document_unreadable`,
    `document_unsupported`, `exemption_expired`, `exemption_facts_missing`,
    `exemption_not_named`, `identity_failed`, `identity_not_proved`, `identity_requires_input`,
    `notice_not_in_force`, `notice_not_sufficient`, `order_already_fulfilled`,
    `product_class_missing`, `provider_session_not_found`, `refused_by_vendor`, `revoked`,
    `selfie_mismatch`, `selfie_not_accepted`, `session_canceled`, `session_expired`,
    `session_mismatch`, `session_not_bound`, `session_redacted`, `session_undecided`,
    `simulated_elsewhere`, `test_session`, `verification_misconfigured`,
    `verification_not_configured`, `verification_withdrawn`, `zip_mismatch`, `zip_unknown`.
    """

    obligations: tuple[dict[str, Any], ...]
    """The duties for the order, each with a `type`."""

    expires_at: datetime | None

    token: str | None
    """A JWS (EdDSA) that a warehouse can check offline; null: not cleared, or shipped before."""

    already_shipped: bool
    """True: this order was reported as shipped, under this clearance. Nothing was decided anew, and
    nothing more may leave on it.
    """

    overridden: bool | None = None
    """Present and true: it is refused still, and has a manual override. The reasons here are all
    reasons of that refusal, `clearance_id` is its own, and `obligations` are the duties.
    """

    override_id: str | None = None
    """Present with `overridden`."""


class Clearance(Result, frozen=True, kw_only=True):
    """A stored clearance. A field that is null was not given, or was erased."""

    clearance_id: str

    livemode: bool

    ack_id: str | None
    """null: none was sent, or no valid identifier."""

    cbid: str | None

    session_id: str | None

    order_reference: str | None

    shipping_zip: str | None

    shipping_address: dict[str, str] | None

    product_class: str | None
    """null also for several classes."""

    product_classes: tuple[str, ...]
    """All classes of the order."""

    exemption: Exemption | None
    """As you asserted it."""

    exempt_from: tuple[NoticeRequirement, ...] = ()
    """The notices that it did not need, and why. Present only if it was cleared without an
    acknowledgment.
    """

    cleared: bool

    order_named: bool | None
    """null: decided by a release that did not note it."""

    reasons: tuple[str, ...]
    """Such as `acknowledgment_already_used`, `acknowledgment_erased`, `acknowledgment_not_found`,
    `acknowledgment_too_old`, `address_mismatch`, `address_not_proved`, `age_below_minimum`,
    `age_not_proved`, `age_unknown`, `buyer_expired`, `buyer_mismatch`, `buyer_not_found`,
    `buyer_not_verified`, `buyer_requires_input`, `buyer_revoked`, `consent_declined`,
    `contact_unverified`, `details_mismatch`, `device_unsupported`, `document_expired`,
    `document_expiry_unknown`, `document_not_accepted`, `document_unreadable`,
    `document_unsupported`, `exemption_expired`, `exemption_facts_missing`,
    `exemption_not_named`, `identity_failed`, `identity_not_proved`, `identity_requires_input`,
    `notice_not_in_force`, `notice_not_sufficient`, `order_already_fulfilled`,
    `product_class_missing`, `provider_session_not_found`, `refused_by_vendor`, `revoked`,
    `selfie_mismatch`, `selfie_not_accepted`, `session_canceled`, `session_expired`,
    `session_mismatch`, `session_not_bound`, `session_redacted`, `session_undecided`,
    `simulated_elsewhere`, `test_session`, `verification_misconfigured`,
    `verification_not_configured`, `verification_withdrawn`, `zip_mismatch`, `zip_unknown`.
    """

    obligations: tuple[dict[str, Any], ...]
    """The duties for the order, each with a `type`."""

    created_at: datetime

    expires_at: datetime | None

    test_clock: datetime | None = None
    """The account's test clock; present only if it was ahead. `expires_at` refers to this clock."""

    paid_at: datetime | None = None
    """The payment that kept the acknowledgment; present only if it would be too old otherwise, or
    its notice was not in force any more.
    """

    token: str | None
    """null: not cleared, or no longer valid."""

    override: dict[str, Any] | None = None
    """Present if the refusal has a manual override: `override_id` and `created_at`; `by`, with
    `actor` (a person, or a key) and `reason` of each, and `claimed_user`, until they are erased.
    """

    fulfilments: tuple[Fulfilment, ...]
    """The reports about the order, oldest first."""

    closed_at: datetime | None

    evidence: Evidence

    erased_at: datetime | None


class Fulfilment(Result, frozen=True, kw_only=True):
    """A report of fulfilment."""

    fulfilment_id: str

    clearance_id: str

    reported_at: datetime

    carrier: str | None

    tracking_number: str | None

    shipped_at: datetime | None

    delivered_at: datetime | None

    adult_signature_obtained: bool | None

    order_of_events_confirmed: bool | None = None
    """Present and true if the report contradicts the order of events, and the vendor confirmed it.
    """

    paid_at: datetime | None = None
    """Present only in the report of a payment."""

    corrects: str | None = None
    """Present if the report stands in the place of that earlier one."""


class FulfilmentReceipt(Result, frozen=True, kw_only=True):
    """The stored report, and whether the order is closed."""

    fulfilment_id: str

    clearance_id: str

    closed_at: datetime | None
    """null: not every obligation is reported yet."""


class Overridden(Result, frozen=True, kw_only=True):
    """A refused order with a manual override. It is not cleared, and has no token."""

    clearance_id: str

    cleared: bool | None = None
    """Always false."""

    overridden: bool
    """False: it is the proposal of the first of two people."""

    override_id: str | None
    """null: it is a proposal."""

    reasons: tuple[str, ...]
    """Those of the refusal. Such as `acknowledgment_already_used`, `acknowledgment_erased`,
    `acknowledgment_not_found`, `acknowledgment_too_old`, `address_mismatch`,
    `address_not_proved`, `age_below_minimum`, `age_not_proved`, `age_unknown`, `buyer_expired`,
    `buyer_mismatch`, `buyer_not_found`, `buyer_not_verified`, `buyer_requires_input`,
    `buyer_revoked`, `consent_declined`, `contact_unverified`, `details_mismatch`,
    `device_unsupported`, `document_expired`, `document_expiry_unknown`, `document_not_accepted`,
    `document_unreadable`, `document_unsupported`, `exemption_expired`,
    `exemption_facts_missing`, `exemption_not_named`, `identity_failed`, `identity_not_proved`,
    `identity_requires_input`, `notice_not_in_force`, `notice_not_sufficient`,
    `order_already_fulfilled`, `product_class_missing`, `provider_session_not_found`,
    `refused_by_vendor`, `revoked`, `selfie_mismatch`, `selfie_not_accepted`, `session_canceled`,
    `session_expired`, `session_mismatch`, `session_not_bound`, `session_redacted`,
    `session_undecided`, `simulated_elsewhere`, `test_session`, `verification_misconfigured`,
    `verification_not_configured`, `verification_withdrawn`, `zip_mismatch`, `zip_unknown`.
    """

    obligations: tuple[dict[str, Any], ...]
    """The duties for the order, each with a `type`."""


class CheckoutSession(Result, frozen=True, kw_only=True):
    """A checkout session. Decide by `status`, never by where the buyer's browser returns."""

    checkout_session_id: str

    livemode: bool

    status: str
    """See `Status`."""

    session_id: str | None

    order_reference: str | None

    collect: tuple[str, ...]
    """See `Collected`."""

    notice_id: str | None

    cbid: str | None
    """The buyer: as the identity check found, else as given."""

    provider_identity_session_id: str | None
    """The identity provider's session: of the newest attempt, if several."""

    identity_status: str | None
    """What came of the identity check: `verified`, `pending` while the provider decides, else why
    the buyer has to try again; null: nothing yet. See `BuyerStatus`.
    """

    ack_id: str | None
    """The acknowledgment, once there is one."""

    receipt: str | None
    """The log's signed promise to have the record of the acknowledgment."""

    clearance_id: str | None
    """The decision about the order, where the facts sufficed for one."""

    cleared: bool | None
    """That decision; null: none was made."""

    reasons: tuple[str, ...]
    """Why the order is not cleared, or the identity not verified: codes."""

    exemption: Exemption | None
    """As you asserted it for the cart. It changed something only if `collect` lacks the
    acknowledgment.
    """

    return_url: str | None

    origin: str | None

    locale: str | None
    """As you gave it; null: the browser's."""

    url: str | None
    """The link for the buyer. Only in the response that created it."""

    client_token: str | None
    """For the component. Only in the response that created the session."""

    created_at: datetime

    expires_at: datetime

    ended_at: datetime | None

    unreadable: bool | None = None
    """Present and true only in a list: what is stored of this session is damaged, and null or empty
    here.
    """


class CurrentCheckoutSession(Result, frozen=True, kw_only=True):
    """A checkout session as the buyer's browser sees it."""

    checkout_session_id: str

    livemode: bool

    status: str
    """See `Status`."""

    vendor: str

    locale: str

    steps: tuple[str, ...]
    """See `Collected`."""

    step: str | None
    """What comes next; null: nothing. See `Collected`."""

    reasons: tuple[str, ...]

    ack_id: str | None

    copy_url: str | None
    """The buyer's own copy, for 30 days. Only in the response to the initials: null for others that
    have the token.
    """

    return_url: str | None
    """Where to go now; null while open."""

    expires_at: datetime

    notice: ShownNotice | None

    words: dict[str, str]
    """Texts of the interface, by their names."""

    agreement: str | None
    """The sentence that the buyer agrees to."""

    consent: str | None
    """The consent to the electronic form."""


class ShownNotice(Result, frozen=True, kw_only=True):
    """The notice to show: all of it, exactly as it is."""

    notice_id: str

    version: str

    digest: str
    """SHA-256 of the notice bytes, hexadecimal."""

    title: str

    heading: str

    bullets: tuple[NoticeLine, ...]

    attestation_text: str

    language: str

    text_gaps: tuple[str, ...]

    source_law: str

    source_url: str


class NoticeLine(Result, frozen=True, kw_only=True):
    """A line to initial."""

    id: str

    text: str


class Nothing(Result, frozen=True, kw_only=True):
    """An empty object."""


class TestClock(Result, frozen=True, kw_only=True):
    """The test clock of an account."""

    now: datetime
    """The time that the clock shows and that the sandbox uses."""

    real_time: datetime

    ahead_seconds: int
    """How far the clock is ahead; 0: the sandbox uses real time."""


class PlannedFault(Result, frozen=True, kw_only=True):
    """The fault that verifications in the sandbox get; all null: no fault."""

    fault: str | None
    """See `Fault`."""

    calls: int | None
    """The number of remaining calls. null: no limit."""

    delay_seconds: int | None


class Health(Result, frozen=True, kw_only=True):
    """The process responds."""

    status: str


class Readiness(Result, frozen=True, kw_only=True):
    """Whether the process can do its work: the state of each dependency, by name."""

    status: str

    checks: dict[str, str]


class RequestView(Result, frozen=True, kw_only=True):
    """A request with a key, and its outcome."""

    at: datetime

    key_id: str

    status: int

    code: str | None
    """Of the error; null: it succeeded."""

    request_id: str
    """As the response has it in `X-Request-Id`."""

    operation: str
    """Method and route; identifiers of the path are not kept."""


class AccountView(Result, frozen=True, kw_only=True):
    """An account."""

    account_id: str
    """The account."""

    name: str

    created_at: datetime

    status: str
    """Such as `active`, `closed`, `disabled`."""

    evidence_years: int | None
    """After so many years its evidence ends; null: never."""

    reviewers: int
    """How many people decide on a buyer who waits: 1, or 2."""

    request_days: int
    """Within how many days it answers a person's request."""

    responses_until: datetime | None
    """Until when whole responses of its identity providers are kept; null: for the decision."""


class AccountDetails(Result, frozen=True, kw_only=True):
    """An account, how buyers see it, and the pages that live sessions may embed or return to."""

    account_id: str
    """The account."""

    name: str

    created_at: datetime

    status: str
    """Such as `active`, `closed`, `disabled`."""

    evidence_years: int | None
    """After so many years its evidence ends; null: never."""

    reviewers: int
    """How many people decide on a buyer who waits: 1, or 2."""

    request_days: int
    """Within how many days it answers a person's request."""

    responses_until: datetime | None
    """Until when whole responses of its identity providers are kept; null: for the decision."""

    brand: BrandView

    origins: tuple[str, ...]


class BrandView(Result, frozen=True, kw_only=True):
    """How buyers see an account on hosted pages."""

    name: str

    color: str | None

    logo: str | None
    """Hex SHA-256 of the picture."""

    contact_url: str | None

    privacy_url: str | None

    support_email: str | None

    font: str | None

    initials: str
    """What buyers do: `typed` in each line, or `adopted_allowed`: typed once."""


class AccountOrigin(Result, frozen=True, kw_only=True):
    """An origin of an account, as browsers write it."""

    account_id: str
    """The account."""

    origin: str


class ClosedAccount(Result, frozen=True, kw_only=True):
    """An account that is closed, or would be, and what that ends."""

    account_id: str
    """The account."""

    name: str

    created_at: datetime

    status: str
    """Such as `active`, `closed`, `disabled`."""

    evidence_years: int | None
    """After so many years its evidence ends; null: never."""

    reviewers: int
    """How many people decide on a buyer who waits: 1, or 2."""

    request_days: int
    """Within how many days it answers a person's request."""

    responses_until: datetime | None
    """Until when whole responses of its identity providers are kept; null: for the decision."""

    keys: int

    webhook_endpoints: int

    origins: int

    checkout_sessions: int

    records: int
    """What stays for evidence."""

    records_with_personal_data: int


class KeyView(Result, frozen=True, kw_only=True):
    """A key of an account; the key itself is shown only when it is made."""

    key_id: str

    name: str | None

    account_id: str
    """The account."""

    livemode: bool

    hint: str
    """Its beginning and its end."""

    scopes: tuple[str, ...]
    """See `Scope`."""

    works: bool

    created_at: datetime

    expires_at: datetime | None

    revoked_at: datetime | None

    last_used_at: datetime | None
    """To the hour."""

    replaces: str | None
    """The key of which it is the successor."""

    made_by: str
    """The person (`per_…`) who made it, or the key with which it was made; `machine`: it was made
    on the machine.
    """

    key: str | None = None
    """The key itself: present only in the response that makes it."""


class NoticeLifecycle(Result, frozen=True, kw_only=True):
    """A published version: where it stands for keys of each mode, and its history."""

    notice_id: str

    version: str

    title: str

    digest: str
    """Hex SHA-256 of the bytes."""

    lines: int

    effective_from: str

    test: str
    """See `NoticeStatus`."""

    live: str
    """See `NoticeStatus`."""

    text_gaps: tuple[str, ...]

    rules: tuple[str, ...]
    """The versions of its `applies_to`."""

    events: tuple[LifecycleStep, ...]


class LifecycleStep(Result, frozen=True, kw_only=True):
    """What happened to a published version."""

    event_id: str

    type: str
    """See `LifecycleEvent`."""

    at: datetime

    details: dict[str, str]


class ComparedNotices(Result, frozen=True, kw_only=True):
    """What differs between two versions of a notice."""

    notice_id: str

    old: str

    new: str

    differences: tuple[NoticeDifference, ...]


class NoticeDifference(Result, frozen=True, kw_only=True):
    """A part of two versions that is not the same."""

    part: str
    """A field, or a line."""

    before: str | None
    """null: it was not there."""

    after: str | None
    """null: it is gone."""


class CheckedNotice(Result, frozen=True, kw_only=True):
    """A notice that can be published, or the version that was published."""

    notice_id: str

    version: str

    digest: str
    """Hex SHA-256 of the bytes."""

    text_gaps: tuple[str, ...]

    new: bool
    """Whether no such version was published before."""

    compared_with: str | None
    """The version in force for live keys, or else the newest; null: none."""

    differences: tuple[NoticeDifference, ...]


class NoticeOutcome(Result, frozen=True, kw_only=True):
    """What was recorded of a version. The lifecycle shows what keys get from now on."""

    event_id: str

    type: str
    """See `LifecycleEvent`."""

    at: datetime

    details: dict[str, str]

    notice_id: str

    version: str


class HoldView(Result, frozen=True, kw_only=True):
    """A legal hold."""

    hold_id: str

    subject: str

    reason: str

    matter_id: str | None

    placed_at: datetime

    released_at: datetime | None


class ReleasedHolds(Result, frozen=True, kw_only=True):
    """The holds that ended, and what was to be erased and had waited for that."""

    hold_ids: tuple[str, ...]

    erased: tuple[str, ...]
    """Records and checkout sessions of the caller's own reach."""

    requested: tuple[WaitedErasure, ...]


class WaitedErasure(Result, frozen=True, kw_only=True):
    """A buyer who had asked to be erased, and what came of it."""

    cbid: str

    outcome: str
    """Such as `erased`, `kept`, `on_hold`, `requested`."""


class MatterView(Result, frozen=True, kw_only=True):
    """A matter; `GET /v1/holds?matter_id=` lists its holds."""

    matter_id: str

    name: str

    opened_at: datetime

    closed_at: datetime | None

    holds: int
    """How many holds of it last."""


class SearchResult(Result, frozen=True, kw_only=True):
    """The orders that were found, newest first."""

    found_by: str
    """`identifier`, `buyer`, or `text`: the vendor's session or an order reference."""

    orders: tuple[FoundOrder, ...]

    more: bool
    """Whether there are more than 50."""


class FoundOrder(Result, frozen=True, kw_only=True):
    """An order: what is known of it, without personal values."""

    order_id: str
    """It never changes, and stays after an erasure."""

    account_id: str
    """The account."""

    livemode: bool

    opened_at: datetime
    """When the first act named it."""

    state: str
    """Where it stands now. See `OrderState`."""

    reasons: tuple[str, ...]
    """Why it was refused: stable codes."""

    ack_id: str | None
    """The one that counts, else the newest."""

    cbid: str | None

    clearance_id: str | None
    """That of the shipment, else the newest decision."""

    checkout_session_id: str | None

    notice_id: str | None

    notice_version: str | None

    capture: str | None

    cleared: bool

    hold_id: str | None
    """A legal hold that keeps it."""

    missing: tuple[str, ...]
    """What a complete order has and this one lacks: `acknowledgment`, `identity_check`,
    `clearance`, `granted_clearance`, `fulfilment`, `delivery`, `adult_signature`, `seal`,
    `personal_data`.
    """

    parts: tuple[OrderPart, ...]
    """The newest; `timeline` and `missing` are of these."""

    more_parts: bool
    """Whether it has more than 100 parts."""

    timeline: tuple[OrderStep, ...]


class OrderPart(Result, frozen=True, kw_only=True):
    """A part of an order."""

    id: str

    type: str
    """Such as `acknowledgment`, `checkout_session`, `clearance`, `fulfilment`, `override`,
    `verification`.
    """

    at: datetime

    status: str | None
    """Of a session, a verification or a clearance: how it stands."""

    sealed: bool | None
    """Whether the log contains it; null: it is no record."""

    erased_at: datetime | None
    """When its personal data went."""

    hold_id: str | None
    """The legal hold that keeps it."""


class OrderStep(Result, frozen=True, kw_only=True):
    """What happened, and when."""

    at: datetime

    what: str
    """Such as `link_made`, `identity_check_started`, `identity_check_verified`,
    `identity_check_made` (with a result that was erased), `acknowledged`, `cleared`,
    `not_cleared`, `overridden` (a manual override), `fulfilment_reported`, `payment_reported`,
    `order_closed`, `session_completed`, `erased`, `name_used_again` (an acknowledgment of
    another buyer, or after a shipment).
    """

    id: str

    reasons: tuple[str, ...]
    """Stable codes, where it was refused."""


class ErasureRequested(Result, frozen=True, kw_only=True):
    """A buyer who asked at /buyer to be erased, and is not erased yet."""

    cbid: str

    account_id: str | None

    requested_at: datetime

    answer_by: datetime
    """The deadline, by the days that the account sets."""

    prevented_by: str | None
    """What blocks it: the hold in words; null: it waits for retention."""


class ErasurePreview(Result, frozen=True, kw_only=True):
    """What an erasure would erase now, and what legal holds keep."""

    subject: str

    buyer: bool
    """Whether it is a buyer, with all its identifiers."""

    records: tuple[str, ...]
    """Whose personal data goes."""

    erased: str
    """The same by kind, in words; empty: nothing."""

    kept: tuple[KeptRecord, ...]
    """It is erased when the holds have been released."""

    still_kept: str
    """The same by kind, in words; empty: nothing."""

    prevented_by: str | None
    """Why nothing of it can be erased at the moment: the hold in words."""

    retention_ends_at: datetime | None
    """The end of the longest retention period, if it is yet to come."""

    requested_at: datetime | None
    """When the buyer asked for it at /buyer; null: not."""


class KeptRecord(Result, frozen=True, kw_only=True):
    """A record, or the checkout session of an order, that a legal hold keeps."""

    record_id: str
    """A record, or a checkout session (chk_…)."""

    hold_id: str

    subject: str
    """What the hold is on."""


class ErasureDone(Result, frozen=True, kw_only=True):
    """What was erased: the facts for a letter."""

    subject: str

    buyer: bool
    """Whether it is a buyer, with all its identifiers."""

    records: tuple[str, ...]
    """Whose personal data goes."""

    erased: str
    """The same by kind, in words; empty: nothing."""

    kept: tuple[KeptRecord, ...]
    """It is erased when the holds have been released."""

    still_kept: str
    """The same by kind, in words; empty: nothing."""

    erased_at: datetime

    copies_remain: bool
    """Whether a file of the embedded database still has copies, until a server empties it within
    minutes. Older backups of the keys always have.
    """


class DueRecord(Result, frozen=True, kw_only=True):
    """A record whose retention period has ended, or ends until the time that was asked for."""

    record_id: str

    account_id: str

    retention_ends_at: datetime

    hold_id: str | None
    """The hold that keeps it."""


class AuditView(Result, frozen=True, kw_only=True):
    """What was done or looked at. A buyer who was erased is not named any more."""

    audit_id: str

    at: datetime

    actor: str
    """The person (`per_…`), the key (`key_…`), or the user of the system."""

    action: str
    """See `AuditAction`."""

    subject: str

    details: dict[str, Any]


class BuyerEvidence(Result, frozen=True, kw_only=True):
    """The identity checks of a buyer, oldest first, with names, dates of birth and addresses."""

    cbid: str

    checks: tuple[CheckEvidence, ...]


class CheckEvidence(Result, frozen=True, kw_only=True):
    """The evidence of one identity check."""

    verification_id: str

    account_id: str

    provider: str

    status: str
    """See `BuyerStatus`."""

    at: datetime

    erased_at: datetime | None

    content: dict[str, Any] | None
    """All that is known of the person; `answer.text` is the provider's response. null: it was
    erased.
    """


class BuyerBlock(Result, frozen=True, kw_only=True):
    """Whether an account refuses the orders of a buyer."""

    cbid: str

    livemode: bool

    blocked: bool


class BuyerStanding(Result, frozen=True, kw_only=True):
    """A buyer, as it stands now."""

    cbid: str

    livemode: bool

    status: str
    """See `BuyerStatus`."""


class DeploymentStanding(Result, frozen=True, kw_only=True):
    """How the deployment stands."""

    at: datetime
    """When this was looked up."""

    version: str

    public_url: str

    database: str

    logs: tuple[LogStanding, ...]

    promises: tuple[PromiseStanding, ...]

    open_checkout_sessions: int
    """Of live keys."""


class LogStanding(Result, frozen=True, kw_only=True):
    """The newest log of a mode."""

    livemode: bool

    log: str
    """Its origin."""

    size: int
    """How many entries it has."""

    checkpoint_at: datetime
    """When its newest checkpoint was made."""

    suspended: str | None
    """Why nothing is sealed; null: sealing goes on. On the machine: `countersign log recover`."""


class PromiseStanding(Result, frozen=True, kw_only=True):
    """What is owed to somebody, since when, and how long it may be."""

    promise: str

    of: str
    """Tells several of one promise apart, such as the modes of logs."""

    owed_since: datetime | None
    """Of the oldest; null: nothing is owed."""

    severity: str
    """See `Severity`."""

    ticket_after_seconds: int
    """From then on it is work for today (`warning`)."""

    page_after_seconds: int | None
    """From then on for now (`broken`); null: never."""


class DoctorFindings(Result, frozen=True, kw_only=True):
    """What `countersign doctor` says of what can be judged inside a server."""

    severity: str
    """See `Severity`."""

    findings: tuple[FoundByDoctor, ...]


class FoundByDoctor(Result, frozen=True, kw_only=True):
    """What a check has found."""

    check: str

    code: str

    severity: str
    """See `Severity`."""

    found: str

    what_to_do: str
    """"": nothing."""


class InvitedPerson(Result, frozen=True, kw_only=True):
    """Who was invited, and the link by which the person comes in."""

    person_id: str

    link: str | None
    """It works once. Give it to this person alone. null: the person signs in as before."""

    expires_at: datetime | None

    name: str

    role: str
    """See `Role`."""


class PersonView(Result, frozen=True, kw_only=True):
    """A person with a role in one place."""

    person_id: str

    name: str

    role: str
    """See `Role`."""

    granted_at: datetime

    granted_by: str
    """The person (`per_…`), or the user of the system."""

    has_passkey: bool
    """false: the person has not come in yet, or has `has_provider`."""

    has_provider: bool
    """true: the person signs in at the provider of OpenID Connect."""

    link_until: datetime | None
    """Until when an unused link of the person works."""

    last_used_at: datetime | None
    """When the person signed in last, or used the passkey."""

    keys: tuple[MadeKey, ...]
    """Those that the person made there, and that work."""


class MadeKey(Result, frozen=True, kw_only=True):
    """A key that a person made."""

    key_id: str

    account_id: str
    """The account."""

    livemode: bool

    hint: str

    works: bool


class PersonLink(Result, frozen=True, kw_only=True):
    """A link by which a person comes in: present only in the response that makes it."""

    person_id: str

    link: str | None
    """It works once. Give it to this person alone. null: the person signs in as before."""

    expires_at: datetime | None


class EndedView(Result, frozen=True, kw_only=True):
    """Sessions that were ended."""

    person_id: str

    sessions: int
    """How many."""


class SessionView(Result, frozen=True, kw_only=True):
    """A browser in which the person is signed in."""

    session_id: str

    created_at: datetime

    last_used_at: datetime

    ends_at: datetime
    """If nothing more is done in it."""

    is_this: bool
    """Whether this request was made with it."""


class AlertsView(Result, frozen=True, kw_only=True):
    """The alerts by e-mail of a person."""

    is_proved: bool | None
    """Whether the address is; null: there is none, and no alerts."""


class Today(Result, frozen=True, kw_only=True):
    """How an account does in one mode. Nothing in it is personal."""

    account_id: str
    """The account."""

    livemode: bool

    at: datetime
    """When this was counted."""

    most: int
    """A figure of so many stands for that many or more: nothing is counted further."""

    hours: tuple[Figures, ...]
    """The last 24 hours, oldest first; the last one goes on."""

    days: tuple[Figures, ...]
    """The last 14 days, oldest first; the last one goes on."""

    refusals: tuple[RefusedFor, ...]
    """The most frequent first."""

    refusals_since: datetime | None
    """Reasons are counted of the newest 1000 refusals: since when, if `days` has more. null: of all
    of them.
    """

    open_checkout_sessions: int
    """Counted up to `most`, which stands for that many or more."""

    buyers_waiting: int
    """In the review queue."""

    deliveries_repeated: int
    """Of webhooks: an attempt has failed, another one is to come."""

    endpoints_disabled: int
    """Of webhooks."""


class Figures(Result, frozen=True, kw_only=True):
    """What happened in an hour or a day, of UTC."""

    begins_at: datetime

    acknowledgments: int | None
    """Counted up to `most`, which stands for that many or more; null: it was not measured, as
    before there was the account.
    """

    cleared: int | None
    """Counted up to `most`, which stands for that many or more; null: it was not measured, as
    before there was the account.
    """

    refused: int | None
    """Counted up to `most`, which stands for that many or more; null: it was not measured, as
    before there was the account.
    """

    sessions_completed: int | None
    """Counted up to `most`, which stands for that many or more; null: it was not measured, as
    before there was the account.
    """

    sessions_declined: int | None
    """Counted up to `most`, which stands for that many or more; null: it was not measured, as
    before there was the account.
    """

    sessions_expired: int | None
    """Counted up to `most`, which stands for that many or more; null: it was not measured, as
    before there was the account.
    """

    buyers_verified: int | None
    """Counted up to `most`, which stands for that many or more; null: it was not measured, as
    before there was the account.
    """

    buyers_failed: int | None
    """Counted up to `most`, which stands for that many or more; null: it was not measured, as
    before there was the account.
    """


class RefusedFor(Result, frozen=True, kw_only=True):
    """How often orders were refused for this reason; a decision may have several."""

    reason: str
    """Such as `acknowledgment_already_used`, `acknowledgment_erased`, `acknowledgment_not_found`,
    `acknowledgment_too_old`, `address_mismatch`, `address_not_proved`, `age_below_minimum`,
    `age_not_proved`, `age_unknown`, `buyer_expired`, `buyer_mismatch`, `buyer_not_found`,
    `buyer_not_verified`, `buyer_requires_input`, `buyer_revoked`, `consent_declined`,
    `contact_unverified`, `details_mismatch`, `device_unsupported`, `document_expired`,
    `document_expiry_unknown`, `document_not_accepted`, `document_unreadable`,
    `document_unsupported`, `exemption_expired`, `exemption_facts_missing`,
    `exemption_not_named`, `identity_failed`, `identity_not_proved`, `identity_requires_input`,
    `notice_not_in_force`, `notice_not_sufficient`, `order_already_fulfilled`,
    `product_class_missing`, `provider_session_not_found`, `refused_by_vendor`, `revoked`,
    `selfie_mismatch`, `selfie_not_accepted`, `session_canceled`, `session_expired`,
    `session_mismatch`, `session_not_bound`, `session_redacted`, `session_undecided`,
    `simulated_elsewhere`, `test_session`, `verification_misconfigured`,
    `verification_not_configured`, `verification_withdrawn`, `zip_mismatch`, `zip_unknown`.
    """

    last_hours: int
    """In the time of `hours`."""

    last_days: int
    """In the time of `days`."""
