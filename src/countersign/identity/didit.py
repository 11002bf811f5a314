"""Didit: the decision of a session, `GET /v3/session/{id}/decision/`, and the webhooks.

Sources: Didit's pages "Create session", "Retrieve session", "Verification statuses" and "Webhooks".
The statuses are words with capitals and spaces, and are compared exactly. The package `didit` in
Python's index has nothing to do with this provider.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, ClassVar, Final

from countersign.base.errors import WebhookRefused
from countersign.identity import json_reader as read
from countersign.identity.base import (
    UUID,
    Credentials,
    IdentityProvider,
    Response,
    address,
    checks,
    document_of,
    holder,
)
from countersign.identity.json_reader import words_of
from countersign.identity.model import (
    Address,
    Document,
    FactSource,
    Finding,
    ProviderResult,
    StartedSession,
    StartRequest,
    WebhookHint,
)
from countersign.identity.same_person import Holder
from countersign.identity.starting import ADDRESS, check_form, post
from countersign.identity.transport import Budget, ProviderRequest
from countersign.identity.webhook_signature import TIME, is_fresh, is_signed

CANONICAL_BYTES_MAX: Final = 64 * 1024
CANONICAL_MEMBERS_MAX: Final = 2048
"""Above these, only the signature of the bytes counts: a body has to be parsed before
X-Signature-V2 can be checked. Didit's messages have some hundred members."""
_SECRETS_MAX: Final = 5
_EVENT_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_WHOLE_MAX: Final = 2.0**53
"""Above it a number with a fraction or an exponent is no exact integer: `1e300` would become 301
digits."""

_LIVE: Final[Mapping[str | None, bool | None]] = {None: None, "live": True}
"""Any other environment is not the live one."""
_RISK: Final = re.compile(r"[A-Z][A-Z0-9_]{0,79}", re.ASCII)
_NAME_MATCH_MIN: Final = 90
"""Of 100: required similarity of the names on a proof of address and the document. Didit's page
"Proof of address warnings" says that 90 to 95 is typical; an account can let any mismatch pass, and
the proof is approved all the same."""


class DiditCredentials(Credentials, frozen=True, kw_only=True):
    """The credentials file for Didit, whose responses state whether a session is live."""

    origin: ClassVar[str] = "https://verification.didit.me"

    api_key: str
    """The API key of the application whose sessions count."""
    webhook_secrets: tuple[str, ...] = ()
    """Of each webhook destination, old and new during a replacement. Without any, webhooks are
    refused, and undecided sessions are only polled."""
    workflow_id: str | None = None
    """Of a published workflow that asks for a document; to start sessions."""

    def check(self) -> None:
        if len(self.webhook_secrets) > _SECRETS_MAX:
            raise ValueError(f"webhook_secrets: give at most {_SECRETS_MAX}")
        self.check_visible(api_key=self.api_key, webhook_secrets=self.webhook_secrets)
        if self.api_key in self.webhook_secrets:
            raise ValueError(
                "webhook_secrets: this value is the API key; give the destination's secret"
            )
        check_form("workflow_id", self.workflow_id, UUID, "a1b2c3d4-…")


