"""Make the vectors of the record format from their inputs: `python spec/vectors/make_vectors.py`.

Reads `record/good/*/input.json`, and writes beside each what the service makes of it, and
`record/broken/*.json`. Clock and randomness come from the input, so a run changes nothing unless
the format has changed; and a format that is published does not change, it gets a new version.
"""

# ruff: noqa: INP001, T201 - a script beside the files that it makes

from __future__ import annotations

import asyncio
import json
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from countersign.base.values import Mode
from countersign.core.access.clocks import REAL_TIME
from countersign.core.access.idempotency import NONCE_BYTES
from countersign.core.access.key import KeyKind, Principal
from countersign.core.access.secrets import SECRET_BYTES, DeploymentSecret
from countersign.core.acknowledgments.acknowledge import acknowledge, begin, make_hosted
from countersign.core.acknowledgments.model import Client, Origin, Source, Submission
from countersign.core.log.record import SEAL_ENTROPY, NewRecord
from countersign.core.notices.model import (
    NoticeContent,
    NoticeEdition,
    notice_digest,
    published_bytes,
)
from countersign.core.parties import Bound
from countersign.core.vault.vault import DataKey
from countersign_evidence.canonical import canonical_json
from countersign_evidence.disclosure import b64url_each
from countersign_evidence.process import Process

ROOT = Path(__file__).parent / "record"
_KEY = DataKey(bytes(16), bytes(32))


@dataclass
class _Room:
    """All that an acknowledgment asks of its room: clock, randomness, keys, database, journal."""

    time_ns_: int
    given: bytes
    secret: DeploymentSecret
    bullet_digests: dict[str, Any] = field(default_factory=dict)
    bound: dict[tuple[str, Mode], Bound] = field(default_factory=dict)
    stored: list[NewRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log = self.access = self.clock = self.vault = self.database = self.journal = self
        self.sequencer = self

    def time_ns(self) -> int:
        return self.time_ns_

    def entropy(self, size: int) -> bytes:
        # What encrypts disclosures and kept response at rest is drawn last, and is no part of the
        # format.
        drawn = self.given + bytes(SEAL_ENTROPY + NONCE_BYTES)
        if size != len(drawn):
            msg = "the input gives another amount of entropy"
            raise ValueError(msg)
        return drawn

    def signing(self, _: Mode) -> tuple[()]:
        """No key, so no receipt, which is no part of a record."""
        return ()

    async def read(self, _act: object, *given: Any) -> object:  # noqa: ANN401
        """What is in force for an account; of checkout sessions and orders there are none."""
        return self.bound.get((given[0], given[1]))

    async def data_key(self, *_: object) -> DataKey:
        return _KEY

    async def write_batched(
        self, _act: object, item: object, make: Callable[[list[Any]], list[Any]]
    ) -> object:
        [made] = make([item])
        self.stored.append(made)
        return made


@dataclass(frozen=True)
class Made:
    """What the service makes of one acknowledgment."""

    notice: bytes
    record: bytes
    disclosures: list[str]

    def files(self) -> dict[str, bytes]:
        """The files of a good vector."""
        digest = sha256(self.record)
        return {
            "notice.json": self.notice,
            "record.json": self.record,
            "disclosures.json": _pretty(self.disclosures),
            "digests.json": _pretty(
                {
                    "notice_sha256_hex": sha256(self.notice).hexdigest(),
                    "record_sha256_base64": b64encode(digest.digest()).decode(),
                    "record_sha256_hex": digest.hexdigest(),
                }
            ),
        }


def make(given: dict[str, Any]) -> Made:
    """Run the service on one input."""
    secret = DeploymentSecret(bytes(SECRET_BYTES))
    world = _Room(given["time_ns"], bytes.fromhex(given["entropy_hex"]), secret)
    content = msgspec.convert(given["notice"], NoticeContent)
    body = published_bytes(content)
    notice = NoticeEdition(
        content=content,
        digest=notice_digest(body),
        effective_at=datetime(2026, 1, 1, tzinfo=UTC),
        events=(),
    )
    principal = Principal(
        key_id="key_of_the_vectors",
        account_id=given["account"],
        mode=Mode(given["mode"]),
        scopes=frozenset(),
        credential=KeyKind(given["key_kind"]).credential if "key_kind" in given else "",
    )
    bound = Bound(**given.get("bound", {}))
    world.bound[given["account"], Mode(given["mode"])] = bound
    origin = dict(given["origin"])
    for name in ("ip_source", "user_agent_source"):
        origin[name] = None if origin[name] is None else Source(origin[name])
    submission = Submission(
        initials_per_line=given["initials_per_line"],
        session_id=given["session_id"],
        cbid=given["cbid"],
        notice_version=given["notice_version"],
        origin=Origin(**origin),
        order_reference=given.get("order_reference"),
        initials_from=[Client(*one) for one in given.get("initials_from", ())],
    )
    room: Any = world  # all that is asked of a room here, not all that it is
    if "process" in given:
        process = msgspec.convert(given["process"], Process)
        begun = asyncio.run(begin(room, principal, notice, submission, REAL_TIME))
        record: NewRecord = asyncio.run(make_hosted(begun, process))
    else:
        asyncio.run(acknowledge(room, principal, notice, submission))
        (record,) = world.stored
    written = record.body if "bound" in given else _version_1(record.body)
    return Made(body, written, b64url_each(record.disclosures))


def _version_1(record: bytes) -> bytes:
    """The record as it was before there were records of parties to bind."""
    added = {"operator_record", "account_record", "capture_process"}
    members = {name: value for name, value in json.loads(record).items() if name not in added}
    return canonical_json({**members, "v": 1})


# --- broken on purpose --------------------------------------------------------------------------


def _with_bit(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def _redisclosed(made: Made, number: int, change: Callable[[list[Any]], None]) -> list[str]:
    """The disclosures with the content of one of them changed and encoded again."""
    content = _content(made.disclosures[number])
    change(content)
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    again = urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
    return [again if n == number else d for n, d in enumerate(made.disclosures)]


def _set(place: int, value: object) -> Callable[[list[Any]], None]:
    def change(content: list[Any]) -> None:
        content[place] = value

    return change


def _reordered(record: bytes) -> bytes:
    members = json.loads(record)
    return json.dumps(
        dict(reversed(members.items())), ensure_ascii=False, separators=(",", ":")
    ).encode()


def _spaced(record: bytes) -> bytes:
    return json.dumps(json.loads(record), ensure_ascii=False).encode()


def _content(encoded: str) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))


