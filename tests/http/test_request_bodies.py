"""Strict bodies: deviations are refused, and the message names the place."""

from __future__ import annotations

import json

import httpx2
import pytest

from tests.http.calls import SHIPPED_NOTICE, acknowledged, message, refusal, verify

pytestmark = pytest.mark.one_engine

ACKNOWLEDGE = f"/v1/notices/{SHIPPED_NOTICE}/acknowledge"
VERIFY = "/v1/buyers/verify"
LINES = '"initials_per_line":["A","B","C","D"]'

BROKEN = {
    "nothing": b"",
    "white space": b" ",
    "no JSON": b"initials",
    "cut short": b'{"initials_per_line":["A"',
    "more after the end": b"{} {}",
    "comment": b"{/* */}",
    "single quotes": b"{'a': 1}",
    "trailing comma": b'{"a":1,}',
    "bad UTF-8": b'{"session_id":"\xff"}',
    "overlong UTF-8": b'{"session_id":"\xc0\x80"}',
    "UTF-16": '{"test_mode":true}'.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf{}",
    "surrogate in UTF-8": b'{"session_id":"\xed\xa0\x80"}',
    "raw control character": b'{"session_id":"\x01"}',
    "NaN": b'{"test_mode":NaN}',
    "infinity": b'{"test_mode":-Infinity}',
    "number beyond measure": b'{"test_mode":1e999}',
    "number of 5000 digits": b'{"test_mode":' + b"9" * 5000 + b"}",
    "nested too deeply": b"[" * 20_000 + b"]" * 20_000,
    "array": b"[]",
    "string": b'"text"',
    "null": b"null",
}

NAMED = {
    "unknown field": (f'{{{LINES},"useragent":"x"}}', "$.useragent"),
    "unknown field with odd name": (f'{{{LINES},"odd name":"x"}}', '$["odd name"]'),
    "field of another operation": (f'{{{LINES},"test_mode":true}}', "$.test_mode"),
    "duplicate key": (f'{{{LINES},"session_id":"a","session_id":"a"}}', "$.session_id"),
    "duplicate key, escaped": (f'{{{LINES},"cbid":"a","\\u0063bid":"b"}}', "$.cbid"),
    "required field missing": ('{"session_id":"a"}', "$.initials_per_line"),
    "required field null": ('{"initials_per_line":null}', "$.initials_per_line"),
    "string for an array": ('{"initials_per_line":"ABCD"}', "$.initials_per_line"),
    "object for an array": ('{"initials_per_line":{"0":"A"}}', "$.initials_per_line"),
    "number in an array": ('{"initials_per_line":["A","B",3,"D"]}', "$.initials_per_line[2]"),
    "null in an array": ('{"initials_per_line":["A",null]}', "$.initials_per_line[1]"),
    "number for a string": (f'{{{LINES},"session_id":1}}', "$.session_id"),
    "boolean for a string": (f'{{{LINES},"cbid":true}}', "$.cbid"),
    "lone surrogate": (f'{{{LINES},"session_id":"\\ud800"}}', "$.session_id"),
    "reversed surrogates": (f'{{{LINES},"cbid":"\\udc00\\ud800"}}', "$.cbid"),
    "U+0000": (f'{{{LINES},"user_agent":"a\\u0000b"}}', "$.user_agent"),
    "U+0000 in initials": (
        '{"initials_per_line":["A","B","C","\\u0000"]}',
        "$.initials_per_line[3]",
    ),
    "over-long user agent": (f'{{{LINES},"user_agent":"{"x" * 1025}"}}', "$.user_agent"),
    "over-long version": (f'{{{LINES},"notice_version":"{"x" * 256}"}}', "$.notice_version"),
}


def post(client: httpx2.Client, path: str, body: bytes | str) -> httpx2.Response:
    return client.post(path, content=body, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
def test_anything_but_a_json_object_is_an_invalid_request(
    client: httpx2.Client, body: bytes
) -> None:
    for path in (ACKNOWLEDGE, VERIFY):
        assert refusal(post(client, path, body)) == (400, "invalid_request"), path


@pytest.mark.parametrize(("body", "place"), NAMED.values(), ids=NAMED.keys())
def test_a_wrong_field_is_named(client: httpx2.Client, body: str, place: str) -> None:
    answer = post(client, ACKNOWLEDGE, body)
    assert refusal(answer) == (400, "invalid_request")
    assert place in message(answer)


@pytest.mark.parametrize("value", ["true", 1, 0, [], {}])
def test_test_mode_is_a_boolean(client: httpx2.Client, value: object) -> None:
    answer = verify(client, test_mode=value)
    assert refusal(answer) == (400, "invalid_request")
    assert "$.test_mode" in message(answer)


def test_null_on_an_optional_field_is_the_same_as_leaving_it_out(client: httpx2.Client) -> None:
    optional = ("session_id", "cbid", "ip", "user_agent", "notice_version")
    given = acknowledged(client, **dict.fromkeys(optional))
    left_out = acknowledged(client)
    for stored in (given, left_out):
        del stored["ack_id"], stored["accepted_at"], stored["evidence"]
    assert given == left_out
    none = {"provider_identity_session_id": None, "shipping_zip": None, "subject_reference": None}
    assert verify(client, **none).content == verify(client).content


def test_a_pair_of_escaped_surrogates_is_one_character(client: httpx2.Client) -> None:
    answer = post(client, ACKNOWLEDGE, f'{{{LINES},"session_id":"\\ud83d\\udc4d"}}')
    assert answer.status_code == 200
    stored = client.get("/v1/acknowledgments").json()["data"][0]
    assert stored["session_id"] == "👍"


def test_values_come_back_unchanged(client: httpx2.Client) -> None:
    odd = "\t\"\\/\u2028\u2029\u007f\u0080\uffff\U0010ffff</script>' OR 1=1;--"
    body = json.dumps({"initials_per_line": [odd[:32]] * 4, "session_id": odd}, ensure_ascii=False)
    assert post(client, ACKNOWLEDGE, body).status_code == 200
    stored = client.get("/v1/acknowledgments").json()["data"][0]
    assert (stored["session_id"], stored["initials_per_line"]) == (odd, [odd[:32]] * 4)


def test_a_message_about_a_body_is_printable_and_short(client: httpx2.Client) -> None:
    """Whatever the body was."""
    long = "k" * 10_000
    for body in (f'{{"{long}":1}}', f'{{"{long}":1,"{long}":1}}', '{"\\u0007\\u2028":1}'):
        answer = post(client, ACKNOWLEDGE, body)
        assert refusal(answer) == (400, "invalid_request")
        assert message(answer).isprintable()
        assert len(message(answer)) < 1000
