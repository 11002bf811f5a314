"""What a buyer is remembered by, for how long, and who asked."""

from __future__ import annotations

import ipaddress
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct

from countersign.evidence.process import Binding
from countersign.mode import Mode

COOKIE_KEPT: Final = timedelta(days=90)
PASSKEY_KEPT: Final = timedelta(days=400)
"""How long a passkey is kept that is not used."""
USES_KEPT: Final = timedelta(days=365)
"""How long a buyer can see who asked."""
KEPT_MAX: Final = 10
"""Passkeys and cookies of one buyer: one more removes the one that was used least recently."""


class Kind(StrEnum):
    """What a buyer is remembered by."""

    PASSKEY = "passkey"
    COOKIE = "cookie"

    @property
    def binding(self) -> Binding:
        """What the evidence says of it."""
        return Binding(self.value)


class Known(Struct, frozen=True, kw_only=True):
    """A passkey or a cookie of a buyer."""

    id: str
    mode: Mode
    cbid: str
    kind: Kind
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime


class Use(Struct, frozen=True, kw_only=True):
    """One time that somebody asked about a remembered buyer, with the buyer's consent."""

    account_id: str
    kind: Kind
    verified: bool
    """Whether the account was told that the buyer is verified; otherwise it was told nothing."""
    at: datetime


class RelyingParty(NamedTuple):
    """For whom passkeys are made: the deployment (WebAuthn Level 3 §4, RP ID)."""

    id: str
    origin: str


def relying_party(public_url: str) -> RelyingParty | None:
    """The relying party at this address; None where browsers allow no passkeys.

    They need a host that is a name, and HTTPS unless that is `localhost`.
    """
    parts = urlsplit(public_url)
    host = (parts.hostname or "").lower()
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return None
    is_local = host == "localhost" or host.endswith(".localhost")
    if not host or not (parts.scheme == "https" or is_local):
        return None
    default = {"https": 443, "http": 80}[parts.scheme]
    port = "" if parts.port in {None, default} else f":{parts.port}"
    return RelyingParty(host, f"{parts.scheme}://{host}{port}")
