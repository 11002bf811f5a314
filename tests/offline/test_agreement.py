"""The rules of verify.py for policies, checkpoints and proofs, and for its own file."""

import ast
import re
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import ModuleType

import pytest

from countersign.core.log.record import RecordType
from tests.offline import builder
from tests.support.every import every

pytestmark = pytest.mark.first_try

POLICY = builder.material().policy.encode()


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a bare Python: no site packages, no environment, no current directory."""
    return subprocess.run(
        [sys.executable, "-I", "-S", *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )


def test_all_readers_know_the_records_that_the_service_writes(
    stranger: ModuleType, page_file: Path
) -> None:
    """A type added to one reader is added to all."""
    written = {type_.value for type_ in RecordType}
    assert written == set(stranger.RECORDS)
    (listed,) = re.findall(r"const TYPES = (\[.*?\]);", page_file.read_text(encoding="utf-8"))
    assert set(ast.literal_eval(listed)) == written


def test_a_proof_alone_is_checked_by_a_policy_and_needs_one(stranger: ModuleType) -> None:
    """Steps 1 to 5 are done, and the others are reported as not done."""
    proof = builder.material().proof()
    trusted = stranger.read_policy(POLICY)
    report = stranger.verify_bytes(proof, trusted)
    assert report.ok
    assert [step.result for step in report.steps] == ["ok"] * 5 + ["not checked"] * 5
    assert stranger.verify_bytes(proof).failed.name == "signature"


POLICIES: dict[str, bytes] = {
    "empty": b"",
    "no quorum": POLICY.rpartition(b"quorum")[0],
    "two quorums": POLICY + b"quorum none\n",
    "return": POLICY.replace(b"\n", b"\r\n"),
    "unknown word": POLICY + b"trust me\n",
    "group of nobody": b"group a any\nquorum a\n",
    "zero": POLICY.replace(b"them all", b"them 0"),
    "too many": POLICY.replace(b"them all", b"them 2"),
    "none in a group": b"group a any none\nquorum a\n",
    "same log twice": POLICY.splitlines(keepends=True)[0] + POLICY,
    "witness as log": POLICY.replace(b"witness w1 ", b"log "),
    "log as witness": POLICY.replace(b"log ", b"witness l "),
    "none as witness": POLICY.replace(b"w1", b"none"),
    "id of another key": POLICY.replace(b"+", b"+0", 1),
    "undefined": POLICY.replace(b"quorum all-of-them", b"quorum all"),
}


@every("name", POLICIES)
def test_an_inexact_policy_is_refused(stranger: ModuleType, name: str) -> None:
    """With the one error of the script, and in a dossier at the first step."""
    with pytest.raises(stranger.Bad):
        stranger.read_policy(POLICIES[name])
    dossier = replace(builder.material(), policy=POLICIES[name].decode()).dossier()
    assert stranger.verify_bytes(dossier).failed.name == "container"


@pytest.mark.parametrize(
    "change",
    [
        lambda note: note[:-1],
        lambda note: note + b"\n",
        lambda note: note.replace(b"\n\n", b"\n"),
        lambda note: note.replace("\u2014 ".encode(), b"- "),
        lambda note: note.replace(b"\n7\n", b"\n07\n"),
        lambda note: note.replace(b"\n7\n", b"\n9223372036854775808\n"),
        lambda note: note.replace(b"\n7\n", b"\n7\n\t"),
        lambda note: b"\xff" + note,
        lambda _: b"\n\n\n",
    ],
)
def test_an_inexact_checkpoint_is_refused(
    stranger: ModuleType, change: Callable[[bytes], bytes]
) -> None:
    """At the first step."""
    whole = builder.material().proof()
    note = builder.material().note()
    proof = whole.removesuffix(note) + change(note)
    assert stranger.verify_bytes(proof, stranger.read_policy(POLICY)).failed.name == "container"


def test_it_needs_only_python(script: Path) -> None:
    """Every import is of the standard library, and none of them can reach a network."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse(script.read_bytes())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    assert imported <= sys.stdlib_module_names
    assert not imported & {"socket", "http", "urllib", "subprocess", "ssl", "os", "ctypes"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--what"],
        ["a", "b"],
        ["--policy"],
        ["/does/not/exist"],
        ["/dev/null", "--policy", "/does/not/exist"],
        ["/dev/null", "--policy", "/dev/null"],
    ],
)
def test_unchecked_evidence_ends_with_status_2(script: Path, arguments: list[str]) -> None:
    """Wrong usage, a missing file and an unreadable policy are not verdicts."""
    done = run(script, *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr


def test_a_signature_by_a_key_outside_of_the_policy_does_not_count(
    stranger: ModuleType,
) -> None:
    """It is reported, neither trusted nor held against the checkpoint."""
    plain = builder.material()
    line = f"\u2014 stranger.example {b64encode(bytes(68)).decode()}\n".encode()
    report = stranger.verify_bytes(plain.proof() + line, stranger.read_policy(POLICY))
    assert report.ok
    assert "1 signature(s) by keys outside of the policy not checked" in report.steps[1].detail


def test_the_log_holds_the_digest_of_the_record_and_no_more(stranger: ModuleType) -> None:
    """A known answer of the leaf, worked out with hashlib alone."""
    record = builder.material().record
    digest = b64encode(sha256(record).digest())
    assert len(b64decode(digest)) == 32
    entry = b"evidence.example.com:8443/entry/v1\n" + digest + b"\n"
    assert stranger.leaf_of(builder.ORIGIN, record) == sha256(b"\0" + entry).digest()
