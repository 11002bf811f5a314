"""The rights of another installed package in a server process."""

from __future__ import annotations

from importlib.metadata import EntryPoints
from typing import Any

import httpx2
import pytest

from countersign.core.gate.route import Call, Reply, Route
from countersign.operate import bootstrap
from countersign.server import extension
from countersign.server.app import App
from countersign.server.extension import Admit, Extension, installed_extension
from tests.http.backstage import Operator

pytestmark = pytest.mark.one_engine

PATH = "/v1/notices/ab1263"


class Recorder:
    """Notes which requests get here, and passes them on."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    async def __call__(self, route: Route[Any], call: Call, admit: Admit) -> Reply:
        self.seen.append((call.principal.mode, route.operation))
        return await admit(route)


def test_only_authenticated_requests_of_test_mode_reach_an_extension(operator: Operator) -> None:
    """Requests with live keys and without a key get responses as if it were not there."""
    account = operator.account()
    keys = [operator.key(account, mode).token for mode in ("live", "test")]
    recorder = Recorder()

    async def work(opened: bootstrap.Deployment) -> list[int]:
        transport = httpx2.ASGITransport(App(opened, recorder))
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://server", verify=False
        ) as client:
            headers = [{"Authorization": f"Bearer {key}"} for key in (*keys, "csign_test_unknown")]
            responses = [await client.get(PATH, headers=each) for each in headers]
            responses.append(await client.get("/healthz"))
        return [response.status_code for response in responses]

    statuses = operator.act(work)
    assert statuses[1:] == [200, 401, 200]
    assert recorder.seen == [("test", "getNotice")]


def test_a_server_has_an_extension_only_if_a_package_is_installed(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conformance kit is the only extension."""

    async def work(opened: bootstrap.Deployment) -> Extension | None:
        return installed_extension(opened)

    found = operator.act(work)
    assert found is not None
    assert found.name == "conformance"
    monkeypatch.setattr(extension, "entry_points", lambda **_: EntryPoints())
    assert operator.act(work) is None
