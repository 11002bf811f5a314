"""A deployment of each test alone, with shops that verify live buyers."""

import pytest

from tests.remembered.conftest import here, live_shop, operator, person, provider, server

__all__ = ["here", "live_shop", "operator", "person", "provider", "server"]


@pytest.fixture
def is_alone() -> bool:
    """All of them are: they look for what is left anywhere."""
    return True
