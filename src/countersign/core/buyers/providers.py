"""How each account verifies live buyers: its settings and its provider, with their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Connection, delete, insert

from countersign.base.db.database import Database
from countersign.base.db.statements import DriverStatement
from countersign.base.db.tables import further_providers, verification_settings
from countersign.base.errors import InvalidArgument, VerificationMisconfigured
from countersign.base.loops import Throttle
from countersign.base.values import Clock, Mode, Reason, from_ms
from countersign.core.access.account import lock_account
from countersign.core.access.audit import AuditEntry, write_audit
from countersign.core.access.reach import AccountReach
from countersign.core.buyers.rules import VerificationRules, VerificationSettings
from countersign.core.buyers.sql import decode_rules
from countersign.core.vault.vault import SealedColumn
from countersign.identity.base import IdentityProvider
from countersign.identity.registry import IdentityProviders

FIRST: Final = "verification_settings"
FURTHER: Final = "further_providers"
"""The tables of an account's first provider, and of the others."""
LOG_SECONDS: Final = 60.0
"""At most one line in this time about one trouble of one account."""
_OF_SET_UP: Final = frozenset({"age_unknown", "zip_unknown", "identity_not_proved"})
"""Reasons that a buyer can hardly cause: the provider approved, and the facts are missing."""
_log: Final = structlog.get_logger("countersign.verification")


class WatchVerifications:
    """Counters for the metrics, and log lines if a set-up looks wrong; of one process.

    A wrong set-up shows as many refused buyers in a row. It contains no person and no
    session.
    """

    def __init__(self, clock: Clock) -> None:
        self._unsaid = Throttle(clock.monotonic, LOG_SECONDS)
        self.verdicts: Counter[tuple[str, str, str]] = Counter()
        """By provider, status or `error`, and the reasons or the error's code."""
        self.started: Counter[tuple[str, str]] = Counter()
        """Identity checks by provider, and `started` or the error's code."""
        self.seconds: dict[str, tuple[int, float]] = {}
        """By provider: the number of requests, and their total seconds."""
        self.unknown_fields: Counter[str] = Counter()
        """By provider: members of responses that its adapter does not know."""
        self.refused_messages: Counter[str] = Counter()
        """By provider: webhooks that were not authentic."""

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
            self.say("verification_lacks_facts", account_id, provider, reason)

    def failed(self, provider: str, code: str) -> None:
        """Count a request without a decision; the provider's response is logged elsewhere."""
        self.verdicts[provider, "error", code] += 1

    def say(self, event: str, account_id: str, provider: str, reason: str) -> None:
        """Log what looks wrong with an account's set-up, unless that was logged just now."""
        unsaid = self._unsaid(event, account_id, reason)
        if unsaid is not None:
            facts = {"account": account_id, "provider": provider, "reason": reason}
            _log.warning(event, **facts, unsaid=unsaid)


_OWN: Final = ("revision", "provider", "base_url", "credentials")
_select: Final = DriverStatement(
    f"SELECT {', '.join(_OWN)}, rules, changed_at, 0 AS place"  # noqa: S608 - our own names
    " FROM verification_settings WHERE account_id = ? UNION ALL"
    f" SELECT {', '.join(_OWN)}, NULL, changed_at, 1"
    " FROM further_providers WHERE account_id = ? AND mode = ? ORDER BY place, provider"
)
"""One of the cheapest statements: each visitor of a checkout asks, and a change counts at once."""


@dataclass(frozen=True, slots=True)
class Integration:
    """An account's settings, its rules with the deployment's minimum, and its provider."""

    settings: VerificationSettings
    rules: VerificationRules
    provider: IdentityProvider[Any]
    mode: Mode
    """Of the keys that it is for: with test keys, the provider's own test mode."""

    @property
    def reach(self) -> AccountReach:
        """The account that asks, by keys of this mode."""
        return AccountReach(self.settings.account_id, self.mode)

    @property
    def namespace(self) -> str:
        """Within which a session id is unique: the provider, or the URL in its place.

        Every sandbox is on its own, so that made-up documents of two accounts never meet.
        """
        place = f"{self.settings.provider}\x00{self.settings.base_url or ''}"
        return place if self.mode is Mode.LIVE else f"{place}\x00test\x00{self.settings.account_id}"

    @property
    def wants_live(self) -> bool | None:
        """Whether its sessions have to be live; None: a simulator's count in a sandbox anyhow."""
        if self.mode is Mode.LIVE:
            return True
        return False if self.settings.base_url is None else None

    def may_be(self, session_id: str) -> bool:
        """Whether the provider's session identifiers look so."""
        return self.provider.session_id.fullmatch(session_id) is not None


