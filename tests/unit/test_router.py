"""Routing: every route is found by its own path, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.base.errors import MethodNotAllowed, NotFound
from countersign.core.gate.route import Call, Reply, Route, Router
from countersign.operate.bootstrap import Deployment
from countersign.server.app import route_table
from tests.support.every import every

ROUTES = route_table()
ROUTER = Router(ROUTES)
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", ""]
SEGMENTS = st.text(max_size=12).filter(lambda text: text != "" and "/" not in text)


async def handler(_: Deployment, __: Call) -> Reply:
    return Reply(b"{}")


def routes(*lines: str) -> list[Route[Deployment]]:
    """Routes from lines such as `GET /v1/things/{id}`."""
    return [Route(address=line, handler=handler) for line in lines]


def expected(method: str, path: str) -> tuple[Route[Deployment], str] | None:
    """By comparing each route segment by segment; a literal one wins, whatever its methods."""
    matches = [m for r in ROUTES if (m := _matches(r, path)) is not None]
    literal = [match for match in matches if "{" not in match[0].path]
    return next((match for match in literal or matches if _takes(match[0], method)), None)


def _takes(route: Route[Deployment], method: str) -> bool:
    return method == route.method or (method == "HEAD" and route.method == "GET")


def _matches(route: Route[Deployment], path: str) -> tuple[Route[Deployment], str] | None:
    if route.path.endswith("{path*}"):
        before = route.path.removesuffix("{path*}")
        return (route, path.removeprefix(before)) if path.startswith(before) else None
    template, actual = route.path.split("/"), path.split("/")
    if len(template) != len(actual):
        return None
    parameter = ""
    for wanted, got in zip(template, actual, strict=True):
        if wanted.startswith("{") and got:
            parameter = got
        elif wanted != got:
            return None
    return route, parameter


def _paths() -> Iterator[tuple[Route[Deployment], str]]:
    for route in ROUTES:
        before, brace, rest = route.path.partition("{")
        yield route, f"{before}a b.é{rest.partition('}')[2]}" if brace else route.path


def test_a_wildcard_path_takes_everything_below_except_other_routes() -> None:
    """However many segments there are."""
    table = routes("GET /v1/things/{path*}", "GET /v1/things/special", "GET /v1/{id}/act")
    router = Router(table)
    assert router.match("GET", "/v1/things/a/b//c") == (table[0], "a/b//c")
    assert router.match("GET", "/v1/things/special") == (table[1], "")
    assert router.match("GET", "/v1/things/") == (table[0], "")
    with pytest.raises(NotFound):
        router.match("GET", "/v1/things")


every_route = every(("route", "path"), _paths())


@every_route
def test_every_route_of_the_table_is_found_with_its_parameter(
    route: Route[Deployment], path: str
) -> None:
    """The table is the served one."""
    found, parameter = ROUTER.match(route.method, path)
    assert found is route
    assert parameter == ("a b.é" if "{" in route.path else "")


@given(
    st.sampled_from(METHODS),
    st.one_of(
        st.lists(
            st.one_of(
                SEGMENTS, st.sampled_from(["", *{s for r in ROUTES for s in r.path.split("/")}])
            ),
            max_size=6,
        ).map("/".join),
        st.builds(
            lambda route, segment, tail: route.path.replace("{notice_id}", segment) + tail,
            st.sampled_from(ROUTES),
            SEGMENTS,
            st.sampled_from(["", "/", "//", "/x", "?"]),
        ),
    ),
)
def test_any_path_is_matched_segment_by_segment(method: str, path: str) -> None:
    """Against a plain comparison with each route; trailing slashes are other paths."""
    wanted = expected(method, path)
    if wanted is None:
        with pytest.raises((NotFound, MethodNotAllowed)):
            ROUTER.match(method, path)
    else:
        assert ROUTER.match(method, path) == wanted


@given(st.text(max_size=60))
def test_any_text_is_a_path_or_not_found(path: str) -> None:
    """Matching never fails in another way."""
    with suppress(NotFound, MethodNotAllowed):
        ROUTER.match("GET", path)


@every_route
def test_another_method_gets_the_list_of_allowed_ones(route: Route[Deployment], path: str) -> None:
    """405 with Allow, not 404."""
    with pytest.raises(MethodNotAllowed) as refused:
        ROUTER.match("BREW", path)
    allowed = refused.value.allowed.decode().split(", ")
    assert route.method in allowed
    assert ("HEAD" in allowed) == ("GET" in allowed)
    assert allowed == sorted(allowed)


def test_a_literal_segment_wins_over_a_parameter() -> None:
    """Whatever the order of the table."""
    table = routes("GET /v1/things/{id}", "GET /v1/things/special")
    for order in (table, table[::-1]):
        assert Router(order).match("GET", "/v1/things/special") == (table[1], "")
        assert Router(order).match("GET", "/v1/things/other") == (table[0], "other")


def test_methods_of_one_path_are_kept_apart() -> None:
    """HEAD is GET; POST is not."""
    table = routes("GET /v1/things/{id}/act", "POST /v1/things/{id}/act")
    router = Router(table)
    assert router.match("POST", "/v1/things/7/act") == (table[1], "7")
    assert router.match("HEAD", "/v1/things/7/act") == (table[0], "7")
    with pytest.raises(MethodNotAllowed) as refused:
        router.match("PUT", "/v1/things/7/act")
    assert refused.value.allowed == b"GET, HEAD, POST"


def test_an_empty_parameter_is_not_found() -> None:
    """`/v1/things/` is not a thing without a name."""
    router = Router(routes("GET /v1/things/{id}"))
    with pytest.raises(NotFound, match="not found"):
        router.match("GET", "/v1/things/")


def test_every_operation_has_a_name_of_its_own() -> None:
    """Names of operations are names of client methods."""
    names = [route.operation for route in ROUTES if route.operation]
    assert len(names) == len(set(names))
