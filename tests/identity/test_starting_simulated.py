"""Each adapter starts a session at its simulator, which is written from the same descriptions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from countersign.base.errors import VerificationMisconfigured
from countersign.identity.base import IdentityProvider
from countersign.identity.model import Finding, StartRequest
from countersign.identity.registry import IdentityProviders, provider_names
from countersign_simulators.registry import SIMULATORS
from countersign_simulators.server import serve
from tests.identity.asking import FixedClock, keyed
from tests.identity.test_every_provider import credentials_of

WANTED = StartRequest(
    reference="chk_1y4m4zewk7q8akv27gt3z8xc5k",
    return_url="https://pay.example.com/c/chk_1y4m4zewk7q8akv27gt3z8xc5k/return",
    locale="es",
    key="chk_1y4m4zewk7q8akv27gt3z8xc5k.1",
)
NOTHING_SUBMITTED = {Finding.REQUIRES_INPUT, Finding.PENDING}
"""Veriff gives no decision until there is one."""


@asynccontextmanager
async def simulated(name: str, **wrong: object) -> AsyncIterator[IdentityProvider[Any]]:
    """An adapter at its simulator, with the simulator's credentials."""
    content = json.dumps({**credentials_of(name), **wrong}).encode()
    async with serve(SIMULATORS[name](FixedClock().now)) as served:
        provider = IdentityProviders(keyed, FixedClock())(name, content, served.url)
        try:
            yield provider
        finally:
            await provider.close()


@pytest.mark.parametrize("name", provider_names())
def test_a_started_session_can_be_retrieved(name: str) -> None:
    """It has a page for the buyer, our reference, and no decision; the same again is the same."""

    async def work() -> None:
        async with (
            simulated(name) as provider,
            httpx2.AsyncClient(trust_env=False, verify=False) as browser,
        ):
            first = await provider.start(WANTED)
            assert (await browser.get(first.url)).status_code == 200
            result = await provider.retrieve(first.session_id)
            assert result.outcome in NOTHING_SUBMITTED
            # An undecided session of Veriff names no subject.
            assert result.subject_reference in {WANTED.reference, None}
            assert result.live
            again = await provider.start(WANTED)
            assert (again.session_id == first.session_id) is (name not in {"veriff", "onfido"})
            assert (await browser.get(again.url)).status_code == 200
            other = await provider.start(replace(WANTED, reference="chk_other", key="chk_other.1"))
            assert other.session_id != first.session_id

    asyncio.run(work())


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("stripe", {"api_key": "rk_live_unknown_key"}),
        ("persona", {"api_key": "persona_production_unknown"}),
        ("persona", {"inquiry_template_id": "itmpl_UnknownTemplate1"}),
        ("veriff", {"shared_secrets": ["another-secret"]}),
        ("plaid", {"secret": "another-secret"}),
        ("plaid", {"template_id": "idvtmp_UnknownTemplate"}),
        ("didit", {"api_key": "another-api-key"}),
        ("didit", {"workflow_id": "00000000-0000-4000-8000-000000000000"}),
        ("onfido", {"api_token": "api_live_us.another-token"}),
        ("onfido", {"workflow_id": "00000000-0000-4000-8000-000000000000"}),
    ],
)
def test_refusals_of_the_simulator_are_for_the_operator(
    name: str, wrong: dict[str, object]
) -> None:
    """A wrong key or an unknown template is no outage."""

    async def work() -> None:
        async with simulated(name, **wrong) as provider:
            with pytest.raises(VerificationMisconfigured):
                await provider.start(WANTED)

    asyncio.run(work())
