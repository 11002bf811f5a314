"""The pictures in docs/images show the words of today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.storefront.pictured import IMAGES, WORDS, words_now

pytestmark = pytest.mark.one_engine


@pytest.mark.timeout(300)  # two services and two shops
def test_pictures_show_the_words_of_today(tmp_path: Path) -> None:
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
    assert not changed, f"Run `make screenshots`, look at the pictures, commit them: {changed}"


def test_each_picture_has_its_words() -> None:
    """And each text has a picture: on a phone, and on a desktop."""
    named = set(json.loads(WORDS.read_text(encoding="utf-8"))) - {"certificate"}
    taken = {path.stem for path in (IMAGES / "checkout").glob("*.png")}
    assert taken == {f"{name}-{device}" for name in named for device in ("phone", "desktop")}
    assert [path.stem for path in IMAGES.glob("*.png")] == ["certificate"]
