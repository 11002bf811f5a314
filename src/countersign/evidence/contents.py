"""What is said inside a bundle: record, disclosures and notice, and that they go together."""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from countersign.evidence.canonical import checked_canonical_json
from countersign.evidence.disclosure import b64url, read_disclosure
from countersign.evidence.entry import origin_mode
from countersign.evidence.errors import EvidenceError
from countersign.evidence.process import PROCESS, check_process
from countersign.evidence.record import ACKNOWLEDGMENT, VERIFICATION, VERSION

RECORD_TYPES: Final = frozenset(
    {
        ACKNOWLEDGMENT,
        VERIFICATION,
        "clearance",
        "fulfilment",
        "erasure",
        "key_rotation",
        "approvers",
        "notice_event",
        "epoch",
        "recovery",
    }
)
_ID: Final = re.compile(r"[a-z]{3}_[0-7][0-9a-hjkmnp-tv-z]{25}\Z", re.ASCII)
_INSTANT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z\Z", re.ASCII
)
_SAID: Final = (
    "account",
    "capture",
    "credential",
    "notice_digest",
    "notice_id",
    "notice_version",
    "notice_version_source",
)
"""What the record of an acknowledgment needs besides, for its words to be shown: strings."""
_WORDS: Final = ("id", "version", "title", "heading", "attestation_text")
INITIALS: Final = "initials_per_line"


def check_record(record: bytes, origin: str) -> dict[str, Any]:
    """The members of a record that is in the log of this origin."""
    try:
        found = msgspec.json.decode(record, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EvidenceError("the record is not a JSON object") from error
    if checked_canonical_json(found) != record:
        raise EvidenceError("the record is not canonical JSON")
    version, kind = found.get("v"), found.get("type")
    known = type(version) is int and version == VERSION and isinstance(kind, str)
    if not known or kind not in RECORD_TYPES:
        raise EvidenceError("a record of an unknown version or type")
    if found.get("mode") != origin_mode(origin):
        raise EvidenceError(f"a record of mode {found.get('mode')!r} in the log {origin}")
    if not isinstance(found.get("id"), str) or not _strings(found.get("_sd")):
        raise EvidenceError("the record lacks members that every record has")
    if _ID.match(found["id"]) is None:
        raise EvidenceError("the record has an invalid identifier")
    if kind == ACKNOWLEDGMENT:
        if not _strings([found.get(name) for name in _SAID]):
            raise EvidenceError("the record lacks members that every acknowledgment has")
        at = found.get("accepted_at")
        if not isinstance(at, str) or _INSTANT.match(at) is None:
            raise EvidenceError("the record has no valid time of acceptance")
    return found


def check_disclosures(encoded_ones: Sequence[str], record: Mapping[str, Any]) -> dict[str, Any]:
    """What these disclosures show, by name; each has to be bound by the record."""
    shown: dict[str, Any] = {}
    if record.get("_sd_alg") != "sha-256":
        raise EvidenceError("the record names an unknown algorithm")
    bound = set(record["_sd"])
    for encoded in encoded_ones:
        digest = b64url(sha256(encoded.encode("utf-8", "surrogatepass")).digest())
        if digest not in bound:
            raise EvidenceError("a disclosure is not one of the record's")
        salt, name, value = read_disclosure(encoded)
        checked_canonical_json([salt, name])  # what one reader understands and another does not
        checked_canonical_json(value)
        if name in shown:
            raise EvidenceError(f"{name} is disclosed twice")
        shown[name] = value
    if not _strings(shown.get(INITIALS, [])):
        raise EvidenceError("the initials are not a list of strings")
    if PROCESS in shown:
        check_process(shown[PROCESS])
    return shown


class _Bullet(msgspec.Struct):
    id: str
    text: str


class _Notice(msgspec.Struct):
    bullets: list[_Bullet]
    text_gaps: list[str] = []


def check_notice(
    notice: bytes, record: Mapping[str, Any], shown: Mapping[str, Any]
) -> dict[str, Any]:
    """The members of the notice, if these are the bytes, line by line, that a record is about.

    `record` is checked already; of the disclosed fields, the initials and the lines of the process
    have to be one for each line.
    """
    if sha256(notice).hexdigest() != record.get("notice_digest"):
        raise EvidenceError("the notice is not the one that was acknowledged")
    try:
        found = msgspec.json.decode(notice, type=dict[str, Any])
        bullets = msgspec.convert(found, _Notice).bullets
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EvidenceError("notice.json is not a notice") from error
    if checked_canonical_json(found) != notice:
        raise EvidenceError("the notice is not canonical JSON")
    expected = [{"digest": sha256(b.text.encode()).hexdigest(), "id": b.id} for b in bullets]
    if expected != record.get("bullets"):
        raise EvidenceError("the lines of the notice are not those of the record")
    if not bullets or not _strings([found.get(name) for name in _WORDS]):
        raise EvidenceError("the notice lacks members that every notice has")
    if (found["id"], found["version"]) != (record["notice_id"], record["notice_version"]):
        raise EvidenceError("the notice has another id or version than the record says")
    if len(shown.get(INITIALS, bullets)) != len(bullets):
        raise EvidenceError(
            f"there are {len(shown[INITIALS])} entries of initials for {len(bullets)} lines"
        )
    if PROCESS in shown and len(shown[PROCESS]["lines"]) != len(bullets):
        raise EvidenceError("the process does not have one entry for each line")
    return found


def _strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
