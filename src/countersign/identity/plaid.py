"""Plaid Identity Verification, and the webhooks about it.

`user` is "either collected from the user or provided via API", so it counts only where `kyc_check`
says that a data source has exactly that; `extracted_data` is read from the document.

A buyer goes to a verification link (`shareable_url`). Plaid cannot send the browser back: no member
of the request names a return address, and Hosted Link, which has one, "will not redirect to the
`completion_redirect_uri`" with Identity Verification (Plaid's page "Hosted Link"). So the buyer
comes back without Plaid's help. The link, unlike one of Hosted Link, does not expire.

Sources: Plaid's published description, API version 2020-09-14; "Webhook verification";
"Verification links" and "Retries" of "Introduction to Identity Verification".
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from functools import cached_property
from typing import Final, Literal

import jwt

from countersign.identity import json_reader as read
from countersign.identity.base import (
    Credentials,
    IdentityProvider,
    Response,
    address,
    checks,
    document_of,
    outcome_of_status,
)
from countersign.identity.json_reader import by_word, words_of
from countersign.identity.model import (
    Address,
    FactSource,
    Finding,
    ProviderCheck,
    ProviderResult,
    StartedSession,
    StartRequest,
    Tri,
    WebhookHint,
)
from countersign.identity.starting import Refused, check_form, post
from countersign.identity.transport import Budget, ProviderReply, ProviderRequest, TransportFailure
from countersign.identity.webhook_jwt import PublicKey, WebhookKeys, keep_newest

_WORDS: Final = words_of(__file__)
_LISTS: Final = _WORDS.lists
_STEPS: Final = _WORDS.verdicts
"""Of the statuses of a step."""
SESSION_ID: Final = re.compile(r"idv_[A-Za-z0-9]{8,64}", re.ASCII)
RETRIEVED_MAX: Final = 4096
"""Cached session ids, so that strangers' messages do not delay messages about real sessions."""
_TEMPLATE_ID: Final = re.compile(r"idvtmp_[A-Za-z0-9]{8,64}", re.ASCII)
_LANGUAGES: Final = {"en": "en-US", "es": "es-US"}
_WORD: Final = re.compile(r"(?=_*[A-Za-z0-9])[A-Za-z0-9_]{1,64}", re.ASCII)
"""An error code or a status; a sentence could contain anything."""
_UNVERIFIED_BYTES_MAX: Final = 4096
"""Of a body that is read before its signature is checked; Plaid's messages have some 200 bytes."""
_ACCEPTED: Final = frozenset({"success", "manually_approved"})
"""Of a step or a document: Plaid, or the account's reviewer at Plaid, lets it pass."""
_ABSENT: Final = frozenset({"not_applicable", "skipped"})
"""Of a step that this verification did not take."""
_MATCHES: Final = by_word(
    # `true` and `false` mean that a motor-vehicle authority knows, or does not know, the licence.
    {
        Tri.PASS: "match true",
        Tri.FAIL: "no_match",
        Tri.UNKNOWN: "partial_match no_data no_input false",
    }
)


class PlaidCredentials(Credentials, frozen=True, kw_only=True):
    """The credentials file for Plaid. Webhooks need no secret: Plaid signs them with its key."""

    client_id: str
    secret: str
    """The secret of the environment."""
    environment: Literal["live", "sandbox"]
    """Selects the host; Plaid's responses do not say it."""
    accept_kyc: bool = False
    """Whether a template without a document proves a person by what data sources confirm."""
    template_id: str | None = None
    """`idvtmp_…`, of a template with the document step; to start verifications."""

    @property
    def origin(self) -> str:
        host = "production" if self.environment == "live" else "sandbox"
        return f"https://{host}.plaid.com"

    def check(self) -> None:
        self.check_visible(client_id=self.client_id, secret=self.secret)
        if self.client_id == self.secret:
            raise ValueError("`secret` is the client identifier; Plaid shows the secret next to it")
        check_form("template_id", self.template_id, _TEMPLATE_ID, "idvtmp_Ab1…")


