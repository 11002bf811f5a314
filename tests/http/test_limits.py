"""Limits: of rate, of size, of media types and methods."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import httpx2
import pytest

from countersign.server.app import route_table
from tests.http import wire
from tests.http.backstage import Vendor, make_client
from tests.http.calls import SHIPPED_NOTICE, message, refusal
from tests.http.conftest import RATE, Configured
from tests.support.service import Server

pytestmark = pytest.mark.one_engine

PATH = f"/v1/notices/{SHIPPED_NOTICE}/acknowledge"
JSON = {"Content-Type": "application/json"}
BODY = json.dumps({"initials_per_line": ["A", "B", "C", "D"]}).encode()
SIZE_MAX = 65_536
STATE = re.compile(r'"default";r=(\d+);t=(\d+)')


@pytest.fixture
def rated(configured: Configured, configured_vendor: Vendor) -> Iterator[httpx2.Client]:
    """Give a client with a new key on the server that limits the rate."""
    key = configured.operator.key(configured_vendor.account_id)
    with make_client(configured.server, key.token) as client:
        yield client


def left(answer: httpx2.Response) -> int:
    state = STATE.fullmatch(answer.headers["RateLimit"])
    assert state is not None
    return int(state[1])


def test_a_key_may_make_as_many_requests_as_configured_and_no_more(rated: httpx2.Client) -> None:
    answers = [rated.get("/v1/notices") for _ in range(RATE + 1)]
    assert {answer.status_code for answer in answers[:RATE]} == {200}
    assert refusal(answers[RATE]) == (429, "rate_limited")


def test_responses_state_the_policy_and_the_remaining_requests(rated: httpx2.Client) -> None:
    answers = [rated.get("/v1/notices") for _ in range(3)]
    for answer in answers:
        assert answer.headers["RateLimit-Policy"] == f'"default";q={RATE};w={RATE * 120}'
    assert [left(answer) for answer in answers] == [RATE - 1, RATE - 2, RATE - 3]


def test_a_request_refused_for_something_else_counts_too(rated: httpx2.Client) -> None:
    answers = [rated.get("/v1/notices/unknown"), rated.post(PATH, content=b"{", headers=JSON)]
    assert [answer.status_code for answer in answers] == [404, 400]
    assert [left(answer) for answer in answers] == [RATE - 1, RATE - 2]


def test_a_refused_request_gets_a_retry_time(rated: httpx2.Client) -> None:
    while (answer := rated.get("/v1/notices")).status_code == 200:
        pass
    assert refusal(answer) == (429, "rate_limited")
    assert 1 <= int(answer.headers["Retry-After"]) <= 120
    assert left(answer) == 0
    assert answer.headers["RateLimit-Policy"] == f'"default";q={RATE};w={RATE * 120}'


def test_the_rate_counts_for_each_key_alone(
    rated: httpx2.Client, configured_vendor: Vendor
) -> None:
    """Another key of the same account has a count of its own."""
    while rated.get("/v1/notices").status_code == 200:
        pass
    assert left(configured_vendor.test.get("/v1/notices")) == RATE - 1


def test_pages_without_a_key_are_not_limited(configured: Configured) -> None:
    with make_client(configured.server) as client:
        answers = [client.get("/healthz") for _ in range(RATE + 1)]
    assert {answer.status_code for answer in answers} == {200}
    assert not any("RateLimit" in answer.headers for answer in answers)


def test_no_limit_is_announced_if_it_is_off(client: httpx2.Client) -> None:
    answer = client.get("/v1/notices")
    assert "RateLimit" not in answer.headers
    assert "RateLimit-Policy" not in answer.headers


def test_a_body_may_have_64_kib(client: httpx2.Client) -> None:
    body = BODY + b" " * (SIZE_MAX - len(BODY))
    assert client.post(PATH, content=body, headers=JSON).status_code == 200


@pytest.mark.parametrize("size", [SIZE_MAX + 1, 2 * SIZE_MAX, 900_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_larger_body_is_payload_too_large(
    client: httpx2.Client, size: int, chunked: bool
) -> None:
    """Whether its length was declared or not; the client gets to see the answer."""
    body = BODY + b" " * (size - len(BODY))
    content = iter([body[: size // 2], body[size // 2 :]]) if chunked else body
    answer = client.post(PATH, content=content, headers=JSON)
    assert refusal(answer) == (413, "payload_too_large")


def test_a_body_in_many_pieces_is_read_whole(client: httpx2.Client) -> None:
    pieces = iter([bytes([byte]) for byte in BODY])
    assert client.post(PATH, content=pieces, headers=JSON).status_code == 200


def test_a_huge_declared_body_is_refused_unread(client: httpx2.Client) -> None:
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: countersign\r\nContent-Type: application/json\r\n"
        f"Authorization: {client.headers['Authorization']}\r\nContent-Length: 99999999999\r\n\r\n"
    )
    answer = wire.send(str(client.base_url), head.encode())
    assert answer.status == 413
    assert b'"payload_too_large"' in answer.body


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "text/json",
        "application/xml",
        "application/problem+json",
        "application/json; charset=latin-1",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
    ],
)
def test_a_body_other_than_json_is_an_unsupported_media_type(
    client: httpx2.Client, content_type: str | None
) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    answer = client.post(PATH, content=BODY, headers=headers)
    assert refusal(answer) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        'application/json; charset="utf-8"',
        "Application/JSON",
    ],
)
def test_json_may_be_written_in_several_ways(client: httpx2.Client, content_type: str) -> None:
    answer = client.post(PATH, content=BODY, headers={"Content-Type": content_type})
    assert answer.status_code == 200, answer.text


def test_another_method_is_not_allowed_and_the_allowed_ones_are_named(
    client: httpx2.Client,
) -> None:
    """Every address of the route table; HEAD goes where GET goes."""
    by_path: dict[str, set[str]] = {}
    for route in (one for one in route_table() if not one.console):
        path = re.sub(r"\{.*\}", "x", route.path)
        by_path.setdefault(path, set()).add(route.method)
    for path, methods in by_path.items():
        allowed = methods | ({"HEAD"} if "GET" in methods else set())
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"):
            if method not in allowed:
                answer = client.request(method, path)
                if path.startswith(("/c/", "/buyer")):  # errors of the buyer's pages are pages
                    assert answer.status_code == 405
                else:
                    assert refusal(answer) == (405, "method_not_allowed"), (method, path)
                assert set(answer.headers["Allow"].split(", ")) == allowed


def test_the_address_is_judged_before_the_method(client: httpx2.Client) -> None:
    answer = client.put("/v1/nothing")
    assert refusal(answer) == (404, "not_found")
    assert "not found" in message(answer)


def test_a_refused_body_leaves_the_connection_in_use(server: Server) -> None:
    """Without a key the body is not wanted; the next request on the same connection is answered."""
    with server.client() as stranger:
        for _ in range(20):
            answer = stranger.post(PATH, content=b"x" * 60_000, headers=JSON)
            assert answer.status_code == 401
