"""A buyer who has finished at the provider, while the result cannot be applied."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final
from urllib.parse import parse_qsl

import pytest

from countersign.hosted.toolkit.screens import WORDS
from countersign_simulators.base import Reply, Request
from countersign_simulators.registry import SIMULATORS
from tests.checkout.buyer import Shop
from tests.checkout.provider import (
    Counter,
    address,
    arrive,
    begin,
    come_back,
    counter,
    finish,
    send,
)
from tests.checkout.surfer import Page, Surfer
from tests.http.backstage import Operator
from tests.support.providers import Mood, playing

pytestmark = pytest.mark.one_engine

EN = WORDS["en"]


@pytest.fixture
def desk(shop: Shop, operator: Operator) -> Iterator[Counter]:
    with counter(shop, operator) as made:
        yield made


def named(words: str, provider: str = "Stripe") -> str:
    """A text of the page with the provider's name in it."""
    return words.replace("{provider}", provider)


def says(page: Page, words: str) -> bool:
    """Whether the page has this text, with the name of whatever shop."""
    return re.search(re.escape(words).replace(r"\{vendor\}", ".+"), page.text) is not None


def answers(status: int, body: object) -> Mood:
    """Answer every question in this way."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda _, reply: Reply(status=status, headers=reply.headers, body=text)


def changed(change: Callable[[dict[str, Any]], object]) -> Mood:
    """Answer as usual, but for a change of the session."""

    def mood(request: Request, reply: Reply) -> Reply:
        if request.method != "GET" or reply.status != 200:
            return reply
        session = json.loads(reply.body)
        change(session)
        return replace(reply, body=json.dumps(session).encode())

    return mood


PASSING: Final[dict[str, tuple[Mood, str]]] = {
    "down": (answers(500, b""), "provider_unavailable"),
    "unreadable": (answers(200, b"<html>"), "provider_unavailable"),
    "unknown_status": (changed(lambda s: s.update(status="odd")), "provider_unavailable"),
}
WRONG: Final[dict[str, tuple[Mood, str]]] = {
    "key_refused": (
        answers(401, {"error": {"type": "invalid_request_error"}}),
        "verification_misconfigured",
    ),
    "birth_withheld": (
        changed(lambda s: s["verified_outputs"].pop("dob")),
        "verification_misconfigured",
    ),
    "session_unknown": (
        answers(404, {"error": {"code": "resource_missing"}}),
        "provider_session_not_found",
    ),
    "other_reference": (
        changed(lambda s: s.update(client_reference_id="another")),
        "session_not_bound",
    ),
}


@pytest.mark.parametrize("name", SIMULATORS)
@pytest.mark.parametrize("locale", ["en", "es"])
def test_a_returned_buyer_is_not_redirected_to_the_provider_again(
    shop: Shop, operator: Operator, name: str, locale: str
) -> None:
    """For each provider, the page shows the known state, and the result as soon as there is one."""
    words = WORDS[locale]
    with counter(shop, operator, name) as desk:
        surfer = desk.buyer(locale=locale)
        leaving = surfer.send(surfer.open().form)
        before = words["identity_continue"].removesuffix("{provider}")
        [url] = [link for text, link in leaving.links.items() if text.startswith(before)]
        location = finish(url, "verified")
        with desk.provider.mood(answers(500, b"")):
            page = arrive(surfer, location)
            if location is not None:
                assert named(words["identity_back"], provider=name.capitalize()) in page.text
                assert named(words["identity_waiting"], provider=name.capitalize()) not in page.text
            else:
                assert named(words["provider_down"], provider=name.capitalize()) in page.text
            assert desk.shop.read(surfer.buyer)["reasons"] == ["provider_unavailable"]
            again = send(surfer, page, "check")
            assert (again.status, len(again.having(role="alert"))) == (200, 1)
        assert send(surfer, again, "check").heading == words["title"]
        assert desk.shop.read(surfer.buyer)["reasons"] == []
        assert desk.shop.events(surfer.buyer) == []


@pytest.mark.parametrize("trouble", PASSING)
def test_a_temporary_failure_needs_no_action_of_the_buyer(desk: Counter, trouble: str) -> None:
    """The vendor sees the reason and gets no event, since no action is needed."""
    mood, reason = PASSING[trouble]
    surfer = desk.buyer()
    location = finish(begin(surfer), "verified")
    with desk.provider.mood(mood):
        page = come_back(surfer, location)
        assert named(EN["identity_back"]) in page.text
        assert "data-updates" in page.response.text
        assert named(EN["identity_back"]) in surfer.open(surfer.root).text
        found = desk.shop.read(surfer.buyer)
        assert (found["status"], found["reasons"]) == ("open", [reason])
        assert desk.shop.events(surfer.buyer) == []
    assert send(surfer, page, "check").heading == EN["title"]


@pytest.mark.parametrize("trouble", WRONG)
@pytest.mark.parametrize("led", [True, False])
def test_a_mistake_of_the_vendor_is_shown_to_vendor_and_buyer(
    desk: Counter, trouble: str, *, led: bool
) -> None:
    """The buyer is not sent in a circle, the session has the reason, and one event reports it."""
    mood, reason = WRONG[trouble]
    surfer = desk.buyer()
    location = finish(begin(surfer), "verified")
    with desk.provider.mood(mood):
        page = arrive(surfer, location if led else None)
        for shown in (page, surfer.open(surfer.root), send(surfer, page, "check")):
            assert says(shown, EN["identity_wrong"])
            assert not [one for one in shown.forms if one.action.endswith("/start")]
        found = desk.shop.read(surfer.buyer)
        assert (found["status"], found["reasons"]) == ("open", [reason])
    events = desk.shop.events_of(surfer.buyer)
    assert [(event["type"], event["data"]["reasons"]) for event in events] == [
        ("checkout_session.blocked", [reason])
    ]
    assert send(surfer, page, "check").heading == EN["title"]
    assert desk.shop.read(surfer.buyer)["reasons"] == []


def test_another_provider_is_offered_if_one_is_misconfigured(desk: Counter) -> None:
    """A misconfigured provider says nothing about the other."""
    with playing("persona") as other:
        surfer = desk.buyer()
        location = finish(begin(surfer), "verified")
        desk.use(other)
        with desk.provider.mood(WRONG["key_refused"][0]):
            page = come_back(surfer, location)
            assert [have["value"] for have in page.having(name="provider")] == ["persona"]
            assert "Start with Persona" in page.text
            [form] = [one for one in page.forms if one.action.endswith("/start")]
            url = address(surfer.send(form, provider="persona"))
            assert come_back(surfer, finish(url, "verified")).heading == EN["title"]


def test_a_pending_decision_is_still_shown_as_pending(desk: Counter) -> None:
    """A provider that is down for a moment while it decides makes nothing undone."""
    surfer = desk.buyer()
    location = finish(begin(surfer), "later")
    deciding = come_back(surfer, location)
    with desk.provider.mood(PASSING["down"][0]):
        shown = send(surfer, deciding, "check")
        assert EN["identity_deciding"] in shown.text
        assert shown.having(role="alert")
    with desk.provider.mood(WRONG["key_refused"][0]):
        assert says(send(surfer, deciding, "check"), EN["identity_wrong"])
    assert send(surfer, deciding, "check").heading == EN["title"]


def test_another_browser_with_the_link_does_not_count_as_returned(desk: Counter) -> None:
    """The other browser did not return, and is not redirected to a check that it has not begun."""
    surfer = desk.buyer()
    location = finish(begin(surfer), "verified")
    other = desk.shop.opened.enter_context(Surfer(desk.shop.server, surfer.buyer))
    with desk.provider.mood(PASSING["down"][0]):
        other.open()
        assert named(EN["identity_back"]) not in come_back(other, location).text
        assert named(EN["identity_waiting"]) in surfer.open(surfer.root).text
        assert named(EN["identity_back"]) in come_back(surfer, location).text
        assert named(EN["identity_back"]) not in other.open(other.root).text


def test_a_buyer_who_returns_unfinished_can_continue(desk: Counter) -> None:
    """The provider's response counts, not the return."""
    surfer = desk.buyer()
    url = begin(surfer)
    [made] = [seen for seen in desk.provider.served.requests if seen.method == "POST"][:1]
    back = dict(parse_qsl(made.body.decode()))["return_url"].removeprefix(desk.shop.server.url)
    with desk.provider.mood(PASSING["down"][0]):
        assert named(EN["identity_back"]) in surfer.open(back).text
    waiting = surfer.open(back)
    assert named(EN["identity_waiting"]) in waiting.text
    assert desk.shop.read(surfer.buyer)["reasons"] == []
    assert come_back(surfer, finish(url, "verified")).heading == EN["title"]
