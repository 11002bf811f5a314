"""Reading bodies: any bytes become a value or InvalidRequest, and nothing else ever."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from countersign.base.errors import InvalidRequest
from countersign.base.http.body import parse_body, path_to
from countersign.base.http.schemas import Request
from countersign.core.acknowledgments.schemas import AcknowledgmentRequest
from countersign.core.buyers.schemas import BuyerVerificationRequest
from countersign.core.sandbox.schemas import ClockAdvance, EventTrigger
from tests.support.every import every

SCHEMAS = [AcknowledgmentRequest, BuyerVerificationRequest]
schemas = pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.__name__)


class Anything(Request, frozen=True, kw_only=True):
    """A body that accepts any JSON, so that only the parser can refuse."""

    value: Any = None


class Inner(Request, frozen=True, kw_only=True):
    name: Annotated[str, msgspec.Meta(max_length=3)]


class Outer(Request, frozen=True, kw_only=True):
    inner: list[Inner]


def refusal(body: bytes | str, schema: type = Anything) -> str:
    """The message of the refusal."""
    with pytest.raises(InvalidRequest) as caught:
        parse_body(body.encode() if isinstance(body, str) else body, schema)
    assert caught.value.code == "invalid_request"
    message = caught.value.message
    message.encode()  # it has to fit into an answer
    return message


JSON_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
JSON_VALUES = st.recursive(
    JSON_SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["initials_per_line", "session_id", "ip", "shipping_zip", "test_mode", "useragent"]
)
# As json.dumps writes it: with NaN and Infinity, and lone surrogates as escapes or as bytes.
BODIES = st.one_of(
    st.binary(max_size=60),
    JSON_VALUES.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(FIELDS, JSON_VALUES, max_size=4).map(
        lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    ),
    st.text('{}[],:"\\u0d8e-+.1 \n', max_size=30).map(str.encode),
)

NASTY = {
    "empty": b"",
    "white space": b" \n",
    "nested arrays": b"[" * 20_000,
    "nested and closed": b'{"value":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "nested objects": b'{"value":' * 5_000 + b"1" + b"}" * 5_000,
    "bad UTF-8": b'{"value":"\xff"}',
    "a surrogate in UTF-8": b'{"value":"\xed\xa0\x80"}',
    "an overlong NUL in UTF-8": b'{"value":"\xc0\x80"}',
    "a lone surrogate": b'{"value":"\\ud800"}',
    "a reversed pair": b'{"value":"\\udc00\\ud800"}',
    "a lone surrogate in a key": b'{"value":{"\\udfff":1}}',
    "a lone surrogate in an unknown field": b'{"\\ud800":1}',
    "U+0000": b'{"value":"\\u0000"}',
    "U+0000 as a byte": b'{"value":"\x00"}',
    "U+0000 in a key": b'{"value":{"a\\u0000":1}}',
    "NaN": b'{"value":NaN}',
    "Infinity": b'{"value":Infinity}',
    "minus Infinity": b'{"value":-Infinity}',
    "a control character": b'{"value":"a\nb"}',
    "a byte order mark": b'\xef\xbb\xbf{"value":1}',
    "UTF-16": '{"value":1}'.encode("utf-16"),
    "UTF-16 without a mark": '{"value":1}'.encode("utf-16-le"),
    "UTF-32": '{"value":1}'.encode("utf-32-be"),
    "two values": b'{"value":1}{"value":2}',
    "a trailing comma": b'{"value":1,}',
    "single quotes": b"{'value':1}",
    "a comment": b'{"value":1} // x',
    "a leading zero": b'{"value":01}',
    "a bare word": b"undefined",
    "an endless number": b'{"value":' + b"9" * 5_000 + b"}",
    "an array": b"[]",
    "a string": b'"value"',
    "null": b"null",
}


@every("body", NASTY.values())
def test_unacceptable_json_is_refused(body: bytes) -> None:
    """Also where every value would be taken: reading alone refuses it."""
    refusal(body)


@schemas
@given(body=BODIES)
@example(body=b'{"initials_per_line":["\\ud800"]}')
@example(body=b'{"initials_per_line":[1e999]}')
@example(body=b'{"\\ud800`":{"`":"\\u0000"}}')
def test_any_bytes_are_a_value_or_an_invalid_request(
    schema: type[AcknowledgmentRequest | BuyerVerificationRequest], body: bytes
) -> None:
    """There is no third outcome, and an accepted value can be stored on both engines."""
    try:
        found = parse_body(body, schema)
    except InvalidRequest as refused:
        refused.message.encode()
    else:
        assert isinstance(found, schema)
        for text in _strings(msgspec.to_builtins(found)):
            assert "\x00" not in text
            text.encode()


def _strings(value: Any) -> list[str]:  # noqa: ANN401 - any JSON
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.items() for part in item for text in _strings(part)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return []


def test_a_number_too_large_for_a_float_is_no_number_of_ours() -> None:
    """1e999 is well-formed JSON; no field takes it."""
    assert "$.session_id" in refusal('{"initials_per_line":[],"session_id":1e999}', SCHEMAS[0])
    assert "$.initials_per_line[0]" in refusal('{"initials_per_line":[1e999]}', SCHEMAS[0])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1), max_size=32)))
def test_initials_are_read_exactly_as_they_were_sent(lines: list[str]) -> None:
    """Escaped or not: no character is changed, dropped or normalised."""
    for ascii_only in (True, False):
        body = json.dumps({"initials_per_line": lines}, ensure_ascii=ascii_only).encode()
        assert parse_body(body, AcknowledgmentRequest).initials_per_line == lines


def test_a_pair_of_surrogates_is_one_character() -> None:
    """Escapes of astral characters are ordinary JSON."""
    body = rb'{"initials_per_line":["\ud83d\udd8b"]}'
    assert parse_body(body, AcknowledgmentRequest).initials_per_line == ["\U0001f58b"]


def test_null_on_an_optional_field_is_the_field_left_out() -> None:
    """Clients whose language has no absent member."""
    given_ = {"initials_per_line": ["A"]} | dict.fromkeys(
        ["session_id", "cbid", "ip", "user_agent", "notice_version"]
    )
    assert parse_body(json.dumps(given_).encode(), AcknowledgmentRequest) == (
        AcknowledgmentRequest(initials_per_line=["A"])
    )


@pytest.mark.parametrize("depth", [0, 1, 2, 50])
def test_a_repeated_key_is_refused_at_any_depth(depth: int) -> None:
    """The reader could not tell which of the two counts."""
    inner = '{"a":1,"b":2,"a":3}'
    body = '{"value":' + '[{"x":' * depth + inner + "}]" * depth + "}"
    assert "Duplicate" in refusal(body)


def test_a_key_repeated_in_another_spelling_is_repeated() -> None:
    """An escape is another way to write the same name."""
    assert "Duplicate" in refusal(r'{"value":1,"v\u0061lue":2}')


def test_the_same_key_in_two_objects_is_not_repeated() -> None:
    """Only members of one object share their names."""
    assert parse_body(b'{"value":[{"a":1},{"a":2}]}', Anything).value == [{"a": 1}, {"a": 2}]


@every(
    ("body", "schema", "place"),
    [
        ({"initials_per_line": ["A", "B", 3]}, SCHEMAS[0], "$.initials_per_line[2]"),
        ({"initials_per_line": ["A", "B" * 33]}, SCHEMAS[0], "$.initials_per_line[1]"),
        ({"initials_per_line": ["A", None]}, SCHEMAS[0], "$.initials_per_line[1]"),
        ({"initials_per_line": "AB"}, SCHEMAS[0], "$.initials_per_line"),
        ({"initials_per_line": None}, SCHEMAS[0], "$.initials_per_line"),
        ({}, SCHEMAS[0], "$.initials_per_line"),
        ({"initials_per_line": [], "useragent": "x"}, SCHEMAS[0], "$.useragent"),
        ({"initials_per_line": [], "session_id": "x" * 256}, SCHEMAS[0], "$.session_id"),
        ({"initials_per_line": [], "cbid": 1}, SCHEMAS[0], "$.cbid"),
        ({"initials_per_line": [], "user_agent": "x" * 1025}, SCHEMAS[0], "$.user_agent"),
        ({"shipping_zip": "9021"}, SCHEMAS[1], "$.shipping_zip"),
        ({"shipping_zip": "٩٠٢١٠"}, SCHEMAS[1], "$.shipping_zip"),
        ({"shipping_zip": "90210-12345"}, SCHEMAS[1], "$.shipping_zip"),
        ({"shipping_zip": 90210}, SCHEMAS[1], "$.shipping_zip"),
        ({"test_mode": "true"}, SCHEMAS[1], "$.test_mode"),
        ({"test_mode": 1}, SCHEMAS[1], "$.test_mode"),
        ({"provider_identity_session_id": ""}, SCHEMAS[1], "$.provider_identity_session_id"),
        ({"inner": [{"name": "a"}, {"name": "abcd"}]}, Outer, "$.inner[1].name"),
        ({"inner": [{"name": "a"}, {}]}, Outer, "$.inner[1].name"),
        ({"inner": [{"name": "a", "nick": 1}]}, Outer, "$.inner[0].nick"),
        ({"inner": [], "a` - at `b": 1}, Outer, '$["a` - at `b"]'),
        ({"inner": [], "odd name": 1}, Outer, '$["odd name"]'),
        ({"inner": [], "é": 1}, Outer, '$["\\u00e9"]'),
    ],
)
def test_the_message_names_the_field(body: object, schema: type, place: str) -> None:
    """A developer finds the mistake from the message alone."""
    assert f"`{place}`" in refusal(json.dumps(body), schema)


@pytest.mark.parametrize("text", ["\\u0000", "\\ud800"])
def test_the_message_names_the_unstorable_value(text: str) -> None:
    """Both engines have to give the same verdict: PostgreSQL keeps no U+0000."""
    body = f'{{"value":[1,{{"a b":"x{text}"}}]}}'
    assert '`$.value[1]["a b"]`' in refusal(body)


def test_the_lengths_are_counted_in_characters() -> None:
    """32 astral characters are 32, however many bytes or UTF-16 units they have."""
    body = json.dumps({"initials_per_line": ["\U0001f58b" * 32]}, ensure_ascii=False).encode()
    assert len(parse_body(body, AcknowledgmentRequest).initials_per_line[0]) == 32


@given(st.text(max_size=80))
def test_a_path_is_printable_ascii_and_short(key: str) -> None:
    """A key of any kind and length may be quoted in a message and in a log."""
    path = path_to("$", key)
    assert path.isascii()
    assert path.isprintable()
    assert len(path) < 64 * 12 + 8


@pytest.mark.parametrize(
    ("body", "schema", "words"),
    [
        ({"shipping_zip": "9021"}, SCHEMAS[1], "a value such as 94105 or 94105-1234"),
        ({"test_mode": "true"}, SCHEMAS[1], "Expected true or false, got a string"),
        ({"initials_per_line": "AB"}, SCHEMAS[0], "Expected an array, got a string"),
        ({"initials_per_line": ["A" * 33]}, SCHEMAS[0], "Expected at most 32 characters"),
        ({"type": "buyer.revokd"}, EventTrigger, "buyer.revoked"),
        ({"to": "tomorrow"}, ClockAdvance, "such as 2026-11-20T21:31:00Z"),
        ({"useragent": "x", "initials_per_line": []}, SCHEMAS[0], "user_agent"),
    ],
)
def test_the_message_names_the_expected_value(body: object, schema: type, words: str) -> None:
    """In words and with an example or the possible values, not as a regular expression."""
    message = refusal(json.dumps(body), schema)
    assert words in message
    assert "`str`" not in message
    assert "regex" not in message


def test_several_mistakes_are_named_at_once() -> None:
    """A developer corrects them in one go; a long list is cut."""
    message = refusal(b'{"shipping_zip":"9","useragent":1,"test_mode":"x"}', SCHEMAS[1])
    assert [f"`$.{name}`" in message for name in ("shipping_zip", "useragent", "test_mode")] == (
        [True] * 3
    )
    many = refusal(json.dumps({f"x{number}": 1 for number in range(9)}), SCHEMAS[1])
    assert many.endswith("And more.")