class Plaid(IdentityProvider[PlaidCredentials]):
    """Plaid with the credentials of one account."""

    name = "plaid"
    credentials_type = PlaidCredentials
    session_id = SESSION_ID
    probe_session_id = "idv_CountersignAsksWhetherItMay"
    api_version = "2020-09-14"
    words = _WORDS
    pages = ("plaid.com",)

    @cached_property
    def _keys(self) -> WebhookKeys:
        return WebhookKeys(self._fetch_key, self._clock)

    @cached_property
    def _retrieved(self) -> OrderedDict[str, None]:
        """Sessions for messages about which it is worth fetching a key."""
        return OrderedDict()

    async def _retrieve(self, session_id: str, budget: Budget) -> ProviderResult:
        keep_newest(self._retrieved, session_id, None, RETRIEVED_MAX)
        return await super()._retrieve(session_id, budget)

    def _request(self, session_id: str) -> ProviderRequest:
        return self._post("/identity_verification/get", identity_verification_id=session_id)

    async def _start(self, wanted: StartRequest, budget: Budget) -> StartedSession:
        template_id = self._needed("template_id")
        subject: dict[str, object] = {
            "template_id": template_id,
            "client_user_id": wanted.reference,
            "is_shareable": True,
        }
        _, made = await self._make(
            self._post(
                "/identity_verification/create",
                **subject,
                # The buyer agrees to Plaid's own terms at Plaid.
                gave_consent=False,
                is_idempotent=True,
                language=_LANGUAGES[wanted.locale],
            ),
            budget,
        )
        if made.get("status") != "active":
            # It returned an earlier verification of this subject, which has ended.
            again = self._post("/identity_verification/retry", **subject, strategy="reset")
            _, made = await self._make(replace(again, repeatable=False), budget)
        read.expect(made, "client_user_id", wanted.reference)
        read.expect(made, "template.id", template_id)
        url = read.text(made, "shareable_url")
        if made.get("status") != "active" or url is None:
            # It has no page any more: the buyer has submitted, or it has ended.
            raise Refused(self._unusable("not_open"))
        session_id = read.matching(made, "id", SESSION_ID)
        keep_newest(self._retrieved, session_id, None, RETRIEVED_MAX)
        return StartedSession(session_id=session_id, url=url, leads_back=False)

    def _post(self, path: str, **body: object) -> ProviderRequest:
        # Most only read, and `create` knows a repetition.
        headers = {
            "PLAID-CLIENT-ID": self._credentials.client_id,
            "PLAID-SECRET": self._credentials.secret,
            "Plaid-Version": self.api_version,
        }
        return post(path, body, headers, repeatable=True)

    async def _fetch_key(self, kid: str) -> PublicKey:
        request = self._post("/webhook_verification_key/get", key_id=kid)
        return key_of(await self._http.send(request), kid)

    async def _read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        token = headers.get("plaid-verification", "")
        expected = _session_named(body) in self._retrieved
        signed = await self._keys.verify(token, body, self._now(), expected=expected)
        event = read.parse(body)
        if read.text(event, "webhook_type") != "IDENTITY_VERIFICATION":
            return None
        if read.text(event, "webhook_code") not in _LISTS["webhook_codes"]:
            return None
        # Plaid's events have no identifier, and two of one session have the same body; the signed
        # bytes differ by the time.
        session_id = read.matching(event, "identity_verification_id", SESSION_ID)
        return WebhookHint(session_id=session_id, event_key=signed)

    def translate(self, response: Response) -> ProviderResult:
        """The result of a response; the identifier of the request is in its body."""
        with read.facts_unknown():
            request_id = read.text(read.parsed(response.reply.body) or {}, "request_id")
        evidence = replace(response.evidence, request_id=request_id)
        return super().translate(replace(response, evidence=evidence))

    def _error(self, response: Response, body: read.Object | None) -> ProviderResult:
        status = response.reply.status
        outcome = outcome_of_status(status)
        error = body or {}
        kind, code = read.text(error, "error_type"), read.text(error, "error_code")
        if kind in _LISTS["errors_for_now"]:
            outcome = Finding.PROVIDER_UNAVAILABLE
        elif outcome is Finding.PROVIDER_UNAVAILABLE:
            pass
        elif body is None or (status == 404 and kind is None):
            # From another server: it says nothing about the session or the credentials.
            outcome = Finding.INVALID_RESPONSE
        elif outcome in {Finding.PROVIDER_REJECTED, Finding.NOT_FOUND}:
            about_id = kind in _LISTS["errors_about_the_id"] and status in {400, 404}
            ours = code is None or code.startswith("UNAUTHORIZED_")
            ours = ours or code in _LISTS["errors_of_ours"]
            outcome = Finding.NOT_FOUND if about_id and not ours else Finding.PROVIDER_REJECTED
        return response.refused(outcome, read.word(code, _WORD))

    def _session(self, response: Response, body: read.Object) -> ProviderResult:
        documents = read.objects(body, "documentary_verification.documents")
        accepted = [each for each in documents if read.text(each, "status") in _ACCEPTED]
        # The last of at most three attempts.
        document = max(accepted, key=_attempt, default={})
        if read.text(body, "id") != response.session_id:
            return response.result(Finding.INVALID_RESPONSE, "other_session")
        live = self._credentials.environment == "live"
        status, subject = read.text(body, "status"), read.text(body, "client_user_id")
        result = self._decided(response, status, live=live, subject=subject)
        if body.get("redacted_at") is not None or document.get("redacted_at") is not None:
            return replace(result, outcome=Finding.REDACTED, reason_code=None)
        if result.outcome is Finding.INVALID_RESPONSE:
            return result
        found = {name: read.text(body, f"steps.{name}") or "" for name in _LISTS["steps"]}
        steps = {name: step if step in _STEPS else "unknown" for name, step in found.items()}
        verified = result.outcome is Finding.VERIFIED
        unproved = self._unproved(body, steps, document) if verified else None
        with read.facts_unknown() as unread:
            stepped = [(f"steps.{name}", step) for name, step in steps.items()]
            result = replace(
                result,
                decided_at=read.instant(body, "completed_at"),
                checks=checks(stepped, _STEPS, Tri.UNKNOWN) + _match_checks(body, document),
            )
            if verified and not unproved:
                shown = document if steps["documentary_verification"] in _ACCEPTED else {}
                result = self._with_person(result, body, steps, shown)
        result = replace(result, unread=tuple(unread))
        if unproved:
            step, status = unproved
            fails = _STEPS[status] is Tri.FAIL
            outcome = Finding.FAILED if fails else Finding.UNPROVED
            reason = _WORDS.reasons.get(step) if fails else None
            return replace(result, outcome=outcome, reason_code=f"{step}.{status}", reason=reason)
        failed = [name for name, step in steps.items() if _STEPS.get(step) is Tri.FAIL]
        if not failed or result.outcome not in {Finding.FAILED, Finding.PENDING}:
            return result
        return replace(result, reason_code=failed[0], reason=_WORDS.reasons.get(failed[0]))

    def _unproved(
        self, body: read.Object, steps: Mapping[str, str], document: read.Object
    ) -> tuple[str, str] | None:
        """The step and its status that make `success` worthless, if any.

        `success` says that every step of the template is settled, no more.
        """
        selfie, shown = steps["selfie_check"], steps["documentary_verification"]
        if not {selfie, shown, steps["kyc_check"]} <= _STEPS.keys():
            raise read.Unreadable("steps")
        if selfie not in _ACCEPTED | _ABSENT:
            return "selfie_check", selfie
        if shown in _ACCEPTED and document:
            # The section may still show Plaid's findings if a reviewer decided the step.
            if read.text(body, "documentary_verification.status") not in _ACCEPTED:
                raise read.Unreadable("documentary_verification.status")
            return None
        by_data = self._credentials.accept_kyc and shown in _ABSENT
        if by_data and steps["kyc_check"] == "success":
            return None
        return "documentary_verification", shown

    def _with_person(
        self,
        result: ProviderResult,
        body: read.Object,
        steps: Mapping[str, str],
        document: read.Object,
    ) -> ProviderResult:
        """Add the facts proved by the document if there is one, else by a data source."""
        shown, user = read.mapping(document, "extracted_data"), read.mapping(body, "user")
        matched = _is_matched(body, steps) and (not document or _is_same_person(document))
        born, source = read.iso_date(shown, "date_of_birth"), FactSource.DOCUMENT
        if born is None and matched and _summary(body, "date_of_birth") == "match":
            born, source = read.iso_date(user, "date_of_birth"), FactSource.DATABASE
        lives_at = user if matched and _is_address_matched(body) else {}
        expiry = read.expiry(document, "extracted_data.expiration_date")
        found = _code(document, "analysis.extracted_data.expiration_date")
        if expiry.on is None and found == "expired":
            # Expired documents are a matter of the account's rules. Without a date, assume the
            # latest one that was over everywhere when Plaid decided.
            decided_at = result.decided_at
            last = date.min if decided_at is None else decided_at.date() - timedelta(days=2)
            expiry = read.Expiry(last, unread=False)
        parts = read.texts(shown, "issuing_country", "issuing_region", type="category")
        return self._of_person(
            result,
            born,
            [_address(shown, FactSource.DOCUMENT), _address(lives_at, FactSource.DATABASE)],
            born_by=source,
            document=document_of(expiry, **parts) if document else None,
            number=read.text(shown, "id_number"),
        )


