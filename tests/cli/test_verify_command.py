"""`countersign verify` without a deployment: what it reads, what it says, what it never claims."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from countersign.evidence.bundle import GUIDE
from tests.offline import builder
from tests.support.service import Deployment


@pytest.fixture
def nothing(tmp_path: Path) -> Deployment:
    """Give the command without a deployment: verifying needs none."""
    return Deployment(data_dir=tmp_path / "none")


def unpacked(bundle: bytes, folder: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        archive.extractall(folder)
    return folder


def test_a_bundle_that_was_unpacked_is_checked_like_the_packed_one(
    nothing: Deployment, tmp_path: Path
) -> None:
    """The same verdict; a change in it is found, and what is no part of it is told."""
    packed = tmp_path / "bundle.zip"
    packed.write_bytes(builder.material().bundle())
    folder = unpacked(packed.read_bytes(), tmp_path / "folder")
    (folder / "more.txt").write_text("?")
    first, second = (nothing.run("verify", str(place)) for place in (packed, folder))
    assert first.stdout == second.stdout
    assert first.stdout.startswith("OK ")
    assert "more.txt" in second.stderr
    (folder / "notice.json").write_bytes(b"{}")
    assert "(notice)" in nothing.run("verify", str(folder), check=False).stdout
    (folder / "proof.tlog-proof").unlink()
    done = nothing.run("verify", str(folder), check=False)
    assert (done.returncode, "(container)" in done.stdout) == (1, True)


def test_the_words_are_printed_and_what_vouches_for_nothing_is_said(
    nothing: Deployment, tmp_path: Path
) -> None:
    """A certificate and programs of somebody's own pass: so what was checked is printed here."""
    forged = replace(builder.material(), verify_py=b"print('OK')", certificate=b"%PDF- forged")
    (tmp_path / "bundle.zip").write_bytes(forged.bundle())
    said = nothing.run("verify", str(tmp_path / "bundle.zip"))
    assert said.stdout.startswith("OK "), "these files are bound by nothing"
    notice = json.loads(forged.notice)
    assert f"The notice reads: {notice['heading']}" in said.stderr
    for bullet in notice["bullets"]:
        assert bullet["text"] in said.stderr
    assert "nothing vouches for certificate.pdf, verify.py and verify.html" in said.stderr
    assert "that the buyer was shown the notice" in said.stderr
    told = nothing.read("verify", str(tmp_path / "bundle.zip"))
    assert told["notice"] == notice
    assert any("this very bundle" in warning for warning in told["warnings"])
    policy = tmp_path / "policy"
    policy.write_text(forged.policy)
    told = nothing.read("verify", str(tmp_path / "bundle.zip"), "--policy", str(policy))
    assert not any("this very bundle" in warning for warning in told["warnings"])
    assert b"Nothing vouches for certificate.pdf, verify.py, verify.html" in GUIDE


def test_text_of_a_bundle_cannot_play_tricks_on_a_terminal(
    nothing: Deployment, tmp_path: Path
) -> None:
    """Control characters and changes of direction are shown as escapes."""
    tricks = "\x1b[2J\u202eevil\r"
    shown = builder.disclosure(1, "initials_per_line", [tricks, tricks])
    record = builder.material(_sd=[builder.b64url(sha256(shown.encode()).digest())]).record
    hostile = replace(builder.material(), record=record, extra=record, disclosures=[shown])
    (tmp_path / "bundle.zip").write_bytes(hostile.bundle())
    said = nothing.run("verify", str(tmp_path / "bundle.zip"))
    assert "evil" in said.stderr
    assert all(c.isprintable() for c in said.stderr.replace("\n", ""))


def test_what_a_file_names_cannot_play_tricks_in_the_verdict(
    nothing: Deployment, tmp_path: Path
) -> None:
    """Names of fields and an origin: the line on standard output is one line, and printable."""
    name = "\x1b[2J\u202e\nOK  \x9b\x00"
    shown = builder.disclosure(1, name, 1)
    record = builder.material(_sd=[builder.b64url(sha256(shown.encode()).digest())]).record
    named = replace(builder.material(), record=record, extra=record, disclosures=[shown])
    of_origin = replace(builder.material(), origin="a\u202eb\u200e/v1/log/live/1")
    for bundle, status in ((named, 0), (of_origin, 1)):
        (tmp_path / "bundle.zip").write_bytes(bundle.bundle())
        for options in ([], ["--json"]):
            said = nothing.run("verify", str(tmp_path / "bundle.zip"), *options, check=False)
            assert said.returncode == status
            assert said.stdout.count("\n") == 1
            assert all(c.isprintable() for c in said.stdout.removesuffix("\n"))


def test_evidence_of_a_test_log_is_said_to_be_that(nothing: Deployment, tmp_path: Path) -> None:
    """Against a policy that does not name its log: which log, and that it is a test log."""
    origin = builder.ORIGIN.replace("/live/", "/test/")
    (tmp_path / "bundle.zip").write_bytes(replace(builder.material(), origin=origin).bundle())
    (tmp_path / "policy").write_text(builder.material().policy)
    done = nothing.run(
        "verify", str(tmp_path / "bundle.zip"), "--policy", str(tmp_path / "policy"), check=False
    )
    assert done.returncode == 1
    assert f"for {origin}, a test log" in done.stdout
