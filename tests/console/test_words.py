"""The words of the console: each page says what it shows in words, in both languages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest

from countersign.base.values import Reason
from countersign.core.access.key import Scope
from countersign.core.checkout.model import Status
from countersign.core.clearances.schemas import ClearanceReason
from countersign.core.webhooks.model import DeliveryStatus, Outcome
from countersign.server.console_host import EVENT_TYPES, ORDER_STATES
from countersign_console import problems, view
from tests.console.test_acts import every_page
from tests.people.crew import Console, in_console

pytestmark = pytest.mark.one_engine
ENUMERATIONS: Final[list[tuple[str, Iterable[str]]]] = [
    ("value", [*Status, *Outcome, *DeliveryStatus, *ORDER_STATES]),
    ("refused", [*Reason, *ClearanceReason]),
    ("code", [*EVENT_TYPES, *Scope]),
]
VOID: Final = frozenset({"br", "hr", "img", "input", "link", "meta", "rect", "line"})
CODE: Final = frozenset({"code", "pre", "script", "style", "textarea"})
RAW: Final = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b|\d{4}-\d\d-\d\dT\d\d:\d\d")
NAMES: Final = frozenset({"vendor", "root"})
"""What people called something is shown as they wrote it."""
ID: Final = re.compile(r"\b[a-z]+_(?:test_)?[0-9a-z]{26}\b|\bwhpk_[0-9A-Za-z+/]{43}=")
"""An identifier, or the public key of webhooks in base64."""


class Seen(HTMLParser):
    """The text that a reader sees, without identifiers, code and what was typed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self._open: list[bool] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        have = dict(attrs)
        # Texts of notices, and of the service for its log, have a language of their own.
        is_text = "lang" in have and tag not in {"html", "a"}
        is_code = is_text or tag in CODE or "id" in (have.get("class") or "").split()
        if tag not in VOID:
            self._open.append(is_code or (bool(self._open) and self._open[-1]))
        self.words += [have[name] or "" for name in ("aria-label", "title") if name in have]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if not (self._open and self._open[-1]):
            self.words.append(data)


def test_no_page_shows_a_name_of_the_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In either language: no field, no value of an enumeration, and no time as the API has it."""
    wordless = set[str]()

    def as_it_is(name: str) -> str:
        wordless.add(name)
        return name

    monkeypatch.setattr(view, "wordless", as_it_is)
    monkeypatch.setattr(problems, "wordless", as_it_is)

    async def work(console: Console) -> dict[str, set[str]]:
        pages = await every_page(console, tuple(view.WORDS))
        found = {
            path: {*RAW.findall(ID.sub("", " ".join(Seen(text).words)))} for path, text in pages
        }
        return {path: raw for path, raw in found.items() if raw}

    found = in_console(tmp_path, work)
    assert found == {}
    assert {one for one in wordless if re.fullmatch("[a-z_]+", one)} <= NAMES


@pytest.mark.parametrize(("kind", "names"), ENUMERATIONS)
def test_each_value_has_words(kind: str, names: Iterable[str]) -> None:
    """Also those that no page of a test shows."""
    for words in view.WORDS.values():
        assert [one for one in names if f"{kind}_{one}" not in words] == []
