"""How each account verifies live buyers, as the operator sets it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec.structs import asdict, replace

from countersign.base.config import AGE_MAX
from countersign.base.errors import InvalidArgument
from countersign.base.host import is_loopback
from countersign.base.values import Mode, from_ns
from countersign.core.access.account import find_account
from countersign.core.access.audit import AuditAction
from countersign.core.buyers.providers import (
    FIRST,
    FURTHER,
    credentials_row,
    drop_provider,
    put_provider,
    put_settings,
    remove_settings,
    stored_providers,
    stored_settings,
)
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.rules import ACCEPTABLE, VerificationRules, VerificationSettings
from countersign.identity.model import Finding


async def changed(
    room: Buyers, id_or_name: str, given: dict[str, Any]
) -> tuple[VerificationRules | None, VerificationRules]:
    """The rules of an account now (None: it has none), and with `given` in their place.

    Raises UnknownAccount if there is no such account.
    """
    known = await show(room, id_or_name)
    before = known.rules.at_least(room.providers.floor) if known else None
    own = asdict(before or room.providers.floor)
    return before, msgspec.convert(own | given, VerificationRules)


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

    Raises UnknownAccount if there is no such account, and InvalidArgument if a setting is not
    possible, or goes below the deployment's minimum.
    """
    account = await find_account(room.access, id_or_name)
    _check_rules(rules, room.providers.floor)
    await _try_to_make(room, Mode.LIVE, provider, credentials, base_url)
    before = await room.access.database.read(stored_settings, account.id)
    revision = before.revision + 1 if before else 1
    said = {"revision": revision, "provider": provider, "base_url": base_url}
    given = said | {"rules": rules, "credentials": credentials}
    settings = await _sealed(room, None, account_id=account.id, **given)
    action, told = AuditAction.VERIFICATION_SETTINGS_CHANGED, msgspec.to_builtins(rules)
    audit = room.access.audit.entry(action, account.id, **said, rules=told)
    await room.access.database.write(put_settings, settings, audit)
    return settings


async def show(room: Buyers, id_or_name: str) -> VerificationSettings | None:
    """The settings of an account; None if it has none.

    Raises UnknownAccount if there is no such account.
    """
    account = await find_account(room.access, id_or_name)
    return await room.access.database.read(stored_settings, account.id)


async def remove(room: Buyers, id_or_name: str) -> bool:
    """Remove an account's settings and credentials; False if it had none.

    Raises UnknownAccount if there is no such account.
    """
    account = await find_account(room.access, id_or_name)
    audit = room.access.audit.entry(AuditAction.VERIFICATION_SETTINGS_REMOVED, account.id)
    return await room.access.database.write(remove_settings, account.id, audit)


async def add(  # noqa: PLR0917 - as the command names them
    room: Buyers,
    id_or_name: str,
    mode: Mode,
    provider: str,
    credentials: bytes,
    base_url: str | None,
) -> VerificationSettings:
    """Give an account a further provider, or in mode TEST one for its test keys.

    Raises UnknownAccount if there is no such account, and InvalidArgument if the credentials are
    not of this mode, or it has no first provider for live buyers.
    """
    account = await find_account(room.access, id_or_name)
    await _try_to_make(room, mode, provider, credentials, base_url)
    first, further = await room.access.database.read(
        stored_providers, account.id, mode, room.providers.floor
    )
    known = max((one.revision for one in further if one.provider == provider), default=0)
    rules = room.providers.floor if first is None else first.rules
    said = {"provider": provider, "base_url": base_url}
    given = said | {"rules": rules, "credentials": credentials, "revision": known + 1}
    settings = await _sealed(room, mode, account_id=account.id, **given)
    added = AuditAction.VERIFICATION_PROVIDER_ADDED
    audit = room.access.audit.entry(added, account.id, mode=mode.value, **said)
    await room.access.database.write(put_provider, settings, mode, audit)
    return settings


async def drop(room: Buyers, id_or_name: str, mode: Mode, provider: str) -> bool:
    """Take a further provider away; False if the account has none of this name in this mode.

    Raises UnknownAccount if there is no such account.
    """
    account = await find_account(room.access, id_or_name)
    audit = room.access.audit.entry(
        AuditAction.VERIFICATION_PROVIDER_DROPPED, account.id, mode=mode.value, provider=provider
    )
    return await room.access.database.write(drop_provider, account.id, mode, provider, audit)


