"""What strangers and keys of vendors can call builds no statement with SQLAlchemy, once warm."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from sqlalchemy.sql import coercions

from bench.calls import Page, Server, answered
from countersign.base.config import load_settings
from countersign.operate.bootstrap import open_deployment
from countersign.server.app import App
from tests.http.backstage import another_deployment

pytestmark = pytest.mark.one_engine

WARM = 2
SESSION = {
    "return_url": "https://shop.example/back",
    "collect": ["identity", "acknowledgment"],
    "notice_id": "ab1263",
    "shipping_zip": "94103",
}


def test_no_read_that_others_can_call_builds_a_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To build one takes longer than the database needs to answer it.

    Counted are arguments of SQLAlchemy's constructs, which every `select(…)` and `.where(…)`
    passes to `coercions.expect`: on each thread, and also where snapshots are read again.
    """
    built: list[str] = []
    expect = coercions.expect

    def counting(role: Any, element: Any, **options: Any) -> Any:  # noqa: ANN401 - as it is
        built.append(str(role))
        return expect(role, element, **options)

    deployment = another_deployment(tmp_path / "data")
    key = deployment.widest_key(deployment.account("vendor"))

    async def measure() -> dict[str, int]:
        async with open_deployment(load_settings(deployment.environment)) as opened:
            app = App(opened)
            vendor, found = Server(app, key), dict[str, int]()
            asks = await _asks(app, vendor, (b"authorization", f"Bearer {key}".encode()))
            await opened.log.seal.settle()
            monkeypatch.setattr(coercions, "expect", counting)
            for name, ask in asks.items():
                for _ in range(WARM):
                    await ask()
                built.clear()
                await ask()
                found[name] = len(built)
            built.clear()
            await opened.access.test_clocks._state.fresh()
            await opened.notices.registry.notices(fresh=True)
            return found | {"snapshots": len(built)}

    assert {name: count for name, count in uvloop.run(measure()).items() if count} == {}


async def _asks(
    app: App, vendor: Server, authorized: tuple[bytes, bytes]
) -> dict[str, Callable[[], Awaitable[object]]]:
    buyer = {"provider_identity_session_id": "one", "shipping_zip": "94103", "test_mode": True}
    cbid = (await vendor.ask("POST", "/v1/buyers/verify", buyer))["cbid"]
    notice = await vendor.ask("GET", "/v1/notices/ab1263")
    body = {
        "initials_per_line": ["JD"] * len(notice["bullets"]),
        "session_id": "order",
        "cbid": cbid,
    }
    acknowledge = "/v1/notices/ab1263/acknowledge"
    ack_id = (await vendor.ask("POST", acknowledge, body))["ack_id"]
    session = await vendor.ask("POST", "/v1/checkout_sessions", {**SESSION, "session_id": "cart"})
    page = Page(app, session)
    own = f"/v1/acknowledgments/{ack_id}"

    async def proof() -> None:
        start, _ = await answered(app, "GET", f"{own}/proof", [authorized], b"")
        assert start["status"] == 200

    return {
        "the notice": lambda: vendor.ask("GET", "/v1/notices/ab1263"),
        "the status of a buyer": lambda: vendor.ask("GET", f"/v1/buyers/{cbid}/status"),
        "an acknowledgment": lambda: vendor.ask("POST", acknowledge, body),
        "an acknowledgment by its id": lambda: vendor.ask("GET", own),
        "a proof": proof,
        "the link": lambda: page._ask("GET", page._link),
        "the page": page.open,
    }
