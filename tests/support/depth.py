"""How much a run draws by chance: `make test` draws a third of what other runs and CI draw."""

from __future__ import annotations

from typing import Final

_QUICK_PART: Final = 3
_divisor = [_QUICK_PART]


def go_deep() -> None:
    """Draw everything in this run; called before the tests are imported."""
    _divisor[0] = 1


def drawn(number: int) -> int:
    """How many examples or rounds of so many this run has."""
    return -(-number // _divisor[0])


def some(positions: range) -> range:
    """The places that this run tries: every third one, or each."""
    return positions[:: _divisor[0]]
