"""What is said inside a bundle: record, disclosures and notice, and that they go together."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Final

import msgspec

from countersign_evidence.canonical import checked_canonical_json
from countersign_evidence.disclosure import b64url, read_disclosure
from countersign_evidence.entry import origin_mode
from countersign_evidence.errors import EvidenceError
from countersign_evidence.offline import verify as rules
from countersign_evidence.process import PROCESS
from countersign_evidence.record import ACKNOWLEDGMENT, PARTIES_VERSION, VERIFICATION, VERSION

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
        "operator",
        "account",
        "capture_process",
    }
)
BINDING_TYPES: Final = frozenset({ACKNOWLEDGMENT, VERIFICATION, "clearance", "fulfilment"})
"""Those that have version 2, too: they bind the records of their parties."""
_ID: Final = re.compile(r"[a-z]{3}_[0-7][0-9a-hjkmnp-tv-z]{25}\Z", re.ASCII)
_SAID: Final = (
    "account",
    "accepted_at",
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


@contextmanager
def by_the_rules() -> Iterator[None]:
    """What the rules that `verify.py` has too say of evidence, as this room's error."""
    try:
        yield
    except rules.Bad as error:
        raise EvidenceError(str(error)) from error


def check_record(record: bytes, origin: str) -> dict[str, Any]:
    """The members of a record that is in the log of this origin."""
    try:
        found = msgspec.json.decode(record, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EvidenceError("the record is not a JSON object") from error
    if checked_canonical_json(found) != record:
        raise EvidenceError("the record is not canonical JSON")
    version, kind = found.get("v"), found.get("type")
    if not isinstance(kind, str) or kind not in RECORD_TYPES:
        raise EvidenceError("a record of an unknown version or type")
    known = (VERSION, PARTIES_VERSION) if kind in BINDING_TYPES else (VERSION,)
    if type(version) is not int or version not in known:
        raise EvidenceError("a record of an unknown version or type")
    if found.get("mode") != origin_mode(origin):
        raise EvidenceError(f"a record of mode {found.get('mode')!r} in the log {origin}")
    if not isinstance(found.get("id"), str) or not _strings(found.get("_sd")):
        raise EvidenceError("the record lacks members that every record has")
    if _ID.match(found["id"]) is None:
        raise EvidenceError("the record has an invalid identifier")
    if kind == ACKNOWLEDGMENT:
        _check_acknowledgment(found)
    _check_parties(found)
    return found


def _check_acknowledgment(record: Mapping[str, Any]) -> None:
    if not _strings([record.get(name) for name in _SAID]):
        raise EvidenceError("the record lacks members that every acknowledgment has")
    with by_the_rules():
        rules.check_words(record)


_CAPTURE_PROCESS: Final = "capture_process"
BOUND: Final[Mapping[str, str]] = {
    "operator_record": "the operator",
    "account_record": "the account",
    _CAPTURE_PROCESS: "how the vendor captures",
}
"""The members of version 2, and what the records that they name describe."""
_HEX: Final = re.compile(r"[0-9a-f]{64}\Z", re.ASCII)
_PARTICULARS: Final = ("legal_name", "address", "licence", "contact")
_PARTY: Final[Mapping[str, tuple[Sequence[str], Sequence[str]]]] = {
    "operator": ((), _PARTICULARS),
    "account": (("account", "name"), _PARTICULARS),
    _CAPTURE_PROCESS: (("account", "statement"), ()),
}
"""What the record of a party needs for its words to be shown: strings, and strings or null."""


def _check_parties(record: Mapping[str, Any]) -> None:
    """The members by which a record binds its parties, or describes one."""
    if record["v"] == PARTIES_VERSION and not _binds_parties(record):
        raise EvidenceError("the record does not bind its parties")
    if record["type"] in _PARTY and not _describes(record):
        raise EvidenceError("the record does not describe its party")


def _binds_parties(record: Mapping[str, Any]) -> bool:
    """Whether this record of version 2 has the members of that version."""
    by_vendor = record["type"] == ACKNOWLEDGMENT and record["capture"] == "vendor_api"
    if record["type"] == ACKNOWLEDGMENT and by_vendor != (_CAPTURE_PROCESS in record):
        return False
    names = [name for name in BOUND if by_vendor or name != _CAPTURE_PROCESS]
    return all(name in record and _is_digest_or_none(record[name]) for name in names)


def _describes(record: Mapping[str, Any]) -> bool:
    """Whether this record of a party has the members of its type."""
    strings, stated = _PARTY[record["type"]]
    number = record.get("version")
    return (
        _strings([record.get(name) for name in strings])
        and all(name in record and isinstance(record[name], str | None) for name in stated)
        and "previous" in record
        and _is_digest_or_none(record["previous"])
        and (record["type"] != _CAPTURE_PROCESS or (type(number) is int and number >= 1))
    )


def _is_digest_or_none(value: object) -> bool:
    return value is None or (isinstance(value, str) and _HEX.match(value) is not None)


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
    with by_the_rules():
        rules.check_fields(record["type"], shown)
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
    with by_the_rules():
        rules.check_initials(shown.get(INITIALS, []), [bullet.id for bullet in bullets])
    if PROCESS in shown and len(shown[PROCESS]["lines"]) != len(bullets):
        raise EvidenceError("the process does not have one entry for each line")
    return found


def _strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
