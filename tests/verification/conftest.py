"""Accounts that verify with simulated providers, on both engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.http.backstage import Operator, another_deployment
from tests.support.engines import ENGINES, engine_server
from tests.support.providers import Playing, playing
from tests.support.service import Server
from tests.verification.inside import Stage, staged
from tests.verification.live import LiveVendor, live_vendor

MakeVendor = Callable[..., LiveVendor]


@pytest.fixture
def vendor_with(operator: Operator, server: Server) -> Iterator[MakeVendor]:
    """Make vendors whose accounts ask a provider: `vendor_with("stripe", minimum_age=21)`."""
    with ExitStack() as stack:

        def make(
            provider: str | Playing = "stripe",
            **rules: Any,  # noqa: ANN401 - the fields of the rules
        ) -> LiveVendor:
            if isinstance(provider, str):
                provider = stack.enter_context(playing(provider))
            return stack.enter_context(live_vendor(operator, server, provider, **rules))

        yield make


@pytest.fixture
def vendor(vendor_with: MakeVendor) -> LiveVendor:
    """Give a vendor that verifies with the simulated Stripe of this test alone."""
    return vendor_with("stripe")


each_engine = pytest.mark.parametrize("stage", ENGINES, indirect=True)
"""For tests that depend on the database; the others run on SQLite alone."""


@pytest.fixture
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """Open a new deployment in this process, with a clock that the test moves."""
    with staged(another_deployment(tmp_path / "data", engine_server(request))) as made:
        yield made
