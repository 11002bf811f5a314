"""`countersign accounts verification`: how an account verifies live buyers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from countersign.bootstrap import Deployment
from countersign.cli.support import command, confirm, field_lines, say, show, with_deployment
from countersign.domain.identity import Source
from countersign.domain.instant import rfc3339
from countersign.domain.verification_rules import (
    PROOFS,
    AbsentCountry,
    DocumentExpiry,
    VerificationRules,
    VerificationSettings,
)
from countersign.errors import InvalidArgument
from countersign.providers.identity.registry import PROVIDER_NAMES

_CREDENTIALS_VARIABLE = "COUNTERSIGN_PROVIDER_CREDENTIALS"
_DEFAULT = VerificationRules()


class _Chosen(NamedTuple):
    """What the options say of the provider, and what is left to the deployment's floor."""

    provider: str
    credentials: bytes
    base_url: str | None
    minimum_age: int | None
    validity_days: int | None

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
    help=f"JSON; left out, it is taken from the variable {_CREDENTIALS_VARIABLE}.",
)
@click.option(
    "--dangerous-base-url",
    metavar="URL",
    help="Ask here instead of at the provider: a simulator. What it says counts as real.",
)
@click.option("--minimum-age", type=int, metavar="YEARS", help="Left out: the deployment's.")
@click.option("--zone", default=_DEFAULT.zone, show_default=True, help="Where birthdays begin.")
@click.option(
    "--zip-source",
    "zip_sources",
    type=click.Choice([source.value for source in PROOFS]),
    multiple=True,
    help="What may vouch for an address; may be given several times. Left out: all of them.",
)
@click.option(
    "--absent-country",
    type=click.Choice([kind.value for kind in AbsentCountry]),
    default=_DEFAULT.absent_country.value,
    show_default=True,
    help="What an address without a country is taken for.",
)
@click.option(
    "--document-expiry",
    type=click.Choice([kind.value for kind in DocumentExpiry]),
    default=_DEFAULT.document_expiry.value,
    show_default=True,
    help="What is asked of the document's expiry date.",
)
@click.option("--validity-days", type=int, metavar="DAYS", help="Left out: the deployment's.")
@click.option(
    "--require-subject-reference/--no-require-subject-reference",
    default=False,
    show_default=True,
    help="Whether every verify has to name the buyer that the session was made for.",
)
@click.option("--check", is_flag=True, help="Try the credentials at the provider first.")
@command
def set_(
    account: str,
    *,
    provider: str,
    credentials_file: Path | None,
    dangerous_base_url: str | None,
    minimum_age: int | None,
    zone: str,
    zip_sources: tuple[str, ...],
    absent_country: str,
    document_expiry: str,
    validity_days: int | None,
    require_subject_reference: bool,
    check: bool,
    as_json: bool,
) -> None:
    """Set the provider, its credentials and all rules of ACCOUNT (id or name).

    What is left out gets its default, not what was set before.
    """
    credentials = _read_credentials(credentials_file)
    chosen = _Chosen(provider, credentials, dangerous_base_url, minimum_age, validity_days)
    settings = _set(
        account,
        chosen,
        VerificationRules(
            zone=zone,
            zip_sources=tuple(Source(source) for source in zip_sources) or PROOFS,
            absent_country=AbsentCountry(absent_country),
            document_expiry=DocumentExpiry(document_expiry),
            subject_reference_required=require_subject_reference,
        ),
        check=check,
    )
    say(f"Account {settings.account_id} verifies live buyers with {provider}.")
    if check:
        say("The provider accepts the credentials.")
    if settings.base_url is not None:
        say(
            f"warning: {settings.base_url} is asked instead of {provider}. Whoever answers there "
            "decides who is verified, at every vendor of this deployment."
        )
    if credentials_file is not None and credentials_file.stat().st_mode & 0o077:
        say(f"warning: others than you can read {credentials_file}.")
    say(f"Its webhooks go to: {_webhook_url(settings)}")
    _show(settings, as_json=as_json)


@verification.command("show")
@click.argument("account")
@command
def show_(account: str, *, as_json: bool) -> None:
    """Show the settings of ACCOUNT; never the credentials."""
    settings = _get(account)
    if settings is None:
        say(f"{account} verifies no live buyers: countersign accounts verification set {account} …")
        show(None, "", as_json=as_json)
        return
    _show(settings, as_json=as_json)


@verification.command("remove")
@click.argument("account")
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
def remove(account: str, *, yes: bool, as_json: bool) -> None:
    """Remove the provider and the credentials of ACCOUNT; its buyers stay as they are."""
    confirm(f"Remove the provider and the credentials of {account}?", yes=yes)
    removed = _remove(account)
    say(f"{account} verifies no live buyers any more." if removed else "There was nothing.")
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


@with_deployment
async def _set(
    deployment: Deployment,
    account: str,
    chosen: _Chosen,
    rules: VerificationRules,
    *,
    check: bool,
) -> VerificationSettings:
    manage = deployment.manage_verification
    floor, (provider, credentials, base_url, age, days) = manage.floor, chosen
    if check:
        await manage.check(provider, credentials, base_url)
    rules = msgspec.structs.replace(
        rules,
        minimum_age=floor.minimum_age if age is None else age,
        validity_days=floor.validity_days if days is None else days,
    )
    return await manage.set(account, provider, credentials, rules, base_url=base_url)


@with_deployment
async def _get(deployment: Deployment, account: str) -> VerificationSettings | None:
    return await deployment.manage_verification.show(account)


@with_deployment
async def _remove(deployment: Deployment, account: str) -> bool:
    return await deployment.manage_verification.remove(account)


@with_deployment
async def _public_url(deployment: Deployment) -> str:
    return deployment.settings.public_url


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
