"""How each account verifies live buyers, as the operator sets it."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from countersign.access.account import find_account
from countersign.access.audit import AuditAction
from countersign.buyers.providers import (
    StoredSettings,
    credentials_row,
    put_settings,
    remove_settings,
    stored_settings,
)
from countersign.buyers.room import Buyers
from countersign.buyers.rules import ACCEPTABLE, VerificationRules, VerificationSettings
from countersign.config import AGE_MAX
from countersign.errors import InvalidArgument
from countersign.identity.model import Outcome
from countersign.instant import from_ns

_ACCEPTED: Final = {Outcome.NOT_FOUND}


async def changed(
    room: Buyers, id_or_name: str, given: Mapping[str, Any]
) -> tuple[VerificationRules | None, VerificationRules]:
    """The rules of an account now (None: it has none), and with `given` in their place.

    Raises:
        UnknownAccount: there is no such account.
    """
    known = await show(room, id_or_name)
    before = known.rules.at_least(room.floor) if known else None
    return before, msgspec.structs.replace(before or room.floor, **given)


async def configure(
    room: Buyers,
    id_or_name: str,
    provider: str,
    credentials: bytes,
    rules: VerificationRules,
    *,
    base_url: str | None,
) -> VerificationSettings:
    """Set how an account verifies; applies from its next verification on.

    Raises:
        UnknownAccount: there is no such account.
        InvalidArgument: a setting is not possible, or goes below the deployment's minimum.
    """
    account = await find_account(room.access, id_or_name)
    _check_rules(rules, room.floor)
    if base_url is not None:
        _check_url(base_url)
    room.providers.factory.review(provider, credentials)
    # Made to see whether it can be.
    await room.providers.factory(provider, credentials, base_url).close()
    before = await room.database.read(stored_settings, account.id)
    time_ns = room.clock.time_ns()
    settings = VerificationSettings(
        account_id=account.id,
        revision=before.settings.revision + 1 if before else 1,
        provider=provider,
        base_url=base_url,
        rules=rules,
        changed_at=from_ns(time_ns),
    )
    sealed = await room.providers.credentials.seal(
        credentials, account=account.id, row_id=credentials_row(settings), time_ns=time_ns
    )
    audit = room.audit.entry(
        AuditAction.VERIFICATION_SETTINGS_CHANGED,
        account.id,
        revision=settings.revision,
        provider=provider,
        base_url=base_url,
        rules=msgspec.to_builtins(rules),
    )
    await room.database.write(put_settings, StoredSettings(settings, sealed), audit)
    return settings


async def show(room: Buyers, id_or_name: str) -> VerificationSettings | None:
    """The settings of an account; None if it has none.

    Raises:
        UnknownAccount: there is no such account.
    """
    account = await find_account(room.access, id_or_name)
    found = await room.database.read(stored_settings, account.id)
    return found.settings if found else None


async def remove(room: Buyers, id_or_name: str) -> bool:
    """Remove an account's settings and credentials; False if it had none.

    Raises:
        UnknownAccount: there is no such account.
    """
    account = await find_account(room.access, id_or_name)
    audit = room.audit.entry(AuditAction.VERIFICATION_SETTINGS_REMOVED, account.id)
    return await room.database.write(remove_settings, account.id, audit)


async def check(room: Buyers, provider: str, credentials: bytes, base_url: str | None) -> None:
    """Try credentials at the provider, by asking for a session that does not exist.

    Raises:
        InvalidArgument: the provider refuses them, or cannot be reached.
    """
    if base_url is not None:
        _check_url(base_url)
    made = room.providers.factory(provider, credentials, base_url)
    try:
        result = await made.retrieve(made.probe_session_id)
    finally:
        await made.close()
    if result.outcome not in _ACCEPTED:
        why = result.reason_code or result.outcome.value
        rejected = result.outcome is Outcome.PROVIDER_REJECTED
        what = "rejects these credentials" if rejected else "returned no usable response"
        msg = f"{provider} {what} ({why}). Nothing was changed."
        raise InvalidArgument(msg)


def _check_rules(rules: VerificationRules, floor: VerificationRules) -> None:
    if not floor.minimum_age <= rules.minimum_age <= AGE_MAX:
        msg = (
            f"The minimum age must be from {floor.minimum_age} (the deployment's minimum) to "
            f"{AGE_MAX}."
        )
        raise InvalidArgument(msg)
    if not 1 <= rules.validity_days <= floor.validity_days:
        msg = (
            f"A verification can be valid for 1 to {floor.validity_days} days (the deployment's "
            "maximum)."
        )
        raise InvalidArgument(msg)
    if not rules.zip_sources or not set(rules.zip_sources) <= set(ACCEPTABLE):
        msg = f"Allowed address sources, one or more: {', '.join(ACCEPTABLE)}."
        raise InvalidArgument(msg)
    try:
        ZoneInfo(rules.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        msg = f"Unknown time zone {rules.zone!r}; expected a name such as America/Los_Angeles."
        raise InvalidArgument(msg) from error


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        fine = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
        clear = parts.scheme == "http" and not _is_loopback(parts.hostname or "")
    except ValueError:
        fine = clear = False
        parts = urlsplit("")
    if not fine or parts.query or parts.fragment or parts.username or parts.password:
        msg = f"Invalid base URL {url!r}; expected a URL such as http://127.0.0.1:9000."
        raise InvalidArgument(msg)
    if clear:
        msg = f"{url!r} would send the credentials unencrypted: use https:// for other machines."
        raise InvalidArgument(msg)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
