"""What every adapter of an identity provider is built on.

An adapter is one module: the credentials, a client that sends the requests, and pure functions from
the provider's bytes to a `ProviderResult`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import ClassVar, Generic, Protocol, TypeVar

import msgspec

from countersign.clock import Clock
from countersign.errors import WebhookRefused
from countersign.identity.budget import Budget
from countersign.identity.fields import Fields
from countersign.identity.fingerprint import Fingerprint
from countersign.identity.instrumented import report
from countersign.identity.json_reader import Object, Unreadable, parse
from countersign.identity.model import (
    Finding,
    ProviderEvidence,
    ProviderResult,
    WebhookHint,
)
from countersign.identity.transport import DIRECT, ProviderHttp, Reach
from countersign.identity.types import (
    RETRY_AFTER_SECONDS,
    ProviderReply,
    ProviderRequest,
    TransportFailure,
)
from countersign.instant import from_ns


class IdentityProvider(Protocol):
    """An identity provider, with the credentials of one account."""

    @property
    def name(self) -> str:
        """`stripe`, `persona`, `veriff`, `plaid`, `didit` or `onfido`."""
        ...

    @property
    def probe_session_id(self) -> str:
        """A well-formed identifier that no session has: retrieving it tries the credentials."""
        ...

    async def retrieve(self, session_id: str) -> ProviderResult:
        """The current state of a session; remote faults are outcomes, not exceptions.

        Raises:
            ValueError: this cannot be a session id of the provider; nothing was sent.
        """
        ...

    async def read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        """The session that an authentic webhook is about; None if it is about something else.

        `headers` has names in small letters. The signature is checked before the body is parsed.

        Raises:
            WebhookRefused: it is not authentic, too old, or unreadable.
            ProviderUnavailable: whether it is authentic cannot be decided now (Plaid's keys).
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class Credentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of an account's credentials file."""

    @property
    def origin(self) -> str:
        """The address at which they are valid, `https://…`."""
        raise NotImplementedError

    @property
    def is_test(self) -> bool:
        """Whether they can only see sessions of the provider's test mode."""
        return getattr(self, "environment", None) == "sandbox"

    def check(self) -> None:
        """Refuse every mistake that can be detected without a request.

        Raises:
            ValueError: the text says what to do, and contains no secret.
        """

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: hidden>"


C = TypeVar("C", bound=Credentials)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Response(Generic[C]):
    """A provider's response about one session, and what it is read with."""

    provider: str
    session_id: str
    """The one that was asked for."""
    reply: ProviderReply
    evidence: ProviderEvidence
    credentials: C
    fingerprint: Fingerprint

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
            retry_after=self.reply.retry_after or RETRY_AFTER_SECONDS,
        )

    def error(self, reason_code: str | None = None, *, genuine: bool) -> ProviderResult:
        """The result of a status other than 200.

        `genuine` is whether the body is an error of the provider: a 404 of another server says
        nothing about the session, nor about the credentials.
        """
        outcome = outcome_of_status(self.reply.status)
        if outcome is Finding.NOT_FOUND and not genuine:
            outcome = Finding.INVALID_RESPONSE
        return self.refused(outcome, reason_code)

    def translated(
        self,
        error: Callable[[Response[C]], ProviderResult],
        session: Callable[[Response[C], Object], ProviderResult],
        fields: Fields,
    ) -> ProviderResult:
        """The result by the provider's two translators; any bytes have one."""
        if self.reply.status != 200:
            return error(self)
        try:
            body = parse(self.reply.body)
            result = session(self, body)
        except Unreadable as unread:
            refused = self.refused(Finding.INVALID_RESPONSE, "unreadable")
            return replace(refused, unread=(str(unread),))
        return replace(result, unknown_fields=fields.unknown(body))


class Adapter(ABC, Generic[C]):
    """A client of one provider; the base of every `IdentityProvider`."""

    name: ClassVar[str]
    credentials_type: ClassVar[type[Credentials]]
    session_id: ClassVar[re.Pattern[str]]
    """Compared before anything is sent; one session must have one spelling."""
    probe_session_id: ClassVar[str]
    api_version: ClassVar[str]
    """Pinned in every request, or part of its path."""
    request_id_header: ClassVar[str] = ""
    """Of a response, in small letters."""
    error_codes: ClassVar[frozenset[str]] = frozenset()
    """Codes that the provider publishes for its errors, and that can be logged."""

    def __init__(
        self,
        credentials: C,
        *,
        base_url: str | None,
        fingerprint: Fingerprint,
        clock: Clock,
        reach: Reach = DIRECT,
    ) -> None:
        self._credentials = credentials
        self._fingerprint = fingerprint
        self._clock = clock
        self._http = ProviderHttp(base_url or credentials.origin, clock, reach=reach)

    async def retrieve(self, session_id: str) -> ProviderResult:
        """See `IdentityProvider`; a response without a decision is logged."""
        if self.session_id.fullmatch(session_id) is None:
            msg = f"not a session id of {self.name}"
            raise ValueError(msg)
        try:
            result = await self._retrieve(session_id, self._http.budget())
        except TransportFailure as failure:
            result = ProviderResult(
                provider=self.name,
                session_id=session_id,
                outcome=failure.outcome,
                reason_code=failure.reason,
                retry_after=failure.retry_after or RETRY_AFTER_SECONDS,
            )
        report(result, self.error_codes)
        return result

    async def read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        """See `IdentityProvider`."""
        try:
            return await self._read_webhook(headers, body)
        except Unreadable:
            raise WebhookRefused("The message of the identity provider is unreadable.") from None

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    @abstractmethod
    async def _retrieve(self, session_id: str, budget: Budget) -> ProviderResult:
        """Send the requests and translate the responses.

        Raises:
            TransportFailure: there was no response.
        """

    @abstractmethod
    async def _read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        """Check the signature and read the message.

        Raises:
            WebhookRefused: it is not authentic, or too old.
            Unreadable: it is not what the provider describes.
            ProviderUnavailable: the signature cannot be checked now.
        """

    def _now(self) -> int:
        """Unix seconds."""
        return self._clock.time_ns() // 1_000_000_000

    async def _ask(self, session_id: str, request: ProviderRequest, budget: Budget) -> Response[C]:
        """Send a request about a session.

        Raises:
            TransportFailure: there was no response.
        """
        reply = await self._http.send(request, budget)
        request_id = reply.headers.get(self.request_id_header)
        return Response(
            provider=self.name,
            session_id=session_id,
            reply=reply,
            evidence=evidence_of(reply, self._clock, self.api_version, request_id),
            credentials=self._credentials,
            fingerprint=self._fingerprint,
        )


def evidence_of(
    reply: ProviderReply, clock: Clock, api_version: str, request_id: str | None
) -> ProviderEvidence:
    """What is kept of a response."""
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
    """What an HTTP status other than 200 means with every provider, unless it says otherwise."""
    if status == 404:
        return Finding.NOT_FOUND
    if status in {408, 409, 425, 429} or status >= 500:
        return Finding.PROVIDER_UNAVAILABLE
    if status in {400, 401, 402, 403}:
        return Finding.PROVIDER_REJECTED
    return Finding.INVALID_RESPONSE
