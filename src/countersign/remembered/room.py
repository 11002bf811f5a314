"""The room of remembered buyers: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from countersign.buyers.room import Buyers
from countersign.host import ip_or_none
from countersign.remembered.model import RelyingParty


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """Passkeys and cookies of buyers, and who asked about them."""

    buyers: Buyers
    party: RelyingParty | None
    """None: there are no passkeys at the address of this deployment, only cookies."""


def relying_party(public_url: str) -> RelyingParty | None:
    """The relying party at this address; None where browsers allow no passkeys.

    They need a host that is a name, and HTTPS unless that is `localhost`.
    """
    parts = urlsplit(public_url)
    host = (parts.hostname or "").lower()
    is_local = host == "localhost" or host.endswith(".localhost")
    if not host or ip_or_none(host) or not (parts.scheme == "https" or is_local):
        return None
    default = {"https": 443, "http": 80}[parts.scheme]
    port = "" if parts.port in {None, default} else f":{parts.port}"
    return RelyingParty(host, f"{parts.scheme}://{host}{port}")
