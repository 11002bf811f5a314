"""The ZIP codes that were proved for a buyer: kept only as keyed hashes."""

from __future__ import annotations

from countersign.base.values import Mode
from countersign.core.access.secrets import DeploymentSecret
from countersign.core.buyers.model import ProvedSession
from countersign.core.buyers.rules import AbsentCountry, VerificationRules, zip5
from countersign.core.buyers.sql import ZipSubject
from countersign.identity.model import FactSource


def proves_zip(  # noqa: PLR0917 - what is known
    secret: DeploymentSecret,
    account_id: str,
    cbid: str,
    proof: ProvedSession,
    rules: VerificationRules,
    zip_: str,
) -> bool:
    """Whether this proof proves the ZIP code for the buyer, as the account's rules ask for it."""
    countries = (False, True) if rules.absent_country is AbsentCountry.US else (False,)
    by_account = proved_zip_index(secret, cbid, zip_, FactSource.OPERATOR, account_id=account_id)
    if FactSource.OPERATOR in rules.zip_sources and by_account in proof.zips:
        return True
    return any(
        proved_zip_index(secret, cbid, zip_, source, country_assumed=assumed) in proof.zips
        for source in rules.zip_sources
        for assumed in countries
    )


def own_zip_subject(secret: DeploymentSecret, account_id: str, mode: Mode, cbid: str) -> ZipSubject:
    """For whom ZIP codes count that are compared in the buyer's own browser.

    Apart from those of clearances: the account would see there who is known in a browser.
    """
    return ZipSubject(account_id, mode, secret.blind_index(account_id, "remembered_buyer", cbid))


def proved_zip_index(
    secret: DeploymentSecret,
    cbid: str,
    zip_: str,
    source: FactSource,
    *,
    country_assumed: bool = False,
    account_id: str | None = None,
) -> str:
    """The keyed hash of a ZIP code that this source has proved for a buyer, in hexadecimal.

    With `account_id` it counts for this account alone, whose reviewer accepted it.
    """
    more = f"_{source.value}{'_assumed_us' if country_assumed else ''}"
    if account_id is not None:
        more = f"{more}_{account_id}"
    return secret.blind_index(cbid, "proved_zip", zip5(zip_), more).hex()
