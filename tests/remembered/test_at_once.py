"""A remembered buyer who agrees, declines and erases at once: one thing happens, and whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Barrier, Thread
from typing import Any

import httpx2

from countersign.hosted.toolkit.screens import WORDS
from tests.checkout.provider import address, finish
from tests.checkout.surfer import Form
from tests.http.backstage import Operator
from tests.remembered.conftest import (
    Person,
    Shop,
    form_of,
    link,
    remembered,
    verified_at,
    verify_in,
)
from tests.support.service import Server

EN = WORDS["en"]
_TRIES = 12
_OF_BUYERS = ("remembered", "remembered_uses", "buyers", "verifications", "erasure_requests")
_UNERASED = (
    "SELECT r.id FROM records r LEFT JOIN erasures e ON e.record_id = r.id"
    " LEFT JOIN shred_keys k ON k.record_id = r.id"
    " WHERE r.type = 'verification' AND e.record_id IS NULL"
)


def _at_once(*acts: Callable[[], httpx2.Response]) -> list[httpx2.Response]:
    done: dict[int, httpx2.Response] = {}
    gate = Barrier(len(acts))

    def run(number: int, act: Callable[[], httpx2.Response]) -> None:
        gate.wait()
        done[number] = act()

    threads = [Thread(target=run, args=one) for one in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [done[number] for number in range(len(acts))]


def _with_cookies_of(person: Person, server: Server) -> Person:
    made = Person(server)
    for name, value in person.client.cookies.items():
        made.client.cookies.set(name, value)
    return made


def test_declining_during_the_consent_informs_no_account(
    person: Person, shop: Shop, operator: Operator, server: Server
) -> None:
    """The use and the record are there exactly where the session is completed."""
    person.send(form_of(verify_in(person, shop.session()), "cookie"))
    other = _with_cookies_of(person, server)
    for number in range(_TRIES):
        session = shop.session(session_id=f"cart-{number}")
        page = person.open(link(session))
        declining = person.open(f"/c/{session['checkout_session_id']}/decline").form
        before = _numbers(operator)
        left = _at_once(
            partial(person.post, form_of(page, "cookie")),
            partial(other.post, declining),
        )
        assert all(response.status_code < 500 for response in left)
        completed = int(shop.read(session)["status"] == "completed")
        assert _numbers(operator) == tuple(number + completed for number in before)
    other.client.close()


def test_erasing_during_the_consent_is_complete_and_never_a_500(
    person: Person, shop: Shop, operator: Operator, server: Server
) -> None:
    """Each verification has its erasure, or its key and its buyer."""
    for number in range(_TRIES):
        person.client.cookies.clear()
        first = shop.session(session_id=f"first-{number}")
        person.send(form_of(verify_in(person, first), "cookie"))
        cbid = shop.read(first)["cbid"]
        page = person.open(link(shop.session(session_id=f"second-{number}")))
        erasing = form_of(person.open("/buyer"), "erase", "act")
        other = _with_cookies_of(person, server)
        left = _at_once(
            partial(person.post, form_of(page, "cookie")),
            partial(other.post, erasing, sure="yes"),
        )
        other.client.close()
        assert [response.status_code for response in left] == [303, 303]
        for table in _OF_BUYERS:
            query = f"SELECT * FROM {table} WHERE cbid = :cbid"  # noqa: S608 - our own names
            assert operator.rows(query, cbid=cbid) == [], table
        assert operator.rows(_UNERASED) == []


def test_a_check_that_the_provider_still_decides_is_erased_with_the_buyer(
    person: Person, live_shop: Callable[..., Shop], operator: Operator
) -> None:
    """The buyer was known by a cookie before the decision, and nothing of the check comes back."""
    shop = live_shop()
    session, form = _begun(person, shop, operator)
    finish(address(person.send(form, provider="stripe")), "later", session["zip"])
    person.open(f"/c/{session['checkout_session_id']}/return")
    assert {row["status"] for row in operator.rows("SELECT status FROM buyers")} == {
        "pending",
        "verified",
    }
    _pass_and_erase(person, shop, session)
    _nothing_is_left(operator)


def test_a_check_without_a_submission_is_erased_with_the_buyer(
    person: Person, live_shop: Callable[..., Shop], operator: Operator
) -> None:
    shop = live_shop()
    session, form = _begun(person, shop, operator)
    person.post(form, provider="stripe")
    assert len(operator.rows("SELECT id FROM pending_sessions")) == 1
    _pass_and_erase(person, shop, session)
    _nothing_is_left(operator)


def _numbers(operator: Operator) -> tuple[int, int]:
    return (
        len(operator.rows("SELECT id FROM remembered_uses")),
        len(operator.rows("SELECT id FROM records WHERE type = 'verification'")),
    )


def _nothing_is_left(operator: Operator) -> None:
    for table in (*_OF_BUYERS, "started_checks", "pending_sessions", "provider_sessions"):
        assert operator.rows(f"SELECT * FROM {table}") == [], table  # noqa: S608 - our own names
    assert operator.rows("SELECT * FROM verification_evidence") == []
    assert operator.rows("SELECT * FROM disclosures") == []
    assert operator.rows("SELECT * FROM shred_keys") == []


def _begun(person: Person, shop: Shop, operator: Operator) -> tuple[dict[str, Any], Form]:
    """A session of a remembered buyer, and the form that begins the ordinary check."""
    cbid, zip_ = verified_at(shop.vendor, 1)
    remembered(operator, person, cbid)
    session = shop.session(shipping_zip=zip_)
    person.open(link(session))
    page = person.open(f"/c/{session['checkout_session_id']}?step=check")
    session["zip"] = zip_
    return session, next(form for form in page.forms if form.action.endswith("/start"))


def _pass_and_erase(person: Person, shop: Shop, session: dict[str, Any]) -> None:
    ask = person.open(f"/c/{session['checkout_session_id']}/remembered")
    person.post(form_of(ask, "cookie"))
    assert shop.read(session)["status"] == "completed"
    page = person.send(form_of(person.open("/buyer"), "erase", "act"), sure="yes")
    assert EN["remembered_says_erased"] in page.text
