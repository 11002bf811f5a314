"""Many views of one session: each costs the same, and none is refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

import pytest

from countersign.core.checkout import store
from countersign.core.checkout.model import Session
from countersign.core.gate.route import Reply
from countersign.operate.bootstrap import Deployment
from countersign.server.app import App
from tests.checkout.buyer import Shop
from tests.http.backstage import Operator
from tests.support.in_process import call_of, encoded, whole

LOOKS = 64


def asking(
    app: App, path: str, headers: Mapping[str, str], body: bytes | None = None
) -> Coroutine[Any, Any, Reply]:
    """Ask the application itself, without a socket."""
    method = "GET" if body is None else "POST"
    return app.handle(call_of(method, path, encoded(headers)), whole(body or b""))


class Writes:
    """Counts the attempts to write a change of a session, and how many of them were lost."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tried = self.lost = 0
        self._lock = threading.Lock()
        original = store._write_changes

        def counted(*args: Any) -> list[Session | None]:  # noqa: ANN401 - as what it wraps
            done = original(*args)
            with self._lock:
                self.tried += len(done)
                self.lost += done.count(None)
            return done

        monkeypatch.setattr(store, "_write_changes", counted)


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Writes:
    """Give the counter of attempts in this process."""
    return Writes(monkeypatch)


def entered(shop: Shop, **wanted: object) -> tuple[str, dict[str, str], dict[str, str]]:
    """The page of a new session, the headers of its browser, and those of its component."""
    buyer = shop.buyer(**wanted)
    token = str(buyer.session["client_token"])
    reply = buyer.client.get(f"/c/{token}", headers={"authorization": ""}, follow_redirects=False)
    cookie = reply.headers["set-cookie"].partition(";")[0]
    return f"/c/{buyer.id}", {"cookie": cookie}, {"authorization": f"Bearer {token}"}


def statuses(replies: Sequence[Reply]) -> set[int]:
    return {reply.status for reply in replies}


@pytest.mark.both_engines
@pytest.mark.parametrize("surface", ["page", "component", "pages in two languages"])
def test_concurrent_looks_are_all_answered_and_noted_once(
    own_shop: Shop, own: Operator, writes: Writes, surface: str
) -> None:
    """Sixty-four looks at one link cost no more writes than looks: not the square of them."""
    path, page, component = entered(own_shop)

    async def look(opened: Deployment) -> list[Reply]:
        app = App(opened)
        if surface == "component":
            current = "/v1/checkout_sessions/current"
            looks = [asking(app, current, component) for _ in range(LOOKS)]
        else:
            langs = ["en", "es"] if "two" in surface else ["en"]
            looks = [
                asking(app, f"{path}?lang={langs[n % len(langs)]}", page) for n in range(LOOKS)
            ]
        return await asyncio.gather(*looks)

    assert statuses(own.act(look)) == {200}
    assert 1 <= writes.tried <= LOOKS // 4
    assert writes.lost <= 2


def test_claims_at_once_take_turns(own_shop: Shop, own: Operator, writes: Writes) -> None:
    """Reports of a page cost one write each, however many arrive at the same time."""
    _, _, component = entered(own_shop)
    claims = 16

    async def claim(opened: Deployment) -> list[Reply]:
        app = App(opened)
        await asking(app, "/v1/checkout_sessions/current", component)
        body = b'{"events": [{"line": 1, "event": "shown"}]}'
        headers = component | {"content-type": "application/json"}
        address = "/v1/checkout_sessions/current/events"
        sent = [asking(app, address, headers, body) for _ in range(claims)]
        return await asyncio.gather(*sent)

    assert statuses(own.act(claim)) == {200}
    assert writes.tried - writes.lost == claims + 1
    assert writes.lost <= 2


def test_a_flood_of_changes_of_one_session_is_refused_and_bounded(
    own_shop: Shop, own: Operator, writes: Writes
) -> None:
    """Refused callers can retry, and everything else continues."""
    _, _, component = entered(own_shop)
    claims = 100

    async def claim(opened: Deployment) -> list[Reply]:
        app = App(opened)
        await asking(app, "/v1/checkout_sessions/current", component)
        body = b'{"events": [{"line": 1, "event": "shown"}]}'
        headers = component | {"content-type": "application/json"}
        address = "/v1/checkout_sessions/current/events"
        sent = [asking(app, address, headers, body) for _ in range(claims)]
        return await asyncio.gather(*sent)

    replies = own.act(claim)
    assert statuses(replies) == {200, 503}
    refused = [reply for reply in replies if reply.status == 503]
    assert all(b"retry-after" in dict(reply.headers) for reply in refused)
    assert writes.tried <= claims


def test_a_look_is_noted_although_something_else_changed_the_session(
    own_shop: Shop, own: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only another view of the same text replaces it: a report of the page does not."""
    path, page, _ = entered(own_shop)
    original, lost = store._write_changes, [True]

    def lose_first(*args: Any) -> list[Session | None]:  # noqa: ANN401 - as what it wraps
        """Something comes between, as at another server."""
        if lost.pop() if lost else False:
            args[0].exec_driver_sql("UPDATE checkout_sessions SET revision = revision + 1")
        return original(*args)

    async def look(opened: Deployment) -> Session | None:
        monkeypatch.setattr(store, "_write_changes", lose_first)
        assert (await asking(App(opened), path, page)).status == 200
        return await store.find_by_id(opened.checkout, path.removeprefix("/c/"))

    found = own.act(look)
    assert not lost
    assert found is not None
    assert found.asked.reading is not None
