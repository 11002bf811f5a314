"""Time and randomness, which come from outside so that tests are exact."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

Entropy: TypeAlias = Callable[[int], bytes]
"""Returns that many random bytes, as `os.urandom` does."""


class Clock(Protocol):
    """The time of the service."""

    def time_ns(self) -> int:
        """Unix time in nanoseconds."""

    def monotonic(self) -> float:
        """Seconds that never go back, for measuring how old something is."""
