"""Records that bind or describe parties: the readers judge any change of their members alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign_evidence.canonical import canonical_json
from countersign_evidence.contents import BINDING_TYPES, RECORD_TYPES, check_record
from countersign_evidence.errors import EvidenceError
from countersign_evidence.proof import parse_proof

LOG = Path(__file__).parents[2] / "spec" / "vectors" / "log"
ORIGIN = "evidence.example.com:8443/v1/log/test/2"
DIGEST = "0123456789abcdef" * 4
NAMES = (
    *("v", "type", "capture", "operator_record", "account_record", "capture_process"),
    *("previous", "version", "statement", "name", "account", "legal_name", "contact"),
)
VALUES: st.SearchStrategy[object] = st.sampled_from([
    *(None, True, False, 0, 1, 2, 3, -1, "", "x", [], {}, ["x"]),
    *(DIGEST, DIGEST.upper(), DIGEST + "\n", DIGEST[:-1], DIGEST + "0", "\u0660" * 64),
    *("vendor_api", "hosted", "acknowledgment", "operator", "clearance", "erasure"),
])  # fmt: skip


def good_records() -> list[dict[str, Any]]:
    """The good records of both versions."""
    names = [*LOG.glob("good/*.tlog-proof")]
    bodies = [parse_proof(path.read_bytes()).extra for path in names]
    bodies += [
        (LOG.parent / "record" / "good" / name / "record.json").read_bytes()
        for name in ("parties", "parties-none", "parties-hosted", "hosted")
    ]
    return [json.loads(body) for body in bodies if body]


GOOD = good_records()


@st.composite
def changed(draw: st.DrawFn) -> dict[str, Any]:
    """A good record with up to three of these members replaced, left out or added."""
    record = dict(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(0, 3))):
        name = draw(st.sampled_from(NAMES))
        if draw(st.booleans()):
            record.pop(name, None)
        else:
            record[name] = draw(VALUES)
    return record


def refuses(check: Callable[[bytes, str], object], error: type[Exception], body: bytes) -> bool:
    try:
        check(body, ORIGIN)
    except error:
        return True
    return False


@given(changed())
def test_readers_agree_about_any_record(stranger: ModuleType, record: dict[str, Any]) -> None:
    """The service, and verify.py, which shares no code with it."""
    body = canonical_json(record)
    by_service = refuses(check_record, EvidenceError, body)
    assert refuses(stranger.check_record, stranger.Bad, body) is by_service


@pytest.mark.parametrize("type_", sorted(RECORD_TYPES))
def test_only_records_that_bind_parties_have_a_version_2(type_: str) -> None:
    """An old reader refuses it, so it is only written where it says more."""
    found = [record for record in GOOD if record["type"] == type_ and record["v"] == 1]
    for record in found:
        twice = {**record, "v": 2, "operator_record": None, "account_record": DIGEST}
        if record.get("capture") == "vendor_api":
            twice["capture_process"] = None
        body = canonical_json(twice)
        assert refuses(check_record, EvidenceError, body) is (type_ not in BINDING_TYPES)


def test_every_record_of_version_1_is_read_as_before() -> None:
    """With members of version 2 it is a record with members that a reader does not know."""
    for record in GOOD:
        if record["v"] == 1:
            more = {**record, "operator_record": 1, "account_record": "x"}
            assert not refuses(check_record, EvidenceError, canonical_json(more))
