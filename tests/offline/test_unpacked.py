"""A dossier in a folder: the command and verify.py judge it alike, whatever lies there."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import rmtree
from typing import Final

import pytest

from tests.offline import builder
from tests.support.command import run

BUNDLE: Final = Path(__file__).parents[2] / "spec" / "vectors" / "before" / "bundle.zip"
SUMS: Final = "SHA256SUMS"
UNCHECKED: Final = "COULD NOT BE CHECKED at step 1 (container): "
CONTAINER: Final = "FAILED at step 1 (container): "
GOOD: Final = "CONSISTENT, KEY NOT CHECKED  one order, ack_"


def emptied(folder: Path) -> None:
    rmtree(folder)
    folder.mkdir()


def bundled(folder: Path) -> None:
    emptied(folder)
    with zipfile.ZipFile(BUNDLE) as archive:
        archive.extractall(folder)


def crlf(folder: Path) -> None:
    sums = folder / SUMS
    sums.write_bytes(sums.read_bytes().replace(b"\n", b"\r\n"))


def listed(folder: Path, names: list[str], content: bytes = b"") -> None:
    """Put these files next to the dossier, and their names into its SHA256SUMS."""
    with (folder / SUMS).open("a", encoding="ascii") as sums:
        for name in names:
            (folder / name).write_bytes(content)
            sums.write(f"{64 * '0'}  {name}\n")


def unreadable(folder: Path) -> None:
    (folder / "notice.json").unlink()
    (folder / "notice.json").symlink_to("/proc/self/mem")  # its first byte is an error


CASES: Mapping[str, tuple[Callable[[Path], object], int, str]] = {
    "good": (lambda _: None, 3, GOOD),
    "record.json beside it": (lambda to: (to / "record.json").write_bytes(b"{}"), 3, GOOD),
    "SHA256SUMS with CRLF": (crlf, 1, f"{CONTAINER}the dossier lacks "),
    "no SHA256SUMS": (lambda to: (to / SUMS).unlink(), 1, f"{CONTAINER}the dossier lacks {SUMS}"),
    "no records": (lambda to: rmtree(to / "records"), 2, UNCHECKED),
    "nothing": (emptied, 2, UNCHECKED),
    "a bundle": (bundled, 2, f"{UNCHECKED}this container is a bundle"),
    "a file that cannot be read": (unreadable, 2, f"{UNCHECKED}a file cannot be read: "),
    "more bytes than are read": (
        lambda to: listed(to, ["a", "b"], bytes(9_000_000)),
        1,
        f"{CONTAINER}a dossier has at most ",
    ),
    "more files than are read": (
        lambda to: listed(to, [f"{n}.txt" for n in range(300)]),
        1,
        f"{CONTAINER}a dossier has at most ",
    ),
    "a changed file": (
        lambda to: (to / "dossier.pdf").write_bytes(b"%PDF-1.7 changed"),
        1,
        "FAILED at step 10 (files): ",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_both_readers_of_a_folder_come_to_the_same_verdict(
    name: str, script: Path, tmp_path: Path
) -> None:
    """The same exit status and the same line, even without a dossier."""
    folder = builder.unpacked(builder.summed(builder.material().files()), tmp_path / "folder")
    change, status, line = CASES[name]
    change(folder)
    done = subprocess.run(
        [sys.executable, "-I", script, folder], capture_output=True, text=True, check=False
    )
    command = run(["verify", str(folder)], os.environ)
    assert done.returncode == status, done.stdout + done.stderr
    *summary, last = command.stdout.splitlines()
    assert done.stdout.splitlines()[: len(summary)] == summary
    assert last == done.stdout.splitlines()[-1]
    assert command.returncode == status
    assert last.startswith(line)


def test_both_readers_name_files_outside_the_dossier(script: Path, tmp_path: Path) -> None:
    """A `record.json` too, which does not turn it into a bundle."""
    folder = builder.unpacked(builder.summed(builder.material().files()), tmp_path)
    for name in ("record.json", "records/more.txt"):
        (folder / name).write_bytes(b"{}")
    said = "not part of the dossier, and not checked: record.json, records/more.txt\n"
    done = subprocess.run(
        [sys.executable, "-I", script, folder], capture_output=True, text=True, check=False
    )
    assert said in done.stdout
    assert said in run(["verify", str(folder)], os.environ).stderr
