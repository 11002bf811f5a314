"""Evidence of other acts than an acknowledgment, noise, and odd files in a folder."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign_evidence.offline import verify
from countersign_evidence.policy import parse_policy
from countersign_evidence.verification import verify_file
from tests.offline import builder
from tests.offline.odd_words import sealed

POLICY = builder.material().policy.encode()

# What the records of parties describe.
PARTY = {
    **dict.fromkeys(["legal_name", "address", "licence", "contact", "previous"]),
    "name": "Vendor",
    "statement": "Initials are typed.",
    "version": 1,
}


def verdicts(material: builder.Material) -> list[str | None]:
    """The step that fails, by the script and by the service."""
    dossier = material.dossier()
    failed = verify.verify_bytes(dossier).failed
    return [failed and failed.name, verify_file(dossier).name]


@pytest.mark.parametrize("name", sorted(verify.TYPES))
def test_records_of_every_known_type_are_proved_alone(name: str) -> None:
    """By script and service; only an acknowledgment can be what a dossier is about."""
    members = {**json.loads(builder.material().record), **PARTY, "type": name}
    material = sealed(builder.canonical(members))
    report = verify.verify_bytes(material.proof(), verify.read_policy(POLICY))
    assert report.ok, report.line()
    assert verify_file(material.proof(), parse_policy(POLICY)).ok
    assert verdicts(material) == [None if name == "acknowledgment" else "record"] * 2


@given(st.binary(max_size=200), st.sampled_from([b"", b"PK\x03\x04", b"c2sp.org/tlog-proof@v1\n"]))
def test_no_bytes_make_it_crash_or_pass(noise: bytes, start: bytes) -> None:
    """Whatever a file holds, the answer is a failure with a named step."""
    failed = verify.verify_bytes(start + noise).failed
    assert failed is not None
    assert failed.name == verify_file(start + noise).name


@pytest.mark.parametrize("name", builder.summed(builder.material().files()))
def test_each_file_of_a_folder_counts(name: str, tmp_path: Path) -> None:
    """A byte more, or the file gone: both are noticed."""
    builder.unpacked(builder.summed(builder.material().files()), tmp_path)
    assert verify.verify_folder(tmp_path).ok
    path = tmp_path / name
    path.write_bytes(path.read_bytes() + b" ")
    assert not verify.verify_folder(tmp_path).ok
    path.unlink()
    assert verify.verify_folder(tmp_path).line().startswith("FAILED at step 1 (container)")


def test_a_file_with_a_tricky_name_is_named_and_not_obeyed(tmp_path: Path) -> None:
    """Strange files lie next to a dossier; each is named, in the folder below too."""
    builder.unpacked(builder.summed(builder.material().files()), tmp_path)
    (tmp_path / "annex\x1b[2J.pdf").write_bytes(b"")
    (tmp_path / "timestamps").mkdir()
    (tmp_path / "timestamps" / "why.txt").write_bytes(b"")
    report = verify.verify_folder(tmp_path)
    assert report.ok
    told = [verify.printable(line) for line in verify.explain(report)]
    assert "not checked: annex\\x1b[2J.pdf, timestamps/why.txt" in "\n".join(told)
