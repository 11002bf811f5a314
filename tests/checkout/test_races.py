"""Ends at the same moment: one end, one event, at most one acknowledgment.

On PostgreSQL the callers ask two servers in turn.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier
from typing import Any

import httpx2
import pytest

from tests.checkout.buyer import Buyer, Shop
from tests.cli.serving import wait_until
from tests.http.backstage import make_client
from tests.http.calls import refusal
from tests.support.service import Server, running_server

pytestmark = pytest.mark.both_engines

ROUNDS = 8
SESSIONS = "/v1/checkout_sessions"
CLOSED = (409, "checkout_session_closed")


@pytest.fixture(scope="module")
def servers(server: Server) -> Iterator[Sequence[Server]]:
    """Give every server that there can be on this database."""
    with ExitStack() as stack:
        found = [server]
        if "DATABASE_URL" in server.deployment.settings:
            found.append(stack.enter_context(running_server(server.deployment)))
        yield found


class Rivals:
    """Clients that act on the same session, each on a connection of its own."""

    def __init__(self, shop: Shop, servers: Sequence[Server], stack: ExitStack) -> None:
        self.shop = shop
        self._places = itertools.cycle(servers)
        self._stack = stack

    def _client(self, key: str) -> httpx2.Client:
        return self._stack.enter_context(make_client(next(self._places), key))

    def accept(self, buyer: Buyer, initials: str) -> Callable[[], httpx2.Response]:
        client = self._client(str(buyer.session["client_token"]))
        own = Buyer(buyer.session, client)
        notice = own.current()["notice"]
        body = {
            "initials_per_line": [initials] * len(notice["bullets"]),
            "notice_version": notice["version"],
            "notice_digest": notice["digest"],
            "agreement": True,
            "consent": True,
        }
        return lambda: own.send("acknowledge", body)

    def decline(self, buyer: Buyer) -> Callable[[], httpx2.Response]:
        client = self._client(str(buyer.session["client_token"]))
        own = Buyer(buyer.session, client)
        own.current()
        return own.decline

    def cancel(self, buyer: Buyer) -> Callable[[], httpx2.Response]:
        key = self.shop.client.headers["Authorization"].removeprefix("Bearer ")
        client = self._client(key)
        client.get(SESSIONS)
        return lambda: client.post(f"{SESSIONS}/{buyer.id}/cancel", json={})


@pytest.fixture
def rivals(shop: Shop, servers: Sequence[Server]) -> Iterator[Rivals]:
    """Fixture: concurrent callers."""
    with ExitStack() as stack:
        yield Rivals(shop, servers, stack)


def at_once(acts: Sequence[Callable[[], httpx2.Response]]) -> list[httpx2.Response]:
    """Their responses when all act at the same moment."""
    start = Barrier(len(acts))

    def one(act: Callable[[], httpx2.Response]) -> httpx2.Response:
        start.wait(10)
        return act()

    with ThreadPoolExecutor(len(acts)) as threads:
        return [call.result() for call in [threads.submit(one, act) for act in acts]]


def _ended(shop: Shop, buyer: Buyer, cart: str) -> dict[str, Any]:
    """The one end of a session, found to be whole."""
    found = shop.read(buyer)
    status = found["status"]
    events = [f"checkout_session.{status}"]
    # PostgreSQL lists an event once no older transaction of anybody is running.
    wait_until(lambda: shop.events(buyer) == events, f"the events {events}")
    acks = shop.client.get("/v1/acknowledgments", params={"session_id": cart}).json()["data"]
    expected = [found["ack_id"]] if status == "completed" else []
    assert [ack["ack_id"] for ack in acks] == expected
    return found


def test_one_of_concurrent_acceptance_refusal_and_cancellation_ends_the_session(
    shop: Shop, rivals: Rivals
) -> None:
    """It is answered 200, and the others learn that the session is closed."""
    for number in range(ROUNDS):
        cart = f"three-{number}"
        buyer = shop.buyer(session_id=cart)
        answers = at_once([rivals.cancel(buyer), rivals.accept(buyer, "AB"), rivals.decline(buyer)])
        found = _ended(shop, buyer, cart)
        done = [answer.json()["status"] for answer in answers if answer.status_code == 200]
        assert done == [found["status"]]
        assert {refusal(a) for a in answers if a.status_code != 200} == {CLOSED}


def test_concurrent_acceptances_with_different_initials_record_one(
    shop: Shop, rivals: Rivals
) -> None:
    """Only the browser whose initials were recorded gets the response "completed"."""
    for number in range(ROUNDS):
        cart = f"two-{number}"
        buyer = shop.buyer(session_id=cart)
        typed = ["AB", "CD"]
        answers = at_once([rivals.accept(buyer, initials) for initials in typed])
        accepted = {*itertools.compress(typed, [a.status_code == 200 for a in answers])}
        assert {refusal(a) for a in answers if a.status_code != 200} == {CLOSED}
        found = _ended(shop, buyer, cart)
        assert (found["status"], len(accepted)) == ("completed", 1)
        ack = shop.client.get(f"/v1/acknowledgments/{found['ack_id']}").json()
        assert set(ack["initials_per_line"]) == accepted


def test_two_who_decline_at_once_both_have_declined(shop: Shop, rivals: Rivals) -> None:
    for number in range(ROUNDS):
        cart = f"no-{number}"
        buyer = shop.buyer(session_id=cart)
        answers = at_once([rivals.decline(buyer), rivals.decline(buyer)])
        assert {answer.status_code for answer in answers} == {200}
        assert _ended(shop, buyer, cart)["status"] == "declined"


def test_a_session_that_expires_while_it_is_accepted_has_one_end(
    shop: Shop, rivals: Rivals
) -> None:
    """Servers look for sessions to expire all the time; the clock is advanced at that moment."""
    for number in range(2):
        cart = f"late-{number}"
        buyer = shop.buyer(session_id=cart, expires_in_seconds=60)
        advance = {"seconds": 61}
        answers = at_once(
            [
                rivals.accept(buyer, "AB"),
                lambda: shop.client.post("/v1/test/clock/advance", json=advance),  # noqa: B023
            ]
        )
        assert answers[1].status_code == 200
        if answers[0].status_code != 200:
            assert refusal(answers[0]) == CLOSED
            wait_until(lambda: shop.events(buyer) != [], "the event of its end")  # noqa: B023
        found = _ended(shop, buyer, cart)
        assert found["status"] == ("completed" if answers[0].status_code == 200 else "expired")
