"""The texts of the buyer's interface: the same in every locale, and none that is not used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from countersign.base.values import Reason
from countersign.hosted.toolkit import screens as room
from countersign.hosted.toolkit.screens import WORDS

_ROOM = Path(room.__file__).parent
_PAGES = _ROOM.parent / "pages"
_COMPONENT = Path(__file__).parents[2] / "web" / "src"
_PLACES = re.compile(r"\{[^}]*\}")
_KNOWN = {
    "{vendor}",
    "{number}",
    "{total}",
    "{provider}",
    "{time}",
    "{operator}",
    "{language}",
    "{letters}",
}
_WITHOUT_SCRIPT = {"remembered_buyer.html", "remembered_consent.html", "remembered_first.html"}


def test_every_locale_has_the_same_texts_with_the_same_places() -> None:
    first, *others = WORDS.values()
    for words in others:
        assert words.keys() == first.keys()
        for name, text in words.items():
            assert sorted(_PLACES.findall(text)) == sorted(_PLACES.findall(first[name])), name


def test_no_text_is_blank_or_has_other_placeholders() -> None:
    for words in WORDS.values():
        for text in words.values():
            assert text.strip() == text != ""
            assert set(_PLACES.findall(text)) <= _KNOWN


@pytest.mark.skipif(not _COMPONENT.exists(), reason="the component's source is not in this copy")
def test_every_text_is_used_by_the_page_or_the_component() -> None:
    sources = "\n".join(_sources())
    begin = (
        "foreseen_",
        "language_",
        "outcome_",
        "reason_",
        "remembered_kind_",
        "remembered_says_",
    )
    end = ("_title", "_intro", "_missing", "_identity")
    unused = [
        name
        for name in WORDS["en"]
        if re.search(rf"\b{name}\b", sources) is None
        and not (name.startswith(begin) or name.endswith(end))
    ]
    assert unused == []


def test_every_reason_has_words_for_the_buyer() -> None:
    for words in WORDS.values():
        assert {f"reason_{reason}" for reason in Reason} <= words.keys()


def _sources() -> Iterator[str]:
    files = [
        _ROOM.glob("*.py"),
        _ROOM.glob("templates/*"),
        _PAGES.glob("*.py"),
        _COMPONENT.rglob("*.ts"),
    ]
    for file in chain(*files):
        yield file.read_text(encoding="utf-8")


def test_each_form_watched_by_the_script_of_the_page_reports_its_progress() -> None:
    """It is being sent, or there is no connection; and that initials stay, if there are any."""
    for page in sorted((_ROOM / "templates").glob("*.html")):
        text = page.read_text(encoding="utf-8")
        # A form with an id is sent by its own script; other pages do not have this one.
        forms = [] if page.name in _WITHOUT_SCRIPT else re.findall(r"<form (?!.* id=)[^\n]+", text)
        for form in forms:
            assert 'data-sending="{{ words.sending }}"' in form, page.name
            kept = page.name in {"notice.html", "review.html"}
            assert (
                f'data-offline="{{{{ words.{"offline" if kept else "offline_plain"} }}}}"' in form
            )
        assert text.count("data-status>") >= len(forms), page.name
