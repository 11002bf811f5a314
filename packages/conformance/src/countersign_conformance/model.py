"""Conformance runs: a vendor's integration is watched in test mode while failures are provoked.

A run sees what a server sees: requests, their responses, and the responses of webhook receivers.
See docs/conformance.md; reasons: docs/decisions/interface.md.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

RUN: Final = "cfr"
OBSERVATION: Final = "obs"
"""Prefixes of identifiers, see `countersign.ids`."""

LEASE: Final = timedelta(seconds=15)
"""How long a run continues after the last sign of life of its command."""
DURATION_MAX: Final = timedelta(hours=4)
HOLD_MAX: Final = timedelta(minutes=2)
OBSERVATIONS_MAX: Final = 5000
"""Per run; later ones are ignored."""
KEPT: Final = timedelta(days=7)
"""How long a run and its observations are kept."""
LINGER: Final = timedelta(seconds=30)
"""How long a run watches by default that something forbidden does not happen."""
RETRY_AFTER_SECONDS: Final = 2
"""`Retry-After` of the provoked `provider_unavailable`."""

GET_NOTICE: Final = "getNotice"
ACKNOWLEDGE: Final = "acknowledgeNotice"
VERIFY: Final = "verifyBuyer"
BUYER_STATUS: Final = "getBuyerStatus"
CLEAR: Final = "clearOrder"
FULFIL: Final = "fulfilOrder"
WEBHOOK: Final = "webhook"
"""Not an operation of the API: a message that the run sent to the vendor."""
ACTS: Final = (ACKNOWLEDGE, VERIFY, CLEAR, FULFIL)


class Provocation(StrEnum):
    """Something done once to one request of the vendor."""

    ACKNOWLEDGMENT_REFUSED = "acknowledgment_refused"
    """409 `notice_version_mismatch`; nothing is stored."""
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    """503 with `Retry-After`; nothing is stored."""
    ANSWER_WITHHELD = "answer_withheld"
    """The acknowledgment is stored, and its response is lost."""
    ORDER_NOT_CLEARED = "order_not_cleared"
    """The order is decided as if the buyer required input."""


MEETS: Final = {
    Provocation.ACKNOWLEDGMENT_REFUSED: ACKNOWLEDGE,
    Provocation.PROVIDER_UNAVAILABLE: VERIFY,
    Provocation.ANSWER_WITHHELD: ACKNOWLEDGE,
    Provocation.ORDER_NOT_CLEARED: CLEAR,
}
"""The operation whose next request meets it."""


class Probe(StrEnum):
    """A message sent to a webhook endpoint to observe the reaction."""

    GENUINE = "genuine"
    AGAIN = "again"
    """The genuine message again, with the same `webhook-id`."""
    UNSIGNED = "unsigned"
    FOREIGN_KEY = "foreign_key"
    """Signed, with keys that are not the endpoint's."""
    ALTERED = "altered"
    """The body differs from the signed one."""
    OLD = "old"
    """Properly signed, an hour ago."""
    GENUINE_AFTER = "genuine_after"
    """Another genuine one, after all the others."""


class Run(Struct, frozen=True, kw_only=True):
    """A run: one account, test mode, until it ends."""

    id: str
    account_id: str
    started_at: datetime
    ends_at: datetime
    active_until: datetime
    """The command moves it ahead for as long as it runs."""
    hold: timedelta
    """For how long to withhold a response."""
    armed: Provocation | None = None
    """The provocation for the next matching request."""


class Observation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The observation of one request or message. No personal data: keyed digests, in hex."""

    operation: str
    at: datetime
    """When the request arrived, or the message was sent or got its response."""
    status: int
    """Of the response. For a message: 0 if it was only sent, or got no response."""
    code: str | None = None
    provoked: Provocation | None = None
    replayed: bool = False
    key: str | None = None
    """The `Idempotency-Key`."""
    body: str | None = None
    """Includes the path's object: the same report about two orders is two acts."""
    notice: str | None = None
    """Of a notice that was fetched or acknowledged."""
    session: str | None = None
    """`session_id`: the order, as long as there is one."""
    subject: str | None = None
    """`provider_identity_session_id`."""
    buyer: str | None = None
    """`cbid`, of the request or the response."""
    clearance: str | None = None
    lines: int | None = None
    """How many initials were sent."""
    version_sent: bool = False
    cleared: bool | None = None
    reasons: tuple[str, ...] = ()
    shipped_at: datetime | None = None
    probe: Probe | None = None
    endpoint: str | None = None

    @property
    def done(self) -> bool:
        """True if it succeeded for the first time."""
        return self.status == 200 and not self.replayed


class Verdict(StrEnum):
    """The result of a check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_SEEN = "not_seen"
    """No observation for the check. Never counted as passed."""


class Check(Struct, frozen=True, kw_only=True):
    """Something that an integration has to do right."""

    id: str
    title: str
    provoked: str
    """The run's provocation; empty: it only watches."""
    advice: str
    page: str
    """The path and anchor of the guide, as the server serves it: `/docs/integrate#retries`."""
    not_judged: str = ""
    """Facts that cannot be observed from outside."""


class Finding(Struct, frozen=True, kw_only=True):
    """The result of one check, and its observations."""

    verdict: Verdict
    seen: str
    at: tuple[datetime, ...] = ()
    """The times of the requests that decided it, for the vendor's own log."""
    due: datetime | None = None
    """End of watching: it is passed then, unless something has contradicted it."""


class Report(Struct, frozen=True, kw_only=True):
    """The result of a run."""

    run: Run
    ended_at: datetime
    observed: int
    """The number of observed requests and messages."""
    complete: bool
    """Whether all observations could be stored."""
    findings: tuple[tuple[Check, Finding], ...]

    def count(self, verdict: Verdict) -> int:
        """How many checks came to this."""
        return sum(finding.verdict is verdict for _, finding in self.findings)

    @property
    def passed(self) -> bool:
        """Whether a check had a result, and no result is a failure."""
        return self.count(Verdict.FAILED) == 0 and self.count(Verdict.PASSED) > 0


class Step(Struct, frozen=True, kw_only=True):
    """A part of a run: what to provoke, and what the vendor must do."""

    ask: str
    check: str
    """The id of the check that it provides for."""
    provocation: Provocation | None = None


STEPS: Final = (
    Step(
        ask="Place an order in your test shop, and ship it.",
        check="clearance_first",
    ),
    Step(
        ask="Place another order. Its acknowledgment is refused once, because the text has "
        "changed.",
        check="refusal_handled",
        provocation=Provocation.ACKNOWLEDGMENT_REFUSED,
    ),
    Step(
        ask="Place an order of a buyer who is not verified yet. The identity provider is down "
        "once.",
        check="unavailable_handled",
        provocation=Provocation.PROVIDER_UNAVAILABLE,
    ),
    Step(
        ask="Place another order. The response to its acknowledgment is lost.",
        check="timeout_repeated",
        provocation=Provocation.ANSWER_WITHHELD,
    ),
    Step(
        ask="Place another order. It is not cleared at first.",
        check="not_cleared_kept",
        provocation=Provocation.ORDER_NOT_CLEARED,
    ),
)
"""In this order; the webhooks come after the first."""
