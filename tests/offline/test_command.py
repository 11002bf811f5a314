"""verify.py run by a stranger: a bare Python, no packages, its output and exit status."""

import ast
import json
import os
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from countersign import __version__
from countersign_evidence.dossier import GUIDE
from tests.offline import builder


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a bare Python: no site packages, no environment, no current directory."""
    return subprocess.run(
        [sys.executable, "-I", "-S", *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )


def unpack(folder: Path, script: Path) -> Path:
    """Write a good dossier's files into a folder, with the real verify.py; gives its path there."""
    files = {**builder.material().files(), "verify.py": script.read_bytes()}
    return builder.unpacked(builder.summed(files), folder) / "verify.py"


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.splitlines()[-1]


def test_in_an_unpacked_dossier_it_checks_the_files_around_it(script: Path, tmp_path: Path) -> None:
    """It says that the key came in the same dossier, shows its fingerprint, and writes nothing."""
    done = run(unpack(tmp_path, script))
    assert done.returncode == 3, done.stdout + done.stderr
    fingerprint = sha256(builder.public_key(builder.LOG_SEED)).hexdigest()
    assert fingerprint in done.stdout
    assert "this dossier" in done.stdout
    assert last_line(done).startswith(
        "CONSISTENT, KEY NOT CHECKED  one order, ack_01m7xdxbmvex7t29vh2x05yyyq, sealed in "
    )
    assert done.stderr == ""
    names = builder.summed(builder.material().files())
    there = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(path.relative_to(tmp_path).as_posix() for path in there) == sorted(names)


def test_modules_in_the_same_folder_are_not_run(script: Path, tmp_path: Path) -> None:
    """The maker of a dossier could add them; so also without -I, which people forget."""
    placed = unpack(tmp_path, script)
    names = ["base64", "hashlib", "json", "re", "struct", "zlib", "pathlib", "typing", "contextlib"]
    for name in [*names, "collections", "json.decoder", "os", "functools", "encodings"]:
        (tmp_path / f"{name}.py").write_text("print('OK  of the forger'); raise SystemExit(0)\n")
    for options in ([], ["-I"], ["-P"], ["-s"]):
        done = subprocess.run(
            [sys.executable, *options, placed],
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=60,
            cwd=tmp_path,
        )
        assert "forger" not in done.stdout, options
        assert (done.returncode, last_line(done)[:10]) == (3, "CONSISTENT"), done.stderr


def test_it_is_said_to_be_run_apart_from_what_lies_around(script: Path) -> None:
    """`python3 -I` keeps out the reader's own folder and environment, too."""
    found = [script.read_text(encoding="utf-8"), GUIDE.decode()]
    found.append(script.with_name("verify.html").read_text(encoding="utf-8"))
    for text in found:
        assert "python3 -I verify.py" in text
        assert "python3 verify.py" not in text


def test_with_a_policy_of_the_reader_it_claims_no_key_of_the_dossier(
    script: Path, tmp_path: Path
) -> None:
    """Against another key the unpacked dossier fails, though it agrees with itself."""
    placed = unpack(tmp_path, script)
    policy = tmp_path.parent / "trusted"
    policy.write_text(builder.material().policy)
    done = run(placed, "--policy", policy)
    assert done.returncode == 0
    assert "came in this dossier" not in done.stdout
    policy.write_text(f"log {builder.vkey(builder.ORIGIN, seed=builder.OTHER_SEED)}\nquorum none\n")
    done = run(placed, "--policy", policy)
    assert done.returncode == 1
    assert last_line(done).startswith("FAILED at step 2 (signature): ")


def test_it_prints_the_text_of_the_notice_and_the_unproved_facts(
    script: Path, tmp_path: Path
) -> None:
    """The vendor asserts that the buyer was shown the words; nobody asserts the PDF."""
    said = run(unpack(tmp_path, script)).stdout
    heading = json.loads(builder.material().notice)["heading"]
    assert f"The notice reads: {heading}" in said
    assert "Shown were" not in said
    assert (
        "whether the buyer saw the notice and typed the initials, which the vendor asserts" in said
    )
    assert "does not cover dossier.pdf" in said


