"""verify.html asks the log only when its button is pressed, and shows the log's answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from countersign_evidence.key_history import KeyHistory, KeyRange, sign_history
from tests.monitor.liar import OTHER_SEED, Log, Served, log_with_record, proof_of, served
from tests.support.browsers import running_browser

pytestmark = [pytest.mark.long, pytest.mark.browser]


@pytest.fixture(scope="module")
def window(page_file: Path) -> Iterator[Page]:
    """Open the page from a file."""
    with running_browser() as chromium:
        page = chromium.new_page()
        page.goto(page_file.as_uri())
        yield page


@pytest.fixture
def log() -> Log:
    """Give a log with a record."""
    return log_with_record()[0]


def checked(page: Page, log: Log) -> list[str]:
    """Check the proof of the record with the key of the log; returns the page's later requests."""
    record = log_with_record()[1]
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    proof = proof_of(log, record, 5)
    page.get_by_text("Check against keys that you trust").click()
    page.locator("#keys").fill(log.signer.verifier.vkey)
    page.locator("#keys").blur()
    page.locator("#file[data-ready=yes]").set_input_files(
        {"name": "old.tlog-proof", "mimeType": "text/plain", "buffer": proof}
    )
    expect(page.locator("#line")).to_have_text(re.compile("^OK"))
    return asked


def ask(page: Page, site: Served) -> str:
    """Press the button."""
    page.locator("#log").fill(site.at())
    page.locator("#ask").click()
    expect(page.locator("#today")).to_have_text(re.compile("^(STILL|ALARM|The log)"))
    return page.locator("#today").inner_text()


def test_nothing_is_requested_before_the_button_is_pressed(
    window: Page, log: Log, page_file: Path
) -> None:
    """Then that address is requested, and no other."""
    with served(log) as site:
        asked = checked(window, log)
        assert window.locator("#log").input_value() == f"https://{log.origin}"
        assert {url.partition("#")[0] for url in asked} <= {page_file.as_uri()}
        assert log.asked == []
        ask(window, site)
        assert log.asked == ["checkpoint"]
        assert all(url.startswith((site.at(), page_file.as_uri())) for url in asked)


@pytest.mark.parametrize("more", [0, 1, 250, 3000, 70_000])
def test_a_log_that_only_grew_still_has_it(window: Page, log: Log, more: int) -> None:
    """By a few tiles."""
    with served(log) as site:
        checked(window, log)
        log.grow(more)
        assert ask(window, site).startswith(
            f"STILL IN THE LOG: the checkpoint of 10 in this file is the beginning of today's, of "
            f"{10 + more}, so entry 5 is unchanged"
        )
        assert len(log.asked) < 20


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        ("same size", "has signed two trees of 10 entries"),
        ("rewritten", "does not begin with the log of 10"),
        ("cut", "has only 4 entries now"),
        ("half", "bytes, not"),
        ("other", "do not lead to its signed checkpoint"),
        ("key", "no log of the policy signed"),
    ],
)
def test_a_lie_is_an_alarm(window: Page, log: Log, lie: str, says: str) -> None:
    """In red, with the command that makes a file for others."""
    with served(log) as site:
        checked(window, log)
        if lie in {"same size", "rewritten"}:
            log.rewrite(3)
        if lie != "same size":
            log.grow(700)
        if lie == "cut":
            log.size = 4
        if lie == "half":
            log.lies["tile/0/000"] = b"x" * 100
        if lie == "other":
            log.lies["tile/0/000"] = bytes(8192)
        if lie == "key":
            log.seed = bytes(32)
        said = ask(window, site)
    assert said.startswith("ALARM: ")
    assert says in said
    assert "bad" in (window.locator("#today").get_attribute("class") or "")


def test_a_lagging_server_is_asked_again(window: Page, log: Log) -> None:
    """Applies to several servers of one log; a log that stays behind is an alarm."""
    behind = [log.signed(8)]
    with served(log) as site:
        checked(window, log)
        log.lies["checkpoint"] = lambda handler: handler.answer(
            200, behind.pop() if behind else log.signed()
        )
        assert ask(window, site).startswith("STILL IN THE LOG")
        assert log.asked == ["checkpoint", "checkpoint"]


def test_an_unreachable_log_is_no_alarm(window: Page, log: Log) -> None:
    """Nor is an address that redirects, or one of another log."""
    with served(log) as site:
        checked(window, log)
        log.lies["checkpoint"] = lambda handler: handler.answer(302, Location="/elsewhere")
        assert ask(window, site).startswith("The log could not be checked")
        log.lies["checkpoint"] = Log(epoch=2).signed()
        assert "this is the log" in ask(window, site)
    assert ask(window, site).startswith("The log could not be checked")


def rotate(log: Log, *, seed: bytes = OTHER_SEED, by_old: bool = True) -> None:
    """From now on only another key signs, which the key history names."""
    old, size = log.signer, len(log.entries)
    log.seed = seed
    log.grow(5)
    ranges = (KeyRange(0, size, old.verifier), KeyRange(size + 1, None, log.signer.verifier))
    signers = [old, log.signer] if by_old else [log.signer]
    log.keys = sign_history(KeyHistory(log.origin, ranges), signers)


def test_a_later_key_counts_if_the_known_one_names_it(window: Page, log: Log) -> None:
    """For its sizes, in a history that both signed; without one it is an alarm."""
    with served(log) as site:
        checked(window, log)
        log.grow(300)
        rotate(log)
        said = ask(window, site)
        assert said.startswith("STILL IN THE LOG")
        assert "a later key, which the log's key history names" in said
        log.note = log.signed(310)
        assert "ALARM: no log of the policy signed" in ask(window, site)
        log.note, kept = None, log.keys
        for served_ in (None, b"no history", kept and kept.replace(b"\n311 - ", b"\n312 - ")):
            log.keys = served_
            assert "ALARM: no log of the policy signed" in ask(window, site)
        log.keys, log.lies = kept, {"keys": lambda handler: handler.answer(503)}
        assert ask(window, site).startswith("The log could not be checked")


def test_a_history_without_a_signature_by_the_known_key_adds_none(window: Page, log: Log) -> None:
    with served(log) as site:
        checked(window, log)
        rotate(log, by_old=False)
        assert "ALARM: no log of the policy signed" in ask(window, site)


def test_a_partial_tile_may_be_gone_once_the_complete_one_is_there(window: Page, log: Log) -> None:
    """The log grew after its checkpoint was read, and dropped the partial tile."""
    with served(log) as site:
        checked(window, log)
        log.grow(290)
        log.size = 200
        log.lies["tile/0/000.p/200"] = None
        assert ask(window, site).startswith("STILL IN THE LOG")
        assert log.asked[-2:] == ["tile/0/000.p/200", "tile/0/000"]