def key_of(reply: ProviderReply, kid: str) -> PublicKey:
    """The key in a response of `/webhook_verification_key/get`.

    Raises:
        TransportFailure: Plaid cannot say now.
        Unreadable: there is none.
    """
    if outcome_of_status(reply.status) is Finding.PROVIDER_UNAVAILABLE:
        raise TransportFailure(Finding.PROVIDER_UNAVAILABLE, "no_key", reply.wait)
    jwk = read.mapping(read.parse(reply.body), "key")
    expected = {"kid": kid, "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig"}
    expired_at = jwk.get("expired_at")
    if any(jwk.get(name) != value for name, value in expected.items()):
        raise read.Unreadable("key")
    if type(expired_at) not in {int, type(None)}:
        raise read.Unreadable("expired_at")
    try:
        point = {name: read.text(jwk, name) or "" for name in ("x", "y")}
        return PublicKey(jwt.PyJWK({**expected, **point}).key, expired_at)
    except (jwt.PyJWTError, ValueError):
        raise read.Unreadable("key") from None


def _session_named(body: bytes) -> str:
    """The session that a message names, authentic or not; empty if the message is too long."""
    if len(body) > _UNVERIFIED_BYTES_MAX:
        return ""
    with read.facts_unknown():
        return read.text(read.parsed(body) or {}, "identity_verification_id") or ""