def test_a_test_log_outside_of_the_policy_is_named_as_such(script: Path, tmp_path: Path) -> None:
    """A newcomer has the live policy, and evidence of a test key."""
    dossier, policy = tmp_path / "dossier.zip", tmp_path / "policy"
    origin = builder.ORIGIN.replace("/live/", "/test/")
    dossier.write_bytes(replace(builder.material(), origin=origin).dossier())
    policy.write_text(builder.material().policy)
    assert f"{origin}, a test log" in last_line(run(script, dossier, "--policy", policy))


def test_changes_in_a_folder_are_detected_and_strange_files_named(
    script: Path, tmp_path: Path
) -> None:
    """Files that do not belong to the dossier are no failure, and not passed over in silence."""
    placed = unpack(tmp_path, script)
    (tmp_path / "more.txt").write_bytes(b"?")
    done = run(placed)
    assert done.returncode == 3
    assert "more.txt" in done.stdout
    (tmp_path / "dossier.pdf").write_bytes(b"%PDF-1.7 another")
    done = run(placed)
    assert done.returncode == 1
    assert last_line(done).startswith("FAILED at step 10 (files): ")
    (tmp_path / "notice.json").unlink()
    done = run(script, tmp_path)
    assert done.returncode == 1
    assert last_line(done).startswith("FAILED at step 1 (container): ")


