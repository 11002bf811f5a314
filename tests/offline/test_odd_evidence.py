"""Evidence of other acts than an acknowledgment, and odd files in a folder."""

import json
from pathlib import Path

import pytest

from countersign_evidence.offline import verify
from tests.offline import builder
from tests.offline.odd_words import sealed
from tests.support.every import every

POLICY = builder.material().policy.encode()

# The subjects of the records of parties.
PARTY = {
    **dict.fromkeys(["legal_name", "address", "licence", "contact", "previous"]),
    "name": "Vendor",
    "statement": "Initials are typed.",
    "version": 1,
}


@every("name", sorted(verify.RECORDS))
def test_records_of_every_known_type_are_proved_alone(name: str) -> None:
    """Only an acknowledgment can be the subject of a dossier."""
    members = {**json.loads(builder.material().record), **PARTY, "type": name}
    material = sealed(builder.canonical(members))
    report = verify.verify_bytes(material.proof(), verify.read_policy(POLICY))
    assert report.ok, report.line()
    failed = verify.verify_bytes(material.dossier()).failed
    assert (failed and failed.name) == (None if name == "acknowledgment" else "record")


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
    found = [verify.printable(line) for line in verify.explain(report)]
    assert "not checked: annex\\x1b[2J.pdf, timestamps/why.txt" in "\n".join(found)
