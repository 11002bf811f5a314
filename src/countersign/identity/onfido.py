"""Onfido (Entrust) workflow runs: credentials, the requests, and which answers make a result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

import msgspec

from countersign.identity import onfido_webhook
from countersign.identity.fingerprint import Fingerprint
from countersign.identity.model import Outcome, ProviderEvidence, ProviderResult, WebhookHint
from countersign.identity.onfido_fields import FIELDS
from countersign.identity.onfido_output import Output
from countersign.identity.onfido_report import (
    Report,
    document_task_ids,
    read_report,
    read_task,
)
from countersign.identity.onfido_translate import (
    NAME,
    Asked,
    prove,
    translate_failure,
    translate_run,
)
from countersign.identity.reading import (
    Unreadable,
    evidence_of,
    outcome_of_status,
    unanswered,
)
from countersign.identity.transport import (
    DIRECT,
    Budget,
    ProviderHttp,
    ProviderReply,
    ProviderRequest,
    Reach,
    TransportFailure,
)
from countersign.ports import Clock

__all__ = ["FIELDS", "HOSTS", "NAME", "SESSION_ID", "Credentials", "Provider", "check", "host"]

API_VERSION: Final = "v3.6"
HOSTS: Final[Mapping[str, str]] = {
    "eu": "https://api.eu.onfido.com",
    "us": "https://api.us.onfido.com",
    "ca": "https://api.ca.onfido.com",
}
# Small letters only, as Onfido writes it: one run must not be two sessions.
SESSION_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
PROBE_SESSION_ID: Final = "00000000-c0de-4000-8000-00000000c0de"
TASKS_MAX: Final = 3
"""Document checks that are asked for, the newest first: a person may have had to try again."""
_TOKEN: Final = re.compile(r"api_(live|sandbox)(?:_([a-z]{2}))?\.[\x21-\x7e]{4,200}")
_PREFIX: Final = f"/{API_VERSION}"


class Credentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the credentials file for Onfido holds."""

    api_token: str
    environment: Literal["live", "sandbox"]
    """Onfido's answers do not say it; the token's prefix has to agree."""
    region: Literal["eu", "us", "ca"]
    """Selects the host."""
    webhook_secrets: tuple[str, ...] = ()
    """One for each registered webhook; two while one is being replaced."""
    output: Output = Output()
    """Where facts stand in the run's `output`, which each workflow makes as it likes."""

    def __repr__(self) -> str:
        return "<Credentials for onfido: hidden>"


def check(credentials: Credentials) -> None:
    """Tell what can be told wrong without asking Onfido.

    Raises:
        ValueError: with a text that names no secret.
    """
    token = _TOKEN.fullmatch(credentials.api_token)
    if token is None:
        raise ValueError("`api_token` must begin with `api_live` or `api_sandbox`, then a dot")
    if token[1] != credentials.environment:
        raise ValueError(
            f"`api_token` belongs to the {token[1]} environment, `environment` names another"
        )
    if token[2] not in {None, credentials.region}:
        raise ValueError(f"`api_token` belongs to the region {token[2]}, `region` names another")
    if any(len(secret) < 8 for secret in credentials.webhook_secrets):
        raise ValueError("`webhook_secrets` contains a secret that is shorter than 8 characters")
    credentials.output.check()


def host(credentials: Credentials) -> str:
    """Where these credentials are valid."""
    return HOSTS[credentials.region]


class Provider:
    """Asks Onfido with the credentials of one account; a `ports.IdentityProvider`."""

    name: Final = NAME
    probe_session_id: Final = PROBE_SESSION_ID

    def __init__(
        self,
        credentials: Credentials,
        *,
        base_url: str | None,
        fingerprint: Fingerprint,
        clock: Clock,
        reach: Reach = DIRECT,
    ) -> None:
        self._credentials = credentials
        self._fingerprint = fingerprint
        self._clock = clock
        self._http = ProviderHttp(base_url or host(credentials), clock, reach=reach)

    async def retrieve(self, session_id: str) -> ProviderResult:
        if SESSION_ID.fullmatch(session_id) is None:
            raise ValueError("not the identifier of a workflow run of Onfido")
        try:
            return await self._retrieve(session_id, self._http.budget())
        except TransportFailure as failure:
            return unanswered(NAME, session_id, failure)

    async def read_webhook(self, headers: Mapping[str, str], body: bytes) -> WebhookHint | None:
        return onfido_webhook.read(
            headers, body, secrets=self._credentials.webhook_secrets, session_id=SESSION_ID
        )

    async def close(self) -> None:
        await self._http.close()

    async def _retrieve(self, session_id: str, budget: Budget) -> ProviderResult:
        run_path = f"{_PREFIX}/workflow_runs/{session_id}"
        run = await self._get(run_path, budget)
        asked = Asked(
            session_id=session_id,
            live=self._credentials.environment == "live",
            output=self._credentials.output,
        )
        result = translate_run(run, asked, self._evidence(run))
        if result.outcome is not Outcome.VERIFIED:
            return result
        further: list[ProviderEvidence] = []
        try:
            report = await self._report_if_needed(session_id, run_path, further, budget)
            result = prove(result, run, asked, report, self._fingerprint)
        except _Refused as refused:
            result = translate_failure(result, refused.reply)
        except Unreadable as unread:
            result = replace(translate_failure(result, None), unread=(str(unread),))
        if result.evidence is None:
            return result
        return replace(result, evidence=replace(result.evidence, further=tuple(further)))

    async def _report_if_needed(
        self, session_id: str, run_path: str, further: list[ProviderEvidence], budget: Budget
    ) -> Report | None:
        """The report; None also if it cannot be had and every fact is in the run's output.

        Even then it is asked for: only it has the document's number, by which a buyer who comes
        back in another run is known.
        """
        optional = self._credentials.output.proves_all
        try:
            return await self._report(session_id, run_path, further, budget)
        except _Refused as refused:
            later = outcome_of_status(refused.reply.status) is Outcome.PROVIDER_UNAVAILABLE
            if later or not optional:
                raise
        except Unreadable:
            if not optional:
                raise
        return None

    async def _report(
        self, session_id: str, run_path: str, further: list[ProviderEvidence], budget: Budget
    ) -> Report | None:
        """The newest document report that is clear; what was asked on the way goes to `further`."""

        async def ask(path: str) -> bytes:
            reply = await self._get(path, budget)
            further.append(self._evidence(reply))
            if reply.status != 200:
                raise _Refused(reply)
            return reply.body

        tasks = await ask(f"{run_path}/tasks")
        for task_id in document_task_ids(tasks, session_id)[:TASKS_MAX]:
            report = read_task(await ask(f"{run_path}/tasks/{task_id}"), session_id, task_id)
            if report.is_clear and not report.properties and report.report_id is not None:
                body = await ask(f"{_PREFIX}/reports/{report.report_id}")
                report = read_report(body, report.report_id, report)
            if report.is_clear:
                return report
        return None

    async def _get(self, path: str, budget: Budget) -> ProviderReply:
        return await self._http.send(
            ProviderRequest(
                path=path,
                headers={
                    "Accept": "application/json",
                    "Authorization": f"Token token={self._credentials.api_token}",
                },
            ),
            budget,
        )

    def _evidence(self, reply: ProviderReply) -> ProviderEvidence:
        return evidence_of(
            reply,
            self._clock,
            request_id=reply.headers.get("x-request-id"),
            api_version=API_VERSION,
        )


class _Refused(Exception):
    """One of the further requests was not answered with 200."""

    def __init__(self, reply: ProviderReply) -> None:
        super().__init__()
        self.reply = reply
