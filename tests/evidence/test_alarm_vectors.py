"""The vectors of alarms: made again byte for byte, each with its written outcome."""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

import pytest

from countersign_evidence.alarm import AlarmKind
from countersign_evidence.check_alarm import Shown, check_alarm
from countersign_evidence.policy import parse_policy

ALARMS: Final = Path(__file__).parents[2] / "spec" / "vectors" / "alarm"
EXPECTED: Final[dict[str, Any]] = json.loads((ALARMS / "expected.json").read_bytes())
POLICY: Final = parse_policy((ALARMS / "policy.txt").read_bytes())


def test_the_code_makes_every_vector_byte_for_byte() -> None:
    """An alarm that was written by an older release is what this release would write."""
    spec = spec_from_file_location("make_alarm_vectors", ALARMS / "make_vectors.py")
    assert spec
    assert spec.loader
    maker = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "make_alarm_vectors", maker)
        spec.loader.exec_module(maker)
    generated: dict[str, bytes] = maker.generated_files()
    kept = {
        path.relative_to(ALARMS).as_posix(): path.read_bytes()
        for path in ALARMS.rglob("*")
        if path.is_file() and path.suffix in {".json", ".txt"}
    }
    assert sorted(kept) == sorted(generated)
    assert [name for name in kept if kept[name] != generated[name]] == []


@pytest.mark.parametrize("name", EXPECTED)
def test_each_alarm_has_its_written_outcome(name: str) -> None:
    """Good ones prove their claim; the others fail, or rest on an unknown key."""
    judged = check_alarm((ALARMS / name).read_bytes(), POLICY)
    assert judged.shown.value == EXPECTED[name]["shown"], judged.message
    good = name.startswith("good/")
    assert (judged.shown in {Shown.PROVED, Shown.OBSERVED}) == good


def test_each_kind_has_a_good_and_a_broken_vector() -> None:
    for folder in ("good", "broken"):
        names = [name.removeprefix(f"{folder}/") for name in EXPECTED if name.startswith(folder)]
        kinds = {name.split(".")[0].split("-")[0] for name in names}
        assert kinds >= {kind.value for kind in AlarmKind}, folder