def _attempt(document: read.Object) -> int:
    attempt = document.get("attempt")
    if not isinstance(attempt, int) or isinstance(attempt, bool):
        raise read.Unreadable("documents.attempt")
    return attempt


def _match_checks(body: read.Object, document: read.Object) -> tuple[ProviderCheck, ...]:
    """Matches with a data source, and findings about the document."""
    codes = [(f"kyc_check.{name}", _summary(body, name)) for name in _LISTS["summaries"]]
    codes.append(("document.authenticity", read.text(document, "analysis.authenticity")))
    verified = read.flag(document, "analysis.aamva_verification.is_verified")
    codes.append(("document.aamva", None if verified is None else str(verified).lower()))
    return checks(codes, _MATCHES)


def _is_matched(body: read.Object, steps: Mapping[str, str]) -> bool:
    """Whether a data source knows a living person with exactly the name of the input."""
    dead = read.value(body, "kyc_check.id_number.ssa_verification.is_deceased")
    passed = steps["kyc_check"] == "success" == read.text(body, "kyc_check.status")
    born, name = _summary(body, "date_of_birth"), _summary(body, "name")
    # A father has his son's name and address, and another birth date.
    other = born not in {None, "match", "no_data", "no_input"}
    return passed and dead in (None, False) and not other and _is_named_alike(name, born)


def _is_same_person(document: read.Object) -> bool:
    """Whether document and input are of the same person.

    Otherwise one could show one's licence with the name and address of another person as input.
    """
    born = _code(document, "analysis.extracted_data.date_of_birth")
    name = _code(document, "analysis.extracted_data.name")
    return _is_named_alike(name, born) and born in {"match", "no_data"}


def _is_named_alike(name: str | None, born: str | None) -> bool:
    """Whether a name is the same: also in part (Mike, or a middle name), if the birth date is."""
    return name == "match" or (name == "partial_match" and born == "match")


def _is_address_matched(body: read.Object) -> bool:
    """Whether the whole address matched, and the postal code too where it has a result."""
    postal_code = _code(body, "kyc_check.address.postal_code")
    return postal_code in {None, "match"} and _summary(body, "address") == "match"


def _summary(body: read.Object, name: str) -> str | None:
    return _code(body, f"kyc_check.{name}.summary")


def _code(parts: read.Object, path: str) -> str | None:
    """A match code; an unreadable one does not count as absent, which could match."""
    absent = read.value(parts, path) in (None, "")
    return read.text(parts, path) or (None if absent else "unreadable")


def _address(parts: read.Object, source: FactSource) -> Address | None:
    given = read.mapping(parts, "address")
    return address(given, source, "region", "postal_code", "country")
