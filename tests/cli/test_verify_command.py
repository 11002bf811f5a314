"""`countersign verify` without a deployment: its input, output, and limits."""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from countersign.base.http.schemas import RECEIPT
from countersign.core.log.keys import test_seed as key_of_test_log
from countersign_evidence.dossier import GUIDE
from countersign_evidence.note import Signer
from tests.offline import builder
from tests.support.service import Deployment


@pytest.fixture
def nothing(tmp_path: Path) -> Deployment:
    """Give the command without a deployment: verifying needs none."""
    return Deployment(data_dir=tmp_path / "none")


def unpacked(dossier: bytes, folder: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(dossier)) as archive:
        archive.extractall(folder)
    return folder


def test_an_unpacked_dossier_is_checked_like_the_packed_one(
    nothing: Deployment, tmp_path: Path
) -> None:
    """The same verdict; a change in it is detected, and extra files are named."""
    packed = tmp_path / "dossier.zip"
    packed.write_bytes(builder.material().dossier())
    folder = unpacked(packed.read_bytes(), tmp_path / "folder")
    (folder / "more.txt").write_text("?")
    first, second = (nothing.run("verify", str(place), "--own-key") for place in (packed, folder))
    assert first.stdout == second.stdout
    assert "\n\nCONSISTENT, KEY NOT CHECKED " in first.stdout
    assert "more.txt" in second.stderr
    (folder / "notice.json").write_bytes(b"{}")
    assert "(notice)" in nothing.run("verify", str(folder), check=False).stdout
    (folder / builder.PROOF).unlink()
    done = nothing.run("verify", str(folder), check=False)
    assert (done.returncode, "(container)" in done.stdout) == (1, True)


def test_the_words_are_printed_and_unproved_facts_are_named(
    nothing: Deployment, tmp_path: Path
) -> None:
    """A forger's own certificate and programs pass, so the checked facts are printed here."""
    forged = replace(builder.material(), verify_py=b"print('OK')", pdf=b"%PDF- forged")
    (tmp_path / "dossier.zip").write_bytes(forged.dossier())
    said = nothing.run("verify", str(tmp_path / "dossier.zip"), "--own-key")
    assert "\n\nCONSISTENT" in said.stdout, "these files are bound by nothing"
    notice = json.loads(forged.notice)
    assert f"The notice reads: {notice['heading']}" in said.stderr
    for bullet in notice["bullets"]:
        assert bullet["text"] in said.stderr
    assert "the signature does not cover dossier.pdf, verify.py and verify.html" in said.stderr
    assert "that the buyer was shown the notice" in said.stderr
    answer = nothing.read("verify", str(tmp_path / "dossier.zip"), "--own-key")
    assert answer["notice"] == notice
    assert any("this dossier" in warning for warning in answer["warnings"])
    policy = tmp_path / "policy"
    policy.write_text(forged.policy)
    answer = nothing.read("verify", str(tmp_path / "dossier.zip"), "--policy", str(policy))
    assert not any("this dossier" in warning for warning in answer["warnings"])
    assert b"The signature does not cover dossier.pdf, verify.py and verify.html" in GUIDE


def test_text_of_a_dossier_cannot_play_tricks_on_a_terminal(
    nothing: Deployment, tmp_path: Path
) -> None:
    """Control characters and changes of direction are shown as escapes."""
    tricks = "\x1b[2J\u202eevil\r"
    shown = builder.disclosure(1, "initials_per_line", [tricks, tricks])
    record = builder.material(_sd=[builder.b64url(sha256(shown.encode()).digest())]).record
    hostile = replace(builder.material(), record=record, extra=record, disclosures=[shown])
    (tmp_path / "dossier.zip").write_bytes(hostile.dossier())
    said = nothing.run("verify", str(tmp_path / "dossier.zip"), "--own-key")
    assert "evil" in said.stderr
    assert all(c.isprintable() for c in said.stderr.replace("\n", ""))


def test_names_in_a_file_cannot_forge_the_verdict(nothing: Deployment, tmp_path: Path) -> None:
    """Names of fields and an origin: they add no line to standard output, and are printable."""
    name = "\x1b[2J\u202e\nOK  \x9b\x00"
    shown = builder.disclosure(1, name, 1)
    record = builder.material(_sd=[builder.b64url(sha256(shown.encode()).digest())]).record
    named = replace(builder.material(), record=record, extra=record, disclosures=[shown])
    of_origin = replace(builder.material(), origin="a\u202eb\u200e/v1/log/live/1")
    for dossier, status in ((named, 3), (of_origin, 1)):
        (tmp_path / "dossier.zip").write_bytes(dossier.dossier())
        for options in ([], ["--json"]):
            said = nothing.run("verify", str(tmp_path / "dossier.zip"), *options, check=False)
            assert said.returncode == status
            *summary, last = said.stdout.splitlines()
            assert len(summary) <= 7
            assert last.startswith(("CONSISTENT", "FAILED", "{"))
            assert all(c.isprintable() for c in said.stdout.replace("\n", ""))


