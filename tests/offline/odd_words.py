"""Odd records, disclosures and notices that a log signed as they are, and the refusing step."""

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256

from tests.offline import builder


def sealed(record: bytes) -> builder.Material:
    """A dossier about these bytes, which the log signed as they are."""
    return replace(builder.material(), record=record, extra=record)


DEEP = b"[" * 20_000
NOT_RECORDS = [
    *(DEEP, b"{", b"[]", b"null", b'"\\ud800"', b"\xff", b'{"v":NaN}', b'{"v":1e999}', b"1" * 5000),
    *(b'{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}", b"\xef\xbb\xbf{}", b'{"\xc3\xa9":1}'),
    b'{"_sd":[],"id":"\\ud800","mode":"live","type":"acknowledgment","v":1}',
]
NO_TIMES = [
    *("13-01T00:00:00.000", "02-30T00:00:00.000", "02-29T00:00:00.000", "00-01T00:00:00.000"),
    *("06-30T23:59:60.000", "06-30T24:00:00.000", "06-30T00:60:00.000", "06-31T00:00:00.000"),
]
WRONG_MEMBERS: list[dict[str, object]] = [
    {"v": True},
    {"v": 2},
    {"type": []},
    {"mode": ["live"]},
    {"id": 1},
    {"id": ""},
    {"id": "ack_01m7xdxbmvex7t29vh2x05yyy"},
    {"id": "ack_01m7xdxbmvex7t29vh2x05yyyq\n"},
    {"id": "ack_01m7xdxbmvex7t29vh2x05yyyq\x1b[2J\u202e"},
    {"id": "ACK_01m7xdxbmvex7t29vh2x05yyyq"},
    {"id": "ack_81m7xdxbmvex7t29vh2x05yyyq"},
    {"id": "ack_01m7xdxbmvex7t29vh2x05yyyu"},
    {"_sd": "x"},
    {"_sd": [1]},
    {"_sd": None},
    {"accepted_at": None},
    {"accepted_at": "2026-11-20T21:31:00Z"},
    {"accepted_at": "2026-11-20T21:31:00.123Z\n"},
    {"account": 1},
    {"capture": None},
    {"notice_version_source": []},
    {"accepted_at": "0000-01-01T00:00:00.000Z"},
    {"test_clock": None},
    {"test_clock": "2026-11-20T21:31:00Z"},
    {"capture": "attested"},
    {"capture": ""},
    {"credential": "passport"},
    {"more": 2**53},
    {"more": 1.5},
]
# Strings that are no disclosures, or that are disclosures in a non-canonical form.
NOT_ENCODED = ["", "WyJhIiwiYiIsMV0=", "WyJh\nIiwiYiIsMV0", "WyJhIiwiYiIsMV1", "WyJhIiwyLDFd"]
NOT_DISCLOSED = [
    *(b'["a","b",1.0]', b'["a","b",1e400]', b'["a","b",1e2]', b'["a","b",-1.5]', b'["a","b",NaN]'),
    *(
        b'["a","b",' + b"1" * 5000 + b"]",
        b'["a","b",9007199254740992]',
        b'["a","b",{"\xc3\xa9":1}]',
    ),
    *(b'["a","b","\\ud800"]', b'["a","\\udc00",1]', b'["\\ud800","b",1]', b'["a","b","\xff"]'),
    *(
        b'["a","b","\x01"]',
        b'["a","b",' + b"[" * 65 + b"]" * 65 + b"]",
        b'["a","b"]',
        b'["a","b",1,2]',
    ),
    *(b'["a","b",' + DEEP + b"]", b'\xef\xbb\xbf["a","b",1]', b"[1,2,3]", b'["a","b",01]'),
    *(b'["a","b",-0]', b'["a","b",{"a":[-0]}]', b'["a","b",{"a":1,"a":2}]', b'["a","b",1E2]'),
    *(b'["a","b",[{"c":{"a":1,"b":[{}],"\\u0061":1}}]]', b'["a","b",{"a":{"a":1},"a":{"a":1}}]'),
    *(b'["a","initials_per_line",1]', b'["a","initials_per_line",["JD",null]]'),
    *(b'["a","initials_per_line",null]', b'["a","initials_per_line",{"length":2}]'),
]
DISCLOSED = [
    *(b'["a","b",9007199254740991]', b'["a","b",' + b"[" * 64 + b"]" * 64 + b"]"),
    *(b'["a","b",[-1,0,10,"-0","1e5",{"a":{"a":1},"b":{"a":1}}]]', b'["a","b",{"2":1,"1":2}]'),
    *(
        b'["a","b",{"":1,"__proto__":{"a":"{\\"a\\":[,:"}}]',
        b'["a","initials_per_line",[" J","-"]]',
    ),
    *(b'[ "a" , "b", {"c": "1.5e3", "d": "\\"1.0"} ]', b'["a","b","\\ud83d\\ude00\\u001b[2J"]'),
]
NOTICE = (
    b'{"attestation_text":"c","bullets":[{"id":"a","text":"b"}],"heading":"d","id":"ab1263",'
    b'"language":%s,"title":"t","version":"2026-01-01"}'
)
ENOUGH = NOTICE % b'"en"'
NOT_NOTICES = [
    *(b"[]", b"null", b"{", b'{"bullets":{}}', b'{"bullets":[null]}', b'{ "bullets":[]}'),
    *(b'{"bullets":[{"id":"a","text":5}]}', b'{"bullets":[{"id":"a","text":"\\ud800"}]}'),
    *(b'{"bullets":[],"bullets":[]}', b'{"title":"","bullets":[]}', NOTICE % b'"\xff"'),
    *(NOTICE % b'"\\ud800"', NOTICE % b"1e400", NOTICE % b"1.0", NOTICE % (b"1" * 5000)),
    *(NOTICE % (b"[" * 64 + b"]" * 64), NOTICE % (b"[" * 1000 + b"]" * 1000), NOTICE % DEEP),
    *(NOTICE % b'"\\u00e9"', NOTICE % b'"\x01"', NOTICE % b"-0", b"\xef\xbb\xbf" + NOTICE % b"1"),
    *(ENOUGH.replace(b'"title":"t",', b""), ENOUGH.replace(b'"t"', b"1"), b'{"bullets":[]}'),
    *(ENOUGH.replace(b'[{"id":"a","text":"b"}]', b"[]"), ENOUGH.replace(b'"c"', b"null")),
    *(ENOUGH.replace(b"ab1263", b"ab1264"), ENOUGH.replace(b"2026-01-01", b"2026-01-02")),
    *(ENOUGH.replace(b'"title"', b'"text_gaps":[1],"title"'),),
    *(ENOUGH.replace(b'"title"', b'"text_gaps":"(E)","title"'),),
]
NOTICES = [
    *(NOTICE % (b"[" * 63 + b"]" * 63), NOTICE % b"9007199254740991", NOTICE % b'"\x7f\\u001f"'),
    *(NOTICE % '"\u202e\u0085\u2028 title"'.encode(), ENOUGH),
    *(ENOUGH.replace(b'"title"', b'"text_gaps":["(E)"],"title"'),),
]


def with_members(changes: dict[str, object]) -> builder.Material:
    return sealed(builder.canonical({**json.loads(builder.material().record), **changes}))


def with_disclosure(encoded: str) -> builder.Material:
    digest = builder.b64url(sha256(encoded.encode()).digest())
    return replace(builder.material(_sd=[digest]), disclosures=[encoded])


def with_notice(notice: bytes) -> builder.Material:
    """A dossier about this notice, whatever lines its record has."""
    lines = [{"id": "a", "digest": sha256(b"b").hexdigest()}] if b'"text":"b"' in notice else []
    record = builder.material(notice_digest=sha256(notice).hexdigest(), bullets=lines).record
    return replace(sealed(record), notice=notice, disclosures=[])


def with_initials(*typed: object) -> builder.Material:
    """A dossier that shows these initials for its two lines."""
    return with_disclosure(builder.disclosure(1, "initials_per_line", list(typed)))


def disclosing(text: bytes) -> builder.Material:
    return with_disclosure(builder.b64url(text))


WORDS: Mapping[str, tuple[builder.Material, str | None]] = {
    **{f"record {n}": (sealed(data), "record") for n, data in enumerate(NOT_RECORDS)},
    **{f"members {changes}": (with_members(changes), "record") for changes in WRONG_MEMBERS},
    **{t: (with_members({"accepted_at": f"2026-{t}Z"}), "record") for t in NO_TIMES},
    **{f"encoded {e!r}": (with_disclosure(e), "disclosures") for e in NOT_ENCODED},
    **{f"not disclosed {d[:40]!r}": (disclosing(d), "disclosures") for d in NOT_DISCLOSED},
    **{f"disclosed {d[:40]!r}": (disclosing(d), None) for d in DISCLOSED},
    **{
        f"no notice {data[:40]!r} {len(data)}": (with_notice(data), "notice")
        for data in NOT_NOTICES
    },
    **{f"notice {data[:40]!r}": (with_notice(data), None) for data in NOTICES},
    "unknown algorithm": (with_members({"_sd_alg": "sha-512"}), "disclosures"),
    "no bullets": (with_members({"bullets": None}), "notice"),
    "largest number": (with_members({"more": 2**53 - 1}), None),
    "many characters": (with_members({"more": '\u2028\x7f\x1f\u00e9\U0001f600/"'}), None),
    **{
        f"initials {text!r}": (with_initials("JD", text), "notice")
        for text in (
            "",
            " ",
            "\u3000",
            "\u200b",
            "\u0301",
            "\u2800",
            "\U0001f3ff",
            "\ue000",
            "J" * 33,
        )
    },
    **{
        f"initials to be seen {text!r}": (with_initials("JD", text), None)
        for text in ("J\u0301", "\U0001f44b\U0001f3ff", "J" * 32, "\U0001f600" * 32, "\u0897", "-")
    },
    "a time of a leap year": (with_members({"accepted_at": "2028-02-29T23:59:59.999Z"}), None),
    "a time of the first year": (with_members({"accepted_at": "0001-01-01T00:00:00.000Z"}), None),
    "a time of the last year": (with_members({"accepted_at": "9999-12-31T23:59:59.999Z"}), None),
    "an identifier of the last time": (
        with_members({"id": "ack_7zzzzzzzzzzzzzzzzzzzzzzzzz"}),
        None,
    ),
    "initials for one line of two": (with_initials("JD"), "notice"),
    "initials for no line": (with_initials(), "notice"),
    "initials for three lines of two": (with_initials("JD", "JD", "JD"), "notice"),
    "another disclosure": (with_disclosure("WyJhIiwiYiIsMV0"), None),
    "a name with tricks": (disclosing(b'["a","\\u001b[2J\\u202e\\n\\u0000\xc2\x9b",1]'), None),
}
