"""The test mode of every simulated provider, as the adapters see it."""

from __future__ import annotations

import asyncio
import json

import pytest

from countersign.identity.model import ProviderResult, StartRequest
from countersign.identity.registry import IdentityProviders
from countersign_simulators.registry import SIMULATORS
from countersign_simulators.server import serve
from tests.identity.asking import FixedClock, keyed
from tests.simulators.walking import Walker

WANTED = StartRequest(
    reference="chk_1", return_url="https://shop.example/back", locale="en", key="chk_1.1"
)


@pytest.mark.parametrize("name", SIMULATORS)
@pytest.mark.parametrize("is_test", [False, True])
def test_a_created_session_is_live_unless_the_credentials_are_of_the_test_mode(
    name: str, *, is_test: bool
) -> None:
    """Started, played to its end and retrieved through the adapter, with either credentials."""

    async def run() -> ProviderResult:
        clock = FixedClock()
        simulator = SIMULATORS[name](clock.now)
        held = simulator.test_credentials if is_test else simulator.credentials
        async with serve(simulator) as served:
            provider = IdentityProviders(keyed, clock)(name, json.dumps(held).encode(), served.url)
            try:
                started = await provider.start(WANTED)
                walker = Walker(served.url)
                form = {"zip": "95814", "outcome": "verified"}
                await asyncio.to_thread(walker.submit, started.url, **form)
                return await provider.retrieve(started.session_id)
            finally:
                await provider.close()

    found = asyncio.run(run())
    assert (str(found.outcome), found.live) == ("verified", not is_test)
    assert found.subject_reference == "chk_1"
