"""An act of an operator and its entry in the audit log happen together, or neither does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from countersign.base.db.engine import SQLITE_FILE, sqlite_module
from tests.cli.conftest import Bench
from tests.cli.test_json import ARGUMENTS, BARE, ThereIs, ready, ready_once  # noqa: F401 - fixtures

pytestmark = pytest.mark.long

NO_ENTRY = (
    "CREATE TRIGGER no_entry BEFORE INSERT ON audit_log BEGIN SELECT RAISE(ABORT, 'no entry'); END"
)
READING = ("list", "show", "status", "check", "diff", "deliveries", "queue", "requirements")
NEW = ("restore", "init")
"""These make a deployment."""
NOTED = {"notices publish", "webhooks add", "webhooks change", "webhooks delete"}
NOTED |= {"webhooks disable", "webhooks enable", "webhooks rotate-secret"}
"""These act without an entry, too: for a key, or when a deployment is created."""


def everything_in(data_dir: Path) -> dict[str, Any]:
    """Every row of every table, and the keys."""
    connection = sqlite_module().connect(str(data_dir / SQLITE_FILE))
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    rows = {
        name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr)  # noqa: S608 - our own
        for (name,) in names
    }
    connection.close()
    return rows | {file.name: file.read_bytes() for file in data_dir.glob("*.key")}


@pytest.mark.parametrize(
    "command", [c for c in ARGUMENTS if c not in BARE and not c.endswith(READING + NEW)]
)
def test_without_its_audit_entry_nothing_is_done(
    ready: tuple[Bench, dict[str, str]],  # noqa: F811 - a fixture
    command: str,
) -> None:
    """Each command: where the audit log takes no entry, it changes nothing and shows nothing."""
    bench, there_is = ready
    filled = ThereIs(bench, there_is)
    arguments = [word.format_map(filled) for word in ARGUMENTS[command]]
    connection = sqlite_module().connect(str(bench.data_dir / SQLITE_FILE))
    connection.execute(NO_ENTRY)
    connection.commit()
    connection.close()
    before = everything_in(bench.data_dir)
    done = bench.run(*command.split(), *arguments, check=False)
    assert done.returncode or command not in NOTED
    if done.returncode:
        assert everything_in(bench.data_dir) == before
        assert done.stdout == ""
        assert not Path(there_is["dossier"]).exists()
