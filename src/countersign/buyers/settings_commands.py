"""`countersign accounts verification`: how an account verifies live buyers."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from countersign.buyers import settings as acts
from countersign.buyers.room import Buyers
from countersign.buyers.rules import (
    ACCEPTABLE,
    AbsentCountry,
    DocumentExpiry,
    VerificationRules,
    VerificationSettings,
    weakened,
)
from countersign.cli.support import (
    command,
    confirm,
    field_lines,
    in_words,
    say,
    show,
    with_room,
)
from countersign.errors import InvalidArgument
from countersign.identity.model import Source
from countersign.identity.registry import PROVIDER_NAMES
from countersign.instant import rfc3339

_CREDENTIALS_VARIABLE = "COUNTERSIGN_PROVIDER_CREDENTIALS"
_DEFAULT = VerificationRules()


class _Chosen(NamedTuple):
    """What the options say of the provider."""

    provider: str
    credentials: bytes
    base_url: str | None

    def __repr__(self) -> str:
        return f"<{self.provider}: hidden>"


@click.group()
def verification() -> None:
    """How an account verifies live buyers: its identity provider and its rules."""


@verification.command("set")
@click.argument("account")
@click.option("--provider", type=click.Choice(PROVIDER_NAMES), required=True)
@click.option(
    "--credentials-file",
    type=click.Path(path_type=Path),
    help=f"JSON file. Left out: the variable {_CREDENTIALS_VARIABLE}.",
)
@click.option(
    "--dangerous-base-url",
    metavar="URL",
    help="Send requests to this URL, such as a simulator, instead of the provider. The results "
    "count as real.",
)
@click.option("--minimum-age", type=int, metavar="YEARS", help="At first: the deployment's.")
@click.option("--zone", help=f"The time zone of birthdays. At first: {_DEFAULT.zone}.")
@click.option(
    "--zip-source",
    "zip_sources",
    type=click.Choice([source.value for source in ACCEPTABLE]),
    multiple=True,
    help="Accepted source of the address; may be repeated. At first: all but operator.",
)
@click.option(
    "--absent-country",
    type=click.Choice([kind.value for kind in AbsentCountry]),
    help=f"How to treat an address without a country. At first: {_DEFAULT.absent_country}.",
)
@click.option(
    "--document-expiry",
    type=click.Choice([kind.value for kind in DocumentExpiry]),
    help=f"The rule for the document's expiry date. At first: {_DEFAULT.document_expiry}.",
)
@click.option("--validity-days", type=int, metavar="DAYS", help="At first: the deployment's.")
@click.option(
    "--require-subject-reference/--no-require-subject-reference",
    default=None,
    help="Whether every verify request must name the buyer for whom the session was created. At "
    "first: no.",
)
@click.option("--check", is_flag=True, help="Test the credentials at the provider first.")
@click.option("--yes", is_flag=True, help="Do not ask before a rule becomes weaker.")
@command
def set_(
    account: str,
    *,
    provider: str,
    credentials_file: Path | None,
    dangerous_base_url: str | None,
    minimum_age: int | None,
    zone: str | None,
    zip_sources: tuple[str, ...],
    absent_country: str | None,
    document_expiry: str | None,
    validity_days: int | None,
    require_subject_reference: bool | None,
    check: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Set the provider, its credentials and the rules of ACCOUNT (id or name).

    A rule that is left out stays as it is; a new account begins with the defaults. Every change of
    a rule is printed. A rule becomes weaker only after a confirmation or with --yes. A URL other
    than the provider's is not kept: give --dangerous-base-url each time.
    """
    chosen = _Chosen(provider, _read_credentials(credentials_file), dangerous_base_url)
    given: dict[str, Any] = {
        "minimum_age": minimum_age,
        "zone": zone,
        "zip_sources": tuple(Source(source) for source in zip_sources) or None,
        "absent_country": absent_country and AbsentCountry(absent_country),
        "document_expiry": document_expiry and DocumentExpiry(document_expiry),
        "validity_days": validity_days,
        "subject_reference_required": require_subject_reference,
    }
    given = {name: value for name, value in given.items() if value is not None}
    settings, hints = _set(account, chosen, given, check=check, yes=yes)
    say(f"Account {settings.account_id} verifies live buyers with {provider}.")
    if check:
        say("The provider accepts the credentials.")
    if settings.base_url is not None:
        say(
            f"warning: requests go to {settings.base_url} instead of {provider}. The service at "
            "that URL decides who is verified, at every vendor of this deployment."
        )
    if credentials_file is not None and credentials_file.stat().st_mode & 0o077:
        say(f"warning: other users can read {credentials_file}.")
    for hint in hints:
        say(f"warning: {hint}")
    if not settings.rules.subject_reference_required:
        say(
            "note: subject_reference is optional for this account. Without it, any session of "
            "this provider verifies any customer who sends its id. With "
            "--require-subject-reference every verify request must name the customer for whom "
            "the session was created."
        )
    say(f"The URL for the provider's webhooks: {_webhook_url(settings)}")
    _show(settings, as_json=as_json)


