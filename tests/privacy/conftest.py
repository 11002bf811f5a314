"""A deployment of each test alone, with shops that verify live buyers."""

from tests.remembered.conftest import live_shop, operator, person, provider, server

__all__ = ["live_shop", "operator", "person", "provider", "server"]
