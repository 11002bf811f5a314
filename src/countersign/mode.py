"""Test and live: given by the key, and nothing crosses."""

from enum import StrEnum


class Mode(StrEnum):
    """Which half of the deployment a key belongs to."""

    TEST = "test"
    LIVE = "live"
