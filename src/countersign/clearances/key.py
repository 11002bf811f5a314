"""A key that signs the tokens of clearances."""

from dataclasses import dataclass
from datetime import datetime

from countersign.mode import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearanceKey:
    """One key of a mode; `seed` is sealed by the vault."""

    mode: Mode
    number: int
    """Its place in the row of keys, from 1."""
    kid: str
    """The key id: `live-` or `test-`, and the thumbprint of the public key (RFC 7638)."""
    public_key: bytes
    seed: bytes
    created_at: datetime
    signs_from: datetime
    """It signs from then, until the time of the next key has come."""