class Didit(IdentityProvider[DiditCredentials]):
    """Didit with the credentials of one application."""

    name = "didit"
    credentials_type = DiditCredentials
    session_id = UUID
    probe_session_id = "00000000-0000-4000-8000-000000000000"
    api_version = "v3"
    words = words_of(__file__)
    pages = ("didit.me",)

    async def _start(self, wanted: StartRequest, budget: Budget) -> StartedSession:
        body = {
            "workflow_id": self._needed("workflow_id"),
            "vendor_data": wanted.reference,
            "callback": wanted.return_url,
            # Any device may finish: Didit's page offers to change it.
            "callback_method": "both",
            "language": wanted.locale,
        }
        headers = {"x-api-key": self._credentials.api_key}
        # Didit returns the unfinished session of the same `vendor_data`.
        making = post("/v3/session/", body, headers, repeatable=True)
        _, made = await self._make(making, budget)
        if made.get("session_kind") not in (None, "user"):
            # The workflow verifies businesses.
            raise read.Unreadable("session_kind")
        read.expect(made, "vendor_data", wanted.reference)
        url = read.matching(made, "url", ADDRESS)
        return StartedSession(session_id=read.matching(made, "session_id", UUID), url=url)

    def _request(self, session_id: str) -> ProviderRequest:
        return ProviderRequest(
            # Without the slash at the end Didit redirects, and the key is lost on the way.
            path=f"/v3/session/{session_id}/decision/",
            headers={"x-api-key": self._credentials.api_key, "Accept": "application/json"},
        )

    async def _read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        now, secrets = self._now(), self._credentials.webhook_secrets
        sent = headers.get("x-timestamp", "")
        if TIME.fullmatch(sent) is None or not is_fresh(int(sent), now):
            raise WebhookRefused
        if is_signed(body, secrets, headers.get("x-signature", "").lower()):
            return _hint(read.parse(body), now)
        signature = headers.get("x-signature-v2", "").lower()
        return _hint(_signed_content(signature, body, secrets), now)

    def _error(self, response: Response, body: read.Object | None) -> ProviderResult:
        """Didit's errors have `detail`, and sometimes `code`.

        Another framework's response for an unknown path looks much the same.
        """
        error = body or {}
        genuine = isinstance(error.get("detail"), str) and error["detail"] != "Not Found"
        return response.error(genuine=genuine and error.keys() <= {"detail", "code"})

    def _session(self, response: Response, session: read.Object) -> ProviderResult:
        if session.get("session_id") != response.session_id:
            return response.result(Finding.INVALID_RESPONSE, "other_session")
        if session.get("session_kind") not in (None, "user"):
            # It verifies a business, not a person.
            return response.result(Finding.INVALID_RESPONSE, "unknown_kind")
        result = self._decided(
            response,
            read.text(session, "status"),
            live=_LIVE.get(read.text(session, "environment"), False),
            subject=read.text(session, "vendor_data"),
        )
        with read.facts_unknown() as unread:
            features = self.words.lists["features"]
            entries = [(name, each) for name in features for each in read.objects(session, name)]
            statuses = [(name, read.text(each, "status")) for name, each in entries]
            result = replace(
                result,
                # No member has the time of the decision; it was not before the session was made.
                decided_at=read.instant(session, "created_at"),
                checks=checks(statuses, self.words.verdicts),
            )
            if result.outcome is Finding.VERIFIED:
                result = self._with_person(result, session)
            elif result.outcome is not Finding.INVALID_RESPONSE:
                result = self._with_reason(result, [each for _, each in entries])
        return replace(result, unread=tuple(unread))

    def _with_reason(
        self, result: ProviderResult, entries: Sequence[read.Object]
    ) -> ProviderResult:
        """Add Didit's first risk as code, and the first known reason of an unapproved entry."""
        found = [(risk, entry) for entry in entries for risk in _risks(entry) or []]
        reasons = [
            self.words.reasons.get(risk)
            for risk, entry in found
            if entry.get("status") != "Approved"
        ]
        code = found[0][0] if found else None
        return replace(result, reason_code=code, reason=next(filter(None, reasons), None))

    def _with_person(self, result: ProviderResult, session: read.Object) -> ProviderResult:
        """The result with the proved facts of the person; UNPROVED without a document."""
        documents = _approved(session, "id_verifications")
        if not documents:
            # Without proof of identity, an address could be anyone's.
            return replace(result, outcome=Finding.UNPROVED)
        last = documents[-1]
        person = _holder(last)
        proofs = [each for each in _approved(session, "poa_verifications") if _names_alike(each)]
        addresses = [
            *_addresses(documents, "parsed_address", FactSource.DOCUMENT),
            *_addresses(proofs, "poa_parsed_address", FactSource.PROOF_OF_ADDRESS),
        ]
        if not all(_holder(each).may_be(person, documents=True) for each in documents[:-1]):
            # Two documents that disagree about the person prove nothing of either.
            addresses = [replace(each, source=FactSource.NONE) for each in addresses]
            person = replace(person, date_of_birth=None)
        document = _document(last)
        return self._of_person(
            result,
            person.date_of_birth,
            addresses,
            born_by=FactSource.DOCUMENT,
            document=document if document.type else None,
            number=read.text(last, "document_number"),
        )


