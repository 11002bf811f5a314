"""The script as a stranger gets it: loaded from its file, not as part of our package."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from countersign_evidence.offline import verify

OFFLINE = Path(verify.__file__).parent


@pytest.fixture(scope="session")
def script() -> Path:
    """Give the path of verify.py."""
    return OFFLINE / "verify.py"


@pytest.fixture(scope="session")
def page_file() -> Path:
    """Give the path of verify.html."""
    return OFFLINE / "verify.html"


@pytest.fixture(scope="session")
def stranger(script: Path) -> ModuleType:
    """Give the module that verify.py is."""
    spec = spec_from_file_location("verify_of_a_stranger", script)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
