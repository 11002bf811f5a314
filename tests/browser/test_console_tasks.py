"""The ten tasks of docs/console.md, by mouse, by keyboard and on a phone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.officer import MANNERS, TASKS, Desk, a_desk, an_officer
from tests.browser.windows import Windows, assert_accessible

pytestmark = [pytest.mark.browser, pytest.mark.npm, pytest.mark.usefixtures("patient")]


@pytest.fixture(scope="module")
def desk(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Give a server, and a person who has signed in once for all tests."""
    with a_desk(tmp_path_factory.mktemp("desk") / "data", chromium) as made:
        yield made


@pytest.mark.parametrize("manner", list(MANNERS))
def test_the_ten_tasks_are_done(desk: Desk, windows: Windows, manner: str) -> None:
    """Each page at the end of a task is accessible, and at most 320 pixels wide on a phone."""
    how = MANNERS[manner]
    page = windows.open(storage_state=desk.cookies, **how.window)
    colleague = windows.open(storage_state=desk.others, **how.window)
    with an_officer(desk, page, colleague, how) as officer:
        for task, _ in TASKS.values():
            task(officer)
            if how.window:
                assert_accessible(page)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url
