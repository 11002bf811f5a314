"""The rules of the house: imports point one way, and the inner parts are pure."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

import countersign
import countersign_evidence
import countersign_simulators
from tests.unit.imports import wrong_imports

SOURCE = Path(countersign.__file__).parent
EVIDENCE = Path(countersign_evidence.__file__).parent


def wrong_in(tmp_path: Path, place: str, source: str) -> list[str]:
    """The findings in a package with this one module; `E:` is the evidence's."""
    of_evidence = place.startswith("E:")
    package = tmp_path / ("countersign_evidence" if of_evidence else "countersign")
    path = package / place.removeprefix("E:")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return wrong_imports(package)


def test_imports_point_one_way() -> None:
    """Each part imports only earlier parts, with full names."""
    assert wrong_imports(SOURCE) == []


def test_the_evidence_imports_nothing_of_the_service() -> None:
    """It is a separate distribution, for people without a service."""
    assert wrong_imports(EVIDENCE) == []


def test_the_whole_source_is_read() -> None:
    """A reader that looks into an empty folder finds nothing wrong."""
    modules = list(SOURCE.rglob("*.py"))
    assert len(modules) > 50
    assert (SOURCE / "core" / "buyers" / "model.py") in modules


@pytest.mark.parametrize(
    ("place", "source", "what"),
    [
        ("E:a.py", "from countersign.core.access.key import Scope", "must not import countersign"),
        ("E:a.py", "from countersign_evidence.monitor.watch import x", "must not import monitor"),
        ("E:monitor/a.py", "import countersign", "must not import countersign"),
        ("E:cli/a.py", "from countersign_simulators import x", "must not import countersign_"),
        ("core/log/a.py", "import countersign.core.notices.model", "not import core.notices"),
        ("core/buyers/a.py", "from countersign.core import clearances", "not import core.clear"),
        ("base/db/a.py", "from countersign.core.notices.sql import x", "not import core.notices"),
        ("core/gate/a.py", "import countersign.core.privacy.model as m", "not import core.privacy"),
        ("identity/a.py", "from countersign.core.buyers.model import x", "not import core.buyers"),
        ("core/clearances/a.py", "from countersign.server.app import x", "must not import server"),
        (
            "operate/bootstrap.py",
            "from countersign.server.app import App",
            "must not import server",
        ),
        ("base/http/deep/er/a.py", "from countersign.root import main", "must not import root"),
        (
            "base/values.py",
            "from countersign.base.db.statements import x",
            "must not import base.db",
        ),
        ("E:offline/a.py", "from countersign_evidence.tree import x", "must not import tree"),
        ("__init__.py", "from countersign.base.errors import x", "must not import base"),
        (
            "base/http/a.py",
            "from countersign_conformance.kit import x",
            "must not import countersign_",
        ),
        ("new/a.py", "", "has no place"),
        ("core/log/a.py", "from .key import Scope", "relative"),
        ("core/log/a.py", "from . import key", "relative"),
        ("base/http/a.py", "from ..errors import x", "relative"),
    ],
)
def test_an_import_against_the_direction_is_found(
    place: str, source: str, what: str, tmp_path: Path
) -> None:
    """The check itself can fail, on each of its rules."""
    (found,) = wrong_in(tmp_path, place, source)
    assert what in found
    assert found.startswith(f"{place.removeprefix('E:')}:1: ")


def test_simulators_share_no_code_with_the_service() -> None:
    """Only their command uses any, so that adapter and simulator cannot share a mistake."""
    package = Path(countersign_simulators.__file__).parent
    found = {
        path.name: set(
            re.findall(r"(?:from|import) (countersign(?:_evidence)?\.[\w.]+)", path.read_text())
        )
        for path in package.glob("*.py")
    }
    assert len(found) > 10
    assert found.pop("command.py") == {
        "countersign_evidence.cli.support",
        "countersign.base.errors",
    }
    assert not set().union(*found.values())


@pytest.mark.parametrize(
    "source",
    [
        """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from countersign.core.vault.vault import Vault
        """,
        """
        def late():
            from countersign.core.vault.vault import Vault
        """,
        """
        try:
            import countersign.core.vault
        except ImportError:
            pass
        """,
    ],
)
def test_a_hidden_import_counts_as_well(source: str, tmp_path: Path) -> None:
    """For types only, inside a function, or in a try: it points backwards all the same."""
    (found,) = wrong_in(tmp_path, "base/db/a.py", source)
    assert "must not import core.vault" in found


@pytest.mark.parametrize("place", ["core/buyers/model.py", "E:a.py"])
@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import os.path",
        "from secrets import token_bytes",
        "import random",
        "import socket",
        "from pathlib import Path",
        "from uuid import uuid4",
        "import sqlite3",
        "from sqlalchemy import select",
        "import httpx2",
        "import structlog",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\ndatetime.datetime.utcnow()",
        "from datetime import date\nx = date.today()",
        "open('x')",
        "print('x')",
    ],
)
def test_clock_randomness_network_and_files_are_found_in_pure_parts(
    place: str, source: str, tmp_path: Path
) -> None:
    """A rule's decision depends on its arguments, and on nothing else."""
    (found,) = wrong_in(tmp_path, place, source)
    assert "is pure" in found


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("core/log/model.py", "from datetime import time\nfrom countersign.base.errors import x"),
        ("core/buyers/model.py", "import msgspec\nfrom countersign_evidence.canonical import y"),
        (
            "core/clearances/a.py",
            "import time, os\nfrom countersign.core.buyers.model import Buyer",
        ),
        ("core/events/a.py", "from countersign.core.events.model import x\nimport sqlalchemy"),
        ("root.py", "from countersign import __version__\nfrom countersign.server.app import x"),
        (
            "operate/bootstrap.py",
            "from countersign.core import notices\nfrom countersign.base.config import Settings",
        ),
    ],
)
def test_allowed_imports_are_not_reported(place: str, source: str, tmp_path: Path) -> None:
    """A check that cries at everything is soon switched off."""
    assert wrong_in(tmp_path, place, source) == []
