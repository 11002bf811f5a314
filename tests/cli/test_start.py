"""Modules that a server loads before it is ready: only those that it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import Bench
from tests.support.service import free_port

pytestmark = [pytest.mark.long, pytest.mark.one_engine]

FIRST_USED_LATER = (
    "alembic",
    "countersign.core.dossiers.compare",
    "countersign.core.dossiers.pdf",
    "countersign.core.paper.typeset",
    "countersign.server.certification",
    "countersign_simulators",
    "psycopg",
    "segno",
    "sqlalchemy.dialects.postgresql",
    "typst",
)
"""Modules that documents, other engines, upgrades and other commands need."""


def test_a_server_on_the_embedded_database_loads_only_what_it_needs(
    initialised: Bench,
) -> None:
    """A separate process, since those that tests fork have loaded everything."""
    bench = initialised.but(PORT=str(free_port()))
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "countersign", "serve"],
        env=bench.environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        loaded = set()
        for line in server.stderr:
            if line.startswith("import time:"):
                loaded.add(line.rpartition("|")[2].strip())
            elif line.startswith("Countersign serves"):
                break
        server.terminate()
        server.stderr.read()
    assert "countersign.server.app" in loaded
    assert loaded.isdisjoint(FIRST_USED_LATER)
