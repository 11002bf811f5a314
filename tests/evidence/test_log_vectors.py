"""The vectors of the log formats: made again byte for byte, and judged by two readers."""

import json
import sys
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from countersign_evidence.approval import check_approvals, make_roster
from countersign_evidence.note import Signer, parse_checkpoint, parse_note
from countersign_evidence.offline import verify as offline
from countersign_evidence.policy import parse_policy
from countersign_evidence.timestamp_signer import timestamp_check
from countersign_evidence.tree import leaf_hash
from countersign_evidence.verification import STEPS, verify_file
from tests.evidence import rfc6962_reference as rfc
from tests.support.every import every
from tests.support.merkle import parse_entry_bundle
from tests.support.quorum import checked

LOG = Path(__file__).parents[2] / "spec" / "vectors" / "log"
FORMAT = (LOG.parents[1] / "evidence-format.md").read_text(encoding="utf-8")
POLICY = (LOG / "good" / "policy.txt").read_bytes()
GOOD = sorted([*(LOG / "good").glob("*.tlog-proof"), *(LOG / "good").glob("*.zip")])
EXPECTED: dict[str, Any] = json.loads((LOG / "broken" / "expected.json").read_bytes())
DOSSIERS = {
    "shown": 5,
    "erased": 0,
    "stamped": 5,
    "other-kinds": 5,
    "disclosure-spaced": 1,
    "hosted": 6,
    "hosted-withheld": 5,
    "parties": 5,
    "parties-none": 5,
    "parties-hosted": 6,
    "ml-dsa": 5,
    "ml-dsa-alone": 5,
    "accepted-at-elsewhere": 5,
    "accepted-at-one-millisecond": 5,
    "unknown-members": 5,
    "unknown-of-notice": 0,
    **dict.fromkeys(["initials-to-be-seen", "unknown-disclosure", "unknown-inside"], 1),
    "two-clients": 1,
    **dict.fromkeys(["hosted-by-secret-key", "process-after-acceptance", "process-by-vendor"], 6),
}
"""The good dossiers, with the number of fields that are shown."""
TYPES = {"acknowledgment", "verification", "erasure", "key_rotation", "notice_event", "epoch"}
TYPES |= {"operator", "account", "capture_process"}
TYPES |= {"verification-2", "clearance-2", "fulfilment-2"}
TYPES |= {"approvers", "approvers-2", "key_rotation-2"}


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    """The script next to the vectors."""
    spec = spec_from_file_location("make_log_vectors", LOG / "make_vectors.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        # A dataclass looks its module up by name while it is made.
        patch.setitem(sys.modules, "make_log_vectors", module)
        spec.loader.exec_module(module)
    return module


def test_the_code_makes_every_vector_byte_for_byte(maker: ModuleType) -> None:
    """Evidence written by an older release is what this release would write."""
    generated: dict[str, bytes] = maker.generated_files()
    kept = {
        str(path.relative_to(LOG)): path.read_bytes()
        for folder in ("good", "broken", "unchecked")
        for path in (LOG / folder).rglob("*")
        if path.is_file()
    }
    assert sorted(kept) == sorted(generated)
    assert [name for name in kept if kept[name] != generated[name]] == []


def test_every_kind_has_vectors() -> None:
    """An empty folder must not pass for a green one; every step has something that fails at it."""
    assert {path.stem for path in GOOD} == TYPES | DOSSIERS.keys()
    joined = {"joins"}  # of one record nothing can be joined wrongly: see the vectors of dossiers
    assert {case["step"] for case in EXPECTED.values()} == set(STEPS) - joined
    files = {path.name for path in (LOG / "broken").iterdir()} - {"expected.json"}
    assert files == set(EXPECTED)


@every("path", GOOD)
def test_both_readers_accept_a_good_vector(path: Path) -> None:
    """The service's reader, and the one in every dossier."""
    data = path.read_bytes()
    verdict = verify_file(data, parse_policy(POLICY))
    assert verdict.outcome == "ok", verdict.line()
    report = offline.verify_bytes(data, offline.read_policy(POLICY))
    assert report.outcome == "ok"
    assert report.line() == verdict.line()
    if path.suffix == ".zip":
        assert verify_file(data).ok
        assert verdict.dossier
        (record,) = verdict.dossier.records
        assert len(record.shown) == DOSSIERS[path.stem]
    else:
        assert verdict.record["type"] == path.stem.removesuffix("-2")


@every("name", EXPECTED)
def test_both_readers_name_the_step_that_fails(name: str) -> None:
    """The first one, by its name."""
    data = (LOG / "broken" / name).read_bytes()
    zipped = name.endswith(".zip")
    verdict = verify_file(data, None if zipped else parse_policy(POLICY))
    assert (verdict.ok, verdict.name) == (False, EXPECTED[name]["step"])
    failed = offline.verify_bytes(data, None if zipped else offline.read_policy(POLICY)).failed
    assert failed is not None
    assert failed.name == EXPECTED[name]["step"]


@every("name", ["signature", "quorum"])
def test_both_readers_report_a_future_kind_as_unchecked(name: str) -> None:
    """Neither that it failed nor that it passed."""
    data = (LOG / "unchecked" / f"{name}.zip").read_bytes()
    verdict, report = verify_file(data), offline.verify_bytes(data)
    assert (verdict.outcome, verdict.name, verdict.ok) == ("unchecked", name, False)
    assert (report.outcome, report.failed and report.failed.name) == ("unchecked", name)


def test_the_time_stamps_are_signed_by_the_authority_next_to_them() -> None:
    """Though their certificates are not in the order of DER; by another root they are not."""
    check = timestamp_check((LOG / "timestamps" / "root.pem").read_bytes())
    verdict = verify_file((LOG / "good" / "stamped.zip").read_bytes(), None, check)
    assert verdict.ok, verdict.line()
    stamps = verdict.facts["timestamps"]
    assert len(stamps) == 3
    assert all("signed by a trusted authority" in stamp for stamp in stamps)


def test_approvals_in_records_are_by_people_registered_before() -> None:
    """Of a rotation, and of the change of the approvers."""
    names = ("approvers", "key_rotation-2", "approvers-2")
    registered, rotated, changed = (
        verify_file((LOG / "good" / f"{name}.tlog-proof").read_bytes(), parse_policy(POLICY)).record
        for name in names
    )
    roster = make_roster(registered["new_threshold"], registered["approvers"])
    rotation, signed = check_approvals(rotated["approval"].encode(), roster)
    assert (rotation.values("new"), len(signed)) == ([rotated["new_key"]], rotated["threshold"])
    change, _ = check_approvals(changed["approval"].encode(), roster)
    assert change.values("approver") == changed["approvers"]
    _, signed = check_approvals(rotated["approval"].encode(), make_roster(2, changed["approvers"]))
    assert len(signed) == 1, "of those who came later only one had signed"


def test_tiles_entries_and_checkpoint_are_of_one_tree() -> None:
    """By the words of RFC 6962: the entries make the leaves, the leaves the root."""
    entries = parse_entry_bundle((LOG / "good/tile/entries/000.p/9").read_bytes())
    tile = (LOG / "good/tile/0/000.p/9").read_bytes()
    assert tile == b"".join(leaf_hash(entry) for entry in entries)
    note = (LOG / "good" / "checkpoint").read_bytes()
    checkpoint = parse_checkpoint(parse_note(note).text)
    assert (checkpoint.size, checkpoint.root) == (9, rfc.mth(entries))
    assert checked(parse_policy(POLICY), note).cosigned


def test_an_entry_is_the_host_and_the_digest_of_its_record() -> None:
    """The entry of the acknowledgment, written out."""
    entries = parse_entry_bundle((LOG / "good/tile/entries/000.p/9").read_bytes())
    record = (LOG.parent / "record" / "good" / "full" / "record.json").read_bytes()
    digest = "mbDATKzN34YWBedxHa5jSnRr98NsLF1QEsO4Xy0dZcs="
    assert sha256(record).hexdigest().startswith("99b0c04cac")
    assert entries[5] == f"evidence.example.com:8443/entry/v1\n{digest}\n".encode()
    assert entries[5].decode() in FORMAT
    assert sha256(b"\x00" + entries[5]).hexdigest() in FORMAT


@every("type_", sorted(TYPES))
def test_every_member_of_every_record_is_in_the_text_of_the_format(type_: str) -> None:
    """And the type itself."""
    record = verify_file((LOG / "good" / f"{type_}.tlog-proof").read_bytes(), parse_policy(POLICY))
    names = {type_.removesuffix("-2"), *record.record}
    assert [name for name in sorted(names) if f"`{name}`" not in FORMAT] == []


def test_the_steps_match_the_format() -> None:
    """Numbers and names, in their order."""
    table = "".join(
        line.split("|")[1].strip() + line.split("|")[2].strip()
        for line in FORMAT.split("## 14. ")[1].split("## 15. ")[0].splitlines()
        if line.startswith("| ") and line[2].isdigit()
    )
    assert table == "".join(f"{number}`{name}`" for number, name in enumerate(STEPS, 1))


def test_the_key_of_a_test_log_is_the_published_one() -> None:
    """Anyone can make test evidence; it must not pass for more."""
    origin = parse_checkpoint(parse_note((LOG / "good" / "checkpoint").read_bytes()).text).origin
    text = "countersign: the key of a test log"
    assert f"`{text}`" in FORMAT
    seed = sha256(text.encode() + b"\x00" + origin.encode()).digest()
    assert Signer.from_seed(origin, seed).verifier in parse_policy(POLICY).logs
