"""The room of people: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from countersign.base.passkeys import RelyingParty
from countersign.core.access.room import Access
from countersign.core.vault.vault import SealedColumn
from countersign.hosted.pages.mails import CopyMails

if TYPE_CHECKING:
    from countersign.staff.people.provider import Provider

RETURN_PATH: Final = "/console/provider/return"
"""The redirect URI for an OpenID Connect provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """People with roles, their links, passkeys and sessions."""

    access: Access
    party: RelyingParty | None
    """None: browsers allow no passkeys at the console's address."""
    provider: Provider | None
    """The OpenID Connect provider; None without one."""
    url: str
    """The console's address, without a trailing slash."""
    is_on: bool
    addresses: SealedColumn
    """Where alerts go; a row is named by its person."""
    mails: CopyMails | None
    """None: no alerts are sent."""
