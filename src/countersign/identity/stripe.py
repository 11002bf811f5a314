"""Stripe Identity: VerificationSessions, and the webhooks about them.

Sources: Stripe's API reference, version 2026-10-28.endive; "Access verification results" for the
rights of each key; "Idempotent requests"; "Verify webhook signatures manually".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import ClassVar, Final
from urllib.parse import urlencode

from countersign.identity import json_reader as read
from countersign.identity.base import (
    Credentials,
    IdentityProvider,
    Response,
    address,
    checks,
    document_of,
)
from countersign.identity.json_reader import words_of
from countersign.identity.model import (
    FactSource,
    Finding,
    ProviderResult,
    StartedSession,
    StartRequest,
    Tri,
    WebhookHint,
)
from countersign.identity.starting import Refused, check_form
from countersign.identity.transport import Budget, ProviderReply, ProviderRequest, is_transient
from countersign.identity.webhook_signature import check_timestamped

SESSION_ID: Final = re.compile(r"vs_[A-Za-z0-9]{8,200}", re.ASCII)
_API_KEY: Final = re.compile(r"rk_(?:live|test)_[A-Za-z0-9_]{8,250}", re.ASCII)
_FLOW_ID: Final = re.compile(r"vf_[A-Za-z0-9_]{8,200}", re.ASCII)
_WEBHOOK_SECRET: Final = re.compile(r"whsec_[!-~]{8,250}", re.ASCII)
_EVENT_ID: Final = re.compile(r"evt_[A-Za-z0-9_]{1,200}", re.ASCII)
_WORD: Final = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)
_SESSION_OF: Final = {"event": "data.object.id", "v2.core.event": "related_object.id"}
"""Where a snapshot event names its session, and a thin one."""
_CREATED: Final = "last_verification_report.created"
_SESSIONS: Final = "/v1/identity/verification_sessions"
_DOCUMENT: Final = (
    ("type", "document"),
    # A passport has no address, and Stripe no other proof of one: it could only fail.
    ("options[document][allowed_types][0]", "driving_license"),
    ("options[document][allowed_types][1]", "id_card"),
    ("options[document][require_matching_selfie]", "true"),
)


class StripeCredentials(Credentials, frozen=True, kw_only=True):
    """The credentials file of an account that uses Stripe Identity.

    Stripe's responses say whether a session is live.
    """

    origin: ClassVar[str] = "https://api.stripe.com"

    api_key: str
    """A restricted key, `rk_live_…` or `rk_test_…`."""
    webhook_secrets: tuple[str, ...] = ()
    """Each `whsec_…`; two during a replacement. Without any, webhooks are refused."""
    failing_errors: tuple[str, ...] = ("selfie_manipulated", "under_supported_age")
    """The codes of `last_error` that are a final refusal, rather than a reason to try again."""
    subject_metadata_key: str | None = None
    """The metadata key with the reference to the buyer, if not `client_reference_id`."""
    verification_flow: str | None = None
    """`vf_…`, a flow of the dashboard that sessions are started with. Without it a session asks
    for a driving licence or an identity card, and a selfie."""

    @property
    def is_test(self) -> bool:
        return self.api_key.startswith("rk_test_")

    def check(self) -> None:
        if self.api_key.startswith(("sk_", "pk_")):
            raise ValueError(
                "api_key: only a restricted key (rk_…) can read dates of birth. Create one at "
                "Stripe with the permissions 'Verification Sessions and Reports: Read' ('Write' to "
                "start sessions too) and 'Access recent sensitive verification results: Read', and "
                "nothing else."
            )
        if not _API_KEY.fullmatch(self.api_key):
            raise ValueError("api_key: give a restricted key, rk_live_… or rk_test_….")
        if not all(map(_WEBHOOK_SECRET.fullmatch, self.webhook_secrets)):
            raise ValueError("webhook_secrets: each must begin with whsec_, as Stripe shows it.")
        if self.subject_metadata_key == "":
            raise ValueError("subject_metadata_key: leave it out to use client_reference_id.")
        check_form("verification_flow", self.verification_flow, _FLOW_ID, "vf_123…")


class Stripe(IdentityProvider[StripeCredentials]):
    """Stripe Identity with the credentials of one account."""

    name = "stripe"
    credentials_type = StripeCredentials
    session_id = SESSION_ID
    probe_session_id = "vs_000000000000000000000000"
    api_version = "2026-10-28.endive"
    request_id_header = "request-id"
    words = words_of(__file__)
    pages = ("stripe.com",)

    async def _retrieve(self, session_id: str, budget: Budget) -> ProviderResult:
        response = await self._ask(session_id, self._request(session_id), budget)
        if response.reply.status != 403:
            return self.translate(response)
        # A key without access to sensitive results makes the whole request fail. The outcome is
        # useful without them, and the decision detects missing facts.
        response = await self._ask(session_id, self._expanding(session_id), budget)
        evidence = replace(response.evidence, sensitive_complete=False)
        return self.translate(replace(response, evidence=evidence))

    def _request(self, session_id: str) -> ProviderRequest:
        return self._expanding(session_id, *self.words.lists["sensitive"])

    def _expanding(self, session_id: str, *sensitive: str) -> ProviderRequest:
        paths = (*self.words.lists["expanded"], *sensitive)
        return ProviderRequest(
            path=f"{_SESSIONS}/{session_id}",
            query=tuple([("expand[]", path) for path in paths]),
            headers=self._headers,
            is_transient=_is_transient,
        )

    @property
    def _headers(self) -> dict[str, str]:
        key = self._credentials.api_key
        return {"Authorization": f"Bearer {key}", "Stripe-Version": self.api_version}

    async def _start(self, wanted: StartRequest, budget: Budget) -> StartedSession:
        key, flow = self._credentials.subject_metadata_key, self._credentials.verification_flow
        subject = "client_reference_id" if key is None else f"metadata[{key}]"
        form = [
            *(_DOCUMENT if flow is None else [("verification_flow", flow)]),
            (subject, wanted.reference),
            ("return_url", wanted.return_url),
        ]
        making = ProviderRequest(
            method="POST",
            path=_SESSIONS,
            headers={
                **self._headers,
                "Content-Type": "application/x-www-form-urlencoded",
                "Idempotency-Key": wanted.key,
            },
            body=urlencode(form).encode("ascii"),
            is_transient=_is_transient,
        )
        reply, session = await self._make(making, budget)
        session_id = read.matching(session, "id", SESSION_ID)
        if reply.headers.get("idempotent-replayed") == "true":
            # The URL works once: a returning buyer needs the current one.
            asking = replace(self._expanding(session_id), query=())
            _, session = await self._make(asking, budget)
        read.expect(session, "object", "identity.verification_session")
        if session.get("id") != session_id or self._subject(session) != wanted.reference:
            raise read.Unreadable("id")
        read.expect(session, "livemode", not self._credentials.is_test)
        url = read.text(session, "url")
        if url is None:
            # It has no page any more: the buyer has submitted, or it has ended.
            raise Refused(self._unusable("not_open"))
        return StartedSession(session_id=session_id, url=url, opens_once=True)

    async def _read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        secrets = self._credentials.webhook_secrets
        check_timestamped(headers.get("stripe-signature", ""), body, secrets, self._now())
        event = read.parse(body)
        kind = event.get("type")
        path = _SESSION_OF.get(str(event.get("object")))
        if path is None or not isinstance(kind, str):
            raise read.Unreadable("event")
        if kind.removeprefix("v1.") not in self.words.lists["webhooks"]:
            return None
        session_id = read.matching(event, path, SESSION_ID)
        return WebhookHint(session_id=session_id, event_key=read.matching(event, "id", _EVENT_ID))

    def _error(self, response: Response, body: read.Object | None) -> ProviderResult:
        # Never `error.message`, which contains the session id.
        code = read.word(read.value(body or {}, "error.code"), _WORD)
        return response.error(code, genuine=code == "resource_missing")

    def _session(self, response: Response, session: read.Object) -> ProviderResult:
        read.expect(session, "object", "identity.verification_session")
        read.expect(session, "id", response.session_id)
        live = read.flag(session, "livemode")
        if live is None:
            raise read.Unreadable("livemode")
        name = "last_verification_report"
        # It may be an identifier alone.
        report = {} if isinstance(session.get(name), str) else read.mapping(session, name)
        code = read.word(read.value(session, "last_error.code"), _WORD)
        status, subject = read.text(session, "status"), self._subject(session)
        result = self._decided(response, status, code, live=live, subject=subject)
        # Before the status: a redacted session is still `verified`.
        if _redacted(session, report):
            return replace(result, outcome=Finding.REDACTED)
        failing = code in self._credentials.failing_errors
        if result.outcome is Finding.REQUIRES_INPUT and failing:
            return replace(result, outcome=Finding.FAILED)
        if result.outcome is not Finding.VERIFIED:
            return result
        if report and report.get("verification_session") != response.session_id:
            raise read.Unreadable("last_verification_report.verification_session")
        if _withholds_sensitive(session, report):
            result = replace(result, evidence=replace(response.evidence, sensitive_complete=False))
        with read.facts_unknown() as unread:
            result = self._with_person(result, session, report)
        return replace(result, unread=tuple(unread))

    def _subject(self, session: read.Object) -> str | None:
        key = self._credentials.subject_metadata_key
        if key is None:
            return read.text(session, "client_reference_id")
        return read.as_text(read.mapping(session, "metadata").get(key), "metadata")

    def _with_person(
        self, result: ProviderResult, session: read.Object, report: read.Object
    ) -> ProviderResult:
        """The result with the facts about the person in a verified session and its report."""
        by_document = read.value(report, "document.status") == "verified"
        by_number = read.value(report, "id_number.status") == "verified"
        # Without either, all of it can be input of the buyer.
        source = FactSource.DOCUMENT if by_document else FactSource.USER
        proof = FactSource.DATABASE if by_number and not by_document else source
        # A passport has no address. One sample of Stripe's has `zip`; the schema and every SDK have
        # `postal_code`.
        written = read.mapping(session, "verified_outputs.address")
        lives_at = address(written, source, "postal_code", "country", region="state")
        issued = {"type": "document.type", "issuing_country": "document.issuing_country"}
        expiry = read.expiry(report, "document.expiration_date")
        # Stripe does not name the issuing state: a licence is issued where its holder lives.
        issued_in = lives_at.region if lives_at else None
        shown = document_of(expiry, **read.texts(report, **issued), issuing_region=issued_in)
        words = [
            (name, read.word(read.value(report, f"{name}.status"), _WORD))
            for name in self.words.lists["checks"]
        ]
        result = replace(
            result,
            decided_at=read.instant(session, _CREATED) if report else None,
            checks=checks(words, self.words.verdicts, Tri.UNKNOWN),
        )
        return self._of_person(
            result,
            read.parts_date(session, "verified_outputs.dob"),
            [lives_at],
            born_by=proof,
            document=shown if by_document else None,
            number=read.text(report, "document.number"),
        )


def _is_transient(reply: ProviderReply) -> bool:
    """Stripe itself can say whether to try again; 409 is a momentarily locked object."""
    advice = reply.headers.get("stripe-should-retry")
    if advice in {"true", "false"}:
        return advice == "true"
    return reply.status == 409 or is_transient(reply)


def _withholds_sensitive(session: read.Object, report: read.Object) -> bool:
    """Whether requested members are missing in a verified session.

    Stripe leaves them out for a restricted key without an allow-list 48 hours after the
    verification; a document that has none shows null instead.
    """
    try:
        outputs = read.mapping(session, "verified_outputs")
        document = read.mapping(report, "document")
    except read.Unreadable:
        return False
    return "dob" not in outputs or (bool(document) and "expiration_date" not in document)


def _redacted(session: read.Object, report: read.Object) -> bool:
    """Whether Stripe has redacted it, or is about to.

    The placeholders count too, so that a session is recognised before `redaction` is set.
    """
    if session.get("redaction") is not None:
        return True
    with read.facts_unknown():
        outputs = read.mapping(session, "verified_outputs")
        if read.parts_date(outputs, "dob") == date(1, 1, 1):
            return True
    left: list[object] = [outputs, report]
    while left:
        found = left.pop()
        if isinstance(found, dict):
            left += found.values()
        elif found == "[redacted]":
            return True
    return False
