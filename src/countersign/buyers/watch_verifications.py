"""What came of verifications, for the operator: counted, and logged where a set-up looks wrong.

A wrong set-up looks like a long row of buyers who are refused. Nothing here names a person or a
session.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Final

import structlog

from countersign.clock import Clock
from countersign.reason import Reason

LOG_SECONDS: Final = 60.0
"""Of one account and one trouble, at most one line in this time."""
_OF_SET_UP: Final = frozenset({"age_unknown", "zip_unknown", "identity_not_proved"})
"""Reasons that a buyer can hardly cause: the provider approved, and the facts are missing."""
_log: Final = structlog.get_logger("countersign.verification")


class WatchVerifications:
    """Counters for the metrics, and lines in the log; of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logged: dict[tuple[str, str, str], tuple[float, int]] = {}
        self.verdicts: Counter[tuple[str, str, str]] = Counter()
        """By provider, status or `error`, and the reasons or the error's code."""
        self.seconds: dict[str, tuple[int, float]] = {}
        """By provider: how many times it was asked, and the seconds of all of them."""
        self.unknown_fields: Counter[str] = Counter()
        """By provider: members of responses that its adapter does not know."""
        self.refused_messages: Counter[str] = Counter()
        """By provider: webhooks that were not authentic."""
        self.pending: tuple[int, datetime | None] = (0, None)
        """How many undecided sessions there are, and since when the oldest one is followed."""

    def asked(self, provider: str, seconds: float, unknown_fields: int) -> None:
        """Count one question to a provider."""
        number, total = self.seconds.get(provider, (0, 0.0))
        self.seconds[provider] = (number + 1, total + seconds)
        self.unknown_fields[provider] += unknown_fields

    def evaluated(
        self, account_id: str, provider: str, status: str, reasons: tuple[Reason, ...]
    ) -> None:
        """Count a decision; log it where the account's set-up is the likely cause."""
        self.verdicts[provider, status, ",".join(reasons)] += 1
        for reason in _OF_SET_UP.intersection(reasons):
            self._say("verification_lacks_facts", account_id, provider, reason)

    def failed(self, provider: str, code: str) -> None:
        """Count a question without a decision; what the provider said is logged elsewhere."""
        self.verdicts[provider, "error", code] += 1

    def not_live(self, account_id: str, provider: str) -> None:
        """Log that a session is not a live one of the account's integration."""
        self._say("session_not_live", account_id, provider, Reason.TEST_SESSION.value)

    def withheld(self, account_id: str, provider: str) -> None:
        """Log that credentials may not read what decides: every buyer is refused until they may."""
        self._say("sensitive_results_withheld", account_id, provider, "verification_misconfigured")

    def refused_message(self, account_id: str, provider: str) -> None:
        """Count and log a message that is not authentic: the secret may be wrong."""
        self.refused_messages[provider] += 1
        self._say("provider_webhook_refused", account_id, provider, "invalid_webhook")

    def _say(self, event: str, account_id: str, provider: str, reason: str) -> None:
        now, key = self._clock.monotonic(), (event, account_id, reason)
        last, unsaid = self._logged.get(key, (float("-inf"), 0))
        if now - last < LOG_SECONDS:
            self._logged[key] = (last, unsaid + 1)
            return
        self._logged[key] = (now, 0)
        _log.warning(event, account=account_id, provider=provider, reason=reason, unsaid=unsaid)
