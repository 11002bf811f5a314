"""The results of making dossier.pdf again, and the cases without one."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from countersign.core.dossiers.compare import compare_pdf
from countersign.core.dossiers.pdf import dossier_pdf, maker
from countersign_evidence.dossier import (
    SUMS,
    VERIFY_HTML,
    VERIFY_PY,
    DossierContents,
    evidence_of,
    read_container,
    sums,
    verifier,
    write_container,
    write_dossier,
)
from countersign_evidence.note import COSIGNATURE, Signer, checkpoint_of, parse_note
from countersign_evidence.offline import verify
from countersign_evidence.offline.verify import own_lines
from countersign_evidence.policy import parse_policy
from countersign_evidence.proof import parse_proof
from countersign_evidence.verification import (
    STEPS,
    Conclusion,
    dossier_of,
    verify_file,
)
from tests.evidence.contents import contents_of
from tests.evidence.dossier_vectors import DOSSIERS, load_maker
from tests.offline import builder
from tests.support.command import run

SAME: Final = "dossier.pdf is the one that this release makes"
POLICY: Final = (DOSSIERS / "good" / "policy.txt").read_bytes()


def order() -> DossierContents:
    """A good dossier, whose PDF is a stand-in."""
    data = (DOSSIERS / "good" / "order.zip").read_bytes()
    return contents_of(data)


def with_pdf(contents: DossierContents) -> bytes:
    """The dossier with the PDF that this release makes of it."""
    data = write_dossier(contents)
    pdf = dossier_pdf(dossier_of(data), evidence_of(read_container(data)))
    return write_dossier(replace(contents, pdf=pdf))


def compared(data: bytes) -> str:
    """A reader's message about the PDF, with the right policy."""
    verdict = verify_file(data, parse_policy(POLICY))
    assert verdict.outcome is Conclusion.OK, verdict.line()
    assert verdict.dossier
    return compare_pdf(data, verdict.dossier)


def test_a_witness_that_only_the_maker_names_is_not_confirmed() -> None:
    """A person who passes a dossier on can add a witness to its policy, and to the PDF."""
    plain = order()
    assert compared(with_pdf(plain)) == SAME
    witness = Signer.from_seed("witness.example/own", bytes(32), COSIGNATURE)
    note = parse_proof(next(iter(plain.records.values())).proof).checkpoint
    line = witness.sign(parse_note(note).text, 1_577_836_800)
    invented = replace(
        plain,
        policy=plain.policy.splitlines(keepends=True)[0]
        + f"witness The-Court {witness.verifier.vkey}\nquorum none\n".encode(),
        records={
            id_: record._replace(proof=record.proof + line) for id_, record in plain.records.items()
        },
    )
    said = compared(with_pdf(invented))
    assert "BUT your policy did not check what it names: a cosignature by The-Court" in said


def test_a_time_stamp_with_an_unknown_hash_is_not_in_the_pdf() -> None:
    """Anyone can write one; nor is a renewal of it in the PDF."""
    unknown = builder.stamp(bytes(20), bytes.fromhex("2b0e03021a"))
    renewal = builder.stamp(sha256(unknown).digest())
    stamps = {"timestamps/1.tsr": unknown, "timestamps/2.tsr": renewal}
    data = with_pdf(replace(order(), timestamps=stamps))
    assert dossier_of(data).timestamps == ()
    verdict = verify_file(data)
    assert verdict.line().endswith(", 0 time-stamp(s)")
    assert verify.verify_bytes(data).line() == verdict.line()
    assert len(verdict.facts["timestamps"]) == 2
    assert compared(data).startswith(SAME)


@pytest.mark.parametrize("time", [b"20261399999999Z", b"00010101000000Z", b"20161231235960Z"])
def test_an_impossible_time_is_reported_and_stops_nothing(time: bytes) -> None:
    """Month 13, a year outside the Pacific zone's range, a leap second: all can be stamped."""
    note = parse_proof(next(iter(order().records.values())).proof).checkpoint
    stamp = builder.stamp(sha256(own_lines(note, checkpoint_of(note).origin)).digest(), time=time)
    made = replace(order(), timestamps={"timestamps/1.tsr": stamp}, pdf=b"%PDF-1.7\n" + maker())
    assert compared(write_dossier(made)).startswith("dossier.pdf was not compared: the dossier has")


def test_a_changed_pdf_fails_at_the_last_step(tmp_path: Path) -> None:
    """By SHA256SUMS; and if these were written again, as another PDF than the evidence makes."""
    good = with_pdf(order())
    files = read_container(good)
    files["dossier.pdf"] += b"% changed"
    (tmp_path / "sums-kept").write_bytes(write_container(files))
    del files[SUMS]
    (tmp_path / "sums-again").write_bytes(write_container({**files, SUMS: sums(files)}))
    (tmp_path / "good").write_bytes(good)
    said = {
        name: run(["verify", str(tmp_path / name)], os.environ).stdout.splitlines()[-1]
        for name in ("good", "sums-kept", "sums-again")
    }
    assert said["good"].startswith("CONSISTENT")
    last = f"FAILED at step {len(STEPS)} (files): "
    assert said["sums-kept"].startswith(f"{last}SHA256SUMS ")
    assert said["sums-again"].startswith(f"{last}dossier.pdf differs from the one ")


def test_verifiers_of_other_releases_are_named(tmp_path: Path) -> None:
    """Whether or not the PDF could be compared: the package knows its own verifiers."""
    plain = order()
    own = replace(plain, verify_py=verifier(VERIFY_PY), verify_html=verifier(VERIFY_HTML))
    changed = "verify.py in the dossier: of another release, or changed"
    for made, answer in (
        (write_dossier(own), None),
        (with_pdf(own), None),
        (write_dossier(replace(own, verify_py=b"print('OK')")), changed),
        (with_pdf(replace(own, verify_py=b"print('OK')")), changed),
        (write_dossier(plain), changed.replace("verify.py", "verify.py and verify.html")),
    ):
        (tmp_path / "dossier.zip").write_bytes(made)
        (line,) = re.findall(
            "^dossier.pdf .*",
            run(["verify", str(tmp_path / "dossier.zip")], os.environ).stderr,
            re.MULTILINE,
        )
        assert line.partition("; ")[2] == (answer or "")


def test_a_dossier_with_too_much_text_is_not_compared() -> None:
    """Setting megabytes of text takes half a minute, and a reader did not ask for that."""
    vectors = load_maker()
    long = vectors.OPERATOR.changed(legal_name="A" * 200_000)
    named = {**vectors.NAMED, "operator_record": long.digest}
    check = vectors.CHECK.named(**named)
    cleared = vectors.clearance(21, vectors.ACK.id, check.id).named(**named)
    made = replace(vectors.dossier(long, vectors.VENDOR, check, cleared), pdf=maker())
    assert compared(write_dossier(made)) == "dossier.pdf was not compared: it has too much text"
