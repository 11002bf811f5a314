"""Test and live mode; every object belongs to one of them."""

from enum import StrEnum
from typing import Final


class Mode(StrEnum):
    """Test or live: the API key decides."""

    TEST = "test"
    LIVE = "live"


MODES: Final = {mode.value: mode for mode in Mode}
"""By their words: to look one up is faster than `Mode(word)`."""
