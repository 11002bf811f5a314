"""Data keys, as they are stored: wrapped by a key-encryption key."""

from dataclasses import dataclass, replace
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WrappedKey:
    """The data key of a scope (an account, or the deployment itself) for a month, as yyyymm."""

    id: str
    scope: str
    month: int
    wrapped: bytes
    created_at: datetime

    def with_wrapped(self, wrapped: bytes) -> "WrappedKey":
        """The same key, wrapped like this."""
        return replace(self, wrapped=wrapped)
