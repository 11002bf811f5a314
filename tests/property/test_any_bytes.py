"""Any bytes as a body are judged alike on both engines; none of them makes the service fail."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.engines import JSON_TYPE, Engines
from tests.support.depth import drawn

pytestmark = [pytest.mark.postgres, pytest.mark.long]
ACKNOWLEDGE = "/v1/notices/ab1263/acknowledge"
VERIFY = "/v1/buyers/verify"
PATHS = (ACKNOWLEDGE, VERIFY)
# The fields of each body: required ones, and the others.
FIELDS = {
    ACKNOWLEDGE: (
        ("initials_per_line",),
        ("session_id", "cbid", "ip", "user_agent"),
    ),
    VERIFY: (
        ("test_mode",),
        ("provider_identity_session_id", "shipping_zip", "subject_reference"),
    ),
}

# Bodies of no operation: invalid JSON, unstorable text, or values that no request can have.
NEVER_WELL_FORMED = {
    "nothing": b"",
    "white space": b" \t\r\n",
    "20,000 opening brackets": b"[" * 20_000,
    "20,000 nested arrays": b"[" * 20_000 + b"]" * 20_000,
    "9,000 nested objects": b'{"a":' * 9_000 + b"1" + b"}" * 9_000,
    "20,000 nested arrays in a field": b'{"session_id":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "a high surrogate alone": rb'{"session_id": "\ud800"}',
    "a low surrogate alone": rb'{"session_id": "\udc00"}',
    "surrogates in the wrong order": rb'{"session_id": "\udc00\ud800"}',
    "a surrogate in a key": rb'{"\ud800": 1}',
    "a surrogate deep inside": rb'{"initials_per_line": [["\ud800"]]}',
    "U+0000 escaped": rb'{"session_id": "\u0000", "test_mode": true}',
    "U+0000 as it is": b'{"session_id": "\x00"}',
    "U+0000 in a key": rb'{"\u0000": 1}',
    "a number beyond all floats": b'{"test_mode": 1e999}',
    "a negative number beyond all floats": b'{"session_id": -1e999}',
    "a number of 5,000 digits": b'{"session_id": ' + b"9" * 5_000 + b"}",
    "NaN": b'{"test_mode": NaN}',
    "Infinity": b'{"test_mode": Infinity}',
    "-Infinity": b'{"session_id": -Infinity}',
    "a key twice": b'{"test_mode": true, "test_mode": true}',
    "a key twice, once escaped": rb'{"test_mode": true, "\u0074est_mode": true}',
    "an unknown key twice": b'{"x": 1, "x": 1}',
    "a key twice deep inside": b'{"session_id": {"x": 1, "x": 2}}',
    "truncated UTF-8": b'{"session_id": "\xe2\x82',
    "truncated UTF-8 in a closed string": b'{"session_id": "\xe2\x82"}',
    "overlong UTF-8": b'{"session_id": "\xc0\xaf"}',
    "UTF-8 of a surrogate": b'{"session_id": "\xed\xa0\x80"}',
    "UTF-8 beyond Unicode": b'{"session_id": "\xf4\x90\x80\x80"}',
    "Latin-1": '{"session_id": "é"}'.encode("latin-1"),
    "a byte order mark": b"\xef\xbb\xbf" + b'{"test_mode": true}',
    "UTF-16": '{"test_mode": true}'.encode("utf-16"),
    "UTF-32": '{"test_mode": true}'.encode("utf-32"),
    "a control character in a string": b'{"session_id": "\x1f"}',
    "a comma too many": b'{"test_mode": true,}',
    "two values": b'{"test_mode": true} {"test_mode": true}',
    "a comment": b'{"test_mode": true} // yes',
    "single quotes": b"{'test_mode': true}",
    "an array": b"[]",
    "a string": b'"test_mode"',
    "a number": b"1",
    "null": b"null",
    "an unknown field": b'{"x": 1}',
}

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=40)
    | st.text(st.characters(categories=["Cs", "Cc", "Co", "Cn"]), max_size=4)
    | st.sampled_from(
        ["94111", "94111-0000", "94111\n", "\u0669" * 5, "JD", "127.0.0.1", "::1", "fe80::1%eth0"]
    )
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
TEXTS = st.text(max_size=300) | st.text(st.characters(categories=["Cc", "Cf", "Co", "Cn"]))
# Values of the right type, that an operation has to look at.
FITTING: dict[str, st.SearchStrategy[Any]] = {
    "initials_per_line": st.just(["JD"] * 4),
    "ip": st.ip_addresses().map(str),
    "shipping_zip": st.from_regex(r"[0-9]{5}(-[0-9]{4})?\n?", fullmatch=True),
    "test_mode": st.just(value=True),
}


@st.composite
def bodies(draw: st.DrawFn, path: str) -> bytes:
    """A body for this path: fitting, odd, broken, or any bytes at all."""
    required, optional = FIELDS[path]
    value: Any = draw(
        st.fixed_dictionaries(
            {name: FITTING[name] for name in required},
            optional={name: FITTING.get(name, TEXTS) for name in optional},
        )
    )
    how = draw(st.integers(0, 9))
    if how == 9:
        return draw(st.binary(max_size=200))
    if how == 8:
        value = draw(VALUES)
    elif how in {6, 7}:
        value |= draw(st.dictionaries(st.sampled_from([*required, *optional, "x"]), VALUES))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    body = bytearray(text.encode("utf-8", "surrogatepass"))
    if how in {4, 5}:
        for _ in range(draw(st.integers(1, 3))):
            place = draw(st.integers(0, len(body)))
            body[place : place + draw(st.integers(0, 2))] = draw(st.binary(max_size=3))
    return bytes(body)


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=drawn(150), deadline=None)
@given(data=st.data())
def test_any_bytes_as_a_body_get_one_verdict_and_never_an_internal_error(
    engines: Engines, path: str, data: st.DataObject
) -> None:
    body = data.draw(bodies(path))

    answers = engines.post(path, body)

    answer = answers[0]
    # 429: one session with more ZIP codes than it may be tried with in a day.
    assert answer.status in {200, 400, 403, 409, 422, 429, 503}
    if answer.status != 200:
        assert answer.code
        assert answer.message.isprintable()
    elif path == ACKNOWLEDGE:
        for side, one in zip((engines.sqlite, engines.postgres), answers, strict=True):
            stored = side.read(f"/v1/acknowledgments/{one.json()['ack_id']}")
            sent = {name: value for name, value in json.loads(body).items() if value is not None}
            sent.pop("ip", None)  # is kept normalised
            assert {name: stored[name] for name in sent} == sent


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("body", NEVER_WELL_FORMED.values(), ids=NEVER_WELL_FORMED)
def test_a_malformed_body_is_refused_as_such(engines: Engines, body: bytes, path: str) -> None:
    answer, _ = engines.post(path, body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.message


@pytest.mark.parametrize("path", PATHS)
def test_the_largest_body_is_judged_and_one_byte_more_is_refused(
    engines: Engines, path: str
) -> None:
    for size, status in [(65_536, 400), (65_537, 413)]:
        for filling in (b"[", b" ", b"\xff"):
            answer, _ = engines.post(path, filling * size)
            assert answer.status == status


@settings(max_examples=drawn(60), deadline=None)
@given(content_type=st.binary(max_size=40) | st.sampled_from([b"application/json; charset=\xff"]))
def test_any_content_type_gets_one_verdict_and_never_an_internal_error(
    engines: Engines, content_type: bytes
) -> None:
    value = bytes(byte for byte in content_type if byte >= 0x20 and byte != 0x7F)
    header = (JSON_TYPE[0], value)
    answer, _ = engines.send(b"POST", VERIFY.encode(), headers=[header], body=b"{}")
    assert answer.code in {"unsupported_media_type", "mode_mismatch"}
