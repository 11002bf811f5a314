"""Vendors on the shared servers, once on each engine."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from tests.http.backstage import Operator, Vendor
from tests.support.service import Server


@pytest.fixture
def vendor(operator: Operator, server: Server) -> Iterator[Vendor]:
    """Give an account of this test alone, with a client for each mode."""
    with operator.vendor(server) as made:
        yield made


@pytest.fixture
def other(operator: Operator, server: Server) -> Iterator[Vendor]:
    """Give a second account."""
    with operator.vendor(server) as made:
        yield made


@pytest.fixture
def client(vendor: Vendor) -> httpx2.Client:
    """Give a client with a test key of this test's own account."""
    return vendor.test
