"""Any method, path, query and headers are judged, alike on both engines, and never fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.property.engines import JSON_TYPE, Engines, Header
from tests.support.depth import drawn

pytestmark = [pytest.mark.postgres, pytest.mark.long]
METHODS = st.sampled_from(
    b"GET GET GET POST HEAD PUT DELETE PATCH OPTIONS TRACE get BREW M-SEARCH".split()
)
ODD_BYTES = st.binary(max_size=12) | st.text(max_size=8).map(
    lambda text: text.encode("utf-8", "surrogatepass")
)
QUOTED = ODD_BYTES.map(lambda odd: quote_from_bytes(odd, safe="").encode())
# Characters that may be in a target unquoted, and percent signs that quote nothing.
BARE = st.text("abcXYZ019-._~!$&'()*+,;=:@%/?", max_size=12).map(str.encode)
SEGMENTS = (
    st.sampled_from(
        b"v1 v2 notices ab1263 acknowledge versions acknowledgments buyers verify status healthz "
        b"readyz docs errors openapi.json .well-known security.txt . ..".split()
    )
    | QUOTED
    | BARE
    | st.sampled_from(
        [
            b"ack_7zzzzzzzzzzzzzzzzzzzzzzzzz",
            b"ack_7zzzzzzzzzzzzzzzzzzzzzzzzz%0A",
            b"cbid_test_00000000000000000000000000",
            b"cbid_00000000000000000000000000",
        ]
    )
)
PATHS = st.lists(SEGMENTS, max_size=5).map(lambda segments: b"/" + b"/".join(segments))
NAMES = st.sampled_from(
    b"limit after version session_id cbid notice_id accepted_after accepted_before".split()
)
VALUES = (
    st.sampled_from(
        [
            b"1",
            b"100",
            b"0",
            b"-1",
            b"%2B5",
            b"1e2",
            b"99999999999999999999",
            "٣".encode(),
            b"0001-01-01T00:00:00Z",
            b"0001-01-01T00:00:00%2B23:59",
            b"9999-12-31T23:59:59.999999999Z",
            b"9999-12-31T23:59:59-23:59",
            b"2026-11-20T21:31:60Z",
            b"2026-11-20T24:00:00Z",
            b"2026-11-20t21:31:00z",
            b"2026-11-20T21:31:00.5%2B00:00",
            b"2026-11-20",
            b"ack_7zzzzzzzzzzzzzzzzzzzzzzzzz",
            b"ack_00000000000000000000000000",
            b"ab1263",
            b"2026-01-01-incomplete",
            b"%00",
            b"%ED%A0%80",
            b"a" * 255,
            b"a" * 256,
        ]
    ).map(lambda value: value if value.isascii() else quote_from_bytes(value).encode())
    | QUOTED
    | BARE
)
PAIRS = st.tuples(NAMES | QUOTED, VALUES).map(b"=".join)
QUERIES = st.just(b"") | st.lists(PAIRS, min_size=1, max_size=4).map(b"&".join) | BARE
# Characters that HTTP allows in a header value (RFC 9110 §5.5).
FIELD_VALUES = st.binary(max_size=60).map(
    lambda value: bytes(b for b in value if b in {0x09, 0x20} or 0x21 <= b != 0x7F)
) | st.sampled_from(
    [
        b"*",
        b'"',
        b'""',
        b'W/"x", "y"',
        b"a" * 255,
        b"a" * 256,
        b"a" * 3000,
        b"for=[::1]:80;proto=http",
        b"203.0.113.7, 10.0.0.1, unknown, [::1]:443, ::ffff:1.2.3.4",
        b"," * 2000,
        "Élan 👩‍🚀".encode(),
        b"\xed\xa0\x80",
    ]
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            # A separate Authorization would only hide the checks after the key.
            b"User-Agent X-Forwarded-For Forwarded If-None-Match If-Modified-Since Idempotency-Key "
            b"Accept Accept-Encoding Range Cookie Origin X-Request-Id "
            b"Content-Type X-HTTP-Method-Override".split()
        ),
        FIELD_VALUES,
    ),
    max_size=4,
)
KEYS = st.sampled_from(["test", "test", "live", "csign_sk_test_", "\xff", "a" * 300, "", None])


class Request(NamedTuple):
    """A request, without the key's own bytes."""

    target: bytes
    method: bytes = b"GET"
    headers: Sequence[Header] = ()
    key: str | None = "test"


