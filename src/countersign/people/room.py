"""The room of people: what its acts work with."""

from __future__ import annotations

from dataclasses import dataclass

from countersign.access.room import Access
from countersign.passkeys import RelyingParty


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """People with roles, their links, passkeys and sessions."""

    access: Access
    party: RelyingParty | None
    """None: browsers allow no passkeys at the address of the console."""
    url: str
    """Where the console is, without a slash at the end."""
    is_on: bool
