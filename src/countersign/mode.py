"""Test and live mode; every object belongs to one of them."""

from enum import StrEnum


class Mode(StrEnum):
    """Test or live: the API key decides."""

    TEST = "test"
    LIVE = "live"
