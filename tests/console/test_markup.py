"""The markup of the pages of buyers and of the console, as html-validate judges it.

`markup.json` leaves out two matters of style, and `role="list"`: without it Safari reads a list
that has no markers as no list.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Final

import pytest

from countersign.core.access.role import Role
from countersign.core.checkout.brand import Brand
from countersign.hosted.pages.preview import preview_pages
from tests.console.visitor import Vendor, Visitor, places
from tests.people.crew import Console, in_console
from tests.support import node

pytestmark = [pytest.mark.npm, pytest.mark.one_engine]
ITEMS_MAX: Final = 3
"""How many links of a list are followed."""


def judged(folder: Path, pages: dict[str, str]) -> list[str]:
    """What is wrong in these pages, by name."""
    names = list(pages)
    for number, name in enumerate(names):
        (folder / f"{number}.html").write_text(pages[name], "utf-8")
    tool = node.AXE / "node_modules" / ".bin" / "html-validate"
    command = [str(tool), "--config", str(node.AXE / "markup.json"), "--formatter", "json", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("["), done.stderr
    return [
        f"{names[int(Path(found['filePath']).stem)]}:{one['line']}: {one['message']}"
        for found in json.loads(done.stdout)
        for one in found["messages"]
    ]


def test_the_markup_of_buyers_pages(tmp_path: Path) -> None:
    assert judged(tmp_path, dict(preview_pages(Brand(name="Ridgeline")))) == []


def test_the_markup_of_the_console(tmp_path: Path) -> None:
    """Each page that the menu or a list leads to, and those without a session."""

    async def work(console: Console) -> dict[str, str]:
        account = await console.account("vendor")
        vendor = await Vendor.of(console, account)
        order = await vendor.order("cs_1", "order 1001")
        await vendor.ask("POST", "/v1/webhook_endpoints", {"url": "https://shop.example/hooks"})
        where = places(account)
        own = Visitor(console, (await console.person("Ada", Role.OWNER)).session)
        pages = {}
        alone = ["sign-in", "link", "passkey", "sessions", "x"]
        orders = where[False, "orders"]
        below = [f"{orders}/new", f"{orders}/{order['ack_id']}"]
        for path in [*where.values(), *below, *(f"/console/{name}" for name in alone)]:
            page = await own.open(path)
            links = [have["href"] for _, have in page.elements if "href" in have]
            items = sorted({one for one in links if one.startswith(f"{path}/")})
            for place in {path, *items[:ITEMS_MAX]}:
                pages[place] = (await own.open(place)).response.text
        return pages

    (folder := tmp_path / "pages").mkdir()
    pages = in_console(tmp_path / "data", work)
    assert judged(folder, pages) == []
