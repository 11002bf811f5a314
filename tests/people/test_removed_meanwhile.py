"""A person removed during the provider sign-in gets no session."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from countersign.core.access.reach import DEPLOYMENT
from countersign.core.access.role import Role
from countersign.staff.people import roles
from tests.http.backstage import Operator, another_deployment
from tests.people.crew import Console, in_console
from tests.people.test_provider import UNKNOWN, Browser, assert_says, listening, provider
from tests.support import postgres
from tests.support.acts import done
from tests.support.openid_provider import OpenIdProvider

__all__ = ["listening", "provider"]
pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("way", ["provider", "provider?for=again"])
def test_a_person_removed_at_that_moment_is_not_signed_in(
    tmp_path: Path, provider: OpenIdProvider, postgres_server: postgres.PostgresServer, way: str
) -> None:
    """Between the look at the person's roles and the note that the account was used."""
    own = another_deployment(tmp_path / "own", postgres_server)
    # With a single writer, as in SQLite, there is no such moment.
    with Operator(own) as operator:

        async def work(console: Console) -> None:
            browser = Browser(console, provider)
            _, link = await console.link("Eve", Role.SUPPORT)
            assert (await browser.come_in(link)).status == 303
            came, removed = await browser.go(way), threading.Event()

            def meanwhile(*given: object) -> None:
                if "UPDATE person_subjects" in str(given[2]) and not removed.is_set():
                    removed.set()
                    operator.act(
                        lambda opened: done(roles.remove, opened.people, "Eve", DEPLOYMENT)
                    )

            event.listen(Engine, "before_cursor_execute", meanwhile)
            try:
                assert_says(await browser.send(came), UNKNOWN)
            finally:
                event.remove(Engine, "before_cursor_execute", meanwhile)
            assert removed.is_set()
            assert operator.rows("SELECT id FROM person_sessions") == []

        in_console(tmp_path, work, own, **provider.environment)
