"""`countersign buyers`, and `countersign accounts verification`: how an account verifies them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import msgspec

from countersign.base.cli import csv_lines, room_command, with_room
from countersign.base.errors import InvalidArgument
from countersign.base.values import Mode, rfc3339
from countersign.core.access.audit import AuditEntry
from countersign.core.access.reach import DEPLOYMENT
from countersign.core.buyers import admin
from countersign.core.buyers import settings as acts
from countersign.core.buyers.model import Buyer, BuyerStatus
from countersign.core.buyers.room import Buyers
from countersign.core.buyers.rules import (
    ACCEPTABLE,
    AbsentCountry,
    DocumentExpiry,
    VerificationRules,
    VerificationSettings,
    weakened,
)
from countersign.core.log.audit_chain import chain_lines, head_proofs, seal_audit
from countersign.core.log.room import LogRoom
from countersign.identity.registry import provider_names
from countersign_evidence.audit import CHAIN, HEADS, PROOF_ENDING
from countersign_evidence.cli.files import read_file, written
from countersign_evidence.cli.support import (
    asking,
    command,
    confirm,
    field_lines,
    in_words,
    is_given,
    json_text,
    say,
    show,
    show_all,
)

_in_room = with_room(Buyers)
_CREDENTIALS_VARIABLE = "COUNTERSIGN_PROVIDER_CREDENTIALS"
_PROVIDERS = click.Choice(provider_names())
_DEFAULT = VerificationRules()


@click.group()
def buyers() -> None:
    """Show buyers and the evidence of their verifications, revoke and reinstate them."""


@buyers.command("show")
@click.argument("cbid")
@command
def show_(cbid: str) -> None:
    """Show a buyer, without personal data."""
    buyer, status = _in_room(admin.show)(cbid)
    _show_buyer(buyer, status)


@buyers.command("accept-zip")
@click.argument("cbid")
@click.argument("zip_", metavar="ZIP")
@click.option(
    "--document", required=True, help="The document that you checked, such as a utility bill."
)
@click.option("--reason", required=True, help="Why, such as the number of a case.")
@asking("Accept {zip_} for {cbid} without a provider's confirmation?")
@command
def accept_zip(cbid: str, zip_: str, *, document: str, reason: str) -> None:
    """Accept another ZIP code for a buyer whom a provider approved and who has moved.

    All other rules are applied again to the provider's result of that time. The record says that an
    operator accepted the ZIP code. It counts for accounts whose rules have `--zip-source operator`.
    """
    buyer = _in_room(admin.accept_zip)(cbid, zip_, document=document, reason=reason)
    say(f"This was recorded in the audit log: countersign buyers audit {buyer.cbid}")
    _show_buyer(buyer, buyer.status)


@buyers.command("evidence")
@click.argument("cbid")
@click.option("--reason", required=True, help="Why you look at it, such as a case number.")
@command
def evidence(cbid: str, *, reason: str) -> None:
    """Show the evidence of a buyer's verifications: dates of birth, addresses, documents.

    The audit log permanently records that you looked, when and why. While the provider's whole
    response is kept, `content.answer.body` has its exact bytes in base64, `content.answer.text` the
    same as text. If `content` is null, the evidence was erased.
    """
    found = _in_room(admin.evidence)(DEPLOYMENT, cbid, reason)
    view = msgspec.to_builtins(found)
    erased = sum(one.content is None for one in found.checks)
    number = f"{len(found.checks)} verification{'' if len(found.checks) == 1 else 's'}"
    say(f"{number}, the evidence of {erased} erased." if erased else f"{number}.")
    say(f"This was recorded in the audit log: countersign audit {cbid}")
    show(view, json_text(view, indent=2))


@click.command()
@click.argument("subject", required=False)
@click.option("--csv", "as_csv", is_flag=True, help="As CSV, with a line of names first.")
@click.option(
    "--with-chain",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="With `export`: write all entries, their chain and the proofs of its sealed heads into "
    "this directory.",
)
@command
def audit(subject: str | None, *, folder: Path | None, as_csv: bool) -> None:
    """List what operators and people did or looked at, oldest first: who, when, what and why.

    With `export --with-chain DIR` it writes the audit so that others can check it without the
    operator: countersign-evidence check-audit DIR --policy POLICY.
    """
    if (folder is None) == (subject == "export"):
        raise InvalidArgument("Export the audit with: countersign audit export --with-chain DIR.")
    if folder is not None:
        entries, heads = _export(folder)
        plain = f"{entries} entries and {heads} sealed heads are in {folder}"
        show({"entries": entries, "heads": heads}, plain)
        return
    found = _in_room(admin.audit_log)(subject)
    view = [msgspec.to_builtins(entry) | {"at": rfc3339(entry.at)} for entry in found]
    if as_csv:
        rows = [[*[*one.values()][:-1], json_text(one["details"])] for one in view]
        click.echo(csv_lines([AuditEntry.__struct_fields__[:-1], *rows]), nl=False)
        return
    lines = [
        f"{rfc3339(entry.at)}  {entry.actor}  {entry.action}  {entry.subject}  "
        f"{json_text(entry.details)}"
        for entry in found
    ]
    show_all(view, lines, "No entries.")


@with_room(LogRoom)
async def _export(room: LogRoom, folder: Path) -> tuple[int, int]:
    """Write the audit into a directory; returns how many entries and sealed heads it has."""
    (folder / HEADS).mkdir(parents=True, exist_ok=True)
    await seal_audit(room, now_too=True)
    await room.seal.settle()
    entries = 0
    with written(folder / CHAIN) as target:
        async for line in chain_lines(room):
            entries += target.write(line) > 0
    proofs = await head_proofs(room)
    for id_, proof in proofs.items():
        with written(folder / HEADS / f"{id_}{PROOF_ENDING}") as target:
            target.write(proof)
    with written(folder / "policy.txt") as target:
        target.write(await room.policy.text(Mode.LIVE))
    return entries, len(proofs)


buyers.add_command(audit)


def _show_buyer(buyer: Buyer, status: BuyerStatus) -> None:
    """Show a buyer, without personal data."""
    view: dict[str, Any] = {
        "cbid": buyer.cbid,
        "livemode": buyer.mode == "live",
        "status": status.value,
        "reasons": [reason.value for reason in buyer.reasons],
        "account_id": buyer.account_id,
        "verified_at": buyer.verified_at and rfc3339(buyer.verified_at),
        "expires_at": buyer.expires_at and rfc3339(buyer.expires_at),
        "proved": [msgspec.to_builtins(proof.facts) for proof in buyer.proofs],
    }
    show(view, field_lines(view))


@click.group()
def verification() -> None:
    """How an account verifies live buyers: its identity providers and its rules."""


_test_keys = click.option(
    "--test-keys",
    is_flag=True,
    help="For sessions of test keys: the provider's own test mode, in place of the sandbox.",
)

_credentials = click.option(
    "--credentials-file",
    type=click.Path(path_type=Path),
    help=f"JSON file. Left out: the variable {_CREDENTIALS_VARIABLE}.",
)
_check = click.option("--check", is_flag=True, help="Test the credentials at the provider first.")


@verification.command("set")
@click.argument("account")
@click.option("--provider", type=_PROVIDERS, required=True)
@_credentials
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
    "subject_reference_required",
    "--require-subject-reference/--no-require-subject-reference",
    default=None,
    help="Whether every verify request must name the buyer for whom the session was created. At "
    "first: no.",
)
@_check
@click.option("--yes", is_flag=True, help="Do not ask before a rule becomes weaker.")
@room_command(Buyers)
async def set_settings(
    room: Buyers,
    /,
    account: str,
    *,
    provider: str,
    credentials_file: Path | None,
    dangerous_base_url: str | None,
    check: bool,
    **rules: Any,  # noqa: ANN401 - the options that are named as the rules are
) -> None:
    """Set the provider, its credentials and the rules of ACCOUNT (id or name).

    A rule that is left out stays as it is; a new account begins with the defaults. Every change of
    a rule is printed. A rule becomes weaker only after a confirmation or with --yes. A URL other
    than the provider's is not kept: give --dangerous-base-url each time.
    """
    given = {name: value for name, value in rules.items() if value not in {None, ()}}
    credentials, url = _read_credentials(credentials_file), dangerous_base_url
    hints = room.providers.factory.review(provider, credentials)
    before, after = await acts.changed(room, account, given)
    if before is not None:
        _confirm_change(before, after)
    if check:
        await acts.check(room, provider, credentials, url)
    settings = await acts.configure(room, account, provider, credentials, after, base_url=url)
    say(f"Account {settings.account_id} verifies live buyers with {provider}.")
    _say_notes(provider, url, hints, checked=check)
    if not after.subject_reference_required:
        say(
            "note: subject_reference is optional for this account. Without it, any session of "
            "this provider verifies any customer who sends its id. With "
            "--require-subject-reference every verify request must name the customer for whom "
            "the session was created."
        )
    view = _settings_view(room, settings) | await _further(room, account)
    say(f"The URL for the provider's webhooks: {view['webhook_url']}")
    show(view, field_lines(view))


@verification.command("show")
@click.argument("account")
@room_command(Buyers)
async def show_settings(room: Buyers, account: str) -> None:
    """Show the settings of ACCOUNT; never the credentials."""
    settings, further = await acts.show(room, account), await _further(room, account)
    view = {} if settings is None else _settings_view(room, settings)
    if settings is not None or further["further_providers"]:
        view |= further
    if settings is None:
        say(
            f"{account} does not verify live buyers yet: countersign accounts verification set "
            f"{account} …"
        )
    show(view or None, field_lines(view))


@verification.command("remove")
@click.argument("account")
@asking("Remove the provider and the credentials of {account}?")
@command
def remove_settings(account: str) -> None:
    """Remove the provider and the credentials of ACCOUNT. Its buyers keep their status."""
    removed = _in_room(acts.remove)(account)
    say(f"{account} no longer verifies live buyers." if removed else "The account had no provider.")
    show({"account": account, "removed": removed}, account)


@verification.command("add")
@click.argument("account")
@click.option("--provider", type=_PROVIDERS, required=True)
@_credentials
@_test_keys
@click.option(
    "--dangerous-base-url",
    metavar="URL",
    help="Send requests to this URL, such as a simulator, instead of the provider.",
)
@_check
@room_command(Buyers)
async def add_provider(
    room: Buyers,
    /,
    account: str,
    *,
    provider: str,
    credentials_file: Path | None,
    test_keys: bool,
    dangerous_base_url: str | None,
    check: bool,
) -> None:
    """Give ACCOUNT another provider, from which its buyers may choose. The rules are the account's.

    With --test-keys, sessions that are started with test keys go to the provider's own test mode
    from now on. Give credentials of that test mode. Nothing there counts for a live buyer.
    """
    mode = Mode.TEST if test_keys else Mode.LIVE
    credentials, url = _read_credentials(credentials_file), dangerous_base_url
    hints = acts.review(room, mode, provider, credentials, url)
    if check:
        await acts.check(room, provider, credentials, url)
    added = await acts.add(room, account, mode, provider, credentials, url)
    whose = "Sessions of test keys" if test_keys else "Live buyers"
    say(f"{whose} of account {added.account_id} may use {provider}.")
    _say_notes(provider, None if test_keys else url, hints, checked=check)
    view = {"mode": mode.value, **_provider_view(room, added)}
    say(f"The URL for the provider's webhooks: {view['webhook_url']}")
    show(view, field_lines(view))


@verification.command("drop")
@click.argument("account")
@click.option("--provider", required=True, help="Also one that is not installed any more.")
@_test_keys
@asking("Remove {provider} and its credentials from {account}?")
@command
def drop_provider(account: str, *, provider: str, test_keys: bool) -> None:
    """Take a provider that was added away from ACCOUNT. Its buyers keep their status."""
    mode = Mode.TEST if test_keys else Mode.LIVE
    dropped = _in_room(acts.drop)(account, mode, provider)
    say(f"{provider} was removed." if dropped else f"{provider} was not added to this account.")
    view = {"account": account, "provider": provider, "mode": mode.value, "removed": dropped}
    show(view, account)


def _say_notes(provider: str, url: str | None, hints: Iterable[str], *, checked: bool) -> None:
    """Warnings for the operator about a new provider."""
    if checked:
        say("The provider accepts the credentials.")
    if url is not None:
        say(
            f"warning: requests go to {url} instead of {provider}. The service at "
            "that URL decides who is verified, at every vendor of this deployment."
        )
    for hint in hints:
        say(f"warning: {hint}")


def _read_credentials(file: Path | None) -> bytes:
    if file is not None:
        content = read_file(file)
        if file.stat().st_mode & 0o077:
            say(f"warning: other users can read {file}.")
        return content
    text = os.environ.get(_CREDENTIALS_VARIABLE)
    if not text:
        msg = f"Give the credentials: --credentials-file FILE, or {_CREDENTIALS_VARIABLE}."
        raise InvalidArgument(msg)
    return os.fsencode(text)  # the bytes as given, which need not be UTF-8


def _confirm_change(before: VerificationRules, after: VerificationRules) -> None:
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
    if not weaker or is_given("yes"):
        return
    if not sys.stdin.isatty():
        msg = f"This makes rules weaker: {', '.join(weaker)}. Nothing was changed. Give --yes."
        raise InvalidArgument(msg)
    confirm("Make these rules weaker?")


async def _further(room: Buyers, account: str) -> dict[str, Any]:
    found = await acts.further(room, account)
    views = [{"mode": mode.value, **_provider_view(room, settings)} for mode, settings in found]
    return {"further_providers": views}


def _settings_view(room: Buyers, settings: VerificationSettings) -> dict[str, Any]:
    return {
        "account_id": settings.account_id,
        "revision": settings.revision,
        **_provider_view(room, settings),
        **msgspec.to_builtins(settings.rules),
    }


def _provider_view(room: Buyers, settings: VerificationSettings) -> dict[str, Any]:
    place = f"{settings.provider}/{settings.account_id}"
    return {
        "provider": settings.provider,
        "base_url": settings.base_url,
        "changed_at": rfc3339(settings.changed_at),
        "webhook_url": f"{room.public_url}/v1/provider_webhooks/{place}",
    }
