"""Exported audits are checked without their operator: the vectors, and their maker."""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from countersign_evidence.root import main

AUDITS: Final = Path(__file__).parents[2] / "spec" / "vectors" / "audit"
EXPECTED: Final[dict[str, dict[str, Any]]] = json.loads((AUDITS / "expected.json").read_bytes())
POLICY: Final = AUDITS.parent / "dossier" / "live" / "policy.txt"


def checked(folder: Path, policy: Path = POLICY) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(main, ["check-audit", str(folder), "--policy", str(policy), "--json"])
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.parametrize("case", EXPECTED)
def test_an_export_is_judged_as_expected(case: str) -> None:
    """Whatever was changed, taken out, dated back or cut off is a finding."""
    status, found = checked(AUDITS / case)
    expected = EXPECTED[case]
    numbers = len(found["findings"]), len(found["remarks"])
    assert numbers == (expected["findings"], expected["remarks"]), found
    assert status == (1 if found["findings"] else 0 if found["sealed"] else 2)


def test_the_newest_sealed_head_says_how_many_entries_it_covers() -> None:
    """Those after it are the operator's word."""
    _, found = checked(AUDITS / "good")
    assert (found["entries"], found["heads"], found["sealed"]) == (5, 2, 4)


def test_a_head_counts_by_the_policy_that_is_given(tmp_path: Path) -> None:
    """Not by the one in the directory, which its maker wrote."""
    status, found = checked(AUDITS / "good", AUDITS.parent / "dossier" / "good" / "policy.txt")
    assert status == 1
    assert len(found["findings"]) == 2
    (tmp_path / "heads").mkdir()
    done = CliRunner().invoke(main, ["check-audit", str(tmp_path), "--policy", str(POLICY)])
    assert done.exit_code == 2
    assert "cannot be read" in done.stderr


def test_the_code_makes_every_vector_byte_for_byte() -> None:
    """An export of an older release is what this release would write."""
    spec = spec_from_file_location("make_audit_vectors", AUDITS / "make_vectors.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    generated = module.generated_files()
    assert {name: (AUDITS / name).read_bytes() for name in generated} == generated
