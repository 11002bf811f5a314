"""Checkouts that buyers end at the same moment share a transaction, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import uvloop
from sqlalchemy import Connection

from bench.calls import Page, Server
from countersign.base.config import load_settings
from countersign.core.checkout import store
from countersign.core.checkout.model import Session
from countersign.operate.bootstrap import open_deployment
from countersign.server.app import App
from tests.http.backstage import another_deployment
from tests.support.engines import ENGINES, engine_server

pytestmark = pytest.mark.both_engines

BUYERS = 3
SESSION = {
    "return_url": "https://shop.example/back",
    "collect": ["identity", "acknowledgment"],
    "notice_id": "ab1263",
    "shipping_zip": "94103",
    "product_class": "accessory",
}


@pytest.fixture(params=ENGINES)
def server(request: pytest.FixtureRequest) -> Any:  # noqa: ANN401 - as the helper has it
    """Give the server of each engine."""
    return engine_server(request)


def test_each_of_many_ends_is_whole(
    tmp_path: Path,
    server: Any,  # noqa: ANN401 - see there
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each session has its own acknowledgment and clearance, and its events in their order."""
    deployment = another_deployment(tmp_path / "data", server)
    key = deployment.widest_key(deployment.account("vendor"))
    together, original = list[int](), store._write_changes

    def counted(connection: Connection, changes: Sequence[Any]) -> list[Session | None]:
        together.append(len(changes))
        return original(connection, changes)

    async def work() -> None:
        async with open_deployment(load_settings(deployment.environment)) as opened:
            app = App(opened)
            vendor, pages, ids = Server(app, key), list[Page](), list[str]()
            for number in range(BUYERS):
                body = {**SESSION, "session_id": f"cart_{number}"}
                made = await vendor.ask("POST", "/v1/checkout_sessions", body)
                ids.append(made["checkout_session_id"])
                pages.append(Page(app, made))
                await pages[-1].reviewed()
            monkeypatch.setattr(store, "_write_changes", counted)
            await asyncio.gather(*(p.send("accept", agreement="yes", consent="yes") for p in pages))
            ends = [await vendor.ask("GET", f"/v1/checkout_sessions/{id_}") for id_ in ids]
            assert {end["status"] for end in ends} == {"completed"}
            await opened.log.seal.settle()
            events = (await vendor.ask("GET", "/v1/events"))["data"]
            about = [str(event["data"]) for event in events]
            kinds = "ack_id", "clearance_id", "checkout_session_id"
            for end in ends:
                own = [next(n for n, of in enumerate(about) if end[kind] in of) for kind in kinds]
                assert own == sorted(own)
            for kind in kinds:
                assert len({end[kind] for end in ends}) == BUYERS

    uvloop.run(work())
    assert max(together) > 1
