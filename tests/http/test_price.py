"""The cost of the worst request of each route for the event loop, which all callers share.

Costs are processor time of the loop's own thread, in multiples of one `GET …/status` in the same
run, the minimum of a few rounds: a slow or busy machine changes neither.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec
import pytest

from countersign.base.http.body import BODY_BYTES_MAX
from countersign.core.access.key import LIVE_SCOPES
from countersign.core.access.role import Role
from countersign.core.checkout.order import LINES_MAX, TEXT_LENGTH_MAX
from countersign.core.gate.route import ON_LOOP_MAX, Call, Reply, Route
from countersign.core.notices.notice_file import BULLETS_MAX
from countersign.server.app import QUERY_BYTES_MAX, route_table
from tests.console.visitor import Vendor, places
from tests.http.backstage import notice_json
from tests.people.crew import Console, in_console
from tests.remembered.device import ORIGIN
from tests.support.document import committed_document
from tests.support.in_process import call_of, whole

pytestmark = [pytest.mark.one_engine, pytest.mark.later]  # it measures
ROUNDS: Final = 3
ORDERS: Final = 101
"""More than a page of any list has."""
TRIES: Final = 6
SLACK: Final = 1.25
"""The error of a ratio on a busy processor."""
HEADER: Final = 8192
"""Characters of each kind in half of the longest header that the server reads."""
GROWTH: Final = 3.0
"""Bound for twice the size on a busy processor; a quadratic cost would be four times."""
TRIFLE: Final = 15
"""For cheaper requests, in statuses, growth is not measured."""
FORM: Final = b"application/x-www-form-urlencoded"
NASTY: Final = "\x7f"
"""Six characters in a path."""
TEXT: Final = "a."
"""The text of long keys in TOML (`a.a.a…=1`), and of endless words."""


@dataclass(frozen=True)
class Asked:
    """A request: its name, target and body."""

    shape: str
    target: str
    body: bytes = b""
    reason: bytes = b"a price"


class Price(NamedTuple):
    """The cost of one kind of request, in statuses; and its ratio to that of half the size."""

    times: float
    shape: str
    status: int
    grown: float

    def is_fair(self, declared: int) -> bool:
        return self.times <= declared * SLACK and self.grown <= GROWTH


class Till:
    """What requests cost."""

    def __init__(self, console: Console, session: str, account: str, key: str) -> None:
        self.console, self.session, self.account, self.key = console, session, account, key
        self.reader = session
        self.status = ""
        self.unit = 1.0

    async def measure_unit(self) -> float:
        """The cost of a status, in seconds, at the pace that the machine has at this moment."""
        route = next(one for one in route_table() if one.path == "/v1/buyers/{cbid}/status")
        return min([(await self.cost(route, Asked("", self.status)))[0] for _ in range(20)])

    async def cost(self, route: Route[Any], asked: Asked) -> tuple[float, Reply]:
        """The least time of some rounds, in seconds."""
        least, reply = float("inf"), None
        for _ in range(ROUNDS):
            call, incoming = self.call(route, asked), whole(asked.body)
            begun = time.thread_time()
            reply = await self.console.app.handle(call, incoming)
            least = min(least, time.thread_time() - begun)
            if reply.pieces is not None:
                await reply.pieces.aclose()
        assert reply is not None
        return least, reply

    def call(self, route: Route[Any], asked: Asked) -> Call:
        path = asked.target.partition("?")[0]
        is_deployment = any(one in path for one in ("notices", "/accounts", "deployment", "/staff"))
        own = self.reader if route.personal else self.session
        token = own if route.console and route.scope is not None else self.key
        sent = {
            b"host": ORIGIN.partition("://")[2].encode(),
            b"origin": ORIGIN.encode(),
            b"content-type": FORM if route.request is None else b"application/json",
            b"cookie": f"csc-session={self.session}".encode(),
            b"countersign-reason": asked.reason,
        }
        if route.scope is not None or route.client_token:
            sent[b"authorization"] = f"Bearer {token}".encode()
        if token == own and not is_deployment:
            mode = b"live" if route.scope in LIVE_SCOPES else b"test"
            sent |= {b"countersign-account": self.account.encode(), b"countersign-mode": mode}
        return call_of(route.method, asked.target, sent.items())


def filled(value: object, size: int) -> object:
    """A value of that kind with about so many bytes in its texts and lists."""
    if isinstance(value, str):
        return TEXT * (size // len(TEXT))
    if isinstance(value, list) and value:
        each = len(json.dumps(value[0])) + 2
        return value[:1] * max(1, size // each)
    if isinstance(value, dict) and value:
        return {name: filled(one, size // len(value)) for name, one in value.items()}
    return value


def lines(number: int) -> dict[str, Any]:
    """A notice with this many lines, possibly more than allowed."""
    bullets = [{"id": f"line-{one}", "text": f"Line {one} of the notice."} for one in range(number)]
    return {"notice": notice_json("long", "1") | {"bullets": bullets}}


def bodies(route: Route[Any], example: Any, size: int) -> Iterator[tuple[str, bytes]]:  # noqa: ANN401 - JSON
    """Bodies of about this size, by their oddity."""
    if route.request is None:
        count = min(size // 16, 1900)
        yield "fields", urlencode({f"n{one}": TEXT * 4 for one in range(count)}).encode()
        yield "one field", urlencode({"code": TEXT * (size // 3)}).encode()[:size]
        yield "dots", urlencode(example | {"file": TEXT * (size // 2 - 60) + "a=1"}).encode()
        yield "array", urlencode(example | {"file": f"x=[{'1 ' * (size // 2 - 60)}]"}).encode()
        return
    yield "members", json.dumps({f"m{one}": 0 for one in range(size // 12)}).encode()
    yield "filled", json.dumps(filled(example, size - 2000)).encode()
    yield "nested", b"[" * size
    # The longer a path to the items of a list, the more items; the escape has all texts looked at.
    depth = size // 150
    steps, items = f'{{"{NASTY * 64}":' * depth, ",0" * (size // 5)
    yield "paths", f'{steps}["\\u0041"{items}]{"}" * depth}'.encode()
    yield "escapes", json.dumps({"a": "\u00e9" * (size // 6 - 4)}).encode()
    yield "numbers", json.dumps({"a": [1] * (size // 3 - 4)}).encode()
    dots = json.dumps({"notice": {"obligations": TEXT * (size // 2 - 60)}}).encode()
    yield "dots", dots
    if route.operation in {"checkNotice", "publishNotice"}:
        yield "lines", json.dumps(lines(900 * size // BODY_BYTES_MAX)).encode()
        keys = {f"k{one}": one for one in range(size // 16 - 60)}
        odd = {"notice": notice_json("odd", "1") | {"obligations": keys}}
        yield "obligations", json.dumps(odd).encode()


def examples() -> Mapping[str, Any]:
    """By operation, a body of the document."""
    found = {}
    for operations in committed_document()["paths"].values():
        for operation in operations.values():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content:
                found[operation["operationId"]] = next(iter(content["examples"].values()))["value"]
    return found


async def filled_till(console: Console) -> tuple[Till, dict[str, str]]:
    """A shop with a full page of orders, and the values for path parameters.

    One order is as large as possible: 200 lines to initial, and 20 lines shown to the buyer.
    """
    account = await console.account("shop")
    vendor = await Vendor.of(console, account)
    person = await console.person("Ada", Role.OWNER)
    await console.ask(person.session, "/v1/notices/publish", "POST", body=lines(BULLETS_MAX))
    orders = [await vendor.order(f"cs_{one}", f"order {one}") for one in range(ORDERS)]
    initials = {"initials_per_line": ["JD"] * BULLETS_MAX, "session_id": "wide", "ip": "192.0.2.1"}
    wide = await vendor.ask("POST", "/v1/notices/long/acknowledge", initials)
    shown = {"lines": [{"text": "w" * TEXT_LENGTH_MAX, "amount": "1.00"}] * LINES_MAX}
    session = {"return_url": ORIGIN, "session_id": "w", "order": shown | {"currency": "USD"}}
    session |= {"collect": ["acknowledgment"], "notice_id": "long"}
    made = await vendor.ask("POST", "/v1/checkout_sessions", session)
    till = Till(console, person.session, account, vendor.key)
    till.reader = (await console.person("Eve", Role.COMPLIANCE)).session
    till.status = f"/v1/buyers/{orders[-1]['cbid']}/status"
    named = orders[-1] | {"account_id": account, "notice_id": "long", "ack_id": wide["ack_id"]}
    return till, named | {"checkout_session_id": made["checkout_session_id"]}


def targets(route: Route[Any], named: Mapping[str, str]) -> list[str]:
    """URLs of a route: with all known parameters, and the longest list."""
    path = route.path
    for name, value in named.items():
        path = path.replace(f"{{{name}}}", value)
    if path == "/console/{path*}" and route.method == "POST":
        return ["/console/all/notices/-/check"]
    if path == "/console/{path*}":
        return [f"{one}?limit=100" for one in places(named["account_id"]).values()]
    head, _, rest = path.partition("{")
    path = head + ("x" if rest else "") + rest.partition("}")[2]
    fields = () if route.query is None else msgspec.structs.fields(route.query)
    return [f"{path}?limit=100" if "limit" in {field.name for field in fields} else path]


def asked(route: Route[Any], target: str, example: object, part: int) -> Iterator[Asked]:
    """The requests to price; of `part` 1 each is half as large as of 2."""
    if route.request is not None or route.raw_body_max:
        size = part * (BODY_BYTES_MAX // 2 - 600)
        for shape, body in bodies(route, example, size):
            yield Asked(shape, target, body)
        return
    yield Asked("look", target)
    size = part * QUERY_BYTES_MAX // 2 - 100
    more = "&" if "?" in target else "?"
    yield Asked("query", f"{target}{more}{'%61=%62&' * (size // 8)}")
    if route.personal:
        # Marks of two classes, in the order that a composition has to sort.
        marks = ("\u0301" * HEADER + "\u0316" * HEADER) * part
        yield Asked("reason", target, reason=f"a{marks}".encode())


async def prices(till: Till, route: Route[Any], target: str, example: object) -> list[Price]:
    """The cost of each kind of request there, and its growth with the size.

    A cost that seems too high is measured again, and the unit too: the pace of the machine varies.
    """
    half, full = (
        {one.shape: one for one in asked(route, target, example, part)} for part in (1, 2)
    )
    found = []
    for shape, one in full.items():
        less = more = times = float("inf")
        price, tries = Price(0, shape, 0, 0), 0
        while tries < TRIES and not (tries and price.is_fair(route.price)):
            unit = await till.measure_unit() if tries else till.unit
            tries += 1
            less = min(less, (await till.cost(route, half[shape]))[0])
            spent, reply = await till.cost(route, one)
            more, times = min(more, spent), min(times, spent / unit)
            grown = more / less if more > TRIFLE * till.unit else 1
            price = Price(round(times, 1), shape, reply.status, round(grown, 1))
        found.append(price)
    return found


def test_no_request_costs_more_than_its_route_declares(tmp_path: Path) -> None:
    """Nor does twice the size cost more than twice as much, with some slack."""

    async def work(console: Console) -> list[str]:
        till, named = await filled_till(console)
        table, known = route_table(), examples()
        till.unit = await till.measure_unit()
        found = list[tuple[Price, Route[Any], str]]()
        for route in sorted(table, key=lambda one: "/me/sessions" in one.path):  # which it ends
            for target in targets(route, named):
                code = {"code": console.host.form_code(till.session)}
                example = known.get(route.operation, code)
                own = await prices(till, route, target, example)
                found += [(price, route, target) for price in own]
        found.sort(key=lambda one: -one[0].times)
        table_of = [f"{price} {route.address} {target[:60]}" for price, route, target in found]
        (tmp_path / "prices.txt").write_text("\n".join(table_of))
        assert {price.status for price, _, _ in found} >= {200, 303, 400, 404, 413}
        return [
            f"{price} {target}: {route.price}"
            for price, route, target in found
            if not price.is_fair(route.price)
        ]

    gc.disable()
    try:
        assert in_console(tmp_path, work) == []
    finally:
        gc.enable()


def test_no_route_may_cost_more_on_the_loop() -> None:
    """Costlier work has a thread and a quota per account."""
    assert not [route.address for route in route_table() if route.price > ON_LOOP_MAX]
