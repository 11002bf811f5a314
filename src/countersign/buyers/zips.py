"""The ZIP codes that were proved for a buyer: kept only as keyed hashes."""

from __future__ import annotations

from countersign.access.secrets import DeploymentSecret
from countersign.buyers.model import ProvedSession
from countersign.buyers.rules import AbsentCountry, VerificationRules, zip5
from countersign.identity.model import FactSource


def proves_zip(
    secret: DeploymentSecret, cbid: str, proof: ProvedSession, rules: VerificationRules, zip_: str
) -> bool:
    """Whether this proof proves the ZIP code for the buyer, as the rules ask for it."""
    countries = (False, True) if rules.absent_country is AbsentCountry.US else (False,)
    return any(
        proved_zip_index(secret, cbid, zip_, source, country_assumed=assumed) in proof.zips
        for source in rules.zip_sources
        for assumed in countries
    )


def proved_zip_index(
    secret: DeploymentSecret,
    cbid: str,
    zip_: str,
    source: FactSource,
    *,
    country_assumed: bool = False,
) -> str:
    """The keyed hash of a ZIP code that this source has proved for a buyer, in hexadecimal."""
    field = f"proved_zip_{source.value}{'_assumed_us' if country_assumed else ''}"
    return secret.blind_index(cbid, field, zip5(zip_)).hex()
