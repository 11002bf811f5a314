"""Common rules of all simulators' hosted pages."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import pytest

from countersign_simulators.base import Reply, Request
from countersign_simulators.hosted import (
    STEPS,
    Created,
    Hosted,
    Outcome,
    State,
    person_of,
    with_query,
)
from tests.identity.asking import FixedClock

PAGE = "/verify?code=abc"


class Desk:
    """Created sessions with the messages about them."""

    def __init__(self, **options: object) -> None:
        self.clock = FixedClock()
        self.said: list[tuple[State, Outcome | None]] = []
        self.hosted = Hosted(
            "Example",
            self.clock.now,
            back=lambda created: created.return_url,
            changed=self._changed,
            again=(Outcome.PHOTO_BLURRED,),
        )
        self.hosted.create("s_1", PAGE, return_url="https://shop.example/back?a=1")

    def _changed(self, created: Created) -> None:
        self.said.append((created.state, created.outcome))

    @property
    def session(self) -> Created:
        found = self.hosted.find("s_1")
        assert found is not None
        return found

    def ask(self, method: str = "GET", form: Mapping[str, str] | None = None) -> Reply:
        query = (("code", "abc"), ("lang", "es"))
        body = urlencode(form or {}).encode()
        found = self.hosted.answer(
            Request(method=method, path="/verify", query=query, headers={}, body=body)
        )
        assert found is not None
        return found

    def send(self, **form: str) -> Reply:
        return self.ask("POST", form)


def location(reply: Reply) -> str | None:
    return dict(reply.headers).get("Location")


def test_a_page_is_found_by_path_and_query_alone() -> None:
    """Another address is left to the rest of the simulator."""
    hosted = Desk().hosted
    for path, query in (("/verify", ()), ("/verify", (("code", "x"),)), ("/", (("code", "abc"),))):
        asked = Request(method="GET", path=path, query=query, headers={}, body=b"")
        assert hosted.answer(asked) is None


def test_every_page_says_that_it_is_a_simulator() -> None:
    """All steps have one form each, and no script; the end has none."""
    desk = Desk()
    for step in STEPS:
        page = desk.ask().body.decode()
        assert "This is a simulator" in page
        assert page.count("<form") == 1
        assert "<script" not in page
        assert f"Step {STEPS.index(step) + 1} of 5" in page
        if step != "result":
            desk.send(zip="95814")
    assert location(desk.send(outcome="verified")) == "https://shop.example/back?a=1"
    assert (desk.session.state, desk.session.zip) == (State.ENDED, "95814")
    over = desk.ask().body.decode()
    assert "This is a simulator" in over
    assert "<form" not in over


def test_the_first_page_can_end_it_at_once() -> None:
    """So that a program needs one request; a webhook is sent for each state."""
    desk = Desk()
    assert desk.send(zip="02139", outcome="failed").status == 303
    assert desk.said == [(State.ENDED, Outcome.FAILED)]


def test_only_agreeing_changes_the_session() -> None:
    """The buyer has begun."""
    desk = Desk()
    for _ in range(3):
        desk.send()
    assert desk.said == [(State.BEGUN, None)]


def test_a_later_decision_comes_after_the_session_was_retrieved() -> None:
    """It is seen pending once."""
    desk = Desk()
    desk.hosted.retrieved("s_1")
    desk.send(outcome="later")
    desk.hosted.retrieved("s_1")
    desk.hosted.retrieved("s_1")
    assert desk.said == [(State.PENDING, Outcome.LATER), (State.ENDED, Outcome.VERIFIED)]


def test_the_outcome_never_leads_nowhere() -> None:
    """The check is complete, and the page stays."""
    desk = Desk()
    page = desk.send(outcome="never")
    assert (page.status, location(page)) == (200, None)
    assert "href" not in page.body.decode()


def test_a_page_can_be_used_again_only_where_the_provider_allows_it() -> None:
    """After a blurred photo here; never after a success."""
    desk = Desk()
    desk.send(outcome="photo_blurred")
    assert "<form" in desk.ask().body.decode()
    desk.send(outcome="verified")
    assert "<form" not in desk.send(outcome="failed").body.decode()
    assert desk.session.outcome is Outcome.VERIFIED


@pytest.mark.parametrize(
    "form", [{"zip": "9411"}, {"zip": "٩٤١١٠"}, {"outcome": "<b>"}, {"who": "<b>"}]
)
def test_unusable_input_is_requested_again(form: dict[str, str]) -> None:
    """Nothing changes, and the input never becomes markup."""
    desk = Desk()
    page = desk.send(**form)
    assert page.status == 400
    assert 'role="alert"' in page.body.decode()
    assert "<b>" not in page.body.decode()
    assert desk.said == []


def test_a_person_fits_the_outcome() -> None:
    """Two sessions never show one document."""
    desk = Desk()
    desk.send(outcome="wrong_zip", zip="90210")
    assert person_of(desk.session, desk.clock.now()).postcode == "94110"
    other = desk.hosted.create("s_2", "/other")
    assert (
        person_of(other, desk.clock.now()).number
        != person_of(desk.session, desk.clock.now()).number
    )


def test_the_same_person_returns_if_that_is_chosen() -> None:
    """With the document of the person checked last, whatever the outcome; at first a new person."""
    desk = Desk()

    def number(session_id: str, **form: str) -> str:
        desk.hosted.create(session_id, f"/{session_id}")
        body = urlencode({"outcome": "verified"} | form).encode()
        asked = Request(method="POST", path=f"/{session_id}", query=(), headers={}, body=body)
        assert desk.hosted.answer(asked) is not None
        found = desk.hosted.find(session_id)
        assert found is not None
        return person_of(found, desk.clock.now()).number

    first = number("s_2", who="same", outcome="underage")
    assert number("s_3", who="same") == number("s_4", who="same") == first
    other = number("s_5", who="another")
    assert other != first
    assert number("s_6", who="same") == other


def test_a_query_is_added_to_that_of_the_address() -> None:
    """And encoded."""
    assert (
        with_query("https://a.example/x?y=1#z", ("k", "a b")) == "https://a.example/x?y=1&k=a+b#z"
    )
    assert with_query("https://a.example/x", ("k", "&")) == "https://a.example/x?k=%26"
