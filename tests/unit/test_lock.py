"""The lock on the data directory: one server at a time, and never a lock left behind."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from countersign.base.errors import DataDirectoryLocked
from countersign.base.files import holder_of, only_server

HOLD = """
import sys
import time
from pathlib import Path
from countersign.base.files import only_server
with only_server(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_server_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    """With the process that holds the lock, the directory, and what to do."""
    with (
        only_server(tmp_path, serves=True),
        pytest.raises(DataDirectoryLocked) as caught,
        only_server(tmp_path),
    ):
        pass
    assert f"server (process {os.getpid()})" in caught.value.message
    assert str(tmp_path.resolve()) in caught.value.message
    assert "COUNTERSIGN_DATA_DIR" in caught.value.message


def test_a_command_that_must_be_alone_is_not_called_a_server(tmp_path: Path) -> None:
    """There is nothing to stop: it ends by itself."""
    with (
        only_server(tmp_path),
        pytest.raises(DataDirectoryLocked) as caught,
        only_server(tmp_path, serves=True),
    ):
        pass
    assert f"command (process {os.getpid()})" in caught.value.message
    assert "Wait until it has ended" in caught.value.message


def test_being_refused_does_not_break_the_lock(tmp_path: Path) -> None:
    """The third is refused as the second was."""
    with only_server(tmp_path):
        for _ in range(2):
            with pytest.raises(DataDirectoryLocked), only_server(tmp_path):
                pass


@pytest.mark.parametrize("failure", [None, RuntimeError])
def test_the_lock_is_let_go_when_the_server_ends(
    failure: type[Exception] | None, tmp_path: Path
) -> None:
    """However it ends."""
    if failure is None:
        with only_server(tmp_path):
            pass
    else:
        with pytest.raises(failure), only_server(tmp_path):
            raise failure
    with only_server(tmp_path):
        pass


def test_a_server_knows_whether_the_one_before_ended_cleanly(tmp_path: Path) -> None:
    """In one of several processes, it ends by an exit."""
    for ended, in_order in ((None, True), (SystemExit(0), True), (SystemExit(9), False)):
        with contextlib.suppress(SystemExit), only_server(tmp_path, serves=True) as was_broken_off:
            assert not was_broken_off
            if ended is not None:
                raise ended
        with only_server(tmp_path, serves=True) as was_broken_off:
            assert was_broken_off is not in_order


def test_a_command_keeps_for_the_next_server_how_the_last_one_ended(tmp_path: Path) -> None:
    """An upgrade or a move after a crash looks for no damage: a server does."""
    with contextlib.suppress(SystemExit), only_server(tmp_path, serves=True):
        raise SystemExit(9)
    for _ in range(2):
        with only_server(tmp_path):
            assert holder_of(tmp_path) == str(os.getpid())
    with only_server(tmp_path, serves=True) as was_broken_off:
        assert was_broken_off
    for _ in range(2):
        with only_server(tmp_path) as was_broken_off:
            assert not was_broken_off


def test_other_directories_are_not_locked(tmp_path: Path) -> None:
    """Two deployments on one machine."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with only_server(tmp_path / "a"), only_server(tmp_path / "b"):
        pass


def test_the_lock_file_is_for_its_owner_only(tmp_path: Path) -> None:
    """Another user of the machine cannot lock the server out."""
    with only_server(tmp_path):
        (file,) = tmp_path.iterdir()
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.crash
def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    """Killing it leaves the file, and no lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(DataDirectoryLocked, match=f"process {holder.pid}"),
            only_server(tmp_path),
        ):
            pass
        holder.kill()
        holder.wait(10)
    assert list(tmp_path.iterdir())
    with only_server(tmp_path) as was_broken_off:
        assert was_broken_off


# A worker inherits the open file, and with it the lock.
HOLD_WITH_A_WORKER = """
import os, sys
from pathlib import Path
from countersign.base.files import only_server
with only_server(Path(sys.argv[1])):
    if os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
    print("held", flush=True)
    os.waitpid(-1, 0)
"""


WORKER_ENDS = """
import os, sys
from pathlib import Path
from countersign.base.files import holder_of, only_server
with only_server(Path(sys.argv[1]), serves=True):
    worker = os.fork()
    if worker:
        os.waitpid(worker, 0)
        print(holder_of(Path(sys.argv[1])) == str(os.getpid()))
"""


def test_a_worker_that_ends_in_order_is_not_the_end_of_the_server(tmp_path: Path) -> None:
    """The number in the file stays that of the server, until that ends."""
    done = subprocess.run(
        [sys.executable, "-c", WORKER_ENDS, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "True\n"
    with only_server(tmp_path) as was_broken_off:
        assert not was_broken_off


@pytest.mark.crash
def test_a_new_server_waits_for_the_workers_of_a_killed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end when they notice; until then they hold the lock, and no server runs."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_WITH_A_WORKER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"
    holder.kill()
    holder.wait(10)
    waited = []

    def worker_ends(seconds: float) -> None:
        waited.append(seconds)
        assert holder.stdin and holder.stdout  # noqa: PT018 - for the type checker
        holder.stdin.close()
        select.select([holder.stdout], [], [], 10)  # its end of the pipe closes with it

    monkeypatch.setattr(time, "sleep", worker_ends)
    with only_server(tmp_path):
        assert len(waited) == 1
    holder.stdout.close()
