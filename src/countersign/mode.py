"""Test and live: given by the key, and nothing crosses."""

from enum import StrEnum


class Mode(StrEnum):
    """Test or live: the API key decides."""

    TEST = "test"
    LIVE = "live"
