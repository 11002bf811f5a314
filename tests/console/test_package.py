"""The package of the console: small, in two languages, and a client of the API."""

from __future__ import annotations

import ast
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Final

import pytest

import countersign_console
from countersign.server.guides import read_guides
from countersign_console import view
from countersign_console.lists import ListPage
from countersign_console.menu import Signed
from countersign_console.orders import Orders
from countersign_console.pages import PAGES
from countersign_console.view import WORDS
from tests.unit.house import modules_of

SOURCE: Final = Path(countersign_console.__file__).parent
CODE_MAX: Final = 5000
HOST: Final = "countersign.server.console_host"


def test_the_console_imports_one_module_of_the_service() -> None:
    """A page gets everything else from the API."""
    imported = {
        name
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom | ast.Import)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [one.name for one in node.names]
        )
    }
    own = {name for name in imported if name.split(".")[0] == "countersign"}
    assert own == {HOST}


def test_the_console_is_small() -> None:
    """The bound is fixed; most pages are declared, not written."""
    assert sum(module.code for module in modules_of(SOURCE)) < CODE_MAX


def test_every_text_is_in_each_language() -> None:
    assert {frozenset(words) for words in WORDS.values()} == {frozenset(WORDS["en"])}


def test_a_page_without_its_words_fails_at_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the missing text: in production a menu would be a 500."""
    english = {name: text for name, text in WORDS["en"].items() if name != "act_place_hold"}
    monkeypatch.setattr(view, "WORDS", {**WORDS, "en": english})
    spec = find_spec("countersign_console.pages")
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(LookupError, match=r"lacks en\.act_place_hold\."):
        spec.loader.exec_module(module_from_spec(spec))


def test_a_role_of_staff_counts_in_each_account_too() -> None:
    """Also for a person who has another one there."""
    person = Signed(
        name="Ana",
        roles={"": "owner", "acct_1": "support"},
        scopes={"": frozenset({"keys:manage"}), "acct_1": frozenset({"search:read"})},
        acts={"": frozenset({"keys:manage"})},
        accounts={"acct_1": "Ridgeline Workshop"},
        is_fresh=True,
    )
    assert person.may_do("acct_1", "keys:manage")
    assert not person.may_do("acct_1", "search:read")
    assert all(person.may("acct_1", scope) for scope in ("keys:manage", "search:read"))
    assert person.may("acct_2", "keys:manage")
    assert not person.may("acct_2", "search:read")
    assert not person.may("", "search:read")


def test_pages_lead_to_guides_that_exist() -> None:
    known = {guide.path for guide in read_guides()}
    linked = {f"/docs/{page.guide}" for page in PAGES.values() if isinstance(page, ListPage)}
    assert linked - {"/docs/"} <= known


def test_no_list_is_filtered_by_a_buyer() -> None:
    """A filter stands in the address, and addresses are kept by browsers and proxies."""
    filters = {
        field.name
        for page in PAGES.values()
        if isinstance(page, ListPage | Orders)
        for field in page.filters
    }
    of_orders = {"state", "waiting", "held", "day", "notice_id"}
    assert filters == {"matter_id", "until", "failed"} | of_orders