def _document(entry: read.Object) -> Document:
    # `issuing_state` is a country: the state is that of the address on the document.
    issuer = {"issuing_country": "issuing_state", "issuing_region": "parsed_address.region"}
    issued = read.texts(entry, type="document_type", **issuer)
    return document_of(read.expiry(entry, "expiration_date"), **issued)


def _signed_content(signature: str, body: bytes, secrets: Sequence[str]) -> read.Object:
    """The content of a message by X-Signature-V2.

    It covers the parsed content, so that it survives proxies that re-encode JSON. The bytes have to
    be parsed before it can be checked: only few. X-Signature-Simple covers only some members and is
    not accepted.

    Raises:
        WebhookRefused: it is not authentic.
        read.Unreadable: it is not JSON within bounds, or has no canonical form.
    """
    # Signs inside of texts count too: too many of them only cost this way to sign.
    members = sum(body.count(sign) for sign in (b",", b"[", b"{"))
    if not signature or len(body) > CANONICAL_BYTES_MAX or members > CANONICAL_MEMBERS_MAX:
        raise WebhookRefused
    message = read.parse(body)
    if not is_signed(canonical_json(message), secrets, signature):
        raise WebhookRefused
    return message


def canonical_json(message: read.Object) -> bytes:
    """What X-Signature-V2 signs.

    Members sorted by name, no spaces, Unicode as it is, and numbers without a fraction written as
    integers.

    Raises:
        read.Unreadable: it holds text that has no encoding, or a number that is not exact.
    """
    try:
        return json.dumps(
            _whole(message), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        ).encode("utf-8")
    except ValueError:
        raise read.Unreadable("no canonical form") from None


def _whole(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {name: _whole(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_whole(member) for member in value]
    if not isinstance(value, float):
        return value
    if abs(value) > _WHOLE_MAX:
        raise ValueError
    return int(value) if value.is_integer() else value


def _hint(message: read.Object, now: int) -> WebhookHint | None:
    written = message.get("timestamp")
    # X-Timestamp is not signed. Where the signed message has a time, that counts too: otherwise an
    # old message could be sent again under a new header.
    if isinstance(written, int | float) and not is_fresh(written, now):
        raise WebhookRefused
    kind = read.text(message, "webhook_type")
    if kind not in {"status.updated", "data.updated"} or message.get("session_kind") == "business":
        return None
    session_id = read.matching(message, "session_id", UUID)
    event_id = read.word(message.get("event_id"), _EVENT_ID)
    event_key = event_id or sha256(canonical_json(message)).hexdigest()
    return WebhookHint(session_id=session_id, event_key=event_key)


def _holder(document: read.Object) -> Holder:
    return holder(document, "first_name", "last_name", "date_of_birth")


def _names_alike(proof: read.Object) -> bool:
    """Whether a proof of address is of the person on the document."""
    score = proof.get("name_match_score_id_verification")
    if not isinstance(score, int | float) or isinstance(score, bool) or score < _NAME_MATCH_MIN:
        return False
    risks = _risks(proof)
    return risks is not None and set(risks).isdisjoint(Didit.words.lists["name_mismatches"])


def _risks(entry: read.Object) -> list[str] | None:
    """Didit's risk codes, without its sentences; None if unreadable."""
    warnings = [] if entry.get("warnings") is None else entry["warnings"]
    if not isinstance(warnings, list) or not all(isinstance(one, dict) for one in warnings):
        read.unreadable("warnings")
        return None
    risks = [warning.get("risk") for warning in warnings]
    return [risk for risk in risks if read.word(risk, _RISK)]


def _approved(session: read.Object, feature: str) -> list[read.Object]:
    return [entry for entry in read.objects(session, feature) if entry.get("status") == "Approved"]


def _addresses(
    entries: Sequence[read.Object], member: str, source: FactSource
) -> Iterator[Address]:
    for entry in entries:
        parsed = read.mapping(entry, member)
        found = address(parsed, source, "region", "postal_code", "country")
        verified = parsed.get("is_verified")
        if found is not None:
            yield replace(
                found,
                source=source if verified is None or verified is True else FactSource.NONE,
                # Older responses name no country there, but that of the document.
                country=found.country or read.text(entry, "issuing_state"),
                document=_document(entry) if source is FactSource.DOCUMENT else None,
            )
