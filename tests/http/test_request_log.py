"""`GET /v1/requests`: what a developer sees of the requests of the account's keys."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from countersign.base.errors import REFUSALS
from countersign.base.values import Mode
from countersign.core.access.key import VENDOR_SCOPES, Principal
from countersign.core.access.role import Role
from countersign.core.gate.route import Reply
from countersign.server.app import route_table
from countersign.server.request_log import (
    ENTRIES,
    PLACES,
    RequestLog,
    RequestsQuery,
    RequestView,
    list_requests,
)
from countersign.server.shared import Boards
from tests.console.test_pages import a_key
from tests.people.crew import Console, in_console

pytestmark = pytest.mark.one_engine

WORST = "GET " + "x" * 56
CODE = "x" * 32


class Still:
    """A clock that stands."""

    def time_ns(self) -> int:
        return 1_800_000_000 * 10**9

    def monotonic(self) -> float:
        return 10_000.0


def caller(account: int, mode: Mode = Mode.LIVE) -> Principal:
    """A key with identifiers as long as all are."""
    return Principal(
        key_id=f"key_{account:026}",
        account_id=f"acct_{account:026}",
        mode=mode,
        scopes=VENDOR_SCOPES,
        credential="secret_key",
    )


def request_id(number: int) -> str:
    return f"req_{number:026}"


def note(log: RequestLog, at: int, who: Principal) -> None:
    """A request that ended so many seconds after the clock's zero."""
    log.new[who.account_id, who.mode].append((who, float(at), 503, CODE, request_id(at), WORST))


def noted(log: RequestLog, who: Principal) -> list[str]:
    query = RequestsQuery(limit=2 * ENTRIES)
    found = asyncio.run(list_requests(log, who.reach, query))
    return [one.request_id for one in found.data]


def test_a_refused_request_is_found_by_its_identifier(tmp_path: Path) -> None:
    """With route, code and key, and without the identifier in its path."""

    async def work(console: Console) -> None:
        key, other = [await a_key(console, await console.account(one)) for one in "ab"]

        async def ask(path: str, headers: Any, method: str = "GET", body: bytes = b"") -> Reply:  # noqa: ANN401 - of httpx2
            return await console.http(method, path, headers, body)

        refused = await ask("/v1/clearances", key, "POST", b'{"colour": "red"}')
        assert refused.status == 400
        await ask("/v1/acknowledgments/ack_unknown", other)
        [line] = json.loads((await ask("/v1/requests?failed=true", key)).body)["data"]
        assert line["request_id"] == dict(refused.headers)[b"x-request-id"].decode()
        assert line["operation"] == "POST /v1/clearances"
        assert (line["status"], line["code"]) == (400, "invalid_request")
        theirs = (await ask("/v1/requests", other)).body
        assert b"unknown" not in theirs
        assert b"GET /v1/acknowledgments/{ack_id}" in theirs

    in_console(tmp_path, work)


def test_requests_of_people_are_not_among_those_of_keys(tmp_path: Path) -> None:
    """Their acts are in the audit."""

    async def work(console: Console) -> None:
        account = await console.account("vendor")
        ada = await console.person("Ada", Role.DEVELOPER, account)
        about: dict[str, Any] = {"account": account, "mode": "test"}
        assert (await console.ask(ada.session, "/v1/keys", **about)).ok
        assert (await console.ask(ada.session, "/v1/requests", **about)).data["data"] == []

    in_console(tmp_path, work)


def test_a_worker_shows_the_requests_of_all() -> None:
    """The newest first, at most the last thousand, of this account and mode alone."""
    boards, who = Boards(2 * PLACES, list[RequestView]), caller(1)
    logs = [RequestLog(Still()) for _ in range(2)]
    for number, log in enumerate(logs):
        log.share(boards, number)
    for number in range(ENTRIES + 4):
        note(logs[number % 2], number, who)
    note(logs[0], ENTRIES + 9, caller(1, Mode.TEST))
    newest = [request_id(number) for number in range(ENTRIES + 3, 3, -1)]
    noted(logs[0], who)
    assert noted(logs[1], who) == noted(logs[0], who) == newest


def test_a_busy_account_delays_no_one_at_a_flush_and_hides_no_other() -> None:
    """No more of it waits than is kept."""
    log, busy, quiet = RequestLog(Still()), caller(1), caller(2)
    note(log, 0, quiet)
    for number in range(1, 3 * ENTRIES):
        note(log, number, busy)
    assert sum(map(len, log.new.values())) == ENTRIES + 1
    assert noted(log, busy) == [request_id(n) for n in range(3 * ENTRIES - 1, 2 * ENTRIES - 1, -1)]
    assert noted(log, quiet) == [request_id(0)]


def test_an_account_takes_the_place_of_the_one_that_called_longest_ago() -> None:
    """And sees nothing of it."""
    log = RequestLog(Still())
    for at, number in enumerate([*range(PLACES), 0, PLACES]):
        note(log, at, caller(number))
    assert noted(log, caller(1)) == []
    assert noted(log, caller(0)) == [request_id(PLACES), request_id(0)]
    assert noted(log, caller(PLACES)) == [request_id(PLACES + 1)]


def test_a_thousand_of_the_longest_requests_fit_on_a_board() -> None:
    assert max(len(route.address) for route in route_table()) <= len(WORST)
    assert max(len(error.code) for error in REFUSALS) <= len(CODE)
    log = RequestLog(Still())
    for number in range(ENTRIES):
        note(log, number, caller(1))
    assert len(noted(log, caller(1))) == ENTRIES


def test_the_pages_of_a_list_have_each_request_once() -> None:
    log, who, after, pages = RequestLog(Still()), caller(1), None, list[list[str]]()
    for number in range(5):
        note(log, number, who)
    while after is not None or not pages:
        query = RequestsQuery(limit=2, after=after)
        page = asyncio.run(list_requests(log, who.reach, query))
        pages.append([one.request_id for one in page.data])
        after = page.next_cursor
    assert pages == [[request_id(n) for n in numbers] for numbers in ((4, 3), (2, 1), (0,))]
