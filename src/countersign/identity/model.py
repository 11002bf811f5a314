"""A provider's result for one session, in words shared by all providers.

An adapter translates its provider's answer into a `ProviderResult`; `buyers.decision` judges it.
Three origins of a fact are kept apart: read from a document, matched against a database, and typed
by a person. Only the first two can prove anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from countersign.base.values import Reason


class Finding(StrEnum):
    """The outcome of a request to a provider about a session."""

    VERIFIED = "verified"
    """The provider's positive, final decision."""
    PENDING = "pending"
    """Processing, or a person reviews it: not decided."""
    REQUIRES_INPUT = "requires_input"
    """The buyer has to begin or to try again."""
    FAILED = "failed"
    """The provider's negative, final decision."""
    UNPROVED = "unproved"
    """The provider's positive decision, but by nothing that proves anybody here."""
    CANCELED = "canceled"
    EXPIRED = "expired"
    REDACTED = "redacted"
    """The session exists, but its personal data is deleted: it can never verify anybody."""
    NOT_FOUND = "not_found"
    """The identifier is well formed, but there is no such session."""
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    """No answer, or one that says to try again."""
    PROVIDER_REJECTED = "provider_rejected"
    """The provider refuses us: the credentials or their permissions are wrong."""
    INVALID_RESPONSE = "invalid_response"
    """Unreadable, unauthentic, of another session, or with a status that is not known."""


class FactSource(StrEnum):
    """Where a fact about a person comes from."""

    DOCUMENT = "document"
    DATABASE = "database"
    PROOF_OF_ADDRESS = "proof_of_address"
    OPERATOR = "operator"
    """A document that an operator has looked at; no provider vouches for it."""
    USER = "user_entered"
    NONE = "none"


class Tri(StrEnum):
    """A check that can also be undecided."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    UNKNOWN = "unknown"


class Private:
    """Shows nothing of itself: a person's data must not reach a log by way of a repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: hidden>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Address(Private):
    """An address as the provider gives it; `source` says what proves it."""

    source: FactSource
    region: str | None = None
    postal_code: str | None = None
    """Raw: it may be a ZIP+4, nine digits in a row, or no ZIP code at all."""
    country: str | None = None
    """Raw: `US`, `USA` or a name; None if the provider does not give it."""
    document: Document | None = None
    """The document that shows it; None: the result's, or none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Document(Private):
    """The document that was checked. Its number is not here: see `document_fingerprint`."""

    type: str | None
    """The provider's own word, such as `driving_license`."""
    issuing_country: str | None
    issuing_region: str | None
    expires_on: date | None
    expiry_unread: bool = False
    """Whether it has an expiry in an unreadable form: that is never a pass."""

    def unexpired(self, today: date) -> Tri:
        """Whether it is still valid, as on the day of its expiry."""
        if self.expires_on is None:
            return Tri.UNKNOWN
        return Tri.PASS if today <= self.expires_on else Tri.FAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCheck:
    """One check by the provider, under the provider's own name for it."""

    name: str
    verdict: Tri
    raw: str
    """The provider's own word for the verdict."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProviderEvidence(Private):
    """The provider's exact response and its circumstances, stored encrypted."""

    raw_body: bytes
    sha256: str
    """Of `raw_body`, 64 hexadecimal digits."""
    http_status: int
    request_id: str | None
    api_version: str | None
    request_target: str
    """Method, path and query, without secrets."""
    response_signature: str | None
    """The provider's own signature of the body, where it gives one (Veriff)."""
    retrieved_at: datetime
    sensitive_complete: bool = True
    """False if the provider withheld date of birth or expiry from our credentials."""
    further: tuple[ProviderEvidence, ...] = ()
    """Further answers that the same result was read from (Onfido's report)."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProviderResult(Private):
    """A provider's result for one session.

    The personal members are always set with Outcome.VERIFIED; with others they may be absent.
    """

    provider: str
    session_id: str
    """The requested one; the adapter has compared it with the one in the response."""
    outcome: Finding
    provider_status: str | None = None
    """The provider's own status, verbatim."""
    reason_code: str | None = None
    """The provider's own reason, verbatim; never a text with personal data in it."""
    reason: Reason | None = None
    """Our word for the reason code, if it says more than `outcome`."""
    unread: tuple[str, ...] = ()
    """The names of members that could not be read: the facts in them are unknown."""
    unknown_fields: int = 0
    """How many members the adapter does not know: the provider has changed its responses."""
    live: bool | None = None
    """False for a session of the provider's test mode; None if the provider does not give it."""
    subject_reference: str | None = None
    """The reference to the buyer that the session was made with."""
    decided_at: datetime | None = None
    date_of_birth: date | None = None
    date_of_birth_source: FactSource = FactSource.NONE
    addresses: tuple[Address, ...] = ()
    """Every address, each with what proves it, the document's first."""
    document: Document | None = None
    document_fingerprint: bytes | None = None
    """A keyed hash of issuer, type and number; the number itself is dropped in the adapter."""
    checks: tuple[ProviderCheck, ...] = ()
    retry_after: int | None = None
    """Seconds, if the provider said when to retry."""
    evidence: ProviderEvidence | None = None
    """None without a response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """The data for creating a provider's session."""

    reference: str
    """Our own: the session's subject. It says nothing of a person."""
    return_url: str
    """Where the provider sends the buyer's browser afterwards."""
    locale: str
    """`en` or `es`."""
    key: str
    """The same for each repetition: a repeated one makes no second session."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StartedSession(Private):
    """A provider's session that waits for its buyer."""

    session_id: str
    url: str
    """Of the provider's page. It lets anybody continue the session: it is kept sealed."""
    expires_at: datetime | None = None
    """When the provider gives it up; None if unknown."""
    opens_once: bool = False
    """Whether `url` opens the page only once: a buyer who goes back needs a new one."""
    leads_back: bool = True
    """Whether the provider leads the buyer to the return address in the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookHint:
    """The content of an authentic webhook: only that a session is worth polling."""

    session_id: str
    """The session; ask again, and believe nothing else of the message."""
    event_key: str
    """Equal for every delivery of one event; if the provider gives events no identifier, a digest
    of the signed bytes."""
