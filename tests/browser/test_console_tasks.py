"""The tasks of docs/console.md, by mouse, by keyboard and on a phone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.officer import FURTHER, MANNERS, TASKS, Desk, Officer, a_desk, an_officer, fill
from tests.browser.windows import Windows, assert_accessible

pytestmark = [pytest.mark.browser, pytest.mark.npm, pytest.mark.usefixtures("patient")]


@pytest.fixture(scope="module")
def desk(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Give a server, and a person who has signed in once for all tests."""
    with a_desk(tmp_path_factory.mktemp("desk") / "data", chromium) as made:
        yield made


@pytest.mark.parametrize("manner", list(MANNERS))
def test_the_tasks_are_done(desk: Desk, windows: Windows, manner: str) -> None:
    """Each page at the end of a task is accessible, and at most 320 pixels wide on a phone."""
    how = MANNERS[manner]
    page = windows.open(storage_state=desk.cookies, **how.window)
    colleague = windows.open(storage_state=desk.others, **how.window)

    def look(officer: Officer) -> None:
        if how.window:
            assert_accessible(officer.page)
        is_narrow = "document.documentElement.scrollWidth <= innerWidth"
        assert officer.page.evaluate(is_narrow), officer.page.url

    with an_officer(desk, page, colleague, how) as officer:
        for task, _ in TASKS.values():
            task(officer)
            look(officer)
        fill(officer, orders=3)
        for further in FURTHER.values():
            officer.begin()
            further(officer)
            look(officer)
