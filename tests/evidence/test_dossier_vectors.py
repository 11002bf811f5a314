"""The vectors of dossiers: made again byte for byte, and judged by the service's reader."""

import json
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from countersign_evidence.policy import parse_policy
from countersign_evidence.verification import STEPS, Conclusion, verify_file
from tests.evidence.dossier_vectors import DOSSIERS, EXPECTED, GOOD, LIVE, load_maker
from tests.support.every import every


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    """The script next to the vectors."""
    return load_maker()


def test_the_code_makes_every_vector_byte_for_byte(maker: ModuleType) -> None:
    """A dossier written by an older release is what this release would write."""
    generated: dict[str, bytes] = maker.generated_files()
    kept = {
        str(path.relative_to(DOSSIERS)): path.read_bytes()
        for folder in ("good", "broken", "live")
        for path in (DOSSIERS / folder).iterdir()
    }
    assert sorted(kept) == sorted(generated)
    assert [name for name in kept if kept[name] != generated[name]] == []


def test_something_fails_at_every_step() -> None:
    """An empty folder must not pass for a green one."""
    assert len(GOOD) >= 10
    assert len(EXPECTED) >= 40
    assert Counter(EXPECTED.values()).keys() == set(STEPS)
    names = {path.name for path in (DOSSIERS / "broken").iterdir()} - {"expected.json"}
    assert names == set(EXPECTED)


@every("path", GOOD)
def test_a_good_dossier_verifies(path: Path) -> None:
    """By its own policy, and by the same policy from another source."""
    policy = parse_policy((DOSSIERS / "good" / "policy.txt").read_bytes())
    assert verify_file(path.read_bytes()).outcome is Conclusion.CONSISTENT
    verdict = verify_file(path.read_bytes(), policy)
    assert verdict.outcome is Conclusion.OK, verdict.line()
    assert verdict.dossier


@every("name", EXPECTED)
def test_a_broken_dossier_fails_at_its_step(name: str) -> None:
    """And at no step before it."""
    verdict = verify_file((DOSSIERS / "broken" / name).read_bytes())
    assert (verdict.outcome, verdict.name) == (Conclusion.FAILED, EXPECTED[name]), verdict.line()
    assert verdict.dossier is None


def test_a_live_order_verifies_by_the_policy_of_its_own_log_alone() -> None:
    """It says the same as the test order, of other records."""
    data, policies = LIVE.read_bytes(), [DOSSIERS / of / "policy.txt" for of in ("live", "good")]
    live, test = (verify_file(data, parse_policy(path.read_bytes())) for path in policies)
    assert live.outcome is Conclusion.OK, live.line()
    assert live.record["mode"] == "live"
    assert (test.outcome, test.name) == (Conclusion.FAILED, "signature")
    same = verify_file((DOSSIERS / "good" / "order.zip").read_bytes())
    assert live.dossier
    assert same.dossier
    assert live.dossier.order["joins"] == same.dossier.order["joins"]


def test_the_changes_are_described_in_words() -> None:
    """Who writes another reader sees what it has to notice."""
    cases = json.loads((DOSSIERS / "broken" / "expected.json").read_bytes())
    assert all(len(case["change"]) > 10 for case in cases.values())
