"""Changing a database behind the service's back, as only its owner could."""

import sqlite3
from contextlib import closing

from tests.support.service import Deployment

# The oldest acknowledgment.
_OURS = "(SELECT min(id) FROM records WHERE type = 'acknowledgment')"


def tamper(deployment: Deployment, statement: str) -> None:
    """Run a statement with the triggers away that would refuse it; `:ours` is a record's id."""
    with closing(sqlite3.connect(deployment.data_dir / "countersign.db")) as connection:
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        assert connection.execute(statement.replace(":ours", _OURS)).rowcount > 0, statement
        for _, sql in triggers:
            connection.execute(sql)
        connection.commit()