def _value(made: Made, number: int) -> Any:  # noqa: ANN401 - any JSON
    return _content(made.disclosures[number])[2]


RECORD = "record_digest_mismatch"
NOTICE = "notice_digest_mismatch"
BULLETS = "bullet_digest_mismatch"
UNBOUND = "disclosure_not_bound"
REPEATED = "disclosure_repeated"


def broken(made: Made) -> dict[str, dict[str, Any]]:
    """What can happen to evidence, by name: what was changed, and what has to be noticed."""
    record, shown, notice = made.record, made.disclosures, made.notice
    members = json.loads(record)
    other_line = notice.replace(b"more than three", b"more than four")
    other_salt = urlsafe_b64encode(bytes(16)).rstrip(b"=").decode()

    def case(
        change: str,
        *findings: str,
        record: bytes = record,
        disclosures: list[str] = shown,
        notice: bytes = notice,
    ) -> dict[str, Any]:
        return {
            "change": change,
            "disclosures": disclosures,
            "findings": sorted(findings),
            "notice_base64": b64encode(notice).decode(),
            "record_base64": b64encode(record).decode(),
            "record_sha256_hex": sha256(made.record).hexdigest(),
        }

    return {
        "record-one-bit": case(
            "one bit of the time in the record",
            RECORD,
            record=_with_bit(record, record.index(members["accepted_at"].encode()) + 18),
        ),
        "record-reordered": case(
            "the same members in another order", RECORD, record=_reordered(record)
        ),
        "record-white-space": case(
            "the same members with white space", RECORD, record=_spaced(record)
        ),
        "record-newline": case("a newline at the end", RECORD, record=record + b"\n"),
        "record-other-mode": case(
            "test evidence passed off as live",
            RECORD,
            record=record.replace(b'"mode":"test"', b'"mode":"live"'),
        ),
        "notice-one-bit": case(
            "one bit of the notice's title",
            NOTICE,
            notice=_with_bit(notice, notice.index(b'"title":"') + 9),
        ),
        "notice-other-words": case(
            "other words on the first line of the notice", NOTICE, BULLETS, notice=other_line
        ),
        "disclosure-other-initials": case(
            "other initials on the last line",
            UNBOUND,
            disclosures=_redisclosed(made, 0, _set(2, [*_value(made, 0)[:-1], "XX"])),
        ),
        "disclosure-other-salt": case(
            "the right value under another salt",
            UNBOUND,
            disclosures=_redisclosed(made, 1, _set(0, other_salt)),
        ),
        "disclosure-other-name": case(
            "the session identifier passed off as the cbid",
            UNBOUND,
            disclosures=_redisclosed(made, 1, _set(1, "cbid"))[:2],
        ),
        "disclosure-padded": case(
            "base64url with padding: the same content in other characters",
            UNBOUND,
            disclosures=[shown[0] + "=", *shown[1:]],
        ),
        "disclosure-repeated": case(
            "a disclosure shown twice", REPEATED, disclosures=[*shown, shown[0]]
        ),
    }


def typed() -> dict[str, tuple[str, str, str]]:
    """By name: what is typed for the last line, in words and exactly, and the finding."""
    blanks = {
        "nothing": ("nothing", ""),
        "space": ("a space that does not break", "\u00a0"),
        "zero-width": ("joiners of no width", "\u200b\u200d"),
        "mark": ("a combining mark alone", "\u0301"),
        "braille": ("the blank of Braille", "\u2800"),
        "modifier": ("an emoji modifier alone", "\U0001f3fb"),
    }
    found = {
        f"initials-{name}": (f"the initials of the last line are {what}", text, "initials_blank")
        for name, (what, text) in blanks.items()
    }
    long = ("the initials of the last line have 33 characters", "J" * 33, "initials_too_long")
    return {**found, "initials-33": long}


