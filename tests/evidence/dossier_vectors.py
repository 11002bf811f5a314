"""Where the vectors of dossiers are, and the script that makes them."""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

DOSSIERS: Final = Path(__file__).parents[2] / "spec" / "vectors" / "dossier"
GOOD: Final = sorted((DOSSIERS / "good").glob("*.zip"))
LIVE: Final = DOSSIERS / "live" / "order.zip"
"""The first of them, as an order of mode live, of another log."""
EXPECTED: Final[dict[str, str]] = {
    name: case["step"]
    for name, case in json.loads((DOSSIERS / "broken" / "expected.json").read_bytes()).items()
}
"""Of each broken one the step that fails."""


def load_maker() -> ModuleType:
    """The script next to the vectors."""
    name = "make_dossier_vectors"
    spec = spec_from_file_location(name, DOSSIERS / "make_vectors.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    sys.modules[name] = module  # a dataclass looks its module up by name while it is made
    spec.loader.exec_module(module)
    return module
