"""The base of every adapter of an identity provider.

An adapter is one module: the credentials, and a client that sends the requests and translates the
provider's bytes to a `ProviderResult`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from typing import ClassVar, Final, Generic, TypeVar

import msgspec

from countersign.base.errors import VerificationMisconfigured, WebhookRefused
from countersign.base.values import Clock, from_ns
from countersign.identity import json_reader as read
from countersign.identity.fingerprint import Fingerprint, is_known_kind
from countersign.identity.json_reader import Words
from countersign.identity.model import (
    Address,
    Document,
    FactSource,
    Finding,
    Private,
    ProviderCheck,
    ProviderEvidence,
    ProviderResult,
    StartedSession,
    StartRequest,
    Tri,
    WebhookHint,
)
from countersign.identity.reporting import report, report_kind
from countersign.identity.same_person import Holder
from countersign.identity.starting import HOST, Refused, is_page, refusal
from countersign.identity.transport import (
    DIRECT,
    Budget,
    Outbound,
    ProviderHttp,
    ProviderReply,
    ProviderRequest,
    TransportFailure,
)

UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII)
"""Of any version: the providers' examples are not all version 4."""
_VISIBLE: Final = re.compile(r"[!-~]{8,300}", re.ASCII)


class Credentials(Private, msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of an account's credentials file."""

    page_hosts: tuple[str, ...] = ()
    """Hosts of your own where the provider serves its pages to buyers, such as
    `verify.example.com`; the provider's hosts are known."""

    def __post_init__(self) -> None:
        if not all(map(HOST.fullmatch, self.page_hosts)):
            raise ValueError("`page_hosts`: give names of hosts, such as verify.example.com")

    @property
    def origin(self) -> str:
        """The address where they are valid, `https://…`."""
        raise NotImplementedError

    @property
    def is_test(self) -> bool:
        """Whether they can only see sessions of the provider's test mode."""
        return getattr(self, "environment", None) == "sandbox"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Checks or functions that these credentials lack; one or more sentences for each."""
        return ()

    def check(self) -> None:
        """Refuse every mistake that can be detected without a request.

        Raises:
            ValueError: the text says what to do, and contains no secret.
        """

    def check_visible(self, **named: str | tuple[str, ...]) -> None:
        """Refuse what cannot be a key: it was cut, or copied with something else.

        Raises:
            ValueError: the text has the member's name.
        """
        for name, given in named.items():
            for number, value in enumerate((given,) if isinstance(given, str) else given):
                if _VISIBLE.fullmatch(value) is None:
                    place = name if isinstance(given, str) else f"{name}[{number}]"
                    msg = f"`{place}`: give 8 to 300 visible ASCII characters, without spaces"
                    raise ValueError(msg)


C = TypeVar("C", bound=Credentials)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Response:
    """A provider's response about one session."""

    provider: str
    session_id: str
    """The requested one."""
    reply: ProviderReply
    evidence: ProviderEvidence

    def result(self, outcome: Finding, reason_code: str | None = None) -> ProviderResult:
        """A result that says nothing else yet."""
        return ProviderResult(
            provider=self.provider,
            session_id=self.session_id,
            outcome=outcome,
            reason_code=reason_code,
            evidence=self.evidence,
        )

    def refused(self, outcome: Finding, reason_code: str | None = None) -> ProviderResult:
        """The result of a response that says nothing about a session: an error, or unreadable."""
        return replace(
            self.result(outcome, reason_code or f"http_{self.reply.status}"),
            retry_after=self.reply.wait,
        )

    def error(self, reason_code: str | None = None, *, genuine: bool) -> ProviderResult:
        """The result of a status other than 200.

        `genuine` is whether the body is an error of the provider: a 404 of another server says
        nothing about the session or the credentials.
        """
        outcome = outcome_of_status(self.reply.status)
        if outcome is Finding.NOT_FOUND and not genuine:
            outcome = Finding.INVALID_RESPONSE
        return self.refused(outcome, reason_code)


class IdentityProvider(ABC, Generic[C]):
    """An identity provider, with the credentials of one account."""

    name: ClassVar[str]
    """The name of its entry point, see `registry`."""
    credentials_type: ClassVar[type[Credentials]]
    session_id: ClassVar[re.Pattern[str]]
    """Compared before anything is sent; one session must have one spelling."""
    probe_session_id: ClassVar[str]
    """A well-formed identifier that no session has: retrieving it tries the credentials."""
    api_version: ClassVar[str]
    """Pinned in every request, or part of its path."""
    request_id_header: ClassVar[str] = ""
    """Of a response, in small letters."""
    words: ClassVar[Words]
    pages: ClassVar[tuple[str, ...]]
    """The domains of the provider's pages: `start` sends a buyer nowhere else."""

    def __init__(
        self,
        credentials: C,
        *,
        base_url: str | None,
        fingerprint: Fingerprint,
        clock: Clock,
        outbound: Outbound = DIRECT,
    ) -> None:
        self._credentials = credentials
        self._base_url = base_url
        self._fingerprint = fingerprint
        self._clock = clock
        self._http = ProviderHttp(base_url or credentials.origin, clock, outbound=outbound)

    async def retrieve(self, session_id: str) -> ProviderResult:
        """The current state of a session; remote faults are outcomes, not exceptions.

        A response without a decision is logged.

        Raises:
            ValueError: this cannot be a session id of the provider; nothing was sent.
        """
        if self.session_id.fullmatch(session_id) is None:
            raise ValueError(f"not a session id of {self.name}")
        try:
            result = await self._retrieve(session_id, self._http.budget())
        except TransportFailure as failure:
            result = self._nothing(session_id, failure)
        report(result, self.words.error_codes)
        return result

    async def start(self, wanted: StartRequest) -> StartedSession:
        """Make a session for a buyer, with `wanted.reference` as its subject.

        If the provider recognises repetitions, the same request returns the same session, with a
        working URL: some providers' URLs work once. Veriff and Onfido know none.

        Raises:
            ProviderUnavailable: no usable response. A repetition is safe: at worst a session is
                left that no one can open.
            VerificationMisconfigured: the provider refuses the request, or the credentials lack a
                value for new sessions, such as a template.
        """
        try:
            started = await self._start(wanted, self._http.budget())
            domains = (*self.pages, *self._credentials.page_hosts)
            if is_page(started.url, domains, self._base_url):
                return started
            # A buyer who was sent on would trust whatever is there.
            result = self._unusable("page_elsewhere")
        except TransportFailure as failure:
            result = self._nothing("", failure)
        except Refused as refused:
            result = refused.result
        except read.Unreadable as unread:
            result = replace(self._unusable("unreadable"), unread=(str(unread),))
        report(result, self.words.error_codes, "provider_session_not_started")
        raise refusal(result)

    async def read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        """The session that an authentic webhook is about; None if it is about something else.

        `headers` has names in small letters. The signature is checked before the body is parsed.

        Raises:
            WebhookRefused: it is not authentic, too old, or unreadable.
            ProviderUnavailable: whether it is authentic cannot be decided now (Plaid's keys).
        """
        try:
            return await self._read_webhook(headers, body)
        except read.Unreadable:
            raise WebhookRefused("The message of the identity provider is unreadable.") from None

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def translate(self, response: Response) -> ProviderResult:
        """The result of a response about a session; any bytes have one."""
        if response.reply.status != 200:
            with read.facts_unknown():
                return self._error(response, read.parsed(response.reply.body))
        try:
            body = read.parse(response.reply.body)
            result = self._session(response, body)
        except read.Unreadable as unread:
            refused = response.refused(Finding.INVALID_RESPONSE, "unreadable")
            return replace(refused, unread=(str(unread),))
        return replace(result, unknown_fields=self.words.fields.unknown(body))

    @abstractmethod
    def _request(self, session_id: str) -> ProviderRequest:
        """The request to the provider about a session."""

    @abstractmethod
    def _session(self, response: Response, body: read.Object) -> ProviderResult:
        """The result of a response with status 200; raises Unreadable for an impossible one."""

    @abstractmethod
    def _error(self, response: Response, body: read.Object | None) -> ProviderResult:
        """The result of one with another status; the body is None if it is no JSON object."""

    @abstractmethod
    async def _start(self, wanted: StartRequest, budget: Budget) -> StartedSession:
        """Make the session; its address is checked afterwards.

        Raises:
            TransportFailure: there is no response.
            Refused: the provider refuses.
            Unreadable: the response is not as the provider documents, or is of another session.
            VerificationMisconfigured: the credentials lack something.
        """

    @abstractmethod
    async def _read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        """See `read_webhook`; raises Unreadable for an undocumented message."""

    async def _retrieve(self, session_id: str, budget: Budget) -> ProviderResult:
        """Send the requests and translate the responses; raises TransportFailure without one."""
        return self.translate(await self._ask(session_id, self._request(session_id), budget))

    async def _ask(self, session_id: str, request: ProviderRequest, budget: Budget) -> Response:
        """Send a request about a session; raises TransportFailure if there is no response."""
        reply = await self._http.send(request, budget)
        request_id = reply.headers.get(self.request_id_header)
        return Response(
            provider=self.name,
            session_id=session_id,
            reply=reply,
            evidence=evidence_of(reply, self._clock, self.api_version, request_id),
        )

    async def _make(
        self, request: ProviderRequest, budget: Budget
    ) -> tuple[ProviderReply, read.Object]:
        """The response to a request that makes something, and its body; raises as `_start`."""
        response = await self._ask("", request, budget)
        reply = response.reply
        if reply.status in {200, 201}:
            return reply, read.parse(reply.body)
        with read.facts_unknown():
            refused = self._error(response, read.parsed(reply.body))
        if reply.status == 422 or refused.outcome is Finding.NOT_FOUND:
            # Some providers' words for a value that they do not accept, or a template unknown.
            refused = replace(refused, outcome=Finding.PROVIDER_REJECTED)
        raise Refused(refused)

    def _needed(self, member: str) -> str:
        """A member of the credentials without which no session can be started.

        Raises:
            VerificationMisconfigured: it is missing.
        """
        value: str | None = getattr(self._credentials, member)
        if value is None:
            raise VerificationMisconfigured(
                f"The credentials for {self.name} can only read sessions. To start one, the "
                f"operator has to add `{member}`."
            )
        return value

    def _nothing(self, session_id: str, failure: TransportFailure) -> ProviderResult:
        """The result without a response."""
        return ProviderResult(
            provider=self.name,
            session_id=session_id,
            outcome=failure.outcome,
            reason_code=failure.reason,
            retry_after=failure.retry_after,
        )

    def _unusable(self, reason: str) -> ProviderResult:
        return self._nothing("", TransportFailure(Finding.INVALID_RESPONSE, reason))

    def _now(self) -> int:
        """Unix seconds."""
        return self._clock.time_ns() // 1_000_000_000

    def _decided(
        self,
        response: Response,
        status: str | None,
        reason_code: str | None = None,
        *,
        live: bool | None,
        subject: str | None,
    ) -> ProviderResult:
        """The result by the provider's status."""
        outcome = self.words.outcomes.get(status or "")
        if outcome is None:
            # It may be a sentence about a person.
            status, reason_code, outcome = None, "unknown_status", Finding.INVALID_RESPONSE
        return replace(
            response.result(outcome, reason_code),
            provider_status=status,
            reason=self.words.reasons.get(reason_code or ""),
            live=live,
            subject_reference=subject,
        )

    def _of_person(
        self,
        result: ProviderResult,
        born: date | None,
        addresses: Iterable[Address | None],
        *,
        born_by: FactSource,
        document: Document | None,
        number: str | None,
    ) -> ProviderResult:
        """The result with the proved facts of a person; `born_by` proves the date of birth.

        Names, street and city are not kept: nothing decides by them.
        """
        fingerprint = None
        if document is not None:
            if document.type is not None and not is_known_kind(document.type):
                report_kind(self.name, document.type)
            issuer = document.issuing_country, document.issuing_region
            fingerprint = self._fingerprint(*issuer, document.type, number)
        return replace(
            result,
            date_of_birth=born,
            date_of_birth_source=born_by if born else FactSource.NONE,
            addresses=tuple(filter(None, addresses)),
            document=document,
            document_fingerprint=fingerprint,
        )


def holder(parts: read.Object, given_name: str, family_name: str, born: str) -> Holder:
    """The holder of a document, by the names of these three members."""
    return Holder(
        given_name=read.text(parts, given_name),
        family_name=read.text(parts, family_name),
        date_of_birth=read.iso_date(parts, born),
    )


def address(parts: read.Object, source: FactSource, *same: str, **names: str) -> Address | None:
    """An address, its members named as for `json_reader.texts`; None if empty."""
    return Address(source=source, **read.texts(parts, *same, **names)) if parts else None  # type: ignore[arg-type]


def document_of(expiry: read.Expiry, **issued: str | None) -> Document:
    """A document, by its `type`, `issuing_country` and `issuing_region`."""
    return Document(**issued, expires_on=expiry.on, expiry_unread=expiry.unread)


def checks(
    found: Iterable[tuple[str, str | None]], verdicts: Mapping[str, Tri], other: Tri | None = None
) -> tuple[ProviderCheck, ...]:
    """Checks by name, with the provider's words for their verdicts.

    `other` is the verdict of unpublished words; without it such a word is not repeated, as it could
    be anything.
    """
    judged = ((name, raw, verdicts.get(raw, other)) for name, raw in found if raw is not None)
    return tuple(
        ProviderCheck(name=name, verdict=verdict, raw=raw)
        for name, raw, verdict in judged
        if verdict
    )


def evidence_of(
    reply: ProviderReply, clock: Clock, api_version: str, request_id: str | None
) -> ProviderEvidence:
    """The stored facts about a response."""
    return ProviderEvidence(
        raw_body=reply.body,
        sha256=sha256(reply.body).hexdigest(),
        http_status=reply.status,
        request_id=request_id,
        api_version=api_version,
        request_target=reply.target,
        response_signature=None,
        retrieved_at=from_ns(clock.time_ns()),
    )


def outcome_of_status(status: int) -> Finding:
    """The default meaning of an HTTP status other than 200, for every provider."""
    if status == 404:
        return Finding.NOT_FOUND
    if status in {408, 409, 425, 429} or status >= 500:
        return Finding.PROVIDER_UNAVAILABLE
    if status in {400, 401, 402, 403}:
        return Finding.PROVIDER_REJECTED
    return Finding.INVALID_RESPONSE