def test_exit_status_and_json_tell_programs_the_outcome(script: Path, tmp_path: Path) -> None:
    """0 if all is good, 1 if a step failed; the JSON names it."""
    policy = tmp_path / "policy"
    policy.write_text(builder.material().policy)
    proof = tmp_path / "proof"
    proof.write_bytes(builder.material().proof())
    done = run(script, proof, "--policy", policy, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["ok"] is True
    dossier = tmp_path / "dossier.zip"
    dossier.write_bytes(builder.broken()["index-changed"][1])
    done = run(script, dossier, "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert (answer["ok"], answer["step"], answer["name"]) == (False, 5, "inclusion")
    assert answer["shown"] == {}


def test_text_of_a_dossier_cannot_play_tricks_on_a_terminal(script: Path, tmp_path: Path) -> None:
    """Control characters and changes of direction are shown as escapes."""
    tricks = "\x1b[2J\u202eevil\r"
    shown = builder.disclosure(1, "initials_per_line", [tricks, tricks])
    record = builder.material(_sd=[builder.b64url(sha256(shown.encode()).digest())]).record
    dossier = tmp_path / "dossier.zip"
    dossier.write_bytes(
        replace(builder.material(), record=record, extra=record, disclosures=[shown]).dossier()
    )
    done = run(script, dossier)
    assert done.returncode == 3, done.stdout
    assert "evil" in done.stdout
    assert all(character.isprintable() for character in done.stdout.replace("\n", ""))


def test_without_a_policy_the_first_line_says_that_the_key_was_not_checked(
    script: Path, tmp_path: Path
) -> None:
    """With exit status 3, or 0 with `--own-key`; a policy makes it OK."""
    dossier, policy = tmp_path / "dossier.zip", tmp_path / "policy"
    dossier.write_bytes(builder.material().dossier())
    policy.write_text(builder.material().policy.removesuffix("\n"))
    done = run(script, dossier)
    assert "Whose key signed this was not checked." in done.stdout.splitlines()[0]
    assert done.returncode == 3
    assert run(script, dossier, "--own-key").returncode == 0
    said = json.loads(run(script, dossier, "--own-key", "--json").stdout)
    assert (said["ok"], said["outcome"]) == (False, "consistent")
    done = run(script, dossier, "--policy", policy)
    assert (done.returncode, last_line(done)[:4]) == (0, "OK  ")
    assert "NOT CHECKED" not in done.stdout


def test_everything_agreed_to_is_printed(script: Path, tmp_path: Path) -> None:
    """Title, version and who named it, law, last sentence, known gaps, account; dates."""
    dossier = tmp_path / "dossier.zip"
    dossier.write_bytes(builder.incomplete().dossier())
    said = run(script, dossier).stdout
    for expected in (
        "Notice ab1263, version 2026-01-01: Notice",
        "assumed: the vendor named none",
        "for acct_01kdtvz9n8f6ywn3x2qk4c7r5a",
        "source_law: Cal. Civ. Code",
        "The notice ends with: I understand.",
        "Known to be missing in this text: (E) and later",
        "(B) Zeile",
        "cosigned by w1 at 2026-11-20T21:31:00Z",
        "cosigned by w1 (quorum all-of-them), 0 time-stamp(s)",
    ):
        assert expected in said, expected
    notice = json.loads(run(script, dossier, "--json").stdout)["notice"]
    assert notice["text_gaps"] == ["(E) and later"]


def test_it_prints_its_version(script: Path, tmp_path: Path) -> None:
    """The package's version, on its own and in each report; the page has the same."""
    assert run(script, "--version").stdout == f"verify.py {__version__}\n"
    assert run(unpack(tmp_path, script)).stdout.count(f"\n\nverify.py {__version__}\n") == 1
    page = script.with_name("verify.html").read_text(encoding="utf-8")
    assert f'const VERSION = "{__version__}";' in page


def test_the_digests_of_the_verifiers_are_published(script: Path) -> None:
    """So that a copy from anywhere can be compared: `make docs` writes them."""
    listed = "".join(
        f"{sha256(script.with_name(name).read_bytes()).hexdigest()}  {name}\n"
        for name in ("verify.py", "verify.html")
    )
    root = Path(__file__).parents[2]
    assert (root / "spec" / "verifiers.sha256").read_text(encoding="ascii") == listed


def test_a_python_that_is_too_old_is_no_failed_check(script: Path, tmp_path: Path) -> None:
    """It reads the file as far as the sentence that names the version needed, and exits with 2."""
    source = script.read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 6))
    begin = "import sys\nsys.version_info, sys.version = (3, 9, 6), '3.9.6'\n"
    older = tmp_path / "older.py"
    older.write_text(begin + source, encoding="utf-8")
    done = run(older)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("needs Python 3.11 or newer. This is 3.9.6: nothing was checked.\n")
    for old in sorted(Path(sys.base_prefix).parent.glob("3.[6-9].*/bin/python3")):
        real = subprocess.run([old, "-I", script], capture_output=True, check=False, timeout=60)
        assert (real.returncode, b"needs Python 3.11" in real.stderr) == (2, True), old


def test_a_certificate_alone_is_reported_as_no_evidence(script: Path, tmp_path: Path) -> None:
    """People have it in hand: the message names its acknowledgment, without a verdict."""
    pdf = tmp_path / "certificate.pdf"
    pdf.write_bytes(b"%PDF-1.7 ... ack_01m7xdxbmvex7t29vh2x05yyyq ...")
    done = run(script, pdf)
    assert (done.returncode, done.stdout) == (2, "")
    assert "to ack_01m7xdxbmvex7t29vh2x05yyyq. A certificate alone proves nothing" in done.stderr


def test_only_regular_files_are_read(script: Path, tmp_path: Path) -> None:
    """A pipe that no one writes to and a device without an end, alone and in a folder."""
    placed = unpack(tmp_path, script)
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/zero"):
        assert run(script, place).returncode == 2
    for put in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        (tmp_path / "notice.json").unlink()
        put(tmp_path / "notice.json")
        assert last_line(run(placed)).endswith("(container): the dossier lacks notice.json")
    assert run(placed, "--policy", "/dev/zero").returncode == 2
