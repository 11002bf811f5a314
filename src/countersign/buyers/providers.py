"""How each account verifies live buyers: its settings, its provider, and what comes of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec
import structlog
from msgspec.structs import asdict
from sqlalchemy import Connection, delete, insert, select

from countersign.access.audit import AuditEntry, write_audit
from countersign.buyers.rules import VerificationRules, VerificationSettings
from countersign.clock import Clock
from countersign.db.database import Database
from countersign.db.tables import verification_settings
from countersign.identity.base import IdentityProvider
from countersign.identity.registry import IdentityProviders
from countersign.reason import Reason
from countersign.vault.sealed_column import SealedColumn

LOG_SECONDS: Final = 60.0
"""Of one account and one trouble, at most one line in this time."""
_OF_SET_UP: Final = frozenset({"age_unknown", "zip_unknown", "identity_not_proved"})
"""Reasons that a buyer can hardly cause: the provider approved, and the facts are missing."""
_log: Final = structlog.get_logger("countersign.verification")


class WatchVerifications:
    """Counters for the metrics, and lines in the log where a set-up looks wrong; of one process.

    A wrong set-up looks like a long row of buyers who are refused. Nothing here names a person or
    a session.
    """

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


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(VerificationRules).decode


@dataclass(frozen=True, slots=True)
class Integration:
    """An account's settings, its rules with the deployment's minimum, and its provider."""

    settings: VerificationSettings
    rules: VerificationRules
    provider: IdentityProvider[Any]

    @property
    def namespace(self) -> str:
        """Within which a session id is unique: the provider, or the URL in its place."""
        return f"{self.settings.provider}\x00{self.settings.base_url or ''}"


class Providers:
    """Keeps one provider client for each account: all calls share its circuit breaker."""

    def __init__(
        self,
        database: Database,
        credentials: SealedColumn,
        factory: IdentityProviders,
        floor: VerificationRules,
    ) -> None:
        self.factory = factory
        self.credentials = credentials
        self.floor = floor
        """What the deployment asks of every account."""
        self._database = database
        self._made: dict[str, tuple[int, datetime, IdentityProvider[Any]]] = {}
        self._replaced: list[IdentityProvider[Any]] = []

    async def of(self, account_id: str) -> Integration | None:
        """An account's settings and provider; None if it has none.

        Raises WrongKeyEncryptionKey if the credentials cannot be decrypted.
        """
        settings = await self._database.read(stored_settings, account_id)
        if settings is None:
            return None
        key = (settings.revision, settings.changed_at)
        made = self._made.get(account_id)
        if made is None or made[:2] != key:
            credentials = await self.credentials.open(
                settings.credentials,
                account=account_id,
                row_id=credentials_row(account_id, settings.revision),
            )
            # Another call may have made it in the meantime.
            made = self._made.get(account_id)
            if made is None or made[:2] != key:
                provider = self.factory(settings.provider, credentials, settings.base_url)
                if made is not None:
                    # It may be in use: its connections are closed with the service.
                    self._replaced.append(made[2])
                made = self._made[account_id] = (*key, provider)
        return Integration(settings, settings.rules.at_least(self.floor), made[2])

    async def close(self) -> None:
        """Close the connections to the providers."""
        for provider in (*self._replaced, *(made[2] for made in self._made.values())):
            await provider.close()
        self._replaced.clear()
        self._made.clear()


def credentials_row(account_id: str, revision: int) -> str:
    """What identifies the credentials among all that are sealed in their column."""
    return f"{account_id}:{revision}"


def stored_settings(connection: Connection, account_id: str) -> VerificationSettings | None:
    """The settings of an account; None if it has none."""
    query = select(verification_settings).where(verification_settings.c.account_id == account_id)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        return None
    return VerificationSettings(**{**row, "rules": _decode(row["rules"])})


def put_settings(connection: Connection, new: VerificationSettings, audit: AuditEntry) -> None:
    """Write the settings of an account, and who changed them."""
    row = asdict(new) | {"rules": _encode(new.rules).decode()}
    _delete(connection, new.account_id)
    connection.execute(insert(verification_settings), row)
    write_audit(connection, audit)


def remove_settings(connection: Connection, account_id: str, audit: AuditEntry) -> bool:
    """Remove the settings of an account; False if it had none."""
    removed = _delete(connection, account_id)
    if removed:
        write_audit(connection, audit)
    return removed


def _delete(connection: Connection, account_id: str) -> bool:
    of_account = verification_settings.c.account_id == account_id
    return connection.execute(delete(verification_settings).where(of_account)).rowcount > 0
