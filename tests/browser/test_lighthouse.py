"""Pages of the console and of buyers, as Lighthouse judges accessibility and best practices."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser

from tests.browser.officer import Desk, a_desk
from tests.browser.test_console import an_order
from tests.conftest import find_chromium
from tests.support import node

pytestmark = [pytest.mark.browser, pytest.mark.npm, pytest.mark.long]
_CATEGORIES: Final = "accessibility,best-practices"
_CHROMIUM: Final = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking "
    "--host-resolver-rules='MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost'"
)


def judged(url: str, cookies: str = "") -> dict[str, Any]:
    """By category: its score of at most 1, and the audits that cost some of it."""
    tool = node.AXE / "node_modules" / ".bin" / "lighthouse"
    command = [str(tool), url, f"--only-categories={_CATEGORIES}", "--output=json", "--quiet"]
    command += [f"--chrome-flags={_CHROMIUM}", "--no-enable-error-reporting"]
    command += [f"--extra-headers={json.dumps({'Cookie': cookies})}"] if cookies else []
    environment = os.environ | {"CHROME_PATH": str(find_chromium())}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert not cookies or found["finalDisplayedUrl"] == url, "the page led elsewhere"
    failed = {name for name, audit in found["audits"].items() if audit["score"] == 0}
    return {
        name: (one["score"], [ref["id"] for ref in one["auditRefs"] if ref["id"] in failed])
        for name, one in found["categories"].items()
    }


@pytest.fixture(scope="module")
def desk(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Give a server, and a person who has signed in."""
    with a_desk(tmp_path_factory.mktemp("desk") / "data", chromium) as made:
        yield made


def test_pages_have_full_marks(desk: Desk) -> None:
    """The list of orders, an order, an act, the sign-in, and a buyer's notice."""
    cookies = "; ".join(f"{one['name']}={one['value']}" for one in desk.cookies["cookies"])
    with desk.operator.vendor(desk.server) as shop:
        order = an_order(shop.test)
        orders = f"{desk.console}/{shop.account_id}/test/orders"
        session = {
            "session_id": "cs_2",
            "notice_id": "ab1263",
            "collect": ["acknowledgment"],
            "return_url": "https://shop.example/",
        }
        link = shop.test.post("/v1/checkout_sessions", json=session).raise_for_status().json()
        its = f"{orders}/{order['ack_id']}"
        marks = {one: judged(one, cookies) for one in (orders, its, f"{its}/hold")}
        marks |= {one: judged(one) for one in (f"{desk.console}/sign-in", link["url"])}
    full: dict[str, Any] = {"accessibility": (1, []), "best-practices": (1, [])}
    assert marks == dict.fromkeys(marks, full)
