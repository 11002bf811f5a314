"""The pictures of the console in docs/images show the words of today, and the docs show each."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.console.pictured import FOLDER, WORDS, words_now
from tests.storefront.shopper import ROOT

pytestmark = pytest.mark.one_engine


def test_pictures_of_the_console_show_the_words_of_today(tmp_path: Path) -> None:
    """Words that a page has got, or lost, since its picture was taken are named."""
    then, now = json.loads(WORDS.read_text(encoding="utf-8")), words_now(tmp_path)
    changed = {
        name: {
            "only in the picture": [words for words in then.get(name, []) if words not in page],
            "only on the page": [words for words in page if words not in then.get(name, [])],
        }
        for name, page in now.items()
        if page != then.get(name)
    }
    do = "Run `make screenshots ONLY=console`, look at the pictures, commit them"
    assert not changed, f"{do}: {changed}"


def test_each_picture_of_the_console_is_small_described_and_in_the_docs() -> None:
    """At most 64 KB, with a text alternative."""
    taken = {path.stem: path.stat().st_size for path in FOLDER.glob("*.png")}
    assert {f"console-{name}" for name in json.loads(WORDS.read_text(encoding="utf-8"))} == set(
        taken
    )
    assert max(taken.values()) <= 64 * 1024
    page = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[([^\]]{40,})\]\(images/console/([\w-]+)\.png\)", page)
    assert sorted(name for _, name in shown) == sorted(taken)