async def further(room: Buyers, id_or_name: str) -> list[tuple[Mode, VerificationSettings]]:
    """The further providers of an account, live ones first, by name.

    Raises UnknownAccount if there is no such account.
    """
    account = await find_account(room.access, id_or_name)
    found = []
    for mode in (Mode.LIVE, Mode.TEST):
        floor = room.providers.floor
        _, more = await room.access.database.read(stored_providers, account.id, mode, floor)
        found += [(mode, one) for one in more]
    return found


async def _try_to_make(
    room: Buyers, mode: Mode, provider: str, credentials: bytes, base_url: str | None
) -> None:
    """Raises InvalidArgument if this cannot be."""
    if base_url is not None:
        _check_url(base_url)
    review(room, mode, provider, credentials, base_url)
    await room.providers.factory(provider, credentials, base_url).close()


def review(
    room: Buyers, mode: Mode, provider: str, credentials: bytes, base_url: str | None
) -> Sequence[str]:
    """Warnings for an operator about these credentials.

    Raises InvalidArgument if they cannot work, or are not of this mode; a simulator has only one.
    """
    test = mode is Mode.TEST
    is_either = test and base_url is not None
    return room.providers.factory.review(provider, credentials, test=None if is_either else test)


async def _sealed(
    room: Buyers,
    further: Mode | None,
    **members: Any,  # noqa: ANN401 - those of VerificationSettings
) -> VerificationSettings:
    """Settings of now, with their credentials sealed."""
    time_ns = room.access.clock.time_ns()
    settings = VerificationSettings(changed_at=from_ns(time_ns), **members)
    sealed = await room.providers.sealed[FIRST if further is None else FURTHER].seal(
        settings.credentials,
        account=settings.account_id,
        row_id=credentials_row(settings, further),
        time_ns=time_ns,
    )
    return replace(settings, credentials=sealed)


async def check(room: Buyers, provider: str, credentials: bytes, base_url: str | None) -> None:
    """Try credentials at the provider, by asking for a session that does not exist.

    Raises InvalidArgument if the provider refuses them, or cannot be reached.
    """
    if base_url is not None:
        _check_url(base_url)
    made = room.providers.factory(provider, credentials, base_url)
    try:
        result = await made.retrieve(made.probe_session_id)
    finally:
        await made.close()
    if result.outcome is not Finding.NOT_FOUND:
        why = result.reason_code or result.outcome.value
        rejected = result.outcome is Finding.PROVIDER_REJECTED
        what = "rejects these credentials" if rejected else "returned no usable response"
        raise InvalidArgument(f"{provider} {what} ({why}). Nothing was changed.")


def _check_rules(rules: VerificationRules, floor: VerificationRules) -> None:
    if not floor.minimum_age <= rules.minimum_age <= AGE_MAX:
        raise InvalidArgument(
            f"The minimum age must be from {floor.minimum_age} (the deployment's minimum) to "
            f"{AGE_MAX}."
        )
    if not 1 <= rules.validity_days <= floor.validity_days:
        raise InvalidArgument(
            f"A verification can be valid for 1 to {floor.validity_days} days (the deployment's "
            "maximum)."
        )
    if not rules.zip_sources or not set(rules.zip_sources) <= set(ACCEPTABLE):
        raise InvalidArgument(f"Allowed address sources, one or more: {', '.join(ACCEPTABLE)}.")
    try:
        ZoneInfo(rules.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        msg = f"Unknown time zone {rules.zone!r}; expected a name such as America/Los_Angeles."
        raise InvalidArgument(msg) from error


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        whole = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
    except ValueError:
        parts, whole = urlsplit(""), None
    if not whole or parts.query or parts.fragment or parts.username or parts.password:
        msg = f"Invalid base URL {url!r}; expected a URL such as http://127.0.0.1:9000."
        raise InvalidArgument(msg)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        msg = f"{url!r} would send the credentials unencrypted: use https:// for other machines."
        raise InvalidArgument(msg)
