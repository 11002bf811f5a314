"""Notes of backups are files that anybody may have written: none of them blinds the watch."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from countersign.operate.backup import BackupNote, read_note
from tests.cli.conftest import Bench
from tests.cli.tampering import tamper

pytestmark = pytest.mark.one_engine

HOSTILE = {
    "number": '{"directory": 5}',
    "not a number": '{"at": NaN, "directory": "/"}',
    "far": '{"at": 1e300, "directory": "/nowhere"}',
    "deep": "[" * 100_000,
    "long": json.dumps({"directory": "/" + "x" * 5000}),
    "null": json.dumps({"directory": "a\0b"}),
    "text": "not JSON",
}


def late(bench: Bench) -> dict[str, str]:
    """The severities of what the doctor finds late, but for the work of a server: none runs."""
    done = bench.run("doctor", "--seconds=60", "--json", check=False)
    lines = [one for one in json.loads(done.stdout)["lines"] if one["check"] == "promises"]
    assert lines, "the check has failed"
    codes = {one["code"]: one["severity"] for one in lines}
    return {code: codes[code] for code in codes.keys() - {"promises.fine", "promises.published"}}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_strange_note_is_no_backup_and_hides_no_promise(initialised: Bench, name: str) -> None:
    """The doctor goes on, and so does the next backup."""
    (initialised.data_dir / "last-backup.json").write_text(HOSTILE[name])
    assert late(initialised) == {}
    target = initialised.data_dir.parent / "backup"
    initialised.run("backup", str(target))
    (target / "restored.json").write_text('{"restored_at": "x"}')
    assert late(initialised) == {}
    assert read_note(initialised.data_dir).directory == str(target)
    shutil.rmtree(target)


def test_a_pipe_in_the_place_of_a_note_keeps_nobody_waiting(initialised: Bench) -> None:
    """Reading it would never end."""
    os.mkfifo(initialised.data_dir / "last-backup.json")
    assert read_note(initialised.data_dir) == BackupNote()
    assert late(initialised) == {}


def test_nothing_is_late_on_the_day_of_the_upgrade(initialised: Bench) -> None:
    """A deployment of years has had no promise until then."""
    tamper(initialised, "UPDATE logs SET created_at = created_at - 200 * 86400000")
    assert late(initialised) == {}
    tamper(initialised, "DELETE FROM deployment WHERE name = 'watched_since'")
    assert late(initialised)["promises.backed_up"] == "broken"
    initialised.run("init", "--upgrade")
    assert late(initialised) == {}