# Requests that an operation has to look at: the address is its own and the key is good.
PARAMETERS = QUOTED | st.sampled_from([b"ab1263", b"ack_7zzzzzzzzzzzzzzzzzzzzzzzzz"])
OPERATIONS = (
    st.tuples(st.just(b"/v1/notices"), st.just(b"limit after".split()))
    | st.tuples(PARAMETERS.map(b"/v1/notices/%b".__mod__), st.just([b"version"]))
    | st.tuples(PARAMETERS.map(b"/v1/notices/%b/versions".__mod__), st.just(b"limit after".split()))
    | st.tuples(PARAMETERS.map(b"/v1/acknowledgments/%b".__mod__), st.just([b"limit"]))
    | st.tuples(PARAMETERS.map(b"/v1/buyers/%b/status".__mod__), st.just([b"limit"]))
    | st.tuples(
        st.just(b"/v1/acknowledgments"),
        st.just(
            b"limit after session_id cbid notice_id accepted_after accepted_before".split(),
        ),
    )
)


@st.composite
def near(draw: st.DrawFn) -> Request:
    """A request for an operation, its parameters odd."""
    path, names = draw(OPERATIONS)
    chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=3))
    query = b"&".join(name + b"=" + draw(VALUES) for name in chosen)
    target = path + b"?" * bool(query) + query
    return Request(target, headers=draw(HEADERS), key=draw(st.sampled_from(["test", "live"])))


FAR = st.builds(
    Request,
    target=st.builds(lambda path, query: path + b"?" * bool(query) + query, PATHS, QUERIES),
    method=METHODS,
    headers=HEADERS,
    key=KEYS,
)
REQUESTS = near() | FAR


@settings(max_examples=drawn(300), deadline=None)
@given(request=REQUESTS)
@example(request=Request(b"*"))
@example(request=Request(b"//v1/notices"))
@example(request=Request(b"/v1/notices/"))
@example(request=Request(b"/v1/notices/%ff"))
@example(request=Request(b"/v1/notices/a%2Fb"))
@example(request=Request(b"/buyers/a", method=b"PUT"))
@example(request=Request(b"/v1/notices?after=%ff"))
@example(request=Request(b"/v1/acknowledgments?accepted_before=0001-01-01T00:00:00%2B23:59"))
@example(request=Request(b"/v1/acknowledgments?accepted_after=9999-12-31T23:59:59-23:59"))
@example(request=Request(b"/v1/buyers/cbid_test_0000000000000000000000000%0A/status"))
@example(request=Request(b"/v1/notices/ab1263", key="live"))
@example(request=Request(b"/v1/notices", key="\xff"))
def test_any_request_gets_one_verdict_and_never_an_internal_error(
    engines: Engines, request: Request
) -> None:
    answer, _ = engines.send(
        request.method, request.target, key=request.key, headers=request.headers
    )

    assert answer.status in {200, 304, 400, 401, 404, 405, 409, 415}
    if answer.status >= 400 and request.method != b"HEAD":
        help_page = answer.headers["link"]
        assert help_page.endswith(f'/docs/errors#{answer.code}>; rel="help"')


@settings(max_examples=drawn(200), deadline=None)
@given(headers=HEADERS)
def test_no_header_fails_an_acknowledgment(engines: Engines, headers: list[Header]) -> None:
    """Except the headers that matter: the type of the body, and the idempotency key."""
    pointed = {b"Content-Type", b"Idempotency-Key"}
    sent = [(name, value) for name, value in headers if name not in pointed]
    body = b'{"initials_per_line": ["JD", "JD", "JD", "JD"]}'

    answer, _ = engines.send(
        b"POST", b"/v1/notices/ab1263/acknowledge", headers=[JSON_TYPE, *sent], body=body
    )

    assert answer.status == 200
    assert engines.sqlite.read(f"/v1/acknowledgments/{answer.json()['ack_id']}")["ip"]