def rebound(made: Made, name: str, change: Callable[[Any], Any]) -> Made:
    """The same with another value of a field, which the record binds as it would the right one."""
    number = [_content(encoded)[1] for encoded in made.disclosures].index(name)
    value = change(_value(made, number))
    disclosures = _redisclosed(made, number, _set(2, value))
    members = json.loads(made.record)
    members["_sd"] = sorted(
        urlsafe_b64encode(sha256(one.encode()).digest()).rstrip(b"=").decode()
        for one in disclosures
    )
    return Made(made.notice, canonical_json(members), disclosures)


def _with(**members: object) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda value: {**value, **members}


def _without(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda value: {n: v for n, v in value.items() if n != name}


def malformed_processes() -> dict[str, tuple[str, Callable[[Any], Any]]]:
    """By name: what is wrong with the process of a hosted acknowledgment, and how it comes so."""
    time = "2026-11-20T21:30:00.123Z"
    line = {"shown_at": time, "initialed_at": time, "changed_at": None, "changes": 0}
    return {
        "array": ("the process is an array", lambda value: [value]),
        "null": ("the process is null", lambda _: None),
        "no-consent": ("the consent is missing", _without("consent")),
        "no-viewport": ("a member that may be null is missing", _without("viewport")),
        "time": ("a time without milliseconds", _with(opened_at="2026-11-20T21:27:05Z")),
        "time-newline": ("a newline after a time", _with(reviewed_at=time + "\n")),
        "script": ("a text in the place of a boolean", _with(script="true")),
        "viewport": ("a viewport without its height", _with(viewport={"width": 360})),
        "changes": ("a boolean as a number", _with(lines=[{**line, "changes": True}] * 4)),
        "changes-negative": ("a negative number", _with(lines=[{**line, "changes": -1}] * 4)),
        "line": (
            "a line that was never initialed",
            _with(lines=[{**line, "initialed_at": None}] * 4),
        ),
        "time-february": ("a 30th of February", _with(opened_at="2026-02-30T21:27:05.123Z")),
        "time-sixty": ("a second 60", _with(reviewed_at="2026-06-30T23:59:60.000Z")),
        "method": ("a number as a method", _with(lines=[{**line, "method": 1}] * 4)),
        "method-null": ("a method that is null", _with(lines=[{**line, "method": None}] * 4)),
        "claim": ("a claim without its time", _with(claimed=[{"line": 1, "event": "shown"}])),
    }


def _ended(text: str, initials: list[str]) -> list[str]:
    return [*initials[:-1], text]


def bound_case(change: str, finding: str, broken: Made) -> dict[str, Any]:
    """A case in which only a value is wrong: the record binds it, and has the given digest."""
    return {
        "change": change,
        "disclosures": broken.disclosures,
        "findings": [finding],
        "notice_base64": b64encode(broken.notice).decode(),
        "record_base64": b64encode(broken.record).decode(),
        "record_sha256_hex": sha256(broken.record).hexdigest(),
    }


def broken_hosted(made: Made, other: Made) -> dict[str, dict[str, Any]]:
    """The same of a hosted acknowledgment; `other` is another one."""
    case = bound_case
    swapped = [*made.disclosures[:-1], other.disclosures[-1]]
    edited = _redisclosed(
        made, len(swapped) - 1, _set(2, {**_value(made, -1), "binding": "passkey"})
    )
    return {
        "process-other-record": case(
            "the process of another record", UNBOUND, replace(made, disclosures=swapped)
        ),
        "process-other-binding": case(
            "another binding in the process", UNBOUND, replace(made, disclosures=edited)
        ),
        "process-lines-too-few": case(
            "three lines in the process for four of the notice",
            "process_lines_mismatch",
            rebound(made, "process", lambda value: {**value, "lines": value["lines"][:3]}),
        ),
        **{
            f"process-{name}": case(change, "process_malformed", rebound(made, "process", how))
            for name, (change, how) in malformed_processes().items()
        },
    }


# --- files --------------------------------------------------------------------------------------


def _pretty(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=isinstance(value, dict))
    return text.encode() + b"\n"


def generated_files() -> dict[str, bytes]:
    """Every file that is made from the inputs, by its path under `record/`."""
    files: dict[str, bytes] = {}
    made: dict[str, Made] = {}
    for given in sorted((ROOT / "good").glob("*/input.json")):
        name = given.parent.name
        made[name] = make(json.loads(given.read_bytes()))
        files |= {f"good/{name}/{file}": data for file, data in made[name].files().items()}
    cases = broken(made["full"]) | broken_hosted(made["hosted"], made["hosted-component"])
    for name, (change, text, finding) in typed().items():
        last = rebound(made["full"], "initials_per_line", partial(_ended, text))
        cases[name] = bound_case(change, finding, last)
    for name, case in cases.items():
        files[f"broken/{name}.json"] = _pretty(case)
    return files


def main() -> None:
    """Write the files, and say which of them changed."""
    for name, data in generated_files().items():
        path = ROOT / name
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            print(f"written: {name}")


if __name__ == "__main__":
    main()
