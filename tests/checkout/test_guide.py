"""docs/checkout.md describes the code, and its examples work."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from countersign.base.config import load_settings
from countersign.core.buyers.model import BuyerStatus
from countersign.core.checkout.brand import LOGO_BYTES_MAX
from countersign.core.checkout.model import ATTEMPTS_MAX, KEPT, LIFETIME, LIFETIME_MAX, Status
from countersign.core.checkout.schemas import CheckoutSessionRequest
from tests.checkout.buyer import Shop
from tests.docs.markdown import ROOT, read
from tests.docs.shell import answers, run_blocks
from tests.support.service import PREFIX, Server

pytestmark = pytest.mark.one_engine

GUIDE = read(ROOT / "docs" / "checkout.md")


def test_the_guide_lists_every_field_of_the_call() -> None:
    named = ",".join(row[0] for row in GUIDE.rows("## One call"))
    fields = {name.strip(" `") for name in named.split(",")}
    assert fields == {*CheckoutSessionRequest.__struct_fields__}


def test_the_guide_lists_every_status_and_its_remedy() -> None:
    rows = GUIDE.rows("## Read the session")
    assert [row[0].strip("`") for row in rows] == [*Status]
    assert all(row[1] and row[2] for row in rows)


def test_the_guide_lists_every_status_of_an_identity_check() -> None:
    rows = GUIDE.rows("### The identity without a notice")
    listed = {name.strip(" `") for row in rows for name in row[0].split(",")}
    assert listed == {"null", *BuyerStatus}
    assert all(row[1] and row[2] for row in rows)


def test_the_guide_states_the_limits() -> None:
    minutes, hours = LIFETIME.seconds // 60, LIFETIME_MAX.total_seconds() / 3600
    assert f"{minutes} minutes, at most {hours:.0f} hours" in GUIDE.prose
    assert f"at most {ATTEMPTS_MAX} times in one session" in GUIDE.prose
    assert f"a copy for {KEPT.days} days" in GUIDE.prose
    assert f"at most {LOGO_BYTES_MAX // 1024} KiB" in GUIDE.prose


def test_the_calls_of_the_guide_work(shop: Shop, server: Server, tmp_path: Path) -> None:
    """The first response has the shown members and more; the second call reads it back."""
    key = shop.client.headers["authorization"].removeprefix("Bearer ")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    environment |= {"BASE": server.url, "KEY": key, "CHECKOUT_SESSION_ID": "chk_none"}
    blocks = [block for block in GUIDE.blocks if block.language == "bash"]
    printed = run_blocks(blocks, directory=tmp_path, environment=environment, placeholders={})
    made, unknown, verification = (answers(text)[0] for text in printed.values())
    assert made["status"] == "open"
    assert made["url"].startswith(f"{load_settings(server.deployment.environment).public_url}/c/")
    assert unknown["error"]["code"] == "not_found"
    [shown] = [
        json.loads(block.text)
        for block in GUIDE.blocks
        if block.language == "json" and "identity_status" in block.text
    ]
    personal = {"checkout_session_id", "url"}
    assert {name: verification[name] for name in shown.keys() - personal} == {
        name: shown[name] for name in shown.keys() - personal
    }
