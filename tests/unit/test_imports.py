"""The house stands: imports point one way, and the inner parts are pure."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import countersign
from tests.unit.imports import wrong_imports

SOURCE = Path(countersign.__file__).parent


def wrong_in(tmp_path: Path, place: str, source: str) -> list[str]:
    """What is found in a package with this one module."""
    package = tmp_path / "countersign"
    path = package / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return wrong_imports(package)


def test_imports_point_one_way() -> None:
    """Each part imports only what stands before it, and says so in full."""
    assert wrong_imports(SOURCE) == []


def test_the_source_that_is_read_is_the_whole_of_it() -> None:
    """A reader that looks into an empty folder finds nothing wrong."""
    modules = list(SOURCE.rglob("*.py"))
    assert len(modules) > 50
    assert (SOURCE / "domain" / "buyer.py") in modules


@pytest.mark.parametrize(
    ("place", "source", "what"),
    [
        ("evidence/a.py", "from countersign.domain.key import Scope", "must not import domain"),
        ("domain/a.py", "import countersign.ports", "must not import ports"),
        ("domain/a.py", "from countersign import services", "must not import services"),
        ("domain/a.py", "from countersign.config import Rate", "must not import config"),
        ("ports.py", "from countersign.storage.engine import x", "must not import storage"),
        ("services/a.py", "import countersign.storage.tables as t", "must not import storage"),
        ("services/a.py", "from countersign.config import Rate", "must not import config"),
        ("storage/a.py", "from countersign.services.secrets import x", "must not import services"),
        ("storage/a.py", "from countersign.providers import x", "must not import providers"),
        ("providers/a.py", "from countersign.storage import x", "must not import storage"),
        ("bootstrap.py", "from countersign.http.app import App", "must not import http"),
        ("http/a.py", "from countersign.cli import main", "must not import cli"),
        ("http/deep/er/a.py", "from countersign.cli import main", "must not import cli"),
        ("errors.py", "from countersign.ids import x", "must not import ids"),
        ("lock.py", "from countersign.config import x", "must not import config"),
        ("__init__.py", "from countersign.errors import x", "must not import errors"),
        ("new/a.py", "", "has no place"),
        ("domain/a.py", "from .key import Scope", "relative"),
        ("domain/a.py", "from . import key", "relative"),
        ("http/a.py", "from ..errors import x", "relative"),
    ],
)
def test_an_import_against_the_direction_is_found(
    place: str, source: str, what: str, tmp_path: Path
) -> None:
    """The check itself can fail, on each of its rules."""
    (found,) = wrong_in(tmp_path, place, source)
    assert what in found
    assert found.startswith(f"{place}:1: ")


@pytest.mark.parametrize(
    "source",
    [
        """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from countersign.services.secrets import DeploymentSecret
        """,
        """
        def late():
            from countersign.services.secrets import DeploymentSecret
        """,
        """
        try:
            import countersign.services
        except ImportError:
            pass
        """,
    ],
)
def test_a_hidden_import_counts_as_well(source: str, tmp_path: Path) -> None:
    """For types only, inside a function, or in a try: it points backwards all the same."""
    (found,) = wrong_in(tmp_path, "domain/a.py", source)
    assert "must not import services" in found


@pytest.mark.parametrize("part", ["domain", "evidence"])
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
    part: str, source: str, tmp_path: Path
) -> None:
    """What a rule decides depends on what it was given, and on nothing else."""
    (found,) = wrong_in(tmp_path, f"{part}/a.py", source)
    assert "is pure" in found


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("domain/a.py", "from datetime import datetime, time\nfrom countersign.errors import x"),
        ("domain/a.py", "import msgspec\nfrom countersign.evidence.canonical import y"),
        ("services/a.py", "import time, os\nfrom countersign.ports import Clock"),
        ("storage/a.py", "from countersign.storage.tables import x\nimport sqlalchemy"),
        ("cli/a.py", "from countersign import __version__\nfrom countersign.http.server import x"),
        (
            "bootstrap.py",
            "from countersign import notices\nfrom countersign.config import Settings",
        ),
    ],
)
def test_what_the_direction_allows_is_not_reported(place: str, source: str, tmp_path: Path) -> None:
    """A check that cries at everything is soon switched off."""
    assert wrong_in(tmp_path, place, source) == []