class Providers(Struct, eq=False):
    """Keeps one client for each provider of an account: all calls share its circuit breaker."""

    database: Database
    sealed: Mapping[str, SealedColumn]
    """The credentials, by the name of their table."""
    factory: IdentityProviders
    floor: VerificationRules
    """The deployment's minimum rules for every account."""
    _made: dict[tuple[str, ...], tuple[int, datetime, IdentityProvider[Any]]] = {}
    _replaced: list[IdentityProvider[Any]] = []

    async def all_of(self, account_id: str, mode: Mode) -> tuple[Integration, ...]:
        """All providers of an account for keys of this mode, in order of use.

        Raises WrongKeyEncryptionKey if the credentials cannot be decrypted.
        """
        first, further = await self.database.read(stored_providers, account_id, mode, self.floor)
        found = [] if first is None else [await self._integration(first, mode, first=True)]
        found += [await self._integration(one, mode) for one in further]
        return tuple(found)

    async def _integration(
        self, settings: VerificationSettings, mode: Mode, *, first: bool = False
    ) -> Integration:
        name, version = settings.provider, (settings.revision, settings.changed_at)
        account_id = settings.account_id
        table = FIRST if first else FURTHER
        slot = (account_id,) if first else (account_id, mode, name)
        made = self._made.get(slot)
        if made is None or made[:2] != version:
            credentials = await self.sealed[table].open(
                settings.credentials,
                account=account_id,
                row_id=credentials_row(settings, None if first else mode),
            )
            # Another call may have made it in the meantime.
            made = self._made.get(slot)
            if made is None or made[:2] != version:
                provider = self._made_of(settings, credentials)
                if made is not None:
                    # It may be in use: its connections are closed with the service.
                    self._replaced.append(made[2])
                made = self._made[slot] = (*version, provider)
        return Integration(settings, settings.rules.at_least(self.floor), made[2], mode)

    def _made_of(self, settings: VerificationSettings, credentials: bytes) -> IdentityProvider[Any]:
        name, account_id = settings.provider, settings.account_id
        try:
            return self.factory(name, credentials, settings.base_url)
        except InvalidArgument as error:
            # They were valid when they were set: the provider's package is gone, or this release is
            # stricter.
            _log.error("provider_unusable", account=account_id, provider=name, reason=str(error))
            raise VerificationMisconfigured from None

    async def close(self) -> None:
        """Close the connections to the providers."""
        for provider in (*self._replaced, *(made[2] for made in self._made.values())):
            await provider.close()
        self._replaced.clear()
        self._made.clear()


def credentials_row(settings: VerificationSettings, further: Mode | None) -> str:
    """The row that the credentials are sealed for.

    `further` is the mode of a provider that is not the account's first.
    """
    place = settings.account_id
    if further is not None:
        place = f"{place}:{further}:{settings.provider}"
    return f"{place}:{settings.revision}"


def stored_providers(
    connection: Connection, account_id: str, mode: Mode, floor: VerificationRules
) -> tuple[VerificationSettings | None, Sequence[VerificationSettings]]:
    """The first provider of an account in this mode, and the further ones by name.

    All use the account's rules; without rules, `floor`. Live ones count only after a
    first one.
    """
    first, further, rules = None, [], floor
    for *found, own, at, place in _select(connection, account_id, account_id, mode.value):
        rules = rules if own is None else decode_rules(own)
        values: dict[str, Any] = {**dict(zip(_OWN, found, strict=True)), "rules": rules}
        one = VerificationSettings(account_id=account_id, changed_at=from_ms(at), **values)
        if place:
            further.append(one)
        else:
            first = one
    if mode is not Mode.LIVE:
        return None, further
    return first, () if first is None else further


def stored_settings(connection: Connection, account_id: str) -> VerificationSettings | None:
    """The settings of an account; None if it has none."""
    return stored_providers(connection, account_id, Mode.LIVE, VerificationRules())[0]


def put_settings(connection: Connection, new: VerificationSettings, audit: AuditEntry) -> None:
    """Write the settings of an account, and who changed them.

    Raises AccountClosed.
    """
    lock_account(connection, new.account_id)
    row = asdict(new) | {"rules": msgspec.json.encode(new.rules).decode()}
    connection.execute(delete(verification_settings).filter_by(account_id=new.account_id))
    # Now it is the first.
    drop_provider(connection, new.account_id, Mode.LIVE, new.provider)
    connection.execute(insert(verification_settings), row)
    write_audit(connection, audit)


def remove_settings(connection: Connection, account_id: str, audit: AuditEntry) -> bool:
    """Remove the settings of an account with all its live providers; False if it had none."""
    of_account = delete(verification_settings).filter_by(account_id=account_id)
    removed = connection.execute(of_account).rowcount > 0
    if removed:
        drop_provider(connection, account_id, Mode.LIVE)
        write_audit(connection, audit)
    return removed


def put_provider(
    connection: Connection, new: VerificationSettings, mode: Mode, audit: AuditEntry
) -> InvalidArgument | None:
    """Write a further provider of an account, and who added it; a refusal if it is the first.

    Raises AccountClosed.
    """
    lock_account(connection, new.account_id)
    first = stored_settings(connection, new.account_id)
    if mode is Mode.LIVE and first is None:
        return InvalidArgument(
            "The account does not verify live buyers yet: countersign accounts verification set "
            f"{new.account_id} …"
        )
    if mode is Mode.LIVE and first is not None and first.provider == new.provider:
        return InvalidArgument(f"{new.provider} is the account's first provider already.")
    row = asdict(new) | {"mode": mode}
    del row["rules"]
    drop_provider(connection, new.account_id, mode, new.provider)
    connection.execute(insert(further_providers), row)
    write_audit(connection, audit)
    return None


def drop_provider(
    connection: Connection,
    account_id: str,
    mode: Mode,
    provider: str | None = None,
    audit: AuditEntry | None = None,
) -> bool:
    """Delete this further provider of an account, or all of the mode; False if there is none."""
    statement = delete(further_providers).filter_by(account_id=account_id, mode=mode)
    if provider is not None:
        statement = statement.filter_by(provider=provider)
    dropped = connection.execute(statement).rowcount > 0
    if dropped and audit is not None:
        write_audit(connection, audit)
    return dropped