@verification.command("show")
@click.argument("account")
@command
def show_(account: str, *, as_json: bool) -> None:
    """Show the settings of ACCOUNT; never the credentials."""
    settings = with_room(Buyers)(acts.show)(account)
    if settings is None:
        say(
            f"{account} does not verify live buyers yet: countersign accounts verification set "
            f"{account} …"
        )
        show(None, "", as_json=as_json)
        return
    _show(settings, as_json=as_json)


@verification.command("remove")
@click.argument("account")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def remove(account: str, *, yes: bool, as_json: bool) -> None:
    """Remove the provider and the credentials of ACCOUNT. Its buyers keep their status."""
    confirm(f"Remove the provider and the credentials of {account}?", yes=yes)
    removed = with_room(Buyers)(acts.remove)(account)
    say(f"{account} no longer verifies live buyers." if removed else "The account had no provider.")
    show({"account": account, "removed": removed}, account, as_json=as_json)


def _read_credentials(file: Path | None) -> bytes:
    if file is not None:
        try:
            return file.read_bytes()
        except OSError as error:
            msg = f"{file} cannot be read: {error.strerror}."
            raise InvalidArgument(msg) from error
    text = os.environ.get(_CREDENTIALS_VARIABLE)
    if not text:
        msg = f"Give the credentials: --credentials-file FILE, or {_CREDENTIALS_VARIABLE}."
        raise InvalidArgument(msg)
    return os.fsencode(text)  # the bytes as given, which need not be UTF-8


@with_room(Buyers)
async def _set(
    room: Buyers,
    account: str,
    chosen: _Chosen,
    given: Mapping[str, Any],
    *,
    check: bool,
    yes: bool,
) -> tuple[VerificationSettings, Sequence[str]]:
    provider, credentials, base_url = chosen
    hints = room.providers.factory.review(provider, credentials)
    before, rules = await acts.changed(room, account, given)
    if before is not None:
        _confirm_change(before, rules, yes=yes)
    if check:
        await acts.check(room, *chosen)
    settings = await acts.configure(room, account, provider, credentials, rules, base_url=base_url)
    return settings, hints


def _confirm_change(before: VerificationRules, after: VerificationRules, *, yes: bool) -> None:
    """Print each rule that changes, and ask before one becomes weaker.

    Raises:
        InvalidArgument: a rule becomes weaker, and there is no terminal to ask at.
        click.Abort: the operator said no.
    """
    old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
    weaker = weakened(before, after)
    for name, value in new.items():
        if value != old[name]:
            mark = " (weaker)" if name in weaker else ""
            say(f"{name}: {in_words(old[name])} → {in_words(value)}{mark}")
    if not weaker or yes:
        return
    if not sys.stdin.isatty():
        msg = f"This makes rules weaker: {', '.join(weaker)}. Nothing was changed. Give --yes."
        raise InvalidArgument(msg)
    confirm("Make these rules weaker?", yes=yes)


@with_room(Buyers)
async def _public_url(room: Buyers) -> str:
    return room.public_url


def _webhook_url(settings: VerificationSettings) -> str:
    return f"{_public_url()}/v1/provider_webhooks/{settings.provider}/{settings.account_id}"


def _show(settings: VerificationSettings, *, as_json: bool) -> None:
    view: dict[str, Any] = {
        "account_id": settings.account_id,
        "provider": settings.provider,
        "base_url": settings.base_url,
        "revision": settings.revision,
        "changed_at": rfc3339(settings.changed_at),
        "webhook_url": _webhook_url(settings),
        **msgspec.to_builtins(settings.rules),
    }
    show(view, field_lines(view), as_json=as_json)
