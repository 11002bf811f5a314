"""docs/start: each page leads to a cleared order, by its own words alone."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkout import surfer
from tests.cli.serving import running, wait_for
from tests.docs.markdown import ROOT, Block, Page, read
from tests.docs.shell import run_blocks
from tests.http.backstage import Operator
from tests.storefront.shopper import Shopper
from tests.support.service import PREFIX, Server, free_port

pytestmark = [
    pytest.mark.one_engine,
    pytest.mark.parametrize("deployment", ["sqlite"], indirect=True),
]
NO_DEVELOPER = read(ROOT / "docs" / "start" / "no-developer.md")
PLAIN_HTML = read(ROOT / "docs" / "start" / "plain-html.md")
WEBSITE = "http://127.0.0.1:8000"
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
_LINK = re.compile(r"https?://\S+/c/\S+")
_ID = re.compile(r"(?:ack|clr|chk|cbid_test)_[0-9a-z]{26}")
_NAMED = re.compile(r"^(?:// |<!-- )(public/\S+)", re.MULTILINE)


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}


def bash(page: Page) -> list[Block]:
    return [block for block in page.blocks if block.language == "bash"]


def shape(text: str) -> str:
    """The output of a command, without the parts that differ in each run."""
    for form in (_LINK, _TIME, _ID):
        text = form.sub("…", text)
    return text.strip()


def run(
    blocks: list[Block], shell: list[Block], directory: Path, placeholders: dict[str, str]
) -> list[str]:
    """Run blocks after those that set the shell up; returns their output."""
    printed = run_blocks(
        [*shell, *blocks],
        directory=directory,
        environment=environment(),
        placeholders=placeholders,
    )
    return [printed[block] for block in blocks]


def test_an_order_without_a_developer_is_cleared(
    server: Server, operator: Operator, account: str, tmp_path: Path
) -> None:
    """The output of every command is as on the page."""
    shown = [block.text for block in NO_DEVELOPER.blocks if block.language == "text"][1:]
    key, create, show, save = bash(NO_DEVELOPER)
    real = {
        "http://127.0.0.1:8080": server.url,
        "csign_sk_test_...": operator.key(account).token,
    }
    (made,) = run([create], [key], tmp_path, real)
    assert shape(made) == shape(shown[0])
    number, link = made.split(",")[0], made.split()[-1]
    shopper = Shopper("https://www.example.com")
    with shopper.client:
        done = shopper.initial(shopper.identify(shopper.open(link)))
    assert done.heading == "Almost done"
    (line,) = run([show], [key], tmp_path, real | {"chk_01km9x4v8gen3rr1p6q1s2t3v6": number})
    assert shape(line) == shape(shown[1])
    words = line.split()
    ids = {"ack_01km9x4v8gen3rr1p6q1s2t3v4": words[2], "clr_01km9x4zq2e6t9m0r5c7v3w8xa": words[4]}
    (files,) = run([save], [key], tmp_path, real | ids)
    assert shape(files) == shape(shown[2])
    assert all((tmp_path / name).stat().st_size > 10_000 for name in files.split())


@pytest.fixture
def website(
    server: Server, operator: Operator, account: str, tmp_path: Path
) -> Iterator[tuple[str, Path]]:
    """The website of the page, served by PHP; gives its address and its folder."""
    (tmp_path / "dist").mkdir()
    shutil.copy(ROOT / "clients" / "php" / "countersign.php", tmp_path / "dist")
    run(bash(PLAIN_HTML)[:1], [], tmp_path, {})
    url = f"http://127.0.0.1:{free_port()}"
    for block in PLAIN_HTML.blocks:
        if block.language in {"html", "php"}:
            named = _NAMED.search(block.text)
            assert named, block
            (tmp_path / named[1]).write_text(block.text.replace(WEBSITE, url), encoding="utf-8")
    own = {
        "COUNTERSIGN_BASE_URL": server.url,
        "COUNTERSIGN_API_KEY": operator.key(account).token,
    }
    log = tmp_path / "log"
    command = ["php", "-S", url.removeprefix("http://"), "-t", "public"]
    with running(command, environment() | own, log, tmp_path) as process:
        wait_for(process, log, "started")
        yield url, tmp_path


@pytest.mark.php
def test_a_website_of_plain_html_takes_a_cleared_order(website: tuple[str, Path]) -> None:
    """No other order is taken: a refused one is stored, but not shipped."""
    url, folder = website
    shopper = Shopper(url)
    with shopper.client:

        def order() -> surfer.Page:
            page = shopper.open("/")
            return shopper.send(page, page.form, email="jo@example.com", zip="94105")

        done = shopper.initial(shopper.identify(order()))
        assert shopper.come_back(done).heading == "Thank you"
        decline = shopper.follow(order(), "Decline")
        (waiting,) = [
            file.stem for file in folder.glob("orders/*") if "ack_" not in file.read_text()
        ]
        unfinished = shopper.open(f"/order.php?order={waiting}")
        assert unfinished.heading == "Your order waits for you"
        declined = shopper.come_back(shopper.send(decline, decline.form))
        assert declined.heading == "We cannot send your order"
        assert shopper.open("/order.php?order=cs_unknown").status == 404
    listed, _ = run(bash(PLAIN_HTML)[1:], [], folder, {})
    (shipped,) = listed.split()
    kept = json.loads((folder / shipped).read_text())
    assert kept["zip"] == "94105"
    assert kept["evidence"].startswith("ack_")
    assert (folder / "receipts" / f"{kept['evidence']}.txt").read_text("utf-8") == kept["receipt"]
    assert len([*folder.glob("receipts/*")]) == 1
    assert "/receipt/v1" in kept["receipt"].partition("\n")[0]
