"""A buyer at a hosted page, over real HTTP; and a simulator's messages about changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import httpx2

from countersign_simulators.base import Request, Simulator
from countersign_simulators.server import serve
from tests.identity.asking import FixedClock

T = TypeVar("T")
RETURN_URL = "https://shop.example/c/chk_1?step=2"
SUBMITTED = ("verified", "underage", "wrong_zip", "document_expired", "never")
"""Outcomes with a document that was accepted."""


@dataclass
class Walker:
    """A simulator at its address."""

    url: str
    requests: list[Request] = field(default_factory=list)

    def page(self, address: str) -> httpx2.Response:
        return httpx2.get(address, trust_env=False, verify=False)

    def submit(self, address: str, **form: str) -> httpx2.Response:
        """Send the form of a page; the browser does not follow."""
        return httpx2.post(address, data=form, trust_env=False, verify=False)

    def finish(self, address: str, outcome: str, zip_: str = "94110") -> str | None:
        """Go through every step to this outcome; the address that the buyer is led to."""
        for form in ({}, {}, {"zip": zip_}, {}):
            assert self.page(address).status_code == 200
            assert self.submit(address, **form).status_code == 303
        return self.submit(address, outcome=outcome).headers.get("location")


def walk(make: Callable[[Callable[[], float]], Simulator], use: Callable[[Walker], T]) -> T:
    """Use a simulator that is being served."""

    async def run() -> T:
        async with serve(make(FixedClock().now)) as served:
            return await asyncio.to_thread(use, Walker(served.url, served.requests))

    return asyncio.run(run())