def test_evidence_of_a_test_log_is_marked(nothing: Deployment, tmp_path: Path) -> None:
    """Against a policy without its log, the message names the log and its test mode."""
    origin = builder.ORIGIN.replace("/live/", "/test/")
    (tmp_path / "dossier.zip").write_bytes(replace(builder.material(), origin=origin).dossier())
    (tmp_path / "policy").write_text(builder.material().policy)
    done = nothing.run(
        "verify", str(tmp_path / "dossier.zip"), "--policy", str(tmp_path / "policy"), check=False
    )
    assert done.returncode == 1
    assert f"for {origin}, a test log" in done.stdout


def test_without_a_policy_the_first_line_says_that_the_key_was_not_checked(
    nothing: Deployment, tmp_path: Path
) -> None:
    """In the first line on both outputs, with exit status 3 unless `--own-key` is given."""
    dossier, policy = tmp_path / "dossier.zip", tmp_path / "policy"
    dossier.write_bytes(builder.material().dossier())
    policy.write_text(builder.material().policy.removesuffix("\n"))
    done = nothing.run("verify", str(dossier), check=False)
    assert done.returncode == 3
    assert "Whose key signed this was not checked." in done.stdout.splitlines()[0]
    assert "\n\nCONSISTENT, KEY NOT CHECKED  one order, ack_" in done.stdout
    assert done.stderr.startswith("warning: the key was not checked")
    said = nothing.read("verify", str(dossier), "--own-key")
    assert (said["ok"], said["outcome"]) == (False, "consistent")
    said = nothing.read("verify", str(dossier), "--policy", str(policy))
    assert (said["ok"], said["outcome"]) == (True, "ok")


def test_all_of_the_notice_is_printed(nothing: Deployment, tmp_path: Path) -> None:
    """Title, version and who named it, law, last sentence, known gaps, account."""
    dossier = tmp_path / "dossier.zip"
    dossier.write_bytes(builder.incomplete().dossier())
    said = nothing.run("verify", str(dossier), "--own-key").stderr
    for expected in (
        "Notice ab1263, version 2026-01-01: Notice",
        "version assumed",
        "warning: the vendor did not say which version was shown",
        "warning: the text of the notice is known to be incomplete",
        "for acct_01kdtvz9n8f6ywn3x2qk4c7r5a",
        "source_law: Cal. Civ. Code",
        "The notice ends with: I understand.",
        "Known to be missing in this text: (E) and later",
        "(B) Zeile",
    ):
        assert expected in said, expected


def test_a_certificate_alone_is_reported_as_no_evidence(
    nothing: Deployment, tmp_path: Path
) -> None:
    """People have it in hand: the message names its acknowledgment, without a verdict."""
    (tmp_path / "certificate.pdf").write_bytes(b"%PDF-1.7 ack_01m7xdxbmvex7t29vh2x05yyyq")
    done = nothing.run("verify", str(tmp_path / "certificate.pdf"), check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "ack_01m7xdxbmvex7t29vh2x05yyyq" in done.stderr


def test_only_regular_files_are_read(nothing: Deployment, tmp_path: Path) -> None:
    """A pipe that no one writes to and a device without an end, alone and in a folder."""
    folder = unpacked(builder.material().dossier(), tmp_path / "folder")
    (folder / "notice.json").unlink()
    os.mkfifo(folder / "notice.json")
    done = nothing.run("verify", str(folder), check=False)
    last = done.stdout.splitlines()[-1]
    assert last == "FAILED at step 1 (container): the dossier lacks notice.json"
    for place in (str(folder / "notice.json"), "/dev/zero"):
        done = nothing.run("verify", place, check=False)
        assert (done.returncode, "neither a file nor a directory" in done.stderr) == (2, True)


def test_a_receipt_is_checked_and_called_a_promise_not_a_proof(
    nothing: Deployment, tmp_path: Path
) -> None:
    """Only with a policy, and by a key that it names: the log may have another one by now."""
    receipt, policy, other = (tmp_path / name for name in ("receipt", "policy", "other"))
    receipt.write_text(RECEIPT)
    origin = "evidence.example.com/v1/log/test/1"
    for file, seed in ((policy, key_of_test_log(origin)), (other, bytes(32))):
        vkey = Signer.from_seed(origin, seed).verifier.vkey
        file.write_text(f"log {vkey}\nquorum none\n")
    kept = nothing.run("verify", str(receipt), "--policy", str(policy))
    assert kept.stdout.startswith(f"OK  {origin} promised to have the record 50d858e0985ecc7f60")
    assert "by 2026-11-21T21:31:00Z" in kept.stdout
    assert "not a proof" in kept.stderr
    view = json.loads(nothing.run("verify", str(receipt), "--policy", str(policy), "--json").stdout)
    assert (view["ok"], view["log"], view["sealed_by"]) == (True, origin, "2026-11-21T21:31:00Z")
    unknown = nothing.run("verify", str(receipt), "--policy", str(other), check=False)
    assert (unknown.returncode, unknown.stdout[:20]) == (2, "COULD NOT BE CHECKED")
    alone = nothing.run("verify", str(receipt), check=False)
    assert (alone.returncode, "needs the policy" in alone.stderr) == (2, True)
